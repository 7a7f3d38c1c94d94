// A bounded run of frames_fuzz.cpp: damaged copies of good records and indexes. Passing is not crashing, also under the
// sanitizers.
#include "ignis/pipeline/frames/layout.h"
#include "ignis/pipeline/frames/raw_index.h"
#include "ignis/pipeline/frames/ring_protocol.h"

#include "tests/fuzz/mutate.h"
#include <gtest/gtest.h>

namespace ignis {
namespace {

using namespace ignis::pipeline;  // NOLINT: the frames

std::vector<std::vector<std::byte>> good_inputs() {
  std::vector<std::vector<std::byte>> inputs;
  ring::Ring memory;
  memory.server_id = 1;
  memory.slot_count = 4;
  memory.layout = nv12_layout(1928, 1208).value();
  memory.memory_bytes = ring::memory_bytes(memory.layout, memory.slot_count);
  const std::vector<ring::Record> records = {
      ring::Hello{1},   memory,          ring::FrameRecord{}, ring::Pin{1, 2, 3, 0},
      ring::PinReply{}, ring::Release{}, ring::Quiet{},       ring::Refusal{}};
  for (const ring::Record& record : records) {
    const ring::Packet packet = ring::encode(record);
    inputs.emplace_back(packet.span().begin(), packet.span().end());
  }
  RawIndex index;
  index.layout = nv12_layout(1928, 1208).value();
  index.frames = {{1, 2, 3, true}, {2, 4, 5, false}};
  const std::string text = to_json(index);
  const auto bytes = std::as_bytes(std::span(text));
  inputs.emplace_back(bytes.begin(), bytes.end());
  return inputs;
}

TEST(FramesFuzz, DamagedInputsAreRefusedOrReadButNeverCrash) {
  RecordProperty("seed", std::to_string(fuzz::test_seed()));
  SCOPED_TRACE("IGNIS_TEST_SEED=" + std::to_string(fuzz::test_seed()));
  std::mt19937_64 rng(fuzz::test_seed());
  const auto inputs = good_inputs();
  for (int i = 0; i < 20000; ++i) {
    const auto input = fuzz::mutate(inputs[static_cast<size_t>(i) % inputs.size()], rng);
    LLVMFuzzerTestOneInput(reinterpret_cast<const unsigned char*>(input.data()), input.size());
  }
}

}  // namespace
}  // namespace ignis
