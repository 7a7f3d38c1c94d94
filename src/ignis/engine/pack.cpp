#include "ignis/engine/pack.h"

#include "ignis/base/math.h"

#include <algorithm>
#include <cstring>
#include <numeric>

namespace ignis::engine {
namespace {

// One loop of a pack. A layout's offset is a sum over the dims, each term depending on that dim's index alone, so a
// table for each dim replaces all divisions.
struct Loop {
  std::vector<int64_t> dest_offsets;  // of each index, in elements
  int64_t source_stride = 0;
};

std::vector<int64_t> offsets_along(const ir::Layout& layout, size_t dim, int64_t extent) {
  std::vector<int64_t> offsets(static_cast<size_t>(extent));
  const int64_t halo = layout.halo_lo.empty() ? 0 : layout.halo_lo[dim];
  for (size_t d = 0; d < layout.digits.size(); ++d) {
    const ir::LayoutDigit& digit = layout.digits[d];
    if (static_cast<size_t>(digit.dim) != dim) continue;
    const int64_t stride = layout.digit_stride(d);
    for (int64_t i = 0; i < extent; ++i) {
      offsets[static_cast<size_t>(i)] += (i + halo) / digit.divisor % digit.extent * stride;
    }
  }
  return offsets;
}

template <typename T>
void copy_loops(std::span<const Loop> loops, const T* from, T* to) {
  const Loop& loop = loops.front();
  const auto extent = static_cast<int64_t>(loop.dest_offsets.size());
  for (int64_t i = 0; i < extent; ++i) {
    T* at = to + loop.dest_offsets[static_cast<size_t>(i)];
    const T* value = from + i * loop.source_stride;
    if (loops.size() == 1) *at = *value;
    else copy_loops(loops.subspan(1), value, at);
  }
}

template <typename T>
void copy(std::span<const Loop> loops, const std::byte* from, int64_t base, std::byte* to) {
  copy_loops(loops, reinterpret_cast<const T*>(from) + base, reinterpret_cast<T*>(to));
}

Error outside(const schedule::Buffer& source, const schedule::Buffer& dest) {
  return Error(ErrorCode::Internal, "Packing '" + source.name + "' " + to_string(source.shape) +
                                        " into '" + dest.name + "' " + to_string(dest.shape) +
                                        " leaves a buffer's memory.");
}

}  // namespace

Status run_pack(const schedule::Pack& pack, const schedule::Buffer& source,
                std::span<const std::byte> source_bytes, const schedule::Buffer& dest,
                std::span<std::byte> dest_bytes) {
  const int64_t element_bytes = size_bytes(dest.dtype);
  const size_t rank = pack.extents.size();
  if (source.dtype != dest.dtype || pack.source_strides.size() != rank ||
      dest.shape.size() != rank || element_bytes == 0) {
    return outside(source, dest);
  }
  std::vector<Loop> loops;
  int64_t source_low = pack.source_base, source_high = pack.source_base, dest_high = 0;
  for (size_t d = 0; d < rank; ++d) {
    if (pack.extents[d] == 0) return {};
    Loop loop = {offsets_along(dest.layout, d, pack.extents[d]), pack.source_strides[d]};
    const int64_t reach = (pack.extents[d] - 1) * loop.source_stride;
    (reach < 0 ? source_low : source_high) += reach;
    dest_high += *std::max_element(loop.dest_offsets.begin(), loop.dest_offsets.end());
    loops.push_back(std::move(loop));
  }
  const auto count = [&](uint64_t bytes) { return static_cast<int64_t>(bytes) / element_bytes; };
  if (source_low < 0 || source_high >= count(source_bytes.size()) ||
      dest_high >= count(dest_bytes.size())) {
    return outside(source, dest);
  }
  if (loops.empty()) loops.push_back({{0}, 0});
  // Writes run along the fastest digit: the loop whose neighbours lie closest goes innermost.
  std::stable_sort(loops.begin(), loops.end(), [](const Loop& a, const Loop& b) {
    const auto step = [](const Loop& l) {
      return l.dest_offsets.size() < 2 ? INT64_MAX : l.dest_offsets[1] - l.dest_offsets[0];
    };
    return step(a) > step(b);
  });
  switch (element_bytes) {
    case 1: copy<uint8_t>(loops, source_bytes.data(), pack.source_base, dest_bytes.data()); break;
    case 2: copy<uint16_t>(loops, source_bytes.data(), pack.source_base, dest_bytes.data()); break;
    case 4: copy<uint32_t>(loops, source_bytes.data(), pack.source_base, dest_bytes.data()); break;
    case 8: copy<uint64_t>(loops, source_bytes.data(), pack.source_base, dest_bytes.data()); break;
    default: return outside(source, dest);
  }
  return {};
}

}  // namespace ignis::engine
