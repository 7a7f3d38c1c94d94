#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>

/// Replaces the program's operator new by one that counts. Include it in one source of a test program; that program's tests
/// then take differences:
///
///     const int64_t before = testing::allocation_count();
///     run();
///     EXPECT_EQ(testing::allocation_count() - before, 0);
namespace ignis::testing {

namespace detail {
inline std::atomic<int64_t> allocations{0};
inline thread_local int64_t allocations_here = 0;

inline void* allocate(std::size_t size_bytes, std::size_t alignment) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  ++allocations_here;
  const std::size_t size = size_bytes == 0 ? 1 : size_bytes;
  void* memory =
      alignment <= alignof(std::max_align_t)
          ? std::malloc(size)
          : std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
}  // namespace detail

/// Calls of operator new so far, by any thread.
inline int64_t allocation_count() { return detail::allocations.load(); }
/// Those of the calling thread.
inline int64_t thread_allocation_count() { return detail::allocations_here; }

}  // namespace ignis::testing

// Not inlined, or the compiler sees free() meet new. The array forms call these.
[[gnu::noinline]] void* operator new(std::size_t size) {
  return ignis::testing::detail::allocate(size, 1);
}
// The sanitizers bring forms of their own, so the one that libraries use for "or null" is replaced, too.
[[gnu::noinline]] void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  try {
    return ignis::testing::detail::allocate(size, 1);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
[[gnu::noinline]] void* operator new(std::size_t size, std::align_val_t alignment) {
  return ignis::testing::detail::allocate(size, static_cast<std::size_t>(alignment));
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  std::free(memory);
}
