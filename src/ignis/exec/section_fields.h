#pragma once

#include "ignis/base/byte_io.h"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ignis::exec {

/// Fields of sections that hold plain data. Each value has one spelling, so equal data are equal bytes, and what reads back
/// writes the same.
inline void put_bool(ByteWriter& to, bool value) { to.put(static_cast<uint8_t>(value ? 1 : 0)); }
template <typename E>
void put_enum(ByteWriter& to, E value) {
  to.put(static_cast<uint8_t>(value));
}
inline void put_int(ByteWriter& to, int value) { to.put(static_cast<int32_t>(value)); }
template <typename T>
void put_count(ByteWriter& to, const T& of) {
  to.put(static_cast<uint32_t>(of.size()));
}
inline void put_ints(ByteWriter& to, std::span<const int> values) {
  put_count(to, values);
  for (const int value : values) put_int(to, value);
}
inline void put_texts(ByteWriter& to, std::span<const std::string> texts) {
  put_count(to, texts);
  for (const std::string& text : texts) to.put_text(text);
}

/// Reads them from bytes that may hold anything. A value that nobody writes sticks, as a read past the end does.
class FieldReader {
 public:
  explicit FieldReader(std::span<const std::byte> bytes) : from_(bytes) {}

  template <typename T>
  T take() {
    return from_.take<T>();
  }
  bool take_bool() {
    const auto value = from_.take<uint8_t>();
    if (value > 1) is_valid_ = false;
    return value == 1;
  }
  /// Values from 0 to `last`.
  template <typename E>
  E take_enum(E last) {
    const auto value = from_.take<uint8_t>();
    if (value <= static_cast<uint8_t>(last)) return static_cast<E>(value);
    is_valid_ = false;
    return last;
  }
  int take_int() { return from_.take<int32_t>(); }
  std::string take_text() { return from_.take_text(); }
  std::span<const std::byte> take_raw(uint64_t count) { return from_.take_raw(count); }
  std::span<const std::byte> take_blob() { return from_.take_blob(); }
  std::vector<std::byte> take_bytes() {
    const std::span<const std::byte> bytes = from_.take_blob();
    return {bytes.begin(), bytes.end()};
  }
  uint64_t take_count(uint64_t entry_bytes) { return from_.take_count(entry_bytes); }
  std::vector<int> take_ints() {
    std::vector<int> values(take_count(sizeof(int32_t)));
    for (int& value : values) value = take_int();
    return values;
  }
  std::vector<std::string> take_texts() {
    std::vector<std::string> texts(take_count(sizeof(uint32_t)));
    for (std::string& text : texts) text = take_text();
    return texts;
  }
  void refuse() { is_valid_ = false; }

  /// Errors: InvalidArgument with the reason Truncated or TrailingBytes, or `reason` for a value that nobody writes.
  Status check(std::string_view what, std::string_view reason) const {
    if (is_valid_ || !from_.is_whole()) return from_.check(what);
    return Error(ErrorCode::InvalidArgument,
                 "The " + std::string(what) + " holds a value that no writer writes.",
                 std::string(reason));
  }

 private:
  ByteReader from_;
  bool is_valid_ = true;
};

}  // namespace ignis::exec
