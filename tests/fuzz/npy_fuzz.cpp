// Fuzz target: the npy, npz, image and ONNX tensor readers on arbitrary bytes. What a reader accepts has to come back
// from the writer unchanged.
#include "ignis/base/check.h"

#include "tests/fuzz/mutate.h"
#include "tools/io/image.h"
#include "tools/io/npy.h"
#include "tools/io/tensor_proto.h"

using namespace ignis;

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  if (const auto tensor = tools::parse_npy(bytes)) {
    const auto back = tools::parse_npy(tools::format_npy(*tensor));
    IGNIS_CHECK(back && back->shape == tensor->shape && back->bytes == tensor->bytes);
  }
  if (const auto tensors = tools::parse_npz(bytes)) {
    if (const auto file = tools::format_npz(*tensors)) {
      const auto back = tools::parse_npz(*file);
      IGNIS_CHECK(back && back->size() == tensors->size());
    }
  }
  (void)tools::parse_tensor_proto(bytes);
  if (size < (1u << 16)) (void)tools::parse_image(bytes);
  return 0;
}
