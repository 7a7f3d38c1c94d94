#include "ignis/exec/patch.h"

#include "ignis/exec/submit_program.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace ignis::exec {

void store_word(std::byte* at, uint32_t width_bytes, uint64_t value) {
  // Sizes that the compiler knows become single stores.
  switch (width_bytes) {
    case 8: std::memcpy(at, &value, 8); return;
    case 4: std::memcpy(at, &value, 4); return;
    default: std::memcpy(at, &value, width_bytes); return;
  }
}

void apply_patches(std::span<const PatchRecord> records, std::span<const uint64_t> values,
                   std::span<std::byte> words) {
  for (const PatchRecord& record : records) {
    store_word(words.data() + record.offset_bytes, record.width_bytes,
               values[record.value] + static_cast<uint64_t>(record.addend));
  }
}

RunTimeWords::RunTimeWords() : remote_{&RunTimeWords::store_remote, this} {}

Status RunTimeWords::use(const SubmitProgram& made,
                         std::shared_ptr<const runtime::Program> program) {
  std::vector<WordStore> stores;
  for (size_t i = 0; i < blocks_.size(); ++i) {
    for (const PatchRecord& record : blocks_[i].patches) {
      stores.push_back({static_cast<uint32_t>(i), record.offset_bytes, record.value,
                        static_cast<uint8_t>(record.width_bytes), blocks_[i].window != nullptr,
                        record.addend});
    }
  }
  const ContentHash hash = hash_submit_code(make_submit_code(std::move(stores), made.is_rolled));
  if (hash != made.code || program == nullptr || program->host_entry() == nullptr ||
      program->buffer_count() != kSubmitBuffers) {
    return Error(ErrorCode::InvalidArgument,
                 "Submit program '" + made.image.name +
                     "' is not made for the words of its batch on these devices; compile the "
                     "template again.",
                 "BadSubmitProgram");
  }
  places_.clear();
  for (const LinkedWords& block : blocks_) {
    places_.push_back(block.window == nullptr ? block.words.data() : nullptr);
  }
  if (made.is_rolled) make_table();
  program_ = std::move(program);
  entry_ = program_->host_entry();
  return {};
}

void RunTimeWords::make_table() {
  rows_.clear();
  for (int kind = 0; kind < kStoreKinds; ++kind) {
    for (size_t i = 0; i < blocks_.size(); ++i) {
      const LinkedWords& block = blocks_[i];
      const bool is_remote = block.window != nullptr;
      for (const PatchRecord& record : block.patches) {
        if (store_kind(record.width_bytes, is_remote) != kind) continue;
        const uint64_t place =
            is_remote ? uint64_t{i} << 32 | record.offset_bytes
                      : reinterpret_cast<uint64_t>(block.words.data()) + record.offset_bytes;
        rows_.push_back({place, record.value, record.addend});
      }
    }
    table_.end[kind] = rows_.size();
  }
  table_.rows = rows_.data();
}

void RunTimeWords::store_remote(void* context, uint64_t words, uint64_t offset_bytes,
                                uint64_t value, uint64_t width_bytes) {
  auto& self = *static_cast<RunTimeWords*>(context);
  if (!self.remote_status_) return;
  const LinkedWords& block = self.blocks_[words];
  self.remote_status_ = block.window->store_word(block.memory, block.offset_bytes + offset_bytes,
                                                 value, static_cast<uint32_t>(width_bytes));
}

Status RunTimeWords::fill(std::span<const uint64_t> values) {
  if (entry_ == nullptr) return fill_by_loop(values);
  remote_status_ = Status::ok();
  // A program only reads what its buffers point at.
  void* const buffers[kSubmitBuffers] = {const_cast<uint64_t*>(values.data()), places_.data(),
                                         &remote_, &table_};
  entry_(buffers, 0, 1);
  return std::exchange(remote_status_, Status::ok());
}

Status RunTimeWords::fill_by_loop(std::span<const uint64_t> values) {
  remote_status_ = Status::ok();
  for (size_t i = 0; i < blocks_.size(); ++i) {
    const LinkedWords& block = blocks_[i];
    if (block.window == nullptr) {
      apply_patches(block.patches, values, block.words);
      continue;
    }
    for (const PatchRecord& record : block.patches) {
      store_remote(this, i, record.offset_bytes,
                   values[record.value] + static_cast<uint64_t>(record.addend), record.width_bytes);
    }
  }
  return std::exchange(remote_status_, Status::ok());
}

}  // namespace ignis::exec
