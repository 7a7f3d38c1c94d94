#include "ignis/engine/capture/shadow_copies.h"

#include "ignis/engine/queues/view.h"

#include <string>
#include <utility>

namespace ignis::engine {
namespace {

/// The buffer that uses most of an input; null without one.
const exec::ScheduleBuffer* widest_buffer(const exec::Schedule& captured, size_t input) {
  const exec::ScheduleBuffer* widest = nullptr;
  for (const exec::ScheduleBuffer& buffer : captured.buffers) {
    if (buffer.input != static_cast<int>(input)) continue;
    if (widest == nullptr || buffer.size_bytes > widest->size_bytes) widest = &buffer;
  }
  return widest;
}

exec::Schedule copy_of(const exec::ScheduleBuffer& input) {
  exec::Schedule made;
  for (int number = 0; number < 2; ++number) {
    exec::ScheduleBuffer& buffer = made.buffers.emplace_back();
    buffer.name = (number == 0 ? "shadow of " : "") + input.name;
    buffer.devices = input.devices;
    buffer.size_bytes = input.size_bytes;
    buffer.input = number;
  }
  for (size_t lane = 0; lane < input.devices.size(); ++lane) {
    exec::ScheduleCall& call = made.calls.emplace_back();
    call.kind = exec::CallKind::Copy;
    call.name = "shadow of " + input.name;
    for (int number = 0; number < 2; ++number) {
      exec::BufferView view;
      view.buffer = number;
      if (input.devices.size() > 1) view = select_lane(view, static_cast<int>(lane));
      call.arguments.push_back(std::move(view));
    }
    call.outs = {0};
    call.ins = {1};
  }
  return made;
}

}  // namespace

Result<std::vector<exec::TemplateRef>> make_shadow_copies(
    const exec::Schedule& captured, size_t input_count,
    const TemplateCache::Environment& environment) {
  std::vector<exec::TemplateRef> made(input_count);
  TemplateCache cache;  // nothing is kept
  for (size_t i = 0; i < input_count; ++i) {
    const exec::ScheduleBuffer* input = widest_buffer(captured, i);
    if (input == nullptr) continue;
    IGNIS_TRY_ASSIGN(made[i], cache.compile(copy_of(*input), environment));
  }
  return made;
}

}  // namespace ignis::engine
