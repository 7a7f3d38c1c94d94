#include "ignis/codegen/compile/test_assembly.h"

#include "tests/compiler/run_schedule.h"
#include <gtest/gtest.h>

#include <algorithm>

// Convolutions whose register tile slides along the image: neighbouring copies share the inputs that they read.
namespace ignis {
namespace {

using tensor::Tensor;

struct Window {
  std::string name;
  int64_t channels, outputs, height, width, kernel, stride, dilation, groups;
};

struct Prepared {
  test::Case graph;
  schedule::Schedule schedule;
  int kernel = -1;  ///< index of the convolution
  HostTensor weights;
};

Prepared prepare(const Window& w, const Target& target, Choice planar = Choice::Off) {
  Prepared p;
  const auto g = std::make_shared<ir::Graph>();
  const Tensor x = Tensor::input(g, 0, "x", DType::Float32, {1, w.channels, w.height, w.width});
  p.weights = test::random_tensor({w.outputs, w.channels / w.groups, w.kernel, w.kernel}, 3);
  tensor::ConvOptions o;
  o.strides = {w.stride, w.stride};
  o.dilations = {w.dilation, w.dilation};
  const int64_t pad = w.dilation * (w.kernel - 1) / 2;
  o.pads_lo = o.pads_hi = {pad, pad};
  o.groups = w.groups;
  p.graph.inputs = {x};
  p.graph.outputs = {conv(x, Tensor::constant(g, p.weights), {}, o)};
  p.graph.values = {test::random_tensor(x.shape(), 5)};
  schedule::Options options;
  options.chain = Choice::Off;  // the convolution stands alone
  options.planar_windows = planar;
  auto s = schedule::make_schedule(p.graph.input_nodes(), p.graph.output_nodes(), target, options);
  IGNIS_CHECK(s.has_value()) << s.error().to_string();
  p.schedule = *std::move(s);
  for (size_t i = 0; i < p.schedule.kernels.size(); ++i) {
    for (const ir::Node& n : ir::toposort(p.schedule.kernels[i].sink)) {
      if (n.is(ir::Op::Reduce)) p.kernel = static_cast<int>(i);
    }
  }
  IGNIS_CHECK(p.kernel >= 0);
  return p;
}

/// The convolution by its definition, in double.
std::vector<double> by_loops(const Window& w, const HostTensor& x, const HostTensor& weights,
                             const Shape& shape) {
  std::vector<double> out(static_cast<size_t>(element_count(shape)));
  const int64_t in_group = w.channels / w.groups, out_group = w.outputs / w.groups;
  const int64_t pad = w.dilation * (w.kernel - 1) / 2;
  for (int64_t o = 0; o < shape[1]; ++o) {
    for (int64_t r = 0; r < shape[2]; ++r) {
      for (int64_t c = 0; c < shape[3]; ++c) {
        double sum = 0;
        for (int64_t i = 0; i < in_group; ++i) {
          for (int64_t kr = 0; kr < w.kernel; ++kr) {
            for (int64_t kc = 0; kc < w.kernel; ++kc) {
              const int64_t row = r * w.stride + kr * w.dilation - pad;
              const int64_t column = c * w.stride + kc * w.dilation - pad;
              if (row < 0 || row >= w.height || column < 0 || column >= w.width) continue;
              const int64_t channel = o / out_group * in_group + i;
              sum +=
                  element_as_double(x, (channel * w.height + row) * w.width + column) *
                  element_as_double(weights, ((o * in_group + i) * w.kernel + kr) * w.kernel + kc);
            }
          }
        }
        out[static_cast<size_t>((o * shape[2] + r) * shape[3] + c)] = sum;
      }
    }
  }
  return out;
}

void expect_as_loops(const Window& w, const std::vector<std::vector<std::string>>& lists,
                     FloatLevel level = FloatLevel::Finite, Choice planar = Choice::Off,
                     const Target& target = detect_host_target()) {
  const Prepared p = prepare(w, target, planar);
  std::vector<double> expected;
  for (const auto& list : lists) {
    std::string text = w.name + ":";
    for (const std::string& a : list) text += " " + a;
    SCOPED_TRACE(text);
    test::RunOptions options;
    options.config.target = target;
    options.config.float_level = level;
    options.actions.resize(p.schedule.kernels.size());
    options.actions[static_cast<size_t>(p.kernel)] = list;
    for (const int parts : {1, 3}) {
      options.parts = parts;
      const auto got = test::run_schedule(p.schedule, p.graph.values, options);
      ASSERT_TRUE(got.has_value()) << got.error().to_string();
      const HostTensor& y = (*got)[0];
      if (expected.empty()) expected = by_loops(w, p.graph.values[0], p.weights, y.shape);
      ASSERT_EQ(expected.size(), static_cast<size_t>(y.count()));
      // At most 225 products of values up to 2: each addition rounds by 2^-24 of a partial sum.
      for (size_t i = 0; i < expected.size(); ++i) {
        ASSERT_NEAR(element_as_double(y, static_cast<int64_t>(i)), expected[i], 2e-4) << i;
      }
    }
  }
}

// Axes after merging: 0 = row, 1 = column, 2 = channel; then what is reduced: window row, column (and channel).
const std::vector<std::vector<std::string>> kDepthwiseLists = {
    {},
    {"UNROLL(3,3)", "UNROLL(4,3)"},
    {"VECTOR(2,8,1)", "TILE_REG(1,4)", "UNROLL(4,3)"},
    {"VECTOR(2,8,1)", "TILE_REG(1,4)", "UNROLL(4,3)", "SLIDE(1)"},
    {"VECTOR(2,8,2)", "TILE_REG(1,3)", "UNROLL(3,3)", "UNROLL(4,3)", "SLIDE(1)"},
    {"VECTOR(2,4,2)", "TILE_REG(1,5)", "UNROLL(4,2)", "SLIDE(1)"},
    {"VECTOR(2,8,1)", "TILE_REG(0,4)", "UNROLL(3,3)", "UNROLL(4,3)", "SLIDE(0)"},
    {"VECTOR(2,8,2)", "TILE_REG(1,4)", "REORDER(0,1,2)", "TILE_CACHE(2,1,0)", "THREAD(2,0)",
     "UNROLL(4,3)", "SLIDE(1)"},
};

TEST(Windows, DepthwiseAsLoopsWithAnyTile) {
  expect_as_loops({"3x3", 36, 36, 11, 13, 3, 1, 1, 36}, kDepthwiseLists);
  expect_as_loops({"3x3 stride 2", 36, 36, 11, 14, 3, 2, 1, 36}, kDepthwiseLists);
  expect_as_loops({"3x3 dilation 2", 36, 36, 11, 13, 3, 1, 2, 36}, {{}, kDepthwiseLists[3]});
  expect_as_loops({"5x5 stride 2", 36, 36, 12, 17, 5, 2, 1, 36}, {{}, kDepthwiseLists[4]});
  expect_as_loops({"5x5, weights beyond L1", 600, 600, 6, 9, 5, 1, 1, 600}, {{}});
}

TEST(Windows, DepthwiseKeepsItsOrderAtTheStrictLevel) {
  expect_as_loops({"3x3", 36, 36, 11, 13, 3, 1, 1, 36}, {{}, kDepthwiseLists[4]},
                  FloatLevel::Strict);
}

// Axes: 0 = channel, 1 = row, 2 = column; then the window's row and column.
const std::vector<std::vector<std::string>> kPlaneLists = {
    {},
    {"UNROLL(3,3)", "UNROLL(4,3)"},
    {"VECTOR(2,4,1)", "SEGMENT(1,1,4)", "SEGMENT(2,4)", "UNROLL(3,3)", "UNROLL(4,3)"},
    {"VECTOR(2,8,2)", "TILE_REG(1,3)", "SEGMENT(1,3)", "UNROLL(3,3)", "UNROLL(4,3)", "SLIDE(1)"},
    {"VECTOR(2,4,1)", "TILE_REG(1,2)", "SEGMENT(1,1,3)", "SEGMENT(2,4)", "UNROLL(4,2)"},
    {"VECTOR(2,4,1)", "TILE_REG(1,2)", "SEGMENT(1,2,4)", "REORDER(1,0,2)", "THREAD(1,0)",
     "UNROLL(3,3)", "UNROLL(4,3)", "SLIDE(1)"},
    {"VECTOR(2,4,1)", "TILE_REG(1,2)", "SEGMENT(1,4)", "SEGMENT(2,4)", "REORDER(0,1,2)",
     "TILE_CACHE(1,2,0)", "THREAD(1)", "UNROLL(3,3)"},
};

TEST(Windows, OverPlanesAsLoopsWithAnyTile) {
  for (const Isa isa : {Isa::Avx2, Isa::Sse2}) {
    expect_as_loops({"5x7", 3, 3, 5, 7, 3, 1, 1, 3}, kPlaneLists, FloatLevel::Finite, Choice::On,
                    make_target(isa));
  }
  const std::vector<Window> windows = {
      {"odd", 13, 13, 11, 19, 3, 1, 1, 13},       {"7x7", 21, 21, 7, 7, 3, 1, 1, 21},
      {"stride 2", 13, 13, 23, 37, 3, 2, 1, 13},  {"stride 2, even", 4, 4, 16, 64, 3, 2, 1, 4},
      {"stride 3", 5, 5, 17, 53, 3, 3, 1, 5},     {"5x5", 7, 7, 29, 31, 5, 1, 1, 7},
      {"5x5 stride 2", 7, 7, 13, 71, 5, 2, 1, 7}, {"7x7 window", 3, 3, 12, 41, 7, 1, 1, 3},
      {"dilated", 5, 5, 23, 43, 3, 1, 4, 5},      {"one row", 9, 9, 1, 101, 3, 1, 1, 9},
      {"one column", 9, 9, 33, 1, 3, 1, 1, 9},    {"long rows", 2, 2, 5, 1031, 3, 1, 1, 2},
      {"one plane", 1, 1, 97, 113, 3, 2, 1, 1},
  };
  for (const Window& w : windows) {
    for (const Choice planar : {Choice::Auto, Choice::On})
      expect_as_loops(w, {{}}, FloatLevel::Finite, planar);
    expect_as_loops(w, {{}}, FloatLevel::Strict, Choice::On);
    for (const Isa isa : {Isa::Sse2, Isa::Avx2})
      expect_as_loops(w, {{}}, FloatLevel::Finite, Choice::On, make_target(isa));
  }
}

TEST(Windows, DenseAsLoopsWithAnyTile) {
  // Few channels: planar, so that the window's columns are the innermost reduced axis.
  expect_as_loops({"one channel, stride 2", 1, 8, 12, 50, 3, 2, 1, 1}, {{}});
  expect_as_loops({"three channels, stride 2", 3, 20, 12, 26, 3, 2, 1, 1}, {{}});
  expect_as_loops({"three channels, 7x7", 3, 20, 12, 26, 7, 2, 1, 1}, {{}});
  expect_as_loops({"channels", 12, 40, 9, 13, 3, 1, 1, 1}, {{}});
  expect_as_loops({"1x1, panels inside", 16, 96, 9, 13, 1, 1, 1, 1}, {{}});
  expect_as_loops({"1x1, panels outside", 200, 96, 5, 7, 1, 1, 1, 1}, {{}});
}

struct Expected {
  Window window;
  int multiply_adds;  ///< in the innermost loop, of the first (widest) tile
};

/// What the heuristics make of a sliding window: everything that the loop holds stays in registers.
void expect_no_spill(const Target& target, const std::vector<Expected>& cases) {
  for (const Expected& e : cases) {
    SCOPED_TRACE(e.window.name);
    const Prepared p = prepare(e.window, target);
    codegen::Config config;
    config.target = target;
    const auto lowered =
        codegen::lower(p.schedule.kernels[static_cast<size_t>(p.kernel)].sink, config);
    ASSERT_TRUE(lowered.has_value()) << lowered.error().to_string();
    const auto assembly = codegen::assemble_llvm(lowered->program, target);
    ASSERT_TRUE(assembly.has_value()) << assembly.error().to_string();
    const std::string loop = codegen::testing::inner_loop(*assembly);
    EXPECT_EQ(codegen::testing::count_matches(loop, "vfmadd[0-9]+ps"), e.multiply_adds) << loop;
    EXPECT_EQ(codegen::testing::count_matches(loop, "%rsp"), 0) << loop;
    // Each element of the operand that slides is read once, each weight once: fewer reads than multiply-adds.
    EXPECT_LT(codegen::testing::count_matches(loop, "\\(%r[a-z0-9]+[,)]"), e.multiply_adds) << loop;
  }
}

TEST(Windows, SlidingTilesStayInRegisters) {
  // AVX-512: 8 copies x 2 vectors x 3 or 5 columns; the strided stem: 24 copies x 1 vector x 3 columns.
  expect_no_spill(make_target(Isa::Avx512), {
                                                {{"3x3", 64, 64, 16, 64, 3, 1, 1, 64}, 48},
                                                {{"3x3 stride 2", 64, 64, 16, 64, 3, 2, 1, 64}, 48},
                                                {{"5x5", 64, 64, 16, 64, 5, 1, 1, 64}, 80},
                                                {{"stem", 1, 8, 32, 96, 3, 2, 1, 1}, 72},
                                            });
  // AVX2: 8 copies x 1 vector, of a 3x3 window all rows.
  expect_no_spill(make_target(Isa::Avx2), {
                                              {{"3x3", 64, 64, 16, 64, 3, 1, 1, 64}, 72},
                                              {{"5x5", 64, 64, 16, 64, 5, 1, 1, 64}, 40},
                                          });
}

}  // namespace
}  // namespace ignis
