#pragma once

#include "ignis/base/host_tensor.h"
#include "ignis/base/result.h"

#include <optional>
#include <string>
#include <vector>

namespace ignis::conformance {

/// One case of the ONNX back-end test layout: a folder with `model.onnx` and `test_data_set_<n>/{input,output}_<i>.pb`.
struct Case {
  std::string name;  ///< "node/test_abs"
  std::string folder;
  bool has_model = false;  ///< the "real" cases name an archive to download instead
};

/// All case folders below the given roots, ordered by name; a root is searched two levels deep.
std::vector<Case> find_cases(const std::vector<std::string>& roots);

/// Values of one data set. An absent value is one that is no tensor (a sequence, an optional, strings).
struct DataSet {
  std::string folder;
  std::vector<std::optional<HostTensor>> inputs, outputs;
};
Result<std::vector<DataSet>> read_data_sets(const Case& test_case);

/// Reads a serialised TensorProto. Errors: Unsupported for an element type that no dtype stands for.
Result<HostTensor> read_tensor_file(const std::string& path);

}  // namespace ignis::conformance
