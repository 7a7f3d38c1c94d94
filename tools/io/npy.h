#pragma once

#include "ignis/base/host_tensor.h"

#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace ignis::tools {

/// Reads one array of NumPy's npy format, versions 1 to 3. The bytes are hostile: the header's length, the shape and
/// the size are checked before memory is taken. Fortran order is turned into row-major order.
/// bfloat16 is what ml_dtypes writes: '<V2'.
/// Errors: InvalidArgument with a sentence for what is malformed, big-endian, or of a type Ignis has not.
Result<HostTensor> parse_npy(std::span<const std::byte> bytes);

/// The array as npy version 1. The fp8 types have no NumPy name: their codes are written as uint8.
std::vector<std::byte> format_npy(const HostTensor& tensor);

/// A named array of an archive.
using NamedTensor = std::pair<std::string, HostTensor>;

/// Reads the arrays of an npz archive (zip; stored or deflated members, zip64), in the archive's order, names without
/// ".npy". Errors: InvalidArgument; the message names the member.
Result<std::vector<NamedTensor>> parse_npz(std::span<const std::byte> bytes);

/// The arrays as an npz archive of stored members. Errors: InvalidArgument beyond 4 GiB or 65,535 members.
Result<std::vector<std::byte>> format_npz(const std::vector<NamedTensor>& tensors);

}  // namespace ignis::tools
