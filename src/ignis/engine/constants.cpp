#include "ignis/engine/constants.h"

#include "ignis/base/on_threads.h"
#include "ignis/engine/pack.h"
#include "ignis/engine/plan_capture.h"
#include "ignis/exec/external_memory.h"
#include "ignis/exec/model.h"
#include "ignis/exec/run_linked.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <map>
#include <string>

namespace ignis::engine {
namespace {

using schedule::BufferRole;
using schedule::Schedule;

// Below this a thread costs more than it saves.
constexpr int64_t kBytesPerThread = int64_t{1} << 20;

// Memory that keeps its device.
struct OwnedMemory {
  std::shared_ptr<runtime::Device> device;
  runtime::DeviceMemory memory;
};

class ConstantMaker {
 public:
  ConstantMaker(const Schedule& schedule, const CompiledKernels& kernels,
                std::shared_ptr<runtime::Device> device)
      : schedule_(schedule),
        kernels_(kernels),
        device_(std::move(device)),
        made_(schedule.buffers.size()),
        writable_(schedule.buffers.size()) {}

  Status place();
  Status pack();
  Status run_load_kernels(runtime::Deadline deadline);
  std::vector<ConstantBytes> take() { return std::move(made_); }

 private:
  Status allocate(size_t index);
  Status pack_one(const schedule::Pack& step);
  Result<exec::Schedule> schedule_load_kernels(const std::string& host) const;
  exec::ScheduleBuffer host_buffer(int index, const std::string& host) const;
  const schedule::Buffer& buffer(int index) const {
    return schedule_.buffers[static_cast<size_t>(index)];
  }
  std::span<const std::byte> bytes(int index) const {
    return {made_[static_cast<size_t>(index)].bytes,
            static_cast<size_t>(buffer(index).size_bytes())};
  }

  const Schedule& schedule_;
  const CompiledKernels& kernels_;
  std::shared_ptr<runtime::Device> device_;
  std::vector<ConstantBytes> made_;
  std::vector<std::byte*> writable_;  // our own memory of a buffer, or null
};

Status ConstantMaker::allocate(size_t index) {
  auto owned = std::make_shared<OwnedMemory>();
  owned->device = device_;
  const auto size = static_cast<uint64_t>(schedule_.buffers[index].size_bytes());
  IGNIS_TRY_ASSIGN(owned->memory, device_->allocate(size));
  writable_[index] = owned->memory.bytes();
  made_[index] = {owned->memory.bytes(), std::move(owned)};
  return {};
}

Status ConstantMaker::place() {
  for (size_t i = 0; i < schedule_.buffers.size(); ++i) {
    const schedule::Buffer& b = schedule_.buffers[i];
    if (b.role != BufferRole::Constant) continue;
    if (b.data.bytes == nullptr) {  // filled by a pack or a kernel
      IGNIS_TRY(allocate(i));
      continue;
    }
    if (b.data.size_bytes < b.size_bytes()) {
      return Error(ErrorCode::Internal,
                   "Constant '" + b.name + "' has " + std::to_string(b.data.size_bytes) +
                       " bytes; " + std::string(to_string(b.dtype)) + " " + to_string(b.shape) +
                       " needs " + std::to_string(b.size_bytes()) + ".");
    }
    const auto address = reinterpret_cast<uintptr_t>(b.data.bytes);
    if (address % static_cast<uintptr_t>(size_bytes(b.dtype)) == 0) {
      made_[i] = {b.data.bytes, b.data.owner};
      continue;
    }
    // A model file may hold numbers at odd places; programs read aligned elements only.
    IGNIS_TRY(allocate(i));
    std::memcpy(writable_[i], b.data.bytes, static_cast<size_t>(b.size_bytes()));
  }
  return {};
}

Status ConstantMaker::pack_one(const schedule::Pack& step) {
  std::byte* dest = writable_[static_cast<size_t>(step.dest)];
  // The source is the model's: packs do not feed each other and may run in any order.
  if (dest == nullptr || buffer(step.source).data.bytes == nullptr) {
    return Error(ErrorCode::Internal, "Pack of '" + buffer(step.source).name + "' into '" +
                                          buffer(step.dest).name + "' is no constant's.");
  }
  return run_pack(step, buffer(step.source), bytes(step.source), buffer(step.dest),
                  {dest, static_cast<size_t>(buffer(step.dest).size_bytes())});
}

Status ConstantMaker::pack() {
  int64_t total_bytes = 0;
  for (const schedule::Pack& step : schedule_.packs) total_bytes += buffer(step.dest).size_bytes();
  const size_t wanted = std::min(static_cast<size_t>(runtime::usable_threads()),
                                 static_cast<size_t>(1 + total_bytes / kBytesPerThread));
  std::vector<Status> results(schedule_.packs.size());
  on_threads(results.size(), wanted, [&](size_t i) { results[i] = pack_one(schedule_.packs[i]); });
  for (Status& result : results) IGNIS_TRY(std::move(result));
  return {};
}

// The kernels as calls of the host on the constants' memory.
Result<exec::Schedule> ConstantMaker::schedule_load_kernels(const std::string& host) const {
  exec::Schedule made;
  std::map<size_t, int> programs;  // numbers in `made`
  std::map<int, int> buffers;
  for (size_t k = 0; k < schedule_.kernels.size(); ++k) {
    const schedule::Kernel& kernel = schedule_.kernels[k];
    if (!kernel.at_load) continue;
    const auto p = static_cast<size_t>(kernels_.program_of[k]);
    const auto [program, is_new] = programs.try_emplace(p, static_cast<int>(made.programs.size()));
    if (is_new) made.programs.push_back(kernels_.programs[p].image);
    exec::ScheduleCall call;
    call.name = kernels_.names[p];
    call.program = program->second;
    call.outs = kernel.written;
    call.parts = std::max<int64_t>(kernels_.programs[p].parallel_units, 1);
    for (size_t slot = 0; slot < kernel.buffers.size(); ++slot) {
      const int b = kernel.buffers[slot];
      const bool is_written = std::find(kernel.written.begin(), kernel.written.end(),
                                        static_cast<int>(slot)) != kernel.written.end();
      if (!is_written) call.ins.push_back(static_cast<int>(slot));
      if (buffer(b).role != BufferRole::Constant) {
        return Error(ErrorCode::Internal, "Kernel '" + call.name + "' runs at load but touches '" +
                                              buffer(b).name + "', which is no constant.");
      }
      if (is_written && writable_[static_cast<size_t>(b)] == nullptr) {
        return Error(ErrorCode::Internal,
                     "Kernel '" + call.name + "' writes into the model's own constants.");
      }
      const auto [number, is_first] = buffers.try_emplace(b, static_cast<int>(made.buffers.size()));
      if (is_first) made.buffers.push_back(host_buffer(b, host));
      exec::BufferView view;
      view.buffer = number->second;
      call.arguments.push_back(view);
    }
    made.calls.push_back(std::move(call));
  }
  return made;
}

exec::ScheduleBuffer ConstantMaker::host_buffer(int index, const std::string& host) const {
  const ConstantBytes& from = made_[static_cast<size_t>(index)];
  exec::ScheduleBuffer made;
  made.name = buffer(index).name;
  made.devices = {host};
  made.size_bytes = static_cast<uint64_t>(buffer(index).size_bytes());
  // Programs take all memory as one kind of pointer; the model's own is only read.
  made.memory = {std::make_shared<exec::ExternalMemory>(host, const_cast<std::byte*>(from.bytes),
                                                        made.size_bytes, from.owner)};
  return made;
}

Status ConstantMaker::run_load_kernels(runtime::Deadline deadline) {
  exec::MachineOptions machine_options;
  machine_options.host = device_;
  const std::shared_ptr<exec::Machine> machine = exec::Machine::create(std::move(machine_options));
  IGNIS_TRY_ASSIGN(const exec::Schedule calls, schedule_load_kernels(machine->options().host_name));
  if (calls.calls.empty()) return {};
  IGNIS_TRY_ASSIGN(const exec::TemplateRef made, compile_for_host(calls, *machine));
  IGNIS_TRY_ASSIGN(const std::shared_ptr<exec::LinkedSchedule> linked,
                   exec::link(machine, made, {}));
  const runtime::WaitLimits limits = exec::limits_until(deadline);
  Status status =
      exec::end_run(exec::run(*linked, {}, {.limits = limits}), *device_->queue(), limits,
                    [&](const runtime::WaitLimits& again) { return exec::wait(*linked, again); });
  if (!status && !device_->state()) {
    // A stuck thread may still be at it.
    runtime::abandon(linked);
    for (const ConstantBytes& constant : made_) runtime::abandon(constant.owner);
  }
  return status;
}

}  // namespace

Result<Constants> make_constants(const Schedule& schedule, const CompiledKernels& kernels,
                                 const std::shared_ptr<runtime::Device>& device,
                                 runtime::Deadline deadline) {
  const auto begin = std::chrono::steady_clock::now();
  ConstantMaker maker(schedule, kernels, device);
  IGNIS_TRY(maker.place());
  IGNIS_TRY(maker.pack());
  IGNIS_TRY(maker.run_load_kernels(deadline));
  Constants constants;
  constants.buffers = maker.take();
  constants.pack_s =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return constants;
}

}  // namespace ignis::engine
