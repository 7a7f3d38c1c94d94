// Fuzz target: the ONNX wire reader and the importer on arbitrary bytes. Limits are small, so that a run is fast and what
// exceeds them shows as slow or large.
#include "ignis/interp/interp.h"
#include "ignis/onnx/import.h"

#include "tests/fuzz/mutate.h"

using namespace ignis;

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, size_t size) {
  onnx::ImportOptions options;
  options.limits.max_elements = 1 << 20;
  options.limits.max_fold_elements = 1 << 12;
  options.limits.max_total_nodes = 20'000;
  options.evaluate = [](const ir::Node& node) -> Result<HostTensor> {
    const std::vector<ir::Node> roots{node};
    IGNIS_TRY_ASSIGN(std::vector<HostTensor> values, interp::evaluate(roots, {}));
    return std::move(values[0]);
  };
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  (void)onnx::import_bytes(bytes, options);
  return 0;
}
