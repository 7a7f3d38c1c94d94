#pragma once

#include "ignis/pipeline/frames/layout.h"
#include "ignis/pipeline/road/runner.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <cstring>
#include <limits>
#include <memory>
#include <mutex>
#include <set>
#include <stdexcept>
#include <vector>

namespace ignis::pipeline::testing {

/// What a fake model is to do, and what happened to it. Shared between the test and the helper thread.
class FakeScript {
 public:
  enum class Act : uint8_t { Answer, Hang, Error, Timeout, Throw, Nan, Infinity };

  Act load_act = Act::Answer, run_act = Act::Answer, destroy_act = Act::Answer;
  int bad_run = -1;  ///< the run, counted from the load on, that run_act is for; -1: none
  RoadContract contract;
  float value = 1;  ///< outputs begin with it; then the number of runs since the last reset

  /// Ends every hang, now and later.
  void release() {
    const std::lock_guard lock(mutex_);
    is_released_ = true;
    released_.notify_all();
  }
  void hang() {
    std::unique_lock lock(mutex_);
    ++hanging_;
    released_.notify_all();
    released_.wait(lock, [this] { return is_released_; });
    --hanging_;
    released_.notify_all();
  }
  void wait_until_nobody_hangs() {
    std::unique_lock lock(mutex_);
    released_.wait(lock, [this] { return hanging_ == 0; });
  }
  void count_run() { change(&FakeScript::runs_); }
  void count_reset() { change(&FakeScript::resets_); }
  int runs() const { return look(&FakeScript::runs_); }
  int resets() const { return look(&FakeScript::resets_); }
  int destroyed() const { return look(&FakeScript::destroyed_); }
  void count_destroyed() { change(&FakeScript::destroyed_); }

 private:
  void change(int FakeScript::* counter) {
    const std::lock_guard lock(mutex_);
    ++(this->*counter);
  }
  int look(int FakeScript::* counter) const {
    const std::lock_guard lock(mutex_);
    return this->*counter;
  }
  mutable std::mutex mutex_;
  std::condition_variable released_;
  bool is_released_ = false;
  int hanging_ = 0, runs_ = 0, resets_ = 0, destroyed_ = 0;
};

inline FrameLayout fake_layout() { return *nv12_layout(64, 48); }

inline RoadContract fake_contract(const FrameLayout& layout = fake_layout()) {
  RoadContract contract;
  contract.inputs = {
      {std::string(kTransformsInput), DType::Float32, {2, 3, 3}},
      {std::string(kDesireInput), DType::Float32, {1, 8}},
      {std::string(kTrafficInput), DType::Float32, {1, 2}},
      {std::string(kActionInput), DType::Float32, {1, 2}},
      {std::string(kFramesInput), DType::UInt8, {2, static_cast<int64_t>(road_copy_bytes(layout))}},
  };
  contract.output_count = 4;
  contract.slices = {{"answer", 0, 1, RoadDecode::Raw},
                     {"runs", 1, 2, RoadDecode::Raw},
                     {"choice", 2, 4, RoadDecode::Softmax}};
  return contract;
}

/// A model that does as its script says.
class FakeRoadModel : public RoadModel {
 public:
  explicit FakeRoadModel(std::shared_ptr<FakeScript> script) : script_(std::move(script)) {}
  ~FakeRoadModel() override {
    if (script_->destroy_act == FakeScript::Act::Hang) script_->hang();
    script_->count_destroyed();
  }
  Status load(const FrameLayout&) override {
    act(script_->load_act);
    return script_->load_act == FakeScript::Act::Error ? failure() : Status();
  }
  const RoadContract& contract() const override { return script_->contract; }
  Status run(const PackedInput& input, std::span<float> output, runtime::Deadline) override {
    const int run = script_->runs();
    script_->count_run();
    ++runs_since_reset_;
    output[0] = script_->value;
    output[1] = static_cast<float>(runs_since_reset_);
    output[2] = output[3] = 0;
    last_desire_ = read_desire(input);
    output[2] = last_desire_;
    if (run != script_->bad_run) return {};
    act(script_->run_act);
    switch (script_->run_act) {
      case FakeScript::Act::Error: return failure();
      case FakeScript::Act::Timeout:
        return Error(ErrorCode::Timeout, "The device's wait ends.", "FenceTimeout");
      case FakeScript::Act::Nan: output[3] = std::numeric_limits<float>::quiet_NaN(); break;
      case FakeScript::Act::Infinity: output[0] = std::numeric_limits<float>::infinity(); break;
      default: break;
    }
    return {};
  }
  void reset_state() override {
    runs_since_reset_ = 0;
    script_->count_reset();
  }

 private:
  void act(FakeScript::Act what) {
    if (what == FakeScript::Act::Hang) script_->hang();
    if (what == FakeScript::Act::Throw) throw std::runtime_error("out of ideas");
  }
  static Status failure() { return Error(ErrorCode::Internal, "The device is on fire."); }
  static float read_desire(const PackedInput& input) {
    float value = 0;  // element 3 of the pulse
    std::memcpy(&value, input.view(1).data() + 3 * sizeof(float), sizeof value);
    return value;
  }

  std::shared_ptr<FakeScript> script_;
  int runs_since_reset_ = 0;
  float last_desire_ = 0;
};

/// Scripts whose hangs end with the test.
class FakeRoad {
 public:
  ~FakeRoad() {
    for (const auto& script : scripts_) script->release();
    for (const auto& script : scripts_) script->wait_until_nobody_hangs();
  }
  std::shared_ptr<FakeScript> script() {
    scripts_.push_back(std::make_shared<FakeScript>());
    scripts_.back()->contract = fake_contract();
    return scripts_.back();
  }
  /// Limits that a busy machine keeps, and that a hang does not hold a test up for long.
  static RoadRunnerOptions options(std::shared_ptr<FakeScript> script, RoadTier tier) {
    RoadRunnerOptions options;
    options.tier = tier;
    options.name = "fake";
    options.run_limit = std::chrono::milliseconds(500);
    options.load_limit = std::chrono::seconds(20);
    options.close_limit = std::chrono::milliseconds(500);
    options.make_model = [script]() -> Result<std::unique_ptr<RoadModel>> {
      return std::unique_ptr<RoadModel>(std::make_unique<FakeRoadModel>(script));
    };
    return options;
  }

 private:
  std::vector<std::shared_ptr<FakeScript>> scripts_;
};

/// Runs of a load: one to warm up, three to qualify.
inline constexpr int kLoadRuns = 4;

inline RoadInput fake_input(uint32_t frame_id = 1) {
  RoadInput input;
  const FrameLayout layout = fake_layout();
  static const auto bytes = std::make_shared<std::vector<std::byte>>(
      static_cast<size_t>(layout.size_bytes), std::byte{7});
  for (Frame* frame : {&input.main, &input.wide}) {
    frame->layout = layout;
    frame->bytes = *bytes;
    frame->info.frame_id = frame_id;
    frame->info.timestamp_sof_ns = frame_id * 50'000'000ull;
  }
  input.transforms[0] = input.transforms[1] = {1, 0, 0, 0, 1, 0, 0, 0, 1};
  input.traffic_convention = {1, 0};
  input.action_t = {0.2f, 0.5f};
  return input;
}

inline runtime::Deadline in_seconds(int seconds) {
  return runtime::deadline_after(std::chrono::seconds(seconds));
}

}  // namespace ignis::pipeline::testing
