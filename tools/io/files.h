#pragma once

#include "ignis/base/result.h"

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace ignis::tools {

/// The whole file. Errors: NotFound, or InvalidArgument when it is not a readable regular file.
Result<std::vector<std::byte>> read_file(const std::string& path);
/// Writes beside the path and renames: the path holds the old file or the whole new one. "-" is standard output.
Status write_file(const std::string& path, std::span<const std::byte> bytes);
Status write_file(const std::string& path, const std::string& text);

}  // namespace ignis::tools
