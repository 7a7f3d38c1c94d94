#include "ignis/pipeline/driver_monitoring/staged_model.h"

#include "ignis/base/float_formats.h"
#include "ignis/pipeline/frames/layout.h"
#include "ignis/runtime/device.h"

#include <cstdlib>
#include <utility>

namespace ignis::pipeline {
namespace {

using Clock = std::chrono::steady_clock;

uint64_t ns_between(Clock::time_point begin, Clock::time_point end) {
  return static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(end - begin).count());
}

Error not_bound(const std::string& why) {
  return Error(ErrorCode::InvalidArgument, why, "LayoutChanged");
}

}  // namespace

StagedModel::StagedModel(const ModelFacts& facts, StageOptions options,
                         std::unique_ptr<ProgramSource> source, Profile profile, uint32_t warp_id)
    : options_(std::move(options)),
      source_(std::move(source)),
      calibration_(std::make_shared<CalibrationMemory>()) {
  identity_.profile = to_string(profile);
  identity_.name = facts.path.substr(facts.path.find_last_of('/') + 1);
  identity_.hash = facts.digest;
  identity_.warp_id = warp_id;
  const auto checkpoint = facts.metadata.find("model_checkpoint");
  if (checkpoint != facts.metadata.end()) identity_.checkpoint = checkpoint->second;
}

Status StagedModel::load_network() {
  IGNIS_TRY_ASSIGN(std::unique_ptr<StageProgram> program, source_->make_network(network_shapes()));
  Stage network(std::move(program));
  IGNIS_TRY(check_network(network));
  network_.emplace(std::move(network));
  return {};
}

Result<Stage> StagedModel::make_stage(const WarpRequest& request) {
  IGNIS_TRY_ASSIGN(std::unique_ptr<StageProgram> program, source_->make_warp(request));
  return Stage(std::move(program));
}

bool StagedModel::is_lost() const {
  return !network_ || network_->is_lost() || (warp_ && warp_->stage.is_lost());
}

Status StagedModel::bind(const FrameLayout& layout, const Camera& camera) {
  is_bound_ = false;
  has_output_ = false;
  IGNIS_TRY(check_layout(layout, kMaxFrameBytes));
  IGNIS_TRY(check_camera(camera));
  if (camera.width_px != layout.width_px || camera.height_px != layout.height_px) {
    return Error(ErrorCode::InvalidArgument,
                 "Camera '" + camera.name + "' has " + std::to_string(camera.width_px) + "x" +
                     std::to_string(camera.height_px) + " pixels; the frames have " +
                     std::to_string(layout.width_px) + "x" + std::to_string(layout.height_px) + ".",
                 "UnknownGeometry");
  }
  warp_.reset();
  if (!network_ || network_->is_lost()) IGNIS_TRY(load_network());
  IGNIS_TRY_ASSIGN(Warp warp, make_warp(layout, camera));
  warp_.emplace(std::move(warp));
  layout_ = layout;
  camera_ = camera;

  // Shared, so that it outlives a warm-up that does not come back.
  // calloc: a page that the warp does not read costs nothing.
  const auto size = static_cast<size_t>(layout.size_bytes);
  const std::shared_ptr<std::byte> black(static_cast<std::byte*>(std::calloc(size, 1)), std::free);
  if (black == nullptr) {
    return Error(ErrorCode::OutOfMemory, "There is no room for a frame of " + std::to_string(size) +
                                             " bytes to warm up with.");
  }
  const auto outcome =
      run_bytes({black.get(), size}, {0, 0, 0}, runtime::deadline_after(options_.warm_up_limit));
  has_output_ = false;  // nothing of the warm-up is kept
  if (!outcome) {
    if (is_lost()) abandon_run(black);
    return outcome.error();
  }
  is_bound_ = true;
  return {};
}

Status StagedModel::check_frame(const Frame& frame) const {
  if (!is_bound_) return not_bound("The model is not bound to a layout.");
  if (frame.layout != layout_) {
    return not_bound("The frame is " + to_string(frame.layout) + "; the model is bound to " +
                     to_string(layout_) + ".");
  }
  if (static_cast<int64_t>(frame.bytes.size()) < layout_.size_bytes) {
    return not_bound("The frame has " + std::to_string(frame.bytes.size()) +
                     " bytes; its layout has " + std::to_string(layout_.size_bytes) + ".");
  }
  return {};
}

Result<RunTimes> StagedModel::run(const Frame& frame, const std::array<float, 3>& rpy_rad,
                                  Clock::time_point deadline) {
  has_output_ = false;
  IGNIS_TRY(check_frame(frame));
  if (is_lost()) {
    IGNIS_TRY(bind(FrameLayout(layout_), Camera(camera_)));
  }
  Result<RunTimes> times = run_bytes(frame.bytes, rpy_rad, deadline);
  if (!times && is_lost()) abandon_run(frame.memory);
  has_output_ = times.has_value();
  return times;
}

void StagedModel::abandon_run(const std::shared_ptr<const void>& bytes) {
  runtime::abandon(bytes);
  runtime::abandon(std::exchange(calibration_, std::make_shared<CalibrationMemory>()));
  if (!warp_) return;
  runtime::abandon(warp_->kept);
  warp_->stage.abandon();  // the network reads what the warp writes
}

Status StagedModel::run_warp(std::span<const std::byte> bytes, Clock::time_point deadline) {
  warp_->inputs[0] = bytes.data();
  return warp_->stage.run(warp_->inputs, deadline);
}

Result<RunTimes> StagedModel::run_bytes(std::span<const std::byte> bytes,
                                        const std::array<float, 3>& rpy_rad,
                                        Clock::time_point deadline) {
  RunTimes times;
  const Clock::time_point begin = Clock::now();
  // The device shares the host's memory: frames are read where they lie, and only this goes up.
  calibration_->floats = rpy_rad;
  const CalibrationInput calibration = calibration_input();
  const bool is_half = calibration.dtype == DType::Float16;
  for (size_t i = 0; i < 3 && is_half; ++i) {
    calibration_->halves[i] =
        static_cast<uint16_t>(encode_float(DType::Float16, static_cast<double>(rpy_rad[i])));
  }
  const Clock::time_point uploaded = Clock::now();
  IGNIS_TRY(run_warp(bytes, deadline));
  const Clock::time_point warped = Clock::now();
  std::array<const void*, 2> inputs = {warp_->stage.output(0).data(), calibration_->floats.data()};
  if (is_half) inputs[1] = calibration_->halves.data();
  if (calibration.slot == 0) std::swap(inputs[0], inputs[1]);
  IGNIS_TRY(network_->run(std::span(inputs).first(calibration.slot < 0 ? 1 : 2), deadline));
  const Clock::time_point computed = Clock::now();
  read_back(*network_);
  const Clock::time_point read = Clock::now();
  times.upload_ns = ns_between(begin, uploaded);
  times.warp_ns = ns_between(uploaded, warped);
  times.model_ns = ns_between(warped, computed);
  times.read_back_ns = ns_between(computed, read);
  return times;
}

std::span<const float> StagedModel::output() const {
  return has_output_ ? std::span<const float>(output_) : std::span<const float>();
}

Result<std::unique_ptr<Model>> make_staged_model(Profile profile, const ModelFacts& facts,
                                                 const StageOptions& options,
                                                 std::unique_ptr<ProgramSource> source) {
  IGNIS_TRY(check_profile(profile, facts.inputs, facts.outputs));
  switch (profile) {
    case Profile::Comma553: return make_comma_553(facts, options, std::move(source));
    case Profile::Comma38: return make_comma_38(facts, options, std::move(source));
    case Profile::Face: return make_face(facts, options, std::move(source));
  }
  return Error(ErrorCode::Internal, "The profile has no model.");
}

}  // namespace ignis::pipeline
