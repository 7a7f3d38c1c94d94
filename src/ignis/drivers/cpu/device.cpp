#include "ignis/drivers/cpu/device.h"

#include "ignis/base/log.h"
#include "ignis/drivers/cpu/cpu_count.h"
#include "ignis/drivers/cpu/denormals.h"
#include "ignis/drivers/cpu/loader.h"
#include "ignis/drivers/cpu/memory.h"
#include "ignis/drivers/cpu/pool.h"
#include "ignis/drivers/cpu/queue.h"
#include "ignis/runtime/reasons.h"

#include <map>
#include <mutex>
#include <optional>

namespace ignis::cpu {
namespace {

class CpuProgram final : public runtime::Program {
 public:
  CpuProgram(const ProgramImage& image, LoadedObject object)
      : Program(image.name, image.buffer_count),
        object_(std::move(object)),
        entry_(object_.entry()) {}
  Entry entry() const { return entry_; }
  HostEntry host_entry() const override { return entry_; }

 private:
  LoadedObject object_;
  Entry entry_;
};

// Pools are shared unless it is asked otherwise: two sessions do not start twice the threads. A lost pool is replaced, and
// so is one that a fork left without threads.
Result<std::shared_ptr<Pool>> pool_for(const runtime::DeviceOptions& options) {
  static std::mutex& mutex = *new std::mutex;
  static auto& pools = *new std::map<std::pair<int, std::chrono::nanoseconds>, std::weak_ptr<Pool>>;
  PoolOptions wanted = {options.threads == 0 ? usable_cpus() : options.threads, options.spin};
  if (!options.shares_threads) return Pool::create(wanted);
  const std::lock_guard lock(mutex);
  std::weak_ptr<Pool>& known = pools[{wanted.threads, wanted.spin}];
  std::shared_ptr<Pool> running = known.lock();
  if (running != nullptr && !running->is_lost() && running->is_of_this_process()) return running;
  IGNIS_TRY_ASSIGN(std::shared_ptr<Pool> pool, Pool::create(wanted));
  known = pool;
  return pool;
}

void call_part(void* context, int64_t part, int64_t parts) {
  const auto* launch = static_cast<const runtime::Launch*>(context);
  static_cast<const CpuProgram*>(launch->program)->entry()(launch->buffers, part, parts);
}

class CpuDevice final : public runtime::Device {
 public:
  CpuDevice(std::string name, Target target, std::shared_ptr<Pool> pool,
            const runtime::DeviceOptions& options)
      : Device(std::move(name), std::move(target)),
        pool_(std::move(pool)),
        queue_([options] { return pool_for(options); }, options.spin) {}

  int threads() const override { return pool_->threads(); }
  Result<runtime::DeviceMemory> allocate(uint64_t size_bytes) override;
  Result<std::shared_ptr<const runtime::Program>> load(const ProgramImage& image) override;
  Status run(std::span<const runtime::Launch> launches, runtime::Deadline deadline,
             std::span<runtime::LaunchTime> times) override;
  Status state() const override;
  runtime::QueuedDevice* queue() override { return &queue_; }

 private:
  Status pool_state() const;
  void release(std::byte* bytes, uint64_t size_bytes) noexcept override;

  std::shared_ptr<Pool> pool_;
  CpuQueue queue_;
};

Result<runtime::DeviceMemory> CpuDevice::allocate(uint64_t size_bytes) {
  std::byte* bytes = map_bytes(size_bytes);
  if (bytes == nullptr) {
    return Error(ErrorCode::OutOfMemory,
                 std::to_string(size_bytes) + " bytes of memory are not to be had.");
  }
  return make_memory(bytes, size_bytes);
}

void CpuDevice::release(std::byte* bytes, uint64_t size_bytes) noexcept {
  // A worker that never came back may still write here; the pages stay.
  if (pool_->is_lost()) {
    IGNIS_LOG(Warning, "cpu") << size_bytes << " bytes are kept: the device is lost.";
    return;
  }
  unmap_bytes(bytes, size_bytes);
}

Result<std::shared_ptr<const runtime::Program>> CpuDevice::load(const ProgramImage& image) {
  Result<LoadedObject> object = LoadedObject::load(image.object, image.name);
  if (!object) return std::move(object).error().with_context("program '" + image.name + "'");
  if (!object->is_executable()) {
    return Error(ErrorCode::Unsupported,
                 "Program '" + image.name + "' is for another architecture than this machine's.");
  }
  if (image.buffer_count < 0) {
    return Error(ErrorCode::InvalidArgument, "Program '" + image.name + "' has " +
                                                 std::to_string(image.buffer_count) + " buffers.");
  }
  return std::shared_ptr<const runtime::Program>(
      std::make_shared<CpuProgram>(image, *std::move(object)));
}

Status CpuDevice::run(std::span<const runtime::Launch> launches, runtime::Deadline deadline,
                      std::span<runtime::LaunchTime> times) {
  using Clock = std::chrono::steady_clock;
  IGNIS_CHECK(times.empty() || times.size() == launches.size());
  const bool needs_workers = std::any_of(launches.begin(), launches.end(),
                                         [](const auto& launch) { return launch.parts > 1; });
  std::optional<Pool::Lease> lease;
  if (needs_workers) {
    IGNIS_TRY_ASSIGN(Pool::Lease granted, pool_->begin());
    lease.emplace(std::move(granted));
  } else {
    IGNIS_TRY(pool_state());
  }
  const FlushDenormals flush;
  for (size_t i = 0; i < launches.size(); ++i) {
    const runtime::Launch& launch = launches[i];
    const Clock::time_point begin = Clock::now();
    if (begin >= deadline) {
      return Error(ErrorCode::Timeout, "The deadline passed before call " + std::to_string(i) +
                                           " of " + std::to_string(launches.size()) + ", '" +
                                           launch.program->name() + "'.");
    }
    if (lease && launch.parts > 1) {
      // The pool hands the context to the task unchanged, which only reads it.
      Status status =
          lease->run(call_part, const_cast<runtime::Launch*>(&launch), launch.parts, deadline);
      if (!status) return std::move(status).error().with_context(launch.program->name());
    } else {
      call_part(const_cast<runtime::Launch*>(&launch), 0, 1);
    }
    if (!times.empty()) times[i] = {begin, Clock::now()};
  }
  if (!launches.empty() && Clock::now() >= deadline) {
    return Error(ErrorCode::Timeout, "The run of " + std::to_string(launches.size()) +
                                         " calls ended after its deadline.");
  }
  return {};
}

Status CpuDevice::pool_state() const {
  if (!pool_->is_lost()) return {};
  return Error(ErrorCode::DeviceLost,
               "The CPU's threads are lost: a program did not come back by its deadline.",
               "PoolLost");
}

Status CpuDevice::state() const {
  const runtime::DeviceState state = queue_.state();
  if (state.condition != runtime::DeviceCondition::Unavailable) return pool_state();
  return Error(ErrorCode::DeviceLost, "The CPU's worker is lost: " + state.reason,
               std::string(runtime::reason::kDeviceUnavailable));
}

}  // namespace

Result<Target> find_target(const runtime::DeviceSpec& spec) {
  if (!spec.interface.empty() || spec.index != 0) {
    return Error(ErrorCode::NotFound,
                 "Device '" + spec.to_string() + "' does not exist: there is one 'cpu'.");
  }
  Target target = detect_host_target();
  if (!spec.features.empty()) {
    Result<Isa> isa = parse_features(spec.features);
    if (!isa) return std::move(isa).error().with_context("device '" + spec.to_string() + "'");
    target = make_target(*isa);
  }
  if (!spec.renderer.empty()) target.renderer = spec.renderer;
  if (target.renderer != "llvm" && target.renderer != "c" && target.renderer != "interp") {
    return Error(ErrorCode::NotFound, "Device '" + spec.to_string() + "' has the renderer '" +
                                          spec.renderer +
                                          "'; the cpu has 'llvm', 'c' and 'interp'.");
  }
  return target;
}

Result<std::shared_ptr<runtime::Device>> open(const runtime::DeviceSpec& spec,
                                              const runtime::DeviceOptions& options) {
  IGNIS_TRY_ASSIGN(Target target, find_target(spec));
  const Target host = detect_host_target();
  target.l1_bytes = host.l1_bytes;
  target.l2_bytes = host.l2_bytes;
  target.l3_bytes = host.l3_bytes;
  if (!host.can_run(target)) {
    return Error(ErrorCode::Unsupported,
                 "Device '" + spec.to_string() + "' runs code for " + target.name() +
                     "; this machine is " + host.name() +
                     ". Open 'cpu', or compile an artifact for the other machine with --target.",
                 "TargetMismatch");
  }
  IGNIS_TRY_ASSIGN(std::shared_ptr<Pool> pool, pool_for(options));
  target.threads = pool->threads();
  return std::shared_ptr<runtime::Device>(
      std::make_shared<CpuDevice>(spec.to_string(), std::move(target), std::move(pool), options));
}

std::vector<runtime::DeviceInfo> list() {
  Target target = detect_host_target();
  target.threads = usable_cpus();
  const std::string isa(ignis::to_string(target.isa));
  std::vector<runtime::DeviceInfo> rows;
  rows.push_back({"cpu:llvm:" + isa, "CPU, programs made by LLVM in this process", target});
  target.renderer = "c";
  rows.push_back({"cpu:c", "CPU, programs made by a C compiler (needs clang-19 or gcc)", target});
  target.renderer = "interp";
  rows.push_back({"cpu:interp", "reference: evaluates the graph node by node", target});
  return rows;
}

}  // namespace ignis::cpu
