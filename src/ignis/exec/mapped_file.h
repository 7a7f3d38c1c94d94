#pragma once

#include "ignis/base/result.h"

#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace ignis::exec {

/// A file's bytes, mapped read-only while an owner lives.
struct MappedFile {
  std::span<const std::byte> bytes;
  std::shared_ptr<const void> owner;
};

/// Errors: NotFound; InvalidArgument for what is no regular file.
Result<MappedFile> map_file(const std::string& path);

}  // namespace ignis::exec
