#pragma once

#include "ignis/base/result.h"

#include <string>
#include <string_view>
#include <vector>

namespace ignis::runtime {

/// A device as a person names it: `[interface+]kind[:index][:renderer[:features]]`, e.g. "cpu", "cpu:llvm:avx2",
/// "cuda:1", "usb+amd". All parts are in small letters.
struct DeviceSpec {
  std::string interface;  ///< may be empty: the kind's own choice
  std::string kind;
  int index = 0;
  std::string renderer;  ///< may be empty
  std::string features;  ///< may be empty
  bool operator==(const DeviceSpec&) const = default;
  /// The canonical text: small letters, no index 0.
  std::string to_string() const;
};

/// Reads one SPEC in any case. A part of digits only is the index. Errors: InvalidArgument quoting the part that
/// does not fit.
Result<DeviceSpec> parse_device_spec(std::string_view text);

/// Reads a comma list of SPECs, the order in which to try them. Errors: InvalidArgument.
Result<std::vector<DeviceSpec>> parse_device_list(std::string_view text);

}  // namespace ignis::runtime
