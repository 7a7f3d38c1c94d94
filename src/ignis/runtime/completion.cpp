#include "ignis/runtime/completion.h"

#include <algorithm>

namespace ignis::runtime {

std::optional<QueueComplete> QueueComplete::prove(const Submitted& batch, QueueId queue,
                                                  const std::atomic<uint64_t>& signal,
                                                  uint64_t last_value) {
  // The next run of the batch zeroes the signal, but not before this one has passed the timeline.
  if (batch.is_reached() || signal.load() >= last_value) return QueueComplete(queue);
  return std::nullopt;
}

std::optional<KernelComplete> KernelComplete::prove_by_signal(const Submitted& batch, int tag,
                                                              const std::atomic<uint64_t>& signal) {
  if (!batch.device().capabilities().is_in_order) return std::nullopt;
  if (signal.load() < static_cast<uint64_t>(tag) + 1) return std::nullopt;
  return KernelComplete(batch, tag);
}

std::optional<KernelComplete> KernelComplete::prove_by_timeline(const Submitted& batch, int tag) {
  if (!batch.is_reached()) return std::nullopt;
  return KernelComplete(batch, tag);
}

Result<MadeVisible> MadeVisible::make(const KernelComplete& writer, const MemoryRef& memory,
                                      uint64_t begin_bytes, uint64_t end_bytes) {
  IGNIS_TRY(writer.batch().device().make_visible(memory, begin_bytes, end_bytes));
  return MadeVisible(writer.batch(), writer.tag(), {memory.get(), begin_bytes, end_bytes});
}

std::optional<DataReadable> DataReadable::prove(const MemoryBytes& bytes,
                                                std::span<const KernelComplete> writers,
                                                std::span<const MadeVisible> visible) {
  for (const KernelComplete& writer : writers) {
    const Submitted& batch = writer.batch();
    if (!batch.is_alive()) return std::nullopt;
    if (batch.device().capabilities().is_host_coherent) continue;
    const bool is_visible =
        std::any_of(visible.begin(), visible.end(), [&](const MadeVisible& step) {
          return &step.batch().device() == &batch.device() &&
                 step.batch().generation() == batch.generation() &&
                 step.batch().value() == batch.value() && step.tag() == writer.tag() &&
                 step.bytes().memory == bytes.memory &&
                 step.bytes().begin_bytes <= bytes.begin_bytes &&
                 bytes.end_bytes <= step.bytes().end_bytes;
        });
    if (!is_visible) return std::nullopt;
  }
  return DataReadable(bytes);
}

}  // namespace ignis::runtime
