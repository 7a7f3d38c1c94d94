#include "tests/fuzz/random_graph.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <optional>
#include <random>

namespace ignis::fuzz {
namespace {

using tensor::Tensor;

constexpr int64_t kMaxElements = 20000;
constexpr double kMaxBound =
    64;  // larger values are scaled down: no dtype but fp8 comes near its range

class Generator {
 public:
  Generator(uint64_t seed, int max_steps) : rng_(seed), max_steps_(max_steps) {
    out_.graph = std::make_shared<ir::Graph>();
  }

  RandomGraph make() {
    const int64_t inputs = between(1, 3), steps = between(2, 9);
    for (int64_t i = 0; i < inputs; ++i) add_input(random_dtype(), random_shape());
    for (int64_t i = 0; i < steps && static_cast<int>(out_.steps.size()) < max_steps_; ++i) step();
    for (size_t i = 0; i < values_.size(); ++i) {
      const bool is_input = i < static_cast<size_t>(inputs);
      if (!is_input && (!is_used_[i] || chance(8))) out_.outputs.push_back(values_[i]);
    }
    if (out_.outputs.empty()) out_.outputs.push_back(values_.front());
    return std::move(out_);
  }

 private:
  // ---- choices -----------------------------------------------------------------------------------------------------

  int64_t between(int64_t low, int64_t high) {  // inclusive
    return low + static_cast<int64_t>(rng_() % static_cast<uint64_t>(high - low + 1));
  }
  bool chance(int64_t one_in) { return between(1, one_in) == 1; }
  template <typename T, size_t N>
  T pick(const T (&choices)[N]) {
    return choices[static_cast<size_t>(between(0, static_cast<int64_t>(N) - 1))];
  }

  DType random_dtype() {
    constexpr DType kRare[] = {DType::Fp8E4M3, DType::Fp8E5M2, DType::Fp8E4M3Fnuz,
                               DType::Fp8E5M2Fnuz};
    constexpr DType kSome[] = {DType::Float16, DType::BFloat16, DType::Float64, DType::Int8,
                               DType::UInt8,   DType::Int16,    DType::UInt16,  DType::Int32,
                               DType::UInt32,  DType::Int64,    DType::UInt64,  DType::Bool};
    if (chance(50)) return pick(kRare);
    return chance(2) ? DType::Float32 : pick(kSome);
  }
  int64_t random_extent() {
    if (chance(80)) return 0;
    if (chance(8))
      return pick({int64_t{16}, int64_t{17}, int64_t{31}, int64_t{32}, int64_t{33}, int64_t{64},
                   int64_t{65}});
    return between(1, 9);
  }
  Shape random_shape() {
    Shape shape;
    int64_t count = 1;
    for (int64_t rank = between(0, 4); rank > 0; --rank) {
      const int64_t extent = random_extent();
      if (count * extent > kMaxElements / 4) continue;
      count *= extent;
      shape.push_back(extent);
    }
    return shape;
  }

  // ---- inputs and results ------------------------------------------------------------------------------------------

  HostTensor random_values(DType dtype, const Shape& shape, bool integral) {
    HostTensor t = HostTensor::zeros(dtype, shape);
    const double bound = is_fp8(dtype) ? 2 : 4;
    for (int64_t i = 0; i < t.count(); ++i) {
      if (!is_float(dtype))
        store_element_int(t, i, chance(6) ? static_cast<int64_t>(rng_()) : between(-20, 20));
      else if (integral)
        store_element(t, i,
                      static_cast<double>(
                          between(-static_cast<int64_t>(bound), static_cast<int64_t>(bound))));
      else store_element(t, i, bound * (static_cast<double>(rng_() >> 11) * 0x1.0p-52 - 1));
    }
    return t;
  }

  /// A new input, or (for `constant`) a constant with the values.
  size_t add_input(DType dtype, const Shape& shape, bool constant = false) {
    const bool integral = chance(2);
    HostTensor values = random_values(dtype, shape, integral);
    Tensor t;
    if (constant) {
      t = Tensor::constant(out_.graph, std::move(values));
    } else {
      const auto slot = static_cast<int64_t>(out_.inputs.size());
      t = Tensor::input(out_.graph, slot, "x" + std::to_string(slot), dtype, shape);
      out_.inputs.push_back(t);
      out_.input_values.push_back(std::move(values));
    }
    return add_value({t, is_fp8(dtype) ? 2.0 : 4.0, 0, integral});
  }

  size_t add_value(Value value) {
    values_.push_back(std::move(value));
    is_used_.push_back(false);
    return values_.size() - 1;
  }

  /// An earlier value that fits; values made last are chosen more often, so that graphs get deep.
  std::optional<size_t> find(const std::function<bool(const Value&)>& fits) {
    std::vector<size_t> found;
    for (size_t i = 0; i < values_.size(); ++i)
      if (fits(values_[i])) found.push_back(i);
    if (found.empty()) return std::nullopt;
    return chance(2)
               ? found.back()
               : found[static_cast<size_t>(between(0, static_cast<int64_t>(found.size()) - 1))];
  }
  size_t any() {
    return *find([](const Value&) { return true; });
  }

  /// Records a result made from `sources`. Floats that became large are scaled to at most 1.
  void result(const std::string& what, std::initializer_list<size_t> sources, Value value) {
    if (value.tensor.count() > kMaxElements) return;
    const DType dtype = value.tensor.dtype();
    if (is_float(dtype)) {
      const double limit = is_fp8(dtype) ? 8 : kMaxBound;
      if (!(value.error <= 0.05 * (1 + value.bound)) || !(value.bound < 1e30))
        return;  // says nothing any more
      if (value.bound > limit) {
        if (dtype == DType::Float16 && value.bound > 60000) return;  // it may have overflowed
        if (is_fp8(dtype)) return;
        const double scale = std::exp2(-std::ceil(std::log2(value.bound)));
        value.tensor = value.tensor * scale;
        value.bound *= scale;
        value.error =
            (value.error > 0 ? value.error : 0) * scale +
            (value.error > 0 || dtype != DType::Float32 ? epsilon(dtype) * value.bound : 0);
        value.is_integral = false;
      }
    }
    for (const size_t source : sources) is_used_[source] = true;
    std::string line = "%" + std::to_string(values_.size()) + " = " + what;
    for (const size_t source : sources) line += " %" + std::to_string(source);
    out_.steps.push_back(line + " : " + value.tensor.describe());
    add_value(std::move(value));
  }

  // ---- error rules -------------------------------------------------------------------------------------------------

  /// Whole numbers up to this are exact in the dtype.
  static double exact_limit(DType dtype) { return 2 / epsilon(dtype); }

  /// Of an operation whose exact result on whole numbers is a whole number.
  static Value whole(Tensor t, double bound, double error, bool integral) {
    const bool exact = integral && error == 0 && bound <= exact_limit(t.dtype());
    const double rounding = exact ? 0 : epsilon(t.dtype()) * bound;
    return {std::move(t), bound, error + rounding, exact};
  }
  /// Of a function with the given Lipschitz constant, possibly composed of several operations: 16 roundings of the
  /// argument, the result and numbers near 1.
  static Value smooth(Tensor t, const Value& x, double bound, double slope) {
    const double eps = epsilon(t.dtype());
    return {std::move(t), bound, slope * x.error + 16 * eps * (1 + slope) * (x.bound + bound + 1),
            false};
  }
  /// Of a sum of `n` products or terms whose magnitudes add up to at most `bound`: any order of a float32 accumulator,
  /// then one rounding. Eight more roundings leave room for transformed convolutions.
  static Value summed(Tensor t, double bound, double error, double n, bool integral) {
    const DType dtype = t.dtype();
    const double accumulator = epsilon(dtype == DType::Float64 ? DType::Float64 : DType::Float32);
    const bool exact = integral && error == 0 && bound <= exact_limit(dtype);
    const double rounding = exact ? 0 : (n + 8) * accumulator * bound + epsilon(dtype) * bound;
    return {std::move(t), bound, error + rounding, exact};
  }

  // ---- operations --------------------------------------------------------------------------------------------------

  void step() {
    try {
      switch (between(0, 13)) {
        case 0:
        case 1: unary(); break;
        case 2:
        case 3: binary(); break;
        case 4: compare_or_select(); break;
        case 5: conversion(); break;
        case 6:
        case 7: movement(); break;
        case 8: join(); break;
        case 9: reduction(); break;
        case 10: normalisation(); break;
        case 11: matrix_product(); break;
        case 12: convolution(); break;
        default: indexing();
      }
    } catch (const tensor::GraphError&) {
      // Shapes or dtypes that do not go together: no step.
    }
  }

  void unary() {
    const size_t i = any();
    const Value& x = values_[i];
    const Tensor& t = x.tensor;
    const double b = x.bound;
    if (t.dtype() == DType::Bool) return result("not", {i}, {tensor::logical_not(t), 0, 0, false});
    if (!is_float(t.dtype())) {
      switch (between(0, 7)) {
        case 0: return result("neg", {i}, {tensor::neg(t)});
        case 1: return result("abs", {i}, {tensor::abs(t)});
        case 2: return result("bitwise_not", {i}, {tensor::bitwise_not(t)});
        case 3: return result("relu", {i}, {tensor::relu(t)});
        case 4: return result("square", {i}, {tensor::square(t)});
        case 5: return result("shift_left 3", {i}, {tensor::shift_left(t, 3)});
        case 6: return result("shift_right 2", {i}, {tensor::shift_right(t, 2)});
        default: return result("sign", {i}, {tensor::sign(t)});
      }
    }
    const bool exact = x.error == 0;
    switch (between(0, 21)) {
      case 0: return result("neg", {i}, {tensor::neg(t), b, x.error, x.is_integral});
      case 1: return result("abs", {i}, {tensor::abs(t), b, x.error, x.is_integral});
      case 2: return result("relu", {i}, {tensor::relu(t), b, x.error, x.is_integral});
      case 3: return result("tanh", {i}, smooth(tensor::tanh(t), x, 1, 1));
      case 4: return result("sigmoid", {i}, smooth(tensor::sigmoid(t), x, 1, 0.25));
      case 5:
        return b > 4 ? void()
                     : result("exp", {i}, smooth(tensor::exp(t), x, std::exp(b), std::exp(b)));
      case 6: return result("sin", {i}, smooth(tensor::sin(t), x, 1, 1));
      case 7: return result("cos", {i}, smooth(tensor::cos(t), x, 1, 1));
      case 8: return result("erf", {i}, smooth(tensor::erf(t), x, 1, 1.2));
      case 9:
        return result("sqrt(|x|+1)", {i},
                      smooth(tensor::sqrt(tensor::abs(t) + 1), x, std::sqrt(b + 1), 0.5));
      case 10:
        return result("1/(|x|+1)", {i}, smooth(tensor::reciprocal(tensor::abs(t) + 1), x, 1, 1));
      case 11:
        return result(
            "square", {i},
            whole(tensor::square(t), b * b, 2 * b * x.error + x.error * x.error, x.is_integral));
      case 12: return result("leaky_relu", {i}, smooth(tensor::leaky_relu(t, 0.125), x, b, 1));
      case 13: return result("silu", {i}, smooth(tensor::silu(t), x, b, 1.1));
      case 14: return result("gelu", {i}, smooth(tensor::gelu(t), x, b, 1.2));
      case 15: return result("softplus", {i}, smooth(tensor::softplus(t), x, b + 1, 1));
      case 16:
        return result("log(|x|+1)", {i},
                      smooth(tensor::log(tensor::abs(t) + 1), x, std::log(b + 1), 1));
      case 17: return result("atan", {i}, smooth(tensor::atan(t), x, 1.6, 1));
      case 18:
        return result("clamp -1 2", {i},
                      {tensor::clamp(t, -1, 2), std::min(b, 2.0), x.error, x.is_integral});
      case 19:
        return exact ? result("floor", {i},
                              {tensor::floor(t), b + 1, 0, b + 1 <= exact_limit(t.dtype())})
                     : void();
      case 20:
        return exact ? result("round", {i},
                              {tensor::round(t), b + 1, 0, b + 1 <= exact_limit(t.dtype())})
                     : void();
      default: return exact ? result("sign", {i}, {tensor::sign(t), 1, 0, true}) : void();
    }
  }

  /// A value that broadcasts with x and has the same kind.
  std::optional<size_t> partner(const Value& x) {
    const auto fits = [&](const Value& y) {
      const DType a = x.tensor.dtype(), b = y.tensor.dtype();
      // int64 with uint64 and the like meet at a weak float, which has no width of its own.
      if (is_float(a) != is_float(b) || (a == DType::Bool) != (b == DType::Bool) ||
          is_weak(promote(a, b)))
        return false;
      const Shape &s = x.tensor.shape(), &t = y.tensor.shape();
      for (size_t i = 1; i <= std::min(s.size(), t.size()); ++i) {
        const int64_t m = s[s.size() - i], n = t[t.size() - i];
        if (m != n && m != 1 && n != 1) return false;
      }
      return true;
    };
    if (chance(4)) {  // a constant or input of a sub-shape
      Shape shape = x.tensor.shape();
      for (int64_t& extent : shape)
        if (chance(2)) extent = 1;
      if (!shape.empty() && chance(2)) shape.erase(shape.begin());
      return add_input(x.tensor.dtype(), shape, /*constant=*/true);
    }
    return find(fits);
  }

  void binary() {
    const size_t i = any();
    const auto other = partner(values_[i]);
    if (!other) return;
    const size_t j = *other;
    const Value x = values_[i], y = values_[j];  // copies: partner() may have moved them
    const Tensor &a = x.tensor, &b = y.tensor;
    if (a.dtype() == DType::Bool) {
      switch (between(0, 2)) {
        case 0: return result("and", {i, j}, {tensor::logical_and(a, b)});
        case 1: return result("or", {i, j}, {tensor::logical_or(a, b)});
        default: return result("xor", {i, j}, {tensor::logical_xor(a, b)});
      }
    }
    if (!is_float(a.dtype())) {
      switch (between(0, 11)) {
        case 0: return result("add", {i, j}, {a + b});
        case 1: return result("sub", {i, j}, {a - b});
        case 2: return result("mul", {i, j}, {a * b});
        case 3: return result("max", {i, j}, {tensor::maximum(a, b)});
        case 4: return result("min", {i, j}, {tensor::minimum(a, b)});
        case 5: return result("cdiv", {i, j}, {tensor::cdiv(a, b)});
        case 6: return result("cmod", {i, j}, {tensor::cmod(a, b)});
        case 7: return result("floordiv", {i, j}, {tensor::floordiv(a, b)});
        case 8: return result("floormod", {i, j}, {tensor::floormod(a, b)});
        case 9: return result("and", {i, j}, {a & b});
        case 10: return result("xor", {i, j}, {a ^ b});
        default: return result("shift_left", {i, j}, {tensor::shift_left(a, b)});
      }
    }
    const bool integral = x.is_integral && y.is_integral;
    const double sum = x.bound + y.bound, error = x.error + y.error;
    const double product_error = x.error * y.bound + y.error * x.bound + x.error * y.error;
    switch (between(0, 6)) {
      case 0: return result("add", {i, j}, whole(a + b, sum, error, integral));
      case 1: return result("sub", {i, j}, whole(a - b, sum, error, integral));
      case 2:
      case 3:
        return result("mul", {i, j}, whole(a * b, x.bound * y.bound, product_error, integral));
      case 4:
        return result("max", {i, j},
                      {tensor::maximum(a, b), std::max(x.bound, y.bound),
                       std::max(x.error, y.error), integral});
      case 5:
        return result("min", {i, j},
                      {tensor::minimum(a, b), std::max(x.bound, y.bound),
                       std::max(x.error, y.error), integral});
      default: {  // |d(a / (|b| + 1))| <= da + |a| db
        Tensor t = a / (tensor::abs(b) + 1);
        const double eps = std::max(epsilon(a.dtype()), epsilon(b.dtype()));  // |b| + 1 has b's
        return result("a/(|b|+1)", {i, j},
                      {t, x.bound, x.error + x.bound * y.error + 16 * eps * (sum + 1), false});
      }
    }
  }

  void compare_or_select() {
    if (chance(2)) {
      const auto c = find([](const Value& v) { return v.tensor.dtype() == DType::Bool; });
      if (c) {
        const size_t i = any();
        const auto other = partner(values_[i]);
        if (!other) return;
        const Value x = values_[i], y = values_[*other];
        return result(
            "where", {*c, i, *other},
            {tensor::where(values_[*c].tensor, x.tensor, y.tensor), std::max(x.bound, y.bound),
             std::max(x.error, y.error), x.is_integral && y.is_integral});
      }
    }
    const auto i =
        find([](const Value& v) { return v.error == 0 && v.tensor.dtype() != DType::Bool; });
    if (!i) return;
    const auto j = partner(values_[*i]);
    if (!j || values_[*j].error != 0) return;
    const Tensor a = values_[*i].tensor, b = values_[*j].tensor;
    switch (between(0, 3)) {
      case 0: return result("less", {*i, *j}, {tensor::less(a, b)});
      case 1: return result("greater_equal", {*i, *j}, {tensor::greater_equal(a, b)});
      case 2: return result("equal", {*i, *j}, {tensor::equal(a, b)});
      default: return result("less 1", {*i}, {tensor::less(a, 1)});
    }
  }

  void conversion() {
    const size_t i = any();
    const Value x = values_[i];
    const DType from = x.tensor.dtype();
    DType to = random_dtype();
    Tensor t = x.tensor;
    if (is_float(from) && is_float(to)) {
      const bool exact = x.is_integral && x.error == 0 && x.bound <= exact_limit(to);
      const bool widens = epsilon(to) <= epsilon(from) && !is_fp8(from);
      if (is_fp8(to) && x.bound > 8) return;
      return result("cast", {i},
                    {tensor::cast(t, to), x.bound * (1 + epsilon(to)),
                     x.error + (exact || widens ? 0 : epsilon(to) * x.bound), exact});
    }
    if (is_float(from)) {
      if (x.error != 0) return;
      return result("cast", {i}, {tensor::cast(t, to)});
    }
    if (is_float(to)) {  // a range that every float holds exactly
      if (from != DType::Bool) t = tensor::floormod(t, 7);
      return result("cast(x%7)", {i},
                    {tensor::cast(t, to), from == DType::Bool ? 1.0 : 6.0, 0, true});
    }
    return result("cast", {i}, {tensor::cast(t, to)});
  }

  void movement() {
    const size_t i = any();
    const Value x = values_[i];
    const Tensor& t = x.tensor;
    const auto moved = [&](const std::string& what, const Tensor& to) {
      result(what, {i}, {to, x.bound, x.error, x.is_integral});
    };
    const int64_t rank = t.rank();
    const int64_t axis = rank > 0 ? between(0, rank - 1) : 0;
    switch (between(0, 11)) {
      case 0: {
        Shape shape;
        int64_t left = t.count();
        while (left > 1 && shape.size() < 4) {
          int64_t factor = between(1, 8);
          while (left % factor != 0) --factor;
          shape.push_back(factor);
          left /= factor;
        }
        shape.push_back(left);
        if (t.count() == 0) shape = {0, 3};
        return moved("reshape", tensor::reshape(t, shape));
      }
      case 1:
      case 2: {
        std::vector<int64_t> perm;
        for (int64_t a = 0; a < rank; ++a) perm.insert(perm.begin() + between(0, a), a);
        return moved("permute", tensor::permute(t, perm));
      }
      case 3: return rank == 0 ? void() : moved("flip", tensor::flip(t, {axis}));
      case 4: {
        std::vector<std::pair<int64_t, int64_t>> amounts;
        for (int64_t a = 0; a < rank; ++a) amounts.emplace_back(between(0, 2), between(0, 2));
        const int64_t value = is_float(t.dtype()) && chance(2) ? 1 : 0;
        return result(
            "pad", {i},
            {tensor::pad(t, amounts, value), std::max(x.bound, 1.0), x.error, x.is_integral});
      }
      case 5: {
        if (rank == 0 || t.dim(static_cast<int>(axis)) == 0) return;
        const int64_t extent = t.dim(static_cast<int>(axis)), begin = between(0, extent - 1);
        return moved("slice", tensor::slice(t, axis, begin, between(begin, extent), between(1, 3)));
      }
      case 6: {
        Shape shape = t.shape();
        for (int64_t& extent : shape)
          if (extent == 1) extent = between(1, 6);
        if (chance(2)) shape.insert(shape.begin(), between(1, 4));
        return moved("broadcast_to", tensor::broadcast_to(t, shape));
      }
      case 7: {
        if (rank == 0 || t.dim(static_cast<int>(axis)) < 3) return;
        const int64_t kernel = between(1, 3),
                      dilation =
                          kernel == 1
                              ? 1
                              : between(1, (t.dim(static_cast<int>(axis)) - 1) / (kernel - 1));
        return moved("window", tensor::window(t, axis, kernel, between(1, 3), dilation));
      }
      case 8: return rank == 0 ? void() : moved("roll", tensor::roll(t, axis, between(-3, 3)));
      case 9:
        return rank == 0 ? void()
                         : moved("repeat", tensor::repeat_interleave(t, axis, between(1, 3)));
      case 10: return rank < 2 ? void() : moved("tril", tensor::tril(t, between(-1, 1)));
      default: return rank == 0 ? void() : moved("unsqueeze", tensor::unsqueeze(t, {axis}));
    }
  }

  void join() {
    const size_t i = any();
    const Value x = values_[i];
    const auto same = find([&](const Value& y) {
      return y.tensor.dtype() == x.tensor.dtype() && y.tensor.rank() == x.tensor.rank() &&
             y.tensor.rank() > 0;
    });
    if (!same) return;
    const Value y = values_[*same];
    const double bound = std::max(x.bound, y.bound), error = std::max(x.error, y.error);
    const int64_t axis = between(0, x.tensor.rank() - 1);
    if (x.tensor.shape() == y.tensor.shape() && chance(2)) {
      return result("stack", {i, *same},
                    {tensor::stack({x.tensor, y.tensor}, axis), bound, error,
                     x.is_integral && y.is_integral});
    }
    result(
        "concat", {i, *same},
        {tensor::concat({x.tensor, y.tensor}, axis), bound, error, x.is_integral && y.is_integral});
  }

  std::vector<int64_t> random_axes(const Tensor& t) {
    std::vector<int64_t> axes;
    for (int64_t a = 0; a < t.rank(); ++a)
      if (chance(2)) axes.push_back(a);
    if (axes.empty() && t.rank() > 0) axes.push_back(between(0, t.rank() - 1));
    return axes;
  }
  static double extent_of(const Tensor& t, const std::vector<int64_t>& axes) {
    double n = 1;
    for (const int64_t a : axes) n *= static_cast<double>(t.dim(static_cast<int>(a)));
    return n;
  }

  void reduction() {
    const size_t i = any();
    const Value x = values_[i];
    const Tensor& t = x.tensor;
    if (t.rank() == 0 || (is_fp8(t.dtype()) && chance(2))) return;
    const std::vector<int64_t> axes = random_axes(t);
    const double n = extent_of(t, axes);
    const bool keep = chance(2);
    if (n == 0 && is_float(t.dtype()))
      return result("sum", {i}, {tensor::sum(t, axes, keep), 0, 0, true});
    switch (between(0, 6)) {
      case 0:
      case 1:
        return result(
            "sum", {i},
            summed(tensor::sum(t, axes, keep), n * x.bound, n * x.error, n, x.is_integral));
      case 2:
        return result("max", {i}, {tensor::max(t, axes, keep), x.bound, x.error, x.is_integral});
      case 3:
        return result("min", {i}, {tensor::min(t, axes, keep), x.bound, x.error, x.is_integral});
      case 4: {
        if (!is_float(t.dtype())) return result("prod", {i}, {tensor::prod(t, axes, keep)});
        Value v = summed(tensor::mean(t, axes, keep), x.bound, x.error, n, false);
        v.error += 4 * epsilon(t.dtype()) * x.bound;
        return result("mean", {i}, v);
      }
      case 5: {
        if (x.error != 0 || n == 0) return;
        return result("argmax", {i}, {tensor::argmax(t, axes[0], keep)});
      }
      default: {
        const auto extent = static_cast<double>(t.dim(static_cast<int>(axes[0])));
        return result("cumsum", {i},
                      summed(tensor::cumsum(t, axes[0]), extent * x.bound, extent * x.error, extent,
                             x.is_integral));
      }
    }
  }

  void normalisation() {
    const auto i = find([](const Value& v) {
      return is_float(v.tensor.dtype()) && v.tensor.rank() > 0 && v.tensor.count() > 0 &&
             !is_fp8(v.tensor.dtype());
    });
    if (!i) return;
    const Value x = values_[*i];
    const int64_t axis = between(0, x.tensor.rank() - 1);
    const auto n = static_cast<double>(x.tensor.dim(static_cast<int>(axis)));
    const double eps = epsilon(x.tensor.dtype());
    switch (between(0, 2)) {
      case 0:
        return result("softmax", {*i},
                      {tensor::softmax(x.tensor, axis), 1,
                       2 * x.error + (16 + n + 8 * x.bound) * eps, false});
      case 1: {
        const double bound = x.bound + std::log(n);
        return result("logsumexp", {*i},
                      {tensor::logsumexp(x.tensor, {axis}), bound,
                       x.error + (16 + n) * eps * (1 + x.bound + bound), false});
      }
      default: {
        Tensor t = x.tensor - tensor::mean(x.tensor, {axis}, /*keep=*/true);
        return result("x-mean", {*i},
                      {t, 2 * x.bound, 2 * x.error + (n + 16) * eps * x.bound, false});
      }
    }
  }

  /// The product of two values summed over `n` terms.
  Value contracted(Tensor t, const Value& x, const Value& y, double n) {
    const double error = n * (x.error * y.bound + y.error * x.bound + x.error * y.error);
    return summed(std::move(t), n * x.bound * y.bound, error, n, x.is_integral && y.is_integral);
  }

  void matrix_product() {
    const size_t i = any();
    const DType dtype = values_[i].tensor.dtype();
    if (values_[i].tensor.rank() < 1 || dtype == DType::Bool || is_fp8(dtype)) return;
    const int64_t k = values_[i].tensor.shape().back();
    auto j = find([&](const Value& y) {
      return y.tensor.dtype() == dtype && y.tensor.rank() >= 2 && y.tensor.dim(-2) == k;
    });
    if (!j) j = add_input(dtype, {k, between(1, 40)}, chance(2));
    const Value x = values_[i], y = values_[*j];
    result("matmul", {i, *j},
           contracted(tensor::matmul(x.tensor, y.tensor), x, y, static_cast<double>(k)));
  }

  void convolution() {
    constexpr DType kTypes[] = {DType::Float32, DType::Float32, DType::Float32, DType::Float16,
                                DType::Int8};
    auto i = find([](const Value& v) {
      return v.tensor.rank() == 4 && v.tensor.count() > 0 && v.tensor.dtype() != DType::Bool &&
             !is_fp8(v.tensor.dtype());
    });
    if (!i || chance(2))
      i = add_input(pick(kTypes), {between(1, 2), between(1, 9), between(3, 14), between(3, 14)});
    const Value x = values_[*i];
    if (chance(4)) return pooling(*i, x);
    const int64_t channels = x.tensor.dim(1);
    tensor::ConvOptions options;
    // Often the window that has a form of its own: 3 x 3 steps of 1, all channels.
    const bool is_common = chance(3) && x.tensor.dim(2) >= 3 && x.tensor.dim(3) >= 3;
    options.groups = !is_common && chance(3) ? channels : 1;
    Shape kernel{options.groups * between(1, 9), channels / options.groups};
    for (int axis = 2; axis < 4; ++axis) {
      const int64_t extent = x.tensor.dim(axis);
      const int64_t k = is_common ? 3 : between(1, std::min<int64_t>(extent, 5));
      kernel.push_back(k);
      options.strides.push_back(is_common ? 1 : between(1, 3));
      options.pads_lo.push_back(between(0, 2));
      options.pads_hi.push_back(between(0, 2));
      options.dilations.push_back(
          !is_common && k > 1 && (extent - 1) / (k - 1) > 1 && chance(3) ? 2 : 1);
    }
    const size_t w = add_input(x.tensor.dtype(), kernel, /*constant=*/!chance(4));
    const Value weights = values_[w];
    const double terms = static_cast<double>(kernel[1] * kernel[2] * kernel[3]);
    result("conv", {*i, w},
           contracted(tensor::conv(x.tensor, weights.tensor, {}, options), x, weights, terms));
  }

  void pooling(size_t i, const Value& x) {
    tensor::PoolOptions options;
    for (int axis = 2; axis < 4; ++axis) {
      const int64_t k = between(1, std::min<int64_t>(x.tensor.dim(axis), 4));
      options.kernel.push_back(k);
      options.strides.push_back(between(1, 3));
      options.pads_lo.push_back(between(0, k / 2));
      options.pads_hi.push_back(between(0, k / 2));
    }
    options.ceil_mode = chance(3);
    options.count_include_pad = chance(2);
    if (!is_float(x.tensor.dtype()) || chance(2)) {
      return result("max_pool", {i},
                    {tensor::max_pool(x.tensor, options), x.bound, x.error, x.is_integral});
    }
    const double n = static_cast<double>(options.kernel[0] * options.kernel[1]);
    Value v = summed(tensor::avg_pool(x.tensor, options), x.bound, x.error, n, false);
    v.error += 4 * epsilon(x.tensor.dtype()) * x.bound;
    result("avg_pool", {i}, v);
  }

  void indexing() {
    const size_t i = any();
    const Value x = values_[i];
    if (x.tensor.rank() == 0 || x.tensor.count() == 0) return;
    const int64_t axis = between(0, x.tensor.rank() - 1),
                  extent = x.tensor.dim(static_cast<int>(axis));
    switch (between(0, 2)) {
      case 0: {
        auto j =
            find([](const Value& v) { return is_int(v.tensor.dtype()) && v.tensor.count() < 100; });
        if (!j) j = add_input(DType::Int64, {between(1, 5)});
        const Tensor index =
            tensor::floormod(tensor::cast(values_[*j].tensor, DType::Int64), extent);
        return result("gather", {i, *j},
                      {tensor::gather(x.tensor, index, axis), x.bound, x.error, x.is_integral});
      }
      case 1: {
        const size_t j = add_input(DType::Int32, x.tensor.shape(), /*constant=*/true);
        const Tensor index = tensor::floormod(values_[j].tensor, extent);
        return result(
            "gather_elements", {i, j},
            {tensor::gather_elements(x.tensor, index, axis), x.bound, x.error, x.is_integral});
      }
      default: {
        if (x.error != 0 || extent > 20) return;
        return result("sort", {i},
                      {tensor::sort(x.tensor, axis).values, x.bound, 0, x.is_integral});
      }
    }
  }

  std::mt19937_64 rng_;
  int max_steps_;
  RandomGraph out_;
  std::vector<Value> values_;
  std::vector<bool> is_used_;
};

}  // namespace

double epsilon(DType dtype) {
  switch (dtype) {
    case DType::Float64: return 0x1p-52;
    case DType::Float32: return 0x1p-23;
    case DType::Float16: return 0x1p-10;
    case DType::BFloat16: return 0x1p-7;
    case DType::Fp8E4M3:
    case DType::Fp8E4M3Fnuz: return 0x1p-3;
    case DType::Fp8E5M2:
    case DType::Fp8E5M2Fnuz: return 0x1p-2;
    default: return 0x1p-52;  // no float: never asked for its roundings
  }
}

RandomGraph make_random_graph(uint64_t seed, int max_steps) {
  return Generator(seed, max_steps).make();
}

}  // namespace ignis::fuzz
