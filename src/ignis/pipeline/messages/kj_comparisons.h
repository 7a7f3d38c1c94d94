#pragma once

// Cap'n Proto up to 0.9 leaves these two out in C++20, because a compiler may turn the arguments of the members around.
// Clang does not (P2468: a class with its own != is not turned around), and then <capnp/blob.h> does not compile.
// Include this before any header of Cap'n Proto.

#include <kj/string.h>

#if defined(__clang__) && defined(__cpp_impl_three_way_comparison)
namespace kj {
inline bool operator==(const char* a, const StringPtr& b) { return b == StringPtr(a); }
inline bool operator!=(const char* a, const StringPtr& b) { return !(b == StringPtr(a)); }
}  // namespace kj
#endif
