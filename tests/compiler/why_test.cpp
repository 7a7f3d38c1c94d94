#include "tests/compiler/run_schedule.h"
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

// What the schedule and the heuristics say of their choices, beside the choices.
namespace ignis {
namespace {

using tensor::Tensor;

bool has(const Notes& notes, const std::string& beginning) {
  return std::any_of(notes.begin(), notes.end(),
                     [&](const std::string& note) { return note.rfind(beginning, 0) == 0; });
}

schedule::Schedule schedule_of(const std::vector<Tensor>& inputs, const Tensor& output,
                               const Target& target, const schedule::Options& options = {}) {
  test::Case graph;
  graph.inputs = inputs;
  graph.outputs = {output};
  auto s = schedule::make_schedule(graph.input_nodes(), graph.output_nodes(), target, options);
  IGNIS_CHECK(s.has_value()) << s.error().to_string();
  return *std::move(s);
}

TEST(Why, AProductNamesItsLanesItsTileAndItsCut) {
  const auto g = std::make_shared<ir::Graph>();
  const Tensor a = Tensor::input(g, 0, "a", DType::Float32, {60, 23});
  const Tensor b = Tensor::input(g, 1, "b", DType::Float32, {23, 48});
  schedule::Options planar;
  planar.choose_layouts = false;
  codegen::Config config;
  config.target = make_target(Isa::Avx2);
  const schedule::Schedule s = schedule_of({a, b}, matmul(a, b), config.target, planar);
  ASSERT_EQ(s.kernels.size(), 1u);
  const auto lowered = codegen::lower(s.kernels[0].sink, config);
  ASSERT_TRUE(lowered) << lowered.error().to_string();
  // 16 registers of 8: 12 hold sums, in 2 vectors of columns by 6 rows. Only columns are contiguous in b and in the result.
  EXPECT_EQ(lowered->actions[0], "VECTOR(1,8,2)");
  EXPECT_EQ(lowered->actions[1], "TILE_REG(0,6)");
  EXPECT_TRUE(has(lowered->why, "lanes along axis 1, by how addresses step: axis 0 of 60 -"));
  EXPECT_TRUE(
      has(lowered->why,
          "tile of 6 along axis 0 by 2 vectors, mean copies of 6 that registers hold: axis 0 "
          "of 60 6"));
  EXPECT_TRUE(has(lowered->why, "rows outside: panels of 4.31 KiB in L1")) << "48 x 23 floats";
  EXPECT_TRUE(has(lowered->why, "threads cut ("));
  config.actions = lowered->actions;
  const auto replayed = codegen::lower(s.kernels[0].sink, config);
  ASSERT_TRUE(replayed) << replayed.error().to_string();
  EXPECT_EQ(replayed->actions, lowered->actions);
  EXPECT_TRUE(replayed->why.empty()) << "nothing was compared";
}

TEST(Why, AConvolutionNamesWhatWinogradWouldCost) {
  const Target target = make_target(Isa::Avx2);
  bool is_ever_taken = false, is_ever_left = false;
  for (const int64_t channels : {4, 16, 64, 128}) {
    const auto g = std::make_shared<ir::Graph>();
    const Tensor x = Tensor::input(g, 0, "x", DType::Float32, {1, channels, 28, 28});
    const Tensor w = Tensor::constant(g, test::random_tensor({channels, channels, 3, 3}, 3));
    tensor::ConvOptions o;
    o.pads_lo = o.pads_hi = {1, 1};
    const schedule::Schedule s = schedule_of({x}, conv(exp(x), w, std::nullopt, o), target);
    const bool is_taken = std::any_of(
        s.buffers.begin(), s.buffers.end(),
        [](const schedule::Buffer& b) { return b.name.find(".patches") != std::string::npos; });
    double ratio = 0;
    for (const schedule::Kernel& k : s.kernels) {
      for (const std::string& note : k.why) {
        if (note.rfind("Winograd ", 0) == 0) ratio = std::atof(note.c_str() + 9);
      }
    }
    ASSERT_GT(ratio, 0) << channels;
    EXPECT_EQ(ratio < 0.95, is_taken) << channels;
    (is_taken ? is_ever_taken : is_ever_left) = true;
  }
  EXPECT_TRUE(is_ever_taken && is_ever_left) << "one side is untested";
}

TEST(Why, AChainNamesWhatItSaves) {
  Target target = make_target(Isa::Avx2);
  target.l2_bytes = 64 * 1024;
  const auto g = std::make_shared<ir::Graph>();
  const Tensor x = Tensor::input(g, 0, "x", DType::Float32, {1, 8, 40, 40});
  const auto weight = [&](const Shape& shape) {
    return Tensor::constant(g, test::random_tensor(shape, 3));
  };
  tensor::ConvOptions window;
  window.pads_lo = window.pads_hi = {1, 1};
  window.groups = 32;
  const Tensor wide = relu(conv(exp(x), weight({32, 8, 1, 1}), std::nullopt, {}));
  const Tensor y = conv(relu(conv(wide, weight({32, 1, 3, 3}), std::nullopt, window)),
                        weight({8, 32, 1, 1}), std::nullopt, {});
  for (const Choice chain : {Choice::Auto, Choice::Off, Choice::On}) {
    schedule::Options options;
    options.chain = chain;
    const schedule::Schedule s = schedule_of({x}, y, target, options);
    bool is_chained = false;
    for (const schedule::Kernel& k : s.kernels) {
      const bool is_chain = k.sink.source_count() > 1;
      is_chained |= is_chain;
      EXPECT_EQ(has(k.why, "a chain of "), is_chain);
      if (is_chain) {
        EXPECT_TRUE(has(k.why, say("a chain of ", k.sink.source_count(),
                                   chain == Choice::On ? " is legal" : " saves ")));
      }
    }
    EXPECT_EQ(is_chained, chain != Choice::Off);
  }
}

}  // namespace
}  // namespace ignis
