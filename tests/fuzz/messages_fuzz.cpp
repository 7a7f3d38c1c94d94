// Fuzz target: the message decoders on arbitrary bytes, as they come and with a framing that fits. What a decoder accepts
// has to come back from the packer: the second packing equals the first.
#include "ignis/base/check.h"
#include "ignis/pipeline/messages/wire.h"

#include "tests/fuzz/mutate.h"

#include <algorithm>
#include <cstring>
#include <span>

using namespace ignis;
using namespace ignis::pipeline;

namespace {

using Bytes = std::vector<std::byte>;

Bytes copy_of(const Result<std::span<const std::byte>>& packed) {
  return Bytes(packed.value().begin(), packed.value().end());
}

Bytes pack(EventWriter& writer, const StateEvent& event) {
  DriverState state = event.state;
  state.raw_predictions = event.raw_predictions;
  return copy_of(writer.driver_state(state, event.valid, event.log_mono_time_ns));
}

void decode_all(std::span<const std::byte> message) {
  EventWriter writer;
  (void)kind_of_event(message);
  if (const auto event = decode_driver_state(message);
      event && event->raw_predictions.size() <= kMaxRawPredictionsBytes) {
    const Bytes first = pack(writer, *event);
    IGNIS_CHECK(pack(writer, decode_driver_state(first).value()) == first);
  }
  if (const auto quality = decode_quality(message)) {
    const Bytes first = copy_of(writer.quality(*quality));
    IGNIS_CHECK(copy_of(writer.quality(decode_quality(first).value())) == first);
  }
  if (const auto calibration = decode_calibration(message)) {
    const Bytes first = copy_of(writer.calibration(*calibration));
    IGNIS_CHECK(copy_of(writer.calibration(decode_calibration(first).value())) == first);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  decode_all(bytes);
  // As one segment of whole words, so that the bytes behind the framing are tried too.
  const auto words = static_cast<uint32_t>(size / 8);
  if (words == 0) return 0;
  Bytes framed(8 * size_t{words});
  std::copy_n(bytes.begin(), framed.size(), framed.begin());
  const uint32_t head[2] = {0, words - 1};
  std::memcpy(framed.data(), head, sizeof(head));
  decode_all(framed);
  return 0;
}
