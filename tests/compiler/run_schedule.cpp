#include "tests/compiler/run_schedule.h"

#include "ignis/drivers/cpu/loader.h"

#include <cmath>
#include <cstring>
#include <limits>

namespace ignis::test {
namespace {

// 64 bytes of slack before and after each buffer keep small overruns visible to the comparison of guard bytes.
constexpr size_t kGuard = 64;
constexpr std::byte kGuardByte{0xA5};

struct Storage {
  std::vector<std::byte> bytes;
  explicit Storage(int64_t size) : bytes(static_cast<size_t>(size) + 2 * kGuard, std::byte{0}) {
    std::fill_n(bytes.begin(), kGuard, kGuardByte);
    std::fill_n(bytes.end() - kGuard, kGuard, kGuardByte);
  }
  std::byte* data() { return bytes.data() + kGuard; }
  bool guards_hold() const {
    for (size_t i = 0; i < kGuard; ++i) {
      if (bytes[i] != kGuardByte || bytes[bytes.size() - 1 - i] != kGuardByte) return false;
    }
    return true;
  }
};

void apply_pack(const schedule::Schedule& s, const schedule::Pack& pack,
                std::vector<Storage>& storage) {
  const auto& dest = s.buffers[static_cast<size_t>(pack.dest)];
  const auto size = static_cast<size_t>(size_bytes(dest.dtype));
  std::vector<int64_t> at(pack.extents.size(), 0);
  for (int64_t n = element_count(pack.extents); n > 0; --n) {
    int64_t from = pack.source_base;
    for (size_t d = 0; d < at.size(); ++d) from += at[d] * pack.source_strides[d];
    std::memcpy(storage[static_cast<size_t>(pack.dest)].data() +
                    static_cast<size_t>(dest.layout.offset(at)) * size,
                storage[static_cast<size_t>(pack.source)].data() + static_cast<size_t>(from) * size,
                size);
    for (size_t d = at.size(); d-- > 0;) {
      if (++at[d] < pack.extents[d]) break;
      at[d] = 0;
    }
  }
}

}  // namespace

Result<std::vector<HostTensor>> run_schedule(const schedule::Schedule& s,
                                             const std::vector<HostTensor>& inputs,
                                             const RunOptions& options) {
  std::vector<Storage> storage;
  for (const auto& b : s.buffers) storage.emplace_back(b.size_bytes());
  for (size_t i = 0; i < s.buffers.size(); ++i) {
    const auto& b = s.buffers[i];
    if (b.role == schedule::BufferRole::Input) {
      const HostTensor& value = inputs[static_cast<size_t>(b.input)];
      std::memcpy(storage[i].data(), value.bytes.data(), value.bytes.size());
    } else if (b.data.bytes != nullptr) {
      std::memcpy(storage[i].data(), b.data.bytes, static_cast<size_t>(b.data.size_bytes));
    }
  }
  for (const auto& pack : s.packs) apply_pack(s, pack, storage);
  for (size_t k = 0; k < s.kernels.size(); ++k) {
    codegen::Config config = options.config;
    if (k < options.actions.size() && !options.actions[k].empty()) {
      config.actions = options.actions[k];
    }
    IGNIS_TRY_ASSIGN(codegen::Lowered lowered, codegen::lower(s.kernels[k].sink, config));
    lowered.program.name = "kernel";
    IGNIS_TRY_ASSIGN(const ProgramImage image,
                     codegen::compile_llvm(lowered.program, config.target));
    IGNIS_TRY_ASSIGN(const cpu::LoadedObject object,
                     cpu::LoadedObject::load(image.object, image.name));
    std::vector<void*> pointers;
    for (const int id : s.kernels[k].buffers)
      pointers.push_back(storage[static_cast<size_t>(id)].data());
    for (int part = 0; part < options.parts; ++part) {
      object.entry()(pointers.data(), part, options.parts);
    }
    for (const int id : s.kernels[k].buffers) {
      if (!storage[static_cast<size_t>(id)].guards_hold()) {
        return Error(ErrorCode::Internal, "Kernel " + std::to_string(k) +
                                              " writes outside buffer " +
                                              s.buffers[static_cast<size_t>(id)].name + ".");
      }
    }
  }
  std::vector<HostTensor> outputs;
  for (const int id : s.outputs) {
    const auto& b = s.buffers[static_cast<size_t>(id)];
    HostTensor out = HostTensor::zeros(b.dtype, b.shape);
    std::memcpy(out.bytes.data(), storage[static_cast<size_t>(id)].data(), out.bytes.size());
    outputs.push_back(std::move(out));
  }
  return outputs;
}

std::vector<ir::Node> Case::input_nodes() const {
  std::vector<ir::Node> nodes;
  for (const auto& t : inputs) nodes.push_back(t.node());
  return nodes;
}
std::vector<ir::Node> Case::output_nodes() const {
  std::vector<ir::Node> nodes;
  for (const auto& t : outputs) nodes.push_back(t.node());
  return nodes;
}
std::vector<HostTensor> Case::expected() const {
  auto result = interp::evaluate(output_nodes(), values);
  IGNIS_CHECK(result.has_value()) << result.error().to_string();
  return *std::move(result);
}

HostTensor random_tensor(Shape shape, uint64_t seed, DType dtype) {
  HostTensor t = HostTensor::zeros(dtype, std::move(shape));
  std::mt19937_64 rng(seed);
  for (int64_t i = 0; i < t.count(); ++i) {
    const double unit = static_cast<double>(rng() >> 11) * 0x1p-53;
    if (is_float(dtype)) {
      store_element(t, i, 4 * unit - 2);
    } else {
      store_element_int(t, i, static_cast<int64_t>(unit * 100));
    }
  }
  return t;
}

double max_error(const HostTensor& a, const HostTensor& b) {
  if (a.dtype != b.dtype || a.shape != b.shape) return std::numeric_limits<double>::infinity();
  double worst = 0;
  for (int64_t i = 0; i < a.count(); ++i) {
    const double x = element_as_double(a, i), y = element_as_double(b, i);
    if (std::isnan(x) && std::isnan(y)) continue;
    if (x == y) continue;
    const double error = std::fabs(x - y) / (1 + std::fabs(y));
    if (!(error <= worst))
      worst = std::isnan(error) ? std::numeric_limits<double>::infinity() : error;
  }
  return worst;
}

}  // namespace ignis::test
