#include "ignis/engine/queues/clock_offset.h"

#include "ignis/engine/queues/encode.h"
#include "ignis/exec/run_linked.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

namespace ignis::engine {
namespace {

using runtime::Command;

/// A batch that does nothing but look at the device's clock.
exec::QueueTemplate clock_template(const std::string& device) {
  exec::BatchCall call;
  call.name = "clock";
  call.kind = exec::CallKind::Other;
  call.start_slot = 2;  // behind the queue's signal and the epoch
  call.end_slot = 3;
  exec::QueueStream stream;
  stream.signal = 0;
  const auto append = [&](Command::Kind kind, int slot = -1) {
    Command command;
    command.kind = kind;
    command.device = 0;
    command.slot = slot;
    stream.commands.push_back(command);
  };
  append(Command::Kind::Barrier);
  append(Command::Kind::WaitReached);
  append(Command::Kind::Timestamp, call.start_slot);
  append(Command::Kind::Timestamp, call.end_slot);
  append(Command::Kind::StoreReached);
  exec::TemplateStep step;
  step.batch.devices = {device};
  step.batch.calls = {call};
  step.batch.streams = {std::move(stream)};
  exec::QueueTemplate made;
  made.is_profiled = true;
  made.steps.push_back(std::move(step));
  return made;
}

/// Split so that days of nanoseconds do not overflow.
int64_t ticks_to_ns(uint64_t ticks, uint32_t ticks_per_us) {
  return static_cast<int64_t>(ticks / ticks_per_us * 1000 +
                              ticks % ticks_per_us * 1000 / ticks_per_us);
}

}  // namespace

int64_t ClockOffset::to_host_ns(uint64_t ticks, uint32_t ticks_per_us) const {
  return ticks_to_ns(ticks, ticks_per_us) + offset_ns;
}

Result<ClockOffset> measure_clock_offset(const std::shared_ptr<exec::Machine>& machine,
                                         runtime::QueuedDevice& device) {
  exec::QueueTemplate made = clock_template(device.name());
  IGNIS_TRY(encode_template(made, [&](std::string_view) { return &device; }));
  IGNIS_TRY_ASSIGN(
      const std::shared_ptr<exec::LinkedSchedule> linked,
      exec::link(machine, std::make_shared<const exec::SharedTemplate>(std::move(made)), {}));
  std::array<int64_t, 5> offsets{};
  ClockOffset found;
  for (size_t i = 0; i < offsets.size(); ++i) {
    const int64_t begin_ns = machine->clock().now_ns();
    IGNIS_TRY(exec::run(*linked));
    const int64_t round_trip_ns = machine->clock().now_ns() - begin_ns;
    const std::vector<exec::CallRecord> records = exec::take_records(*linked);
    IGNIS_CHECK(records.size() == 1);
    const int64_t device_ns =
        ticks_to_ns(records[0].start_ticks, device.capabilities().ticks_per_us);
    offsets[i] = begin_ns + round_trip_ns / 2 - device_ns;
    const int64_t half_ns = (round_trip_ns + 1) / 2;
    found.uncertainty_ns = i == 0 ? half_ns : std::min(found.uncertainty_ns, half_ns);
  }
  std::sort(offsets.begin(), offsets.end());
  found.offset_ns = offsets[offsets.size() / 2];
  return found;
}

}  // namespace ignis::engine
