#include "tests/compiler/run_schedule.h"
#include <gtest/gtest.h>

#include <algorithm>

namespace ignis {
namespace {

using tensor::Tensor;

// A sum of n products of values up to 2 rounds to about sqrt(n) * 2^-24 of the sum of magnitudes; n stays below 2000.
constexpr double kTolerance = 1e-4;

class Model {
 public:
  Tensor input(const Shape& shape, DType dtype = DType::Float32) {
    const auto slot = static_cast<int64_t>(case_.inputs.size());
    case_.inputs.push_back(Tensor::input(graph_, slot, "x" + std::to_string(slot), dtype, shape));
    case_.values.push_back(test::random_tensor(shape, 100 + static_cast<uint64_t>(slot), dtype));
    return case_.inputs.back();
  }
  Tensor weight(const Shape& shape) {
    return Tensor::constant(graph_, test::random_tensor(shape, ++seed_));
  }
  /// Schedules, runs and compares; returns the schedule for a look.
  schedule::Schedule check(std::vector<Tensor> outputs, schedule::Options options = {}) {
    case_.outputs = std::move(outputs);
    test::RunOptions run;
    run.config.target = detect_host_target();
    auto s = schedule::make_schedule(case_.input_nodes(), case_.output_nodes(), run.config.target,
                                     options);
    EXPECT_TRUE(s.has_value()) << (s ? "" : s.error().to_string());
    if (!s) return {};
    auto got = test::run_schedule(*s, case_.values, run);
    EXPECT_TRUE(got.has_value()) << (got ? "" : got.error().to_string());
    if (!got) return *std::move(s);
    const auto expected = case_.expected();
    for (size_t i = 0; i < expected.size(); ++i) {
      EXPECT_LE(test::max_error((*got)[i], expected[i]), kTolerance) << "output " << i;
    }
    return *std::move(s);
  }

 private:
  std::shared_ptr<ir::Graph> graph_ = std::make_shared<ir::Graph>();
  test::Case case_;
  uint64_t seed_ = 0;
};

int run_time_kernels(const schedule::Schedule& s) {
  int n = 0;
  for (const auto& k : s.kernels) n += k.at_load ? 0 : 1;
  return n;
}

TEST(KernelCount, APictureIsResampledWithoutATableOfPositions) {
  Model m;
  const Tensor x = m.input({200 * 300});
  std::vector<int64_t> rows(200), columns(300);
  for (size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<int64_t>((199 - i) * 300);
  for (size_t i = 0; i < columns.size(); ++i) columns[i] = static_cast<int64_t>(i * i % 300);
  const Tensor table =
      Tensor::constant(x.graph(), HostTensor::from(DType::Int64, {200, 1}, rows)) +
      Tensor::constant(x.graph(), HostTensor::from(DType::Int64, {1, 300}, columns));
  const auto s = m.check(
      {Tensor(x.graph(), x.graph()->make(ir::Op::Gather, x.dtype(), {x.node(), table.node()}))});
  EXPECT_EQ(s.kernels.size(), 1u);
  for (const auto& buffer : s.buffers) {
    if (buffer.role == schedule::BufferRole::Constant) {
      EXPECT_LE(element_count(buffer.shape), 300) << buffer.name;
    }
  }
}

TEST(KernelCount, ElementwiseChainIsOne) {
  Model m;
  const Tensor x = m.input({7, 33}), y = m.input({33});
  EXPECT_EQ(run_time_kernels(m.check({sqrt(abs(x + y)) * x})), 1);
}

TEST(KernelCount, SoftmaxIsOne) {
  Model m;
  EXPECT_EQ(run_time_kernels(m.check({softmax(m.input({5, 77}), -1)})), 1);
}

TEST(KernelCount, LayerNormIsOne) {
  Model m;
  const Tensor x = m.input({6, 50});
  EXPECT_EQ(run_time_kernels(m.check({layer_norm(x, -1, m.weight({50}), m.weight({50}), 1e-5)})),
            1);
}

TEST(KernelCount, ConvolutionTakesItsEpilogue) {
  Model m;
  const Tensor x = m.input({1, 16, 10, 11});
  tensor::ConvOptions pad;
  pad.pads_lo = pad.pads_hi = {1, 1};
  const Tensor a = relu(conv(x, m.weight({24, 16, 3, 3}), m.weight({24}), pad));
  const Tensor b = relu(conv(a, m.weight({24, 24, 3, 3}), m.weight({24}), pad) + a);
  // Two convolutions, plus the border: the graph's input into a halo, the result back to row-major.
  EXPECT_EQ(run_time_kernels(m.check({b})), 4);
}

TEST(KernelCount, AttentionHasThreeProductsAndASoftmax) {
  Model m;
  const Tensor q = m.input({2, 4, 12, 16}), k = m.input({2, 4, 12, 16}),
               v = m.input({2, 4, 12, 16});
  const Tensor scores = matmul(q, permute(k, {0, 1, 3, 2})) * 0.25;
  // scores, softmax, values, and k copied so that its rows are contiguous.
  EXPECT_LE(run_time_kernels(m.check({matmul(softmax(scores, -1), v)})), 4);
}

TEST(KernelCount, UnfusedGivesTheSameValues) {
  Model m;
  const Tensor x = m.input({5, 40});
  schedule::Options options;
  options.fuse = false;
  const auto s = m.check({softmax(x * 3.0, -1)}, options);
  EXPECT_GT(run_time_kernels(s), 4);
}

TEST(Schedule, ConcatenationIsWrittenInPlace) {
  Model m;
  const Tensor x = m.input({3, 8}), y = m.input({5, 8});
  const auto s = m.check({tensor::concat({relu(x), exp(y)}, 0)});
  EXPECT_EQ(run_time_kernels(s), 2);
}

TEST(Schedule, SharedValueIsComputedOnce) {
  Model m;
  const Tensor x = m.input({1, 4, 6, 6});
  const Tensor a = exp(x);
  const auto s = m.check({a, sum(a, {1}), a + 1.0});
  EXPECT_EQ(run_time_kernels(s), 3);
}

TEST(Schedule, OutputsMayRepeatAndMayBeInputs) {
  Model m;
  const Tensor x = m.input({3, 5});
  const Tensor y = x + 1.0;
  m.check({y, y, x});
}

TEST(Schedule, WeightsComputedFromWeightsRunAtLoad) {
  Model m;
  const Tensor x = m.input({4, 16});
  const Tensor w = m.weight({16, 24}) * exp(m.weight({24}));
  const auto s = m.check({matmul(x, w)});
  EXPECT_EQ(run_time_kernels(s), 1);
  EXPECT_GE(s.kernels.size(), 2u);
}

TEST(Schedule, FlattenBeforeAProductStaysAffine) {
  Model m;
  const Tensor x = m.input({2, 16, 5, 5});
  tensor::ConvOptions pad;
  pad.pads_lo = pad.pads_hi = {1, 1};
  const Tensor c = relu(conv(x, m.weight({16, 16, 3, 3}), {}, pad));
  m.check({matmul(flatten(c, 1), m.weight({400, 10}))});
}

TEST(Schedule, GatherReadsNothingOutside) {
  Model m;
  const Tensor x = m.input({10, 6});
  const Tensor index = m.input({4}, DType::Int64);  // values 0 … 99: most lie outside
  const auto graph = x.graph();
  const ir::Node node = graph->make(ir::Op::Gather, x.dtype(), {x.node(), index.node()});
  m.check({Tensor(graph, node)});
}

TEST(Schedule, StridedDilatedGroupedAndDepthwiseConvolutions) {
  for (const int64_t groups : {1, 2, 12}) {
    for (const int64_t stride : {1, 2, 3}) {
      for (const int64_t dilation : {1, 2}) {
        SCOPED_TRACE(std::to_string(groups) + "/" + std::to_string(stride) + "/" +
                     std::to_string(dilation));
        Model m;
        const Tensor x = m.input({2, 12, 9, 11});
        tensor::ConvOptions o;
        o.groups = groups;
        o.strides = {stride, stride};
        o.dilations = {dilation, dilation};
        o.pads_lo = {1, 2};
        o.pads_hi = {2, 0};
        m.check({relu(conv(x, m.weight({12, 12 / groups, 3, 3}), m.weight({12}), o))});
      }
    }
  }
}

TEST(Schedule, OneAndThreeDimensionalConvolutions) {
  Model m;
  const Tensor a = m.input({2, 8, 33}), b = m.input({1, 4, 5, 6, 7});
  tensor::ConvOptions one, three;
  one.pads_lo = one.pads_hi = {2};
  three.pads_lo = three.pads_hi = {1, 1, 1};
  m.check({conv(a, m.weight({20, 8, 5}), m.weight({20}), one),
           conv(b, m.weight({6, 4, 3, 3, 3}), {}, three)});
}

TEST(Schedule, PoolsAndTheirPadding) {
  Model m;
  const Tensor x = m.input({1, 16, 9, 9});
  tensor::PoolOptions o;
  o.kernel = {3, 3};
  o.strides = {2, 2};
  o.pads_lo = o.pads_hi = {1, 1};
  m.check({max_pool(x, o), avg_pool(x, o), max_pool(relu(x) - 5.0, o)});
}

/// Whether each kernel that runs every time moves whole vectors.
bool all_in_lanes(const schedule::Schedule& s) {
  codegen::Config config;
  config.target = make_target(Isa::Avx512);
  for (const auto& k : s.kernels) {
    if (k.at_load) continue;
    const auto lowered = codegen::lower(k.sink, config);
    if (!lowered || lowered->actions.empty() || !lowered->actions[0].starts_with("VECTOR"))
      return false;
  }
  return true;
}

TEST(Schedule, PoolsWithoutPaddingOfOddPlanesRunInLanes) {
  Model m;
  const Tensor x = m.input({3, 37, 15, 13});
  tensor::PoolOptions o;
  o.kernel = {3, 3};
  o.strides = {2, 2};
  for (const Choice planar : {Choice::Off, Choice::On}) {
    schedule::Options options;
    options.planar_windows = planar;
    EXPECT_TRUE(all_in_lanes(m.check({max_pool(x, o)}, options)));
  }
}

// Only the rim of a padded maximum asks where it is.
TEST(Schedule, PaddedPoolsAreCutWherePaddingEnds) {
  for (const int64_t kernel : {3, 5}) {
    for (const int64_t stride : {1, 2}) {
      Model m;
      const Tensor x = m.input({1, 20, 17, 19});
      tensor::PoolOptions o;
      o.kernel = {kernel, kernel};
      o.strides = {stride, stride};
      o.pads_lo = o.pads_hi = {kernel / 2, kernel / 2};
      schedule::Options options;
      options.planar_windows = Choice::Off;
      const auto s = m.check({max_pool(x, o), avg_pool(x, o)}, options);
      codegen::Config config;
      config.target = make_target(Isa::Avx2);
      int with_segments = 0;
      for (const auto& k : s.kernels) {
        const auto lowered = codegen::lower(k.sink, config);
        ASSERT_TRUE(lowered.has_value());
        for (const std::string& a : lowered->actions) with_segments += a.starts_with("SEGMENT(0");
      }
      EXPECT_EQ(with_segments, 1);
    }
  }
}

TEST(Schedule, PoolsOverPlanesNeedNoCopies) {
  for (const Shape& shape : {Shape{3, 37, 15, 13}, Shape{1, 20, 7, 7}, Shape{1, 5, 20, 61}}) {
    for (const int64_t kernel : {2, 3, 5}) {
      for (const int64_t stride : {1, 2}) {
        Model m;
        const Tensor x = m.input(shape);
        tensor::PoolOptions o;
        o.kernel = {kernel, kernel};
        o.strides = {stride, stride};
        o.pads_lo = o.pads_hi = {kernel / 2, kernel / 2};
        tensor::PoolOptions counts = o;
        counts.count_include_pad = true;
        schedule::Options options;
        for (const Choice planar : {Choice::Auto, Choice::On, Choice::Off}) {
          options.planar_windows = planar;
          for (const Tensor& y : {max_pool(x, o), avg_pool(x, o), avg_pool(x, counts)}) {
            const auto s = m.check({y}, options);
            if (planar != Choice::On) continue;
            for (const auto& b : s.buffers) {
              const bool is_copy = b.name.ends_with(".halo") || b.name.ends_with(".cl");
              EXPECT_FALSE(is_copy) << b.name;
            }
          }
        }
      }
    }
  }
}

TEST(Schedule, WindowsBetweenConvolutionsStayChannelsLast) {
  Model m;
  const Tensor x = m.input({1, 16, 14, 14});
  tensor::ConvOptions o, one;
  o.groups = 32;
  o.pads_lo = o.pads_hi = {1, 1};
  const Tensor wide = relu(conv(x, m.weight({32, 16, 1, 1}), {}, one));
  const Tensor window = relu(conv(wide, m.weight({32, 1, 3, 3}), {}, o));
  schedule::Options options;
  options.chain = Choice::Off;
  options.planar_windows = Choice::On;
  const auto s = m.check({conv(window, m.weight({16, 32, 1, 1}), {}, one)}, options);
  for (const auto& b : s.buffers) {
    if (b.role != schedule::BufferRole::Temporary || b.shape != Shape{1, 32, 14, 14}) continue;
    EXPECT_EQ(b.layout.digits.back().dim, 1) << b.name;
  }
}

TEST(Schedule, PlanesOf7x7AreTurnedInRegisters) {
  Model m;
  const Tensor x = m.input({1, 45, 7, 7}), w = m.weight({45, 1, 3, 3});
  tensor::ConvOptions o;
  o.groups = 45;
  o.pads_lo = o.pads_hi = {1, 1};
  schedule::Options options;
  options.planar_windows = Choice::Off;
  EXPECT_TRUE(all_in_lanes(m.check({conv(x, w, {}, o)}, options)));
}

TEST(Schedule, ProductsOfOddShapes) {
  Model m;
  const Tensor rows = m.input({61, 17}), row = m.input({1, 67}), shallow = m.input({1031, 3});
  const Tensor batch = m.input({3, 7, 13});
  m.check({matmul(rows, m.weight({17, 301})), matmul(row, m.weight({67, 1009})),
           matmul(shallow, m.weight({3, 515})), matmul(batch, m.input({3, 13, 5})),
           matmul(row, m.input({67, 611})), matmul(rows, m.input({17, 3}))});
}

TEST(Schedule, FewColumnsSumInLanesOfTheirTerms) {
  for (const Choice lanes : {Choice::Auto, Choice::On, Choice::Off}) {
    schedule::Options options;
    options.sums_in_lanes = lanes;
    for (const int64_t columns : {1, 2, 3, 5, 19}) {
      for (const int64_t terms : {7, 67, 1025}) {
        Model m;
        const Tensor rows = m.input({13, terms}), batch = m.input({3, 9, terms});
        m.check(
            {matmul(rows, m.input({terms, columns})), matmul(batch, m.input({3, terms, columns})),
             matmul(rows, m.weight({terms, columns})) + m.weight({columns}),
             matmul(m.input({1, terms}), m.weight({terms, columns}))},
            options);
      }
    }
  }
  Model m;
  const auto s = m.check({matmul(m.input({64, 2048}), m.input({2048, 2}))});
  codegen::Config config;
  config.target = make_target(Isa::Avx2);
  const auto lowered = codegen::lower(s.kernels.back().sink, config);
  ASSERT_TRUE(lowered.has_value());
  EXPECT_TRUE(std::any_of(lowered->actions.begin(), lowered->actions.end(),
                          [](const std::string& a) { return a.starts_with("SPLIT_REDUCE"); }));
}

TEST(Schedule, TransposesOfEveryKind) {
  Model m;
  const Tensor x = m.input({3, 20, 37});
  m.check({permute(x, {2, 1, 0}), permute(x, {0, 2, 1}), permute(x, {1, 0, 2}),
           permute(x, {2, 0, 1}), permute(x, {1, 2, 0})});
}

TEST(Schedule, EqualGraphsGiveEqualKernels) {
  const auto kernel_keys = [](int junk) {
    const auto graph = std::make_shared<ir::Graph>();
    for (int i = 0; i < junk; ++i) graph->constant(DType::Int32, i);
    const Tensor x = Tensor::input(graph, 0, "x", DType::Float32, {1, 8, 6, 6});
    const Tensor w = Tensor::constant(graph, test::random_tensor({8, 8, 3, 3}, 1));
    const Tensor y = softmax(relu(conv(x, w)), -1);
    const auto s = schedule::make_schedule({x.node()}, {y.node()}, make_target(Isa::Avx2));
    std::vector<ir::ContentKey> keys;
    for (const auto& k : s.value().kernels) keys.push_back(ir::content_key(k.sink));
    return keys;
  };
  EXPECT_EQ(kernel_keys(0), kernel_keys(37));
}

}  // namespace
}  // namespace ignis
