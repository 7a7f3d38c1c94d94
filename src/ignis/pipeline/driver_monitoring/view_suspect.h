#pragma once

#include "ignis/pipeline/driver_monitoring/model.h"
#include "ignis/pipeline/frames/frame.h"

#include <array>
#include <cstdint>
#include <string_view>

namespace ignis::pipeline {

/// Luma of one frame on a coarse grid, as shares of the way from black (0) to white (1); both ends by the color range.
struct LumaStatistics {
  double mean = 0, deviation = 0;
  double dark_share = 0;       ///< of samples within 4 % of black
  double saturated_share = 0;  ///< of samples within 1 % of white
  double change = 0;           ///< mean distance to the frame before; 0 for the first
  bool has_change = false;
};

/// What may be wrong with a view.
enum class ViewFault : uint8_t {
  None,
  Dark,        ///< nothing is lit: cap on the lens, illumination broken
  Saturated,   ///< the sun or a lamp in the lens
  Flat,        ///< a hand, a sticker or fog: no structure at all
  Frozen,      ///< the same picture again and again: a camera that is alive has noise
  FaceAtEdge,  ///< a face, but always at the border: turned or moved
  NoFace,      ///< a picture, but no face in it for long: misaimed, or nobody there
};
/// "dark", "saturated", …; for people.
std::string_view to_string(ViewFault fault);

/// Limits of the watch. A fault must hold for `enter_ns` before the view is suspect and must be gone for `leave_ns` before it
/// is trusted again; the levels for going are a little better than those for coming.
struct ViewLimits {
  uint64_t enter_ns = 1'000'000'000;  ///< longer than a hand at the wheel's rim passes the lens
  uint64_t leave_ns = 1'000'000'000;
  uint64_t face_at_edge_ns = 5'000'000'000;  ///< longer than a look into the rear seats
  uint64_t no_face_ns =
      30'000'000'000;  ///< longer than any look away; then nobody is there, or not in view
  /// A driver lit by infrared at night covers at least this share of the view; the rest is black.
  double dark_share = 0.985;
  /// Half of the view burnt out leaves too little of a face; windows in daylight are a third at most.
  double saturated_share = 0.6;
  /// 4 grey levels of 219: a covered lens shows sensor noise of 1 to 3, the dullest cabin at night 6.
  double flat_deviation = 4.0 / 219;
  /// Face position from the middle, as a share of the picture: at 0.5 the middle of the face is on the border.
  double edge_position = 0.42;
};

/// Watches whether the camera sees the cabin at all: ViewSuspect. Reads about 2500 samples a frame, allocates nothing.
class ViewMonitor {
 public:
  explicit ViewMonitor(const ViewLimits& limits = {}) : limits_(limits) {}

  /// Looks at one frame whose layout fits its bytes. `prediction` is what a model said of it, or null when there is no
  /// trustworthy one; then the face faults neither come nor go.
  /// \return true while the view is suspect.
  bool update(const Frame& frame, const Prediction* prediction);
  /// Of the last update.
  const LumaStatistics& statistics() const { return statistics_; }
  /// Why the view is suspect; None when it is not.
  ViewFault fault() const { return suspect_ ? fault_ : ViewFault::None; }

 private:
  static constexpr int kColumns = 64, kRows = 40;

  void measure(const Frame& frame);
  ViewFault luma_fault() const;
  ViewFault face_fault(const Prediction* prediction, uint64_t time_ns);

  ViewLimits limits_;
  LumaStatistics statistics_;
  std::array<uint8_t, kColumns * kRows> samples_{};
  FrameLayout last_layout_;
  bool has_last_ = false;
  uint64_t last_time_ns_ = 0;
  // A face fault has a start of its own: its time is longer than that of a luma fault.
  bool has_face_history_ = false;
  uint64_t last_face_ns_ = 0;      ///< when a face was last seen, or the watch began
  uint64_t last_centered_ns_ = 0;  ///< when the face was last inside, or absent
  bool face_at_edge_ = false;
  ViewFault fault_ = ViewFault::None;
  bool suspect_ = false;
  uint64_t changing_since_ns_ = 0;  ///< when the present observation began to differ from suspect_
  bool is_changing_ = false;
};

}  // namespace ignis::pipeline
