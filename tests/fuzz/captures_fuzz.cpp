// Fuzz target: captures and queue templates as a file may hold them. What is read has one spelling, so it writes the same bytes.
#include "ignis/base/check.h"
#include "ignis/exec/captured_section.h"
#include "ignis/exec/template_section.h"

#include "tests/fuzz/mutate.h"

#include <algorithm>
#include <span>
#include <vector>

using namespace ignis;

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  if (const auto queues = exec::read_template(bytes)) {
    ByteWriter again;
    exec::write_template(again, *queues);
    IGNIS_CHECK(std::equal(bytes.begin(), bytes.end(), again.bytes().begin(), again.bytes().end()));
  }
  alignas(256) static const std::byte weights[1024] = {};
  if (const auto captured = exec::read_captured(bytes, weights, nullptr)) {
    ByteWriter again;
    const auto place = [](std::span<const std::byte> held) {
      return static_cast<uint64_t>(held.data() - weights);
    };
    IGNIS_CHECK(exec::write_captured(again, **captured, place));
    IGNIS_CHECK(std::equal(bytes.begin(), bytes.end(), again.bytes().begin(), again.bytes().end()));
  }
  return 0;
}
