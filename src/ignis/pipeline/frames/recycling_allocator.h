#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

namespace ignis::pipeline {

/// Memory blocks of one size that are kept for the next one who asks. Any thread.
class BlockList {
 public:
  explicit BlockList(size_t max_kept) : max_kept_(max_kept) { free_.reserve(max_kept); }
  BlockList(const BlockList&) = delete;
  BlockList& operator=(const BlockList&) = delete;
  ~BlockList() {
    for (void* block : free_) ::operator delete(block);
  }
  void* take(size_t size_bytes) {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (size_bytes == size_bytes_ && !free_.empty()) {
        void* block = free_.back();
        free_.pop_back();
        return block;
      }
      if (size_bytes_ == 0) size_bytes_ = size_bytes;
    }
    return ::operator new(size_bytes);
  }
  void give(void* block, size_t size_bytes) {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (size_bytes == size_bytes_ && free_.size() < max_kept_) {
        free_.push_back(block);  // within the reserved room
        return;
      }
    }
    ::operator delete(block);
  }

 private:
  const size_t max_kept_;
  std::mutex mutex_;
  size_t size_bytes_ = 0;  ///< of the first block taken; others pass through
  std::vector<void*> free_;
};

/// For std::allocate_shared: the one block of object and counts comes from a BlockList, so that making a frame's owner
/// allocates nothing once the stream runs.
template <typename T>
class RecyclingAllocator {
 public:
  using value_type = T;
  explicit RecyclingAllocator(std::shared_ptr<BlockList> blocks) : blocks_(std::move(blocks)) {}
  template <typename U>
  RecyclingAllocator(const RecyclingAllocator<U>& other)  // NOLINT: implicit as allocators are
      : blocks_(other.blocks()) {}
  T* allocate(size_t count) { return static_cast<T*>(blocks_->take(count * sizeof(T))); }
  void deallocate(T* block, size_t count) { blocks_->give(block, count * sizeof(T)); }
  const std::shared_ptr<BlockList>& blocks() const { return blocks_; }
  template <typename U>
  bool operator==(const RecyclingAllocator<U>& other) const {
    return blocks_ == other.blocks();
  }

 private:
  std::shared_ptr<BlockList> blocks_;
};

}  // namespace ignis::pipeline
