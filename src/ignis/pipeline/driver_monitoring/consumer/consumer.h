#pragma once

#include "ignis/pipeline/driver_monitoring/consumer/alerts.h"
#include "ignis/pipeline/driver_monitoring/consumer/policy.h"
#include "ignis/pipeline/driver_monitoring/consumer/running_stats.h"
#include "ignis/pipeline/driver_monitoring/consumer/side_choice.h"
#include "ignis/pipeline/driver_monitoring/consumer/topic_health.h"

#include <array>
#include <optional>
#include <string>
#include <string_view>

namespace ignis::pipeline {

/// What the policy reads of the car. Unknown (not received, not valid) is the cautious case throughout: engaged, moving,
/// nobody touches the wheel, the strict limits.
struct CarState {
  bool is_known = false;
  double speed_mps = 0;
  double steering_angle_deg = 0;  ///< positive to the left
  bool is_touched = false;        ///< the driver steers or presses a pedal
  bool is_engaged = false;
  bool is_standstill = false;
  std::optional<double> brake_prob;  ///< of the road model, [0, 1]
};

/// A driver state with its companion, as they came; either may be missing.
struct DriverMessage {
  std::optional<DriverState> state;
  std::optional<DriverStateQuality> quality;
  bool is_envelope_valid = false;  ///< the event's own flag
};

/// The part of a companion's warp id that is the version of the producer's camera profile (published_warp_id()).
inline constexpr uint32_t kCameraVersionMask = 0xFFFF;

/// Why a turn knows nothing of the driver.
enum class Unknown : uint8_t {
  Nothing,          ///< nothing is missing
  NoMessage,        ///< no message in this turn
  NoState,          ///< a companion alone: no frame came
  NoCompanion,      ///< a state that nobody vouches for
  FrameMismatch,    ///< state and companion of different frames
  VersionMismatch,  ///< the producer's profile, its version or its warp is not the one expected
  NotValid,         ///< the envelope's flag, the companion's flag or a blocking reason
  RepeatedFrame,    ///< the frame was judged before
  NotAlive,         ///< the last message is too old
  WrongRate,        ///< messages come too slowly or too fast
  EmptyLists,       ///< of the driver's side
  UnknownField,     ///< the model's profile cannot tell what the verdict needs
  BadValue,  ///< a probability outside [0, 1], a std that is not positive, a value that is not finite
  NoCalibration,  ///< the pose cannot be told without the camera's angles
};
std::string_view to_string(Unknown unknown);

/// An answer that may be missing.
enum class Answer : uint8_t { Unknown, No, Yes };
std::string_view to_string(Answer answer);

struct ConsumerOptions {
  PolicySettings policy;
  /// Its pose constants are used here, and its version must be the one in the companion's warp id.
  Camera camera;
  Side stored_side = Side::Left;
  bool is_demo = false;
  /// What the producer must be; empty or 0: not checked.
  std::string profile;
  uint32_t profile_version = 0, warp_id = 0;
  /// Reasons that also count as not valid.
  Reasons also_blocking;
  /// Bits of DriverField that the verdict does without although the model cannot tell them: a deployment's decision
  /// (a model without a phone output), not a default. Face, pose and their stds cannot be waived.
  uint32_t waived_fields = 0;
};

/// What one turn says. For display and tests: this policy shadows the one in the car and publishes nothing.
struct Verdict {
  bool is_valid = false;  ///< inputs alive, at the right rate and valid
  Unknown unknown = Unknown::NoMessage;
  Side side = Side::Left;
  bool is_side_ready = false;
  Answer face_seen = Answer::Unknown, low_std = Answer::Unknown;
  Answer pose_distracted = Answer::Unknown, eyes_closed = Answer::Unknown,
         phone_used = Answer::Unknown;
  std::optional<HeadPose> pose;
  bool is_pose_learned = false;
  HeadPose pose_offset, pose_limit;
  Attention attention = Attention::Unknown;
  double distraction = 0;  ///< filtered, [0, 1]
  bool watches_wheel = true;
  bool is_camera_uncertain = false;
  AlertLevel alert = AlertLevel::None;
  double vision_s = 0, wheel_s = 0;
  int lockouts = 0;
  double lockout_s = 0;
};

/// The attention policy of section 8. It reads and never publishes. One turn at 20 Hz, whether or not a message came:
/// without one the driver is unknown, and time passes.
class Consumer {
 public:
  explicit Consumer(ConsumerOptions options);

  /// \param message  what came since the last turn, or null.
  /// \param rpy_rad  the camera's roll, pitch and yaw; absent: the pose is unknown.
  /// \param now_ns   of a monotonic clock; a replay gives the recorded times.
  Verdict step(const DriverMessage* message, const CarState& car,
               const std::optional<std::array<float, 3>>& rpy_rad, uint64_t now_ns);
  /// What to store for the next drive, when it is time.
  std::optional<Side> side_to_store() const { return side_.to_store(); }

 private:
  struct Seen;
  bool is_version_right(const DriverStateQuality& quality) const;
  Unknown check_message(const DriverMessage* message, uint64_t now_ns);
  Side choose_side(const DriverMessage* message, bool is_usable, const CarState& car);
  Seen look(const DriverData& driver, uint32_t known,
            const std::optional<std::array<float, 3>>& rpy_rad, const CarState& car,
            Verdict* verdict) const;
  void judge(const Seen& seen, Verdict* verdict);
  void count_std(const Seen& seen, const Verdict& verdict);
  void learn_pose(const Verdict& verdict, const CarState& car);
  HeadPose pose_offset() const;
  bool is_pose_learned() const;
  double elapsed_s(uint64_t now_ns);

  ConsumerOptions options_;
  TopicHealth health_;
  SideChoice side_;
  FilteredStats pitch_, yaw_;
  FirstOrderFilter distraction_;
  Alerts alerts_;
  int64_t high_std_frames_ = 0, uncertain_frames_ = 0, good_frames_ = 0;
  bool is_camera_uncertain_ = false;
  std::optional<uint32_t> last_frame_id_;
  std::optional<uint64_t> last_step_ns_;
};

}  // namespace ignis::pipeline
