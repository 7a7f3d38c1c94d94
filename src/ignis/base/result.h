#pragma once

#include "ignis/base/check.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ignis {

/// The few kinds of failure a caller acts on. Finer distinctions are an Error's reason().
enum class ErrorCode : uint8_t {
  InvalidArgument,  ///< refused input: shape, dtype, name, malformed file
  Unsupported,      ///< well-formed, but this build or device cannot do it
  NotFound,
  OutOfMemory,
  DeviceLost,
  Timeout,
  Internal,
};

/// Returns the enumerator's spelling, e.g. "InvalidArgument".
std::string_view to_string(ErrorCode code);

/// What went wrong, as a sentence with both values, and where. Cheap to move: one pointer.
class [[nodiscard]] Error {
 public:
  Error(ErrorCode code, std::string message, std::string reason = {});
  Error(Error&&) noexcept = default;
  Error& operator=(Error&&) noexcept = default;
  Error(const Error& other);
  Error& operator=(const Error& other);

  ErrorCode code() const;
  /// The sentence, without context.
  const std::string& message() const;
  /// The finer name used in the specifications ("FenceTimeout", "LimitExceeded"); may be empty.
  const std::string& reason() const;
  /// Context frames, innermost first.
  const std::vector<std::string>& context() const;
  /// Adds where this happened: a node, file or device name.
  Error&& with_context(std::string where) &&;
  /// "code: message (in inner, in outer)".
  std::string to_string() const;

 private:
  struct Body;
  std::shared_ptr<Body> body_;
};

/// A value or an Error; member names follow C++23's std::expected.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}      // NOLINT: implicit by design
  Result(Error error) : error_(std::move(error)) {}  // NOLINT: implicit by design

  bool has_value() const { return value_.has_value(); }
  explicit operator bool() const { return has_value(); }
  T& value() & {
    IGNIS_CHECK(has_value()) << error_->to_string();
    return *value_;
  }
  const T& value() const& {
    IGNIS_CHECK(has_value()) << error_->to_string();
    return *value_;
  }
  T&& value() && {
    IGNIS_CHECK(has_value()) << error_->to_string();
    return std::move(*value_);
  }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }
  const Error& error() const& {
    IGNIS_CHECK(!has_value());
    return *error_;
  }
  Error&& error() && {
    IGNIS_CHECK(!has_value());
    return std::move(*error_);
  }

 private:
  std::optional<T> value_;
  std::optional<Error> error_;
};

/// Success or an Error.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Error error) : error_(std::move(error)) {}  // NOLINT: implicit by design
  static Status ok() { return Status(); }
  bool has_value() const { return !error_.has_value(); }
  explicit operator bool() const { return has_value(); }
  const Error& error() const& {
    IGNIS_CHECK(!has_value());
    return *error_;
  }
  Error&& error() && {
    IGNIS_CHECK(!has_value());
    return std::move(*error_);
  }

 private:
  std::optional<Error> error_;
};

}  // namespace ignis

#define IGNIS_CONCAT_INNER(a, b) a##b
#define IGNIS_CONCAT(a, b) IGNIS_CONCAT_INNER(a, b)

/// Returns the error of a Status or Result expression from the enclosing function.
#define IGNIS_TRY(expr)                                        \
  do {                                                         \
    auto ignis_status = (expr);                                \
    if (!ignis_status) return std::move(ignis_status).error(); \
  } while (false)

/// Declares or assigns `lhs` from a Result, or returns its error.
#define IGNIS_TRY_ASSIGN(lhs, expr) \
  IGNIS_TRY_ASSIGN_INNER(IGNIS_CONCAT(ignis_result_, __LINE__), lhs, expr)
#define IGNIS_TRY_ASSIGN_INNER(tmp, lhs, expr) \
  auto tmp = (expr);                           \
  if (!tmp) return std::move(tmp).error();     \
  lhs = *std::move(tmp)
