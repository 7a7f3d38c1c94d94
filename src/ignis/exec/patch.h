#pragma once

#include "ignis/base/result.h"
#include "ignis/base/submit_program.h"
#include "ignis/exec/queue_template.h"
#include "ignis/runtime/device.h"
#include "ignis/runtime/queued_device.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace ignis::exec {

/// A hole in words and where its value stands in a table of values.
struct PatchRecord {
  uint32_t offset_bytes = 0;
  uint32_t width_bytes = 8;  ///< 1, 2, 4 or 8
  uint32_t value = 0;        ///< index into the table
  int64_t addend = 0;
  bool operator==(const PatchRecord&) const = default;
};

/// Stores the low `width_bytes` of `value`, little-endian; touches no other byte.
void store_word(std::byte* at, uint32_t width_bytes, uint64_t value);

/// Stores values[record.value] + record.addend at each record's place: what a submit program does to one block of words. Records
/// were checked when they were made; it allocates nothing and calls nothing.
void apply_patches(std::span<const PatchRecord> records, std::span<const uint64_t> values,
                   std::span<std::byte> words);

/// Words with holes that change from run to run: a stream's, or a part's in memory that a device reads.
struct LinkedWords {
  std::span<std::byte> words;  ///< where the host writes them; without bytes behind a window
  std::vector<PatchRecord> patches;
  /// The device that stores into them when they lie behind a window: at `offset_bytes` of `memory`.
  runtime::QueuedDevice* window = nullptr;
  runtime::MemoryRef memory{};
  uint64_t offset_bytes = 0;
};

/// All words of a linked batch that change from run to run, and what fills them: the batch's submit program, or where it has none
/// a loop over the same records.
class RunTimeWords {
 public:
  RunTimeWords();
  RunTimeWords(const RunTimeWords&) = delete;
  RunTimeWords& operator=(const RunTimeWords&) = delete;

  /// Blocks are numbered in the order they come. Not after use().
  void add(LinkedWords block) { blocks_.push_back(std::move(block)); }
  std::span<const LinkedWords> blocks() const { return blocks_; }

  /// Fills them by `program`, which is `made` loaded, from now on. Whether it is made for these very holes is checked.
  /// Errors: InvalidArgument with the reason BadSubmitProgram.
  Status use(const SubmitProgram& made, std::shared_ptr<const runtime::Program> program);
  bool has_program() const { return entry_ != nullptr; }

  /// One run. Allocates nothing when it succeeds. Errors: those of a store through a window; what was stored before stays.
  Status fill(std::span<const uint64_t> values);
  /// The same by the loop, whether there is a program or not.
  Status fill_by_loop(std::span<const uint64_t> values);

 private:
  static void store_remote(void* context, uint64_t words, uint64_t offset_bytes, uint64_t value,
                           uint64_t width_bytes);
  void make_table();

  std::vector<LinkedWords> blocks_;
  std::shared_ptr<const runtime::Program> program_;
  runtime::Program::HostEntry entry_ = nullptr;
  std::vector<std::byte*> places_;  ///< of the blocks
  std::vector<StoreRow> rows_;
  StoreTable table_;
  RemoteStores remote_;
  Status remote_status_;  ///< the first store of this run that failed
};

}  // namespace ignis::exec
