#include "ignis/exec/artifact.h"

#include "ignis/exec/artifact_format.h"

#include <gtest/gtest.h>
#include <sodium.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>

namespace ignis::exec {
namespace {

using Bytes = std::vector<std::byte>;

Bytes filled(size_t count, int seed) {
  Bytes bytes(count);
  for (size_t i = 0; i < count; ++i)
    bytes[i] = static_cast<std::byte>(i * 7 + static_cast<size_t>(seed));
  return bytes;
}

BufferPlan make_buffer(BufferRole role, int64_t size_bytes, const std::string& name) {
  BufferPlan buffer;
  buffer.role = role;
  buffer.size_bytes = size_bytes;
  buffer.name = name;
  return buffer;
}

// y = f(x, w1, w2) by way of a temporary: two programs, one of them called twice; weights of 100 and 300 bytes.
Plan make_plan(const Bytes& w1, const Bytes& w2) {
  Plan plan;
  plan.arena_bytes = 192;
  plan.buffers = {make_buffer(BufferRole::Input, 24, "x"), make_buffer(BufferRole::Output, 24, "y"),
                  make_buffer(BufferRole::Constant, static_cast<int64_t>(w1.size()), "w1"),
                  make_buffer(BufferRole::Constant, static_cast<int64_t>(w2.size()), "w2"),
                  make_buffer(BufferRole::Arena, 100, "t")};
  plan.buffers[2].constant = w1.data();
  plan.buffers[3].constant = w2.data();
  plan.buffers[4].arena_offset = 64;
  plan.programs = {{"first", filled(10, 1), "", 3}, {"second", filled(33, 2), "", 2}};
  plan.buffers[4].reads_zeros = true;
  plan.calls = {{0, {4, 0, 2}, 8, "first", "/conv", 12.5, 100, {0}},
                {1, {1, 4}, 1, "second", "", 0, 0, {}},
                {0, {4, 0, 3}, 8, "first", "/again", 1, 2, {0}}};
  plan.inputs = {{"x", DType::Float32, {2, 3}, 0}};
  plan.outputs = {{"y", DType::Float32, {6}, 1}};
  return plan;
}

class ArtifactTest : public testing::Test {
 protected:
  Bytes make(std::span<const std::byte> secret_key = {}) const {
    ArtifactContents contents;
    contents.manifest = {{"model.name", "small"}, {"metadata.empty", ""}};
    contents.targets = {{{Arch::X86_64, Isa::Avx2}, &plan_}, {{Arch::X86_64, Isa::Sse2}, &plan_}};
    contents.secret_key = secret_key;
    Result<Bytes> bytes = make_artifact(contents);
    EXPECT_TRUE(bytes) << bytes.error().to_string();
    return bytes ? *std::move(bytes) : Bytes();
  }
  static std::string reason(const Bytes& bytes, const ArtifactOptions& options = {}) {
    const auto artifact = Artifact::parse(bytes, nullptr, options);
    return artifact ? "accepted" : artifact.error().reason();
  }
  // A section's row in the table; they are numbered as make_artifact writes them.
  static SectionRow row(const Bytes& file, size_t index) {
    SectionRow row;
    std::memcpy(&row, file.data() + kHeaderBytes + kRowBytes * index, sizeof row);
    return row;
  }

  const Bytes w1_ = filled(100, 3), w2_ = filled(300, 4);
  const Plan plan_ = make_plan(w1_, w2_);
};

TEST_F(ArtifactTest, GivesBackWhatWasPutIn) {
  const Bytes file = make();
  const auto artifact = Artifact::parse(file, nullptr);
  ASSERT_TRUE(artifact) << artifact.error().to_string();
  EXPECT_EQ(artifact->manifest().at("model.name"), "small");
  EXPECT_EQ(artifact->manifest().at("metadata.empty"), "");
  ASSERT_EQ(artifact->targets().size(), 2u);
  EXPECT_EQ(artifact->targets()[0].name(), "x86_64-avx2");
  EXPECT_FALSE(artifact->is_signed());
  const auto plan = artifact->plan_for(make_target(Isa::Avx512));
  ASSERT_TRUE(plan) << plan.error().to_string();
  EXPECT_EQ(plan->arena_bytes, 192);
  ASSERT_EQ(plan->buffers.size(), 5u);
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(plan->buffers[i].name, plan_.buffers[i].name);
    EXPECT_EQ(plan->buffers[i].role, plan_.buffers[i].role);
    EXPECT_EQ(plan->buffers[i].size_bytes, plan_.buffers[i].size_bytes);
    EXPECT_EQ(plan->buffers[i].arena_offset, plan_.buffers[i].arena_offset);
    EXPECT_EQ(plan->buffers[i].reads_zeros, i == 4);
  }
  EXPECT_EQ(std::memcmp(plan->buffers[2].constant, w1_.data(), w1_.size()), 0);
  EXPECT_EQ(std::memcmp(plan->buffers[3].constant, w2_.data(), w2_.size()), 0);
  ASSERT_EQ(plan->programs.size(), 2u);
  EXPECT_EQ(plan->programs[1].object, plan_.programs[1].object);
  EXPECT_EQ(plan->programs[1].buffer_count, 2);
  ASSERT_EQ(plan->calls.size(), 3u);
  EXPECT_EQ(plan->calls[0].buffers, plan_.calls[0].buffers);
  EXPECT_EQ(plan->calls[0].max_parts, 8);
  EXPECT_EQ(plan->calls[0].written, std::vector<int>{0});
  EXPECT_TRUE(plan->calls[1].written.empty());
  EXPECT_EQ(plan->calls[0].flops, 12.5);
  EXPECT_EQ(plan->calls[2].layer, "/again");
  EXPECT_EQ(plan->inputs[0].shape, (Shape{2, 3}));
  EXPECT_EQ(plan->outputs[0].name, "y");
}

TEST_F(ArtifactTest, WeightsLieAt256AndThePageOnce) {
  const Bytes file = make();
  const SectionRow weights = row(file, 3);
  EXPECT_EQ(weights.kind, static_cast<uint32_t>(SectionKind::Weights));
  EXPECT_EQ(weights.offset % 4096, 0u);
  EXPECT_EQ(weights.length_bytes, 556u);  // 100 bytes at 0, 300 at 256; two plans share them
  EXPECT_EQ(std::memcmp(file.data() + weights.offset + 256, w2_.data(), w2_.size()), 0);
}

TEST_F(ArtifactTest, EqualContentsGiveEqualBytes) {
  const Bytes first = make(), second = make();
  EXPECT_TRUE(first == second);
  const auto a = Artifact::parse(first, nullptr), b = Artifact::parse(second, nullptr);
  EXPECT_EQ(a->identity(), b->identity());
}

TEST_F(ArtifactTest, ChoosesTheHighestTargetTheDeviceHas) {
  const Bytes file = make();
  const auto artifact = Artifact::parse(file, nullptr);
  ASSERT_TRUE(artifact);
  EXPECT_TRUE(artifact->plan_for(make_target(Isa::Sse2)));
  const auto other = artifact->plan_for(make_target(Isa::Neon));
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().reason(), "TargetMismatch");
  EXPECT_NE(other.error().message().find("x86_64-avx2, x86_64-sse2"), std::string::npos);
  EXPECT_NE(other.error().message().find("aarch64-neon"), std::string::npos);
  EXPECT_TRUE((TargetNeeds{Arch::X86_64, Isa::Avx2}).is_met_by(make_target(Isa::Avx512)));
  EXPECT_FALSE((TargetNeeds{Arch::X86_64, Isa::Avx512}).is_met_by(make_target(Isa::Avx2)));
}

TEST_F(ArtifactTest, AnInstructionSetIsOfItsArchitecture) {
  ArtifactContents contents;
  for (const TargetNeeds needs :
       {TargetNeeds{Arch::X86_64, Isa::Neon}, TargetNeeds{Arch::AArch64, Isa::Avx2}}) {
    contents.targets = {{needs, &plan_}};
    const auto artifact = Artifact::parse(*make_artifact(contents), nullptr);
    ASSERT_FALSE(artifact) << needs.name();
    EXPECT_EQ(artifact.error().reason(), "BadPlan");
  }
}

TEST_F(ArtifactTest, EverySingleChangedByteIsFound) {
  const Bytes good = make();
  ASSERT_EQ(reason(good), "accepted");
  std::mt19937 rng(7);
  Bytes file = good;
  for (size_t i = 0; i < file.size(); ++i) {
    const auto change = static_cast<std::byte>(1 + rng() % 255);
    file[i] ^= change;
    EXPECT_NE(reason(file), "accepted") << "byte " << i;
    file[i] ^= change;
  }
}

TEST_F(ArtifactTest, DamageIsNamed) {
  const Bytes good = make();
  Bytes file = good;
  const SectionRow weights = row(good, 3);
  file[weights.offset + 10] ^= std::byte{1};
  EXPECT_EQ(reason(file), "HashMismatch");
  ArtifactOptions hasty;
  hasty.checks_weights = false;
  EXPECT_EQ(reason(file, hasty), "accepted");
  file = good;
  file[row(good, 1).offset + 20] ^= std::byte{1};
  EXPECT_EQ(reason(file, hasty), "HashMismatch");

  for (size_t size = 0; size < good.size(); size += 1 + size / 3) {
    const std::string got =
        reason(Bytes(good.begin(), good.begin() + static_cast<ptrdiff_t>(size)));
    EXPECT_EQ(got, size < 8 ? "NotAnArtifact" : "Truncated") << size;
  }
  file = good;
  file.push_back(std::byte{0});
  EXPECT_EQ(reason(file), "BadSection");

  file = good;
  file[12] = std::byte{9};  // needs a reader of format 9
  EXPECT_EQ(reason(file), "VersionMismatch");
  file = good;
  std::swap(file[20], file[23]);  // written by a machine of the other byte order
  EXPECT_EQ(reason(file), "VersionMismatch");
  const std::string pointer = "version https://example.org/spec/v1\noid sha256:00\n";
  EXPECT_EQ(reason(Bytes(reinterpret_cast<const std::byte*>(pointer.data()),
                         reinterpret_cast<const std::byte*>(pointer.data()) + pointer.size())),
            "NotAnArtifact");
}

TEST_F(ArtifactTest, ASignatureIsByOneKey) {
  ASSERT_GE(sodium_init(), 0);
  Bytes open_key(32), secret_key(64), other_key(32), other_secret(64);
  const auto raw = [](Bytes& bytes) { return reinterpret_cast<unsigned char*>(bytes.data()); };
  crypto_sign_keypair(raw(open_key), raw(secret_key));
  crypto_sign_keypair(raw(other_key), raw(other_secret));
  const Bytes file = make(secret_key), re_signed = make(other_secret);
  ArtifactOptions options;
  EXPECT_EQ(reason(file), "accepted");
  options.public_key = open_key;
  EXPECT_EQ(reason(file, options), "accepted");
  EXPECT_TRUE(Artifact::parse(file, nullptr, options)->is_signed());
  EXPECT_EQ(reason(re_signed, options), "SignatureMismatch");
  EXPECT_EQ(reason(make(), options), "NotSigned");
  options.public_key = other_key;
  EXPECT_EQ(reason(file, options), "SignatureMismatch");
  EXPECT_EQ(Artifact::parse(file, nullptr)->identity(),
            Artifact::parse(re_signed, nullptr)->identity());
}

TEST_F(ArtifactTest, RefusesWhatCannotBeWritten) {
  ArtifactContents contents;
  EXPECT_EQ(make_artifact(contents).error().reason(), "NoTarget");
  contents.targets = {{{Arch::X86_64, Isa::Avx2}, &plan_}, {{Arch::X86_64, Isa::Avx2}, &plan_}};
  EXPECT_EQ(make_artifact(contents).error().reason(), "DuplicateTarget");
  contents.targets.pop_back();
  contents.secret_key = w1_;
  EXPECT_EQ(make_artifact(contents).error().reason(), "BadKey");
}

TEST_F(ArtifactTest, OpensFilesOnly) {
  const std::string path =
      (std::filesystem::temp_directory_path() / ("ignis-artifact-" + std::to_string(::getpid())))
          .string();
  EXPECT_EQ(Artifact::open(path).error().code(), ErrorCode::NotFound);
  EXPECT_FALSE(is_artifact(path));
  EXPECT_EQ(Artifact::open("/").error().reason(), "NotAnArtifact");
  std::ofstream(path) << "";
  EXPECT_EQ(Artifact::open(path).error().reason(), "NotAnArtifact");
  const Bytes file = make();
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(file.data()), static_cast<std::streamsize>(file.size()));
  EXPECT_TRUE(is_artifact(path));
  auto plan = [&] {  // the plan alone keeps the mapping
    const auto artifact = Artifact::open(path);
    EXPECT_TRUE(artifact);
    return artifact->plan_for(make_target(Isa::Avx2));
  }();
  std::filesystem::remove(path);
  ASSERT_TRUE(plan);
  EXPECT_EQ(std::memcmp(plan->buffers[3].constant, w2_.data(), w2_.size()), 0);
}

// Whoever makes the file can make its digests fit, too: behind them the plan itself is looked at.
TEST_F(ArtifactTest, APlanMayHoldAnything) {
  std::mt19937 rng(11);
  for (int round = 0; round < 3000; ++round) {
    Plan plan = plan_;
    const auto pick = [&](auto& list) -> auto& { return list[rng() % list.size()]; };
    const int64_t odd[] = {-1, 0, 1, 63, 64, 1 << 20, INT64_MAX, INT64_MIN};
    switch (rng() % 7) {
      case 0: pick(pick(plan.calls).buffers) = static_cast<int>(odd[rng() % 6]); break;
      case 1: pick(plan.calls).program = static_cast<int>(odd[rng() % 6]); break;
      case 2: plan.buffers[4].arena_offset = odd[rng() % 8]; break;
      case 3: plan.buffers[rng() % 2].size_bytes = odd[rng() % 8]; break;
      case 4: plan.arena_bytes = odd[rng() % 8]; break;
      case 5: plan.inputs[0].buffer = static_cast<int>(odd[rng() % 6]); break;
      case 6: plan.outputs[0].shape[0] = odd[rng() % 8]; break;
    }
    ArtifactContents contents;
    contents.targets = {{{Arch::X86_64, Isa::Sse2}, &plan}};
    const auto file = make_artifact(contents);
    ASSERT_TRUE(file);
    const auto artifact = Artifact::parse(*file, nullptr);
    ASSERT_TRUE(artifact);
    const auto read = artifact->plan_for(make_target(Isa::Sse2));
    if (!read) {
      EXPECT_FALSE(read.error().message().empty());
    }
  }
}

}  // namespace
}  // namespace ignis::exec
