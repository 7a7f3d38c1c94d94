#pragma once

#include "ignis/pipeline/driver_monitoring/decode.h"
#include "ignis/pipeline/driver_monitoring/model.h"
#include "ignis/pipeline/driver_monitoring/slices.h"

#include <array>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

namespace ignis::pipeline {

/// What a FakeModel shall do and what was done with it; shared by the test and every model made from it. Safe from any
/// thread.
class FakeScript {
 public:
  enum class Step { Good, Fail, Timeout, DeviceLost, Throw, Hang };

  /// What the next runs do, in order; after the last one they are good.
  void add_runs(Step step, int count = 1) {
    const std::lock_guard lock(mutex_);
    for (int i = 0; i < count; ++i) runs_.push_back(step);
  }
  void add_binds(Step step, int count = 1) {
    const std::lock_guard lock(mutex_);
    for (int i = 0; i < count; ++i) binds_.push_back(step);
  }
  void add_makes(Step step, int count = 1) {
    const std::lock_guard lock(mutex_);
    for (int i = 0; i < count; ++i) makes_.push_back(step);
  }
  /// What a making of a model shall return before it makes one.
  Status next_make() {
    std::unique_lock lock(mutex_);
    return outcome(next(makes_, lock));
  }
  /// The layouts it refuses are those of this width; 0 for none.
  void refuse_width(int width_px) {
    const std::lock_guard lock(mutex_);
    refused_width_px_ = width_px;
  }
  /// Lets everything that hangs go on.
  void release() {
    const std::lock_guard lock(mutex_);
    ++releases_;
    released_.notify_all();
  }
  /// What decode() says from now on, in place of a good answer.
  void set_decoded(std::optional<Decoded> decoded) {
    const std::lock_guard lock(mutex_);
    decoded_ = decoded;
  }
  /// The values of the runs from now on, decoded as those of a two-sided model of 553 with the default slices; none: back to
  /// fake_prediction().
  void set_output(std::vector<float> output) {
    const std::lock_guard lock(mutex_);
    if (!table_) table_ = make_head_table(*default_slices(553), 553).value();
    output_ = std::move(output);
  }
  int binds_done() const {
    const std::lock_guard lock(mutex_);
    return binds_done_;
  }
  int runs_done() const {
    const std::lock_guard lock(mutex_);
    return runs_done_;
  }
  int hanging() const {
    const std::lock_guard lock(mutex_);
    return hanging_;
  }
  std::array<float, 9> last_matrix() const {
    const std::lock_guard lock(mutex_);
    return last_matrix_;
  }
  std::array<float, 3> last_rpy_rad() const {
    const std::lock_guard lock(mutex_);
    return last_rpy_rad_;
  }
  FrameLayout bound_layout() const {
    const std::lock_guard lock(mutex_);
    return bound_layout_;
  }

 private:
  friend class FakeModel;

  static Status outcome(Step step) {
    switch (step) {
      case Step::Good:
      case Step::Hang: break;
      case Step::Fail: return Error(ErrorCode::Internal, "The fake model fails as told.");
      case Step::Timeout: return Error(ErrorCode::Timeout, "The fake model is late as told.");
      case Step::DeviceLost:
        return Error(ErrorCode::DeviceLost, "The fake device is gone as told.");
      case Step::Throw: throw std::pair(1, 2);
    }
    return Status::ok();
  }
  Step next(std::deque<Step>& steps, std::unique_lock<std::mutex>& lock) {
    if (steps.empty()) return Step::Good;
    const Step step = steps.front();
    steps.pop_front();
    if (step == Step::Hang) {
      ++hanging_;
      const int before = releases_;
      released_.wait(lock, [&] { return releases_ != before; });
      --hanging_;
    }
    return step;
  }

  mutable std::mutex mutex_;
  std::condition_variable released_;
  std::deque<Step> runs_, binds_, makes_;
  int releases_ = 0, hanging_ = 0, binds_done_ = 0, runs_done_ = 0, refused_width_px_ = 0;
  std::optional<Decoded> decoded_;
  std::optional<HeadTable> table_;
  std::vector<float> output_;
  std::array<float, 9> last_matrix_{};
  std::array<float, 3> last_rpy_rad_{};
  FrameLayout bound_layout_;
};

/// What a good run says of frame `frame_id`: two sides, all fields known, each value the frame's own, so that a stale one
/// shows.
inline Prediction fake_prediction(uint32_t frame_id) {
  Prediction prediction;
  const float mark = static_cast<float>(frame_id % 64) / 128;
  prediction.left.has_lists = prediction.right.has_lists = true;
  prediction.left.face_orientation = {mark, 0.1F, 0.2F};
  prediction.left.face_orientation_std = {0.1F, 0.1F, 0.1F};
  prediction.left.face_position = {0.05F, -0.1F};
  prediction.left.face_position_std = {0.1F, 0.1F};
  prediction.right.face_orientation_std = {5.0F, 5.0F, 5.0F};
  prediction.right.face_position_std = {5.0F, 5.0F};
  prediction.left.face_prob = 0.9F;
  prediction.left.left_eye_prob = prediction.left.right_eye_prob = 0.8F;
  prediction.left.sleep_prob = mark;
  prediction.right.face_prob = 0.05F;
  prediction.wheel_on_right_prob = 0.1F;
  prediction.known_left = prediction.known_right = kAllDriverFields;
  prediction.known_wheel = true;
  return prediction;
}

/// A model that does as its script says. A run says fake_prediction() of the frame it was given.
class FakeModel final : public Model {
 public:
  explicit FakeModel(std::shared_ptr<FakeScript> script) : script_(std::move(script)) {
    identity_.profile = "fake";
    identity_.profile_version = 3;
    identity_.name = "fake.onnx";
    identity_.hash[0] = std::byte{0xA5};
    identity_.warp_id = 7;
  }
  const ModelIdentity& identity() const override { return identity_; }
  ModelIdentity& identity() { return identity_; }

  Status bind(const FrameLayout& layout, const Camera& camera) override {
    std::unique_lock lock(script_->mutex_);
    const FakeScript::Step step = script_->next(script_->binds_, lock);
    ++script_->binds_done_;
    if (layout.width_px == script_->refused_width_px_)
      return Error(ErrorCode::Unsupported, "The fake model takes no such width.");
    IGNIS_TRY(FakeScript::outcome(step));
    script_->bound_layout_ = layout;
    script_->last_matrix_ = warp_matrix(camera, 567, 720, 356);
    last_id_ = 0xDEAD;  // what the dry run leaves must never be seen
    output_ = {-1, -1};
    return Status::ok();
  }
  Result<RunTimes> run(const Frame& frame, const std::array<float, 3>& rpy_rad,
                       std::chrono::steady_clock::time_point) override {
    std::unique_lock lock(script_->mutex_);
    const FakeScript::Step step = script_->next(script_->runs_, lock);
    ++script_->runs_done_;
    script_->last_rpy_rad_ = rpy_rad;
    IGNIS_TRY(FakeScript::outcome(step));
    if (frame.layout != script_->bound_layout_)
      return Error(ErrorCode::Internal, "The fake model was not bound to this frame's layout.");
    last_id_ = frame.info.frame_id;
    output_ = {static_cast<float>(last_id_), 1};
    return RunTimes{.upload_ns = 1000,
                    .warp_ns = 2000,
                    .model_ns = 3000,
                    .read_back_ns = 4000,
                    .queue_ns = 5000,
                    .device_ns = 6000};
  }
  std::span<const float> output() const override {
    const std::lock_guard lock(script_->mutex_);
    return script_->output_.empty() ? std::span<const float>(output_) : script_->output_;
  }
  Decoded decode() const override {
    const std::lock_guard lock(script_->mutex_);
    if (script_->decoded_) return *script_->decoded_;
    if (!script_->output_.empty()) return decode_two_sided(*script_->table_, script_->output_);
    Decoded decoded;
    decoded.prediction = fake_prediction(last_id_);
    return decoded;
  }

 private:
  std::shared_ptr<FakeScript> script_;
  ModelIdentity identity_;
  uint32_t last_id_ = 0;
  std::array<float, 2> output_{};
};

}  // namespace ignis::pipeline
