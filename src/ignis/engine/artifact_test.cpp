#include "ignis/engine/artifact.h"

#include "ignis/exec/artifact.h"
#include "ignis/exec/golden.h"
#include "ignis/runtime/device.h"

#include "tests/support/onnx_builder.h"
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

namespace ignis {
namespace {

using testing::onnx_floats;
using testing::OnnxModel;
using testing::OnnxNode;
using testing::OnnxType;

// y = relu(conv(x, w)) with x [batch, 2, 8, 8]; the convolution has packed weights.
class CompileArtifactTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = (std::filesystem::temp_directory_path() / "ignis-compile-XXXXXX").string();
    ASSERT_NE(mkdtemp(folder_.data()), nullptr);
    std::vector<float> weights;
    for (int i = 0; i < 16 * 2 * 3 * 3; ++i) weights.push_back(static_cast<float>(i % 7 - 3) / 4);
    OnnxModel model(17);
    model.graph.input("x", OnnxType::Float, {"batch", 2, 8, 8})
        .output("y", OnnxType::Float, {"batch", 16, 8, 8})
        .initializer(onnx_floats("w", {16, 2, 3, 3}, weights))
        .node(OnnxNode("Conv", {"x", "w"}, {"c"}).attr("pads", std::vector<int64_t>{1, 1, 1, 1}))
        .node(OnnxNode("Relu", {"c"}, {"y"}));
    std::ofstream(model_path(), std::ios::binary) << model.bytes();
    options_.session.dims["batch"] = 1;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string model_path() const { return folder_ + "/small.onnx"; }
  std::string write(const std::vector<std::byte>& bytes) const {
    const std::string path = folder_ + "/small.ignis";
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
    return path;
  }
  static HostTensor input() {
    std::vector<float> values;
    for (int i = 0; i < 2 * 8 * 8; ++i) values.push_back(static_cast<float>(i % 11 - 5));
    return HostTensor::from<float>(DType::Float32, {1, 2, 8, 8}, values);
  }

  std::string folder_;
  CompileOptions options_;
};

TEST_F(CompileArtifactTest, AnswersAsTheModelDoes) {
  options_.targets = {"cpu", "cpu:llvm:sse2"};
  options_.manifest["licence"] = "MIT";
  const auto compiled = compile_artifact(model_path(), options_);
  ASSERT_TRUE(compiled) << compiled.error().to_string();
  ASSERT_EQ(compiled->targets.size(), 2u);
  EXPECT_GT(compiled->targets[0].code_bytes, 0);
  EXPECT_EQ(compiled->inputs[0].shape, (Shape{1, 2, 8, 8}));
  const std::string path = write(compiled->bytes);
  const auto artifact = exec::Artifact::open(path);
  ASSERT_TRUE(artifact);
  EXPECT_EQ(artifact->manifest().at("model.name"), "small");
  EXPECT_EQ(artifact->manifest().at("licence"), "MIT");
  EXPECT_EQ(artifact->manifest().at("compiler").substr(0, 8), "llvm 19.");
  EXPECT_EQ(artifact->manifest().at("options.threads"), std::to_string(runtime::usable_threads()));
  EXPECT_EQ(artifact->manifest().at("model.blake2b").size(), 64u);

  SessionOptions reference;
  reference.device = "cpu:interp";
  reference.dims["batch"] = 1;
  auto model = Session::load(model_path(), reference);
  ASSERT_TRUE(model);
  const auto want = model->run({input()});
  for (const char* device : {"cpu", "cpu:llvm:sse2"}) {
    SCOPED_TRACE(device);
    SessionOptions options;
    options.device = device;
    auto session = Session::load(path, options);
    ASSERT_TRUE(session) << session.error().to_string();
    EXPECT_EQ(session->inputs()[0].name, "x");
    const auto got = session->run({input()});
    ASSERT_TRUE(got) << got.error().to_string();
    for (int64_t i = 0; i < got->at(0).count(); ++i) {
      EXPECT_NEAR(element_as_double(got->at(0), i), element_as_double(want->at(0), i), 1e-4);
    }
  }
}

TEST_F(CompileArtifactTest, EqualModelsGiveEqualBytes) {
  options_.session.threads = 2;  // how a kernel may be cut is part of its code
  const auto first = compile_artifact(model_path(), options_);
  const auto second = compile_artifact(model_path(), options_);
  ASSERT_TRUE(first && second);
  EXPECT_TRUE(first->bytes == second->bytes);  // not EXPECT_EQ: nobody wants to read them
}

// A machine that this one is not.
Isa foreign_isa() { return detect_host_target().arch == Arch::X86_64 ? Isa::Neon : Isa::Avx2; }

TEST_F(CompileArtifactTest, CompilesForAnotherArchitecture) {
  const std::string foreign = make_target(foreign_isa()).name();
  options_.targets = {"cpu", "cpu:llvm:" + foreign};
  options_.session.threads = 2;
  const auto compiled = compile_artifact(model_path(), options_);
  ASSERT_TRUE(compiled) << compiled.error().to_string();
  EXPECT_EQ(compiled->targets[1].name, foreign);
  const auto again = compile_artifact(model_path(), options_);
  ASSERT_TRUE(again);
  EXPECT_TRUE(compiled->bytes == again->bytes);
  const auto artifact = exec::Artifact::open(write(compiled->bytes));
  ASSERT_TRUE(artifact);
  const auto plan = artifact->plan_for(make_target(foreign_isa()));
  ASSERT_TRUE(plan) << plan.error().to_string();
  ASSERT_FALSE(plan->programs.empty());
  for (const ProgramImage& program : plan->programs) {
    // e_machine of the ELF header: 183 is EM_AARCH64, 62 EM_X86_64.
    ASSERT_GT(program.object.size(), 20u);
    EXPECT_EQ(static_cast<int>(program.object[18]), foreign_isa() == Isa::Neon ? 183 : 62);
  }
}

TEST_F(CompileArtifactTest, ArchitecturesShareEqualWeights) {
  if (detect_host_target().arch != Arch::X86_64) GTEST_SKIP() << "SSE2 is x86-64's.";
  // Both have vectors of 16 bytes, and so the same layout of the packed weights.
  const auto bytes_of = [&](std::vector<std::string> targets) {
    options_.targets = std::move(targets);
    return exec::Artifact::open(write(compile_artifact(model_path(), options_)->bytes))
        ->weight_bytes();
  };
  const uint64_t alone = bytes_of({"cpu:llvm:neon"});
  EXPECT_GT(alone, 0u);
  EXPECT_EQ(bytes_of({"cpu:llvm:sse2", "cpu:llvm:neon"}), alone);
}

// Too large to be folded by the reference: a kernel that runs when the model is loaded, or compiled.
TEST_F(CompileArtifactTest, ComputesTheConstantsOfAnotherArchitecture) {
  constexpr int64_t kRows = 300, kColumns = 256;
  std::vector<float> weights, scales, want;
  for (int64_t i = 0; i < kRows * kColumns; ++i) {
    weights.push_back(static_cast<float>(i % 251 + 1) / 8);
  }
  for (int64_t i = 0; i < kRows; ++i) scales.push_back(static_cast<float>(i % 13 + 1) / 4);
  for (int64_t i = 0; i < kRows * kColumns; ++i) {
    want.push_back(weights[static_cast<size_t>(i)] * scales[static_cast<size_t>(i / kColumns)]);
  }
  OnnxModel model(17);
  model.graph.input("x", OnnxType::Float, {8, kRows})
      .output("y", OnnxType::Float, {8, kColumns})
      .initializer(onnx_floats("w", {kRows, kColumns}, weights))
      .initializer(onnx_floats("s", {kRows, 1}, scales))
      .node(OnnxNode("Mul", {"w", "s"}, {"ws"}))
      .node(OnnxNode("MatMul", {"x", "ws"}, {"y"}));
  std::ofstream(model_path(), std::ios::binary) << model.bytes();
  options_.session.dims.clear();
  options_.targets = {"cpu:llvm:" + make_target(foreign_isa()).name()};
  const auto compiled = compile_artifact(model_path(), options_);
  ASSERT_TRUE(compiled) << compiled.error().to_string();
  const auto artifact = exec::Artifact::open(write(compiled->bytes));
  ASSERT_TRUE(artifact);
  const auto plan = artifact->plan_for(make_target(foreign_isa()));
  ASSERT_TRUE(plan);
  // The layout is the compiler's choice, so the values are compared without their order. All are exact in float32.
  std::vector<float> got;
  for (const exec::BufferPlan& buffer : plan->buffers) {
    if (buffer.role != exec::BufferRole::Constant) continue;
    const auto* values = reinterpret_cast<const float*>(buffer.constant);
    for (int64_t i = 0; i < buffer.size_bytes / 4; ++i) {
      if (values[i] != 0) got.push_back(values[i]);  // 0 is padding
    }
  }
  std::sort(got.begin(), got.end());
  std::sort(want.begin(), want.end());
  EXPECT_TRUE(got == want);
}

// SE-9: without a compiler, a file for another machine is a TargetMismatch that names both.
TEST_F(CompileArtifactTest, SE9_RefusesAnotherMachinesFile) {
  const std::string foreign = make_target(foreign_isa()).name();
  options_.targets = {"cpu:llvm:" + foreign};
  const auto compiled = compile_artifact(model_path(), options_);
  ASSERT_TRUE(compiled) << compiled.error().to_string();
  const auto session = Session::load(write(compiled->bytes));
  ASSERT_FALSE(session);
  EXPECT_EQ(session.error().code(), ErrorCode::Unsupported);
  EXPECT_EQ(session.error().reason(), "TargetMismatch");
  for (const std::string& part : {foreign, detect_host_target().name(), std::string("--target")}) {
    EXPECT_NE(session.error().message().find(part), std::string::npos) << session.error().message();
  }
}

TEST_F(CompileArtifactTest, APlanOnlyDoesNotRun) {
  SessionOptions options;
  options.dims["batch"] = 1;
  auto session = Session::compile_for(model_path(), make_target(foreign_isa()), options);
  ASSERT_TRUE(session) << session.error().to_string();
  EXPECT_EQ(session->target().isa, foreign_isa());
  ASSERT_NE(session->plan(), nullptr);
  EXPECT_GT(session->kernel_count(), 0);
  EXPECT_EQ(session->run({input()}).error().reason(), "TargetMismatch");
  EXPECT_EQ(session->run_raw(nullptr, nullptr).error().reason(), "TargetMismatch");
  const auto each = [](KernelComparison) { return Status(); };
  EXPECT_EQ(session->compare_kernels({input()}, each).error().reason(), "TargetMismatch");
  options.taps = {"c"};
  EXPECT_EQ(
      Session::compile_for(model_path(), make_target(foreign_isa()), options).error().reason(),
      "WrongOption");
}

TEST_F(CompileArtifactTest, SaysWhatDoesNotGo) {
  options_.targets = {"cpu:llvm:aarch64-sve"};
  EXPECT_EQ(compile_artifact(model_path(), options_).error().reason(), "UnknownFeature");
  options_.targets = {"cpu:llvm:x86_64-neon"};
  EXPECT_EQ(compile_artifact(model_path(), options_).error().reason(), "UnknownFeature");
  options_.targets = {"cpu:interp"};
  EXPECT_EQ(compile_artifact(model_path(), options_).error().reason(), "TargetMismatch");
  options_.targets = {"cpu:llvm:sse2", "cpu:c:sse2"};
  EXPECT_EQ(compile_artifact(model_path(), options_).error().reason(), "DuplicateTarget");
  options_.targets = {};
  EXPECT_FALSE(compile_artifact(model_path(), options_));
  options_.targets = {"cpu"};
  const auto compiled = compile_artifact(model_path(), options_);
  ASSERT_TRUE(compiled);
  const std::string path = write(compiled->bytes);
  SessionOptions bound;
  bound.dims["batch"] = 1;
  EXPECT_EQ(Session::load(path, bound).error().reason(), "WrongOption");
  SessionOptions reference;
  reference.device = "cpu:interp";
  EXPECT_EQ(Session::load(path, reference).error().reason(), "TargetMismatch");
  auto session = Session::load(path);
  ASSERT_TRUE(session);
  const auto each = [](KernelComparison) { return Status(); };
  EXPECT_EQ(session->compare_kernels({input()}, each).error().reason(), "NoGraph");
}

// What the file carries is checked by what a vehicle has: no graph, no compiler.
TEST_F(CompileArtifactTest, CarriesGoldenDataThatItsProgramMeets) {
  const auto compiled = compile_artifact(model_path(), options_);
  ASSERT_TRUE(compiled) << compiled.error().to_string();
  const int64_t bytes = 4 * (2 * 8 * 8 + 16 * 8 * 8);
  EXPECT_EQ(compiled->golden_bytes, bytes);
  const auto artifact = exec::Artifact::open(write(compiled->bytes));
  ASSERT_TRUE(artifact);
  auto golden = artifact->golden();
  ASSERT_TRUE(golden) << golden.error().to_string();
  ASSERT_EQ(golden->size(), 1u);
  exec::GoldenCase& one = golden->front();
  EXPECT_EQ(one.source, "cpu:interp");
  EXPECT_EQ(one.size_bytes(), bytes);
  // y = relu(conv(x, w)) at one place, by hand: channel 3, row 4, column 5.
  double sum = 0;
  for (int channel = 0; channel < 2; ++channel) {
    for (int row = 0; row < 3; ++row) {
      for (int column = 0; column < 3; ++column) {
        const int weight = ((3 * 2 + channel) * 3 + row) * 3 + column;
        const int pixel = (channel * 8 + 4 + row - 1) * 8 + 5 + column - 1;
        sum += (weight % 7 - 3) / 4.0 * element_as_double(one.inputs[0].value, pixel);
      }
    }
  }
  EXPECT_NEAR(element_as_double(one.outputs[0].value, (3 * 8 + 4) * 8 + 5), std::max(sum, 0.0),
              1e-5);

  const auto device = runtime::open_device("cpu");
  ASSERT_TRUE(device);
  auto plan = artifact->plan_for((*device)->target());
  ASSERT_TRUE(plan);
  auto program = exec::Model::create(*std::move(plan), *device);
  ASSERT_TRUE(program);
  auto outcomes = exec::check_golden(*program, one, std::chrono::seconds(10));
  ASSERT_TRUE(outcomes) << outcomes.error().to_string();
  ASSERT_EQ(outcomes->size(), 1u);
  EXPECT_EQ(outcomes->front().output, "y");
  EXPECT_TRUE(exec::has_passed(*outcomes));
  // One value moved beyond the tolerance is found, and where.
  store_element(one.outputs[0].value, 77, element_as_double(one.outputs[0].value, 77) + 1);
  outcomes = exec::check_golden(*program, one, std::chrono::seconds(10));
  ASSERT_TRUE(outcomes);
  EXPECT_FALSE(exec::has_passed(*outcomes));
  EXPECT_EQ(outcomes->front().comparison.worst, 77);
  EXPECT_EQ(outcomes->front().comparison.beyond, 1);
  one.inputs[0].value = HostTensor::zeros(DType::Float32, {1, 2, 8, 9});
  EXPECT_EQ(exec::check_golden(*program, one, std::chrono::seconds(10)).error().reason(),
            "GoldenMisfit");
  one.inputs.clear();
  EXPECT_EQ(exec::check_golden(*program, one, std::chrono::seconds(10)).error().reason(),
            "GoldenMisfit");
}

TEST_F(CompileArtifactTest, GoldenDataIsBoundedGivenOrOff) {
  using Mode = GoldenOptions::Mode;
  options_.golden.mode = Mode::Off;
  auto compiled = compile_artifact(model_path(), options_);
  ASSERT_TRUE(compiled);
  EXPECT_EQ(compiled->golden_bytes, 0);
  EXPECT_FALSE(compiled->golden_note.empty());
  options_.golden.mode = Mode::Auto;
  options_.golden.max_bytes = 100;
  compiled = compile_artifact(model_path(), options_);
  ASSERT_TRUE(compiled);
  EXPECT_EQ(compiled->golden_bytes, 0);
  EXPECT_NE(compiled->golden_note.find("4608 bytes"), std::string::npos) << compiled->golden_note;
  options_.golden.mode = Mode::On;
  EXPECT_EQ(compile_artifact(model_path(), options_).error().reason(), "GoldenTooLarge");
  options_.golden = {};
  options_.golden.max_flops = 10;
  compiled = compile_artifact(model_path(), options_);
  ASSERT_TRUE(compiled);
  EXPECT_EQ(compiled->golden_bytes, 0);

  // Given answers are held against the program at once.
  options_.golden = {};
  options_.golden.inputs["x"] = input();
  options_.golden.outputs["y"] = HostTensor::zeros(DType::Float32, {1, 16, 8, 8});
  EXPECT_EQ(compile_artifact(model_path(), options_).error().reason(), "GoldenMismatch");
  options_.golden.tolerance = [](const std::string&, Tolerance) { return Tolerance{1e6, 0, -1}; };
  EXPECT_TRUE(compile_artifact(model_path(), options_));
  options_.golden.outputs["z"] = input();
  EXPECT_EQ(compile_artifact(model_path(), options_).error().reason(), "GoldenMisfit");
  options_.golden = {};
  options_.golden.inputs["x"] = HostTensor::zeros(DType::Float32, {1, 2, 8, 9});
  EXPECT_EQ(compile_artifact(model_path(), options_).error().reason(), "GoldenMisfit");
}

TEST_F(CompileArtifactTest, SlicesAndStatePairsAreOfRealPorts) {
  options_.slices = {{"y", "head", 1000, 1024, exec::DecodeKind::Logit, true}};
  auto compiled = compile_artifact(model_path(), options_);
  ASSERT_TRUE(compiled) << compiled.error().to_string();
  EXPECT_EQ(exec::Artifact::open(write(compiled->bytes))->slices(), options_.slices);
  options_.slices[0].stop = 1025;
  EXPECT_EQ(compile_artifact(model_path(), options_).error().reason(), "SliceOutOfRange");
  options_.slices.clear();
  options_.state_pairs = {{"x", "y", 0}};
  EXPECT_EQ(compile_artifact(model_path(), options_).error().reason(), "StatePairMisfit");
}

TEST_F(CompileArtifactTest, AnOpenArtifactIsNotOpenedAgain) {
  const auto compiled = compile_artifact(model_path(), options_);
  ASSERT_TRUE(compiled);
  const std::string path = write(compiled->bytes);
  const auto artifact = exec::Artifact::open(path);
  ASSERT_TRUE(artifact);
  std::filesystem::remove(path);
  auto session = Session::from_artifact(*artifact, path);
  ASSERT_TRUE(session) << session.error().to_string();
  EXPECT_TRUE(session->run({input()}));
  EXPECT_EQ(Session::from_artifact(*artifact, path, {}, "warp").error().reason(), "NoPart");
}

}  // namespace
}  // namespace ignis
