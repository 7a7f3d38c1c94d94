#include "ignis/engine/session.h"

#include "ignis/runtime/device.h"
#include "ignis/tensor/tensor.h"

#include <gtest/gtest.h>

#include <climits>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <mutex>

namespace ignis {
namespace {

// The few fields of onnx.proto3 that a small model needs, written by hand.
std::string varint(uint64_t value) {
  std::string out;
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  return out + static_cast<char>(value);
}
std::string number(uint32_t field, uint64_t value) { return varint(field << 3) + varint(value); }
std::string bytes(uint32_t field, const std::string& value) {
  return varint((field << 3) | 2) + varint(value.size()) + value;
}
std::string float_value(const std::string& name, const Shape& shape) {
  std::string dims;
  for (const int64_t dim : shape) dims += bytes(1, number(1, static_cast<uint64_t>(dim)));
  return bytes(1, name) + bytes(2, bytes(1, number(1, 1) + bytes(2, dims)));
}
std::string node(const std::string& op, const std::string& name, std::vector<std::string> inputs,
                 const std::string& output) {
  std::string out;
  for (const std::string& input : inputs) out += bytes(1, input);
  return out + bytes(2, output) + bytes(3, name) + bytes(4, op);
}
std::string weights(const std::string& name, const Shape& shape, const std::vector<float>& values) {
  std::string out;
  for (const int64_t dim : shape) out += number(1, static_cast<uint64_t>(dim));
  std::string raw(values.size() * sizeof(float), '\0');
  std::memcpy(raw.data(), values.data(), raw.size());
  return out + number(2, 1) + bytes(8, name) + bytes(9, raw);
}

// y = relu(x * w) + b with x [2, 3], w [3, 2], b [2].
std::string small_model() {
  const std::string graph = bytes(1, node("MatMul", "product", {"x", "w"}, "xw")) +
                            bytes(1, node("Relu", "positive", {"xw"}, "r")) +
                            bytes(1, node("Add", "shifted", {"r", "b"}, "y")) + bytes(2, "small") +
                            bytes(5, weights("w", {3, 2}, {1, -1, 2, -2, 3, -3})) +
                            bytes(5, weights("b", {2}, {10, 20})) +
                            bytes(11, float_value("x", {2, 3})) +
                            bytes(12, float_value("y", {2, 2}));
  return number(1, 8) + bytes(7, graph) + bytes(8, bytes(1, "") + number(2, 13));
}

class SessionTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = (std::filesystem::temp_directory_path() / "ignis-session-XXXXXX").string();
    ASSERT_NE(mkdtemp(folder_.data()), nullptr);
    std::ofstream(path(), std::ios::binary) << small_model();
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string path() const { return folder_ + "/small.onnx"; }

  // Rows (1, 1, 1) and (1, 0, -1): products with w are (6, -6) and (-2, 2).
  const HostTensor x_ = HostTensor::from<float>(DType::Float32, {2, 3}, {1, 1, 1, 1, 0, -1});
  std::string folder_;
};

std::vector<float> floats(const HostTensor& t) {
  return {t.data<float>(), t.data<float>() + t.count()};
}

TEST_F(SessionTest, RunsAModelOnEveryDevice) {
  for (const char* device : {"cpu", "cpu:llvm:sse2", "cpu:c", "cpu:interp"}) {
    SCOPED_TRACE(device);
    SessionOptions options;
    options.device = device;
    auto session = Session::load(path(), options);
    ASSERT_TRUE(session) << session.error().to_string();
    ASSERT_EQ(session->inputs().size(), 1u);
    EXPECT_EQ(session->inputs()[0].name, "x");
    EXPECT_EQ(session->outputs()[0].shape, (Shape{2, 2}));
    const auto result = session->run({x_});
    ASSERT_TRUE(result) << result.error().to_string();
    EXPECT_EQ(floats(result->at(0)), (std::vector<float>{16, 20, 10, 22}));
    EXPECT_GT(session->times().import_s, 0);
    EXPECT_GT(session->times().first_run_s, 0);
    const double first = session->times().first_run_s;
    ASSERT_TRUE(session->run({x_}));
    EXPECT_EQ(session->times().first_run_s, first);
  }
}

TEST_F(SessionTest, ReportsItsProgramAndProfile) {
  std::mutex mutex;
  std::vector<std::string> stages;
  SessionOptions options;
  options.threads = 1;
  options.progress = [&](const std::string& stage, int done, int total) {
    const std::lock_guard lock(mutex);
    EXPECT_LE(done, total);
    stages.push_back(stage);
  };
  auto session = Session::load(path(), options);
  ASSERT_TRUE(session) << session.error().to_string();
  EXPECT_EQ(stages.front(), "import");
  EXPECT_EQ(stages.back(), "compile");
  EXPECT_GE(session->kernel_count(), 1);
  EXPECT_LE(session->program_count(), session->kernel_count());
  EXPECT_GE(session->constant_bytes(), (6 + 2) * 4);
  EXPECT_FALSE(session->pass_times().empty());
  float y[4] = {};
  const void* inputs[] = {x_.bytes.data()};
  void* outputs[] = {y};
  std::vector<CallInfo> calls;
  ASSERT_TRUE(session->profile(inputs, outputs, &calls));
  EXPECT_EQ(y[0], 16);
  EXPECT_EQ(static_cast<int>(calls.size()), session->kernel_count());
  for (const CallInfo& call : calls) EXPECT_FALSE(call.kernel.empty());
  std::memset(y, 0, sizeof(y));
  ASSERT_TRUE(session->run_raw(inputs, outputs));
  EXPECT_EQ(y[3], 22);
}

TEST_F(SessionTest, TapsFollowTheOutputsAndLeaveTheProgramAlone) {
  auto plain = Session::load(path());
  ASSERT_TRUE(plain);
  for (const char* device : {"cpu", "cpu:interp"}) {
    SCOPED_TRACE(device);
    SessionOptions options;
    options.device = device;
    options.taps = {"product", "r"};  // by the layer's name, by its output's
    auto session = Session::load(path(), options);
    ASSERT_TRUE(session) << session.error().to_string();
    ASSERT_EQ(session->outputs().size(), 3u);
    EXPECT_EQ(session->outputs()[1].name, "product");
    const auto result = session->run({x_});
    ASSERT_TRUE(result) << result.error().to_string();
    EXPECT_EQ(floats(result->at(0)), (std::vector<float>{16, 20, 10, 22}));
    EXPECT_EQ(floats(result->at(1)), (std::vector<float>{6, -6, -2, 2}));
    EXPECT_EQ(floats(result->at(2)), (std::vector<float>{6, 0, 0, 2}));
    const bool is_compiled = session->target().renderer != "interp";
    EXPECT_EQ(session->kernel_count(), is_compiled ? plain->kernel_count() : 0);
  }
}

TEST_F(SessionTest, ComparingKernelsFindsASeededFault) {
  const auto first_difference = [&](int seeded_fault, std::string* layer) {
    SessionOptions options;
    options.seeded_fault = seeded_fault;
    auto session = Session::load(path(), options);
    EXPECT_TRUE(session) << session.error().to_string();
    int first = INT_MAX, compared = 0;
    EXPECT_TRUE(session->compare_kernels({x_}, [&](KernelComparison c) {
      ++compared;
      if (c.got.bytes == c.want.bytes || c.call >= first) return Status();
      first = c.call;
      *layer = c.layer;
      return Status();
    }));
    EXPECT_GE(compared, 1);
    return first;
  };
  std::string layer;
  EXPECT_EQ(first_difference(-1, &layer), INT_MAX);
  EXPECT_LT(first_difference(0, &layer), INT_MAX);
  EXPECT_NE(layer.find("product"), std::string::npos) << layer;
}

TEST_F(SessionTest, RefusesWhatDoesNotFit) {
  auto session = Session::load(path());
  ASSERT_TRUE(session);
  const auto expect = [&](const std::vector<HostTensor>& inputs, const char* a, const char* b) {
    const auto result = session->run(inputs);
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code(), ErrorCode::InvalidArgument);
    EXPECT_NE(result.error().message().find(a), std::string::npos) << result.error().message();
    EXPECT_NE(result.error().message().find(b), std::string::npos) << result.error().message();
  };
  expect({}, "0 inputs", "has 1");
  expect({HostTensor::zeros(DType::Float32, {3, 2})}, "'x' is f32 [3, 2]", "f32 [2, 3]");
  expect({HostTensor::zeros(DType::Int32, {2, 3})}, "i32 [2, 3]", "f32 [2, 3]");
  HostTensor cut = x_;
  cut.bytes.resize(8);
  expect({cut}, "has 8 bytes", "needs 24");

  SessionOptions options;
  options.taps = {"nowhere"};
  EXPECT_EQ(Session::load(path(), options).error().code(), ErrorCode::NotFound);
  options.taps.clear();
  options.device = "tpu";
  EXPECT_EQ(Session::load(path(), options).error().code(), ErrorCode::NotFound);
  options.device = "cpu::";
  EXPECT_EQ(Session::load(path(), options).error().code(), ErrorCode::InvalidArgument);
  EXPECT_EQ(Session::load(folder_ + "/missing.onnx").error().code(), ErrorCode::NotFound);
  std::ofstream(path(), std::ios::binary) << small_model().substr(0, 60);
  EXPECT_EQ(Session::load(path()).error().code(), ErrorCode::InvalidArgument);
}

TEST(SessionFromGraph, RunsTensorsWithInputsOfEachRun) {
  const auto graph = std::make_shared<ir::Graph>();
  const tensor::Tensor x = tensor::Tensor::input(graph, 0, "x", DType::Float32, {2, 3});
  const tensor::Tensor k = tensor::Tensor::input(graph, 1, "k", DType::Float32, {1});
  const std::vector<NamedTensor> inputs = {{"x", x}, {"k", k}};
  for (const char* device : {"cpu", "cpu:interp"}) {
    SCOPED_TRACE(device);
    SessionOptions options;
    options.device = device;
    auto session = Session::from_graph(inputs, {{"scaled", x * k}, {"sum", x + k}}, options);
    ASSERT_TRUE(session) << session.error().to_string();
    EXPECT_EQ(session->inputs()[1].name, "k");
    EXPECT_EQ(session->outputs()[0].name, "scaled");
    for (const float factor : {2.0f, -3.0f}) {
      const auto result =
          session->run({HostTensor::from<float>(DType::Float32, {2, 3}, {1, 2, 3, 4, 5, 6}),
                        HostTensor::from<float>(DType::Float32, {1}, {factor})});
      ASSERT_TRUE(result) << result.error().to_string();
      EXPECT_EQ(floats(result->at(0))[5], 6 * factor);
      EXPECT_EQ(floats(result->at(1))[1], 2 + factor);
    }
  }
}

TEST(SessionFromGraph, RefusesWhatIsNoGraphOfItsInputs) {
  const auto graph = std::make_shared<ir::Graph>();
  const auto other = std::make_shared<ir::Graph>();
  const tensor::Tensor x = tensor::Tensor::input(graph, 0, "x", DType::Float32, {2});
  const tensor::Tensor y = tensor::Tensor::input(graph, 1, "y", DType::Float32, {2});
  const tensor::Tensor far = tensor::Tensor::input(other, 0, "far", DType::Float32, {2});
  const auto reason = [](const Result<Session>& session) {
    return session ? std::string("accepted") : session.error().reason();
  };
  EXPECT_EQ(reason(Session::from_graph({{"x", x}}, {{"z", x + y}})), "MissingInput");
  EXPECT_EQ(reason(Session::from_graph({{"y", y}}, {{"z", y + y}})), "NotAnInput");
  EXPECT_EQ(reason(Session::from_graph({{"x", x + x}}, {{"z", x}})), "NotAnInput");
  EXPECT_EQ(reason(Session::from_graph({{"x", x}}, {{"z", x}, {"far", far}})), "WrongGraph");
  EXPECT_EQ(reason(Session::from_graph({{"x", x}}, {})), "WrongCount");
  SessionOptions options;
  options.taps = {"z"};
  EXPECT_EQ(reason(Session::from_graph({{"x", x}}, {{"z", x + x}}, options)), "WrongOption");
}

TEST_F(SessionTest, ARunHasItsOwnDeadline) {
  auto session = Session::load(path());
  ASSERT_TRUE(session);
  const auto y = std::make_shared<std::vector<float>>(4);
  const void* inputs[] = {x_.bytes.data()};
  void* outputs[] = {y->data()};
  const auto now = std::chrono::steady_clock::now();
  ASSERT_TRUE(session->run_raw(inputs, outputs, now + std::chrono::seconds(10)));
  EXPECT_EQ(y->at(0), 16);
  const Status late = session->run_raw(inputs, outputs, now - std::chrono::seconds(1));
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code(), ErrorCode::Timeout);
  runtime::abandon(y);
}

TEST_F(SessionTest, ASpentTimeoutIsTyped) {
  SessionOptions options;
  auto session = Session::load(path(), options);
  ASSERT_TRUE(session);
  options.timeout = std::chrono::nanoseconds(-1);
  auto hasty = Session::load(path(), options);
  if (!hasty) {  // kernels at load may be the first to meet it
    EXPECT_EQ(hasty.error().code(), ErrorCode::Timeout);
    return;
  }
  const auto result = hasty->run({x_});
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code(), ErrorCode::Timeout);
  EXPECT_TRUE(session->run({x_}));
}

}  // namespace
}  // namespace ignis
