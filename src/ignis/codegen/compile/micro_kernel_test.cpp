#include "ignis/base/target.h"
#include "ignis/codegen/compile/test_assembly.h"
#include "ignis/codegen/compile/test_program.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace ignis::codegen {
namespace {

using testing::count_matches;
using testing::inner_loop;
using testing::LoadedImage;

constexpr int kRows = 6, kColumns = 16;

void expect_product(const LoadedImage& image, int64_t depth) {
  std::mt19937 rng(7);
  std::uniform_real_distribution<float> uniform(-1, 1);
  std::vector<float> a(static_cast<size_t>(kRows * depth)),
      b(static_cast<size_t>(kColumns * depth));
  std::vector<float> c(kRows * kColumns, NAN);
  for (float& x : a) x = uniform(rng);
  for (float& x : b) x = uniform(rng);
  image.run({c.data(), a.data(), b.data()});
  for (int r = 0; r < kRows; ++r) {
    for (int j = 0; j < kColumns; ++j) {
      double sum = 0, magnitude = 0;
      for (int64_t k = 0; k < depth; ++k) {
        const double product = static_cast<double>(a[static_cast<size_t>(r * depth + k)]) *
                               static_cast<double>(b[static_cast<size_t>(k * kColumns + j)]);
        sum += product;
        magnitude += std::fabs(product);
      }
      // Each of the `depth` additions rounds once by at most 2^-24 of a partial sum.
      const double bound = static_cast<double>(depth) * 0x1p-24 * magnitude;
      ASSERT_NEAR(c[static_cast<size_t>(r * kColumns + j)], sum, bound) << r << ", " << j;
    }
  }
}

TEST(MicroKernel, Avx2TileStaysInRegisters) {
  const Target target = make_target(Isa::Avx2);
  for (const int unroll : {1, 4}) {
    const Program program = testing::tile_program({kRows, kColumns, 256, unroll, 8});
    ASSERT_TRUE(verify_program(program)) << verify_program(program).error().to_string();
    const auto assembly = assemble_llvm(program, target);
    ASSERT_TRUE(assembly) << assembly.error().to_string();
    const std::string loop = inner_loop(*assembly);
    EXPECT_EQ(count_matches(loop, "vfmadd[0-9]+ps"), 12 * unroll) << *assembly;
    EXPECT_EQ(count_matches(loop, "\\(%rsp|\\(%rbp"), 0) << loop;
    EXPECT_EQ(count_matches(*assembly, "%rsp\\)"), 0) << *assembly;
  }
}

TEST(MicroKernel, Avx2TileMultiplies) {
  if (!testing::machine_has(Isa::Avx2)) GTEST_SKIP() << "this machine has no AVX2";
  const int64_t depth = 256;
  const auto image =
      compile_llvm(testing::tile_program({kRows, kColumns, depth, 4, 8}), make_target(Isa::Avx2));
  ASSERT_TRUE(image) << image.error().to_string();
  const auto loaded = LoadedImage::load(*image);
  ASSERT_TRUE(loaded) << loaded.error().to_string();
  expect_product(*loaded, depth);
}

}  // namespace
}  // namespace ignis::codegen
