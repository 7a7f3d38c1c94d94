#include "ignis/codegen/compile/test_assembly.h"

#include "tests/compiler/run_schedule.h"
#include <gtest/gtest.h>

#include <algorithm>

// The machine code of the main contractions: what their innermost loop multiplies, reads and keeps in registers.
namespace ignis {
namespace {

using codegen::testing::count_matches;
using tensor::Tensor;

struct Contraction {
  const char* name;
  std::vector<int64_t> input,
      weights;  ///< rank 2: a product; 4: a convolution that keeps the image's size
};

const std::vector<Contraction>& contractions() {
  static const std::vector<Contraction> list = {
      {"product", {96, 256}, {256, 192}},
      {"product of odd sizes", {61, 131}, {131, 77}},
      {"1x1", {1, 128, 28, 28}, {96, 128, 1, 1}},
      {"1x1 of 7x7", {1, 160, 7, 7}, {320, 160, 1, 1}},
      {"3x3", {1, 64, 28, 28}, {64, 64, 3, 3}},
      {"3x3 of odd channels", {1, 37, 14, 14}, {45, 37, 3, 3}},
  };
  return list;
}

/// The kernel that multiplies most, lowered.
codegen::Lowered lowered_of(const Contraction& c, const Target& target) {
  const auto g = std::make_shared<ir::Graph>();
  const Tensor x = Tensor::input(g, 0, "x", DType::Float32, c.input);
  const Tensor w = Tensor::constant(g, test::random_tensor(c.weights, 3));
  Tensor y;
  if (c.input.size() == 2) {
    y = matmul(x, w);
  } else {
    tensor::ConvOptions o;
    o.pads_lo = o.pads_hi = {c.weights[2] / 2, c.weights[3] / 2};
    y = conv(x, w, {}, o);
  }
  schedule::Options options;
  options.chain = Choice::Off;  // the product stands alone
  const auto s = schedule::make_schedule({x.node()}, {relu(y).node()}, target, options);
  IGNIS_CHECK(s.has_value()) << s.error().to_string();
  codegen::Config config;
  config.target = target;
  codegen::Lowered most;
  for (const auto& kernel : s->kernels) {
    if (kernel.at_load) continue;
    auto lowered = codegen::lower(kernel.sink, config);
    IGNIS_CHECK(lowered.has_value()) << lowered.error().to_string();
    if (lowered->flops > most.flops) most = *std::move(lowered);
  }
  return most;
}

/// The last number of an action; `when_absent` where the plan has none of the name.
int64_t last_number(const codegen::Lowered& lowered, const std::string& name, int64_t when_absent) {
  int64_t product = when_absent;
  for (const std::string& a : lowered.actions) {
    if (!a.starts_with(name + "(")) continue;
    product *= std::stoll(a.substr(a.rfind(',') + 1));
  }
  return product;
}

class InnerLoops : public ::testing::TestWithParam<Isa> {};

TEST_P(InnerLoops, MultiplyOutOfRegisters) {
  const Target target = make_target(GetParam());
  const bool is_arm = target.arch == Arch::AArch64;
  for (const Contraction& c : contractions()) {
    SCOPED_TRACE(c.name);
    const codegen::Lowered lowered = lowered_of(c, target);
    const int64_t vectors = last_number(lowered, "VECTOR", 1);
    const int64_t tile = last_number(lowered, "TILE_REG", 1);
    const int64_t unroll = last_number(lowered, "UNROLL", 1);
    // Two multiply-adds of four cycles can be under way at once (kernel-codegen.md 13.1): fewer chains would wait.
    EXPECT_GE(vectors * tile, 8);
    const auto assembly = codegen::assemble_llvm(lowered.program, target);
    ASSERT_TRUE(assembly.has_value()) << assembly.error().to_string();
    const std::string loop = codegen::testing::inner_loop(*assembly);
    EXPECT_EQ(count_matches(loop, is_arm ? "\\tfmla\\t" : "vfmadd[0-9]+ps"),
              vectors * tile * unroll)
        << loop;
    EXPECT_EQ(count_matches(loop, is_arm ? "\\[sp" : "%rsp"), 0) << loop;
    // A step reads each vector of weights and each row's value once.
    if (!is_arm) {
      EXPECT_LE(count_matches(loop, "\\(%r[a-z0-9]+[,)]"), (vectors + tile) * unroll) << loop;
    }
  }
}

std::string name_of(const ::testing::TestParamInfo<Isa>& info) {
  return std::string(to_string(info.param));
}
INSTANTIATE_TEST_SUITE_P(All, InnerLoops, ::testing::Values(Isa::Avx2, Isa::Avx512, Isa::Neon),
                         name_of);

}  // namespace
}  // namespace ignis
