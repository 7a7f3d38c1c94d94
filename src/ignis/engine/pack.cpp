#include "ignis/engine/pack.h"

#include "ignis/base/math.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

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

// A pack's loops in the order in which they run. `rows` reads the source in a straight line where there is such a
// loop, `columns` writes the destination in one.
struct LoopNest {
  std::vector<Loop> outer;
  Loop rows = {{0}, 0}, columns = {{0}, 0};
  int64_t dest_base = 0;  // in elements
};

constexpr size_t kMaxRows = size_t{1} << 20;
// Elements of a row that are read before the next column: a cache line of f32. Re-laying weights is a transposition;
// column by column it would read one element of each line and meet the same cache set again and again.
constexpr size_t kRowBlock = 16;

int64_t dest_step(const Loop& loop) { return loop.dest_offsets[1] - loop.dest_offsets[0]; }

// Joins `fast` and the loop around it into one over the same straight line of the source.
Loop join(const Loop& slow, const Loop& fast) {
  Loop joined;
  joined.source_stride = fast.source_stride;
  joined.dest_offsets.reserve(slow.dest_offsets.size() * fast.dest_offsets.size());
  for (const int64_t s : slow.dest_offsets) {
    for (const int64_t f : fast.dest_offsets) joined.dest_offsets.push_back(s + f);
  }
  return joined;
}

LoopNest arrange(std::vector<Loop> loops) {
  LoopNest nest;
  std::erase_if(loops, [&](const Loop& loop) {
    if (loop.dest_offsets.size() > 1) return false;
    nest.dest_base += loop.dest_offsets[0];
    return true;
  });
  if (loops.empty()) return nest;
  const auto columns =
      std::min_element(loops.begin(), loops.end(),
                       [](const Loop& a, const Loop& b) { return dest_step(a) < dest_step(b); });
  nest.columns = std::move(*columns);
  loops.erase(columns);
  std::stable_sort(loops.begin(), loops.end(), [](const Loop& a, const Loop& b) {
    return std::abs(a.source_stride) > std::abs(b.source_stride);
  });
  if (!loops.empty() && nest.columns.source_stride != 1) {
    nest.rows = std::move(loops.back());
    loops.pop_back();
    while (!loops.empty() &&
           loops.back().source_stride ==
               static_cast<int64_t>(nest.rows.dest_offsets.size()) * nest.rows.source_stride &&
           loops.back().dest_offsets.size() * nest.rows.dest_offsets.size() <= kMaxRows) {
      nest.rows = join(loops.back(), nest.rows);
      loops.pop_back();
    }
  }
  nest.outer = std::move(loops);
  return nest;
}

template <typename T>
void copy_tile(const LoopNest& nest, const T* from, T* to) {
  const Loop& rows = nest.rows;
  const Loop& columns = nest.columns;
  const size_t row_count = rows.dest_offsets.size(), column_count = columns.dest_offsets.size();
  for (size_t block = 0; block < row_count; block += kRowBlock) {
    const size_t block_end = std::min(block + kRowBlock, row_count);
    for (size_t c = 0; c < column_count; ++c) {
      const T* source = from + static_cast<int64_t>(c) * columns.source_stride;
      T* dest = to + columns.dest_offsets[c];
      for (size_t r = block; r < block_end; ++r) {
        dest[rows.dest_offsets[r]] = source[static_cast<int64_t>(r) * rows.source_stride];
      }
    }
  }
}

template <typename T>
void copy_outer(const LoopNest& nest, size_t depth, const T* from, T* to) {
  if (depth == nest.outer.size()) return copy_tile(nest, from, to);
  const Loop& loop = nest.outer[depth];
  for (size_t i = 0; i < loop.dest_offsets.size(); ++i) {
    copy_outer(nest, depth + 1, from + static_cast<int64_t>(i) * loop.source_stride,
               to + loop.dest_offsets[i]);
  }
}

template <typename T>
void copy(const LoopNest& nest, const std::byte* from, int64_t base, std::byte* to) {
  copy_outer(nest, 0, reinterpret_cast<const T*>(from) + base,
             reinterpret_cast<T*>(to) + nest.dest_base);
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
  const LoopNest nest = arrange(std::move(loops));
  switch (element_bytes) {
    case 1: copy<uint8_t>(nest, source_bytes.data(), pack.source_base, dest_bytes.data()); break;
    case 2: copy<uint16_t>(nest, source_bytes.data(), pack.source_base, dest_bytes.data()); break;
    case 4: copy<uint32_t>(nest, source_bytes.data(), pack.source_base, dest_bytes.data()); break;
    case 8: copy<uint64_t>(nest, source_bytes.data(), pack.source_base, dest_bytes.data()); break;
    default: return outside(source, dest);
  }
  return {};
}

HostTensor read_layout(const std::byte* bytes, DType dtype, const Shape& shape,
                       const ir::Layout& layout) {
  HostTensor values = HostTensor::zeros(dtype, shape);
  const auto size = static_cast<size_t>(size_bytes(dtype));
  std::vector<std::vector<int64_t>> offsets;
  for (size_t d = 0; d < shape.size(); ++d) offsets.push_back(offsets_along(layout, d, shape[d]));
  std::vector<int64_t> index(shape.size());
  for (int64_t i = 0; i < values.count(); ++i) {
    int64_t from = 0;
    for (size_t d = 0; d < shape.size(); ++d) from += offsets[d][static_cast<size_t>(index[d])];
    std::memcpy(values.bytes.data() + static_cast<size_t>(i) * size,
                bytes + static_cast<size_t>(from) * size, size);
    for (size_t d = shape.size(); d-- > 0;) {
      if (++index[d] < shape[d]) break;
      index[d] = 0;
    }
  }
  return values;
}

}  // namespace ignis::engine
