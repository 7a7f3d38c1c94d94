#include "ignis/interp/rows.h"

#include "ignis/base/float_formats.h"
#include "ignis/interp/elementwise.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace ignis::interp {
namespace {

using ir::Op;

constexpr int64_t kRow =
    1024;  // elements computed at a time: all scratch rows of a value stay in the L2 cache

// ---- A value as a list of row operations ---------------------------------------------------------------------------

struct Step {
  const Expr* expr = nullptr;
  std::array<int, 3> sources{-1, -1, -1};  // steps
  int leaf = -1;                           // views only: index of the leaf
};

/// The tree below one value in execution order, with one scratch row for each step.
class RowProgram {
 public:
  RowProgram(const Expr& value, bool round) : round_(round) {
    add(value);
    scratch_floats_.resize(steps_.size());
    scratch_ints_.resize(steps_.size());
    for (size_t i = 0; i < steps_.size(); ++i) {
      if (is_float(steps_[i].expr->dtype)) scratch_floats_[i].resize(kRow);
      else scratch_ints_[i].resize(kRow);
    }
    rows_.resize(steps_.size());
  }

  const std::vector<const Expr*>& leaves() const { return leaves_; }

  /// The value's `n` (<= kRow) elements that start at leaf_offsets and go on by leaf_strides.
  Operand run(const int64_t* leaf_offsets, const int64_t* leaf_strides, int64_t n) {
    for (size_t i = 0; i < steps_.size(); ++i) {
      const Step& step = steps_[i];
      if (step.leaf >= 0) {
        const auto leaf = static_cast<size_t>(step.leaf);
        rows_[i] = load(*step.expr, i, leaf_offsets[leaf], leaf_strides[leaf], n);
        continue;
      }
      std::array<Operand, 3> operands;
      for (size_t s = 0; s < 3 && step.sources[s] >= 0; ++s)
        operands[s] = rows_[static_cast<size_t>(step.sources[s])];
      const DType dtype = step.expr->dtype;
      compute_row(step.expr->op, operands.data(),
                  {dtype, scratch_floats_[i].data(), scratch_ints_[i].data()}, n, round_);
      rows_[i] = {dtype, scratch_floats_[i].data(), scratch_ints_[i].data()};
    }
    return rows_.back();
  }

 private:
  int add(const Expr& expr) {  // depth is bounded by evaluate.cpp
    Step step;
    step.expr = &expr;
    if (expr.is_view) {
      step.leaf = static_cast<int>(leaves_.size());
      leaves_.push_back(&expr);
    } else {
      for (size_t i = 0; i < expr.sources.size(); ++i) step.sources[i] = add(*expr.sources[i]);
    }
    steps_.push_back(step);
    return static_cast<int>(steps_.size()) - 1;
  }

  Operand load(const Expr& leaf, size_t step, int64_t offset, int64_t stride, int64_t n) {
    Operand row{leaf.dtype, nullptr, nullptr};
    const auto gather = [&](const auto* from, auto& scratch) {
      if (stride == 1) return from;
      for (int64_t j = 0; j < n; ++j) scratch[static_cast<size_t>(j)] = from[j * stride];
      return static_cast<decltype(from)>(scratch.data());
    };
    const Array& array = *leaf.view.array;
    if (is_float(leaf.dtype))
      row.floats = gather(array.floats.data() + offset, scratch_floats_[step]);
    else row.ints = gather(array.ints.data() + offset, scratch_ints_[step]);
    return row;
  }

  bool round_;
  std::vector<Step> steps_;
  std::vector<const Expr*> leaves_;
  std::vector<std::vector<double>> scratch_floats_;
  std::vector<std::vector<int64_t>> scratch_ints_;
  std::vector<Operand> rows_;
};

// ---- The loops around a row ----------------------------------------------------------------------------------------

struct Axis {
  int64_t extent = 1;
  bool is_reduced = false;
  std::vector<int64_t> strides;  // of each leaf, then of the output
};

/// The axes of the value without those of extent 1, neighbours merged where every stride allows it.
std::vector<Axis> make_axes(const Shape& shape, const std::vector<const Expr*>& leaves,
                            const std::vector<int64_t>& out_strides,
                            const std::vector<bool>& is_reduced) {
  std::vector<Axis> axes;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 1) continue;
    Axis axis{shape[i], is_reduced[i], {}};
    for (const Expr* leaf : leaves) axis.strides.push_back(leaf->view.strides[i]);
    axis.strides.push_back(out_strides[i]);
    if (!axes.empty() && axes.back().is_reduced == axis.is_reduced) {
      Axis& outer = axes.back();
      bool merges = true;
      for (size_t s = 0; s < axis.strides.size(); ++s)
        merges &= outer.strides[s] == axis.strides[s] * axis.extent;
      if (merges) {
        outer.extent *= axis.extent;
        outer.strides = axis.strides;
        continue;
      }
    }
    axes.push_back(std::move(axis));
  }
  if (axes.empty()) axes.push_back({1, false, std::vector<int64_t>(leaves.size() + 1, 0)});
  return axes;
}

/// A guess in nanoseconds for an element when `axis` is the row: strided reads and short rows are slow.
double row_cost(const Axis& axis) {
  double cost = 0.5 + 40.0 / static_cast<double>(axis.extent);
  for (const int64_t stride : axis.strides) {
    const int64_t step = std::abs(stride);
    cost += step <= 1 ? 0 : step < 64 ? 0.5 : step < 2048 ? 1.5 : 4;
  }
  return cost;
}

/// Counts through some axes and keeps the offsets of the leaves and of the output.
class Odometer {
 public:
  Odometer(std::vector<Axis> axes, size_t offset_count)
      : axes_(std::move(axes)), index_(axes_.size(), 0), offsets_(offset_count, 0) {}

  const std::vector<int64_t>& offsets() const { return offsets_; }
  /// False when all positions have been visited; then it stands at the first one again.
  bool next() {
    for (size_t a = axes_.size(); a-- > 0;) {
      const Axis& axis = axes_[a];
      for (size_t s = 0; s < offsets_.size(); ++s) offsets_[s] += axis.strides[s];
      if (++index_[a] < axis.extent) return true;
      for (size_t s = 0; s < offsets_.size(); ++s) offsets_[s] -= axis.strides[s] * axis.extent;
      index_[a] = 0;
    }
    return false;
  }

 private:
  std::vector<Axis> axes_;
  std::vector<int64_t> index_;
  std::vector<int64_t> offsets_;
};

// ---- Reducing rows -------------------------------------------------------------------------------------------------

double float_identity(Op op) {
  switch (op) {
    case Op::Add: return 0;
    case Op::Mul: return 1;
    case Op::Max: return -std::numeric_limits<double>::infinity();
    default: return std::numeric_limits<double>::infinity();
  }
}

int64_t int_identity(Op op, DType dtype) {
  switch (op) {
    case Op::Add: return 0;
    case Op::Mul: return 1;
    case Op::Max: return int_min(dtype);
    default: return int_max(dtype);
  }
}

/// Accumulators of one row of outputs (or a single one), combined with rows of values by the reduction's operator.
class Accumulator {
 public:
  Accumulator(Op op, DType dtype) : op_(op), dtype_(dtype) {
    if (is_float(dtype)) floats_.resize(kRow);
    else ints_.resize(kRow);
  }

  void reset(int64_t n) {
    if (is_float(dtype_)) std::fill_n(floats_.begin(), n, float_identity(op_));
    else std::fill_n(ints_.begin(), n, int_identity(op_, dtype_));
  }

  /// Combines accumulator j with element j.
  void add_row(const Operand& row, int64_t n) {
    if (is_float(dtype_)) {
      double* acc = floats_.data();
      const double* x = row.floats;
      if (op_ == Op::Add)
        for (int64_t j = 0; j < n; ++j) acc[j] += x[j];
      else
        for (int64_t j = 0; j < n; ++j) acc[j] = combine(acc[j], x[j]);
    } else {
      compute_row(op_, std::array<Operand, 2>{Operand{dtype_, nullptr, ints_.data()}, row}.data(),
                  {dtype_, nullptr, ints_.data()}, n, false);
    }
  }

  /// Combines accumulator 0 with all elements.
  void fold_row(const Operand& row, int64_t n) {
    if (!is_float(dtype_)) {
      for (int64_t j = 0; j < n; ++j) {
        const Operand element{dtype_, nullptr, row.ints + j};
        compute_row(op_,
                    std::array<Operand, 2>{Operand{dtype_, nullptr, ints_.data()}, element}.data(),
                    {dtype_, nullptr, ints_.data()}, 1, false);
      }
      return;
    }
    const double* x = row.floats;
    if (op_ != Op::Add) {
      for (int64_t j = 0; j < n; ++j) floats_[0] = combine(floats_[0], x[j]);
      return;
    }
    double sums[4] = {0, 0, 0, 0};  // independent chains of additions
    int64_t j = 0;
    for (; j + 4 <= n; j += 4)
      for (int64_t k = 0; k < 4; ++k) sums[k] += x[j + k];
    for (; j < n; ++j) sums[0] += x[j];
    floats_[0] += (sums[0] + sums[1]) + (sums[2] + sums[3]);
  }

  /// acc[j] += round(a[j * a_stride] * b[j * b_stride]) without a row in between: convolutions and matrix products.
  void add_products(const double* a, int64_t a_stride, const double* b, int64_t b_stride, int64_t n,
                    bool to_float) {
    double* acc = floats_.data();
    const auto loop = [&](auto product) {
      if (to_float)
        for (int64_t j = 0; j < n; ++j)
          acc[j] += static_cast<double>(static_cast<float>(product(j)));
      else
        for (int64_t j = 0; j < n; ++j) acc[j] += product(j);
    };
    if (a_stride == 1 && b_stride == 1) loop([=](int64_t j) { return a[j] * b[j]; });
    else if (a_stride == 1 && b_stride == 0) loop([=, w = *b](int64_t j) { return a[j] * w; });
    else if (a_stride == 0 && b_stride == 1) loop([=, w = *a](int64_t j) { return w * b[j]; });
    else loop([=](int64_t j) { return a[j * a_stride] * b[j * b_stride]; });
  }

  void store(Array& out, int64_t offset, int64_t stride, int64_t n, bool round) {
    if (is_float(dtype_)) {
      if (round) round_row(dtype_, floats_.data(), n);
      for (int64_t j = 0; j < n; ++j)
        out.floats[static_cast<size_t>(offset + j * stride)] = floats_[static_cast<size_t>(j)];
    } else {
      for (int64_t j = 0; j < n; ++j)
        out.ints[static_cast<size_t>(offset + j * stride)] = ints_[static_cast<size_t>(j)];
    }
  }

 private:
  double combine(double a, double b) const {  // NaN wins in Max and Min
    switch (op_) {
      case Op::Mul: return a * b;
      case Op::Max: return a >= b || std::isnan(a) ? a : b;
      default: return a <= b || std::isnan(a) ? a : b;
    }
  }

  Op op_;
  DType dtype_;
  std::vector<double> floats_;
  std::vector<int64_t> ints_;
};

void resize(Array& array, DType dtype, int64_t count) {
  if (is_float(dtype)) array.floats.resize(static_cast<size_t>(count));
  else array.ints.resize(static_cast<size_t>(count));
}

std::vector<int64_t> base_offsets(const std::vector<const Expr*>& leaves, int64_t out_offset) {
  std::vector<int64_t> offsets;
  for (const Expr* leaf : leaves) offsets.push_back(leaf->view.offset);
  offsets.push_back(out_offset);
  return offsets;
}

/// sum = base + a + b + row_start * strides, element by element.
void add_offsets(const std::vector<int64_t>& base, const std::vector<int64_t>& a,
                 const std::vector<int64_t>* b, const Axis& row, int64_t row_start,
                 std::vector<int64_t>& sum) {
  for (size_t s = 0; s < base.size(); ++s)
    sum[s] = base[s] + a[s] + (b ? (*b)[s] : 0) + row_start * row.strides[s];
}

/// A product of two float views that is summed.
bool is_plain_product(const Expr& value, Op op, bool round) {
  return op == Op::Add && !value.is_view && value.op == Op::Mul && value.sources[0]->is_view &&
         value.sources[1]->is_view && is_float(value.dtype) &&
         (!round || value.dtype == DType::Float32 || value.dtype == DType::Float64);
}

}  // namespace

void compute_into(const Expr& value, Array& out, int64_t offset,
                  const std::vector<int64_t>& strides, bool round) {
  if (element_count(value.shape) == 0) return;
  RowProgram program(value, round);
  std::vector<Axis> axes = make_axes(value.shape, program.leaves(), strides,
                                     std::vector<bool>(value.shape.size(), false));
  const Axis row = axes.back();
  axes.pop_back();
  const std::vector<int64_t> base = base_offsets(program.leaves(), offset);
  std::vector<int64_t> at(base.size());
  Odometer outer(std::move(axes), base.size());
  do {
    for (int64_t start = 0; start < row.extent; start += kRow) {
      const int64_t n = std::min(kRow, row.extent - start);
      add_offsets(base, outer.offsets(), nullptr, row, start, at);
      const Operand result = program.run(at.data(), row.strides.data(), n);
      const int64_t to = at.back(), step = row.strides.back();
      if (is_float(value.dtype)) {
        for (int64_t j = 0; j < n; ++j)
          out.floats[static_cast<size_t>(to + j * step)] = result.floats[j];
      } else {
        for (int64_t j = 0; j < n; ++j)
          out.ints[static_cast<size_t>(to + j * step)] = result.ints[j];
      }
    }
  } while (outer.next());
}

Array reduce(const Expr& value, Op op, const std::vector<bool>& is_reduced, bool round) {
  Shape kept;
  for (size_t i = 0; i < value.shape.size(); ++i) {
    if (!is_reduced[i]) kept.push_back(value.shape[i]);
  }
  std::vector<int64_t> out_strides = dense_strides(kept);
  for (size_t i = 0; i < value.shape.size(); ++i) {
    if (is_reduced[i]) out_strides.insert(out_strides.begin() + static_cast<std::ptrdiff_t>(i), 0);
  }
  Array out;
  resize(out, value.dtype, element_count(kept));
  if (element_count(value.shape) == 0) {
    std::fill(out.floats.begin(), out.floats.end(), float_identity(op));
    std::fill(out.ints.begin(), out.ints.end(), int_identity(op, value.dtype));
    return out;
  }

  RowProgram program(value, round);
  std::vector<Axis> axes = make_axes(value.shape, program.leaves(), out_strides, is_reduced);
  const auto best = std::min_element(axes.begin(), axes.end(), [](const Axis& a, const Axis& b) {
    return row_cost(a) < row_cost(b);
  });
  const Axis row = *best;
  axes.erase(best);
  const auto split =
      std::stable_partition(axes.begin(), axes.end(), [](const Axis& a) { return !a.is_reduced; });
  const std::vector<int64_t> base = base_offsets(program.leaves(), 0);
  std::vector<int64_t> at(base.size());
  Odometer outputs({axes.begin(), split}, base.size());
  Odometer reductions({split, axes.end()}, base.size());
  Accumulator accumulator(op, value.dtype);
  const bool plain_product = is_plain_product(value, op, round);
  const bool to_float = round && value.dtype == DType::Float32;

  const auto accumulate = [&](int64_t start, int64_t n) {
    add_offsets(base, outputs.offsets(), &reductions.offsets(), row, start, at);
    if (plain_product && !row.is_reduced) {
      const Expr &a = *program.leaves()[0], &b = *program.leaves()[1];
      accumulator.add_products(a.view.array->floats.data() + at[0], row.strides[0],
                               b.view.array->floats.data() + at[1], row.strides[1], n, to_float);
    } else if (row.is_reduced) {
      accumulator.fold_row(program.run(at.data(), row.strides.data(), n), n);
    } else {
      accumulator.add_row(program.run(at.data(), row.strides.data(), n), n);
    }
  };
  do {
    if (row.is_reduced) {
      accumulator.reset(1);
      do {
        for (int64_t start = 0; start < row.extent; start += kRow)
          accumulate(start, std::min(kRow, row.extent - start));
      } while (reductions.next());
      accumulator.store(out, outputs.offsets().back(), 0, 1, round);
      continue;
    }
    for (int64_t start = 0; start < row.extent; start += kRow) {
      const int64_t n = std::min(kRow, row.extent - start);
      accumulator.reset(n);
      do accumulate(start, n);
      while (reductions.next());
      accumulator.store(out, outputs.offsets().back() + start * row.strides.back(),
                        row.strides.back(), n, round);
    }
  } while (outputs.next());
  return out;
}

}  // namespace ignis::interp
