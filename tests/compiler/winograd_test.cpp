#include "tests/compiler/run_schedule.h"
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

// Winograd's F(2x2, 3x3) beside convolutions by their definition.
namespace ignis {
namespace {

using tensor::Tensor;

struct Shape3x3 {
  int64_t images, channels, outputs, height, width;
  std::vector<int64_t> pads_lo, pads_hi;
};

enum class Epilogue { None, BiasRelu, BiasResidualSilu };

struct Model {
  test::Case graph;
  HostTensor weights, bias;
};

/// x, doubled so that the convolution reads a buffer of the schedule; the convolution; its epilogue.
Model make_model(const Shape3x3& s, Epilogue epilogue, const HostTensor* weights = nullptr) {
  Model m;
  const auto g = std::make_shared<ir::Graph>();
  const Tensor x =
      Tensor::input(g, 0, "x", DType::Float32, {s.images, s.channels, s.height, s.width});
  m.weights = weights != nullptr ? *weights : test::random_tensor({s.outputs, s.channels, 3, 3}, 3);
  m.bias = test::random_tensor({s.outputs}, 4);
  tensor::ConvOptions o;
  o.pads_lo = s.pads_lo;
  o.pads_hi = s.pads_hi;
  std::optional<Tensor> bias;
  if (epilogue != Epilogue::None) bias = Tensor::constant(g, m.bias);
  Tensor y = conv(exp(x), Tensor::constant(g, m.weights), bias, o);
  m.graph.inputs = {x};
  m.graph.values = {test::random_tensor(x.shape(), 5)};
  if (epilogue == Epilogue::BiasRelu) y = relu(y);
  if (epilogue == Epilogue::BiasResidualSilu) {
    const Tensor r = Tensor::input(g, 1, "r", DType::Float32, y.shape());
    m.graph.inputs.push_back(r);
    m.graph.values.push_back(test::random_tensor(y.shape(), 6));
    y = silu(y + exp(r));
  }
  m.graph.outputs = {y};
  return m;
}

struct Reference {
  std::vector<double> values;
  std::vector<double> scale;  ///< sum of |weights| times the largest |input|, per output channel
};

Reference by_loops(const Shape3x3& s, const Model& m, Epilogue epilogue) {
  Reference want;
  const HostTensor& x = m.graph.values[0];
  const int64_t rows = s.height + s.pads_lo[0] + s.pads_hi[0] - 2;
  const int64_t columns = s.width + s.pads_lo[1] + s.pads_hi[1] - 2;
  double largest = 0;
  for (int64_t i = 0; i < x.count(); ++i)
    largest = std::max(largest, std::exp(element_as_double(x, i)));
  for (int64_t o = 0; o < s.outputs; ++o) {
    double sum = 0;
    for (int64_t i = 0; i < 9 * s.channels; ++i)
      sum += std::fabs(element_as_double(m.weights, o * 9 * s.channels + i));
    want.scale.push_back(sum * largest);
  }
  for (int64_t n = 0; n < s.images; ++n) {
    for (int64_t o = 0; o < s.outputs; ++o) {
      for (int64_t r = 0; r < rows; ++r) {
        for (int64_t c = 0; c < columns; ++c) {
          double sum = epilogue == Epilogue::None ? 0 : element_as_double(m.bias, o);
          for (int64_t i = 0; i < s.channels; ++i) {
            for (int64_t k = 0; k < 9; ++k) {
              const int64_t row = r + k / 3 - s.pads_lo[0], column = c + k % 3 - s.pads_lo[1];
              if (row < 0 || row >= s.height || column < 0 || column >= s.width) continue;
              const int64_t at = ((n * s.channels + i) * s.height + row) * s.width + column;
              // The first kernel rounds to float32.
              const double value = static_cast<float>(std::exp(element_as_double(x, at)));
              sum += value * element_as_double(m.weights, (o * s.channels + i) * 9 + k);
            }
          }
          if (epilogue == Epilogue::BiasRelu) sum = std::max(sum, 0.0);
          if (epilogue == Epilogue::BiasResidualSilu) {
            sum += std::exp(
                element_as_double(m.graph.values[1], static_cast<int64_t>(want.values.size())));
            sum = sum / (1 + std::exp(-sum));
          }
          want.values.push_back(sum);
        }
      }
    }
  }
  return want;
}

/// Whether a run multiplies transformed patches.
bool uses_winograd(const schedule::Schedule& s) {
  return std::any_of(s.buffers.begin(), s.buffers.end(),
                     [](const schedule::Buffer& b) { return b.name.ends_with(".patches"); });
}

schedule::Schedule make_schedule(const test::Case& graph, const Target& target, Choice winograd,
                                 FloatLevel level = FloatLevel::Finite) {
  schedule::Options options;
  options.winograd = winograd;
  options.float_level = level;
  auto s = schedule::make_schedule(graph.input_nodes(), graph.output_nodes(), target, options);
  IGNIS_CHECK(s.has_value()) << s.error().to_string();
  return *std::move(s);
}

void expect_as_loops(const Shape3x3& s, Epilogue epilogue, const Target& target) {
  const Model m = make_model(s, epilogue);
  const Reference want = by_loops(s, m, epilogue);
  for (const Choice winograd : {Choice::On, Choice::Off}) {
    SCOPED_TRACE(std::to_string(s.images) + "x" + std::to_string(s.channels) + "->" +
                 std::to_string(s.outputs) + " " + std::to_string(s.height) + "x" +
                 std::to_string(s.width) + (winograd == Choice::On ? " on " : " off ") +
                 target.name());
    const schedule::Schedule schedule = make_schedule(m.graph, target, winograd);
    ASSERT_EQ(uses_winograd(schedule), winograd == Choice::On);
    test::RunOptions run;
    run.config.target = target;
    std::vector<std::byte> first;
    for (const int parts : {1, 3}) {
      run.parts = parts;
      const auto got = test::run_schedule(schedule, m.graph.values, run);
      ASSERT_TRUE(got.has_value()) << got.error().to_string();
      const HostTensor& y = (*got)[0];
      ASSERT_EQ(static_cast<size_t>(y.count()), want.values.size());
      // The stated bound, and 2^-22 of the value for exp and silu.
      const double share = 32 * (std::sqrt(static_cast<double>(s.channels)) + 8) * 0x1p-24;
      const int64_t plane = y.count() / (s.images * s.outputs);
      for (int64_t i = 0; i < y.count(); ++i) {
        const double value = want.values[static_cast<size_t>(i)];
        const double scale = want.scale[static_cast<size_t>(i / plane % s.outputs)];
        ASSERT_NEAR(element_as_double(y, i), value, share * scale + 0x1p-22 * std::fabs(value))
            << i;
      }
      if (first.empty()) first.assign(y.bytes.begin(), y.bytes.end());
      EXPECT_TRUE(std::equal(first.begin(), first.end(), y.bytes.begin(), y.bytes.end()))
          << "other bits in " << parts << " parts";
    }
  }
}

const std::vector<Shape3x3> kShapes = {
    {1, 16, 32, 8, 8, {1, 1}, {1, 1}},    // whole tiles
    {1, 7, 5, 7, 7, {1, 1}, {1, 1}},      // odd planes and channels
    {3, 33, 40, 7, 7, {1, 1}, {1, 1}},    // a batch, panels with a rest
    {1, 24, 17, 13, 11, {1, 1}, {1, 1}},  // primes
    {2, 8, 70, 5, 6, {0, 2}, {1, 1}},     // padding that differs from side to side
    {1, 12, 16, 6, 9, {2, 1}, {2, 0}},    //
    {1, 20, 24, 12, 9, {0, 1}, {0, 1}},   // no padding above and below
    {1, 9, 16, 3, 4, {1, 1}, {1, 1}},     // one tile and a half
    {1, 64, 64, 16, 16, {1, 1}, {1, 1}},  // places that would share a set of the cache
};

TEST(Winograd, IsAsLoopsForEveryShape) {
  for (const Shape3x3& s : kShapes) expect_as_loops(s, Epilogue::None, detect_host_target());
}

TEST(Winograd, TakesTheEpilogueAlong) {
  for (const size_t i : {0, 1, 2, 4}) {
    expect_as_loops(kShapes[i], Epilogue::BiasRelu, detect_host_target());
    expect_as_loops(kShapes[i], Epilogue::BiasResidualSilu, detect_host_target());
  }
}

TEST(Winograd, RunsOnEveryInstructionSet) {
  const Target host = detect_host_target();
  for (const Isa isa : {Isa::Sse2, Isa::Avx2, Isa::Neon}) {
    const Target target = make_target(isa);
    if (!host.can_run(target)) continue;
    for (const size_t i : {1, 2}) expect_as_loops(kShapes[i], Epilogue::BiasRelu, target);
  }
}

TEST(Winograd, RunsWithoutOptimisation) {
  const Model m = make_model(kShapes[1], Epilogue::BiasRelu);
  const Reference want = by_loops(kShapes[1], m, Epilogue::BiasRelu);
  test::RunOptions run;
  run.config.target = detect_host_target();
  run.config.optimize = false;
  const auto s = make_schedule(m.graph, run.config.target, Choice::On);
  const auto got = test::run_schedule(s, m.graph.values, run);
  ASSERT_TRUE(got.has_value()) << got.error().to_string();
  for (size_t i = 0; i < want.values.size(); ++i)
    ASSERT_NEAR(element_as_double((*got)[0], static_cast<int64_t>(i)), want.values[i], 1e-3) << i;
}

// Weights for which the transform gains nothing but cancellation: the stated bound holds for any.
TEST(Winograd, StaysWithinItsBoundForAwkwardWeights) {
  const Shape3x3 s{1, 32, 16, 9, 9, {1, 1}, {1, 1}};
  HostTensor weights = test::random_tensor({s.outputs, s.channels, 3, 3}, 9);
  auto* values = reinterpret_cast<float*>(weights.bytes.data());
  for (int64_t i = 0; i < weights.count(); ++i) {
    // Checkerboards, single large taps beside tiny ones, alternating channels that cancel.
    const int64_t o = i / (9 * s.channels), c = i / 9 % s.channels, k = i % 9;
    if (o % 3 == 0) values[i] = static_cast<float>(k % 2 == 0 ? 1 : -1);
    if (o % 3 == 1) values[i] = k == 4 ? 1e4F : 1e-4F * values[i];
    if (o % 3 == 2) values[i] = static_cast<float>(c % 2 == 0 ? 1 : -1);
  }
  const Model m = make_model(s, Epilogue::None, &weights);
  const Reference want = by_loops(s, m, Epilogue::None);
  test::RunOptions run;
  run.config.target = detect_host_target();
  const auto got = test::run_schedule(make_schedule(m.graph, run.config.target, Choice::On),
                                      m.graph.values, run);
  ASSERT_TRUE(got.has_value()) << got.error().to_string();
  const double share = 32 * (std::sqrt(static_cast<double>(s.channels)) + 8) * 0x1p-24;
  const int64_t plane = (*got)[0].count() / s.outputs;
  for (int64_t i = 0; i < (*got)[0].count(); ++i) {
    ASSERT_NEAR(element_as_double((*got)[0], i), want.values[static_cast<size_t>(i)],
                share * want.scale[static_cast<size_t>(i / plane)])
        << i;
  }
}

/// Nothing of a tile's other pixels reaches an output: NaN and infinity stay in the windows that hold them.
TEST(Winograd, KeepsWhatIsNotFiniteInItsWindows) {
  const Shape3x3 s{1, 8, 16, 7, 8, {1, 1}, {1, 1}};
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    for (int64_t at = 0; at < s.height * s.width; at += 5) {
      Model m = make_model(s, Epilogue::None);
      reinterpret_cast<float*>(m.graph.values[0].bytes.data())[at] = bad;
      test::RunOptions run;
      run.config.target = detect_host_target();
      const auto got = test::run_schedule(make_schedule(m.graph, run.config.target, Choice::On),
                                          m.graph.values, run);
      ASSERT_TRUE(got.has_value()) << got.error().to_string();
      for (int64_t i = 0; i < (*got)[0].count(); ++i) {
        const int64_t row = i / s.width % s.height, column = i % s.width;
        const bool sees_it =
            std::abs(row - at / s.width) <= 1 && std::abs(column - at % s.width) <= 1;
        ASSERT_EQ(!std::isfinite(element_as_double((*got)[0], i)), sees_it) << at << " " << i;
      }
    }
  }
}

/// Places are copies in one tile, and the far edge of an odd plane is a part of its own: nothing is chosen or masked by
/// position at run time.
TEST(Winograd, LeavesNoChoiceInItsLoops) {
  const Model m = make_model({1, 32, 32, 13, 11, {1, 1}, {1, 1}}, Epilogue::BiasResidualSilu);
  codegen::Config config;
  config.target = make_target(Isa::Avx2);
  const auto s = make_schedule(m.graph, config.target, Choice::On);
  int transforms = 0;
  for (const schedule::Kernel& kernel : s.kernels) {
    const bool chooses = std::ranges::any_of(ir::toposort(kernel.sink), [](const ir::Node& n) {
      return n.is(ir::Op::Where) && n.src(0).is(ir::Op::Cmplt) && n.src(0).src(0).is(ir::Op::Range);
    });
    if (!chooses) continue;
    ++transforms;
    const auto lowered = codegen::lower(kernel.sink, config);
    ASSERT_TRUE(lowered.has_value()) << lowered.error().to_string();
    const auto count = [&](ir::Op op) {
      return std::ranges::count_if(lowered->program.list,
                                   [&](const ir::Node& n) { return n.is(op); });
    };
    EXPECT_EQ(count(ir::Op::Where), 0);
    for (const ir::Node& n : lowered->program.list) {
      EXPECT_TRUE(!n.is(ir::Op::Store) || n.source_count() == 2);
    }
  }
  EXPECT_EQ(transforms, 3);  // weights, input, output
}

struct Other {
  std::string name;
  int64_t kernel = 3, stride = 1, dilation = 1, groups = 1;
  DType dtype = DType::Float32;
  bool constant_weights = true;
  FloatLevel level = FloatLevel::Finite;
};

TEST(Winograd, LeavesEveryOtherConvolutionAlone) {
  const std::vector<Other> others = {
      {.name = "stride 2", .stride = 2},
      {.name = "dilation 2", .dilation = 2},
      {.name = "two groups", .groups = 2},
      {.name = "depthwise", .groups = 16},
      {.name = "5x5", .kernel = 5},
      {.name = "1x1", .kernel = 1},
      {.name = "float16", .dtype = DType::Float16},
      {.name = "bfloat16", .dtype = DType::BFloat16},
      {.name = "float64", .dtype = DType::Float64},
      {.name = "integers", .dtype = DType::Int32},
      {.name = "weights of the run", .constant_weights = false},
      {.name = "strict", .level = FloatLevel::Strict},
  };
  for (const Other& other : others) {
    SCOPED_TRACE(other.name);
    const auto g = std::make_shared<ir::Graph>();
    test::Case graph;
    const Tensor x = Tensor::input(g, 0, "x", other.dtype, {1, 16, 12, 12});
    graph.inputs = {x};
    graph.values = {test::random_tensor(x.shape(), 5, other.dtype)};
    const HostTensor weights =
        test::random_tensor({16, 16 / other.groups, other.kernel, other.kernel}, 3, other.dtype);
    tensor::ConvOptions o;
    o.strides = {other.stride, other.stride};
    o.dilations = {other.dilation, other.dilation};
    o.groups = other.groups;
    o.pads_lo = o.pads_hi = {1, 1};
    Tensor w = Tensor::constant(g, weights);
    if (!other.constant_weights) {
      w = Tensor::input(g, 1, "w", other.dtype, weights.shape);
      graph.inputs.push_back(w);
      graph.values.push_back(weights);
    }
    graph.outputs = {conv(x, w, {}, o)};
    const auto s = make_schedule(graph, detect_host_target(), Choice::On, other.level);
    EXPECT_FALSE(uses_winograd(s));
  }
}

/// Left to its cost model.
bool is_chosen(const Shape3x3& s, int threads = 1) {
  Target target = make_target(Isa::Avx2);
  target.threads = threads;
  return uses_winograd(make_schedule(make_model(s, Epilogue::None).graph, target, Choice::Auto));
}

TEST(Winograd, IsChosenWhereItPays) {
  EXPECT_TRUE(is_chosen({1, 64, 64, 56, 56, {1, 1}, {1, 1}}));
  EXPECT_TRUE(is_chosen({1, 128, 128, 28, 28, {1, 1}, {1, 1}}, 2));
  EXPECT_TRUE(is_chosen({1, 256, 256, 14, 14, {1, 1}, {1, 1}}));
  // Few channels: the transforms cost more than they save.
  EXPECT_FALSE(is_chosen({1, 4, 4, 56, 56, {1, 1}, {1, 1}}));
  // Few tiles: the weights, which are larger, come from far away.
  EXPECT_FALSE(is_chosen({1, 512, 512, 2, 2, {1, 1}, {1, 1}}));
}

}  // namespace
}  // namespace ignis
