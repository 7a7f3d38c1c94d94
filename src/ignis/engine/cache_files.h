#pragma once

#include "ignis/base/result.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace ignis::engine {

/// Makes a folder and those above it, for this user only, and looks that nobody else may write to it: it will hold code.
/// Errors: InvalidArgument with the reason BadFolder.
Status make_private_folder(const std::string& path);

/// A whole regular file of at most `max_bytes`. Errors: NotFound; InvalidArgument with the reason BadFile.
Result<std::vector<std::byte>> read_whole_file(const std::string& path, uint64_t max_bytes);

/// Writes beside `path` and renames: `path` holds the old file or the whole new one, whenever the process dies.
/// Errors: InvalidArgument with the reason Full.
Status write_whole_file(const std::string& path, std::span<const std::byte> bytes);

/// In the names of files that are not whole yet.
inline constexpr char kUnfinished[] = ".new-";

}  // namespace ignis::engine
