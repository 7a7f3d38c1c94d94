#include "ignis/tensor/movement.h"

#include "ignis/tensor/build.h"
#include "ignis/tensor/elementwise.h"

#include <algorithm>
#include <numeric>

namespace ignis::tensor {

using detail::movement;
using ir::Node;
using ir::Op;

namespace {

using Bounds = std::vector<std::pair<int64_t, int64_t>>;

std::string list_text(const std::vector<int64_t>& values) { return ignis::to_string(values); }

void require_rank(std::string_view operation, const Tensor& x, size_t given) {
  if (static_cast<size_t>(x.rank()) == given) return;
  fail(std::string(operation) + ": " + std::to_string(given) + " entries for " + x.describe() +
       ".");
}

/// Bounds that keep every axis but one.
Bounds keep_all(const Tensor& x) {
  Bounds bounds;
  for (const int64_t extent : x.shape()) bounds.emplace_back(0, extent);
  return bounds;
}

Tensor shrink_axis(const Tensor& x, int axis, int64_t begin, int64_t end) {
  Bounds bounds = keep_all(x);
  bounds[static_cast<size_t>(axis)] = {begin, end};
  return shrink(x, bounds);
}

Tensor flip_axis(const Tensor& x, int axis) { return flip(x, {axis}); }

}  // namespace

Tensor reshape(const Tensor& x, const Shape& shape) {
  Shape to = shape;
  int64_t known = 1;
  int open = -1;
  for (size_t i = 0; i < to.size(); ++i) {
    if (to[i] >= 0) {
      if (__builtin_mul_overflow(known, to[i], &known))
        fail("reshape: " + list_text(shape) + " is too large.");
      continue;
    }
    if (to[i] != -1 || open >= 0)
      fail("reshape: " + x.describe() + " to " + list_text(shape) + ".");
    open = static_cast<int>(i);
  }
  if (open >= 0) {
    if (known == 0 || x.count() % known != 0) {
      fail("reshape: " + x.describe() + " does not divide into " + list_text(shape) + ".");
    }
    to[static_cast<size_t>(open)] = x.count() / known;
  }
  const Result<int64_t> count = checked_element_count(to);
  if (!count || *count != x.count()) {
    fail("reshape: " + x.describe() + " has " + std::to_string(x.count()) + " elements, " +
         list_text(shape) +
         (count ? " has " + std::to_string(*count) : std::string(" is too large")) + ".");
  }
  if (to == x.shape()) return x;
  if (x.node().is(Op::Reshape)) {  // two in a row are one
    const Tensor source(x.graph(), x.node().src(0), x.name());
    if (!detail::splat_of(source.node())) return reshape(source, to);
  }
  return movement(Op::Reshape, x, to, to);
}

Tensor permute(const Tensor& x, const std::vector<int64_t>& perm) {
  require_rank("permute", x, perm.size());
  std::vector<int64_t> axes;
  for (const int64_t axis : perm) axes.push_back(normalize_axis("permute", axis, x.rank()));
  std::vector<int64_t> sorted = axes;
  std::sort(sorted.begin(), sorted.end());
  bool identity = true;
  for (size_t i = 0; i < axes.size(); ++i) {
    if (sorted[i] != static_cast<int64_t>(i)) {
      fail("permute: " + list_text(perm) + " is not a permutation of the axes of " + x.describe() +
           ".");
    }
    identity &= axes[i] == static_cast<int64_t>(i);
  }
  if (identity) return x;
  Tensor source = x;
  if (x.node().is(Op::Permute)) {
    const std::vector<int64_t>& inner = x.node().arg().ints;
    for (int64_t& axis : axes) axis = inner[static_cast<size_t>(axis)];
    source = Tensor(x.graph(), x.node().src(0), x.name());
    if (std::is_sorted(axes.begin(), axes.end())) return source;
  }
  Shape shape;
  for (const int64_t axis : axes) shape.push_back(source.shape()[static_cast<size_t>(axis)]);
  return movement(Op::Permute, source, axes, shape);
}

Tensor transpose(const Tensor& x, int64_t a, int64_t b) {
  std::vector<int64_t> perm(static_cast<size_t>(x.rank()));
  std::iota(perm.begin(), perm.end(), 0);
  std::swap(perm[static_cast<size_t>(normalize_axis("transpose", a, x.rank()))],
            perm[static_cast<size_t>(normalize_axis("transpose", b, x.rank()))]);
  return permute(x, perm);
}

Tensor move_axis(const Tensor& x, int64_t from, int64_t to) {
  const int source = normalize_axis("move_axis", from, x.rank()),
            target = normalize_axis("move_axis", to, x.rank());
  std::vector<int64_t> perm;
  for (int i = 0; i < x.rank(); ++i) {
    if (i != source) perm.push_back(i);
  }
  perm.insert(perm.begin() + target, source);
  return permute(x, perm);
}

Tensor broadcast_to(const Tensor& x, const Shape& shape) {
  Shape to = shape;
  bool fits = to.size() >= x.shape().size();
  const size_t offset = fits ? to.size() - x.shape().size() : 0;
  for (size_t i = 0; fits && i < to.size(); ++i) {
    const int64_t extent = i < offset ? 1 : x.shape()[i - offset];
    if (to[i] == -1) to[i] = extent;
    fits = to[i] >= 0 && (to[i] == extent || extent == 1);
  }
  if (!fits)
    fail("broadcast_to: " + x.describe() + " does not stretch to " + list_text(shape) + ".");
  return detail::expand(x, to);
}

Tensor pad(const Tensor& x, const Bounds& amounts, const Operand& value) {
  require_rank("pad", x, amounts.size());
  Bounds bounds = keep_all(x);
  std::vector<int64_t> grow;
  Shape shape;
  bool pads = false;
  for (size_t i = 0; i < amounts.size(); ++i) {
    const auto [lo, hi] = amounts[i];
    constexpr int64_t kMost = int64_t{1} << 48;
    if (std::max(lo, hi) > kMost || std::min(lo, hi) < -kMost) {
      fail("pad: " + std::to_string(lo) + " and " + std::to_string(hi) + " around " + x.describe() +
           ".");
    }
    const int64_t left = x.shape()[i] + std::min<int64_t>(lo, 0) + std::min<int64_t>(hi, 0);
    if (left < 0) {
      fail("pad: cropping (" + std::to_string(lo) + ", " + std::to_string(hi) +
           ") leaves less than nothing of axis " + std::to_string(i) + " of " + x.describe() + ".");
    }
    bounds[i] = {std::max<int64_t>(-lo, 0), x.shape()[i] - std::max<int64_t>(-hi, 0)};
    grow.push_back(std::max<int64_t>(lo, 0));
    grow.push_back(std::max<int64_t>(hi, 0));
    pads |= lo > 0 || hi > 0;
    shape.push_back(left + std::max<int64_t>(lo, 0) + std::max<int64_t>(hi, 0));
  }
  const Tensor cropped = shrink(x, bounds);
  if (!pads) return cropped;
  const Result<int64_t> count = checked_element_count(shape);
  if (!count) fail("pad: " + x.describe() + ": " + count.error().message());
  const Tensor fill = cast(value.in(x.graph()), x.dtype());
  if (fill.rank() != 0) fail("pad: the value " + fill.describe() + " is not a scalar.");
  if (cropped.count() == 0) return broadcast_to(fill, shape);
  const auto padded = [&](const Tensor& t) {
    return Tensor(t.graph(), t.graph()->make(Op::Pad, t.dtype(), {t.node()}, ir::Arg{grow, {}}),
                  x.name());
  };
  if (fill.constant_value() == 0.0 && !(fill.node().is_const() && !fill.node().is_const_value(0))) {
    return padded(cropped);
  }
  const Tensor inside = Tensor::full_int(x.graph(), cropped.shape(), 1, DType::Bool);
  return where(padded(inside), padded(cropped), fill);
}

namespace {

/// Grows one axis at its low end by `amount` elements taken from the tensor itself. A pattern longer than the tensor
/// is made in steps: each full step leaves an array that continues the same periodic pattern.
Tensor grow_low(Tensor x, int axis, int64_t amount, PadMode mode) {
  while (amount > 0) {
    const int64_t extent = x.dim(axis);
    if (extent == 0)
      fail("pad: axis " + std::to_string(axis) + " of " + x.describe() + " is empty.");
    if (mode == PadMode::Edge || (mode == PadMode::Reflect && extent == 1)) {
      Tensor edge = shrink_axis(x, axis, 0, 1);
      Shape shape = x.shape();
      shape[static_cast<size_t>(axis)] = amount;
      return concat({broadcast_to(edge, shape), x}, axis);
    }
    const int64_t step = std::min(amount, mode == PadMode::Reflect ? extent - 1 : extent);
    const Tensor part = mode == PadMode::Reflect
                            ? flip_axis(shrink_axis(x, axis, 1, step + 1), axis)
                            : shrink_axis(x, axis, extent - step, extent);
    x = concat({part, x}, axis);
    amount -= step;
  }
  return x;
}

}  // namespace

Tensor pad_mode(const Tensor& x, const Bounds& amounts, PadMode mode) {
  require_rank("pad", x, amounts.size());
  Bounds crop;
  for (const auto& [lo, hi] : amounts)
    crop.emplace_back(std::min<int64_t>(lo, 0), std::min<int64_t>(hi, 0));
  Tensor y = pad(x, crop);
  for (int axis = 0; axis < x.rank(); ++axis) {
    const auto [lo, hi] = amounts[static_cast<size_t>(axis)];
    const Tensor source = y;  // Wrap takes both ends from the unpadded axis
    if (mode == PadMode::Wrap && hi > 0) {
      // [x, x[0:hi]]: the high end of the wrapped axis is the low end of its reverse.
      const Tensor reversed = grow_low(flip_axis(source, axis), axis, hi, mode);
      const int64_t extent = source.dim(axis);
      const Tensor high = shrink_axis(flip_axis(reversed, axis), axis, extent, extent + hi);
      y = concat({grow_low(source, axis, lo, mode), high}, axis);
      continue;
    }
    if (lo > 0) y = grow_low(y, axis, lo, mode);
    if (hi > 0) {
      // Mirrored at its own end; after the low end grew, the pattern is the same periodic one.
      const Tensor high = flip_axis(grow_low(flip_axis(source, axis), axis, hi, mode), axis);
      const int64_t extent = source.dim(axis);
      y = concat({y, shrink_axis(high, axis, extent, extent + hi)}, axis);
    }
  }
  return y;
}

Tensor shrink(const Tensor& x, const Bounds& bounds) {
  require_rank("shrink", x, bounds.size());
  std::vector<int64_t> ints;
  Shape shape;
  bool changes = false;
  for (size_t i = 0; i < bounds.size(); ++i) {
    const auto [begin, end] = bounds[i];
    if (begin < 0 || begin > end || end > x.shape()[i]) {
      fail("shrink: [" + std::to_string(begin) + ", " + std::to_string(end) +
           ") is not inside axis " + std::to_string(i) + " of " + x.describe() + ".");
    }
    ints.insert(ints.end(), {begin, end});
    shape.push_back(end - begin);
    changes |= begin != 0 || end != x.shape()[i];
  }
  if (!changes) return x;
  if (x.node().is(Op::Shrink) && !detail::splat_of(x.node())) {
    const std::vector<int64_t>& inner = x.node().arg().ints;
    for (size_t i = 0; i < bounds.size(); ++i) {
      ints[2 * i] += inner[2 * i];
      ints[2 * i + 1] += inner[2 * i];
    }
    return movement(Op::Shrink, Tensor(x.graph(), x.node().src(0), x.name()), ints, shape);
  }
  return movement(Op::Shrink, x, ints, shape);
}

Tensor slice(const Tensor& x, int64_t axis_in, int64_t begin, int64_t end, int64_t step) {
  const int axis = normalize_axis("slice", axis_in, x.rank());
  if (step == 0)
    fail("slice: the step on axis " + std::to_string(axis) + " of " + x.describe() + " is 0.");
  const int64_t extent = x.dim(axis);
  const bool backwards = step < 0;
  const auto clamp_end = [&](int64_t at) {  // Python's rule; at may be INT64_MIN or INT64_MAX
    if (at < 0) at = at < -extent ? (backwards ? -1 : 0) : at + extent;
    return backwards ? std::min(at, extent - 1) : std::min(at, extent);
  };
  int64_t first = clamp_end(begin), last = clamp_end(end);
  if (backwards && end < -extent) last = -1;
  if (backwards ? last >= first : first >= last) return shrink_axis(x, axis, 0, 0);
  Tensor y = x;
  if (backwards) {  // element i of the flipped axis is extent - 1 - i
    y = flip_axis(y, axis);
    first = extent - 1 - first;
    last = extent - 1 - last;
    step = step == INT64_MIN ? INT64_MAX : -step;
  }
  y = shrink_axis(y, axis, first, last);
  if (step >= last - first) return shrink_axis(y, axis, 0, 1);
  if (step == 1) return y;
  const Tensor strided = window(y, axis, 1, step);
  Shape shape = y.shape();
  shape[static_cast<size_t>(axis)] = strided.dim(axis);
  return reshape(strided, shape);
}

Tensor select(const Tensor& x, int64_t axis_in, int64_t index) {
  const int axis = normalize_axis("select", axis_in, x.rank());
  const int64_t extent = x.dim(axis);
  if (index < -extent || index >= extent) {
    fail("select: index " + std::to_string(index) + " is outside axis " + std::to_string(axis) +
         " of " + x.describe() + ".");
  }
  if (index < 0) index += extent;
  return squeeze(shrink_axis(x, axis, index, index + 1), {axis});
}

Tensor flip(const Tensor& x, const std::vector<int64_t>& axes) {
  std::vector<int64_t> ints(static_cast<size_t>(x.rank()), 0);
  bool changes = false;
  for (const int64_t axis_in : axes) {
    const auto axis = static_cast<size_t>(normalize_axis("flip", axis_in, x.rank()));
    if (x.shape()[axis] > 1) ints[axis] = 1;
    changes |= ints[axis] == 1;
  }
  if (!changes) return x;
  return movement(Op::Flip, x, ints, x.shape());
}

Tensor squeeze(const Tensor& x, const std::vector<int64_t>& axes) {
  std::vector<bool> drop(static_cast<size_t>(x.rank()), axes.empty());
  for (const int64_t axis_in : axes) {
    const int axis = normalize_axis("squeeze", axis_in, x.rank());
    if (x.dim(axis) != 1) {
      fail("squeeze: axis " + std::to_string(axis) + " of " + x.describe() + " is not 1.");
    }
    drop[static_cast<size_t>(axis)] = true;
  }
  Shape shape;
  for (size_t i = 0; i < drop.size(); ++i) {
    if (!drop[i] || x.shape()[i] != 1) shape.push_back(x.shape()[i]);
  }
  return reshape(x, shape);
}

Tensor unsqueeze(const Tensor& x, const std::vector<int64_t>& axes) {
  const int rank = x.rank() + static_cast<int>(axes.size());
  Shape shape(static_cast<size_t>(rank), -1);
  for (const int64_t axis_in : axes) {
    int64_t& extent = shape[static_cast<size_t>(normalize_axis("unsqueeze", axis_in, rank))];
    if (extent == 1) fail("unsqueeze: an axis is given twice for " + x.describe() + ".");
    extent = 1;
  }
  size_t next = 0;
  for (int64_t& extent : shape) {
    if (extent == -1) extent = x.shape()[next++];
  }
  return reshape(x, shape);
}

Tensor flatten(const Tensor& x, int64_t begin, int64_t end) {
  if (x.rank() == 0) return reshape(x, {1});
  const int first = normalize_axis("flatten", begin, x.rank()),
            last = normalize_axis("flatten", end, x.rank());
  if (first > last)
    fail("flatten: axes " + std::to_string(begin) + " to " + std::to_string(end) +
         " are reversed.");
  Shape shape(x.shape().begin(), x.shape().begin() + first);
  int64_t merged = 1;
  for (int i = first; i <= last; ++i) merged *= x.dim(i);
  shape.push_back(merged);
  shape.insert(shape.end(), x.shape().begin() + last + 1, x.shape().end());
  return reshape(x, shape);
}

Tensor concat(std::span<const Tensor> parts, int64_t axis_in) {
  const auto& graph = detail::common_graph("concat", parts);
  const int axis = normalize_axis("concat", axis_in, parts[0].rank());
  DType dtype = parts[0].dtype();
  for (const Tensor& part : parts) {
    dtype = promote(dtype, part.dtype());
    bool fits = part.rank() == parts[0].rank();
    for (int i = 0; fits && i < part.rank(); ++i)
      fits = i == axis || part.dim(i) == parts[0].dim(i);
    if (!fits) {
      fail("concat: " + parts[0].describe() + " and " + part.describe() +
           " do not join along axis " + std::to_string(axis) + ".");
    }
  }
  std::vector<Node> sources;
  Tensor only;
  for (const Tensor& part : parts) {
    if (part.dim(axis) == 0) continue;
    only = cast(part, dtype);
    sources.push_back(only.node());
  }
  if (sources.empty()) return cast(parts[0], dtype);
  if (sources.size() == 1) return only;
  return Tensor(graph, graph->make(Op::Cat, dtype, sources, ir::Arg{{axis}, {}}));
}
Tensor concat(std::initializer_list<Tensor> parts, int64_t axis) {
  return concat(std::span<const Tensor>(parts.begin(), parts.size()), axis);
}

Tensor stack(std::span<const Tensor> parts, int64_t axis_in) {
  detail::common_graph("stack", parts);
  const int axis = normalize_axis("stack", axis_in, parts[0].rank() + 1);
  std::vector<Tensor> unsqueezed;
  for (const Tensor& part : parts) {
    if (part.shape() != parts[0].shape()) {
      fail("stack: the shapes of " + parts[0].describe() + " and " + part.describe() + " differ.");
    }
    unsqueezed.push_back(unsqueeze(part, {axis}));
  }
  return concat(unsqueezed, axis);
}
Tensor stack(std::initializer_list<Tensor> parts, int64_t axis) {
  return stack(std::span<const Tensor>(parts.begin(), parts.size()), axis);
}

std::vector<Tensor> split(const Tensor& x, int64_t axis_in, const std::vector<int64_t>& sizes) {
  const int axis = normalize_axis("split", axis_in, x.rank());
  int64_t total = 0;
  for (const int64_t size : sizes)
    total = size < 0 || total > x.dim(axis) ? INT64_MAX / 2 : total + size;
  if (total != x.dim(axis)) {
    fail("split: the sizes " + list_text(sizes) + " do not add up to axis " + std::to_string(axis) +
         " of " + x.describe() + ".");
  }
  std::vector<Tensor> parts;
  int64_t at = 0;
  for (const int64_t size : sizes) {
    parts.push_back(shrink_axis(x, axis, at, at + size));
    at += size;
  }
  return parts;
}

std::vector<Tensor> chunk(const Tensor& x, int64_t axis_in, int64_t size) {
  const int axis = normalize_axis("chunk", axis_in, x.rank());
  if (size <= 0) fail("chunk: pieces of " + std::to_string(size) + " of " + x.describe() + ".");
  std::vector<int64_t> sizes;
  for (int64_t left = x.dim(axis); left > 0; left -= size) sizes.push_back(std::min(size, left));
  return split(x, axis, sizes);
}

Tensor tile(const Tensor& x, const std::vector<int64_t>& repeats) {
  require_rank("tile", x, repeats.size());
  Shape spread, stretched, merged;
  for (size_t i = 0; i < repeats.size(); ++i) {
    if (repeats[i] < 0) fail("tile: " + list_text(repeats) + " of " + x.describe() + ".");
    spread.insert(spread.end(), {1, x.shape()[i]});
    stretched.insert(stretched.end(), {repeats[i], x.shape()[i]});
  }
  detail::check_count("tile", stretched);
  for (size_t i = 0; i < repeats.size(); ++i) merged.push_back(repeats[i] * x.shape()[i]);
  if (merged == x.shape()) return x;
  if (element_count(stretched) == 0) return Tensor::full_int(x.graph(), merged, 0, x.dtype());
  return reshape(detail::expand(reshape(x, spread), stretched), merged);
}

Tensor repeat_interleave(const Tensor& x, int64_t axis_in, int64_t count) {
  const int axis = normalize_axis("repeat", axis_in, x.rank());
  if (count < 0) fail("repeat: " + std::to_string(count) + " times " + x.describe() + ".");
  const Tensor spread = unsqueeze(x, {axis + 1});
  Shape stretched = spread.shape(), merged = x.shape();
  stretched[static_cast<size_t>(axis) + 1] = count;
  detail::check_count("repeat", stretched);
  merged[static_cast<size_t>(axis)] *= count;
  if (count == 0) return Tensor::full_int(x.graph(), merged, 0, x.dtype());
  return reshape(detail::expand(spread, stretched), merged);
}

Tensor window(const Tensor& x, int64_t axis_in, int64_t kernel, int64_t stride, int64_t dilation) {
  const int axis = normalize_axis("window", axis_in, x.rank());
  const int64_t extent = x.dim(axis);
  const bool fits = kernel > 0 && stride > 0 && dilation > 0 && kernel <= extent &&
                    (kernel == 1 || dilation <= (extent - 1) / (kernel - 1));
  if (!fits) {
    fail("window: kernel " + std::to_string(kernel) + ", stride " + std::to_string(stride) +
         ", dilation " + std::to_string(dilation) + " do not fit axis " + std::to_string(axis) +
         " of " + x.describe() + ".");
  }
  Shape shape = x.shape();
  shape[static_cast<size_t>(axis)] = (extent - dilation * (kernel - 1) - 1) / stride + 1;
  shape.push_back(kernel);
  return movement(Op::Window, x, {axis, kernel, stride, kernel == 1 ? 1 : dilation}, shape);
}

Tensor roll(const Tensor& x, int64_t axis_in, int64_t shift) {
  const int axis = normalize_axis("roll", axis_in, x.rank());
  const int64_t extent = x.dim(axis);
  if (extent == 0) return x;
  const int64_t by = ((shift % extent) + extent) % extent;
  if (by == 0) return x;
  return concat({shrink_axis(x, axis, extent - by, extent), shrink_axis(x, axis, 0, extent - by)},
                axis);
}

namespace {

/// Keeps elements with column - row <= k (lower) or >= k (upper).
Tensor triangle(std::string_view operation, const Tensor& x, int64_t k, bool lower) {
  if (x.rank() < 2) fail(std::string(operation) + ": " + x.describe() + " has no two axes.");
  const int64_t rows = x.dim(-2), columns = x.dim(-1);
  k = std::clamp(k, -rows - 1, columns + 1);
  const Tensor row = Tensor::arange(x.graph(), k, rows, 1, DType::Int64);
  const Tensor column = Tensor::arange(x.graph(), 0, columns, 1, DType::Int64);
  const Tensor row_axis = reshape(row, {rows, 1});
  const Tensor outside = lower ? less(row_axis, column) : less(column, row_axis);
  return where(outside, cast(Tensor::scalar(x.graph(), 0), x.dtype()), x);
}

}  // namespace

Tensor tril(const Tensor& x, int64_t k) { return triangle("tril", x, k, /*lower=*/true); }
Tensor triu(const Tensor& x, int64_t k) { return triangle("triu", x, k, /*lower=*/false); }

Tensor contiguous(const Tensor& x) {
  if (is_weak(x.dtype()) || x.node().is(Op::Contiguous) || detail::splat_of(x.node())) return x;
  return Tensor(x.graph(), x.graph()->make(Op::Contiguous, x.dtype(), {x.node()}), x.name());
}

}  // namespace ignis::tensor
