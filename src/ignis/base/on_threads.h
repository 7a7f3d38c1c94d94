#pragma once

#include <cstddef>
#include <functional>

namespace ignis {

/// Calls `work(i)` for each i in [0, count), on up to `threads` threads, the calling one included, and returns when all
/// are done. The order is not defined. Runs on fewer threads when the system gives no more.
void on_threads(size_t count, size_t threads, const std::function<void(size_t)>& work);

}  // namespace ignis
