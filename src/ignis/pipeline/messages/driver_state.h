#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace ignis::pipeline {

/// Why a driver state may not be what it seems; bit numbers are those on the wire and never change.
enum class Reason : uint8_t {
  FrameTimeout = 0,
  FrameStale = 1,
  FrameOverwritten = 2,
  FrameInvalidFlag = 3,
  UnknownGeometry = 4,
  LayoutChanged = 5,
  CalibMissing = 6,
  CalibStale = 7,
  CalibShape = 8,
  OutputSize = 9,
  SliceOutOfRange = 10,
  NonFinite = 11,
  RangeViolation = 12,
  RunFailed = 13,
  RunTimeout = 14,
  ModelUnavailable = 15,
  ArtifactMismatch = 16,
  FrameIdGap = 17,
  FrameIdBackwards = 18,
  LowConfidence = 19,
  FrameRepeated = 20,
  ClockJump = 21,
  DegenerateOutput = 22,
  SliceWidth = 23,
  SliceOverlap = 24,
  ViewSuspect = 25,  ///< the view is blocked, dark or misaimed
};
inline constexpr int kReasonCount = 26;

/// "FrameTimeout".
std::string_view to_string(Reason reason);

/// A set of reasons.
class Reasons {
 public:
  constexpr Reasons() = default;
  explicit constexpr Reasons(uint32_t bits) : bits_(bits) {}
  constexpr Reasons(Reason reason) : bits_(uint32_t{1} << static_cast<int>(reason)) {}  // NOLINT
  constexpr uint32_t bits() const { return bits_; }
  constexpr bool has(Reason reason) const { return (bits_ & Reasons(reason).bits_) != 0; }
  constexpr bool is_empty() const { return bits_ == 0; }
  constexpr Reasons& operator|=(Reasons other) {
    bits_ |= other.bits_;
    return *this;
  }
  friend constexpr Reasons operator|(Reasons a, Reasons b) { return Reasons(a.bits_ | b.bits_); }
  friend constexpr Reasons operator&(Reasons a, Reasons b) { return Reasons(a.bits_ & b.bits_); }
  friend constexpr bool operator==(Reasons, Reasons) = default;

 private:
  uint32_t bits_ = 0;
};

/// Reasons that make a message not valid; the others inform. A deployment may add CalibMissing, CalibStale and
/// CalibShape.
inline constexpr Reasons kBlockingReasons =
    Reasons(((uint32_t{1} << kReasonCount) - 1) &
            ~(Reasons(Reason::CalibMissing) | Reason::CalibStale | Reason::CalibShape |
              Reason::FrameIdGap | Reason::LowConfidence | Reason::ViewSuspect)
                 .bits());

/// Fields of DriverData in the order of their bits in a `known` mask.
enum class DriverField : uint8_t {
  FaceOrientation,
  FaceOrientationStd,
  FacePosition,
  FacePositionStd,
  FaceProb,
  LeftEyeProb,
  RightEyeProb,
  LeftBlinkProb,
  RightBlinkProb,
  SunglassesProb,
  PhoneProb,
  SleepProb,
};
inline constexpr int kDriverFieldCount = 12;
inline constexpr uint32_t kAllDriverFields = (uint32_t{1} << kDriverFieldCount) - 1;
constexpr uint32_t bit(DriverField field) { return uint32_t{1} << static_cast<int>(field); }
/// "faceOrientation", as in the schema.
std::string_view to_string(DriverField field);

/// One side of driverStateV2. Angles in rad (pitch, yaw, roll), positions as a share of the reference image with 0 in
/// its middle (x, y), probabilities in [0, 1].
struct DriverData {
  bool has_lists = false;  ///< false: the four lists are empty on the wire
  std::array<float, 3> face_orientation{}, face_orientation_std{};
  std::array<float, 2> face_position{}, face_position_std{};
  float face_prob = 0, left_eye_prob = 0, right_eye_prob = 0, left_blink_prob = 0,
        right_blink_prob = 0, sunglasses_prob = 0, phone_prob = 0, sleep_prob = 0;

  bool operator==(const DriverData&) const = default;
};

/// driverStateV2 as it is published. `raw_predictions` points into memory of whoever made the state.
struct DriverState {
  uint32_t frame_id = 0;
  float model_execution_time_s = 0;  ///< of the whole run call
  float gpu_execution_time_s = 0;    ///< warp + model + read-back, by the host's clock
  std::span<const std::byte> raw_predictions;
  float wheel_on_right_prob = 0;
  DriverData left, right;
};

/// driverStateQuality: what is known about the driverStateV2 with the same frame id. Times in ns; ages are
/// kUnknownAge when there is nothing to be old.
struct DriverStateQuality {
  uint32_t frame_id = 0;
  bool valid = false;  ///< no blocking reason
  uint64_t timestamp_sof_ns = 0, timestamp_eof_ns = 0, receive_time_ns = 0, publish_time_ns = 0;
  uint64_t frame_age_ns = 0;  ///< publish - SOF
  Reasons reasons;
  std::array<char, 32> profile{};  ///< zero-terminated: "comma-553"
  uint32_t profile_version = 0;
  uint32_t warp_id = 0;
  std::array<std::byte, 32> model_hash{};  ///< of the artifact, or of the model file
  std::array<char, 32>
      non_finite_head{};  ///< first slice with a NaN or an infinity, zero-terminated
  uint32_t known_left = 0, known_right = 0;  ///< bits of DriverField
  bool known_wheel = false;
  uint64_t calibration_age_ns = 0;
  uint64_t receive_ns = 0;  ///< frame-in (the source handed it over) to the start of the run
  uint64_t upload_ns = 0, warp_ns = 0, model_ns = 0, read_back_ns = 0, decode_ns = 0;
  uint64_t queue_ns = 0, device_ns = 0;  ///< of the device's own clock; 0: it has none
  uint32_t dropped_frames = 0;           ///< since the last message
  uint64_t writer_id = 0;                ///< one for each publisher; two on one topic is a fault
  uint32_t restarts = 0;                 ///< of the model after a failed run
  uint8_t tier = 0;                      ///< 0: the only or the big model, 1: the fallback
};
inline constexpr uint64_t kUnknownAge = ~uint64_t{0};

}  // namespace ignis::pipeline
