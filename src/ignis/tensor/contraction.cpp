#include "ignis/tensor/contraction.h"

#include "ignis/tensor/build.h"
#include "ignis/tensor/elementwise.h"
#include "ignis/tensor/movement.h"
#include "ignis/tensor/reduce.h"

#include <algorithm>
#include <map>

namespace ignis::tensor {

using detail::reduce_axes;
using ir::Op;

namespace {

/// The dtype in which products of `dtype` are summed.
DType product_accumulator(DType dtype) {
  return is_weak(dtype) ? strong(dtype) : accumulator_dtype(dtype);
}

}  // namespace

namespace detail {

/// sum(a * b) over `axes`; a and b are broadcast against each other. Accumulates at least as wide as `result`.
Tensor sum_of_products(const Tensor& a, const Tensor& b, const std::vector<int64_t>& axes,
                       std::optional<DType> result) {
  const DType join = promote(a.dtype(), b.dtype());
  DType wide = product_accumulator(join);
  if (result) wide = promote(wide, *result);
  const Tensor product = mul(cast(a, wide), cast(b, wide));
  return cast(reduce_axes(Op::Add, product, axes, /*keep=*/false), result ? *result : strong(join));
}

}  // namespace detail

Tensor matmul(const Tensor& a, const Tensor& b, std::optional<DType> result) {
  const Tensor both[] = {a, b};
  detail::common_graph("matmul", both);
  const auto refuse = [&] {
    fail("matmul: the shapes of " + a.describe() + " and " + b.describe() + " do not fit.");
  };
  if (a.rank() == 0 || b.rank() == 0) refuse();
  const Tensor x = a.rank() == 1 ? reshape(a, {1, a.dim(0)}) : a;
  const Tensor y = b.rank() == 1 ? reshape(b, {b.dim(0), 1}) : b;
  if (x.dim(-1) != y.dim(-2)) refuse();
  // [.., M, 1, K] * [.., 1, N, K]; a batch that does not broadcast is found by mul, but named here.
  const Tensor left = unsqueeze(x, {-2}), right = unsqueeze(transpose(y), {-3});
  const size_t rank = std::max(x.shape().size(), y.shape().size());
  for (size_t i = 2; i < rank; ++i) {
    const int64_t m = i < x.shape().size() ? x.shape()[x.shape().size() - 1 - i] : 1;
    const int64_t n = i < y.shape().size() ? y.shape()[y.shape().size() - 1 - i] : 1;
    if (m != n && m != 1 && n != 1) refuse();
  }
  const Tensor product = detail::sum_of_products(left, right, {static_cast<int64_t>(rank)}, result);
  Shape shape = product.shape();
  if (a.rank() == 1) shape.erase(shape.end() - 2);
  if (b.rank() == 1) shape.pop_back();
  return reshape(product, shape);
}

Tensor gemm(const Tensor& a, const Tensor& b, const std::optional<Tensor>& c, double alpha,
            double beta, Trans a_form, Trans b_form) {
  if (a.rank() != 2 || b.rank() != 2)
    fail("gemm: " + a.describe() + " and " + b.describe() + " are not matrices.");
  const Tensor x = a_form == Trans::Yes ? transpose(a) : a,
               y = b_form == Trans::Yes ? transpose(b) : b;
  if (x.dim(1) != y.dim(0)) {
    fail("gemm: the inner extents of " + x.describe() + " and " + y.describe() +
         " differ (after transposition).");
  }
  Tensor product = matmul(x, y);
  const auto scaled = [](const Tensor& t, double factor) {
    if (factor == 1) return t;
    return is_float(t.dtype()) ? mul(t, factor)
                               : cast(mul(cast(t, DType::Float64), factor), t.dtype());
  };
  product = scaled(product, alpha);
  if (!c || beta == 0) return product;
  if (broadcast_shapes("gemm", product, *c) != product.shape()) {
    fail("gemm: " + c->describe() + " does not stretch to " + product.describe() + ".");
  }
  return add(product, scaled(*c, beta));
}

namespace {

/// One side of an einsum step: a tensor whose axes carry labels, each label once.
struct Labelled {
  Tensor value;
  std::string labels;
};

/// Takes the diagonal of two axes with one label: row stride n becomes n + 1.
Tensor diagonal(const Tensor& x, int first, int second) {
  Tensor y = move_axis(move_axis(x, second, -1), first, -2);
  const int64_t n = y.dim(-1);
  Shape flat(y.shape().begin(), y.shape().end() - 2);
  Shape square_shape = flat;
  flat.push_back(n * n);
  y = reshape(y, flat);
  std::vector<std::pair<int64_t, int64_t>> amounts(flat.size(), {0, 0});
  amounts.back() = {0, n};
  y = pad(y, amounts);
  square_shape.insert(square_shape.end(), {n, n + 1});
  return move_axis(select(reshape(y, square_shape), -1, 0), -1, first);
}

/// Axes put in the order of `order`, absent labels as extents of 1.
Tensor arrange(const Labelled& x, const std::string& order) {
  std::vector<int64_t> perm;
  Shape shape;
  for (const char label : order) {
    const size_t at = x.labels.find(label);
    if (at == std::string::npos) {
      shape.push_back(1);
      continue;
    }
    perm.push_back(static_cast<int64_t>(at));
    shape.push_back(x.value.shape()[at]);
  }
  return reshape(permute(x.value, perm), shape);
}

/// Labels of `order` that are not kept, as axes.
std::vector<int64_t> axes_to_sum(const std::string& order, const std::string& kept) {
  std::vector<int64_t> axes;
  for (size_t i = 0; i < order.size(); ++i) {
    if (kept.find(order[i]) == std::string::npos) axes.push_back(static_cast<int64_t>(i));
  }
  return axes;
}

struct Equation {
  std::vector<std::string> inputs;
  std::string output;
};

/// Splits and checks the text; "..." becomes the labels '0', '1', … counted from the last axis.
Equation parse_equation(std::string_view text, std::span<const Tensor> operands) {
  std::string compact;
  for (const char c : text) {
    if (c != ' ') compact += c;
  }
  const auto refuse = [&](const std::string& why) {
    fail("einsum '" + std::string(text) + "': " + why);
  };
  const size_t arrow = compact.find("->");
  std::string left = compact.substr(0, arrow);
  Equation eq;
  for (size_t at = 0; at <= left.size();) {
    const size_t comma = std::min(left.find(',', at), left.size());
    eq.inputs.push_back(left.substr(at, comma - at));
    at = comma + 1;
  }
  if (eq.inputs.size() != operands.size()) {
    refuse(std::to_string(eq.inputs.size()) + " terms for " + std::to_string(operands.size()) +
           " operands.");
  }
  size_t widest = 0;
  const auto expand_dots = [&](std::string& term, size_t rank, bool is_input) {
    const size_t dots = term.find("...");
    if (dots == std::string::npos) {
      if (is_input && term.size() != rank)
        refuse("term '" + term + "' does not have the rank of its operand.");
    } else {
      if (is_input && term.size() - 3 > rank)
        refuse("term '" + term + "' has more labels than its operand has axes.");
      const size_t count = is_input ? rank - (term.size() - 3) : widest;
      if (count > 10) refuse("'...' stands for too many axes.");
      std::string labels;
      for (size_t i = count; i > 0; --i) labels += static_cast<char>('0' + i - 1);
      term.replace(dots, 3, labels);
      if (is_input) widest = std::max(widest, count);
    }
    for (const char c : term) {
      const bool known = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                         (dots != std::string::npos && c <= '9' && c >= '0');
      if (!known) refuse(std::string("'") + c + "' is not a label.");
    }
  };
  for (size_t i = 0; i < operands.size(); ++i)
    expand_dots(eq.inputs[i], operands[i].shape().size(), true);
  if (arrow != std::string::npos) {
    eq.output = compact.substr(arrow + 2);
    expand_dots(eq.output, 0, false);
  } else {  // the stretched axes, then the labels that occur once, sorted
    for (size_t i = widest; i > 0; --i) eq.output += static_cast<char>('0' + i - 1);
    std::map<char, int> times;
    for (const std::string& term : eq.inputs) {
      for (const char c : term) ++times[c];
    }
    for (const auto& [label, count] : times) {
      if (count == 1 && (label < '0' || label > '9')) eq.output += label;
    }
  }
  for (size_t i = 0; i < eq.output.size(); ++i) {
    bool known = false;
    for (const std::string& term : eq.inputs) known |= term.find(eq.output[i]) != std::string::npos;
    if (!known || eq.output.find(eq.output[i], i + 1) != std::string::npos) {
      refuse(std::string("label '") + eq.output[i] + "' of the result is unknown or given twice.");
    }
  }
  return eq;
}

}  // namespace

Tensor einsum(std::string_view equation, std::span<const Tensor> operands) {
  detail::common_graph("einsum", operands);
  const Equation eq = parse_equation(equation, operands);
  std::map<char, int64_t> extents;
  std::vector<Labelled> terms;
  for (size_t i = 0; i < operands.size(); ++i) {
    Labelled term{operands[i], eq.inputs[i]};
    for (size_t at = 0; at < term.labels.size(); ++at) {
      int64_t& extent = extents.try_emplace(term.labels[at], 1).first->second;
      const int64_t here = term.value.shape()[at];
      if (extent != here && extent != 1 && here != 1) {
        fail("einsum '" + std::string(equation) + "': label '" + term.labels[at] + "' is " +
             std::to_string(extent) + " and, in " + operands[i].describe() + ", " +
             std::to_string(here) + ".");
      }
      if (extent == 1) extent = here;
      const size_t again = term.labels.find(term.labels[at], at + 1);
      if (again == std::string::npos) continue;
      if (term.value.shape()[again] != here) {
        fail("einsum '" + std::string(equation) + "': " + operands[i].describe() +
             " has no diagonal for '" + term.labels[at] + "'.");
      }
      term.value = diagonal(term.value, static_cast<int>(at), static_cast<int>(again));
      term.labels.erase(again, 1);
      --at;
    }
    terms.push_back(std::move(term));
  }
  const DType join = [&] {
    DType dtype = terms[0].value.dtype();
    for (const Labelled& term : terms) dtype = promote(dtype, term.value.dtype());
    return dtype;
  }();
  const DType wide = product_accumulator(join);
  // From left to right: a label is summed as soon as no later term and not the result needs it.
  Labelled total{cast(terms[0].value, wide), terms[0].labels};
  for (size_t i = 0; i < terms.size(); ++i) {
    std::string needed = eq.output;
    for (size_t later = i + 1; later < terms.size(); ++later) needed += terms[later].labels;
    std::string order = total.labels;
    Tensor value = total.value;
    if (i > 0) {
      for (const char label : terms[i].labels) {
        if (order.find(label) == std::string::npos) order += label;
      }
      value =
          mul(arrange(total, order), arrange({cast(terms[i].value, wide), terms[i].labels}, order));
    }
    const std::vector<int64_t> axes = axes_to_sum(order, needed);
    if (!axes.empty()) value = reduce_axes(Op::Add, value, axes, /*keep=*/false);
    total = {value, {}};
    for (const char label : order) {
      if (needed.find(label) != std::string::npos) total.labels += label;
    }
  }
  Shape shape;
  for (const char label : eq.output) shape.push_back(extents[label]);
  return cast(broadcast_to(arrange(total, eq.output), shape), strong(join));
}

}  // namespace ignis::tensor
