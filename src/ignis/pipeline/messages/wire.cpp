#include "ignis/pipeline/messages/wire.h"

#include "ignis/pipeline/messages/kj_comparisons.h"

#include "event.capnp.h"
#include <capnp/message.h>
#include <capnp/serialize.h>
#include <kj/exception.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <string>
#include <utility>

namespace ignis::pipeline {
namespace {

static_assert(std::endian::native == std::endian::little, "The framing below writes words as is.");
static_assert(sizeof(capnp::word) == sizeof(uint64_t));

constexpr size_t kWordBytes = sizeof(uint64_t);
constexpr uint32_t kMaxSegments = 512;
// "IDSQ" as little-endian bytes.
constexpr uint32_t kQualityMagic = 0x51534449;
// The longest DriverState without raw predictions, an Event and all pointers, takes 40 words; a companion 40.
constexpr size_t kFixedWords = 128;

Error refuse(std::string reason, std::string sentence) {
  return Error(ErrorCode::InvalidArgument, std::move(sentence), std::move(reason));
}

size_t words_of(size_t bytes) { return (bytes + kWordBytes - 1) / kWordBytes; }

// -- packing ---------------------------------------------------------------------------------------------------------

/// Lends `words` (word 0 is the framing) as the one segment of a message, made by `fill`, and frames it. The builder wants
/// zeroed memory and leaves it as it is, so what the last message used is zeroed here, at the start of the next one.
template <typename Root, typename Fill>
Result<std::span<const std::byte>> pack(std::vector<uint64_t>& words, size_t payload_bytes,
                                        Fill&& fill) {
  const size_t needed = 1 + kFixedWords + words_of(payload_bytes);
  const size_t used_before = words.empty() ? 0 : 1 + static_cast<size_t>(words[0] >> 32);
  std::fill_n(words.begin(), std::min(used_before, words.size()), 0);
  if (words.size() < needed) words.resize(needed);
  try {
    // This builder never allocates: a message that does not fit throws. What fits is known: kFixedWords and the payload.
    capnp::FlatMessageBuilder builder(kj::arrayPtr(reinterpret_cast<capnp::word*>(words.data() + 1),
                                                   words.size() - 1));  // NOLINT
    fill(builder.template initRoot<Root>());
    const auto segments = builder.getSegmentsForOutput();
    IGNIS_CHECK(segments.size() == 1) << segments.size();
    const uint64_t size_words = segments[0].size();
    words[0] = size_words << 32;  // segment count - 1 = 0, then the size of segment 0
    return std::as_bytes(std::span(words).first(1 + size_words));
  } catch (const kj::Exception& exception) {
    std::fill(words.begin(), words.end(), uint64_t{0});
    return Error(ErrorCode::Internal,
                 "A message of " + std::to_string(payload_bytes) +
                     " free bytes cannot be packed: " + exception.getDescription().cStr() + ".");
  }
}

template <typename Builder, size_t kCount>
void set_list(Builder list, const std::array<float, kCount>& values) {
  for (unsigned i = 0; i < kCount; ++i) list.set(i, values[i]);
}

/// In the order of the numbers, so that lists lie in that order too.
void fill_driver(schema::DriverData::Builder out, const DriverData& data) {
  if (data.has_lists) {
    set_list(out.initFaceOrientation(3), data.face_orientation);
    set_list(out.initFaceOrientationStd(3), data.face_orientation_std);
    set_list(out.initFacePosition(2), data.face_position);
    set_list(out.initFacePositionStd(2), data.face_position_std);
  }
  out.setFaceProb(data.face_prob);
  out.setLeftEyeProb(data.left_eye_prob);
  out.setRightEyeProb(data.right_eye_prob);
  out.setLeftBlinkProb(data.left_blink_prob);
  out.setRightBlinkProb(data.right_blink_prob);
  out.setSunglassesProb(data.sunglasses_prob);
  out.setPhoneProb(data.phone_prob);
  out.setSleepProb(data.sleep_prob);
}

kj::ArrayPtr<const kj::byte> data_of(std::span<const std::byte> bytes) {
  return kj::arrayPtr(reinterpret_cast<const kj::byte*>(bytes.data()), bytes.size());  // NOLINT
}

template <size_t kSize>
std::string_view text_of(const std::array<char, kSize>& text) {
  const auto end = std::find(text.begin(), text.end(), '\0');
  return {text.data(), static_cast<size_t>(end - text.begin())};
}

// -- unpacking -------------------------------------------------------------------------------------------------------

/// Opens one framed message and hands its reader to `read`. Whatever the library throws ends here.
template <typename T, typename Read>
Result<T> unpack(std::span<const std::byte> message, Read&& read) {
  if (message.size() > kMaxMessageBytes) {
    return refuse("TooLong", "A message has " + std::to_string(message.size()) +
                                 " bytes; at most " + std::to_string(kMaxMessageBytes) +
                                 " are read.");
  }
  IGNIS_TRY_ASSIGN(const size_t size_bytes, framed_size(message));
  if (size_bytes == 0 || size_bytes != message.size()) {
    return refuse("Framing", "A message has " + std::to_string(message.size()) +
                                 " bytes; its segment table says " + std::to_string(size_bytes) +
                                 ".");
  }
  // Words must be aligned; a part of a packet need not be.
  uint64_t small[128];
  std::vector<uint64_t> large;
  const void* start = message.data();
  if (reinterpret_cast<uintptr_t>(start) % kWordBytes != 0) {  // NOLINT
    uint64_t* copy = small;
    if (message.size() > sizeof(small)) {
      large.resize(words_of(message.size()));
      copy = large.data();
    }
    std::memcpy(copy, start, message.size());
    start = copy;
  }
  capnp::ReaderOptions options;
  // Each pointer is followed at most twice; the limit stops lists that overlap or hold nothing.
  options.traversalLimitInWords = 4 * (message.size() / kWordBytes) + 256;
  options.nestingLimit = 8;
  try {
    capnp::FlatArrayMessageReader reader(
        kj::arrayPtr(static_cast<const capnp::word*>(start), message.size() / kWordBytes), options);
    return read(reader);
  } catch (const kj::Exception& exception) {
    return refuse("Malformed",
                  "A message of " + std::to_string(message.size()) +
                      " bytes has a bad structure: " + exception.getDescription().cStr() + ".");
  }
}

EventKind kind_of(schema::Event::Reader event) {
  switch (event.which()) {
    case schema::Event::DRIVER_STATE_V2: return EventKind::DriverState;
    case schema::Event::EXTRINSICS_CALIBRATION: return EventKind::Calibration;
    default: return EventKind::Other;
  }
}

Status check_kind(schema::Event::Reader event, EventKind wanted) {
  if (kind_of(event) == wanted) return Status::ok();
  return refuse("WrongMember", "An event has the union tag " +
                                   std::to_string(static_cast<unsigned>(event.which())) + "; " +
                                   std::string(to_string(wanted)) + " is expected.");
}

template <size_t kCount>
Status read_list(capnp::List<float>::Reader list, const char* name,
                 std::array<float, kCount>& out) {
  if (list.size() != kCount) {
    return refuse("ListSize", std::string(name) + " has " + std::to_string(list.size()) +
                                  " values; " + std::to_string(kCount) + " are expected.");
  }
  for (unsigned i = 0; i < kCount; ++i) out[i] = list[i];
  return Status::ok();
}

Status read_driver(schema::DriverData::Reader in, DriverData& out) {
  const auto orientation = in.getFaceOrientation();
  const auto orientation_std = in.getFaceOrientationStd();
  const auto position = in.getFacePosition();
  const auto position_std = in.getFacePositionStd();
  out.has_lists = orientation.size() != 0 || orientation_std.size() != 0 || position.size() != 0 ||
                  position_std.size() != 0;
  if (out.has_lists) {
    IGNIS_TRY(read_list(orientation, "faceOrientation", out.face_orientation));
    IGNIS_TRY(read_list(orientation_std, "faceOrientationStd", out.face_orientation_std));
    IGNIS_TRY(read_list(position, "facePosition", out.face_position));
    IGNIS_TRY(read_list(position_std, "facePositionStd", out.face_position_std));
  }
  out.face_prob = in.getFaceProb();
  out.left_eye_prob = in.getLeftEyeProb();
  out.right_eye_prob = in.getRightEyeProb();
  out.left_blink_prob = in.getLeftBlinkProb();
  out.right_blink_prob = in.getRightBlinkProb();
  out.sunglasses_prob = in.getSunglassesProb();
  out.phone_prob = in.getPhoneProb();
  out.sleep_prob = in.getSleepProb();
  return Status::ok();
}

/// At most kSize - 1 bytes. They are shown to people: what is not printable ASCII becomes '?'.
template <size_t kSize>
Status read_text(capnp::Text::Reader in, const char* name, std::array<char, kSize>& out) {
  if (in.size() >= kSize) {
    return refuse("ListSize", std::string(name) + " has " + std::to_string(in.size()) +
                                  " bytes; at most " + std::to_string(kSize - 1) +
                                  " are expected.");
  }
  std::transform(in.begin(), in.end(), out.begin(),
                 [](char c) { return c >= ' ' && c <= '~' ? c : '?'; });
  return Status::ok();
}

}  // namespace

std::string_view to_string(EventKind kind) {
  switch (kind) {
    case EventKind::DriverState: return "driverStateV2";
    case EventKind::Calibration: return "extrinsicsCalibration";
    case EventKind::Other: return "another member";
  }
  return "unknown";
}

EventWriter::EventWriter() : words_(1 + kFixedWords) {}

Result<std::span<const std::byte>> EventWriter::driver_state(const DriverState& state, bool valid,
                                                             uint64_t log_mono_time_ns) {
  if (state.raw_predictions.size() > kMaxRawPredictionsBytes) {
    return refuse("TooLong", "rawPredictions has " + std::to_string(state.raw_predictions.size()) +
                                 " bytes; at most " + std::to_string(kMaxRawPredictionsBytes) +
                                 " are sent.");
  }
  return pack<schema::Event>(
      words_, state.raw_predictions.size(), [&](schema::Event::Builder event) {
        event.setLogMonoTime(log_mono_time_ns);
        event.setValid(valid);
        auto out = event.initDriverStateV2();
        out.setFrameId(state.frame_id);
        out.setModelExecutionTime(state.model_execution_time_s);
        if (!state.raw_predictions.empty()) out.setRawPredictions(data_of(state.raw_predictions));
        out.setWheelOnRightProb(valid ? state.wheel_on_right_prob : 0);
        const DriverData nothing;
        fill_driver(out.initLeftDriverData(), valid ? state.left : nothing);
        fill_driver(out.initRightDriverData(), valid ? state.right : nothing);
        out.setGpuExecutionTime(state.gpu_execution_time_s);
      });
}

Result<std::span<const std::byte>> EventWriter::quality(const DriverStateQuality& quality) {
  if (quality.valid && !(quality.reasons & kBlockingReasons).is_empty()) {
    return refuse("Contradiction", "Frame " + std::to_string(quality.frame_id) +
                                       " is said to be valid and has the reason bits " +
                                       std::to_string(quality.reasons.bits()) +
                                       ", one of which blocks.");
  }
  return pack<schema::DriverStateQuality>(words_, 0, [&](schema::DriverStateQuality::Builder out) {
    const std::string_view profile = text_of(quality.profile);
    const std::string_view head = text_of(quality.non_finite_head);
    out.setMagic(kQualityMagic);
    out.setFrameId(quality.frame_id);
    out.setValid(quality.valid);
    out.setReasons(quality.reasons.bits());
    out.setTimestampSof(quality.timestamp_sof_ns);
    out.setTimestampEof(quality.timestamp_eof_ns);
    out.setReceiveTime(quality.receive_time_ns);
    out.setPublishTime(quality.publish_time_ns);
    out.setFrameAge(quality.frame_age_ns);
    std::copy(profile.begin(), profile.end(),
              out.initProfile(static_cast<unsigned>(profile.size())).begin());
    out.setProfileVersion(quality.profile_version);
    out.setWarpId(quality.warp_id);
    out.setModelHash(data_of(quality.model_hash));
    std::copy(head.begin(), head.end(),
              out.initNonFiniteHead(static_cast<unsigned>(head.size())).begin());
    out.setKnownLeft(quality.known_left);
    out.setKnownRight(quality.known_right);
    out.setKnownWheel(quality.known_wheel);
    out.setCalibrationAge(quality.calibration_age_ns);
    out.setReceiveDuration(quality.receive_ns);
    out.setUploadDuration(quality.upload_ns);
    out.setWarpDuration(quality.warp_ns);
    out.setModelDuration(quality.model_ns);
    out.setReadBackDuration(quality.read_back_ns);
    out.setDecodeDuration(quality.decode_ns);
    out.setQueueDuration(quality.queue_ns);
    out.setDeviceDuration(quality.device_ns);
    out.setDroppedFrames(quality.dropped_frames);
    out.setWriterId(quality.writer_id);
    out.setRestarts(quality.restarts);
    out.setTier(quality.tier);
  });
}

Result<std::span<const std::byte>> EventWriter::calibration(const Calibration& calibration) {
  if (calibration.rpy_rad.size() > kMaxAngles) {
    return refuse("ListSize", "A calibration has " + std::to_string(calibration.rpy_rad.size()) +
                                  " angles; at most " + std::to_string(kMaxAngles) + " are sent.");
  }
  return pack<schema::Event>(
      words_, calibration.rpy_rad.size() * sizeof(float), [&](schema::Event::Builder event) {
        event.setLogMonoTime(calibration.log_mono_time_ns);
        event.setValid(calibration.valid);
        auto out = event.initExtrinsicsCalibration();
        auto list = out.initRpyCalib(static_cast<unsigned>(calibration.rpy_rad.size()));
        for (unsigned i = 0; i < list.size(); ++i) list.set(i, calibration.rpy_rad[i]);
        out.setStatus(static_cast<schema::ExtrinsicsCalibration::Status>(calibration.status));
      });
}

Result<size_t> framed_size(std::span<const std::byte> head) {
  uint32_t last_segment = 0;
  if (head.size() < sizeof(last_segment)) return size_t{0};
  std::memcpy(&last_segment, head.data(), sizeof(last_segment));
  if (last_segment >= kMaxSegments) {
    return refuse("Framing", "A message says it has " + std::to_string(uint64_t{last_segment} + 1) +
                                 " segments; at most " + std::to_string(kMaxSegments) +
                                 " are read.");
  }
  const size_t segments = size_t{last_segment} + 1;
  const size_t table_bytes = words_of(sizeof(uint32_t) * (1 + segments)) * kWordBytes;
  if (head.size() < table_bytes) return size_t{0};
  uint64_t size_bytes = table_bytes;  // 512 segments of 2^32 words fit by far
  for (size_t i = 0; i < segments; ++i) {
    uint32_t size_words = 0;
    std::memcpy(&size_words, head.data() + sizeof(uint32_t) * (1 + i), sizeof(size_words));
    size_bytes += uint64_t{size_words} * kWordBytes;
  }
  if (size_bytes > kMaxMessageBytes) {
    return refuse("TooLong", "A message says it has " + std::to_string(size_bytes) +
                                 " bytes; at most " + std::to_string(kMaxMessageBytes) +
                                 " are read.");
  }
  return static_cast<size_t>(size_bytes);
}

Result<EventKind> kind_of_event(std::span<const std::byte> message) {
  return unpack<EventKind>(message, [](capnp::MessageReader& reader) -> Result<EventKind> {
    return kind_of(reader.getRoot<schema::Event>());
  });
}

Result<StateEvent> decode_driver_state(std::span<const std::byte> message) {
  return unpack<StateEvent>(message, [](capnp::MessageReader& reader) -> Result<StateEvent> {
    const auto event = reader.getRoot<schema::Event>();
    IGNIS_TRY(check_kind(event, EventKind::DriverState));
    const auto in = event.getDriverStateV2();
    StateEvent out;
    out.log_mono_time_ns = event.getLogMonoTime();
    out.valid = event.getValid();
    out.state.frame_id = in.getFrameId();
    out.state.model_execution_time_s = in.getModelExecutionTime();
    out.state.gpu_execution_time_s = in.getGpuExecutionTime();
    out.state.wheel_on_right_prob = in.getWheelOnRightProb();
    const auto raw = in.getRawPredictions();
    const auto* raw_bytes = reinterpret_cast<const std::byte*>(raw.begin());  // NOLINT
    out.raw_predictions.assign(raw_bytes, raw_bytes + raw.size());
    IGNIS_TRY(read_driver(in.getLeftDriverData(), out.state.left));
    IGNIS_TRY(read_driver(in.getRightDriverData(), out.state.right));
    return out;
  });
}

Result<DriverStateQuality> decode_quality(std::span<const std::byte> message) {
  using Out = DriverStateQuality;
  return unpack<Out>(message, [](capnp::MessageReader& reader) -> Result<Out> {
    const auto in = reader.getRoot<schema::DriverStateQuality>();
    if (in.getMagic() != kQualityMagic) {
      return refuse("WrongMessage", "A message begins with the number " +
                                        std::to_string(in.getMagic()) +
                                        "; a driverStateQuality begins with " +
                                        std::to_string(kQualityMagic) + ".");
    }
    Out out;
    out.frame_id = in.getFrameId();
    out.valid = in.getValid();
    out.reasons = Reasons(in.getReasons());
    if (out.valid && !(out.reasons & kBlockingReasons).is_empty()) {
      return refuse("Contradiction", "Frame " + std::to_string(out.frame_id) +
                                         " is said to be valid and has the reason bits " +
                                         std::to_string(out.reasons.bits()) +
                                         ", one of which blocks.");
    }
    out.timestamp_sof_ns = in.getTimestampSof();
    out.timestamp_eof_ns = in.getTimestampEof();
    out.receive_time_ns = in.getReceiveTime();
    out.publish_time_ns = in.getPublishTime();
    out.frame_age_ns = in.getFrameAge();
    IGNIS_TRY(read_text(in.getProfile(), "profile", out.profile));
    out.profile_version = in.getProfileVersion();
    out.warp_id = in.getWarpId();
    const auto hash = in.getModelHash();
    if (hash.size() != out.model_hash.size()) {
      return refuse("ListSize", "modelHash has " + std::to_string(hash.size()) + " bytes; " +
                                    std::to_string(out.model_hash.size()) + " are expected.");
    }
    std::memcpy(out.model_hash.data(), hash.begin(), hash.size());
    IGNIS_TRY(read_text(in.getNonFiniteHead(), "nonFiniteHead", out.non_finite_head));
    out.known_left = in.getKnownLeft();
    out.known_right = in.getKnownRight();
    out.known_wheel = in.getKnownWheel();
    out.calibration_age_ns = in.getCalibrationAge();
    out.receive_ns = in.getReceiveDuration();
    out.upload_ns = in.getUploadDuration();
    out.warp_ns = in.getWarpDuration();
    out.model_ns = in.getModelDuration();
    out.read_back_ns = in.getReadBackDuration();
    out.decode_ns = in.getDecodeDuration();
    out.queue_ns = in.getQueueDuration();
    out.device_ns = in.getDeviceDuration();
    out.dropped_frames = in.getDroppedFrames();
    out.writer_id = in.getWriterId();
    out.restarts = in.getRestarts();
    out.tier = in.getTier();
    return out;
  });
}

Result<Calibration> decode_calibration(std::span<const std::byte> message) {
  return unpack<Calibration>(message, [](capnp::MessageReader& reader) -> Result<Calibration> {
    const auto event = reader.getRoot<schema::Event>();
    IGNIS_TRY(check_kind(event, EventKind::Calibration));
    const auto in = event.getExtrinsicsCalibration();
    const auto list = in.getRpyCalib();
    if (list.size() > EventWriter::kMaxAngles) {
      return refuse("ListSize", "rpyCalib has " + std::to_string(list.size()) +
                                    " values; at most " + std::to_string(EventWriter::kMaxAngles) +
                                    " are read.");
    }
    Calibration out;
    out.log_mono_time_ns = event.getLogMonoTime();
    out.valid = event.getValid();
    for (const float angle_rad : list) out.rpy_rad.push_back(angle_rad);
    const auto status = static_cast<unsigned>(in.getStatus());
    // A status made after this was written cannot be trusted to mean "calibrated".
    out.status = status <= static_cast<unsigned>(CalibrationStatus::Recalibrating)
                     ? static_cast<CalibrationStatus>(status)
                     : CalibrationStatus::Invalid;
    return out;
  });
}

}  // namespace ignis::pipeline
