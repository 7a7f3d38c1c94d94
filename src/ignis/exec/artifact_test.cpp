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

GoldenCase make_golden() {
  GoldenCase golden;
  golden.source = "cpu:interp";
  golden.inputs = {{"x", HostTensor::from<float>(DType::Float32, {2, 3}, {1, 2, 3, 4, 5, 6}), {}}};
  golden.outputs = {
      {"y", HostTensor::from<float>(DType::Float32, {6}, {2, 3, 4, 5, 6, 7}), {1e-4, 1e-3, -1}}};
  return golden;
}

class ArtifactTest : public testing::Test {
 protected:
  // One of each section but the signature.
  ArtifactContents contents() const {
    ArtifactContents contents;
    contents.manifest = {{"model.name", "small"}, {"metadata.empty", ""}};
    contents.targets = {{{Arch::X86_64, Isa::Avx2}, &plan_},
                        {{Arch::X86_64, Isa::Sse2}, &plan_},
                        {{Arch::X86_64, Isa::Sse2}, &plan_, "warp a"}};
    contents.slices = {{"y", "left", 0, 4, DecodeKind::Mean, true},
                       {"y", "left_std", 4, 6, DecodeKind::LogStd, false}};
    contents.state_pairs = {{"x", "y", -1.5}};
    contents.geometry =
        Geometry{"small-1", 1440, 960, 567, 720, 356, "homography", "half up", "y", 16};
    contents.tuning = TuningRecord{"machine", "0.1.0", {{"first", "tile 6x16"}, {"second", ""}}};
    contents.golden = {make_golden()};
    return contents;
  }
  Bytes make(std::span<const std::byte> secret_key = {}) const {
    ArtifactContents contents = this->contents();
    contents.secret_key = secret_key;
    Result<Bytes> bytes = make_artifact(contents);
    EXPECT_TRUE(bytes) << bytes.error().to_string();
    return bytes ? *std::move(bytes) : Bytes();
  }
  static std::string reason(const Bytes& bytes, const ArtifactOptions& options = {}) {
    const auto artifact = Artifact::parse(bytes, nullptr, options);
    return artifact ? "accepted" : artifact.error().reason();
  }
  // The rows of the table, as they lie in the file.
  static uint32_t row_count(const Bytes& file) {
    uint32_t count = 0;
    std::memcpy(&count, file.data() + 24, sizeof count);
    return count;
  }
  // Writes the header's and the table's checksums anew, as whoever makes a file can.
  static uint32_t crc32(std::span<const std::byte> bytes) {
    uint32_t crc = ~0u;
    for (const std::byte byte : bytes) {
      crc ^= static_cast<uint32_t>(byte);
      for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1u) ? 0xEDB88320u : 0u);
    }
    return ~crc;
  }
  static void put(Bytes& file, size_t at, uint32_t value) {
    std::memcpy(file.data() + at, &value, sizeof value);
  }
  static void fit_checksums(Bytes& file) {
    const std::span<const std::byte> all(file);
    put(file, 28, crc32(all.subspan(kHeaderBytes, kRowBytes * row_count(file))));
    put(file, kHeaderBytes - 4, crc32(all.first(kHeaderBytes - 4)));
  }
  static void set_version(Bytes& file, uint32_t version, uint32_t reader_version) {
    put(file, 8, version);
    put(file, 12, reader_version);
    fit_checksums(file);
  }
  static void set_kind(Bytes& file, SectionKind from, uint32_t to, uint32_t flags) {
    for (size_t i = 0; i < row_count(file); ++i) {
      if (row(file, i).kind != static_cast<uint32_t>(from)) continue;
      put(file, kHeaderBytes + kRowBytes * i, to);
      put(file, kHeaderBytes + kRowBytes * i + 4, flags);
    }
    fit_checksums(file);
  }
  static SectionRow row_of(const Bytes& file, SectionKind kind) {
    for (size_t i = 0; i < row_count(file); ++i) {
      if (row(file, i).kind == static_cast<uint32_t>(kind)) return row(file, i);
    }
    ADD_FAILURE() << "no section of kind " << static_cast<uint32_t>(kind);
    return {};
  }
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
  EXPECT_EQ(artifact->slices(), contents().slices);
  EXPECT_EQ(artifact->state_pairs(), contents().state_pairs);
  EXPECT_EQ(artifact->geometry(), contents().geometry);
  EXPECT_EQ(artifact->tuning(), contents().tuning);
  EXPECT_EQ(artifact->parts(), std::vector<std::string>{"warp a"});
  EXPECT_TRUE(artifact->plan_for(make_target(Isa::Avx2), "warp a"));
  EXPECT_EQ(artifact->plan_for(make_target(Isa::Avx2), "warp b").error().reason(), "NoPart");
  const auto golden = artifact->golden();
  ASSERT_TRUE(golden) << golden.error().to_string();
  ASSERT_EQ(golden->size(), 1u);
  EXPECT_EQ(golden->at(0).source, "cpu:interp");
  EXPECT_EQ(golden->at(0).inputs[0].value.bytes, make_golden().inputs[0].value.bytes);
  EXPECT_EQ(golden->at(0).outputs[0].value.shape, Shape{6});
  EXPECT_EQ(golden->at(0).outputs[0].tolerance.rtol, 1e-3);
  EXPECT_EQ(golden->at(0).size_bytes(), 48);
  const auto sections = artifact->sections();
  ASSERT_EQ(sections.size(), 10u);
  EXPECT_EQ(sections[0].name, "manifest");
  EXPECT_TRUE(sections[0].is_mandatory);
  EXPECT_EQ(sections[3].name, "part");
  EXPECT_FALSE(sections[3].is_mandatory);
}

// Older plans lacked what later code needs: such a file is refused by its format, not by what then does not fit.
TEST_F(ArtifactTest, OlderFilesAreRefusedByTheirFormat) {
  for (uint32_t version = 1; version < kArtifactOldestVersion; ++version) {
    Bytes file = make();
    set_version(file, version, version);
    const auto artifact = Artifact::parse(file, nullptr);
    ASSERT_FALSE(artifact);
    EXPECT_EQ(artifact.error().reason(), "VersionMismatch");
    EXPECT_NE(artifact.error().message().find("format " + std::to_string(version)),
              std::string::npos);
    EXPECT_NE(artifact.error().message().find("Compile the model again"), std::string::npos);
  }
}

// What need not be there may be missing.
TEST_F(ArtifactTest, PlansAloneAreEnough) {
  ArtifactContents bare;
  bare.targets = {{{Arch::X86_64, Isa::Sse2}, &plan_}};
  const Bytes file = *make_artifact(bare);
  const auto artifact = Artifact::parse(file, nullptr);
  ASSERT_TRUE(artifact) << artifact.error().to_string();
  EXPECT_TRUE(artifact->plan_for(make_target(Isa::Sse2)));
  EXPECT_TRUE(artifact->golden()->empty());
  EXPECT_FALSE(artifact->geometry());
}

// A newer writer may add sections; whether they can be passed over is for it to say.
TEST_F(ArtifactTest, NewerFilesAreReadUnlessTheyForbidIt) {
  Bytes file = make();
  set_version(file, 7, kArtifactReaderVersion);
  EXPECT_EQ(reason(file), "accepted");
  set_kind(file, SectionKind::Tuning, 99, 0);
  EXPECT_EQ(reason(file), "accepted");
  EXPECT_EQ(Artifact::parse(file, nullptr)->sections()[7].name, "unknown");
  set_kind(file, static_cast<SectionKind>(99), 99, kMandatory);
  EXPECT_EQ(reason(file), "VersionMismatch");
  file = make();
  set_version(file, 7, kArtifactReaderVersion + 1);
  EXPECT_EQ(reason(file), "VersionMismatch");
  file = make();
  set_kind(file, SectionKind::Tuning, static_cast<uint32_t>(SectionKind::Slices), 0);
  EXPECT_EQ(reason(file), "BadSection");  // two of what there is one of
}

// Digests can be made to fit; what no writer writes is still refused.
TEST_F(ArtifactTest, SectionsMayHoldAnything) {
  const auto refused = [&](const ArtifactContents& contents) {
    const auto file = make_artifact(contents);
    EXPECT_TRUE(file);
    return file ? reason(*file) : "";
  };
  ArtifactContents odd = contents();
  odd.slices[0].stop = 0;
  EXPECT_EQ(refused(odd), "BadSection");
  odd = contents();
  odd.slices[0].decode = static_cast<DecodeKind>(9);
  EXPECT_EQ(refused(odd), "BadSection");
  odd = contents();
  odd.geometry->width_px = -1;
  EXPECT_EQ(refused(odd), "BadSection");
  odd = contents();
  odd.geometry->focal_px = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(refused(odd), "BadSection");
  const auto golden_reason = [&](const ArtifactContents& contents) {
    const Bytes file = *make_artifact(contents);
    const auto artifact = Artifact::parse(file, nullptr);
    EXPECT_TRUE(artifact);
    const auto golden = artifact->golden();
    return golden ? std::string("accepted") : golden.error().reason();
  };
  odd = contents();
  EXPECT_EQ(golden_reason(odd), "accepted");
  odd.golden[0].inputs[0].value.shape = {2, 4};
  EXPECT_EQ(golden_reason(odd), "BadSection");
  odd.golden[0].inputs[0].value.shape = {-2, -3};
  EXPECT_NE(golden_reason(odd), "accepted");
  odd = contents();
  odd.golden[0].outputs[0].tolerance.atol = -1;
  EXPECT_EQ(golden_reason(odd), "BadSection");
}

// Each section cut or changed at random behind digests that fit: an answer, never a crash.
TEST_F(ArtifactTest, DamagedSectionsWithFittingDigests) {
  std::mt19937 rng(5);
  const auto written = [](const auto& write, const auto& value) {
    ByteWriter to;
    write(to, value);
    return to.take();
  };
  const ArtifactContents good = contents();
  const Bytes sections[] = {
      written(write_slices, good.slices), written(write_state_pairs, good.state_pairs),
      written(write_geometry, *good.geometry), written(write_tuning, *good.tuning),
      written(write_golden, good.golden)};
  const auto read = [](size_t kind, const Bytes& bytes) {
    switch (kind) {
      case 0: return bool(read_slices(bytes));
      case 1: return bool(read_state_pairs(bytes));
      case 2: return bool(read_geometry(bytes));
      case 3: return bool(read_tuning(bytes));
      default: return bool(read_golden(bytes));
    }
  };
  for (size_t kind = 0; kind < std::size(sections); ++kind) {
    EXPECT_TRUE(read(kind, sections[kind])) << kind;
    for (size_t size = 0; size < sections[kind].size(); ++size) {
      EXPECT_FALSE(read(
          kind, {sections[kind].begin(), sections[kind].begin() + static_cast<ptrdiff_t>(size)}))
          << kind << " cut to " << size;
    }
    for (int round = 0; round < 3000; ++round) {
      Bytes bytes = sections[kind];
      for (int changes = 0; changes < 3; ++changes) {
        bytes[rng() % bytes.size()] = static_cast<std::byte>(rng());
      }
      (void)read(kind, bytes);
    }
  }
}

TEST_F(ArtifactTest, WeightsLieAt256AndThePageOnce) {
  const Bytes file = make();
  const SectionRow weights = row_of(file, SectionKind::Weights);
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
    // Golden data is looked at when it is asked for.
    const auto artifact = Artifact::parse(file, nullptr);
    EXPECT_FALSE(artifact && artifact->golden()) << "byte " << i;
    file[i] ^= change;
  }
}

// A section of several pieces: each byte of each piece counts, and so does their order.
TEST_F(ArtifactTest, ChangesInLargeWeightsAreFound) {
  Bytes large = filled(kDigestPieceBytes * 3 + 5, 3);
  large[0] = std::byte{77};  // so that pieces differ
  const Bytes small = filled(100, 4);
  const Plan plan = make_plan(large, small);
  ArtifactContents contents;
  contents.targets = {{{Arch::X86_64, Isa::Sse2}, &plan}};
  Bytes file = *make_artifact(contents);
  ASSERT_EQ(reason(file), "accepted");
  const SectionRow weights = row_of(file, SectionKind::Weights);
  for (size_t at = 0; at < weights.length_bytes; at += kDigestPieceBytes / 2 - 1) {
    file[weights.offset + at] ^= std::byte{1};
    EXPECT_EQ(reason(file), "HashMismatch") << at;
    file[weights.offset + at] ^= std::byte{1};
  }
  const auto first = file.begin() + static_cast<ptrdiff_t>(weights.offset);
  std::swap_ranges(first, first + kDigestPieceBytes, first + kDigestPieceBytes);
  EXPECT_EQ(reason(file), "HashMismatch");
}

TEST_F(ArtifactTest, DamageIsNamed) {
  const Bytes good = make();
  Bytes file = good;
  const SectionRow weights = row_of(good, SectionKind::Weights);
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
