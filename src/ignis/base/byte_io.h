#pragma once

#include "ignis/base/result.h"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace ignis {

static_assert(std::endian::native == std::endian::little,
              "files are little-endian, and so is every target");

/// Appends little-endian fields. Texts and blobs carry their length as a u32 or u64 before them.
class ByteWriter {
 public:
  template <typename T>
  void put(T value) {
    static_assert(std::is_arithmetic_v<T> && !std::is_same_v<T, bool>);
    const auto* first = reinterpret_cast<const std::byte*>(&value);
    bytes_.insert(bytes_.end(), first, first + sizeof value);
  }
  void put_raw(std::span<const std::byte> bytes) {
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }
  void put_blob(std::span<const std::byte> bytes) {
    put(static_cast<uint64_t>(bytes.size()));
    put_raw(bytes);
  }
  void put_text(std::string_view text) {
    put(static_cast<uint32_t>(text.size()));
    put_raw(std::as_bytes(std::span(text)));
  }
  /// Zeros up to the next multiple of `alignment`.
  void align(uint64_t alignment) {
    bytes_.resize((bytes_.size() + alignment - 1) / alignment * alignment);
  }
  uint64_t size() const { return bytes_.size(); }
  const std::vector<std::byte>& bytes() const { return bytes_; }
  std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  std::vector<std::byte> bytes_;
};

/// Reads little-endian fields of bytes that may hold anything. A read past the end gives zeros and sticks; whoever reads
/// a record looks at check() once at its end, and bounds every count by fits() before a loop or an allocation.
class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  template <typename T>
  T take() {
    static_assert(std::is_arithmetic_v<T> && !std::is_same_v<T, bool>);
    T value{};
    const std::span<const std::byte> raw = take_raw(sizeof value);
    if (!raw.empty()) std::memcpy(&value, raw.data(), sizeof value);
    return value;
  }
  std::span<const std::byte> take_raw(uint64_t count) {
    if (count > remaining()) {
      is_whole_ = false;
      at_ = bytes_.size();
      return {};
    }
    const std::span<const std::byte> raw = bytes_.subspan(at_, count);
    at_ += count;
    return raw;
  }
  std::span<const std::byte> take_blob() { return take_raw(take<uint64_t>()); }
  std::string take_text() {
    const std::span<const std::byte> raw = take_raw(take<uint32_t>());
    return {reinterpret_cast<const char*>(raw.data()), raw.size()};
  }
  /// A count of entries that take at least `entry_bytes` each; 0 and a failed check() when they cannot all be there.
  uint64_t take_count(uint64_t entry_bytes) {
    const uint64_t count = take<uint32_t>();
    if (count <= remaining() / entry_bytes) return count;
    is_whole_ = false;
    at_ = bytes_.size();
    return 0;
  }
  uint64_t remaining() const { return bytes_.size() - at_; }
  bool is_whole() const { return is_whole_; }
  /// Ok when every read was inside and nothing is left over. Errors: InvalidArgument "Truncated" or "TrailingBytes".
  Status check(std::string_view what) const {
    if (!is_whole_) {
      return Error(ErrorCode::InvalidArgument, "The " + std::string(what) + " ends too early.",
                   "Truncated");
    }
    if (remaining() != 0) {
      return Error(
          ErrorCode::InvalidArgument,
          "The " + std::string(what) + " has " + std::to_string(remaining()) + " bytes too many.",
          "TrailingBytes");
    }
    return {};
  }

 private:
  std::span<const std::byte> bytes_;
  uint64_t at_ = 0;
  bool is_whole_ = true;
};

}  // namespace ignis
