#pragma once

#include <sstream>

namespace ignis::detail {

/// Collects a message and aborts the process when destroyed: our own invariant is broken.
class CheckFailure {
 public:
  CheckFailure(const char* condition, const char* file, int line);
  CheckFailure(const CheckFailure&) = delete;
  CheckFailure& operator=(const CheckFailure&) = delete;
  [[noreturn]] ~CheckFailure();
  template <typename T>
  CheckFailure& operator<<(const T& value) {
    text_ << value;
    return *this;
  }

 private:
  std::ostringstream text_;
};

/// Lets the check macro be one void expression that still takes `<<`.
struct CheckVoidify {
  void operator&(const CheckFailure&) const {}
};

}  // namespace ignis::detail

/// Aborts with the condition, the place and the streamed text when `cond` is false; in every build.
#define IGNIS_CHECK(cond)    \
  (cond)                     \
      ? static_cast<void>(0) \
      : ::ignis::detail::CheckVoidify() & ::ignis::detail::CheckFailure(#cond, __FILE__, __LINE__)

#ifdef NDEBUG
#define IGNIS_DCHECK(cond) IGNIS_CHECK(true || (cond))
#else
#define IGNIS_DCHECK(cond) IGNIS_CHECK(cond)
#endif
