#include "ignis/base/on_threads.h"

#include <algorithm>
#include <atomic>
#include <system_error>
#include <thread>
#include <vector>

namespace ignis {

void on_threads(size_t count, size_t threads, const std::function<void(size_t)>& work) {
  std::atomic<size_t> next{0};
  const auto take = [&] {
    for (size_t i = next.fetch_add(1); i < count; i = next.fetch_add(1)) work(i);
  };
  std::vector<std::thread> helpers;
  try {
    for (size_t t = 1; t < std::min(threads, count); ++t) helpers.emplace_back(take);
  } catch (const std::system_error&) {
    // No more threads to be had: those there are do the work.
  }
  take();
  for (std::thread& helper : helpers) helper.join();
}

}  // namespace ignis
