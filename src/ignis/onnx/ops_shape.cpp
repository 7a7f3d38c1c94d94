#include "ignis/onnx/ops_common.h"

#include <algorithm>
#include <cmath>
#include <limits>

// Operators that move elements or make shapes: their shape arguments are known at import.
namespace ignis::onnx {
namespace {

/// Values of an argument that was an attribute until `input_since` and is input `i` from then on; empty when absent.
Result<std::vector<int64_t>> ints_argument(const OpContext& ctx, std::string_view attribute, int i,
                                           int64_t input_since) {
  if (ctx.opset() < input_since) return ctx.attr_ints(attribute);
  if (!ctx.has_input(i)) return std::vector<int64_t>{};
  return ctx.const_ints(i);
}

OpOutputs shape(const OpContext& ctx) {
  const Shape& extents = ctx.input(0).shape();
  const int64_t rank = static_cast<int64_t>(extents.size());
  const auto clamped = [&](std::string_view name, int64_t fallback) {
    const int64_t value = ctx.attr_int(name, fallback);
    return std::clamp<int64_t>(value < 0 ? value + rank : value, 0, rank);
  };
  const int64_t start = clamped("start", 0), end = clamped("end", rank);
  if (start >= end) return one(ctx.ints({}));
  return one(ctx.ints({extents.begin() + start, extents.begin() + end}));
}

OpOutputs size(const OpContext& ctx) {
  return one(ctx.scalar_int(DType::Int64, ctx.input(0).count()));
}

OpOutputs reshape(const OpContext& ctx) {
  const Tensor& x = ctx.input(0);
  if (ctx.opset() >= 5 && !ctx.has_input(1)) return ctx.error("Input 1 (shape) is absent.");
  IGNIS_TRY_ASSIGN(Shape wanted, ints_argument(ctx, "shape", 1, 5));
  const bool is_zero_kept = ctx.attr_int("allowzero", 0) != 0;
  for (size_t i = 0; i < wanted.size() && !is_zero_kept; ++i) {
    if (wanted[i] != 0) continue;
    if (i >= x.shape().size()) {
      return ctx.error("Extent " + std::to_string(i) + " is to be copied from " + x.describe() +
                       ".");
    }
    wanted[i] = x.shape()[i];
  }
  return one(tensor::reshape(x, wanted));
}

OpOutputs flatten(const OpContext& ctx) {
  const Tensor& x = ctx.input(0);
  int64_t axis = ctx.attr_int("axis", 1);
  if (axis < 0) axis += x.rank();
  if (axis < 0 || axis > x.rank())
    return ctx.error("Axis " + std::to_string(axis) + " is outside " + x.describe() + ".");
  int64_t rows = 1, columns = 1;
  for (int i = 0; i < x.rank(); ++i) (i < axis ? rows : columns) *= x.dim(i);
  return one(tensor::reshape(x, {rows, columns}));
}

OpOutputs squeeze(const OpContext& ctx) {
  IGNIS_TRY_ASSIGN(const std::vector<int64_t> axes, ints_argument(ctx, "axes", 1, 13));
  // An empty list that is given means no axis; only an absent one means all.
  const bool is_given = ctx.opset() < 13 ? ctx.has_attr("axes") : ctx.has_input(1);
  if (is_given && axes.empty()) return one(ctx.input(0));
  return one(tensor::squeeze(ctx.input(0), axes));
}

OpOutputs unsqueeze(const OpContext& ctx) {
  IGNIS_TRY_ASSIGN(const std::vector<int64_t> axes, ints_argument(ctx, "axes", 1, 13));
  if (ctx.input(0).rank() + static_cast<int64_t>(axes.size()) > ctx.limits().max_rank) {
    return ctx.error("The result has more than " + std::to_string(ctx.limits().max_rank) +
                     " axes.");
  }
  return one(tensor::unsqueeze(ctx.input(0), axes));
}

OpOutputs transpose(const OpContext& ctx) {
  const Tensor& x = ctx.input(0);
  std::vector<int64_t> reversed;
  for (int64_t i = x.rank(); i-- > 0;) reversed.push_back(i);
  const std::vector<int64_t> perm = ctx.attr_ints("perm", reversed);
  return one(tensor::permute(x, perm.empty() ? reversed : perm));
}

OpOutputs concat(const OpContext& ctx) {
  require_same_dtype(ctx);
  const std::vector<Tensor> parts = ctx.inputs();
  if (ctx.opset() >= 4 && !ctx.has_attr("axis")) return ctx.error("Attribute 'axis' is missing.");
  return one(concat_all(parts, ctx.axis(ctx.attr_int("axis", 1), parts[0].rank())));
}

OpOutputs split(const OpContext& ctx) {
  const Tensor& x = ctx.input(0);
  const int64_t axis = ctx.axis(ctx.attr_int("axis", 0), x.rank());
  const int64_t extent = x.dim(static_cast<int>(axis));
  IGNIS_TRY_ASSIGN(std::vector<int64_t> sizes, ints_argument(ctx, "split", 1, 13));
  if (sizes.empty()) {
    const int64_t parts = ctx.attr_int("num_outputs", ctx.output_count());
    if (parts < 1 || parts > std::max<int64_t>(extent, 1)) {
      return ctx.error("Extent " + std::to_string(extent) + " cannot be split into " +
                       std::to_string(parts) + " parts.");
    }
    // From operator set 18 on the last part may be smaller.
    if (extent % parts != 0 && ctx.opset() < 18) {
      return ctx.error("Extent " + std::to_string(extent) + " is no multiple of " +
                       std::to_string(parts) + " parts.");
    }
    const int64_t part = (extent + parts - 1) / parts;
    for (int64_t i = 0, left = extent; i < parts; ++i, left -= sizes.back())
      sizes.push_back(std::min(part, left));
  }
  return tensor::split(x, axis, sizes);
}

/// Where a slice begins and how many elements it has, by the standard's clamping.
struct SliceRange {
  int64_t first = 0, count = 0;
};

SliceRange clamp_slice(int64_t start, int64_t end, int64_t step, int64_t extent) {
  // A negative number plus the extent cannot wrap, and INT64_MAX is not touched: it means "to the end".
  const auto from_end = [extent](int64_t v) { return v < 0 ? v + extent : v; };
  const int64_t low = step > 0 ? 0 : -1, high = step > 0 ? extent : extent - 1;
  const int64_t first = std::clamp(from_end(start), int64_t{0}, std::max<int64_t>(high, 0));
  const int64_t last = std::clamp(from_end(end), low, high);
  const int64_t distance = step > 0 ? last - first : first - last;
  if (distance <= 0 || extent == 0) return {0, 0};
  const uint64_t stride =
      step > 0 ? static_cast<uint64_t>(step) : uint64_t{0} - static_cast<uint64_t>(step);
  return {first, static_cast<int64_t>((static_cast<uint64_t>(distance) - 1) / stride) + 1};
}

/// `count` elements from `first` on, `step` apart.
Tensor take_slice(const Tensor& x, int64_t axis, const SliceRange& range, int64_t step) {
  std::vector<std::pair<int64_t, int64_t>> bounds;
  for (const int64_t extent : x.shape()) bounds.emplace_back(0, extent);
  const int64_t stride = std::abs(step);
  const int64_t reach = range.count == 0 ? 0 : (range.count - 1) * stride + 1;
  bounds[static_cast<size_t>(axis)] = step > 0
                                          ? std::pair(range.first, range.first + reach)
                                          : std::pair(range.first + 1 - reach, range.first + 1);
  if (range.count == 0) bounds[static_cast<size_t>(axis)] = {0, 0};
  Tensor y = tensor::shrink(x, bounds);
  if (step < 0) y = tensor::flip(y, {axis});
  return stride == 1 || range.count == 0 ? y : tensor::slice(y, axis, 0, reach, stride);
}

OpOutputs slice(const OpContext& ctx) {
  const Tensor& x = ctx.input(0);
  IGNIS_TRY_ASSIGN(const std::vector<int64_t> starts, ints_argument(ctx, "starts", 1, 10));
  IGNIS_TRY_ASSIGN(const std::vector<int64_t> ends, ints_argument(ctx, "ends", 2, 10));
  IGNIS_TRY_ASSIGN(std::vector<int64_t> axes, ints_argument(ctx, "axes", 3, 10));
  std::vector<int64_t> steps(starts.size(), 1);
  if (ctx.opset() >= 10 && ctx.has_input(4)) {
    IGNIS_TRY_ASSIGN(steps, ctx.const_ints(4));
  }
  if (axes.empty()) {
    for (size_t i = 0; i < starts.size(); ++i) axes.push_back(static_cast<int64_t>(i));
  }
  if (ends.size() != starts.size() || axes.size() != starts.size() ||
      steps.size() != starts.size()) {
    return ctx.error("starts, ends, axes and steps have " + std::to_string(starts.size()) + ", " +
                     std::to_string(ends.size()) + ", " + std::to_string(axes.size()) + " and " +
                     std::to_string(steps.size()) + " values.");
  }
  Tensor y = x;
  std::vector<bool> is_seen(static_cast<size_t>(x.rank()), false);
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t axis = ctx.axis(axes[i], x.rank());
    if (is_seen[static_cast<size_t>(axis)])
      return ctx.error("Axis " + std::to_string(axis) + " is given twice.");
    is_seen[static_cast<size_t>(axis)] = true;
    if (steps[i] == 0) return ctx.error("A step is 0.");
    const SliceRange range =
        clamp_slice(starts[i], ends[i], steps[i], x.dim(static_cast<int>(axis)));
    // A step beyond the extent takes one element, whatever its size.
    const int64_t step = range.count <= 1 ? (steps[i] > 0 ? 1 : -1) : steps[i];
    y = take_slice(y, axis, range, step);
  }
  return one(y);
}

OpOutputs expand(const OpContext& ctx) {
  const Tensor& x = ctx.input(0);
  IGNIS_TRY_ASSIGN(Shape wanted, ctx.const_ints(1));
  for (const int64_t extent : wanted) {
    if (extent < 0) return ctx.error("The shape is " + to_string(wanted) + ".");
  }
  // Both sides stretch: an extent of 1 in the wanted shape keeps x's.
  const size_t rank = std::max(wanted.size(), x.shape().size());
  wanted.insert(wanted.begin(), rank - wanted.size(), 1);
  for (size_t i = 0; i < x.shape().size(); ++i) {
    int64_t& extent = wanted[rank - x.shape().size() + i];
    if (extent == 1) extent = x.shape()[i];
  }
  require_size(ctx, wanted);
  return one(tensor::broadcast_to(x, wanted));
}

OpOutputs tile(const OpContext& ctx) {
  const Tensor& x = ctx.input(0);
  IGNIS_TRY_ASSIGN(const std::vector<int64_t> repeats, ctx.const_ints(1));
  if (static_cast<int>(repeats.size()) != x.rank()) {
    return ctx.error("There are " + std::to_string(repeats.size()) + " repeats for " +
                     x.describe() + ".");
  }
  Shape result = x.shape();
  for (size_t i = 0; i < repeats.size(); ++i) {
    if (repeats[i] < 0 ||
        (repeats[i] != 0 && result[i] > std::numeric_limits<int64_t>::max() / repeats[i])) {
      return ctx.error("The repeats are " + to_string(repeats) + ".");
    }
    result[i] *= repeats[i];
  }
  require_size(ctx, result);
  return one(tensor::tile(x, repeats));
}

OpOutputs pad(const OpContext& ctx) {
  const Tensor& x = ctx.input(0);
  const std::string mode = ctx.attr_string("mode", "constant");
  IGNIS_TRY_ASSIGN(const std::vector<int64_t> pads,
                   ints_argument(ctx, ctx.opset() < 2 ? "paddings" : "pads", 1, 11));
  std::vector<int64_t> axes;
  if (ctx.has_input(3)) {
    IGNIS_TRY_ASSIGN(axes, ctx.const_ints(3));
  } else {
    for (int64_t i = 0; i < x.rank(); ++i) axes.push_back(i);
  }
  if (pads.size() != 2 * axes.size()) {
    return ctx.error("There are " + std::to_string(pads.size()) + " pads for " +
                     std::to_string(axes.size()) + " axes.");
  }
  std::vector<std::pair<int64_t, int64_t>> amounts(static_cast<size_t>(x.rank()));
  Shape result = x.shape();
  for (size_t i = 0; i < axes.size(); ++i) {
    const size_t axis = static_cast<size_t>(ctx.axis(axes[i], x.rank()));
    const int64_t lo = pads[i], hi = pads[axes.size() + i];
    constexpr int64_t kMost = int64_t{1} << 40;
    if (lo < -kMost || lo > kMost || hi < -kMost || hi > kMost)
      return ctx.error("The pads are " + to_string(pads) + ".");
    amounts[axis] = {lo, hi};
    result[axis] = x.shape()[axis] + lo + hi;
    if (result[axis] < 0)
      return ctx.error("The pads " + to_string(pads) + " take more than " + x.describe() + " has.");
  }
  require_size(ctx, result);
  if (mode == "constant") {
    Tensor value = ctx.scalar(x.dtype(), ctx.opset() < 11 ? ctx.attr_float("value", 0) : 0.0);
    if (ctx.opset() >= 11 && ctx.has_input(2)) {
      if (ctx.input(2).count() != 1 || ctx.input(2).dtype() != x.dtype()) {
        return ctx.error("The pad value is " + ctx.input(2).describe() + " for " + x.describe() +
                         ".");
      }
      value = tensor::reshape(ctx.input(2), {});
    }
    return one(tensor::pad(x, amounts, value));
  }
  if (mode == "reflect") return one(tensor::pad_mode(x, amounts, tensor::PadMode::Reflect));
  if (mode == "edge") return one(tensor::pad_mode(x, amounts, tensor::PadMode::Edge));
  if (mode == "wrap") return one(tensor::pad_mode(x, amounts, tensor::PadMode::Wrap));
  return ctx.error("Pad has mode '" + mode + "'.");
}

OpOutputs constant(const OpContext& ctx) {
  for (const std::string_view name : {"value", "sparse_value"}) {
    if (!ctx.has_attr(name)) continue;
    IGNIS_TRY_ASSIGN(Tensor value, ctx.attr_tensor(name));
    return one(std::move(value));
  }
  if (ctx.has_attr("value_float"))
    return one(ctx.scalar(DType::Float32, ctx.attr_float("value_float", 0)));
  if (ctx.has_attr("value_int"))
    return one(ctx.scalar_int(DType::Int64, ctx.attr_int("value_int")));
  if (ctx.has_attr("value_ints")) return one(ctx.ints(ctx.attr_ints("value_ints")));
  if (ctx.has_attr("value_floats")) {
    const std::vector<float> values = ctx.attr_floats("value_floats");
    return one(ctx.constant(
        HostTensor::from(DType::Float32, {static_cast<int64_t>(values.size())}, values)));
  }
  return ctx.unsupported("The constant is a string or has no value.");
}

OpOutputs constant_of_shape(const OpContext& ctx) {
  IGNIS_TRY_ASSIGN(const Shape extents, ctx.const_ints(0));
  require_size(ctx, extents);
  if (!ctx.has_attr("value")) return one(Tensor::full(ctx.graph(), extents, 0, DType::Float32));
  IGNIS_TRY_ASSIGN(const Tensor value, ctx.attr_tensor("value"));
  if (value.count() != 1)
    return ctx.error("The value is " + value.describe() + ", not one element.");
  return one(tensor::broadcast_to(tensor::reshape(value, {}), extents));
}

OpOutputs range(const OpContext& ctx) {
  require_same_dtype(ctx);
  const DType dtype = ctx.input(0).dtype();
  HostTensor bounds[3];
  for (int i = 0; i < 3; ++i) {
    IGNIS_TRY_ASSIGN(bounds[i], ctx.const_input(i));
    if (bounds[i].count() != 1)
      return ctx.error("Input " + std::to_string(i) + " is " + ctx.input(i).describe() + ".");
  }
  const double start = element_as_double(bounds[0], 0), limit = element_as_double(bounds[1], 0);
  const double delta = element_as_double(bounds[2], 0);
  const double steps = std::max(std::ceil((limit - start) / delta), 0.0);
  if (!(steps <= static_cast<double>(ctx.limits().max_fold_elements))) {
    return ctx.error("The range from " + std::to_string(start) + " to " + std::to_string(limit) +
                     " by " + std::to_string(delta) + " is not finite or too long.");
  }
  const int64_t count = static_cast<int64_t>(steps);
  if (!is_float(dtype)) {
    return one(Tensor::arange(ctx.graph(), element_as_int(bounds[0], 0), count,
                              element_as_int(bounds[2], 0), dtype));
  }
  HostTensor values = HostTensor::zeros(dtype, {count});
  for (int64_t i = 0; i < count; ++i)
    store_element(values, i, start + static_cast<double>(i) * delta);
  return one(ctx.constant(values));
}

OpOutputs eye_like(const OpContext& ctx) {
  const Tensor& x = ctx.input(0);
  if (x.rank() != 2) return ctx.error("EyeLike takes a matrix, not " + x.describe() + ".");
  const int64_t k = ctx.attr_int("k", 0);
  if (k < -ctx.limits().max_elements || k > ctx.limits().max_elements)
    return ctx.error("The diagonal is " + std::to_string(k) + ".");
  if (x.dim(0) + x.dim(1) > ctx.limits().max_fold_elements)
    return ctx.error("The matrix is too large.");
  const Tensor rows =
      tensor::reshape(Tensor::arange(ctx.graph(), k, x.dim(0), 1, DType::Int64), {x.dim(0), 1});
  const Tensor columns = Tensor::arange(ctx.graph(), 0, x.dim(1), 1, DType::Int64);
  return one(tensor::cast(tensor::equal(rows, columns), ctx.attr_dtype("dtype", x.dtype())));
}

/// The block size squared must have room in an int64.
int64_t block_size(const OpContext& ctx) {
  const int64_t block = ctx.attr_int("blocksize");
  if (block < 1 || block > (int64_t{1} << 20)) {
    tensor::fail("Attribute 'blocksize' is " + std::to_string(block) + ".");
  }
  return block;
}

OpOutputs depth_to_space(const OpContext& ctx) {
  const std::string mode = ctx.attr_string("mode", "DCR");
  if (mode != "DCR" && mode != "CRD") return ctx.error("DepthToSpace has mode '" + mode + "'.");
  return one(tensor::depth_to_space(ctx.input(0), block_size(ctx), mode == "CRD"));
}

OpOutputs space_to_depth(const OpContext& ctx) {
  return one(tensor::space_to_depth(ctx.input(0), block_size(ctx)));
}

// clang-format off
constexpr OpEntry kShapeOps[] = {
    {"", "Shape", 1, 1, 1, shape},
    {"", "Size", 1, 1, 1, size},
    {"", "Reshape", 1, 1, 2, reshape},
    {"", "Flatten", 1, 1, 1, flatten},
    {"", "Squeeze", 1, 1, 2, squeeze},
    {"", "Unsqueeze", 1, 1, 2, unsqueeze},
    {"", "Transpose", 1, 1, 1, transpose},
    {"", "Concat", 1, 1, -1, concat},
    {"", "Split", 2, 1, 2, split},
    {"", "Slice", 1, 1, 5, slice},
    {"", "Expand", 8, 2, 2, expand},
    {"", "Tile", 6, 2, 2, tile},
    {"", "Pad", 1, 1, 4, pad},
    {"", "Constant", 1, 0, 0, constant},
    {"", "ConstantOfShape", 9, 1, 1, constant_of_shape},
    {"", "Range", 11, 3, 3, range},
    {"", "EyeLike", 9, 1, 1, eye_like},
    {"", "DepthToSpace", 1, 1, 1, depth_to_space},
    {"", "SpaceToDepth", 1, 1, 1, space_to_depth},
};
// clang-format on

}  // namespace

Tensor concat_all(std::vector<Tensor> parts, int64_t axis) {
  constexpr size_t kGroup = 4096;
  while (parts.size() > kGroup) {
    std::vector<Tensor> joined;
    for (size_t i = 0; i < parts.size(); i += kGroup) {
      const size_t count = std::min(kGroup, parts.size() - i);
      joined.push_back(tensor::concat(std::span(parts).subspan(i, count), axis));
    }
    parts = std::move(joined);
  }
  return tensor::concat(parts, axis);
}

std::span<const OpEntry> shape_ops() { return kShapeOps; }

}  // namespace ignis::onnx
