// What a tuner may try: every list of actions that codegen::neighbours offers keeps the values of a kernel.
#include "tests/compiler/run_schedule.h"
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

namespace ignis {
namespace {

using tensor::Tensor;

constexpr double kTolerance = 1e-4;
constexpr int kSteps = 3;        // of a walk away from the heuristics
constexpr size_t kPerStep = 10;  // lists that are run beside each place of a walk

struct Model {
  std::string name;
  test::Case graph;
};

class Builder {
 public:
  explicit Builder(std::string name) { model_.name = std::move(name); }
  Tensor input(const Shape& shape) {
    const auto slot = static_cast<int64_t>(model_.graph.inputs.size());
    model_.graph.inputs.push_back(
        Tensor::input(graph_, slot, "x" + std::to_string(slot), DType::Float32, shape));
    model_.graph.values.push_back(test::random_tensor(shape, 70 + static_cast<uint64_t>(slot)));
    return model_.graph.inputs.back();
  }
  Tensor weight(const Shape& shape) {
    return Tensor::constant(graph_, test::random_tensor(shape, ++seed_));
  }
  Model take(const Tensor& output) {
    model_.graph.outputs = {output};
    return std::move(model_);
  }

 private:
  std::shared_ptr<ir::Graph> graph_ = std::make_shared<ir::Graph>();
  Model model_;
  uint64_t seed_ = 100;
};

tensor::ConvOptions window(int64_t stride, int64_t pad, int64_t groups) {
  tensor::ConvOptions options;
  options.strides = {stride, stride};
  options.pads_lo = options.pads_hi = {pad, pad};
  options.groups = groups;
  return options;
}

std::vector<Model> models() {
  std::vector<Model> list;
  {
    Builder b("product of unknown operands");
    const Tensor x = b.input({37, 23}), y = b.input({23, 50});
    list.push_back(b.take(relu(matmul(x, y))));
  }
  {
    Builder b("product with packed weights");
    const Tensor x = b.input({3, 19, 40});
    list.push_back(b.take(matmul(x, b.weight({40, 70})) + b.weight({70})));
  }
  {
    Builder b("convolution 3x3, odd sizes, batch 3");
    const Tensor x = b.input({3, 5, 9, 11});
    list.push_back(b.take(relu(conv(x, b.weight({13, 5, 3, 3}), b.weight({13}), window(1, 1, 1)))));
  }
  {
    Builder b("convolution 3x3, stride 2");
    const Tensor x = b.input({1, 16, 14, 14});
    list.push_back(b.take(conv(x, b.weight({24, 16, 3, 3}), b.weight({24}), window(2, 1, 1))));
  }
  {
    Builder b("depthwise between 1x1");
    const Tensor x = b.input({1, 8, 12, 10});
    const Tensor e = relu(conv(x, b.weight({24, 8, 1, 1}), b.weight({24})));
    const Tensor d = relu(conv(e, b.weight({24, 1, 3, 3}), b.weight({24}), window(1, 1, 24)));
    list.push_back(b.take(conv(d, b.weight({8, 24, 1, 1}), b.weight({8})) + x));
  }
  {
    Builder b("softmax");
    list.push_back(b.take(softmax(b.input({9, 77}), 1)));
  }
  {
    Builder b("turned elementwise");
    list.push_back(b.take(permute(b.input({45, 70}), {1, 0}) * 2.0));
  }
  {
    Builder b("padded elementwise");
    list.push_back(b.take(exp(pad(b.input({6, 20}), {{2, 3}, {1, 7}}))));
  }
  {
    Builder b("sums of rows");
    list.push_back(b.take(sum(b.input({9, 77}), {1})));
  }
  return list;
}

class SearchSpace : public ::testing::TestWithParam<Choice> {};

TEST_P(SearchSpace, NeighboursOfARandomWalkKeepTheValues) {
  std::mt19937_64 random(5);
  for (const Model& model : models()) {
    SCOPED_TRACE(model.name);
    const HostTensor expected = model.graph.expected()[0];
    test::RunOptions options;
    options.config.target = detect_host_target();
    options.config.target.threads = 2;
    schedule::Options schedule_options;
    schedule_options.chain = GetParam();
    const auto schedule =
        schedule::make_schedule(model.graph.input_nodes(), model.graph.output_nodes(),
                                options.config.target, schedule_options);
    ASSERT_TRUE(schedule.has_value()) << schedule.error().to_string();
    options.actions.resize(schedule->kernels.size());
    for (size_t k = 0; k < schedule->kernels.size(); ++k) {
      codegen::Config config = options.config;
      for (int step = 0; step < kSteps; ++step) {
        auto beside = codegen::neighbours(schedule->kernels[k].sink, config);
        ASSERT_TRUE(beside.has_value()) << beside.error().to_string();
        if (beside->empty()) break;
        std::shuffle(beside->begin(), beside->end(), random);
        for (size_t i = 0; i < std::min(kPerStep, beside->size()); ++i) {
          options.actions[k] = (*beside)[i].actions;
          options.parts = 1 + static_cast<int>(random() % 3);
          const auto got = test::run_schedule(*schedule, model.graph.values, options);
          std::string text;
          for (const std::string& action : options.actions[k]) text += action + " ";
          ASSERT_TRUE(got.has_value()) << got.error().to_string() << "\n" << text;
          ASSERT_LE(test::max_error((*got)[0], expected), kTolerance)
              << "kernel " << k << ", parts " << options.parts << ": " << text;
          EXPECT_GT((*beside)[i].estimate_ns, 0);
        }
        config.actions = beside->front().actions;
      }
      options.actions[k].clear();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(, SearchSpace, ::testing::Values(Choice::Off, Choice::On));

TEST(SearchSpaceOf, AStrictKernelRegroupsNoSum) {
  Builder b("product");
  const Tensor x = b.input({20, 64}), y = b.input({64, 30});
  const Model model = b.take(sum(matmul(x, y), {1}));
  codegen::Config config;
  config.target = make_target(Isa::Avx2);
  config.float_level = FloatLevel::Strict;
  schedule::Options options;
  options.float_level = FloatLevel::Strict;
  const auto schedule = schedule::make_schedule(model.graph.input_nodes(),
                                                model.graph.output_nodes(), config.target, options);
  ASSERT_TRUE(schedule.has_value());
  for (const schedule::Kernel& kernel : schedule->kernels) {
    const auto beside = codegen::neighbours(kernel.sink, config);
    ASSERT_TRUE(beside.has_value());
    for (const codegen::Candidate& candidate : *beside) {
      for (const std::string& action : candidate.actions) {
        EXPECT_FALSE(action.starts_with("SPLIT_REDUCE") || action.starts_with("SLIDE")) << action;
      }
    }
  }
}

TEST(SearchSpaceOf, AKernelIsTheSameEachTime) {
  Builder b("convolution");
  const Tensor x = b.input({1, 16, 14, 14});
  const Model model =
      b.take(relu(conv(x, b.weight({24, 16, 3, 3}), b.weight({24}), window(1, 1, 1))));
  codegen::Config config;
  config.target = make_target(Isa::Avx2);
  config.target.threads = 2;
  const auto schedule =
      schedule::make_schedule(model.graph.input_nodes(), model.graph.output_nodes(), config.target);
  ASSERT_TRUE(schedule.has_value());
  for (const schedule::Kernel& kernel : schedule->kernels) {
    const auto once = codegen::neighbours(kernel.sink, config);
    const auto again = codegen::neighbours(kernel.sink, config);
    ASSERT_TRUE(once.has_value() && again.has_value());
    EXPECT_EQ(*once, *again);
    std::set<std::vector<std::string>> different;
    for (const codegen::Candidate& candidate : *once) different.insert(candidate.actions);
    EXPECT_EQ(different.size(), once->size());
  }
}

}  // namespace
}  // namespace ignis
