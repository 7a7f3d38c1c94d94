// Reductions, arg-extremes and running sums.
#include "ignis/onnx/ops_common.h"

namespace ignis::onnx {
namespace {

namespace t = tensor;

// The axes of a Reduce operator: an attribute at first, an input since opset 18 (ReduceSum: 13). Nothing stated means
// all axes, or none at all with noop_with_empty_axes.
struct ReduceAxes {
  std::vector<int64_t> axes;
  bool keep = true;
  bool is_noop = false;
};

Result<ReduceAxes> read_axes(const OpContext& ctx) {
  ReduceAxes r;
  r.keep = ctx.attr_int("keepdims", 1) != 0;
  if (ctx.has_input(1)) {
    IGNIS_TRY_ASSIGN(r.axes, ctx.const_ints(1));
  } else {
    r.axes = ctx.attr_ints("axes");
  }
  r.is_noop = r.axes.empty() && ctx.attr_int("noop_with_empty_axes", 0) != 0;
  const int64_t rank = ctx.input(0).rank();
  if (rank == 0) r.axes.clear();
  for (int64_t& a : r.axes) a = ctx.axis(a, rank);
  return r;
}

// The standard's element type is the input's; the front end widens small integers.
template <typename Reduce>
OpOutputs reduce(const OpContext& ctx, Reduce apply) {
  IGNIS_TRY_ASSIGN(const ReduceAxes r, read_axes(ctx));
  const Tensor& x = ctx.input(0);
  if (r.is_noop || x.rank() == 0) {
    // A scalar has no axes, but the function itself (a square, a logarithm) still applies to it.
    if (r.is_noop) return one(x);
    return one(t::reshape(t::cast(apply(t::reshape(x, {1}), {0}, true), x.dtype()), {}));
  }
  return one(t::cast(apply(x, r.axes, r.keep), x.dtype()));
}

OpOutputs reduce_sum(const OpContext& ctx) { return reduce(ctx, t::sum); }
OpOutputs reduce_prod(const OpContext& ctx) { return reduce(ctx, t::prod); }
OpOutputs reduce_max(const OpContext& ctx) {
  return reduce(ctx, [](const Tensor& x, const t::Axes& axes, bool keep) {
    return x.dtype() == DType::Bool ? t::any(x, axes, keep) : t::max(x, axes, keep);
  });
}
OpOutputs reduce_min(const OpContext& ctx) {
  return reduce(ctx, [](const Tensor& x, const t::Axes& axes, bool keep) {
    return x.dtype() == DType::Bool ? t::all(x, axes, keep) : t::min(x, axes, keep);
  });
}
OpOutputs reduce_mean(const OpContext& ctx) {
  return reduce(ctx, [](const Tensor& x, const t::Axes& axes, bool keep) {
    if (is_float(x.dtype())) return t::mean(x, axes, keep);
    const Tensor total = t::sum(x, axes, keep);
    const int64_t divisor = total.count() == 0 ? 1 : x.count() / total.count();
    return t::cdiv(total, divisor);
  });
}
OpOutputs reduce_l1(const OpContext& ctx) { return reduce(ctx, t::norm_l1); }
OpOutputs reduce_l2(const OpContext& ctx) { return reduce(ctx, t::norm_l2); }
OpOutputs reduce_sum_square(const OpContext& ctx) { return reduce(ctx, t::sum_square); }
OpOutputs reduce_log_sum(const OpContext& ctx) {
  return reduce(ctx, [](const Tensor& x, const t::Axes& axes, bool keep) {
    return t::log(t::sum(x, axes, keep));
  });
}
OpOutputs reduce_log_sum_exp(const OpContext& ctx) {
  return reduce(ctx, [](const Tensor& x, const t::Axes& axes, bool keep) {
    return t::logsumexp(is_float(x.dtype()) ? x : t::cast(x, DType::Float32), axes, keep);
  });
}

template <typename Arg>
OpOutputs arg_extreme(const OpContext& ctx, Arg apply) {
  const Tensor& x = ctx.input(0);
  const int64_t axis = ctx.axis(ctx.attr_int("axis", 0), x.rank());
  const bool keep = ctx.attr_int("keepdims", 1) != 0;
  const t::Pick pick = ctx.attr_int("select_last_index", 0) != 0 ? t::Pick::Last : t::Pick::First;
  return one(t::cast(apply(x, axis, keep, pick), DType::Int64));
}
OpOutputs arg_max(const OpContext& ctx) { return arg_extreme(ctx, t::argmax); }
OpOutputs arg_min(const OpContext& ctx) { return arg_extreme(ctx, t::argmin); }

template <typename Scan>
OpOutputs scan(const OpContext& ctx, Scan apply) {
  const Tensor& x = ctx.input(0);
  IGNIS_TRY_ASSIGN(const int64_t stated_axis, ctx.const_int(1));
  const int64_t axis = ctx.axis(stated_axis, x.rank());
  const auto start =
      ctx.attr_int("exclusive", 0) != 0 ? t::ScanStart::Exclusive : t::ScanStart::Inclusive;
  const auto order =
      ctx.attr_int("reverse", 0) != 0 ? t::ScanOrder::Reverse : t::ScanOrder::Forward;
  return one(t::cast(apply(x, axis, start, order), x.dtype()));
}
OpOutputs cum_sum(const OpContext& ctx) { return scan(ctx, t::cumsum); }
OpOutputs cum_prod(const OpContext& ctx) { return scan(ctx, t::cumprod); }

// clang-format off
constexpr OpEntry kOps[] = {
    {"", "ReduceSum",       1, 1, 2, reduce_sum},
    {"", "ReduceProd",      1, 1, 2, reduce_prod},
    {"", "ReduceMax",       1, 1, 2, reduce_max},
    {"", "ReduceMin",       1, 1, 2, reduce_min},
    {"", "ReduceMean",      1, 1, 2, reduce_mean},
    {"", "ReduceL1",        1, 1, 2, reduce_l1},
    {"", "ReduceL2",        1, 1, 2, reduce_l2},
    {"", "ReduceSumSquare", 1, 1, 2, reduce_sum_square},
    {"", "ReduceLogSum",    1, 1, 2, reduce_log_sum},
    {"", "ReduceLogSumExp", 1, 1, 2, reduce_log_sum_exp},
    {"", "ArgMax",          1, 1, 1, arg_max},
    {"", "ArgMin",          1, 1, 1, arg_min},
    {"", "CumSum",         11, 2, 2, cum_sum},
    {"", "CumProd",        23, 2, 2, cum_prod},
};
// clang-format on

}  // namespace

std::span<const OpEntry> reduce_ops() { return kOps; }

}  // namespace ignis::onnx
