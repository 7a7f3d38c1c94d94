#include "tests/compiler/run_schedule.h"
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

// Every family of the front end, compiled, against the reference interpreter.
namespace ignis {
namespace {

using namespace tensor;  // NOLINT: the table below reads as formulas

class FrontEnd : public testing::Test {
 protected:
  Tensor input(DType dtype, Shape shape, double lo = -2, double hi = 2) {
    const auto slot = static_cast<int64_t>(case_.inputs.size());
    case_.inputs.push_back(Tensor::input(graph_, slot, "x" + std::to_string(slot), dtype, shape));
    HostTensor values = HostTensor::zeros(dtype, shape);
    std::uniform_real_distribution<double> pick(lo, hi);
    for (int64_t i = 0; i < values.count(); ++i) {
      if (is_float(dtype)) store_element(values, i, pick(rng_));
      else store_element_int(values, i, static_cast<int64_t>(std::floor(pick(rng_))));
    }
    case_.values.push_back(std::move(values));
    return case_.inputs.back();
  }
  Tensor given(DType dtype, Shape shape, const std::vector<double>& values) {
    const Tensor x = input(dtype, shape);
    for (size_t i = 0; i < values.size(); ++i)
      store_element(case_.values.back(), static_cast<int64_t>(i), values[i]);
    return x;
  }

  /// Compiles `outputs` for the host, and for the plainest target, and compares with the interpreter.
  void check(const char* name, std::vector<Tensor> outputs, double tolerance) {
    SCOPED_TRACE(name);
    case_.name = name;
    case_.outputs = std::move(outputs);
    const std::vector<HostTensor> expected = case_.expected();
    for (const Target& target : {detect_host_target(), make_target(Isa::Sse2)}) {
      auto schedule = schedule::make_schedule(case_.input_nodes(), case_.output_nodes(), target);
      ASSERT_TRUE(schedule.has_value()) << schedule.error().to_string();
      test::RunOptions options;
      options.config.target = target;
      auto actual = test::run_schedule(*schedule, case_.values, options);
      ASSERT_TRUE(actual.has_value()) << actual.error().to_string();
      for (size_t i = 0; i < expected.size(); ++i) {
        ASSERT_EQ((*actual)[i].dtype, expected[i].dtype);
        const double error = test::max_error((*actual)[i], expected[i]);
        EXPECT_LE(error, tolerance)
            << target.name() << " output " << i << " " << to_string(expected[i].dtype) << " "
            << to_string(expected[i].shape);
        if (error > tolerance) {
          for (int64_t j = 0, shown = 0; j < expected[i].count() && shown < 4; ++j) {
            const double a = element_as_double((*actual)[i], j),
                         b = element_as_double(expected[i], j);
            if (std::abs(a - b) <= tolerance * (1 + std::abs(b)) ||
                (std::isnan(a) && std::isnan(b)))
              continue;
            ADD_FAILURE() << "element " << j << ": " << a << ", not " << b;
            ++shown;
          }
        }
      }
    }
    restart();
  }
  void restart() {
    graph_ = std::make_shared<ir::Graph>();
    case_ = {};
  }

  std::shared_ptr<ir::Graph> graph_ = std::make_shared<ir::Graph>();
  test::Case case_;
  std::mt19937_64 rng_{20240607};
};

constexpr double kTolerance = 2e-6;

struct UnaryRow {
  const char* name;
  std::function<Tensor(const Tensor&)> build;
  double lo, hi;
};
const UnaryRow kUnary[] = {
    {"neg", [](const Tensor& x) { return neg(x); }, -5, 5},
    {"abs", [](const Tensor& x) { return abs(x); }, -5, 5},
    {"sign", [](const Tensor& x) { return sign(x); }, -5, 5},
    {"floor", [](const Tensor& x) { return floor(x); }, -5, 5},
    {"ceil", [](const Tensor& x) { return ceil(x); }, -5, 5},
    {"round", [](const Tensor& x) { return round(x); }, -5, 5},
    {"trunc", [](const Tensor& x) { return trunc(x); }, -5, 5},
    {"sqrt", [](const Tensor& x) { return sqrt(x); }, 0, 9},
    {"rsqrt", [](const Tensor& x) { return rsqrt(x); }, 0.1, 9},
    {"reciprocal", [](const Tensor& x) { return reciprocal(x); }, 0.5, 9},
    {"exp", [](const Tensor& x) { return exp(x); }, -9, 5},
    {"exp2", [](const Tensor& x) { return exp2(x); }, -9, 5},
    {"expm1", [](const Tensor& x) { return expm1(x); }, -3, 3},
    {"log", [](const Tensor& x) { return log(x); }, 0, 9},
    {"log2", [](const Tensor& x) { return log2(x); }, 0, 9},
    {"log10", [](const Tensor& x) { return log10(x); }, 0, 9},
    {"log1p", [](const Tensor& x) { return log1p(x); }, -0.9, 9},
    {"sin", [](const Tensor& x) { return sin(x); }, -90, 90},
    {"cos", [](const Tensor& x) { return cos(x); }, -90, 90},
    {"tan", [](const Tensor& x) { return tan(x); }, -1, 1},
    {"asin", [](const Tensor& x) { return asin(x); }, -1, 1},
    {"acos", [](const Tensor& x) { return acos(x); }, -1, 1},
    {"atan", [](const Tensor& x) { return atan(x); }, -9, 9},
    {"sinh", [](const Tensor& x) { return sinh(x); }, -3, 3},
    {"cosh", [](const Tensor& x) { return cosh(x); }, -3, 3},
    {"tanh", [](const Tensor& x) { return tanh(x); }, -3, 3},
    {"asinh", [](const Tensor& x) { return asinh(x); }, -9, 9},
    {"acosh", [](const Tensor& x) { return acosh(x); }, 1.01, 9},
    {"atanh", [](const Tensor& x) { return atanh(x); }, -0.9, 0.9},
    {"erf", [](const Tensor& x) { return erf(x); }, -4, 4},
    {"relu", [](const Tensor& x) { return relu(x); }, -4, 4},
    {"leaky_relu", [](const Tensor& x) { return leaky_relu(x); }, -4, 4},
    {"elu", [](const Tensor& x) { return elu(x); }, -4, 4},
    {"selu", [](const Tensor& x) { return selu(x); }, -4, 4},
    {"celu", [](const Tensor& x) { return celu(x, 0.7); }, -4, 4},
    {"sigmoid", [](const Tensor& x) { return sigmoid(x); }, -9, 9},
    {"silu", [](const Tensor& x) { return silu(x); }, -9, 9},
    {"gelu", [](const Tensor& x) { return gelu(x); }, -4, 4},
    {"gelu_tanh", [](const Tensor& x) { return gelu(x, GeluForm::Tanh); }, -4, 4},
    {"softplus", [](const Tensor& x) { return softplus(x); }, -9, 9},
    {"softsign", [](const Tensor& x) { return softsign(x); }, -9, 9},
    {"hard_sigmoid", [](const Tensor& x) { return hard_sigmoid(x); }, -4, 4},
    {"hard_swish", [](const Tensor& x) { return hard_swish(x); }, -4, 4},
    {"mish", [](const Tensor& x) { return mish(x); }, -9, 9},
    {"pow3", [](const Tensor& x) { return pow(x, 3); }, -4, 4},
    {"pow half", [](const Tensor& x) { return pow(x, 0.5); }, 0, 4},
    {"isnan", [](const Tensor& x) { return isnan(x); }, -4, 4},
    {"isinf", [](const Tensor& x) { return isinf(x); }, -4, 4},
    {"to int8", [](const Tensor& x) { return cast(x * 100, DType::Int8); }, -4, 4},
    {"to uint8", [](const Tensor& x) { return cast(x * 100, DType::UInt8); }, -4, 4},
    {"to int64", [](const Tensor& x) { return cast(x * 100, DType::Int64); }, -4, 4},
    {"to bool", [](const Tensor& x) { return cast(trunc(x), DType::Bool); }, -4, 4},
};

TEST_F(FrontEnd, UnaryFunctions) {
  for (const UnaryRow& row : kUnary) {
    const Tensor x = input(DType::Float32, {3, 37}, row.lo, row.hi);
    check(row.name, {row.build(x)}, kTolerance);
    check(row.name, {row.build(input(DType::Float64, {21}, row.lo, row.hi))}, 1e-14);
  }
}

TEST_F(FrontEnd, NarrowFloats) {
  // Results round to 8 and 11 bits, and a wider intermediate may be kept: two steps of the format.
  const std::pair<DType, double> formats[] = {{DType::Float16, 2e-3}, {DType::BFloat16, 1.6e-2}};
  for (const auto& [format, tolerance] : formats) {
    for (const UnaryRow& row : kUnary) {
      if (std::string(row.name).find("to ") == 0) continue;
      if (std::string(row.name) == "sin" || std::string(row.name) == "cos") continue;
      check(row.name, {row.build(input(format, {3, 19}, row.lo, row.hi))}, tolerance);
    }
    const Tensor a = input(format, {5, 12}), b = input(format, {12, 9});
    check("matmul", {matmul(a, b)}, tolerance);
    check("softmax", {softmax(input(format, {4, 33}), 1)}, tolerance);
    check("sum", {sum(input(format, {4, 33}), {1}), max(input(format, {4, 33}), {1})},
          2 * tolerance);
  }
  for (const DType format :
       {DType::Fp8E4M3, DType::Fp8E5M2, DType::Fp8E4M3Fnuz, DType::Fp8E5M2Fnuz}) {
    check("fp8 round trip", {cast(input(format, {50}), DType::Float32)}, 0);
    check("to fp8", {cast(input(DType::Float32, {50}), format)}, 0);
    check("fp8 copy", {permute(input(format, {5, 7}), {1, 0})}, 0);
  }
}

TEST_F(FrontEnd, SpecialValues) {
  const std::vector<double> specials{0.0, -0.0, INFINITY, -INFINITY, NAN, 1,
                                     -1,  3e38, -3e38,    1e-45,     89,  -104};
  for (const UnaryRow& row : kUnary) {
    check(row.name, {row.build(given(DType::Float32, {12}, specials))}, kTolerance);
  }
}

TEST_F(FrontEnd, BinaryOnAllDtypes) {
  for (const DType d : {DType::Int8, DType::UInt8, DType::Int16, DType::UInt16, DType::Int32,
                        DType::UInt32, DType::Int64, DType::UInt64}) {
    const double lo = is_unsigned(d) ? 0 : -100;
    const Tensor a = input(d, {4, 21}, lo, 100), b = input(d, {21}, is_unsigned(d) ? 0 : -4, 5);
    SCOPED_TRACE(std::string(to_string(d)));
    check(
        "integers",
        {a + b, a - b, a * b, floordiv(a, b), floormod(a, b), cdiv(a, b), cmod(a, b), maximum(a, b),
         minimum(a, b), a & b, a | b, a ^ b, shift_left(a, b), shift_right(a, b), a / b},
        kTolerance);
    const Tensor c = input(d, {33}, lo, 100);
    check(
        "constants",
        {floordiv(c, 7), floormod(c, 7), floordiv(c, 8), cdiv(c, 3), cmod(c, 10), shift_right(c, 2),
         floordiv(c, -3), pow(c, 3), abs(c), sign(c), c < 50, greater_equal(c, 3)},
        kTolerance);
    const Tensor e = input(d, {40}, lo, 100);
    check("reductions",
          {sum(e), max(e), min(e), mean(e), prod(slice(e, 0, 0, 3)), argmax(e, 0), cumsum(e, 0)},
          kTolerance);
    check(
        "casts",
        {cast(input(d, {33}, lo, 120), DType::Float32), cast(input(d, {33}, lo, 120), DType::Int8),
         cast(input(d, {33}, lo, 120), DType::UInt64), cast(input(d, {33}, lo, 120), DType::Bool)},
        0);
  }
  const Tensor a = input(DType::Float32, {4, 21}, -5, 5), b = input(DType::Float32, {4, 1}, 0.5, 5);
  check("floats",
        {a + b, a - b, a * b, a / b, pow(abs(a), b), maximum(a, b), minimum(a, b), floordiv(a, b),
         floormod(a, b), cmod(a, b), atan2(a, b), copysign(b, a), a < b, equal(trunc(a), trunc(b)),
         lerp(a, b, 0.3)},
        5e-6);
  const Tensor p = input(DType::Bool, {40}, 0, 2), q = input(DType::Bool, {40}, 0, 2);
  check("bool",
        {logical_and(p, q), logical_or(p, q), logical_xor(p, q), logical_not(p), p + q, p * q,
         where(p, q, p), any(p), all(p), sum(p), cast(p, DType::Float32), less(p, q), p + 1,
         (p + 1) / 2},
        kTolerance);
  const Tensor i = input(DType::Int64, {9}, -9, 9), u = input(DType::UInt64, {9}, 0, 9);
  check("mixed", {i < u, equal(i, u), i + 0.5, i + u, (i + 0.5) + input(DType::Float64, {9})},
        kTolerance);
}

TEST_F(FrontEnd, Movement) {
  const Tensor x = input(DType::Float32, {3, 5, 7});
  check(
      "movement",
      {slice(x, 2, 5, INT64_MIN, -2), slice(x, 1, 1, 5, 3), pad(x, {{1, 0}, {0, 2}, {-1, 1}}, 1.5),
       pad_mode(x, {{0, 0}, {3, 2}, {1, 4}}, PadMode::Reflect),
       pad_mode(x, {{1, 1}, {0, 0}, {2, 0}}, PadMode::Edge),
       pad_mode(x, {{0, 0}, {0, 0}, {3, 5}}, PadMode::Wrap), roll(x, 1, 2), tile(x, {1, 2, 1}),
       repeat_interleave(x, 2, 3), tril(x), triu(x, 1), flip(x, {0, 2}),
       concat({x, slice(x, 1, 0, 2)}, 1), stack({x, x * 2}, 1),
       permute(window(x, 2, 3, 2), {3, 0, 2, 1})},
      0);
}

TEST_F(FrontEnd, ReductionsAndNorms) {
  const Tensor x = input(DType::Float32, {3, 6, 11});
  check("reductions",
        {sum(x, {0, 2}), mean(x, {1}), var(x, {2}), max(x, {0}), min(x), prod(x, {0}), argmax(x, 2),
         argmin(x, 1, true, Pick::Last), logsumexp(x, {1}), norm_l2(x, {2}), cumsum(x, 1),
         cumsum(x, 2, ScanStart::Exclusive, ScanOrder::Reverse), cumprod(x, 0), softmax(x, 1),
         log_softmax(x, 2)},
        1e-5);
  const Tensor y = input(DType::Float32, {2, 6, 5, 5}), s = input(DType::Float32, {6}),
               b = input(DType::Float32, {6}), m = input(DType::Float32, {6}),
               v = input(DType::Float32, {6}, 0.5, 2);
  check("norms",
        {batch_norm(y, s, b, m, v), instance_norm(y, s, b), group_norm(y, 3, s, b),
         layer_norm(y, 2, input(DType::Float32, {5, 5}), {}), rms_norm(y, -1, {}),
         local_response_norm(y, 3)},
        1e-5);
}

TEST_F(FrontEnd, Contractions) {
  const Tensor a = input(DType::Float32, {2, 7, 13}), b = input(DType::Float32, {13, 9});
  check("products",
        {matmul(a, b), einsum("bij,jk->bki", std::vector<Tensor>{a, b}),
         gemm(select(a, 0, 1), b, {}, 0.5)},
        1e-5);
  const Tensor i = input(DType::Int8, {5, 12}, -100, 100),
               j = input(DType::Int8, {12, 4}, -100, 100);
  check("integer product", {matmul(i, j, DType::Int32), matmul(i, j)}, 0);
  const Tensor x = input(DType::Float32, {1, 4, 9, 10});
  ConvOptions c;
  c.strides = {2, 1};
  c.pads_lo = {1, 0};
  c.pads_hi = {0, 2};
  c.dilations = {1, 2};
  c.groups = 2;
  check("conv", {conv(x, input(DType::Float32, {6, 2, 3, 3}), input(DType::Float32, {6}), c)},
        1e-5);
  for (const int64_t stride : {1, 2, 3}) {
    for (const int64_t kernel : {2, 3, 4}) {
      ConvOptions t;
      t.strides = {stride, 2};
      t.pads_lo = {1, 0};
      t.output_padding = {stride - 1, 0};
      check("conv_transpose",
            {conv_transpose(input(DType::Float32, {1, 4, 5, 4}),
                            input(DType::Float32, {4, 3, kernel, 2}), {}, t)},
            1e-5);
    }
  }
  const Tensor y = input(DType::Float32, {1, 3, 9, 9});
  PoolOptions p;
  p.kernel = {3, 2};
  p.strides = {2, 2};
  p.pads_lo = {1, 0};
  p.ceil_mode = true;
  check("pools",
        {max_pool(y, p), max_pool_indices(y, p), avg_pool(y, p), lp_pool(y, p), global_avg_pool(y),
         global_max_pool(y)},
        1e-5);
}

TEST_F(FrontEnd, Indexing) {
  const Tensor x = input(DType::Float32, {6, 5});
  const Tensor i = input(DType::Int64, {4}, -6, 6), e = input(DType::Int32, {6, 3}, -5, 5);
  check("gather",
        {gather(x, i, 0), gather(x, input(DType::Int64, {2, 2}, -5, 5), 1),
         gather_elements(x, e, 1), gather_nd(x, input(DType::Int64, {3, 2}, -5, 5)), one_hot(i, 7)},
        0);
  const Tensor y = input(DType::Float32, {5, 4});
  const Tensor k = given(DType::Int64, {2, 4}, {0, 1, 2, 3, 4, -2, 2, 0});
  const Tensor u = input(DType::Float32, {2, 4});
  check("scatter",
        {scatter_elements(y, k, u, 0), scatter_elements(y, k, u, 0, ScatterOp::Add),
         scatter_elements(y, k, u, 0, ScatterOp::Max),
         scatter_nd(y, given(DType::Int64, {2, 1}, {3, 1}), u)},
        1e-6);
  const Tensor z = input(DType::Float32, {4, 17});
  check("sort",
        {sort(z, 1).values, sort(z, 1).indices, topk(z, 5, 1).values, topk(z, 3, 0).indices}, 0);
}

}  // namespace
}  // namespace ignis
