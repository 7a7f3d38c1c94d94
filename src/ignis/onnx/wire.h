#pragma once

#include "ignis/base/mapped_file.h"
#include "ignis/base/result.h"
#include "ignis/onnx/import.h"
#include "ignis/onnx/model.h"

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace ignis::onnx {

/// Bytes of a file mapped read-only, or bytes someone else keeps. Copies share the mapping.
struct FileBytes {
  std::string_view bytes;
  std::shared_ptr<const void> owner;  ///< keeps `bytes` valid; null for borrowed bytes
  static FileBytes of(MappedFile file) {
    return {{reinterpret_cast<const char*>(file.bytes.data()), file.bytes.size()},
            std::move(file.owner)};
  }
};

/// Maps a regular file. Errors: NotFound when it cannot be opened, InvalidArgument when it is no regular file or has
/// more than `max_bytes` (reason LimitExceeded).
Result<FileBytes> map_file(const std::string& path, int64_t max_bytes);

/// Reads the wire format into plain structures that point into `bytes`. Unknown fields are skipped. Every list is
/// counted against the limits before it grows.
/// Errors: InvalidArgument for a malformed message (reason Malformed) or one over a limit (LimitExceeded).
Result<ModelProto> parse_model(std::string_view bytes, const Limits& limits);

/// Decodes the typed data of a tensor (float_data, int32_data, …; not raw or external data) into little-endian
/// elements of `size_bytes` each, exactly `count` of them. Errors: InvalidArgument when there are fewer or more, or
/// when the field that holds them does not belong to the data type.
Result<std::vector<std::byte>> decode_typed_data(const TensorProto& tensor, int64_t count,
                                                 int element_size_bytes);

}  // namespace ignis::onnx
