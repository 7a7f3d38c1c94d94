#pragma once

#include "ignis/engine/queues/dependencies.h"
#include "ignis/engine/queues/device_table.h"
#include "ignis/exec/queue_template.h"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace ignis::engine {

/// Turns the calls of a batch, whose devices and queues are chosen, into the streams of its queues (queue spec 6.1, 6.2):
/// start, waits, calls, marks, closing queues, in submit order. Fills streams, is_marked and, when profiled, time slots.
/// A call that was marked before stays marked. A stream's signal number is its index.
///
/// A device that does not complete in order gets a barrier in front of a call that must follow one of its own queue, and in
/// front of each store: a store then says that all before it is done, as it does on a queue in order.
void build_streams(const DeviceTable& table, std::span<const exec::ScheduleBuffer> buffers,
                   const BaseTable& bases, bool is_profiled, exec::Batch& batch);

/// The stream of a host run: its calls in order, marked ones with their signal, then the store of the host's timeline. They
/// need no waits among themselves, and the host itself waits before it submits.
void build_host_stream(bool is_profiled, exec::Batch& batch);

/// Other devices of the batch that own an argument of a call, ascending.
std::vector<int> peers_of(const exec::Batch& batch, std::span<const exec::ScheduleBuffer> buffers,
                          const exec::BatchCall& call);

/// Queues of device `device` in the batch.
int count_queues(const exec::Batch& batch, int device);
/// Bytes of a device's signal slots: queue signals, the epoch and, when profiled, two times for each call of the batch.
uint64_t signal_bytes(const exec::Batch& batch, int device, bool is_profiled);

/// A stream in the notation of the queue spec: "G/COPY:0: B; W R[G]>=N; c0; T S=1". k is a program, c a copy, "@3" a time
/// stamp into slot 3.
std::string to_text(const exec::Batch& batch, const exec::QueueStream& stream);
std::string to_text(const exec::Batch& batch, const runtime::Command& command);
/// All streams in submit order, one in a line.
std::string to_text(const exec::Batch& batch);
/// All steps: "batch 0", "batch 1 no-wait", "host 2", each with the steps it follows ("after 0"), calls and streams.
std::string to_text(const exec::QueueTemplate& made);

}  // namespace ignis::engine
