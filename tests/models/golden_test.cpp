// Real models against the answers of a reference runtime (README.md).

#include "ignis/engine/artifact.h"
#include "ignis/engine/session.h"
#include "ignis/runtime/device.h"

#include "tests/support/artifact_runner.h"
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace ignis {
namespace {

std::string models_folder() {
  const char* shared = std::getenv("IGNIS_SHARED");
  return (shared != nullptr ? std::string(shared) : std::string(IGNIS_SOURCE_DIR) + "/../shared") +
         "/models/";
}

std::vector<uint8_t> read_bytes(const std::string& name) {
  std::ifstream file(models_folder() + "golden/" + name, std::ios::binary);
  EXPECT_TRUE(file) << name;
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<float> read_floats(const std::string& name) {
  const std::vector<uint8_t> bytes = read_bytes(name);
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(float));
  return values;
}

// The bound for every model: 1e-4 absolute + 1e-4 relative.
void expect_close(const HostTensor& actual, const std::vector<float>& expected) {
  ASSERT_EQ(actual.dtype, DType::Float32);
  ASSERT_EQ(actual.count(), static_cast<int64_t>(expected.size()));
  for (size_t i = 0; i < expected.size(); ++i) {
    const float e = expected[i];
    ASSERT_NEAR(actual.data<float>()[i], e, 1e-4 + 1e-4 * std::abs(e)) << "element " << i;
  }
}

struct DeviceCase {
  const char* spec;
  int threads;
  /// Of Winograd's products and of bands of rows.
  Choice choice = Choice::Auto;
};

constexpr const char* kForeign = "cpu:llvm:aarch64-neon";

// A model that runs here, or as an artifact in the process of a runner.
class LoadedModel {
 public:
  explicit LoadedModel(Session session) : session_(std::move(session)) {}
  LoadedModel(CompiledArtifact artifact, test::ArtifactRunner& runner)
      : artifact_(std::move(artifact)), runner_(&runner) {}

  const std::vector<PortInfo>& inputs() const {
    return session_ ? session_->inputs() : artifact_.inputs;
  }
  const std::vector<PortInfo>& outputs() const {
    return session_ ? session_->outputs() : artifact_.outputs;
  }
  Result<std::vector<HostTensor>> run(const std::vector<HostTensor>& inputs) {
    return session_ ? session_->run(inputs) : runner_->run(artifact_, inputs);
  }

 private:
  std::optional<Session> session_;
  CompiledArtifact artifact_;
  test::ArtifactRunner* runner_ = nullptr;
};

class GoldenModels : public testing::TestWithParam<DeviceCase> {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(models_folder() + "golden")) {
      GTEST_SKIP() << "SKIPPED: no golden files at " << models_folder()
                   << "; set IGNIS_SHARED to the folder that holds models/.";
    }
    options_.device = GetParam().spec;
    options_.threads = GetParam().threads;
    options_.winograd = options_.chain = GetParam().choice;
    if (options_.device == kForeign) return start_runner();
    const auto device = runtime::open_device(options_.device);
    if (!device && device.error().code() == ErrorCode::Unsupported) {
      GTEST_SKIP() << "SKIPPED: " << device.error().message();
    }
  }

  void start_runner() {
    const char* command = std::getenv("IGNIS_TEST_RUNNER");
    if (command == nullptr) {
      GTEST_SKIP() << "SKIPPED: AArch64 is not this machine; scripts/check-aarch64.sh runs this.";
    }
    auto runner = test::ArtifactRunner::start(command);
    ASSERT_TRUE(runner) << runner.error().to_string();
    runner_ = *std::move(runner);
  }

  // Aborts the test with the error when the model does not load.
  LoadedModel load(const std::string& model) {
    if (runner_ == nullptr) return LoadedModel(load_session(model));
    CompileOptions options;
    options.session = options_;
    options.targets = {options_.device};
    Result<CompiledArtifact> artifact = compile_artifact(models_folder() + model, options);
    EXPECT_TRUE(artifact) << artifact.error().to_string();
    return {*std::move(artifact), *runner_};
  }
  Session load_session(const std::string& model) {
    Result<Session> session = Session::load(models_folder() + model, options_);
    EXPECT_TRUE(session) << session.error().to_string();
    return *std::move(session);
  }

  SessionOptions options_;
  std::unique_ptr<test::ArtifactRunner> runner_;  // of another machine, in an emulator
};

TEST_P(GoldenModels, CabinDriverMonitoring) {
  LoadedModel session = load("dmonitoring_model_0.8.9.onnx");
  for (const char* name : {"face_front", "face_mirrored", "face_sunglasses", "face_eyes_closed",
                           "flat_grey", "noise"}) {
    SCOPED_TRACE(name);
    const std::vector<uint8_t> planes = read_bytes(std::string(name) + ".u8");
    HostTensor image = HostTensor::zeros(DType::Float32, {1, 6, 320, 160});
    ASSERT_EQ(image.count(), static_cast<int64_t>(planes.size()));
    for (size_t i = 0; i < planes.size(); ++i) {
      image.data<float>()[i] = static_cast<float>(planes[i] - 128) * 0.0078125f;
    }
    const auto outputs = session.run({image});
    ASSERT_TRUE(outputs) << outputs.error().to_string();
    expect_close(outputs->at(0), read_floats(std::string(name) + ".out.f32"));
  }
}

TEST_P(GoldenModels, UltraFace) {
  LoadedModel session = load("ultraface_rfb_320.onnx");
  const std::vector<uint8_t> rgb = read_bytes("ultraface_in_rgb_240x320.u8");
  HostTensor image = HostTensor::zeros(DType::Float32, {1, 3, 240, 320});
  ASSERT_EQ(image.count(), static_cast<int64_t>(rgb.size()));
  const size_t pixels = 240 * 320;
  for (size_t i = 0; i < rgb.size(); ++i) {
    image.data<float>()[i % 3 * pixels + i / 3] = static_cast<float>(rgb[i] - 127) / 128.0f;
  }
  const auto outputs = session.run({image});
  ASSERT_TRUE(outputs) << outputs.error().to_string();
  ASSERT_EQ(session.outputs()[0].name, "scores");
  expect_close(outputs->at(0), read_floats("ultraface_scores.f32"));
  expect_close(outputs->at(1), read_floats("ultraface_boxes.f32"));
}

// golden/silero_speech_prob.json, the list "prob".
std::vector<double> speech_probabilities() {
  const std::vector<uint8_t> bytes = read_bytes("silero_speech_prob.json");
  const std::string text(bytes.begin(), bytes.end());
  std::vector<double> values;
  const char* at = text.c_str() + text.find('[', text.find("\"prob\""));
  while (*at == '[' || *at == ',') {
    char* end = nullptr;
    values.push_back(std::strtod(at + 1, &end));
    at = end;
  }
  return values;
}

TEST_P(GoldenModels, SileroVoiceActivity) {
  options_.shapes["input"] = {1, 576};
  options_.shapes["state"] = {2, 1, 128};
  LoadedModel session = load("silero_vad_16k_op15.onnx");
  const std::vector<float> speech = read_floats("silero_speech_16k.f32");
  const std::vector<double> expected = speech_probabilities();
  ASSERT_GT(expected.size(), 60u);
  HostTensor state = HostTensor::zeros(DType::Float32, {2, 1, 128});
  const HostTensor rate = HostTensor::from<int64_t>(DType::Int64, {}, {16000});
  constexpr size_t kWindow = 512, kContext = 64;
  for (size_t w = 0; w < expected.size() && (w + 1) * kWindow <= speech.size(); ++w) {
    HostTensor input = HostTensor::zeros(DType::Float32, {1, kContext + kWindow});
    for (size_t i = 0; i < kContext + kWindow; ++i) {
      if (w * kWindow + i < kContext) continue;  // before the start there is silence
      input.data<float>()[i] = speech[w * kWindow + i - kContext];
    }
    std::vector<HostTensor> inputs = {input, state, rate};
    inputs.resize(session.inputs().size());
    const auto outputs = session.run(inputs);
    ASSERT_TRUE(outputs) << outputs.error().to_string();
    // The golden list has four digits: half a digit beside the bound of the state fed back.
    ASSERT_NEAR(outputs->at(0).data<float>()[0], expected[w], 5e-5 + 1e-4 + 1e-4 * expected[w])
        << "window " << w;
    state = outputs->at(1);
  }
}

// Every kernel of the fused program against the reference's value for it. Sums of up to a few thousand products of
// f32 in another order: 1e-4 as for the outputs, times a layer's largest value, since deep layers carry errors of the
// ones before.
int first_different_call(Session& session, const HostTensor& input, std::string* kernel,
                         int* compared) {
  int first = -1;
  const Status status = session.compare_kernels({input}, [&](KernelComparison c) {
    ++*compared;
    double largest = 1;
    for (int64_t i = 0; i < c.want.count(); ++i) {
      largest = std::max(largest, std::abs(element_as_double(c.want, i)));
    }
    bool is_close = true;
    for (int64_t i = 0; i < c.want.count() && is_close; ++i) {
      is_close =
          std::abs(element_as_double(c.got, i) - element_as_double(c.want, i)) <= 1e-4 * largest;
    }
    if (!is_close && (first < 0 || c.call < first)) {
      first = c.call;
      *kernel = c.kernel;
    }
    return Status();
  });
  EXPECT_TRUE(status) << status.error().to_string();
  return first;
}

TEST_P(GoldenModels, EachKernelIsRightAndASeededFaultIsNamed) {
  if (options_.device != "cpu" || options_.threads != 1) GTEST_SKIP() << "One device is enough.";
  HostTensor image = HostTensor::zeros(DType::Float32, {1, 6, 320, 160});
  const std::vector<uint8_t> planes = read_bytes("face_front.u8");
  for (size_t i = 0; i < planes.size(); ++i) {
    image.data<float>()[i] = static_cast<float>(planes[i] - 128) * 0.0078125f;
  }
  std::string kernel;
  int compared = 0;
  Session session = load_session("dmonitoring_model_0.8.9.onnx");
  EXPECT_EQ(first_different_call(session, image, &kernel, &compared), -1) << kernel;
  EXPECT_GT(compared, session.kernel_count() / 2);
  options_.seeded_fault = 17;
  Session faulty = load_session("dmonitoring_model_0.8.9.onnx");
  EXPECT_GE(first_different_call(faulty, image, &kernel, &compared), 0);
  EXPECT_NE(kernel.find("k17_"), std::string::npos) << kernel;
}

INSTANTIATE_TEST_SUITE_P(
    Devices, GoldenModels,
    testing::Values(DeviceCase{"cpu", 1}, DeviceCase{"cpu", 0}, DeviceCase{"cpu:llvm:avx2", 1},
                    DeviceCase{"cpu:llvm:sse2", 2}, DeviceCase{"cpu:interp", 1},
                    DeviceCase{kForeign, 2}, DeviceCase{"cpu", 2, Choice::On},
                    DeviceCase{kForeign, 1, Choice::On}),
    [](const auto& test) {
      std::string name = test.param.spec;
      for (char& c : name) c = c == ':' || c == '-' ? '_' : c;
      const bool is_forced = test.param.choice == Choice::On;
      return name + "_threads_" + std::to_string(test.param.threads) + (is_forced ? "_forced" : "");
    });

}  // namespace
}  // namespace ignis
