#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace ignis::ir {

/// One value for each node id, made in pages when first touched: a pass over a small part of a large graph pays for
/// that part only. A fresh entry is value-initialised.
template <typename T>
class SideArray {
 public:
  T& operator[](uint32_t id) {
    const size_t page = id >> kPageBits;
    if (page >= pages_.size()) pages_.resize(page + 1);
    if (!pages_[page]) pages_[page] = std::make_unique<T[]>(kPageSize);
    return pages_[page][id & (kPageSize - 1)];
  }
  /// The entry, or null when its page was never touched.
  const T* find(uint32_t id) const {
    const size_t page = id >> kPageBits;
    return page < pages_.size() && pages_[page] ? &pages_[page][id & (kPageSize - 1)] : nullptr;
  }
  void clear() { pages_.clear(); }

 private:
  static constexpr int kPageBits = 8;
  static constexpr uint32_t kPageSize = 1u << kPageBits;
  std::vector<std::unique_ptr<T[]>> pages_;
};

}  // namespace ignis::ir
