#include "ignis/pipeline/frames/synthetic.h"

#include "ignis/base/check.h"
#include "ignis/pipeline/frames/frame_pool.h"
#include "ignis/pipeline/frames/layout.h"
#include "ignis/pipeline/frames/synthetic_scene.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <optional>
#include <thread>
#include <utility>

namespace ignis::pipeline {
namespace {

/// From the start of a frame's exposure to its hand-over.
constexpr uint64_t kReadoutNs = 15'000'000;
constexpr uint64_t kClockJumpNs = 2'000'000'000;
constexpr uint32_t kIdStepBack = 40;
constexpr int kMinSidePx = 64;
/// The path of the head, in pixels of camera A.
constexpr double kSwayXPx = 8, kSwayYPx = 5, kSwayXPeriodS = 7, kSwayYPeriodS = 11;
/// Frames that readers may hold at once.
constexpr size_t kBufferLimit = 32;

/// A position in the scenario.
struct Moment {
  const Spell* spell = nullptr;
  int64_t spell_index = 0;
  int64_t spell_start_tick = 0;
  double gain = 1;
};

Moment find_moment(const Scenario& scenario, int64_t tick) {
  const int64_t period = scenario.tick_count();
  Moment moment;
  moment.spell_start_tick = tick / period * period;
  moment.spell_index = tick / period * static_cast<int64_t>(scenario.spells.size());
  for (const Spell& spell : scenario.spells) {
    const int64_t at = tick - moment.spell_start_tick;
    if (at < spell.tick_count) {
      moment.spell = &spell;
      moment.gain = spell.gain_begin + (spell.gain_end - spell.gain_begin) *
                                           static_cast<double>(at) / spell.tick_count;
      return moment;
    }
    moment.spell_start_tick += spell.tick_count;
    ++moment.spell_index;
  }
  IGNIS_CHECK(false) << "tick" << tick << "lies in no spell";
  return moment;
}

/// The picture's shift at a time: even, so that chroma moves by whole samples.
int sway_px(double amplitude_px, double period_s, double time_s, double phase, double scale) {
  const double shift =
      amplitude_px * scale * std::sin(2 * std::numbers::pi * time_s / period_s + phase);
  return 2 * static_cast<int>(std::lround(shift / 2));
}

/// The overwritten frame's owner: keeps the memory, and says that it is not intact.
class TornMemory final : public FrameMemory {
 public:
  explicit TornMemory(std::shared_ptr<const FrameMemory> memory) : memory_(std::move(memory)) {}
  bool is_intact() const override { return false; }

 private:
  std::shared_ptr<const FrameMemory> memory_;
};

Result<FrameLayout> layout_for(int width_px, int height_px, PixelFormat format) {
  if (width_px < kMinSidePx || height_px < kMinSidePx) {
    return Error(ErrorCode::InvalidArgument,
                 "A synthetic frame of " + std::to_string(width_px) + "x" +
                     std::to_string(height_px) + " is too small; each side has at least " +
                     std::to_string(kMinSidePx) + " pixels.",
                 "FrameSize");
  }
  return format == PixelFormat::Nv12 ? nv12_layout(width_px, height_px)
                                     : i420_layout(width_px, height_px);
}

Status check_portrait(const Portrait& portrait) {
  constexpr int kMaxSidePx = 8192;
  const int64_t needed = int64_t{3} * portrait.width_px * portrait.height_px;
  if (portrait.width_px < 16 || portrait.height_px < 16 || portrait.width_px > kMaxSidePx ||
      portrait.height_px > kMaxSidePx || std::cmp_not_equal(portrait.rgb.size(), needed)) {
    return Error(ErrorCode::InvalidArgument,
                 "The portrait says " + std::to_string(portrait.width_px) + "x" +
                     std::to_string(portrait.height_px) + " and has " +
                     std::to_string(portrait.rgb.size()) +
                     " bytes of RGB; a side has 16 to 8192 pixels, each of three bytes.",
                 "BadPortrait");
  }
  const auto is_inside = [&](double x, double y) {  // false for NaN as well
    return x >= 0 && y >= 0 && x < portrait.width_px && y < portrait.height_px;
  };
  const double distance = std::hypot(portrait.right_eye_x_px - portrait.left_eye_x_px,
                                     portrait.right_eye_y_px - portrait.left_eye_y_px);
  if (!is_inside(portrait.left_eye_x_px, portrait.left_eye_y_px) ||
      !is_inside(portrait.right_eye_x_px, portrait.right_eye_y_px) || distance < 4) {
    return Error(ErrorCode::InvalidArgument,
                 "The eyes lie outside the portrait of " + std::to_string(portrait.width_px) + "x" +
                     std::to_string(portrait.height_px) + ", or less than 4 pixels apart.",
                 "BadPortrait");
  }
  return Status::ok();
}

}  // namespace

struct SyntheticSource::State {
  struct View {
    FrameLayout layout;
    std::unique_ptr<SyntheticScene> scene;  ///< null: the scenario does not need this size
    PortraitPlacement placement;
  };

  SyntheticOptions options;
  Scenario scenario;
  double eyes_x_px = 0, eyes_y_px = 0, eye_distance_px = 0;  ///< in a portrait of 512 columns
  std::vector<View> views;  ///< the asked-for size; the other camera's
  FramePool pool{kBufferLimit};
  uint64_t period_ns = 50'000'000;
  int64_t end_tick = 0;  ///< 0: none
  uint64_t start_ns = 0;
  int64_t next_tick = 0;
  std::optional<Frame> ready;  ///< drawn ahead, of next_tick
  Frame last;                  ///< for Repeat
  uint64_t last_sof_ns = 0;
  uint64_t dropped = 0;

  size_t view_of(const Spell& spell) const {
    return spell.fault == CameraFault::SizeChange ? 1 : 0;
  }
  double time_s(int64_t tick) const { return static_cast<double>(tick) / options.rate_hz; }
  int shift_x_px(int64_t tick, const View& view) const {
    return sway_px(kSwayXPx, kSwayXPeriodS, time_s(tick), phase(0), view.placement.scale());
  }
  int shift_y_px(int64_t tick, const View& view) const {
    return sway_px(kSwayYPx, kSwayYPeriodS, time_s(tick), phase(1), view.placement.scale());
  }
  double phase(int axis) const {
    return std::fmod(static_cast<double>(options.seed % 1000) * (axis == 0 ? 0.7 : 1.3), 6.28);
  }
  bool is_over(int64_t tick) const { return end_tick > 0 && tick >= end_tick; }
  uint64_t sof_ns(int64_t tick) const { return start_ns + static_cast<uint64_t>(tick) * period_ns; }

  Result<Frame> draw(int64_t tick);
  void stamp(Frame& frame, int64_t tick, uint64_t now_ns);
};

/// The pixels of a tick; no times yet.
Result<Frame> SyntheticSource::State::draw(int64_t tick) {
  const Moment moment = find_moment(scenario, tick);
  const View& view = views[view_of(*moment.spell)];
  IGNIS_TRY_ASSIGN(WritableFrame writable, pool.acquire(view.layout));
  SyntheticScene::Exposure exposure;
  exposure.shown = moment.spell->shown;
  exposure.shift_x_px = shift_x_px(tick, view);
  exposure.shift_y_px = shift_y_px(tick, view);
  exposure.gain = moment.gain;
  exposure.noise_sigma = scenario.noise_sigma;
  exposure.noise_seed = options.seed * 0x100000001b3u + static_cast<uint64_t>(tick);
  view.scene->render(exposure, view.layout, writable.bytes);

  Frame frame = std::move(writable.frame);
  const uint32_t id = options.first_frame_id + static_cast<uint32_t>(tick);
  frame.info.frame_id = moment.spell->fault == CameraFault::IdBackwards ? id - kIdStepBack : id;
  frame.info.valid = moment.spell->fault != CameraFault::InvalidFlag;
  if (moment.spell->fault == CameraFault::Overwritten) {
    frame.memory = std::make_shared<TornMemory>(std::move(frame.memory));
  }
  return frame;
}

void SyntheticSource::State::stamp(Frame& frame, int64_t tick, uint64_t now_ns) {
  // Without pacing the frames come faster than they could be exposed: each is as new as can be.
  uint64_t sof = options.pace == Pace::Fast ? now_ns - kReadoutNs : sof_ns(tick);
  if (options.pace == Pace::Fast) sof = std::max(sof, last_sof_ns + 1);
  last_sof_ns = sof;
  const CameraFault fault = find_moment(scenario, tick).spell->fault;
  if (fault == CameraFault::ClockBack) sof -= std::min(sof, kClockJumpNs);
  if (fault == CameraFault::ClockAhead) sof += kClockJumpNs;
  frame.info.timestamp_sof_ns = sof;
  frame.info.timestamp_eof_ns = sof + kReadoutNs;
  frame.info.receive_time_ns = now_ns;
}

SyntheticSource::SyntheticSource(std::unique_ptr<State> state) : state_(std::move(state)) {}
SyntheticSource::~SyntheticSource() = default;

Result<std::unique_ptr<SyntheticSource>> SyntheticSource::create(const Portrait& portrait,
                                                                 const SyntheticOptions& options) {
  IGNIS_TRY(check_portrait(portrait));
  auto state = std::make_unique<State>();
  IGNIS_TRY_ASSIGN(state->scenario, find_scenario(options.scenario));
  if (!(options.rate_hz >= 1 && options.rate_hz <= 240) ||
      !(options.duration_s >= 0 && options.duration_s <= 1e6)) {
    return Error(ErrorCode::InvalidArgument,
                 "A synthetic source of " + std::to_string(options.rate_hz) + " Hz for " +
                     std::to_string(options.duration_s) +
                     " s is refused; the rate is 1 to 240 Hz, the duration 0 (for ever) to 1e6 s.",
                 "BadRate");
  }
  state->options = options;
  state->period_ns = static_cast<uint64_t>(std::llround(1e9 / options.rate_hz));
  if (options.duration_s > 0) {
    state->end_tick = std::max<int64_t>(1, std::llround(options.duration_s * options.rate_hz));
  }
  const double to_512 = 512.0 / portrait.width_px;
  state->eyes_x_px = to_512 * (portrait.left_eye_x_px + portrait.right_eye_x_px) / 2;
  state->eyes_y_px = to_512 * (portrait.left_eye_y_px + portrait.right_eye_y_px) / 2;
  state->eye_distance_px = to_512 * std::hypot(portrait.right_eye_x_px - portrait.left_eye_x_px,
                                               portrait.right_eye_y_px - portrait.left_eye_y_px);

  const bool is_b = options.width_px == 1344 && options.height_px == 760;
  const std::pair<int, int> sizes[] = {{options.width_px, options.height_px},
                                       is_b ? std::pair{1928, 1208} : std::pair{1344, 760}};
  for (size_t i = 0; i < 2; ++i) {
    const auto [width_px, height_px] = sizes[i];
    IGNIS_TRY_ASSIGN(const FrameLayout layout, layout_for(width_px, height_px, options.format));
    std::array<bool, kShownCount> shown{};
    for (const Spell& spell : state->scenario.spells) {
      if (state->view_of(spell) == i) shown[static_cast<size_t>(spell.shown)] = true;
    }
    State::View view{layout, nullptr, PortraitPlacement(width_px, height_px, options.side)};
    if (std::find(shown.begin(), shown.end(), true) != shown.end()) {
      view.scene = std::make_unique<SyntheticScene>(portrait, width_px, height_px, options.side,
                                                    options.format, shown);
    }
    state->views.push_back(std::move(view));
  }
  return std::unique_ptr<SyntheticSource>(new SyntheticSource(std::move(state)));
}

Result<Frame> SyntheticSource::receive(std::chrono::nanoseconds timeout) {
  State& s = *state_;
  const uint64_t called_ns = monotonic_ns();
  const uint64_t limit_ns = static_cast<uint64_t>(std::max<int64_t>(0, timeout.count()));
  if (s.start_ns == 0) s.start_ns = called_ns;

  const auto is_late = [&](int64_t tick) {
    return s.options.pace != Pace::Fast && s.sof_ns(tick + 1) + kReadoutNs <= called_ns;
  };
  // What nobody fetched is gone; a stopped camera makes nothing that could be lost.
  for (;;) {
    if (s.is_over(s.next_tick)) {
      return Error(ErrorCode::NotFound, describe() + " is at its end.", "EndOfStream");
    }
    const bool is_stopped = find_moment(s.scenario, s.next_tick).spell->fault == CameraFault::Stop;
    if (is_late(s.next_tick) && (is_stopped || s.options.pace == Pace::RealTime)) {
      if (!is_stopped) ++s.dropped;
    } else if (!is_stopped || s.options.pace != Pace::Fast) {
      break;
    }
    s.ready.reset();
    ++s.next_tick;
  }

  int64_t tick = s.next_tick;
  while (find_moment(s.scenario, tick).spell->fault == CameraFault::Stop) ++tick;
  const bool is_repeated =
      find_moment(s.scenario, tick).spell->fault == CameraFault::Repeat && s.last.memory != nullptr;
  // Drawn before the wait, so that the frame is there at its time. A frame far ahead is not: it would hold memory.
  if (!is_repeated && !s.ready && tick == s.next_tick) {
    IGNIS_TRY_ASSIGN(s.ready, s.draw(tick));
  }
  if (s.options.pace != Pace::Fast) {
    const uint64_t due_ns = s.sof_ns(tick) + kReadoutNs;
    const uint64_t now_ns = monotonic_ns();
    if (due_ns > called_ns + limit_ns) {
      if (now_ns < called_ns + limit_ns) {
        std::this_thread::sleep_for(std::chrono::nanoseconds(called_ns + limit_ns - now_ns));
      }
      return Error(ErrorCode::Timeout, "No frame came from " + describe() + " within " +
                                           std::to_string(limit_ns / 1'000'000) + " ms.");
    }
    if (due_ns > now_ns) std::this_thread::sleep_for(std::chrono::nanoseconds(due_ns - now_ns));
    // Only without dropping can it be late by a frame: the rest moves along, so that ages stay true.
    if (is_late(tick)) s.start_ns += now_ns - due_ns;
  }
  s.next_tick = tick + 1;
  if (is_repeated) {
    s.last.info.receive_time_ns = monotonic_ns();
    return s.last;
  }
  if (!s.ready) {
    IGNIS_TRY_ASSIGN(s.ready, s.draw(tick));
  }
  Frame frame = std::move(*s.ready);
  s.ready.reset();
  s.stamp(frame, tick, monotonic_ns());
  // Only where the next frame may be asked to be this one again: a kept frame is a buffer less.
  const bool is_repeat_next = find_moment(s.scenario, tick + 1).spell->fault == CameraFault::Repeat;
  s.last = is_repeat_next ? frame : Frame{};
  return frame;
}

uint64_t SyntheticSource::dropped_count() const { return state_->dropped; }

std::string SyntheticSource::describe() const {
  const SyntheticOptions& options = state_->options;
  return "synthetic:" + options.scenario + " (" + std::to_string(options.width_px) + "x" +
         std::to_string(options.height_px) + ")";
}

SyntheticTruth SyntheticSource::truth(uint32_t frame_id) const {
  const State& s = *state_;
  const auto tick = static_cast<int64_t>(frame_id - s.options.first_frame_id);
  const Moment moment = find_moment(s.scenario, tick);
  const State::View& view = s.views[s.view_of(*moment.spell)];
  SyntheticTruth truth;
  truth.shown = moment.spell->shown;
  truth.fault = moment.spell->fault;
  truth.spell_index = moment.spell_index;
  truth.gain = moment.gain;
  truth.has_face = moment.spell->shown != Shown::Empty;
  truth.are_eyes_closed = moment.spell->shown == Shown::EyesClosed;
  truth.has_glasses = moment.spell->shown == Shown::Glasses;
  truth.width_px = view.layout.width_px;
  truth.height_px = view.layout.height_px;
  view.placement.to_frame(s.eyes_x_px, s.eyes_y_px, truth.face_x_px, truth.face_y_px);
  truth.face_x_px += s.shift_x_px(tick, view);
  truth.face_y_px += s.shift_y_px(tick, view);
  double x0 = 0, y0 = 0, x1 = 0, y1 = 0;
  view.placement.to_frame(0, 0, x0, y0);
  view.placement.to_frame(s.eye_distance_px, 0, x1, y1);
  truth.eye_distance_px = std::abs(x1 - x0);
  return truth;
}

const Scenario& SyntheticSource::scenario() const { return state_->scenario; }

double SyntheticSource::scenario_duration_s() const {
  return static_cast<double>(state_->scenario.tick_count()) / state_->options.rate_hz;
}

}  // namespace ignis::pipeline
