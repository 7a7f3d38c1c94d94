#pragma once

#include <cstdint>
#include <cstdlib>

namespace ignis::testing {

/// The seed of a random test: IGNIS_TEST_SEED, or a fixed one. Put it into the trace, so that a failing run can be repeated.
inline uint64_t test_seed() {
  const char* text = std::getenv("IGNIS_TEST_SEED");
  return text != nullptr && *text != '\0' ? std::strtoull(text, nullptr, 10) : 20240611;
}

}  // namespace ignis::testing
