#include "ignis/base/target.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace ignis {
namespace {

TEST(MakeTarget, RegistersOfEachInstructionSet) {
  const Target sse2 = make_target(Isa::Sse2);
  EXPECT_EQ(sse2.vector_bytes, 16);
  EXPECT_EQ(sse2.vector_registers, 16);
  EXPECT_FALSE(sse2.has_fma);
  const Target avx2 = make_target(Isa::Avx2);
  EXPECT_EQ(avx2.vector_bytes, 32);
  EXPECT_EQ(avx2.vector_registers, 16);
  EXPECT_TRUE(avx2.has_fma);
  EXPECT_EQ(avx2.lanes(DType::Float32), 8);
  EXPECT_EQ(avx2.lanes(DType::Int8), 32);
  const Target avx512 = make_target(Isa::Avx512);
  EXPECT_EQ(avx512.vector_bytes, 64);
  EXPECT_EQ(avx512.vector_registers, 32);
  const Target neon = make_target(Isa::Neon);
  EXPECT_EQ(neon.arch, Arch::AArch64);
  EXPECT_EQ(neon.vector_bytes, 16);
  EXPECT_EQ(neon.vector_registers, 32);
  EXPECT_TRUE(neon.has_fma);
}

TEST(Target, NamesArchitectureAndInstructionSet) {
  EXPECT_EQ(make_target(Isa::Avx2).name(), "x86_64-avx2");
  EXPECT_EQ(make_target(Isa::Neon).name(), "aarch64-neon");
  EXPECT_EQ(*parse_isa("avx512"), Isa::Avx512);
  EXPECT_FALSE(parse_isa("avx3"));
}

TEST(Target, LevelsAndChoicesHaveNames) {
  EXPECT_EQ(*parse_float_level("strict"), FloatLevel::Strict);
  EXPECT_EQ(*parse_float_level("finite"), FloatLevel::Finite);
  EXPECT_EQ(*parse_float_level("fast"), FloatLevel::Fast);
  EXPECT_FALSE(parse_float_level("Fast"));
  EXPECT_EQ(*parse_choice("auto"), Choice::Auto);
  EXPECT_EQ(*parse_choice("off"), Choice::Off);
  EXPECT_EQ(*parse_choice("on"), Choice::On);
  EXPECT_FALSE(parse_choice(""));
}

TEST(ParseFeatures, TakesASetWithOrWithoutItsArchitecture) {
  for (const Isa isa : {Isa::Sse2, Isa::Avx2, Isa::Avx512, Isa::Neon}) {
    EXPECT_EQ(*parse_features(to_string(isa)), isa);
    EXPECT_EQ(*parse_features(make_target(isa).name()), isa);
  }
  for (const char* wrong : {"", "mmx", "x86_64", "aarch64", "x86_64-neon", "aarch64-avx2",
                            "aarch64-neon+i8mm", "neon-aarch64", "aarch64-neon "}) {
    const auto isa = parse_features(wrong);
    ASSERT_FALSE(isa) << wrong;
    EXPECT_EQ(isa.error().code(), ErrorCode::InvalidArgument);
    EXPECT_EQ(isa.error().reason(), "UnknownFeature");
    const std::string sentence = isa.error().message();
    EXPECT_NE(sentence.find("'" + std::string(wrong) + "'"), std::string::npos) << sentence;
    EXPECT_NE(sentence.find("aarch64-neon"), std::string::npos) << sentence;
  }
}

TEST(Target, RunsTheLowerSetsOfItsOwnArchitecture) {
  const Target sse2 = make_target(Isa::Sse2), avx2 = make_target(Isa::Avx2),
               neon = make_target(Isa::Neon);
  EXPECT_TRUE(avx2.can_run(sse2));
  EXPECT_TRUE(avx2.can_run(avx2));
  EXPECT_FALSE(sse2.can_run(avx2));
  EXPECT_FALSE(neon.can_run(sse2));
  EXPECT_FALSE(avx2.can_run(neon));
}

TEST(DetectHostTarget, StaysBelowTheBound) {
  const Target host = detect_host_target();
  EXPECT_GT(host.l1_bytes, 0);
  EXPECT_GE(host.l3_bytes, host.l1_bytes);
  if (host.arch == Arch::X86_64) {
    EXPECT_EQ(detect_host_target(Isa::Sse2)->isa, Isa::Sse2);
    EXPECT_LE(detect_host_target(Isa::Avx2)->isa, Isa::Avx2);
    EXPECT_EQ(detect_host_target(Isa::Neon).error().code(), ErrorCode::Unsupported);
  } else {
    EXPECT_EQ(host.isa, Isa::Neon);
  }
}

class CacheSizes : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path(testing::TempDir()) / "ignis_cache_sizes";
    std::filesystem::remove_all(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  void add(int index, const char* level, const char* type, const char* size) {
    const std::filesystem::path entry = folder_ / ("index" + std::to_string(index));
    std::filesystem::create_directories(entry);
    std::ofstream(entry / "level") << level << "\n";
    std::ofstream(entry / "type") << type << "\n";
    std::ofstream(entry / "size") << size << "\n";
  }

  std::filesystem::path folder_;
};

TEST_F(CacheSizes, ReadsDataAndUnifiedCaches) {
  add(0, "1", "Data", "48K");
  add(1, "1", "Instruction", "64K");
  add(2, "2", "Unified", "1024K");
  add(3, "3", "Unified", "32M");
  Target target;
  detail::read_cache_sizes(folder_, target);
  EXPECT_EQ(target.l1_bytes, 48 * 1024);
  EXPECT_EQ(target.l2_bytes, 1024 * 1024);
  EXPECT_EQ(target.l3_bytes, 32 * 1024 * 1024);
}

TEST_F(CacheSizes, KeepsTheFallbackForWhatCannotBeRead) {
  add(0, "1", "Data", "many");
  add(1, "2", "Unified", "-4K");
  const Target fallback;
  Target target;
  detail::read_cache_sizes(folder_, target);
  detail::read_cache_sizes("/does/not/exist", target);
  EXPECT_EQ(target, fallback);
}

}  // namespace
}  // namespace ignis
