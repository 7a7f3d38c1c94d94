#include "ignis/engine/evaluate.h"

#include "ignis/engine/compile_graph.h"
#include "ignis/runtime/device.h"
#include "ignis/tensor/tensor.h"

#include "tests/support/seed.h"
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cmath>
#include <cstdlib>
#include <random>

namespace ignis {
namespace {

using tensor::Tensor;

// Every device of this machine that compiles, and each instruction set below the best.
std::vector<std::string> compiling_devices() {
  std::vector<std::string> specs = {"cpu"};
  for (const char* spec : {"cpu:llvm:sse2", "cpu:llvm:avx2", "cpu:c"}) {
    if (runtime::open_device(spec)) specs.push_back(spec);
  }
  return specs;
}

HostTensor random_tensor(Shape shape, std::mt19937_64& rng) {
  HostTensor t = HostTensor::zeros(DType::Float32, std::move(shape));
  std::uniform_real_distribution<double> draw(-1, 1);
  for (int64_t i = 0; i < t.count(); ++i) store_element(t, i, draw(rng));
  return t;
}

// f32 results of sums of up to a few hundred products of values near 1: an order of terms may cost some 1e-5.
void expect_close(const HostTensor& actual, const HostTensor& expected) {
  ASSERT_EQ(actual.dtype, expected.dtype);
  ASSERT_EQ(actual.shape, expected.shape);
  for (int64_t i = 0; i < actual.count(); ++i) {
    const double a = element_as_double(actual, i), e = element_as_double(expected, i);
    ASSERT_NEAR(a, e, 1e-5 + 1e-5 * std::abs(e)) << "element " << i;
  }
}

TEST(Evaluate, AddsTwoConstants) {
  const auto graph = std::make_shared<ir::Graph>();
  const Tensor a = Tensor::constant(graph, HostTensor::from<float>(DType::Float32, {3}, {1, 2, 3}));
  const Tensor b =
      Tensor::constant(graph, HostTensor::from<float>(DType::Float32, {3}, {10, 20, 30}));
  for (const std::string& device : compiling_devices()) {
    SCOPED_TRACE(device);
    EvaluateOptions options;
    options.device = device;
    const auto sum = evaluate(tensor::add(a, b), options);
    ASSERT_TRUE(sum) << sum.error().to_string();
    EXPECT_EQ(sum->data<float>()[0], 11);
    EXPECT_EQ(sum->data<float>()[1], 22);
    EXPECT_EQ(sum->data<float>()[2], 33);
  }
}

struct Expression {
  const char* name;
  std::vector<Shape> inputs;
  std::function<Tensor(const std::vector<Tensor>&)> make;
};

std::vector<Expression> expressions() {
  using T = const std::vector<Tensor>&;
  tensor::ConvOptions strided;
  strided.strides = {2, 2};
  strided.pads_lo = strided.pads_hi = {1, 1};
  tensor::ConvOptions depthwise = strided;
  depthwise.groups = 6;
  tensor::PoolOptions pool;
  pool.kernel = {3, 3};
  pool.strides = {2, 2};
  pool.pads_lo = pool.pads_hi = {1, 1};
  return {
      {"relu of a sum",
       {{3, 5}, {5}},
       [](T x) { return tensor::maximum(tensor::add(x[0], x[1]), 0); }},
      {"matmul", {{7, 33}, {33, 19}}, [](T x) { return tensor::matmul(x[0], x[1]); }},
      {"batched matmul", {{2, 4, 8}, {2, 8, 5}}, [](T x) { return tensor::matmul(x[0], x[1]); }},
      {"conv",
       {{1, 3, 17, 13}, {8, 3, 3, 3}, {8}},
       [=](T x) { return tensor::conv(x[0], x[1], x[2], strided); }},
      {"depthwise conv",
       {{1, 6, 11, 9}, {6, 1, 3, 3}},
       [=](T x) { return tensor::conv(x[0], x[1], {}, depthwise); }},
      {"conv, conv",
       {{1, 3, 12, 12}, {8, 3, 3, 3}, {5, 8, 1, 1}},
       [=](T x) {
         return tensor::conv(tensor::maximum(tensor::conv(x[0], x[1], {}, strided), 0), x[2]);
       }},
      {"max pool", {{1, 4, 9, 9}}, [=](T x) { return tensor::max_pool(x[0], pool); }},
      {"softmax", {{5, 37}}, [](T x) { return tensor::softmax(x[0], -1); }},
      {"layer norm", {{4, 32}}, [](T x) { return tensor::layer_norm(x[0], 1, {}, {}); }},
      {"mean of all", {{3, 4, 5}}, [](T x) { return tensor::mean(x[0]); }},
      {"no elements", {{0, 4}}, [](T x) { return tensor::mul(x[0], 2); }},
  };
}

TEST(Evaluate, AgreesWithTheReferenceOnEveryDevice) {
  const uint64_t seed = ignis::testing::test_seed();
  SCOPED_TRACE("IGNIS_TEST_SEED=" + std::to_string(seed));
  for (const Expression& e : expressions()) {
    SCOPED_TRACE(e.name);
    std::mt19937_64 rng(seed);
    const auto graph = std::make_shared<ir::Graph>();
    std::vector<Tensor> inputs;
    std::vector<HostTensor> values;
    for (const Shape& shape : e.inputs) {
      const auto slot = static_cast<int64_t>(inputs.size());
      inputs.push_back(
          Tensor::input(graph, slot, "x" + std::to_string(slot), DType::Float32, shape));
      values.push_back(random_tensor(shape, rng));
    }
    const Tensor output[] = {e.make(inputs)};
    EvaluateOptions options;
    options.device = "cpu:interp";
    const auto reference = evaluate(output, inputs, values, options);
    ASSERT_TRUE(reference) << reference.error().to_string();
    for (const std::string& device : compiling_devices()) {
      SCOPED_TRACE(device);
      options.device = device;
      options.threads = device == "cpu" ? 2 : 1;
      const auto result = evaluate(output, inputs, values, options);
      ASSERT_TRUE(result) << result.error().to_string();
      expect_close(result->front(), reference->front());
    }
  }
}

// Memory whose first or last byte lies against a page that nobody may touch.
class GuardedMemory {
 public:
  enum class Side { Begin, End };
  GuardedMemory(size_t size_bytes, Side side) : size_bytes_(size_bytes) {
    const size_t page = 4096, pages = (size_bytes + page - 1) / page;
    total_bytes_ = (pages + 2) * page;
    base_ = static_cast<std::byte*>(
        mmap(nullptr, total_bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    EXPECT_NE(base_, MAP_FAILED);
    EXPECT_EQ(mprotect(base_ + page, pages * page, PROT_READ | PROT_WRITE), 0);
    begin_ = base_ + page + (side == Side::End ? pages * page - size_bytes : 0);
  }
  GuardedMemory(const GuardedMemory&) = delete;
  GuardedMemory& operator=(const GuardedMemory&) = delete;
  ~GuardedMemory() { munmap(base_, total_bytes_); }
  std::span<std::byte> bytes() const { return {begin_, size_bytes_}; }

 private:
  std::byte* base_ = nullptr;
  std::byte* begin_ = nullptr;
  size_t total_bytes_ = 0, size_bytes_ = 0;
};

// Vector tails and padding must not read or write beyond the caller's memory, on either side.
TEST(Evaluate, StaysInsideTheCallersMemory) {
  for (const Expression& e : expressions()) {
    SCOPED_TRACE(e.name);
    const auto graph = std::make_shared<ir::Graph>();
    std::vector<Tensor> inputs;
    std::vector<ir::Node> nodes;
    for (const Shape& shape : e.inputs) {
      const auto slot = static_cast<int64_t>(inputs.size());
      inputs.push_back(
          Tensor::input(graph, slot, "x" + std::to_string(slot), DType::Float32, shape));
      nodes.push_back(inputs.back().node());
    }
    const ir::Node output = e.make(inputs).node();
    const auto device = runtime::open_device("cpu");
    ASSERT_TRUE(device);
    auto compiled = engine::compile_graph(nodes, {output}, *device);
    ASSERT_TRUE(compiled) << compiled.error().to_string();
    for (const auto side : {GuardedMemory::Side::Begin, GuardedMemory::Side::End}) {
      std::vector<std::unique_ptr<GuardedMemory>> memory;
      std::vector<std::span<const std::byte>> from;
      for (const Shape& shape : e.inputs) {
        const auto size = static_cast<size_t>(element_count(shape)) * sizeof(float);
        memory.push_back(std::make_unique<GuardedMemory>(size, side));
        from.push_back(memory.back()->bytes());
      }
      const GuardedMemory to(static_cast<size_t>(element_count(output.shape())) * sizeof(float),
                             side);
      const std::span<std::byte> outputs[] = {to.bytes()};
      const Status status = compiled->executable.run(
          from, outputs, runtime::deadline_after(std::chrono::seconds(60)));
      EXPECT_TRUE(status) << status.error().to_string();
    }
  }
}

TEST(Evaluate, OutputsMayBeInputsConstantsAndEachOther) {
  const auto graph = std::make_shared<ir::Graph>();
  const Tensor x = Tensor::input(graph, 0, "x", DType::Float32, {2});
  const Tensor unused = Tensor::input(graph, 1, "unused", DType::Int64, {0, 3});
  const Tensor c = Tensor::constant(graph, HostTensor::from<float>(DType::Float32, {2}, {3, 4}));
  const Tensor y = tensor::add(x, c);
  const Tensor outputs[] = {x,     c, y, y, tensor::reshape(y, {2, 1}), Tensor::ones(graph, {2}),
                            unused};
  const Tensor inputs[] = {x, unused};
  const HostTensor values[] = {HostTensor::from<float>(DType::Float32, {2}, {1, 2}),
                               HostTensor::zeros(DType::Int64, {0, 3})};
  const auto results = evaluate(outputs, inputs, values);
  ASSERT_TRUE(results) << results.error().to_string();
  const float expected[][2] = {{1, 2}, {3, 4}, {4, 6}, {4, 6}, {4, 6}, {1, 1}};
  for (size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(results->at(i).data<float>()[0], expected[i][0]) << i;
    EXPECT_EQ(results->at(i).data<float>()[1], expected[i][1]) << i;
  }
  EXPECT_EQ(results->at(6).shape, (Shape{0, 3}));
}

TEST(Evaluate, RefusesWrongInputs) {
  const auto graph = std::make_shared<ir::Graph>();
  const Tensor x = Tensor::input(graph, 0, "x", DType::Float32, {2, 2});
  const Tensor y[] = {tensor::add(x, 1)};
  const auto missing = evaluate(y[0]);
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().reason(), "MissingInput");
  EXPECT_NE(missing.error().message().find("'x'"), std::string::npos);
  const HostTensor wrong[] = {HostTensor::zeros(DType::Float32, {4})};
  const auto result = evaluate(y, {&x, 1}, wrong);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code(), ErrorCode::InvalidArgument);
  EXPECT_NE(result.error().message().find("f32 [4]"), std::string::npos);
  EXPECT_NE(result.error().message().find("[2, 2]"), std::string::npos);
  EXPECT_EQ(evaluate(y, {&x, 1}, {}).error().reason(), "WrongCount");
  EvaluateOptions options;
  options.device = "cuda";
  EXPECT_EQ(evaluate(Tensor::ones(graph, {1}), options).error().code(), ErrorCode::NotFound);
}

}  // namespace
}  // namespace ignis
