#include "ignis/pipeline/road/frame_pairing.h"

#include "ignis/base/log.h"

#include <algorithm>

namespace ignis::pipeline {
namespace {

constexpr uint64_t kStepNs = 25'000'000;
constexpr uint64_t kLooseNs = 10'000'000;

}  // namespace

Result<FramePair> FramePairer::next(std::chrono::nanoseconds timeout) {
  const auto end = std::chrono::steady_clock::now() + timeout;
  const auto left = [end] {
    return std::max(end - std::chrono::steady_clock::now(), std::chrono::nanoseconds(0));
  };
  FramePair pair;
  // A stream that jumped back would never pass the former wide frame: the time limit holds for sources that are never
  // out of frames, too.
  do {
    IGNIS_TRY_ASSIGN(pair.main, main_.receive(left()));
    if (!last_wide_sof_ns_ || pair.main.info.timestamp_sof_ns >= *last_wide_sof_ns_ + kStepNs) {
      break;
    }
    if (pair.main.info.timestamp_sof_ns + 10 * kStepNs < *last_wide_sof_ns_) {
      last_wide_sof_ns_.reset();  // the clock or the recording began anew
      break;
    }
    if (left() == std::chrono::nanoseconds(0)) {
      return Error(ErrorCode::Timeout,
                   "No frame of " + main_.describe() + " comes after the former pair.", "NoPair");
    }
  } while (true);
  do {
    IGNIS_TRY_ASSIGN(pair.wide, wide_.receive(left()));
    last_wide_sof_ns_ = pair.wide.info.timestamp_sof_ns;
    if (pair.main.info.timestamp_sof_ns < pair.wide.info.timestamp_sof_ns + kStepNs) break;
    if (left() == std::chrono::nanoseconds(0)) {
      return Error(ErrorCode::Timeout,
                   "No wide frame of " + wide_.describe() + " comes near main frame " +
                       std::to_string(pair.main.info.frame_id) + " of " + main_.describe() + ".",
                   "NoPair");
    }
  } while (true);
  const uint64_t a = pair.main.info.timestamp_sof_ns, b = pair.wide.info.timestamp_sof_ns;
  pair.apart_ns = a > b ? a - b : b - a;
  if (pair.apart_ns > kLooseNs) {
    ++loose_pairs_;
    IGNIS_LOG_EVERY_MS(Warning, "road", 1000)
        << "Main frame " << pair.main.info.frame_id << " and wide frame " << pair.wide.info.frame_id
        << " are " << pair.apart_ns / 1000 << " us apart.";
  }
  return pair;
}

uint32_t DropStatistics::step(uint32_t frame_id) {
  // Ids wrap; half the range or more is a step back: the producer began anew.
  const uint32_t gap = last_id_ ? frame_id - *last_id_ : 1;
  const uint32_t dropped = gap == 0 || gap >= 0x80000000u ? 0 : gap - 1;
  last_id_ = frame_id;
  total_ += dropped;
  if (runs_ < kFirstRuns) {
    ++runs_;
    filtered_ = 0;
  } else {
    filtered_ += alpha_ * (static_cast<double>(dropped) - filtered_);
  }
  return dropped;
}

void DropStatistics::reset() {
  filtered_ = 0;
  runs_ = 0;
  last_id_.reset();
}

}  // namespace ignis::pipeline
