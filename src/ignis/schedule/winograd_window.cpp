#include "ignis/schedule/winograd_window.h"

#include "ignis/ir/affine.h"

#include <algorithm>
#include <cmath>

namespace ignis::schedule {

using ir::AxisKind;
using ir::Graph;
using ir::Node;
using ir::Op;

namespace {

/// The input's index on a spatial axis is output range + tap range + a constant.
bool read_plane(Graph& g, const Node& index, Node& output, Node& tap, int64_t& first) {
  const auto at = plain_affine(g, index);
  if (!at || at->terms.size() != 2) return false;
  for (const auto& [range, coefficient] : at->terms) {
    if (coefficient != 1) return false;
    (range.axis_kind() == AxisKind::Reduce ? tap : output) = range;
  }
  first = at->constant;
  return output && tap && tap.range_extent() == kTaps;
}

}  // namespace

std::optional<DenseWindow> find_dense_window(Schedule& schedule, const Draft& draft) {
  Graph& g = *schedule.graph;
  const auto buffer = [&](int slot) -> const Buffer& {
    return schedule.buffers[static_cast<size_t>(draft.buffers[static_cast<size_t>(slot)])];
  };
  const auto buffer_of = [&](const LoadSite& site) -> const Buffer& { return buffer(site.slot); };
  DenseWindow w;
  for (const Node& n : ir::toposort(draft.sink)) {
    if (!n.is(Op::Reduce)) continue;
    if (w.reduce) return std::nullopt;
    w.reduce = n;
  }
  if (!w.reduce || w.reduce.reduce_op() != Op::Add || w.reduce.dtype() != DType::Float32 ||
      w.reduce.source_count() != 4 || !w.reduce.src(0).is(Op::Mul))
    return std::nullopt;
  const Node product = w.reduce.src(0);
  for (const LoadSite& site : loads_of(draft)) {
    if (site.load != product.src(0) && site.load != product.src(1)) continue;
    if (site.load.source_count() != 1) return std::nullopt;
    (buffer_of(site).role == BufferRole::Constant ? w.weights : w.input) = site;
  }
  if (!w.input.load || !w.weights.load || buffer_of(w.input).role != BufferRole::Temporary)
    return std::nullopt;
  const Shape& shape = buffer_of(w.input).shape;
  if (shape.size() != 4 || !read_plane(g, w.input.index[2], w.row, w.tap_row, w.first_row) ||
      !read_plane(g, w.input.index[3], w.column, w.tap_column, w.first_column))
    return std::nullopt;
  w.image = w.input.index[0];
  w.channel = w.input.index[1];
  if (!w.channel.is(Op::Range) || w.channel.axis_kind() != AxisKind::Reduce) return std::nullopt;
  if (!w.image.is_const_value(0) && !w.image.is(Op::Range)) return std::nullopt;
  for (const Node& index : w.weights.index) {
    const auto at = plain_affine(g, index);
    if (!at) return std::nullopt;
    for (const auto& [range, coefficient] : at->terms) {
      if (range.axis_kind() == AxisKind::Reduce) continue;
      if (w.output && w.output != range) return std::nullopt;
      w.output = range;
    }
  }
  // Every output range has one of these parts.
  size_t parts = 0;
  for (const Node& r : draft.ranges)
    parts += r == w.image || r == w.row || r == w.column || r == w.output;
  if (!w.output || parts != draft.ranges.size() || w.row == w.column ||
      parts != (w.image.is(Op::Range) ? 4u : 3u))
    return std::nullopt;
  // Channels in lanes on both sides.
  const auto is_last = [&](const Buffer& b) {
    return b.layout.digits.size() == 4 && b.layout.digits.back().dim == 1;
  };
  const std::vector<Node> stored = store_index(draft);
  const Buffer& out = buffer(0);
  const bool is_found = is_last(buffer_of(w.input)) && out.role == BufferRole::Temporary &&
                        is_last(out) && stored.size() == 4 && stored[1] == w.output;
  return is_found ? std::optional(w) : std::nullopt;
}

bool winograd_pays(const Schedule& schedule, const DenseWindow& window, const Target& target,
                   Notes& why) {
  constexpr double kReachedShare = 0.9;    // of the peak, by products of matrices and by windows
  constexpr double kL3BytesPerCycle = 24;  // of each core
  constexpr double kMemoryBytesPerCycle = 4.5;
  constexpr double kStartCycles = 4000,
                   kForkCycles = 12000;  // of a kernel, and when threads share it
  constexpr double kSumSteps = 3;        // what starting and storing a sum costs, in multiply-adds
  constexpr double kGain = 0.95;         // what must be gained for the larger arena
  const double threads = target.threads;
  const auto lanes = static_cast<double>(target.lanes(DType::Float32));
  const auto whole = [&](int64_t n) { return std::ceil(static_cast<double>(n) / lanes) * lanes; };
  const auto channels = static_cast<double>(window.channel.range_extent());
  const double outputs = whole(window.output.range_extent());
  const auto images = static_cast<double>(window.images());
  const double pixels =
      images * static_cast<double>(window.row.range_extent() * window.column.range_extent());
  const double tiles = images * static_cast<double>(window.tile_rows() * window.tile_columns());
  int64_t constants = 0;  // of the model: what one run reads
  for (const Buffer& b : schedule.buffers) {
    if (b.data.bytes != nullptr) constants += b.size_bytes();
  }
  const double weights_rate =
      constants > target.l3_bytes ? kMemoryBytesPerCycle : kL3BytesPerCycle * threads;
  const double per_cycle = (target.has_fma ? 2 : 1) * lanes * kReachedShare * threads;
  const auto multiply = [&](double sums, double terms, int64_t places) {
    const double weights = static_cast<double>(places) * channels * outputs * 4;
    return std::max(sums * (terms + kSumSteps) / per_cycle, weights / weights_rate);
  };
  const double direct = multiply(pixels * outputs, kTaps * kTaps * channels, kTaps * kTaps);
  const double products = multiply(kPlaces * tiles * outputs, channels, kPlaces);
  // Patches and products are written once and read once.
  const double moved = 2 * 4 * kPlaces * tiles * (whole(window.channel.range_extent()) + outputs);
  const double moved_rate = moved > static_cast<double>(target.l3_bytes)
                                ? kMemoryBytesPerCycle
                                : kL3BytesPerCycle * threads;
  const double kernels = 2 * (threads > 1 ? kForkCycles : kStartCycles);
  const double all = products + moved / moved_rate + kernels;
  why.push_back(say("Winograd ", all / direct, " of direct, taken below ", kGain, ": products ",
                    products / 1e3, ", moving ", moved / moved_rate / 1e3, ", starts ",
                    kernels / 1e3, ", direct ", direct / 1e3, " thousand cycles"));
  return all < kGain * direct;
}

}  // namespace ignis::schedule
