#pragma once

#include "ignis/base/submit_program.h"
#include "ignis/exec/content_hash.h"
#include "ignis/exec/queue_template.h"
#include "ignis/runtime/queued_device.h"

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace ignis::exec {

/// Where the value of a run-time patch stands among a batch's values: its address table, then what was announced on each of its
/// devices, then the run's variables.
uint32_t value_number(const Batch& batch, const runtime::Patch& patch);

/// Whether the words that a device reads in memory of its own lie behind a window: Capabilities::crosses_host_memory.
using IsBehindWindow = std::function<bool(int device)>;

/// All that a run of an encoded batch stores, block by block. Blocks are numbered as they come: of each stream its parts, then
/// its own words; those that no run changes have no number.
std::vector<WordStore> collect_stores(const Batch& batch, const IsBehindWindow& is_behind_window);

/// The code for stores: one after the other in an order that is kind to the processor, or a loop for each kind.
SubmitCode make_submit_code(std::vector<WordStore> stores, bool is_rolled);
/// Equal for equal code.
ContentHash hash_submit_code(const SubmitCode& code);

/// Takes all submit programs out: the template means the same without them, on hosts of any architecture.
void remove_submit_programs(QueueTemplate& queues);

}  // namespace ignis::exec
