#include "tools/ignis/dm/replay.h"

#include "ignis/pipeline/messages/log.h"

#include "tools/ignis/exit_code.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <utility>

namespace ignis::tools {
namespace {

using pipeline::DriverData;
using pipeline::Reason;
using pipeline::Reasons;

std::string number_text(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.7g", value);
  return text;
}

/// Gathers the differences of one frame.
class Comparison {
 public:
  Comparison(uint32_t frame_id, double tolerance, std::vector<Difference>& out)
      : frame_id_(frame_id), tolerance_(tolerance), out_(out) {}

  void add(const std::string& field, float logged, float computed) {
    if (std::isnan(logged) && std::isnan(computed)) return;
    const double a = static_cast<double>(logged), b = static_cast<double>(computed);
    if (a == b || std::fabs(a - b) <= tolerance_ * std::max(1.0, std::fabs(a))) return;
    out_.push_back({frame_id_, field, number_text(a), number_text(b)});
  }
  void add(const std::string& field, const std::string& logged, const std::string& computed) {
    if (logged != computed) out_.push_back({frame_id_, field, logged, computed});
  }
  template <size_t N>
  void add(const std::string& field, const std::array<float, N>& logged,
           const std::array<float, N>& computed) {
    for (size_t i = 0; i < N; ++i)
      add(field + "[" + std::to_string(i) + "]", logged[i], computed[i]);
  }
  void add_side(const std::string& side, const DriverData& logged, const DriverData& computed) {
    const auto lists = [](const DriverData& d) {
      return std::string(d.has_lists ? "3, 3, 2 and 2 values" : "empty");
    };
    add(side + ".lists", lists(logged), lists(computed));
    if (logged.has_lists && computed.has_lists) {
      add(side + ".faceOrientation", logged.face_orientation, computed.face_orientation);
      add(side + ".faceOrientationStd", logged.face_orientation_std, computed.face_orientation_std);
      add(side + ".facePosition", logged.face_position, computed.face_position);
      add(side + ".facePositionStd", logged.face_position_std, computed.face_position_std);
    }
    constexpr std::pair<const char*, float DriverData::*> kProbabilities[] = {
        {"faceProb", &DriverData::face_prob},
        {"leftEyeProb", &DriverData::left_eye_prob},
        {"rightEyeProb", &DriverData::right_eye_prob},
        {"leftBlinkProb", &DriverData::left_blink_prob},
        {"rightBlinkProb", &DriverData::right_blink_prob},
        {"sunglassesProb", &DriverData::sunglasses_prob},
        {"phoneProb", &DriverData::phone_prob},
        {"sleepProb", &DriverData::sleep_prob}};
    for (const auto& [name, value] : kProbabilities)
      add(side + "." + name, logged.*value, computed.*value);
  }
  void add_raw(std::span<const std::byte> logged, std::span<const std::byte> computed) {
    if (logged.empty() || computed.empty()) return;
    add("rawPredictions", std::to_string(logged.size()) + " bytes",
        std::to_string(computed.size()) + " bytes");
    if (logged.size() != computed.size()) return;
    for (size_t at = 0; at + sizeof(float) <= logged.size(); at += sizeof(float)) {
      float a = 0, b = 0;
      std::memcpy(&a, logged.data() + at, sizeof a);
      std::memcpy(&b, computed.data() + at, sizeof b);
      add("rawPredictions[" + std::to_string(at / sizeof(float)) + "]", a, b);
    }
  }

 private:
  uint32_t frame_id_;
  double tolerance_;
  std::vector<Difference>& out_;
};

Error not_a_log(const std::string& path, const std::string& why) {
  return Error(ErrorCode::InvalidArgument, "'" + path + "' is no log of ignis dm: " + why, "File");
}

/// What happened to the frame and will not happen again.
bool is_repeatable(const LoggedTurn& turn) {
  const Reasons unrepeatable = Reasons(Reason::FrameOverwritten) | Reason::RunFailed |
                               Reason::RunTimeout | Reason::ModelUnavailable |
                               Reason::LayoutChanged;
  return !turn.quality || (turn.quality->reasons & unrepeatable).is_empty();
}

/// Companions in their order; a state's own is the next one with its frame id. Companions alone (no frame came) are skipped.
Status add_companions(const std::string& path, ReplayLog& log) {
  auto reader = pipeline::LogReader::open(pipeline::quality_log_path(path));
  if (!reader) {
    if (reader.error().code() == ErrorCode::NotFound) return Status::ok();
    return std::move(reader).error();
  }
  log.has_companions = true;
  size_t turn = 0;
  for (;;) {
    const auto message = reader->next();
    if (!message)
      return Status::ok();  // what is there counts; the events decide how long the log is
    const auto quality = pipeline::decode_quality(*message);
    if (!quality) continue;
    if (quality->reasons.has(Reason::FrameTimeout)) continue;
    // One that is missing (a full disk) must not shift all that follow.
    size_t at = turn;
    while (at < log.turns.size() && at < turn + 1000 &&
           log.turns[at].event.state.frame_id != quality->frame_id) {
      ++at;
    }
    if (at >= log.turns.size() || log.turns[at].event.state.frame_id != quality->frame_id) continue;
    log.turns[at].quality = *quality;
    turn = at + 1;
  }
}

}  // namespace

std::string Difference::to_string() const {
  return "frame " + std::to_string(frame_id) + ": " + field + " is " + computed + ", the log has " +
         logged;
}

Result<ReplayLog> read_replay_log(const std::string& path) {
  auto reader = pipeline::LogReader::open(path);
  if (!reader) {
    if (reader.error().code() == ErrorCode::NotFound) return as_file(std::move(reader).error());
    return not_a_log(path, reader.error().message());
  }
  ReplayLog log;
  std::vector<pipeline::Calibration> calibrations;
  for (;;) {
    const auto message = reader->next();
    if (!message) {
      const std::string& reason = message.error().reason();
      if (reason == "EndOfLog") break;
      if (log.turns.empty()) return not_a_log(path, message.error().message());
      log.note = message.error().message();
      break;
    }
    const auto kind = pipeline::kind_of_event(*message);
    if (!kind) {
      if (log.turns.empty()) return not_a_log(path, kind.error().message());
      log.note = kind.error().message();
      break;
    }
    if (*kind == pipeline::EventKind::Calibration) {
      auto calibration = pipeline::decode_calibration(*message);
      if (calibration) calibrations.push_back(*std::move(calibration));
    } else if (*kind == pipeline::EventKind::DriverState) {
      auto event = pipeline::decode_driver_state(*message);
      if (!event) return not_a_log(path, event.error().message());
      log.turns.push_back({*std::move(event), std::nullopt, std::exchange(calibrations, {})});
    }
  }
  if (log.turns.empty()) return not_a_log(path, "it holds no driverStateV2.");
  IGNIS_TRY(add_companions(path, log));
  return log;
}

void compare_states(const pipeline::StateEvent& logged, const pipeline::DriverState& computed,
                    bool is_computed_valid, double tolerance,
                    std::vector<Difference>& differences) {
  Comparison compare(logged.state.frame_id, tolerance, differences);
  const auto word = [](bool is_valid) { return std::string(is_valid ? "true" : "false"); };
  compare.add("frameId", std::to_string(logged.state.frame_id), std::to_string(computed.frame_id));
  compare.add("valid", word(logged.valid), word(is_computed_valid));
  compare.add("wheelOnRightProb", logged.state.wheel_on_right_prob, computed.wheel_on_right_prob);
  compare.add_side("leftDriverData", logged.state.left, computed.left);
  compare.add_side("rightDriverData", logged.state.right, computed.right);
  compare.add_raw(logged.raw_predictions, computed.raw_predictions);
}

Result<ReplayResult> run_replay(pipeline::FrameSource& source, pipeline::Host& host,
                                const ReplayLog& log, const ReplayClock& clock,
                                const ReplayOptions& options, const std::atomic<bool>& stop) {
  ReplayResult result;
  const size_t end = options.max_frames == 0
                         ? log.turns.size()
                         : std::min<size_t>(log.turns.size(), options.max_frames);
  size_t next = 0;  // the first logged turn that was not looked at
  int silent_turns = 0, unlogged_turns = 0;
  uint32_t highest_id = 0;
  for (size_t i = 0; i < end; ++i)
    highest_id = std::max(highest_id, log.turns[i].event.state.frame_id);
  std::vector<Difference> differences;
  while (next < end && !stop.load(std::memory_order_relaxed)) {
    auto frame = source.receive(std::chrono::milliseconds(100));
    if (!frame) {
      const Error& error = frame.error();
      if (error.reason() == "EndOfStream") break;
      if (error.code() != ErrorCode::Timeout) ++result.source_errors;
      if (++silent_turns > 100)
        return Error(ErrorCode::Timeout, "The source '" + source.describe() +
                                             "' gives no frame for the replay: " + error.message());
      continue;
    }
    silent_turns = 0;
    size_t at = next;
    while (at < end && log.turns[at].event.state.frame_id != frame->info.frame_id) ++at;
    if (at == end) {  // dropped at the time: the host never saw it
      ++result.unlogged;
      // A source without an end that is past the log will not come back to it.
      if (frame->info.frame_id > highest_id && ++unlogged_turns > 100) break;
      continue;
    }
    unlogged_turns = 0;
    result.missing += at - next;
    const LoggedTurn& turn = log.turns[at];
    if (turn.quality) {
      frame->info.timestamp_sof_ns = turn.quality->timestamp_sof_ns;
      frame->info.timestamp_eof_ns = turn.quality->timestamp_eof_ns;
      frame->info.receive_time_ns = turn.quality->receive_time_ns;
      clock->store(turn.quality->publish_time_ns);
    } else {
      clock->store(frame->info.timestamp_sof_ns);
    }
    for (; next <= at; ++next) {
      for (const pipeline::Calibration& calibration : log.turns[next].calibrations)
        host.calibrate(calibration);
    }
    const pipeline::FrameReport report = host.process(*frame);
    if (!is_repeatable(turn)) {
      ++result.not_comparable;
    } else {
      ++result.compared;
      differences.clear();
      // What the wire carries of a state that is not valid is its frame id alone.
      pipeline::DriverState computed = report.state;
      if (!report.quality.valid) {
        computed.left = computed.right = {};
        computed.wheel_on_right_prob = 0;
      }
      compare_states(turn.event, computed, report.quality.valid, options.tolerance, differences);
      if (!differences.empty()) ++result.different;
      for (Difference& difference : differences) {
        if (result.differences.size() < options.max_differences)
          result.differences.push_back(std::move(difference));
      }
    }
    if (options.progress) options.progress(next, end);
  }
  if (!stop.load(std::memory_order_relaxed)) result.missing += end - next;
  return result;
}

}  // namespace ignis::tools
