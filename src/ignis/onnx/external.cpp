#include "ignis/onnx/external.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <optional>
#include <vector>

namespace ignis::onnx {
namespace {

struct ExternalKeys {
  std::string location;
  int64_t offset_bytes = 0;
  std::optional<int64_t> length_bytes;
};

Error refuse(const std::string& what, const char* reason) {
  return Error(ErrorCode::InvalidArgument, what, reason);
}

/// A decimal number without sign that fits int64: a length of 2^63 must not wrap into a small one.
Result<int64_t> parse_bytes(const KeyValue& kv) {
  int64_t value = 0;
  const char* end = kv.value.data() + kv.value.size();
  const auto [stop, error] = std::from_chars(kv.value.data(), end, value);
  if (error != std::errc() || stop != end || kv.value.empty() || value < 0) {
    return refuse("External data has " + std::string(kv.key) + " '" +
                      std::string(kv.value.substr(0, 40)) + "'.",
                  "OutOfRange");
  }
  return value;
}

/// Keys other than these three are for other programs (a checksum, prepacked weights): ignored, never interpreted.
Result<ExternalKeys> read_keys(const TensorProto& tensor) {
  ExternalKeys keys;
  bool has_location = false, has_offset = false;
  for (const KeyValue& kv : tensor.external_data) {
    const bool repeated = (kv.key == "location" && has_location) ||
                          (kv.key == "offset" && has_offset) ||
                          (kv.key == "length" && keys.length_bytes.has_value());
    if (repeated) {
      return refuse("External data gives '" + std::string(kv.key) + "' twice.", "BadKey");
    }
    if (kv.key == "location") {
      keys.location = kv.value;
      has_location = true;
    } else if (kv.key == "offset") {
      IGNIS_TRY_ASSIGN(keys.offset_bytes, parse_bytes(kv));
      has_offset = true;
    } else if (kv.key == "length") {
      IGNIS_TRY_ASSIGN(keys.length_bytes, parse_bytes(kv));
    }
  }
  if (!has_location) return refuse("External data names no location.", "BadLocation");
  return keys;
}

/// The components of a relative path, without `.`.
Result<std::vector<std::string>> split_location(const std::string& location) {
  if (location.empty() || location.find('\0') != std::string::npos || location.size() > 4096) {
    return refuse("External data has an empty or malformed location.", "BadLocation");
  }
  if (location.front() == '/') {
    return refuse("External data location '" + location + "' is an absolute path.", "AbsolutePath");
  }
  std::vector<std::string> components;
  for (size_t begin = 0; begin <= location.size();) {
    const size_t end = std::min(location.find('/', begin), location.size());
    const std::string component = location.substr(begin, end - begin);
    if (component == "..") {
      return refuse("External data location '" + location + "' leaves the model's folder.",
                    "ParentPath");
    }
    if (!component.empty() && component != ".") components.push_back(component);
    begin = end + 1;
  }
  if (components.empty()) {
    return refuse("External data location '" + location + "' names no file.", "BadLocation");
  }
  return components;
}

Error cannot_open(const std::string& location) {
  return Error(ErrorCode::NotFound, "External data file '" + location +
                                        "' cannot be opened: " + std::strerror(errno) + ".");
}

/// Looks at a component without opening it.
Result<struct stat> look(const FileHandle& folder, const std::string& component,
                         const std::string& location) {
  struct stat info{};
  if (::fstatat(folder.descriptor(), component.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) {
    return cannot_open(location);
  }
  if (S_ISLNK(info.st_mode)) {
    return refuse("External data location '" + location + "' goes through the symbolic link '" +
                      component + "'.",
                  "SymbolicLink");
  }
  return info;
}

Status check_plain_file(const struct stat& info, const std::string& location) {
  if (!S_ISREG(info.st_mode)) {
    return refuse("External data location '" + location + "' is not a regular file.", "NotRegular");
  }
  if (info.st_nlink != 1) {
    return refuse("External data file '" + location + "' has " + std::to_string(info.st_nlink) +
                      " hard links.",
                  "HardLink");
  }
  return Status::ok();
}

}  // namespace

Result<FileBytes> ExternalFiles::map(const std::string& location) {
  if (const auto found = mapped_.find(location); found != mapped_.end()) return found->second;
  if (!has_folder_) {
    return refuse("The model has external data but was not read from a file.", "NoFolder");
  }
  IGNIS_TRY_ASSIGN(const std::vector<std::string> components, split_location(location));
  FileHandle folder(::open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder) return cannot_open(folder_);
  for (size_t i = 0; i + 1 < components.size(); ++i) {
    IGNIS_TRY(look(folder, components[i], location));
    FileHandle next(::openat(folder.descriptor(), components[i].c_str(),
                             O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!next) return cannot_open(location);
    folder = std::move(next);
  }
  const std::string& name = components.back();
  IGNIS_TRY_ASSIGN(const struct stat before, look(folder, name, location));
  IGNIS_TRY(check_plain_file(before, location));
  const FileHandle file(
      ::openat(folder.descriptor(), name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!file) return cannot_open(location);
  // The file may have been exchanged between the look and the opening: what counts is what is open.
  struct stat opened{};
  if (::fstat(file.descriptor(), &opened) != 0) return cannot_open(location);
  IGNIS_TRY(check_plain_file(opened, location));
  IGNIS_TRY_ASSIGN(MappedFile mapped, map_open_file(file, location, max_file_bytes_));
  mapped_bytes_ += static_cast<int64_t>(mapped.bytes.size());
  return mapped_.emplace(location, FileBytes::of(std::move(mapped))).first->second;
}

Result<FileBytes> ExternalFiles::read(const TensorProto& tensor, int64_t size_bytes) {
  IGNIS_TRY_ASSIGN(const ExternalKeys keys, read_keys(tensor));
  if (keys.length_bytes.has_value() && *keys.length_bytes != size_bytes) {
    return refuse("External data has length " + std::to_string(*keys.length_bytes) +
                      "; the tensor takes " + std::to_string(size_bytes) + " bytes.",
                  "OutOfRange");
  }
  IGNIS_TRY_ASSIGN(const FileBytes file, map(keys.location));
  const int64_t file_bytes = static_cast<int64_t>(file.bytes.size());
  if (keys.offset_bytes > file_bytes || size_bytes > file_bytes - keys.offset_bytes) {
    return refuse("External data asks for " + std::to_string(size_bytes) + " bytes at offset " +
                      std::to_string(keys.offset_bytes) + " of '" + keys.location +
                      "', which has " + std::to_string(file_bytes) + " bytes.",
                  "OutOfRange");
  }
  return FileBytes{
      file.bytes.substr(static_cast<size_t>(keys.offset_bytes), static_cast<size_t>(size_bytes)),
      file.owner};
}

}  // namespace ignis::onnx
