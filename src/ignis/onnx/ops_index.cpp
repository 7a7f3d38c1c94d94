// Gather, scatter, sorting, and operators that choose elements. Those whose output shape depends on values (NonZero,
// Compress, Unique) are computed here on the host and need inputs that are known at import.
#include "ignis/onnx/ops_common.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>

namespace ignis::onnx {
namespace {

namespace t = tensor;

OpOutputs gather(const OpContext& ctx) {
  const Tensor& x = ctx.input(0);
  const Shape& indices = ctx.input(1).shape();
  const int64_t axis = ctx.axis(ctx.attr_int("axis", 0), x.rank());
  Shape shape = x.shape();
  shape.erase(shape.begin() + axis);
  shape.insert(shape.begin() + axis, indices.begin(), indices.end());
  require_size(ctx, shape);
  return one(t::gather(x, ctx.input(1), axis));
}

OpOutputs gather_elements(const OpContext& ctx) {
  const Tensor& x = ctx.input(0);
  return one(t::gather_elements(x, ctx.input(1), ctx.axis(ctx.attr_int("axis", 0), x.rank())));
}

OpOutputs gather_nd(const OpContext& ctx) {
  return one(t::gather_nd(ctx.input(0), ctx.input(1), ctx.attr_int("batch_dims", 0)));
}

Result<t::ScatterOp> scatter_reduction(const OpContext& ctx) {
  const std::string name = ctx.attr_string("reduction", "none");
  if (name == "none") return t::ScatterOp::Replace;
  if (name == "add") return t::ScatterOp::Add;
  if (name == "mul") return t::ScatterOp::Mul;
  if (name == "max") return t::ScatterOp::Max;
  if (name == "min") return t::ScatterOp::Min;
  return ctx.error("Unknown reduction '" + name + "'.");
}

OpOutputs scatter_elements(const OpContext& ctx) {
  const Tensor& x = ctx.input(0);
  IGNIS_TRY_ASSIGN(const t::ScatterOp op, scatter_reduction(ctx));
  const Tensor y = t::scatter_elements(x, ctx.input(1), ctx.input(2),
                                       ctx.axis(ctx.attr_int("axis", 0), x.rank()), op);
  return one(t::cast(y, x.dtype()));
}

OpOutputs scatter_nd(const OpContext& ctx) {
  const Tensor& x = ctx.input(0);
  IGNIS_TRY_ASSIGN(const t::ScatterOp op, scatter_reduction(ctx));
  return one(t::cast(t::scatter_nd(x, ctx.input(1), ctx.input(2), op), x.dtype()));
}

OpOutputs one_hot(const OpContext& ctx) {
  IGNIS_TRY_ASSIGN(const double stated_depth, ctx.const_float(1));
  if (!(stated_depth >= 0) || stated_depth > static_cast<double>(ctx.limits().max_elements)) {
    return ctx.error("A depth of " + std::to_string(stated_depth) + ".");
  }
  const int64_t depth = static_cast<int64_t>(stated_depth);
  Tensor indices = ctx.input(0);
  if (is_float(indices.dtype())) indices = t::cast(indices, DType::Int64);
  const int64_t axis = ctx.axis(ctx.attr_int("axis", -1), indices.rank() + 1);
  Shape shape = indices.shape();
  shape.insert(shape.begin() + axis, depth);
  require_size(ctx, shape);
  if (ctx.input(2).rank() != 1 || ctx.input(2).count() != 2) {
    return ctx.error("values is [off, on], not " + ctx.input(2).describe() + ".");
  }
  const Tensor off = t::select(ctx.input(2), 0, 0);
  const Tensor on = t::select(ctx.input(2), 0, 1);
  return one(t::one_hot(indices, depth, axis, on, off));
}

OpOutputs top_k(const OpContext& ctx) {
  const Tensor& x = ctx.input(0);
  int64_t k = 0;
  if (ctx.opset() >= 10) {
    IGNIS_TRY_ASSIGN(k, ctx.const_int(1));
  } else {
    k = ctx.attr_int("k");
  }
  const int64_t axis = ctx.axis(ctx.attr_int("axis", -1), x.rank());
  if (k < 0 || k > x.dim(static_cast<int>(axis))) {
    return ctx.error("k = " + std::to_string(k) + " is more than axis " + std::to_string(axis) +
                     " of " + x.describe() + " holds.");
  }
  const auto order = ctx.attr_int("largest", 1) != 0 ? t::Order::Descending : t::Order::Ascending;
  const t::Sorted sorted = t::topk(x, k, axis, order);
  return std::vector<Tensor>{sorted.values, t::cast(sorted.indices, DType::Int64)};
}

OpOutputs trilu(const OpContext& ctx) {
  int64_t k = 0;
  if (ctx.has_input(1)) {
    IGNIS_TRY_ASSIGN(k, ctx.const_int(1));
  }
  const Tensor& x = ctx.input(0);
  if (x.rank() < 2) return ctx.error("Trilu needs a matrix, not " + x.describe() + ".");
  // Beyond the corners nothing changes any more; clamping keeps the index arithmetic small.
  k = std::clamp<int64_t>(k, -x.dim(-2) - 1, x.dim(-1) + 1);
  return one(ctx.attr_int("upper", 1) != 0 ? t::triu(x, k) : t::tril(x, k));
}

OpOutputs reverse_sequence(const OpContext& ctx) {
  const Tensor& x = ctx.input(0);
  const int64_t time_axis = ctx.attr_int("time_axis", 0);
  const int64_t batch_axis = ctx.attr_int("batch_axis", 1);
  if (time_axis + batch_axis != 1 || time_axis < 0 || time_axis > 1 || x.rank() < 2) {
    return ctx.error("ReverseSequence wants time and batch on axes 0 and 1 of a matrix or more.");
  }
  const int64_t steps = x.dim(static_cast<int>(time_axis));
  // [steps, batch]: position t of a sequence reads len - 1 - t while inside it, else itself.
  const Tensor step = t::reshape(Tensor::arange(x.graph(), 0, steps, 1, DType::Int64), {steps, 1});
  const Tensor lengths = t::unsqueeze(t::cast(ctx.input(1), DType::Int64), {0});
  Tensor source = t::where(t::less(step, lengths), lengths - 1 - step, step);
  const Tensor by_time = time_axis == 0 ? x : t::transpose(x, 0, 1);
  Shape full(by_time.shape().size(), 1);
  full[0] = by_time.dim(0);
  full[1] = by_time.dim(1);
  source = t::broadcast_to(t::reshape(source, full), by_time.shape());
  const Tensor y = t::gather_elements(by_time, source, 0);
  return one(time_axis == 0 ? y : t::transpose(y, 0, 1));
}

// --- values known at import ---

OpOutputs non_zero(const OpContext& ctx) {
  IGNIS_TRY_ASSIGN(const HostTensor x, ctx.const_input(0));
  std::vector<int64_t> found;
  for (int64_t i = 0; i < x.count(); ++i) {
    if (element_as_double(x, i) != 0) found.push_back(i);
  }
  // One row an axis; a scalar counts as a vector of one element.
  const Shape shape = x.shape.empty() ? Shape{1} : x.shape;
  const int64_t n = static_cast<int64_t>(found.size());
  HostTensor y = HostTensor::zeros(DType::Int64, {static_cast<int64_t>(shape.size()), n});
  int64_t stride = 1;
  for (size_t axis = shape.size(); axis-- > 0;) {
    for (int64_t j = 0; j < n; ++j) {
      y.data<int64_t>()[static_cast<int64_t>(axis) * n + j] =
          found[static_cast<size_t>(j)] / stride % shape[axis];
    }
    stride *= shape[axis];
  }
  return one(ctx.constant(y));
}

OpOutputs compress(const OpContext& ctx) {
  IGNIS_TRY_ASSIGN(const HostTensor condition, ctx.const_input(1));
  Tensor x = ctx.input(0);
  int64_t axis = 0;
  if (ctx.has_attr("axis")) {
    axis = ctx.axis(ctx.attr_int("axis"), x.rank());
  } else {
    x = t::reshape(x, {-1});
  }
  const int64_t extent = std::min(condition.count(), x.dim(static_cast<int>(axis)));
  std::vector<int64_t> kept;
  for (int64_t i = 0; i < extent; ++i) {
    if (element_as_int(condition, i) != 0) kept.push_back(i);
  }
  if (kept.empty()) return one(t::slice(x, axis, 0, 0));
  return one(t::gather(x, ctx.ints(kept), axis));
}

// Rows of a tensor seen as [outer, n, inner] along one axis, compared element by element.
class Slices {
 public:
  Slices(const HostTensor& x, size_t axis) : x_(x) {
    for (size_t i = 0; i < axis; ++i) outer_ *= x.shape[i];
    for (size_t i = axis + 1; i < x.shape.size(); ++i) inner_ *= x.shape[i];
    n_ = x.shape[axis];
  }
  int64_t count() const { return n_; }
  int64_t at(int64_t slice, int64_t o, int64_t i) const { return (o * n_ + slice) * inner_ + i; }
  int64_t outer() const { return outer_; }
  int64_t inner() const { return inner_; }
  // <0, 0, >0, in the order of the slices' elements; NaN sorts last.
  int compare(int64_t a, int64_t b) const {
    for (int64_t o = 0; o < outer_; ++o) {
      for (int64_t i = 0; i < inner_; ++i) {
        const int c = compare_elements(at(a, o, i), at(b, o, i));
        if (c != 0) return c;
      }
    }
    return 0;
  }

 private:
  int compare_elements(int64_t a, int64_t b) const {
    if (!is_float(x_.dtype)) {
      const int64_t p = element_as_int(x_, a), q = element_as_int(x_, b);
      if (x_.dtype == DType::UInt64) {
        const uint64_t up = static_cast<uint64_t>(p), uq = static_cast<uint64_t>(q);
        return up < uq ? -1 : up > uq;
      }
      return p < q ? -1 : p > q;
    }
    const double p = element_as_double(x_, a), q = element_as_double(x_, b);
    if (std::isnan(p) || std::isnan(q)) return static_cast<int>(std::isnan(p)) - std::isnan(q);
    return p < q ? -1 : p > q;
  }

  const HostTensor& x_;
  int64_t outer_ = 1, inner_ = 1, n_ = 0;
};

OpOutputs unique(const OpContext& ctx) {
  IGNIS_TRY_ASSIGN(HostTensor x, ctx.const_input(0));
  size_t axis = 0;
  if (ctx.has_attr("axis")) {
    axis =
        static_cast<size_t>(ctx.axis(ctx.attr_int("axis"), static_cast<int64_t>(x.shape.size())));
  } else {
    x.shape = {x.count()};
  }
  const Slices slices(x, axis);
  std::vector<int64_t> order(static_cast<size_t>(slices.count()));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t a, int64_t b) { return slices.compare(a, b) < 0; });
  struct Group {
    int64_t first, count;
    std::vector<int64_t> members;
  };
  std::vector<Group> groups;
  for (const int64_t i : order) {
    if (groups.empty() || slices.compare(groups.back().first, i) != 0) groups.push_back({i, 0, {}});
    ++groups.back().count;
    groups.back().members.push_back(i);
  }
  if (ctx.attr_int("sorted", 1) == 0) {
    std::sort(groups.begin(), groups.end(),
              [](const Group& a, const Group& b) { return a.first < b.first; });
  }
  const int64_t n = static_cast<int64_t>(groups.size());
  Shape shape = x.shape;
  shape[axis] = n;
  HostTensor y = HostTensor::zeros(x.dtype, shape);
  HostTensor first = HostTensor::zeros(DType::Int64, {n});
  HostTensor inverse = HostTensor::zeros(DType::Int64, {slices.count()});
  HostTensor counts = HostTensor::zeros(DType::Int64, {n});
  const size_t width = static_cast<size_t>(size_bytes(x.dtype));
  for (int64_t g = 0; g < n; ++g) {
    const Group& group = groups[static_cast<size_t>(g)];
    first.data<int64_t>()[g] = group.first;
    counts.data<int64_t>()[g] = group.count;
    for (const int64_t member : group.members) inverse.data<int64_t>()[member] = g;
    for (int64_t o = 0; o < slices.outer(); ++o) {
      const int64_t to = (o * n + g) * slices.inner();
      const int64_t from = slices.at(group.first, o, 0);
      std::copy_n(x.bytes.begin() + from * static_cast<int64_t>(width),
                  slices.inner() * static_cast<int64_t>(width),
                  y.bytes.begin() + to * static_cast<int64_t>(width));
    }
  }
  return std::vector<Tensor>{ctx.constant(y), ctx.constant(first), ctx.constant(inverse),
                             ctx.constant(counts)};
}

// clang-format off
constexpr OpEntry kOps[] = {
    {"", "Gather",           1, 2, 2, gather},
    {"", "GatherElements",  11, 2, 2, gather_elements},
    {"", "GatherND",        11, 2, 2, gather_nd},
    {"", "Scatter",          9, 3, 3, scatter_elements},
    {"", "ScatterElements", 11, 3, 3, scatter_elements},
    {"", "ScatterND",       11, 3, 3, scatter_nd},
    {"", "OneHot",           9, 3, 3, one_hot},
    {"", "TopK",             1, 1, 2, top_k},
    {"", "Trilu",           14, 1, 2, trilu},
    {"", "ReverseSequence", 10, 2, 2, reverse_sequence},
    {"", "NonZero",          9, 1, 1, non_zero},
    {"", "Compress",         9, 2, 2, compress},
    {"", "Unique",          11, 1, 1, unique},
};
// clang-format on

}  // namespace

std::span<const OpEntry> index_ops() { return kOps; }

}  // namespace ignis::onnx
