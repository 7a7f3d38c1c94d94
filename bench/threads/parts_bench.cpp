// Where two or more threads lose time: each call of a compiled model (.ignis) as one part, as parts of which each runs alone on
// one core, and as parts on the driver's pool. What parts take alone tells how evenly a kernel is cut, whatever else the machine
// does meanwhile; what they take beside each other also holds waiting, and memory that two cores want at once.
//
//   ignis compile model.onnx --threads 2 -o model.ignis
//   ignis_bench_threads model.ignis [threads] [rounds]        (as root: chrt -f 10 in front keeps other programs off)
#include "ignis/base/target.h"
#include "ignis/drivers/cpu/denormals.h"
#include "ignis/drivers/cpu/loader.h"
#include "ignis/drivers/cpu/parts.h"
#include "ignis/drivers/cpu/pool.h"
#include "ignis/exec/artifact.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

namespace {

using ignis::Result;
using ignis::Status;
namespace cpu = ignis::cpu;
namespace exec = ignis::exec;

constexpr size_t kAlignment = size_t{2} << 20;

double now_us() {
  return std::chrono::duration<double, std::micro>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

/// Zeros that live as long as the process.
std::byte* make_zeros(int64_t size_bytes) {
  const size_t rounded = (static_cast<size_t>(size_bytes) / kAlignment + 1) * kAlignment;
  auto* bytes = static_cast<std::byte*>(std::aligned_alloc(kAlignment, rounded));
  std::fill_n(bytes, rounded, std::byte{0});
  return bytes;
}

/// One call, and the least times of it in microseconds.
struct Call {
  std::string name;
  cpu::Entry entry = nullptr;
  std::vector<void*> buffers;
  int64_t parts = 1;
  double whole_us = 1e18, on_pool_us = 1e18;
  std::vector<double> alone_us;

  double slowest_us() const { return *std::max_element(alone_us.begin(), alone_us.end()); }
};

double time_part(const Call& call, int64_t part, int64_t parts) {
  const double begin = now_us();
  call.entry(call.buffers.data(), part, parts);
  return now_us() - begin;
}

void run_part(void* context, int64_t part, int64_t parts) {
  const Call& call = *static_cast<const Call*>(context);
  call.entry(call.buffers.data(), part, parts);
}

Result<std::vector<Call>> load(const exec::Plan& plan, std::vector<cpu::LoadedObject>& objects,
                               int threads) {
  for (const ignis::ProgramImage& image : plan.programs) {
    IGNIS_TRY_ASSIGN(cpu::LoadedObject object, cpu::LoadedObject::load(image.object, image.name));
    objects.push_back(std::move(object));
  }
  std::byte* const arena = make_zeros(plan.arena_bytes);
  std::vector<void*> memory;
  for (const exec::BufferPlan& b : plan.buffers) {
    if (b.role == exec::BufferRole::Arena) memory.push_back(arena + b.arena_offset);
    else if (b.role == exec::BufferRole::Constant)
      memory.push_back(const_cast<std::byte*>(b.constant));  // programs only read it
    else memory.push_back(make_zeros(b.size_bytes));
  }
  std::vector<Call> calls;
  for (const exec::Call& c : plan.calls) {
    Call call;
    call.name = c.name;
    call.entry = objects[static_cast<size_t>(c.program)].entry();
    for (const int b : c.buffers) call.buffers.push_back(memory[static_cast<size_t>(b)]);
    call.parts = cpu::choose_parts(c.max_parts, cpu::estimate_ns(c.flops, c.bytes), threads);
    call.alone_us.assign(static_cast<size_t>(call.parts), 1e18);
    calls.push_back(std::move(call));
  }
  return calls;
}

// In the model's order each time, so that caches hold what they hold in a run.
Status measure(std::vector<Call>& calls, cpu::Pool& pool, int threads, int rounds) {
  for (int round = 0; round < rounds; ++round) {
    for (Call& c : calls) c.whole_us = std::min(c.whole_us, time_part(c, 0, 1));
    for (int part = 0; part < threads; ++part) {
      for (Call& c : calls) {
        if (part >= c.parts) continue;
        double& least = c.alone_us[static_cast<size_t>(part)];
        least = std::min(least, time_part(c, part, c.parts));
      }
    }
    IGNIS_TRY_ASSIGN(cpu::Pool::Lease lease, pool.begin());
    for (int run = 0; run < 3; ++run) {
      for (Call& c : calls) {
        const double begin = now_us();
        IGNIS_TRY(lease.run(run_part, &c, c.parts, cpu::Deadline::max()));
        c.on_pool_us = std::min(c.on_pool_us, now_us() - begin);
      }
    }
  }
  return {};
}

Status run(const std::string& path, int threads, int rounds) {
  IGNIS_TRY_ASSIGN(const exec::Artifact artifact, exec::Artifact::open(path));
  IGNIS_TRY_ASSIGN(const exec::Plan plan, artifact.plan_for(ignis::detect_host_target()));
  std::vector<cpu::LoadedObject> objects;
  IGNIS_TRY_ASSIGN(std::vector<Call> calls, load(plan, objects, threads));
  IGNIS_TRY_ASSIGN(const auto pool, cpu::Pool::create({.threads = threads}));
  const cpu::FlushDenormals flush;
  IGNIS_TRY(measure(calls, *pool, threads, rounds));
  double whole = 0, slowest = 0, on_pool = 0;
  std::printf("%-48s %5s %9s %12s %9s   us\n", "call", "parts", "one part", "slowest part",
              "on pool");
  for (const Call& c : calls) {
    std::printf("%-48.48s %5lld %9.1f %12.1f %9.1f\n", c.name.c_str(),
                static_cast<long long>(c.parts), c.whole_us, c.slowest_us(), c.on_pool_us);
    whole += c.whole_us;
    slowest += c.slowest_us();
    on_pool += c.on_pool_us;
  }
  std::printf("%-48s %5s %9.1f %12.1f %9.1f\n", "all", "", whole, slowest, on_pool);
  std::printf("%-48s %5s %9s %12.2f %9.2f\n", "gain", "", "", whole / slowest, whole / on_pool);
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  const int threads = argc > 2 ? std::atoi(argv[2]) : 2,
            rounds = argc > 3 ? std::atoi(argv[3]) : 20;
  if (argc < 2 || threads < 1 || rounds < 1) {
    std::cerr << "Usage: ignis_bench_threads MODEL.ignis [threads] [rounds]\n";
    return 2;
  }
  const Status status = run(argv[1], threads, rounds);
  if (status) return 0;
  std::cerr << status.error().to_string() << "\n";
  return 1;
}
