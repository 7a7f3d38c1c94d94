#include "ignis/engine/tune/kernel_bench.h"

#include "ignis/engine/compile_kernels.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <sstream>

namespace ignis::engine {
namespace {

constexpr std::chrono::minutes kRunLimit{10};  // whoever asked has given up long before
// Of the largest value: a sum that is regrouped differs by a few units in the last place of its largest terms.
constexpr double kTolerance = 1e-4, kNarrowTolerance = 2e-2;

}  // namespace

Tolerance tolerance_of(const HostTensor& want) {
  Tolerance tolerance;
  if (!is_float(want.dtype)) return tolerance;
  tolerance.rtol = size_bytes(want.dtype) < 4 ? kNarrowTolerance : kTolerance;
  for (int64_t e = 0; e < want.count(); ++e) {
    const double value = std::fabs(element_as_double(want, e));
    if (std::isfinite(value)) tolerance.atol = std::max(tolerance.atol, tolerance.rtol * value);
  }
  return tolerance;
}

void store_random(HostTensor& tensor, int64_t index, std::mt19937_64& random, bool is_signed) {
  const double unit = static_cast<double>(random() >> 11) * 0x1p-53;
  if (is_float(tensor.dtype)) {
    store_element(tensor, index, is_signed ? 2 * unit - 1 : unit + 0.25);
  } else {
    store_element_int(tensor, index,
                      tensor.dtype == DType::Bool ? unit < 0.5 : static_cast<int64_t>(10 * unit));
  }
}

KernelBench::KernelBench(const schedule::Schedule& schedule, size_t kernel, codegen::Config config,
                         std::shared_ptr<runtime::Device> device)
    : schedule_(&schedule),
      kernel_(&schedule.kernels[kernel]),
      config_(std::move(config)),
      device_(std::move(device)) {}

Result<KernelBench> KernelBench::create(const schedule::Schedule& schedule, size_t kernel,
                                        const codegen::Config& config,
                                        const std::shared_ptr<runtime::Device>& device) {
  KernelBench bench(schedule, kernel, config, device);
  const std::vector<int>& buffers = bench.kernel_->buffers;
  for (size_t slot = 0; slot < buffers.size(); ++slot) {
    const auto first = static_cast<size_t>(
        std::find(buffers.begin(), buffers.end(), buffers[slot]) - buffers.begin());
    bench.memory_.emplace_back();
    const schedule::Buffer& buffer = schedule.buffers[static_cast<size_t>(buffers[slot])];
    if (first == slot) {
      IGNIS_TRY_ASSIGN(bench.memory_.back(),
                       device->allocate(static_cast<uint64_t>(buffer.size_bytes())));
    }
    for (const bool is_signed : {true, false}) {
      bench.values_[is_signed].emplace_back();
      if (first == slot && buffer.held_bytes < 0)
        bench.values_[is_signed].back() = bench.random_values(buffer, is_signed);
    }
    bench.pointers_.push_back(bench.memory_[first].bytes());
  }
  codegen::Config plain = config;
  plain.optimize = false;
  plain.float_level = FloatLevel::Strict;
  plain.actions.clear();
  KernelBench reference(schedule, kernel, plain, device);
  IGNIS_TRY_ASSIGN(const Made made, reference.make({}));
  for (const bool is_signed : {true, false}) {
    bench.fill(is_signed);
    IGNIS_TRY(bench.run(made, 1));
    bench.expected_[is_signed] = bench.written();
  }
  return bench;
}

Result<KernelBench::Made> KernelBench::make(const std::vector<std::string>& actions,
                                            bool has_fault) const {
  codegen::Config config = config_;
  config.actions = actions;
  const auto graph = std::make_shared<ir::Graph>();
  const ir::Node sink =
      has_fault ? with_fault(*graph, graph->import(kernel_->sink)) : kernel_->sink;
  IGNIS_TRY_ASSIGN(codegen::Lowered lowered, codegen::lower(sink, config));
  lowered.program.name = "candidate";
  Made made;
  made.parts = std::clamp<int64_t>(lowered.parallel_units, 1, device_->threads());
  if (config.target.renderer == "c") {
    IGNIS_TRY_ASSIGN(made.image, codegen::compile_c(lowered.program, config.target));
  } else {
    IGNIS_TRY_ASSIGN(made.image, codegen::compile_llvm(lowered.program, config.target));
  }
  IGNIS_TRY_ASSIGN(made.program, device_->load(made.image));
  return made;
}

// Logical elements are random; halos and padding are zeros, as in the arena.
std::vector<std::byte> KernelBench::random_values(const schedule::Buffer& buffer,
                                                  bool is_signed) const {
  std::mt19937_64 random(is_signed ? 1 : 2);
  HostTensor storage = HostTensor::zeros(buffer.dtype, {buffer.layout.storage_count()});
  const bool is_planar = buffer.layout.is_planar(buffer.shape);
  std::vector<int64_t> at(buffer.shape.size(), 0);
  const int64_t count = element_count(buffer.shape);
  for (int64_t i = 0; i < count; ++i) {
    const int64_t offset = is_planar ? i : buffer.layout.offset(at);
    store_random(storage, offset, random, is_signed);
    for (size_t d = at.size(); !is_planar && d-- > 0;) {
      if (++at[d] < buffer.shape[d]) break;
      at[d] = 0;
    }
  }
  return std::move(storage.bytes);
}

void KernelBench::fill(bool is_signed) {
  for (size_t slot = 0; slot < memory_.size(); ++slot) {
    if (memory_[slot].bytes() == nullptr) continue;
    const std::vector<std::byte>& values = values_[is_signed][slot];
    if (values.empty()) {  // a chain's own
      std::memset(memory_[slot].bytes(), 0, memory_[slot].size_bytes());
    } else {
      std::memcpy(memory_[slot].bytes(), values.data(), values.size());
    }
  }
}

Status KernelBench::run(const Made& made, int count) {
  const runtime::Launch launch{made.program.get(), pointers_.data(), made.parts};
  const std::vector<runtime::Launch> launches(static_cast<size_t>(count), launch);
  return device_->run(launches, runtime::deadline_after(kRunLimit));
}

std::vector<HostTensor> KernelBench::written() const {
  std::vector<HostTensor> values;
  for (const int slot : kernel_->written) {
    const schedule::Buffer& buffer =
        schedule_->buffers[static_cast<size_t>(kernel_->buffers[static_cast<size_t>(slot)])];
    if (buffer.held_bytes >= 0) continue;  // holds the last band only
    values.push_back(HostTensor::zeros(buffer.dtype, {buffer.layout.storage_count()}));
    std::memcpy(values.back().bytes.data(), pointers_[static_cast<size_t>(slot)],
                values.back().bytes.size());
  }
  return values;
}

Status KernelBench::check(const Made& made) {
  for (const bool is_signed : {true, false}) {
    fill(is_signed);
    IGNIS_TRY(run(made, 1));
    const std::vector<HostTensor> got = written();
    for (size_t i = 0; i < got.size(); ++i) {
      const HostTensor& want = expected_[is_signed][i];
      const Tolerance tolerance = tolerance_of(want);
      const Comparison compared = compare(got[i], want, tolerance);
      if (compared.passed) continue;
      std::ostringstream text;
      text << "stored element " << compared.worst << " is " << compared.worst_got
           << " and should be " << compared.worst_want << "; " << compared.beyond << " of "
           << compared.count << " elements differ";
      return Error(ErrorCode::Internal, text.str(), "WrongNumbers");
    }
  }
  return {};
}

Result<double> KernelBench::time_ns(const Made& made, int count) {
  const auto begin = std::chrono::steady_clock::now();
  IGNIS_TRY(run(made, count));
  const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - begin;
  return took.count() / count;
}

}  // namespace ignis::engine
