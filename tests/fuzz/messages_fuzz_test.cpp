// A bounded run of messages_fuzz.cpp: damaged copies of good messages. Passing is not crashing, also under the sanitizers.
#include "ignis/pipeline/messages/wire.h"

#include "tests/fuzz/mutate.h"
#include <gtest/gtest.h>

namespace ignis {
namespace {

using namespace ignis::pipeline;  // NOLINT: the messages

std::vector<std::vector<std::byte>> good_messages() {
  std::vector<std::vector<std::byte>> messages;
  EventWriter writer;
  const auto add = [&](const Result<std::span<const std::byte>>& packed) {
    messages.emplace_back(packed.value().begin(), packed.value().end());
  };
  const std::vector<std::byte> raw(20, std::byte{5});
  DriverState state;
  state.frame_id = 7;
  state.raw_predictions = raw;
  state.left.has_lists = state.right.has_lists = true;
  state.left.face_prob = 0.5f;
  add(writer.driver_state(state, true, 1));
  add(writer.driver_state(state, false, 2));
  DriverStateQuality quality;
  quality.profile = {"comma-553"};
  quality.non_finite_head = {"face_descs_lhd"};
  add(writer.quality(quality));
  Calibration calibration;
  calibration.rpy_rad = {0.1f, 0.2f, 0.3f};
  calibration.status = CalibrationStatus::Calibrated;
  add(writer.calibration(calibration));
  return messages;
}

TEST(MessagesFuzz, DamagedMessagesAreRefusedOrReadButNeverCrash) {
  RecordProperty("seed", std::to_string(fuzz::test_seed()));
  SCOPED_TRACE("IGNIS_TEST_SEED=" + std::to_string(fuzz::test_seed()));
  std::mt19937_64 rng(fuzz::test_seed());
  const auto messages = good_messages();
  for (int i = 0; i < 20000; ++i) {
    const auto message = fuzz::mutate(messages[static_cast<size_t>(i) % messages.size()], rng);
    LLVMFuzzerTestOneInput(reinterpret_cast<const unsigned char*>(message.data()), message.size());
  }
}

}  // namespace
}  // namespace ignis
