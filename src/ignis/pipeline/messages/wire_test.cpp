#include "ignis/pipeline/messages/wire.h"

#include "tests/support/count_allocations.h"
#include "tests/support/seed.h"
#include <gtest/gtest.h>
#include <sodium.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <limits>
#include <random>
#include <string>

namespace ignis::pipeline {
namespace {

using ignis::testing::test_seed;

using Bytes = std::vector<std::byte>;

std::string hex_of(std::span<const std::byte> bytes) {
  std::string text(bytes.size() * 2 + 1, '\0');
  sodium_bin2hex(text.data(), text.size(), reinterpret_cast<const unsigned char*>(bytes.data()),
                 bytes.size());
  text.pop_back();
  return text;
}

std::string sha256_of(std::span<const std::byte> bytes) {
  Bytes digest(crypto_hash_sha256_BYTES);
  crypto_hash_sha256(reinterpret_cast<unsigned char*>(digest.data()),
                     reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
  return hex_of(digest);
}

Bytes copy_of(Result<std::span<const std::byte>> bytes) {
  EXPECT_TRUE(bytes.has_value()) << bytes.error().to_string();
  return bytes ? Bytes(bytes->begin(), bytes->end()) : Bytes();
}

uint64_t word_of(const Bytes& bytes, size_t index) {
  uint64_t word = 0;
  std::memcpy(&word, bytes.data() + 8 * index, 8);
  return word;
}

void set_word(Bytes& bytes, size_t index, uint64_t word) {
  std::memcpy(bytes.data() + 8 * index, &word, 8);
}

float float_of(const Bytes& bytes, size_t offset) {
  float value = 0;
  std::memcpy(&value, bytes.data() + offset, sizeof(value));
  return value;
}

template <typename T>
std::string reason_of(const Result<T>& result) {
  return result ? "no error" : result.error().reason();
}

// ---- section 10.4 --------------------------------------------------------------------------------------------------

constexpr const char* kGoldenHex =
    "0000000027000000000000000200010000ca9a3b000000005a00000000000000"
    "0000000003000300070000000000003f00000000000000000000003e0000803e"
    "0900000012000000080000000500060048000000050006000102000000000000"
    "6666663fcdcc4c3f3333333fcdcccc3dcdcc4c3e9a99993e00000000cdcccc3e"
    "9a99193f00000000150000001c000000190000001c0000001d00000014000000"
    "1d0000001400000000000000000000000000000000000000cdcccc3dcdcc4c3e"
    "9a99993e000000000000803f000000400000404000000000cdcccc3e0000003f"
    "000080400000a040cdcc4c3d0000000000000000000000000000000000000000"
    "0000000000000000000000000000000000000000000000000000000000000000"
    "0000000000000000000000000000000000000000000000000000000000000000";

Bytes golden_bytes() {
  Bytes bytes(320);
  size_t size = 0;
  sodium_hex2bin(reinterpret_cast<unsigned char*>(bytes.data()), bytes.size(), kGoldenHex,
                 std::strlen(kGoldenHex), nullptr, &size, nullptr);
  EXPECT_EQ(size, 320u);
  return bytes;
}

constexpr std::array<std::byte, 2> kGoldenRaw = {std::byte{1}, std::byte{2}};

DriverState golden_state() {
  DriverState state;
  state.frame_id = 7;
  state.model_execution_time_s = 0.5f;
  state.gpu_execution_time_s = 0.25f;
  state.wheel_on_right_prob = 0.125f;
  state.raw_predictions = kGoldenRaw;
  state.left.has_lists = true;
  state.left.face_orientation = {0.1f, 0.2f, 0.3f};
  state.left.face_orientation_std = {1, 2, 3};
  state.left.face_position = {0.4f, 0.5f};
  state.left.face_position_std = {4, 5};
  state.left.face_prob = 0.9f;
  state.left.left_eye_prob = 0.8f;
  state.left.right_eye_prob = 0.7f;
  state.left.left_blink_prob = 0.1f;
  state.left.right_blink_prob = 0.2f;
  state.left.sunglasses_prob = 0.3f;
  state.left.phone_prob = 0.4f;
  state.left.sleep_prob = 0.6f;
  state.right.face_prob = 0.05f;
  return state;
}

void expect_golden(const Result<StateEvent>& event) {
  ASSERT_TRUE(event) << event.error().to_string();
  DriverState wanted = golden_state();
  EXPECT_EQ(event->log_mono_time_ns, 1000000000u);
  EXPECT_TRUE(event->valid);
  EXPECT_EQ(event->state.frame_id, 7u);
  EXPECT_EQ(event->state.model_execution_time_s, 0.5f);
  EXPECT_EQ(event->state.gpu_execution_time_s, 0.25f);
  EXPECT_EQ(event->state.wheel_on_right_prob, 0.125f);
  EXPECT_EQ(event->state.left, wanted.left);
  EXPECT_EQ(event->state.right, wanted.right);
  EXPECT_EQ(event->raw_predictions, Bytes(kGoldenRaw.begin(), kGoldenRaw.end()));
}

TEST(DriverStateWire, EqualsTheBytesOfTheSpecification) {
  EventWriter writer;
  const Bytes bytes = copy_of(writer.driver_state(golden_state(), true, 1000000000));
  EXPECT_EQ(hex_of(bytes), kGoldenHex);
  EXPECT_EQ(sha256_of(bytes), "76924016d0082ecb1c7e61a7f19f87f5af0d0e8042a7899de7ccda3f2c61e17e");
}

TEST(DriverStateWire, IsTheSameAfterOtherMessagesInTheSameMemory) {
  EventWriter writer;
  const Bytes raw(5000, std::byte{0xff});
  DriverState large = golden_state();
  large.right = large.left;
  large.raw_predictions = raw;
  ASSERT_TRUE(writer.driver_state(large, true, ~uint64_t{0}));
  DriverStateQuality quality;
  quality.model_hash.fill(std::byte{0xee});
  quality.frame_age_ns = ~uint64_t{0};
  ASSERT_TRUE(writer.quality(quality));
  EXPECT_EQ(hex_of(copy_of(writer.driver_state(golden_state(), true, 1000000000))), kGoldenHex);
}

TEST(DriverStateWire, ReadsTheBytesOfTheSpecification) {
  expect_golden(decode_driver_state(golden_bytes()));
}

TEST(DriverStateWire, ReadsFromAnyAddress) {
  const Bytes golden = golden_bytes();
  Bytes room(golden.size() + 8);
  for (size_t shift = 0; shift < 8; ++shift) {
    std::memcpy(room.data() + shift, golden.data(), golden.size());
    expect_golden(decode_driver_state(std::span(room).subspan(shift, golden.size())));
  }
}

TEST(DriverStateWire, ReadsAnotherLegalOrder) {
  // The right side's struct, 11 words from word 29 on, moves behind everything else. Its pointer is word 10.
  Bytes bytes = golden_bytes();
  const uint64_t pointer = word_of(bytes, 10);
  ASSERT_EQ((pointer >> 2) & 0x3fffffff, 29u - 11u);
  bytes.resize(bytes.size() + 8 * 11);
  for (size_t i = 0; i < 11; ++i) {
    set_word(bytes, 40 + i, word_of(bytes, 29 + i));
    set_word(bytes, 29 + i, 0);
  }
  set_word(bytes, 10, (pointer & 0xffffffff00000000u) | ((40u - 11u) << 2));
  set_word(bytes, 0, uint64_t{50} << 32);
  expect_golden(decode_driver_state(bytes));
}

TEST(DriverStateWire, ReadsSeveralSegments) {
  // Segment 0 is a far pointer to the first word of segment 1, which is the whole old segment.
  const Bytes golden = golden_bytes();
  Bytes bytes(8 * 2 + 8 + 8 * 39);
  set_word(bytes, 0, 1 | (uint64_t{1} << 32));
  set_word(bytes, 1, 39);
  set_word(bytes, 2, 2 | (uint64_t{1} << 32));
  std::memcpy(bytes.data() + 24, golden.data() + 8, 8 * 39);
  expect_golden(decode_driver_state(bytes));
}

// ---- section 10.3 --------------------------------------------------------------------------------------------------

TEST(DriverStateWire, PutsEachValueOfThePacketMappingInItsPlace) {
  DriverState state;
  state.wheel_on_right_prob = 0.6547535f;
  state.left = {.has_lists = true,
                .face_orientation = {-2, -0.52f, 0.96f},
                .face_orientation_std = {0.3011942f, 1.32313f, 5.812437f},
                .face_position = {-1.6f, -0.12f},
                .face_position_std = {0.449329f, 1.973878f},
                .face_prob = 0.4013123f,
                .left_eye_prob = 0.746494f,
                .right_eye_prob = 0.1854274f,
                .left_blink_prob = 0.5f,
                .right_blink_prob = 0.8145726f,
                .sunglasses_prob = 0.253506f,
                .phone_prob = 0.5986877f,
                .sleep_prob = 0.8676111f};
  state.right = {.has_lists = true,
                 .face_orientation = {-0.68f, 0.8f, -1.76f},
                 .face_orientation_std = {1.127497f, 4.953033f, 0.3828929f},
                 .face_position = {-0.28f, 1.2f},
                 .face_position_std = {1.682028f, 7.389056f},
                 .face_prob = 0.7150421f,
                 .left_eye_prob = 0.1624651f,
                 .right_eye_prob = 0.4600851f,
                 .left_blink_prob = 0.7891817f,
                 .right_blink_prob = 0.224436f,
                 .sunglasses_prob = 0.5597136f,
                 .phone_prob = 0.8481288f,
                 .sleep_prob = 0.3015348f};
  EventWriter writer;
  const Bytes bytes = copy_of(writer.driver_state(state, true, 1));
  // Words: framing, root, Event (3), DriverStateV2 (6), then per side: 5 of data, 6 pointers, lists of 2, 2, 1, 1 words.
  ASSERT_EQ(bytes.size(), 8u * (1 + 1 + 3 + 6 + 2 * 17));
  EXPECT_EQ(float_of(bytes, 8 * 5 + 16), 0.6547535f);
  const DriverData* sides[] = {&state.left, &state.right};
  for (size_t side = 0; side < 2; ++side) {
    const size_t start = 8 * (11 + 17 * side);
    const DriverData& data = *sides[side];
    const float probabilities[] = {
        data.face_prob,       data.left_eye_prob,    data.right_eye_prob,
        data.left_blink_prob, data.right_blink_prob, data.sunglasses_prob,
        0 /* retired */,      data.phone_prob,       data.sleep_prob};
    for (size_t i = 0; i < std::size(probabilities); ++i) {
      EXPECT_EQ(float_of(bytes, start + 4 * i), probabilities[i]) << side << " " << i;
    }
    const size_t lists = start + 8 * 11;
    for (size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(float_of(bytes, lists + 4 * i), data.face_orientation[i]);
      EXPECT_EQ(float_of(bytes, lists + 16 + 4 * i), data.face_orientation_std[i]);
    }
    for (size_t i = 0; i < 2; ++i) {
      EXPECT_EQ(float_of(bytes, lists + 32 + 4 * i), data.face_position[i]);
      EXPECT_EQ(float_of(bytes, lists + 40 + 4 * i), data.face_position_std[i]);
    }
    // Pointers 4 and 5 are the retired lists.
    EXPECT_EQ(word_of(bytes, start / 8 + 9), 0u);
    EXPECT_EQ(word_of(bytes, start / 8 + 10), 0u);
  }
  const auto event = decode_driver_state(bytes);
  ASSERT_TRUE(event);
  EXPECT_EQ(event->state.left, state.left);
  EXPECT_EQ(event->state.right, state.right);
}

// ---- the envelope --------------------------------------------------------------------------------------------------

TEST(Envelope, StoresValidInvertedInBit80) {
  EventWriter writer;
  const Bytes valid = copy_of(writer.driver_state({}, true, 5));
  const Bytes invalid = copy_of(writer.driver_state({}, false, 5));
  // The Event's second data word is word 3: bits 64..127 of the Event.
  EXPECT_EQ(word_of(valid, 3), 90u);
  EXPECT_EQ(word_of(invalid, 3), 90u | (uint64_t{1} << 16));
  Bytes flipped = valid;
  set_word(flipped, 3, word_of(invalid, 3));
  EXPECT_EQ(flipped, invalid);
}

TEST(Envelope, TellsMembersApartByTheirTag) {
  // Member n has the tag n - 1 up to 66 and n - 2 from 68 on; 67 is `valid`.
  EventWriter writer;
  Bytes bytes = copy_of(writer.driver_state({}, true, 5));
  for (uint64_t tag = 0; tag < 65536; ++tag) {
    set_word(bytes, 3, tag);
    const auto kind = kind_of_event(bytes);
    ASSERT_TRUE(kind) << tag;
    const EventKind wanted = tag == 92 - 2   ? EventKind::DriverState
                             : tag == 19 - 1 ? EventKind::Calibration
                                             : EventKind::Other;
    ASSERT_EQ(*kind, wanted) << tag;
    if (tag % 97 == 0 || tag < 200) {
      ASSERT_EQ(reason_of(decode_driver_state(bytes)), tag == 90 ? "no error" : "WrongMember");
    }
  }
  const Bytes calibration = copy_of(writer.calibration({}));
  EXPECT_EQ(word_of(calibration, 3) & 0xffff, 18u);
  EXPECT_EQ(reason_of(decode_driver_state(calibration)), "WrongMember");
}

TEST(Envelope, HasTheSizesOfTheSpecification) {
  EventWriter writer;
  const Bytes bytes = copy_of(writer.driver_state({}, true, 5));
  // A struct pointer: data words in bits 32..47, pointers in bits 48..63.
  EXPECT_EQ(word_of(bytes, 1) >> 32, 2u | (1u << 16));   // Event
  EXPECT_EQ(word_of(bytes, 4) >> 32, 3u | (3u << 16));   // DriverStateV2
  EXPECT_EQ(word_of(bytes, 9) >> 32, 5u | (6u << 16));   // left DriverData
  EXPECT_EQ(word_of(bytes, 10) >> 32, 5u | (6u << 16));  // right DriverData
}

// ---- what may not survive ------------------------------------------------------------------------------------------

TEST(DriverStateWire, CarriesNothingOfAStateThatIsNotValid) {
  EventWriter writer;
  DriverState state = golden_state();
  state.raw_predictions = {};
  state.right = state.left;
  const auto event = decode_driver_state(copy_of(writer.driver_state(state, false, 9)));
  ASSERT_TRUE(event);
  EXPECT_FALSE(event->valid);
  EXPECT_EQ(event->log_mono_time_ns, 9u);
  EXPECT_EQ(event->state.frame_id, 7u);
  EXPECT_EQ(event->state.left, DriverData{});
  EXPECT_EQ(event->state.right, DriverData{});
  EXPECT_EQ(event->state.wheel_on_right_prob, 0);
}

TEST(DriverStateWire, HasNoRawPredictionsUnlessTheStateHas) {
  EventWriter writer;
  DriverState state = golden_state();
  state.raw_predictions = {};
  const Bytes bytes = copy_of(writer.driver_state(state, true, 9));
  EXPECT_EQ(word_of(bytes, 8), 0u);  // its pointer
  EXPECT_TRUE(decode_driver_state(bytes)->raw_predictions.empty());
  const Bytes huge(kMaxRawPredictionsBytes + 1);
  state.raw_predictions = huge;
  EXPECT_EQ(reason_of(writer.driver_state(state, true, 9)), "TooLong");
  state.raw_predictions = std::span(huge).first(kMaxRawPredictionsBytes);
  EXPECT_EQ(
      decode_driver_state(copy_of(writer.driver_state(state, true, 9)))->raw_predictions.size(),
      kMaxRawPredictionsBytes);
}

TEST(DriverStateWire, RefusesListsOfAnotherSize) {
  // The left lists' pointers are words 17 to 20; the count of a list is in bits 35..63.
  for (size_t word = 17; word <= 20; ++word) {
    Bytes bytes = golden_bytes();
    set_word(bytes, word, word_of(bytes, word) - (uint64_t{1} << 35));
    EXPECT_EQ(reason_of(decode_driver_state(bytes)), "ListSize") << word;
    bytes = golden_bytes();
    set_word(bytes, word, 0);  // three lists there, one not
    EXPECT_EQ(reason_of(decode_driver_state(bytes)), "ListSize") << word;
  }
}

// ---- the companion -------------------------------------------------------------------------------------------------

DriverStateQuality full_quality() {
  DriverStateQuality quality;
  quality.frame_id = 70000;
  quality.valid = false;
  quality.reasons = Reasons(Reason::NonFinite) | Reason::ViewSuspect;
  quality.timestamp_sof_ns = 101;
  quality.timestamp_eof_ns = 102;
  quality.receive_time_ns = 103;
  quality.publish_time_ns = 104;
  quality.frame_age_ns = 3;
  std::strcpy(quality.profile.data(), "comma-553");
  quality.profile_version = 4;
  quality.warp_id = 0xdeadbeef;
  for (size_t i = 0; i < 32; ++i) quality.model_hash[i] = static_cast<std::byte>(i * 7);
  std::memset(quality.non_finite_head.data(), 'x', 31);  // the longest there is
  quality.known_left = kAllDriverFields;
  quality.known_right = 0x21;
  quality.known_wheel = true;
  quality.calibration_age_ns = kUnknownAge;
  quality.receive_ns = 200;
  quality.upload_ns = 201;
  quality.warp_ns = 202;
  quality.model_ns = 203;
  quality.read_back_ns = 204;
  quality.decode_ns = 205;
  quality.queue_ns = 206;
  quality.device_ns = 207;
  quality.dropped_frames = 8;
  quality.writer_id = 0x123456789abcdef0;
  quality.restarts = 2;
  quality.tier = 1;
  return quality;
}

TEST(QualityWire, KeepsEveryField) {
  EventWriter writer;
  const DriverStateQuality in = full_quality();
  const auto out = decode_quality(copy_of(writer.quality(in)));
  ASSERT_TRUE(out) << out.error().to_string();
  EXPECT_EQ(out->frame_id, in.frame_id);
  EXPECT_EQ(out->valid, in.valid);
  EXPECT_EQ(out->reasons, in.reasons);
  EXPECT_EQ(out->timestamp_sof_ns, 101u);
  EXPECT_EQ(out->timestamp_eof_ns, 102u);
  EXPECT_EQ(out->receive_time_ns, 103u);
  EXPECT_EQ(out->publish_time_ns, 104u);
  EXPECT_EQ(out->frame_age_ns, 3u);
  EXPECT_EQ(out->profile, in.profile);
  EXPECT_EQ(out->profile_version, 4u);
  EXPECT_EQ(out->warp_id, 0xdeadbeefu);
  EXPECT_EQ(out->model_hash, in.model_hash);
  EXPECT_EQ(out->non_finite_head, in.non_finite_head);
  EXPECT_EQ(out->known_left, kAllDriverFields);
  EXPECT_EQ(out->known_right, 0x21u);
  EXPECT_TRUE(out->known_wheel);
  EXPECT_EQ(out->calibration_age_ns, kUnknownAge);
  const uint64_t durations[] = {out->receive_ns,   out->upload_ns, out->warp_ns,  out->model_ns,
                                out->read_back_ns, out->decode_ns, out->queue_ns, out->device_ns};
  for (size_t i = 0; i < std::size(durations); ++i) EXPECT_EQ(durations[i], 200 + i);
  EXPECT_EQ(out->dropped_frames, 8u);
  EXPECT_EQ(out->writer_id, 0x123456789abcdef0u);
  EXPECT_EQ(out->restarts, 2u);
  EXPECT_EQ(out->tier, 1);
}

TEST(QualityWire, DiffersWhenOnlyTheStartOfFrameDoes) {
  // Section 10.6: driverStateV2 has no place for it, which is why the companion is there.
  EventWriter writer;
  DriverStateQuality quality = full_quality();
  const Bytes state_before = copy_of(writer.driver_state(golden_state(), true, 1));
  const Bytes quality_before = copy_of(writer.quality(quality));
  quality.timestamp_sof_ns += 1;
  EXPECT_EQ(copy_of(writer.driver_state(golden_state(), true, 1)), state_before);
  EXPECT_NE(copy_of(writer.quality(quality)), quality_before);
}

TEST(QualityWire, IsNeverValidWithABlockingReason) {
  EventWriter writer;
  DriverStateQuality quality = full_quality();
  const Bytes bytes = copy_of(writer.quality(quality));
  quality.valid = true;
  EXPECT_EQ(reason_of(writer.quality(quality)), "Contradiction");
  quality.reasons = Reason::ViewSuspect;
  const Bytes valid = copy_of(writer.quality(quality));
  EXPECT_TRUE(decode_quality(valid)->valid);
  // `valid` is bit 64 of the data; magic and frame id come before it, the reasons after.
  Bytes forged = bytes;
  set_word(forged, 3, word_of(forged, 3) | 1);
  EXPECT_EQ(reason_of(decode_quality(forged)), "Contradiction");
}

TEST(QualityWire, IsToldFromAnEvent) {
  EventWriter writer;
  EXPECT_EQ(reason_of(decode_quality(golden_bytes())), "WrongMessage");
  EXPECT_FALSE(decode_driver_state(copy_of(writer.quality(full_quality()))));
}

TEST(QualityWire, ShowsNoControlCharacters) {
  EventWriter writer;
  DriverStateQuality quality;
  std::strcpy(quality.profile.data(), "\x1b[2Jevil\xff");
  const auto out = decode_quality(copy_of(writer.quality(quality)));
  ASSERT_TRUE(out);
  EXPECT_STREQ(out->profile.data(), "?[2Jevil?");
}

// ---- calibration ---------------------------------------------------------------------------------------------------

TEST(CalibrationWire, KeepsWhatItGetsHoweverWrong) {
  EventWriter writer;
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<std::vector<float>> lists = {
      {}, {0.1f, 0.2f}, {0.1f, -0.2f, 0.3f}, {1, 2, 3, 4}};
  for (const auto& list : lists) {
    const Calibration in = {.rpy_rad = list,
                            .status = CalibrationStatus::Recalibrating,
                            .valid = true,
                            .log_mono_time_ns = 12345};
    const auto out = decode_calibration(copy_of(writer.calibration(in)));
    ASSERT_TRUE(out) << out.error().to_string();
    EXPECT_EQ(out->rpy_rad, list);
    EXPECT_EQ(out->status, CalibrationStatus::Recalibrating);
    EXPECT_TRUE(out->valid);
    EXPECT_EQ(out->log_mono_time_ns, 12345u);
  }
  const auto out = decode_calibration(copy_of(writer.calibration({.rpy_rad = {nan, 0, 0}})));
  ASSERT_TRUE(out);
  EXPECT_TRUE(std::isnan(out->rpy_rad[0]));
  EXPECT_FALSE(out->valid);
  EXPECT_EQ(reason_of(writer.calibration({.rpy_rad = std::vector<float>(65)})), "ListSize");
}

TEST(CalibrationWire, HasTheLayoutOfTheSpecification) {
  EventWriter writer;
  const Bytes bytes =
      copy_of(writer.calibration({.rpy_rad = {1, 2, 3}, .status = CalibrationStatus::Calibrated}));
  EXPECT_EQ(word_of(bytes, 4) >> 32, 2u | (7u << 16));
  // Data: the two retired Int8 in bytes 0 and 1, the status in bytes 2 and 3. Pointer 4 is rpyCalib: after lists 0, 4, 5, 6.
  EXPECT_EQ(word_of(bytes, 5) & 0xffffffff, 1u << 16);
  for (size_t i = 0; i < 7; ++i) EXPECT_EQ(word_of(bytes, 7 + i) != 0, i == 4) << i;
  // A status that is not known yet is not "calibrated".
  Bytes future = bytes;
  set_word(future, 5, 9u << 16);
  EXPECT_EQ(decode_calibration(future)->status, CalibrationStatus::Invalid);
}

// ---- hostile bytes -------------------------------------------------------------------------------------------------

TEST(Hostile, FramingThatDoesNotFitIsRefused) {
  const Bytes golden = golden_bytes();
  for (size_t size = 0; size < golden.size(); ++size) {
    EXPECT_EQ(reason_of(decode_driver_state(std::span(golden).first(size))), "Framing") << size;
  }
  Bytes longer = golden;
  longer.resize(golden.size() + 8);
  EXPECT_EQ(reason_of(decode_driver_state(longer)), "Framing");
  Bytes many = golden;
  set_word(many, 0, 0xffffffffffffffff);
  EXPECT_EQ(reason_of(decode_driver_state(many)), "Framing");
  set_word(many, 0, 0xffffffff00000000);
  EXPECT_EQ(reason_of(decode_driver_state(many)), "TooLong");
  EXPECT_EQ(reason_of(decode_driver_state(Bytes(kMaxMessageBytes + 8))), "TooLong");
}

TEST(Hostile, PointersThatLeaveTheSegmentAreMalformed) {
  // Words that are pointers: the root, the Event's, and those of the state and of the left side's lists.
  for (const size_t word : {1u, 4u, 8u, 9u, 10u, 17u, 18u, 19u, 20u}) {
    Bytes bytes = golden_bytes();
    set_word(bytes, word, word_of(bytes, word) | 0x7ffffff0);
    EXPECT_EQ(reason_of(decode_driver_state(bytes)), "Malformed") << word;
  }
}

TEST(Hostile, AFarPointerToItselfEnds) {
  Bytes bytes(16);
  set_word(bytes, 0, uint64_t{1} << 32);
  set_word(bytes, 1, 2);  // far, segment 0, word 0: itself
  EXPECT_FALSE(decode_driver_state(bytes));
  EXPECT_FALSE(decode_quality(bytes));
  EXPECT_FALSE(decode_calibration(bytes));
}

TEST(Hostile, AListOfNothingDoesNotTakeForEver) {
  // 2^29 - 1 elements of no size for rpyCalib.
  EventWriter writer;
  Bytes bytes = copy_of(writer.calibration({.rpy_rad = {1, 2, 3}}));
  const uint64_t pointer = word_of(bytes, 11);
  set_word(bytes, 11, (pointer & 0xffffffff) | (uint64_t{0x1fffffff} << 35));
  EXPECT_FALSE(decode_calibration(bytes));
}

TEST(Hostile, FlippedBitsAndCutBytesNeverCrash) {
  std::mt19937_64 rng(test_seed());
  EventWriter writer;
  const Bytes seeds[] = {
      golden_bytes(), copy_of(writer.quality(full_quality())),
      copy_of(writer.calibration({.rpy_rad = {0.1f, 0.2f, 0.3f}, .valid = true}))};
  int accepted = 0, refused = 0;
  for (int round = 0; round < 30000; ++round) {
    Bytes bytes = seeds[rng() % std::size(seeds)];
    const int flips = 1 + static_cast<int>(rng() % 6);
    for (int i = 0; i < flips; ++i) {
      bytes[rng() % bytes.size()] ^= static_cast<std::byte>(1u << (rng() % 8));
    }
    if (rng() % 4 == 0) {
      bytes.resize(8 * (1 + rng() % (bytes.size() / 8)));
      set_word(bytes, 0, uint64_t{bytes.size() / 8 - 1} << 32);  // so that the framing lets it in
    }
    accepted += decode_driver_state(bytes).has_value() + decode_quality(bytes).has_value() +
                decode_calibration(bytes).has_value();
    refused += !kind_of_event(bytes).has_value();
  }
  EXPECT_GT(accepted, 1000) << "Almost nothing got past the envelope: the fields were not tried.";
  EXPECT_GT(refused, 1000);
}

TEST(Hostile, RandomWordsNeverCrash) {
  std::mt19937_64 rng(test_seed() + 1);
  for (int round = 0; round < 20000; ++round) {
    Bytes bytes(8 * (1 + rng() % 40));
    for (size_t i = 1; i < bytes.size() / 8; ++i) {
      set_word(bytes, i, rng() & (rng() % 2 != 0 ? 0x0007000700000ffc : ~uint64_t{0}));
    }
    set_word(bytes, 0, uint64_t{bytes.size() / 8 - 1} << 32);
    (void)decode_driver_state(bytes);
    (void)decode_quality(bytes);
    (void)decode_calibration(bytes);
  }
}

// ---- the run path --------------------------------------------------------------------------------------------------

TEST(EventWriter, AllocatesNothingAfterTheFirstMessages) {
  EventWriter writer;
  const Bytes raw(553 * 4, std::byte{3});
  DriverState state = golden_state();
  state.right = state.left;
  state.raw_predictions = raw;
  const DriverStateQuality quality = full_quality();
  ASSERT_TRUE(writer.driver_state(state, true, 1));
  const int64_t before = testing::allocation_count();
  bool all_good = true;
  for (uint64_t i = 0; i < 100; ++i) {
    all_good = all_good && writer.driver_state(state, true, i).has_value();
    all_good = all_good && writer.quality(quality).has_value();
  }
  EXPECT_EQ(testing::allocation_count(), before);
  EXPECT_TRUE(all_good);
}

TEST(FramedSize, WaitsForTheWholeTable) {
  Bytes table(8 * 3);
  set_word(table, 0, 3 | (uint64_t{1} << 32));  // four segments: 1, 2, 3, 4 words
  set_word(table, 1, 2 | (uint64_t{3} << 32));
  set_word(table, 2, 4);
  for (size_t size = 0; size < 24; ++size) {
    EXPECT_EQ(*framed_size(std::span(table).first(size)), 0u) << size;
  }
  EXPECT_EQ(*framed_size(table), 8u * (3 + 1 + 2 + 3 + 4));
}

}  // namespace
}  // namespace ignis::pipeline
