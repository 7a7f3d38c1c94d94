// Fuzz target: what frame sources read from elsewhere. The same bytes are taken for a record of the ring, a notification
// of the reference protocol, and the index of a raw file. What is accepted has to come back from the writer, and a layout
// that is accepted lies in its buffer.
#include "ignis/base/check.h"
#include "ignis/pipeline/frames/layout.h"
#include "ignis/pipeline/frames/raw_index.h"
#include "ignis/pipeline/frames/reference_ring_client.h"
#include "ignis/pipeline/frames/ring_protocol.h"

#include "tests/fuzz/mutate.h"

#include <span>
#include <string_view>

using namespace ignis;
using namespace ignis::pipeline;

namespace {

void try_record(std::span<const std::byte> packet) {
  const Result<ring::Record> record = ring::decode(packet);
  if (!record) return;
  const ring::Packet again = ring::encode(*record);
  IGNIS_CHECK(ring::decode(again.span()).value() == *record);
  const auto* memory = std::get_if<ring::Ring>(&*record);
  if (memory == nullptr || !ring::check_ring(*memory)) return;
  const FrameLayout& layout = memory->layout;
  const uint64_t last =
      ring::slots_offset(memory->slot_count) + ring::slot_stride(layout) * (memory->slot_count - 1);
  IGNIS_CHECK(last + static_cast<uint64_t>(layout.size_bytes) <= memory->memory_bytes);
  IGNIS_CHECK(luma_bytes(layout) <= static_cast<uint64_t>(layout.size_bytes));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  try_record(bytes);
  (void)decode_reference_notification(bytes);
  const auto index = parse_raw_index(std::string_view(reinterpret_cast<const char*>(data), size));
  if (index) IGNIS_CHECK(parse_raw_index(to_json(*index)).value().frames == index->frames);
  return 0;
}
