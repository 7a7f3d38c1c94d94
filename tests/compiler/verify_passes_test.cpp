#include "ignis/codegen/verify_passes.h"

#include "ignis/codegen/passes.h"

#include "tests/compiler/run_schedule.h"
#include <gtest/gtest.h>

namespace ignis {
namespace {

using ir::AxisKind;
using ir::Graph;
using ir::Node;
using ir::Op;

// store(p0[L0], load(p1[L0 + offset]) <op> other) over `extent` of 8 elements.
Node kernel(Graph& g, int64_t extent, int64_t offset, const Node& other, Op op = Op::Add) {
  ir::ParamArg out, in;
  out.slot = 0;
  in.slot = 1;
  out.shape = in.shape = {8};
  const Node range = g.range(extent, 0, AxisKind::Loop);
  const Node at = g.alu(Op::Add, {range, g.constant(DType::WeakInt, offset)});
  const Node load = g.make(Op::Load, DType::Float32,
                           {g.make(Op::Index, DType::Float32, {g.param(DType::Float32, in), at})});
  const Node value = g.make(op, DType::Float32, {load, other});
  const Node index = g.make(Op::Index, DType::Float32, {g.param(DType::Float32, out), range});
  return g.make(Op::Sink, DType::Void, {g.make(Op::Store, DType::Void, {index, value})});
}

void expect_refused(const Node& sink, const std::string& word, bool has_addresses = true) {
  const Status status = codegen::verify_between_passes(sink, has_addresses);
  ASSERT_FALSE(status.has_value()) << word;
  EXPECT_NE(status.error().message().find(word), std::string::npos) << status.error().message();
}

TEST(VerifyPasses, AcceptsASoundKernel) {
  Graph g;
  EXPECT_TRUE(
      codegen::verify_between_passes(kernel(g, 8, 0, g.constant_float(DType::Float32, 2)), true)
          .has_value());
  EXPECT_TRUE(codegen::verify_between_passes(kernel(g, 8, 0, g.constant(DType::WeakFloat, 2)), true)
                  .has_value());
}

TEST(VerifyPasses, NamesWhatIsWrong) {
  Graph g;
  const Node two = g.constant_float(DType::Float32, 2);
  expect_refused(kernel(g, 9, 0, two), "buffer of 8 elements");
  expect_refused(kernel(g, 8, 1, two), "[1, 8]");
  expect_refused(kernel(g, 8, -1, two), "[-1, 6]");
  expect_refused(kernel(g, 8, 0, g.constant(DType::Int32, 2)), "joins two dtypes");
  expect_refused(two, "not a Sink");
  EXPECT_TRUE(codegen::verify_between_passes(kernel(g, 9, 0, two), false).has_value());
  // A range of another extent with the same id.
  const Node other = g.cast(g.range(5, 0, AxisKind::Loop), DType::Float32);
  expect_refused(kernel(g, 8, 0, other), "shares its id");
}

TEST(VerifyPasses, EveryPassKeepsAConvolutionSound) {
  const auto graph = std::make_shared<Graph>();
  const auto x = tensor::Tensor::input(graph, 0, "x", DType::Float16, {1, 12, 9, 9});
  const auto w =
      tensor::Tensor::constant(graph, test::random_tensor({20, 12, 3, 3}, 3, DType::Float16));
  tensor::ConvOptions pad;
  pad.pads_lo = pad.pads_hi = {1, 1};
  const auto y = softmax(tanh(conv(x, w, {}, pad)), -1);
  const auto s = schedule::make_schedule({x.node()}, {y.node()}, make_target(Isa::Avx2));
  ASSERT_TRUE(s.has_value());
  codegen::Config config;
  config.target = make_target(Isa::Avx2);
  for (const auto& k : s->kernels) {
    Graph g;
    Node sink = g.import(k.sink);
    for (const auto& pass : codegen::address_passes()) {
      sink = pass.run(g, sink, config, nullptr);
      const Status status = codegen::verify_between_passes(sink, true);
      EXPECT_TRUE(status.has_value()) << pass.name << ": " << status.error().to_string();
    }
  }
}

}  // namespace
}  // namespace ignis
