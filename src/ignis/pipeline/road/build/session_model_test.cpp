#include "ignis/pipeline/road/build/session_model.h"

#include "ignis/pipeline/frames/layout.h"
#include "ignis/pipeline/road/build/synthetic_network.h"
#include "ignis/pipeline/road/host.h"
#include "ignis/pipeline/road/test_road_frame.h"
#include "ignis/tensor/tensor.h"

#include <gtest/gtest.h>

#include <cmath>

namespace ignis::pipeline {
namespace {

using tensor::Tensor;
using testing::RoadTestFrame;

runtime::Deadline in_seconds(int seconds) {
  return runtime::deadline_after(std::chrono::seconds(seconds));
}

/// A network whose every number can be told with a pencil:
/// outputs = [sum of the image's bytes / 1000, count, pulse . (0 … 7), traffic[1], action_t[0] + action_t[1]],
/// next_count = count + 1.
class PencilNetwork {
 public:
  std::vector<NamedTensor> inputs, outputs;
  PencilNetwork() : graph_(std::make_shared<ir::Graph>()) {
    const auto input = [&](std::string_view name, DType dtype, const Shape& shape) {
      const auto slot = static_cast<int64_t>(inputs.size());
      const std::string text(name);
      inputs.push_back({text, Tensor::input(graph_, slot, text, dtype, shape)});
      return inputs.back().value;
    };
    const Tensor image =
        input("image", DType::UInt8, {2, kRoadPlanes, kRoadPlaneRows, kRoadPlaneColumns});
    const Tensor action = input(kActionInput, DType::Float32, {1, 2});
    const Tensor count = input("count", DType::Float32, {1, 1});
    const Tensor pulse = input(kDesireInput, DType::Float32, {1, 8});
    const Tensor traffic = input(kTrafficInput, DType::Float32, {1, 2});
    const Tensor sum = tensor::reshape(
        tensor::cast(tensor::sum(tensor::cast(image, DType::Int32)), DType::Float32) / 1000.0f,
        {1, 1});
    const Tensor weights =
        tensor::cast(tensor::reshape(Tensor::arange(graph_, 0, 8), {1, 8}), DType::Float32);
    const auto total = [](const Tensor& x) { return tensor::reshape(tensor::sum(x), {1, 1}); };
    outputs = {{"outputs", tensor::concat({sum, count, total(pulse * weights),
                                           tensor::slice(traffic, 1, 1, 2), total(action)},
                                          1)},
               {"next_count", count + 1.0f}};
  }
  SessionModelOptions options() const {
    SessionModelOptions options;
    options.make_network = [in = inputs, out = outputs] { return Session::from_graph(in, out); };
    options.slices = {{"sum", 0, 1}, {"count", 1, 2}, {"rest", 2, 5}};
    return options;
  }

 private:
  std::shared_ptr<ir::Graph> graph_;
};

RoadInput input_of(const RoadTestFrame& frame, uint32_t frame_id) {
  RoadInput input;
  for (Frame* one : {&input.main, &input.wide}) {
    one->layout = frame.layout;
    one->bytes = frame.bytes;
    one->info.frame_id = frame_id;
  }
  input.transforms[0] = input.transforms[1] = {1, 0, 0, 0, 1, 0, 0, 0, 1};
  input.traffic_convention = {0, 1};
  input.action_t = {0.25f, 0.5f};
  return input;
}

RoadRunnerOptions runner_options(SessionModelOptions model, RoadTier tier) {
  RoadRunnerOptions options;
  options.tier = tier;
  options.run_limit = std::chrono::seconds(20);  // what is tested here is no matter of time
  options.close_limit = std::chrono::seconds(20);
  options.make_model = [model] { return make_session_model(model); };
  return options;
}

double byte_sum(const RoadTestFrame& frame, const std::array<float, 9>& matrix) {
  std::vector<std::byte> image(kRoadImageBytes);
  warp_road(frame.shape(), frame.bytes, matrix, image);
  double sum = 0;
  for (const std::byte byte : image) sum += std::to_integer<int>(byte);
  return sum;
}

TEST(SessionModel, FeedsEverythingInItsPlaceAndCarriesState) {
  const RoadTestFrame frame(640, 480);
  TierOptions tiers;
  tiers.small = runner_options(PencilNetwork().options(), RoadTier::Small);
  RoadHost host(tiers);
  const Status loaded = host.load(frame.layout);
  ASSERT_TRUE(loaded) << loaded.error().to_string();

  RoadInput input = input_of(frame, 1);
  input.transforms[1] = {0.5f, 0, 10, 0, 0.5f, 20, 0, 0, 1};
  const double expected_sum =
      (byte_sum(frame, input.transforms[0]) + byte_sum(frame, input.transforms[1])) / 1000;
  for (uint32_t run = 0; run < 6; ++run) {
    input.main.info.frame_id = run;
    input.desire[5] = run >= 3 ? 1.0f : 0.0f;
    const RoadReport report = host.run(input, in_seconds(60));
    ASSERT_TRUE(report.is_valid) << report.error_text;
    ASSERT_EQ(report.decoded.size(), 5u);
    // The sum is an exact integer below 2^31, rounded to float32 once.
    EXPECT_NEAR(report.decoded[0], expected_sum, 1e-6 * expected_sum);
    EXPECT_EQ(report.decoded[1], static_cast<float>(run)) << "warm-up left nothing";
    EXPECT_EQ(report.decoded[2], run == 3 ? 5.0f : 0.0f) << "the pulse of desire 5";
    EXPECT_EQ(report.decoded[3], 1.0f);
    EXPECT_EQ(report.decoded[4], 0.75f);
  }
}

TEST(SessionModel, TheContractFollowsTheNetworksOrder) {
  const auto model = make_session_model(PencilNetwork().options());
  ASSERT_TRUE(model);
  const FrameLayout layout = RoadTestFrame(64, 48).layout;
  const Status loaded = (*model)->load(layout);
  ASSERT_TRUE(loaded) << loaded.error().to_string();
  std::vector<std::string> names;
  for (const RoadPort& port : (*model)->contract().inputs) names.push_back(port.name);
  EXPECT_EQ(names, (std::vector<std::string>{"transforms", "action_t", "desire_pulse",
                                             "traffic_convention", "frames"}));
  EXPECT_EQ((*model)->contract().output_count, 5);
}

TEST(SessionModel, StateAdvancesWithEachRunAndResetClearsIt) {
  const RoadTestFrame frame(64, 48);
  const auto model = *make_session_model(PencilNetwork().options());
  ASSERT_TRUE(model->load(frame.layout));
  auto packed = PackedInput::create(*make_packed_layout(model->contract(), frame.layout));
  ASSERT_TRUE(packed);
  packed->write(input_of(frame, 1), {});
  std::vector<float> output(5);
  ASSERT_TRUE(model->run(*packed, output, in_seconds(60)));
  ASSERT_TRUE(model->run(*packed, output, in_seconds(60)));
  EXPECT_EQ(output[1], 1);
  model->reset_state();
  ASSERT_TRUE(model->run(*packed, output, in_seconds(60)));
  EXPECT_EQ(output[1], 0);
}

TEST(SessionModel, NetworksOfAnotherKindAreRefusedByName) {
  const RoadTestFrame frame(64, 48);
  using Change = void (*)(PencilNetwork&);
  const std::pair<Change, const char*> rows[] = {
      {[](PencilNetwork& n) { n.outputs[0].name = "output"; }, "output"},
      {[](PencilNetwork& n) { n.outputs[1].name = "next_time"; }, "next_time"},
      {[](PencilNetwork& n) {
         n.outputs[1].value = tensor::concat({n.outputs[1].value, n.outputs[1].value}, 1);
       },
       "next_count"},
      {[](PencilNetwork& n) { n.inputs[0].name = "picture"; }, "picture"},
      {[](PencilNetwork& n) { n.inputs[1].name = "nav_features"; }, "nav_features"},
      {[](PencilNetwork& n) { n.outputs[0].value = tensor::flatten(n.outputs[0].value); },
       "outputs"},
  };
  for (const auto& [change, name] : rows) {
    SCOPED_TRACE(name);
    PencilNetwork network;
    change(network);
    FencedRunner runner(runner_options(network.options(), RoadTier::Small));
    runner.start_load(frame.layout);
    EXPECT_EQ(runner.wait_loaded(in_seconds(120)).kind, RunnerState::Kind::Failed);
    EXPECT_NE(runner.fault_text().find(name), std::string::npos) << runner.fault_text();
  }
}

/// Outputs of the synthetic network over some frames.
std::vector<std::vector<float>> outputs_of(const std::string& device, int frames) {
  SyntheticNetworkOptions network;
  network.device = device;
  network.channels = 4;
  SessionModelOptions model;
  model.make_network = [network] { return make_synthetic_network(network); };
  model.slices = synthetic_slices();
  TierOptions tiers;
  tiers.small = runner_options(model, RoadTier::Small);
  tiers.small.qualification_runs = 0;  // the reference device takes its time
  RoadHost host(tiers);
  const RoadTestFrame frame(640, 480);
  const Status loaded = host.load(frame.layout);
  EXPECT_TRUE(loaded) << loaded.error().to_string();
  std::vector<std::vector<float>> all;
  for (int i = 0; loaded && i < frames; ++i) {
    RoadInput input = input_of(frame, static_cast<uint32_t>(i));
    input.transforms[0][2] = static_cast<float>(10 * i);  // the picture moves
    input.desire[3] = i == 1 ? 1.0f : 0.0f;
    const RoadReport report = host.run(input, in_seconds(60));
    EXPECT_TRUE(report.is_valid) << report.error_text;
    all.emplace_back(report.decoded.begin(), report.decoded.end());
  }
  return all;
}

// float32 sums of up to 192 products, in another order: far below 1e-4 of values around 1.
TEST(SyntheticNetwork, AgreesWithTheReferenceFrameByFrame) {
  const auto got = outputs_of("cpu", 3), want = outputs_of("cpu:interp", 3);
  ASSERT_EQ(got.size(), want.size());
  for (size_t frame = 0; frame < got.size(); ++frame) {
    ASSERT_EQ(got[frame].size(), 48u);
    ASSERT_EQ(want[frame].size(), 48u);
    for (size_t i = 0; i < 48; ++i) {
      EXPECT_NEAR(got[frame][i], want[frame][i], 1e-4 * (1 + std::abs(want[frame][i])))
          << frame << ", " << i;
    }
    double sum = 0;
    for (size_t i = 40; i < 48; ++i) sum += got[frame][i];
    EXPECT_NEAR(sum, 1, 1e-6) << "desire_state is a softmax";
  }
  EXPECT_NE(got[0], got[1]);
}

}  // namespace
}  // namespace ignis::pipeline
