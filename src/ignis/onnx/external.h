#pragma once

#include "ignis/base/result.h"
#include "ignis/onnx/import.h"
#include "ignis/onnx/model.h"
#include "ignis/onnx/wire.h"

#include <map>
#include <string>

namespace ignis::onnx {

/// Opens the files that tensors with external data name, by the one set of rules for initialisers, sparse tensors and
/// attributes: the location is relative to the model's folder, has no `..`, no component of it is a symbolic link, and
/// the file is a regular one with a single link (a second link could be a file from elsewhere). Everything is looked
/// at before anything is opened. Each file is mapped once.
class ExternalFiles {
 public:
  /// Refuses every file: a model from memory has no folder.
  ExternalFiles() = default;
  /// `folder` is where the model lies ("" is the current one).
  ExternalFiles(std::string folder, int64_t max_file_bytes)
      : has_folder_(true),
        folder_(folder.empty() ? "." : std::move(folder)),
        max_file_bytes_(max_file_bytes) {}

  /// The bytes of `tensor`, which has external data and takes `size_bytes`.
  /// Errors: InvalidArgument whose reason is one of NoFolder, BadLocation, AbsolutePath, ParentPath, SymbolicLink,
  /// HardLink, NotRegular, OutOfRange, BadKey; NotFound when there is no such file.
  Result<FileBytes> read(const TensorProto& tensor, int64_t size_bytes);
  /// Bytes of all files opened so far.
  int64_t mapped_bytes() const { return mapped_bytes_; }

 private:
  Result<FileBytes> map(const std::string& location);

  bool has_folder_ = false;
  std::string folder_;
  int64_t max_file_bytes_ = 0;
  std::map<std::string, FileBytes> mapped_;
  int64_t mapped_bytes_ = 0;
};

}  // namespace ignis::onnx
