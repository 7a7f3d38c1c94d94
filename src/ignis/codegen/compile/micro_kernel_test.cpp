#include "ignis/base/target.h"
#include "ignis/codegen/compile/test_program.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <iostream>
#include <random>
#include <regex>
#include <sstream>

namespace ignis::codegen {
namespace {

using ir::Node;
using ir::Op;
using testing::LoadedImage;
using testing::ProgramBuilder;

constexpr int kRows = 6, kColumns = 16;

/// C[6,16] = A[6,depth] * B[depth,16] as the emitter writes it: one rolled loop over k, `unroll` steps in its body,
/// one register for each part of the tile.
Program tile_program(int64_t depth, int unroll, int lanes) {
  ProgramBuilder b("tile_6x16");
  const Node c = b.param(0, DType::Float32), a = b.param(1, DType::Float32),
             bb = b.param(2, DType::Float32);
  const int vectors = kColumns / lanes;
  const Node zero = b.broadcast(b.constant_float(DType::Float32, 0), lanes);
  std::vector<Node> acc;
  for (int i = 0; i < kRows * vectors; ++i) {
    acc.push_back(b.reg(DType::Float32, lanes));
    b.store(acc.back(), zero);
  }
  const Node k = b.range(b.constant(DType::Int64, depth / unroll));
  for (int u = 0; u < unroll; ++u) {
    const Node step = b.alu(Op::Add, {b.alu(Op::Mul, {k, b.constant(DType::Int64, unroll)}),
                                      b.constant(DType::Int64, u)});
    const Node row = b.alu(Op::Mul, {step, b.constant(DType::Int64, kColumns)});
    std::vector<Node> right;
    for (int v = 0; v < vectors; ++v) {
      const Node at = b.alu(Op::Add, {row, b.constant(DType::Int64, v * lanes)});
      right.push_back(b.load(b.index(bb, at), lanes));
    }
    for (int r = 0; r < kRows; ++r) {
      const Node at = b.alu(Op::Add, {step, b.constant(DType::Int64, r * depth)});
      const Node left = b.broadcast(b.load(b.index(a, at)), lanes);
      for (int v = 0; v < vectors; ++v) {
        const Node reg = acc[static_cast<size_t>(r * vectors + v)];
        b.store(reg, b.alu(Op::Mulacc, {left, right[static_cast<size_t>(v)], b.load_reg(reg)}));
      }
    }
  }
  b.end(k);
  for (int i = 0; i < kRows * vectors; ++i) {
    b.store(b.index(c, i * lanes), b.load_reg(acc[static_cast<size_t>(i)]));
  }
  return b.program();
}

/// The lines between the first label that is jumped back to and that jump.
std::string inner_loop(const std::string& assembly) {
  std::smatch jump;
  std::istringstream lines(assembly);
  std::string line, body;
  std::string label;
  std::map<std::string, std::string> open;  // text since each label
  static const std::regex label_line("^(\\.LBB[0-9_]+):.*"),
      jump_line("^\\s+(j[a-z]+|b\\.[a-z]+|cbnz)\\s+(?:x[0-9]+, )?(\\.LBB[0-9_]+).*");
  while (std::getline(lines, line)) {
    if (std::regex_match(line, jump, label_line)) open[jump[1]] = "";
    for (auto& [name, text] : open) text += line + "\n";
    if (std::regex_match(line, jump, jump_line) && open.contains(jump[2])) return open[jump[2]];
  }
  return "";
}

int count(const std::string& text, const std::string& pattern) {
  const std::regex expression(pattern);
  return static_cast<int>(std::distance(std::sregex_iterator(text.begin(), text.end(), expression),
                                        std::sregex_iterator()));
}

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
    const Program program = tile_program(256, unroll, 8);
    ASSERT_TRUE(verify_program(program)) << verify_program(program).error().to_string();
    const auto assembly = assemble_llvm(program, target);
    ASSERT_TRUE(assembly) << assembly.error().to_string();
    const std::string loop = inner_loop(*assembly);
    EXPECT_EQ(count(loop, "vfmadd[0-9]+ps"), 12 * unroll) << *assembly;
    EXPECT_EQ(count(loop, "\\(%rsp|\\(%rbp"), 0) << loop;
    EXPECT_EQ(count(*assembly, "%rsp\\)"), 0) << *assembly;
  }
}

TEST(MicroKernel, Avx2TileMultiplies) {
  if (!testing::machine_has(Isa::Avx2)) GTEST_SKIP() << "this machine has no AVX2";
  const int64_t depth = 256;
  const auto image = compile_llvm(tile_program(depth, 4, 8), make_target(Isa::Avx2));
  ASSERT_TRUE(image) << image.error().to_string();
  const auto loaded = LoadedImage::load(*image);
  ASSERT_TRUE(loaded) << loaded.error().to_string();
  expect_product(*loaded, depth);
}

}  // namespace
}  // namespace ignis::codegen
