#include "ignis/base/check.h"

#include <cstdio>
#include <cstdlib>

namespace ignis::detail {

CheckFailure::CheckFailure(const char* condition, const char* file, int line) {
  text_ << file << ":" << line << ": check failed: " << condition << " ";
}

CheckFailure::~CheckFailure() {
  std::fprintf(stderr, "%s\n", text_.str().c_str());
  std::abort();
}

}  // namespace ignis::detail
