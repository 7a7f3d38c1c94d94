#include "ignis/codegen/lower/functions.h"
#include "ignis/codegen/lower/test_evaluate.h"

#include <gtest/gtest.h>

#include <functional>

namespace ignis::codegen {
namespace {

/// Units in the last place of the exact value's grid; infinities and NaN must be the same.
template <typename T, typename Exact>
double ulps(T actual, Exact exact) {
  if (std::isnan(exact)) return std::isnan(actual) ? 0 : HUGE_VAL;
  const T rounded = static_cast<T>(exact);
  if (actual == rounded) return 0;
  if (std::isinf(rounded) || std::isinf(actual)) {
    // One unit below the largest number there is infinity.
    const T largest = std::numeric_limits<T>::max();
    return std::abs(actual) == largest || std::abs(rounded) == largest ? 1 : HUGE_VAL;
  }
  const int digits = std::numeric_limits<T>::digits,
            lowest = std::numeric_limits<T>::min_exponent - digits;
  int exponent = 0;
  std::frexp(exact, &exponent);
  const Exact unit = std::ldexp(Exact{1}, std::max(exponent - digits, lowest));
  return static_cast<double>(std::abs(static_cast<Exact>(actual) - exact) / unit);
}

struct Function {
  const char* name;
  Expr (*build)(const Expr&);
  double (*exact)(double);
  long double (*exact_long)(long double);
  double bound32, bound64;
  bool flushes = false;  ///< what is less than the least normal number may be 0
};

Expr exp_plus_one(const Expr& x) { return exp_plus_of(x, 1); }

Expr exp_below_one(const Expr& x) { return exp_of(min(x, x.number(0))); }

const Function kFunctions[] = {
    {"exp + 1", exp_plus_one, [](double x) { return std::exp(x) + 1; },
     [](long double x) { return std::exp(x) + 1; }, 3, 3},
    {"exp", exp_of, std::exp, std::exp, 2, 2},
    {"exp of what is at most 0", exp_below_one, [](double x) { return x > 0 ? 1.0 : std::exp(x); },
     [](long double x) { return x > 0 ? 1.0L : std::exp(x); }, 2, 2, true},
    {"exp2", exp2_of, std::exp2, std::exp2, 2, 2},
    {"log", log_of, std::log, std::log, 2, 2},
    {"log2", log2_of, std::log2, std::log2, 2, 2},
    {"sin", sin_of, std::sin, std::sin, 2, 3},
    {"cos", cos_of, std::cos, std::cos, 2, 3},
    {"tanh", tanh_of, std::tanh, std::tanh, 4, 4},
    {"erf", erf_of, std::erf, std::erf, 4, 4},
    {"atan", atan_of, std::atan, std::atan, 4, 4},
};

constexpr size_t kBatch = 4096;

template <typename T, typename Exact>
void sweep(const Function& f, Exact (*exact)(Exact), bool has_fma, const std::vector<T>& points,
           double bound) {
  ir::Graph graph;
  const ir::Node leaf = graph.make(ir::Op::Reg, sizeof(T) == 8 ? DType::Float64 : DType::Float32,
                                   std::span<const ir::Node>{}, ir::Arg{{0}, {}});
  const Expr root = f.build(Expr(graph, leaf));
  Evaluator evaluator(has_fma);
  double worst = 0;
  T worst_at = 0;
  for (size_t start = 0; start < points.size(); start += kBatch) {
    const size_t count = std::min(kBatch, points.size() - start);
    Column column(count);
    for (size_t i = 0; i < count; ++i) column[i] = raw_of(points[start + i]);
    evaluator.clear();
    evaluator.set(leaf, std::move(column));
    const Column& result = evaluator.of(root.node());
    for (size_t i = 0; i < count; ++i) {
      const T x = points[start + i];
      const Exact right = exact(static_cast<Exact>(x));
      if (f.flushes && right < std::numeric_limits<T>::min() && read_as<T>(result[i]) == 0)
        continue;
      const double distance = ulps(read_as<T>(result[i]), right);
      if (distance > worst) {
        worst = distance;
        worst_at = x;
      }
    }
  }
  EXPECT_LE(worst, bound) << f.name << (has_fma ? " with" : " without") << " fma at " << worst_at
                          << " (" << std::hexfloat << worst_at << std::defaultfloat << "), got " <<
      [&] {
        evaluator.clear();
        evaluator.set(leaf, {raw_of(worst_at)});
        return read_as<T>(evaluator.of(root.node())[0]);
      }() << ", exact " << exact(static_cast<Exact>(worst_at));
}

/// Special values, all float16 values, values spread over all bit patterns and over the range where functions bend.
template <typename T>
std::vector<T> sample_points(size_t count) {
  std::vector<T> points{T(0.0),
                        T(-0.0),
                        T(INFINITY),
                        T(-INFINITY),
                        T(NAN),
                        T(1),
                        T(-1),
                        std::numeric_limits<T>::min(),
                        std::numeric_limits<T>::denorm_min(),
                        std::numeric_limits<T>::max(),
                        std::numeric_limits<T>::lowest()};
  for (uint64_t code = 0; code < 65536; ++code)
    points.push_back(static_cast<T>(decode_float(DType::Float16, code)));
  std::mt19937_64 rng(test_seed());
  std::uniform_real_distribution<double> near(-110, 110), nearer(-2, 2);
  while (points.size() < count) {
    points.push_back(read_as<T>(rng()));
    points.push_back(static_cast<T>(near(rng)));
    points.push_back(static_cast<T>(nearer(rng)));
    points.push_back(static_cast<T>(1 + std::ldexp(nearer(rng), -static_cast<int>(rng() % 24))));
  }
  return points;
}

TEST(Functions, Float32WithinTheirBounds) {
  const std::vector<float> points = sample_points<float>(250'000);
  for (const Function& f : kFunctions) {
    for (const bool has_fma : {true, false})
      sweep<float, double>(f, f.exact, has_fma, points, f.bound32);
  }
}

TEST(Functions, Float64WithinTheirBounds) {
  std::vector<double> points = sample_points<double>(80'000);
  std::mt19937_64 rng(test_seed());
  for (int i = 0; i < 20'000; ++i)
    points.push_back(std::uniform_real_distribution<double>(-800, 800)(rng));
  for (const Function& f : kFunctions) {
    for (const bool has_fma : {true, false})
      sweep<double, long double>(f, f.exact_long, has_fma, points, f.bound64);
  }
}

// Multiples of pi/2 leave almost nothing after the reduction: the values closest to one, found by their continued
// fractions, are among the float32 values near each multiple.
TEST(Functions, SineNearMultiplesOfPi) {
  std::vector<float> points;
  std::vector<double> wide;
  for (int64_t k = 1; k < 10'000; ++k) {
    const double at = static_cast<double>(k) * 1.5707963267948966;
    for (const float step : {-1.f, 0.f, 1.f})
      points.push_back(std::nextafter(static_cast<float>(at), step * INFINITY));
    wide.push_back(at);
  }
  points.push_back(16367173.0f * 0x1p72f);  // the worst case of float32
  wide.push_back(0x1.6ac5b262ca1ffp+849);   // and of float64
  for (const Function& f : kFunctions) {
    if (f.build != sin_of && f.build != cos_of) continue;
    sweep<float, double>(f, f.exact, false, points, f.bound32);
    sweep<double, long double>(f, f.exact_long, true, wide, f.bound64);
  }
}

template <typename T, typename Exact>
void sweep_pow(bool has_fma, const std::vector<std::pair<T, T>>& points, double bound) {
  ir::Graph graph;
  const DType dtype = sizeof(T) == 8 ? DType::Float64 : DType::Float32;
  const ir::Node x = graph.make(ir::Op::Reg, dtype, std::span<const ir::Node>{}, ir::Arg{{0}, {}});
  const ir::Node y = graph.make(ir::Op::Reg, dtype, std::span<const ir::Node>{}, ir::Arg{{1}, {}});
  const Expr root = pow_of(Expr(graph, x), Expr(graph, y), has_fma);
  Evaluator evaluator(has_fma);
  for (size_t start = 0; start < points.size(); start += kBatch) {
    const size_t count = std::min(kBatch, points.size() - start);
    Column a(count), b(count);
    for (size_t i = 0; i < count; ++i) {
      a[i] = raw_of(points[start + i].first);
      b[i] = raw_of(points[start + i].second);
    }
    evaluator.clear();
    evaluator.set(x, std::move(a));
    evaluator.set(y, std::move(b));
    const Column& result = evaluator.of(root.node());
    for (size_t i = 0; i < count; ++i) {
      const auto [p, q] = points[start + i];
      const T actual = read_as<T>(result[i]);
      const Exact exact = std::pow(static_cast<Exact>(p), static_cast<Exact>(q));
      const double distance = ulps(actual, exact);
      ASSERT_LE(distance, bound) << p << " ^ " << q << " = " << actual << ", not " << exact
                                 << (has_fma ? " fma" : "");
      ASSERT_TRUE(std::isnan(exact) || std::signbit(actual) == std::signbit(exact))
          << p << " ^ " << q;
    }
  }
}

template <typename T>
std::vector<std::pair<T, T>> pow_points(size_t count) {
  const T specials[] = {0.0,
                        -0.0,
                        1,
                        -1,
                        2,
                        -2,
                        3,
                        -3,
                        0.5,
                        -0.5,
                        T(INFINITY),
                        T(-INFINITY),
                        T(NAN),
                        1.5,
                        -1.5,
                        std::numeric_limits<T>::denorm_min(),
                        std::numeric_limits<T>::max(),
                        T(0x1p30),
                        T(-0x1p30)};
  std::vector<std::pair<T, T>> points;
  for (const T x : specials) {
    for (const T y : specials) points.emplace_back(x, y);
  }
  std::mt19937_64 rng(test_seed());
  std::uniform_real_distribution<double> base(0, 20), exponent(-40, 40), near_one(0.9, 1.1),
      large(-2000, 2000);
  while (points.size() < count) {
    points.emplace_back(static_cast<T>(base(rng)), static_cast<T>(exponent(rng)));
    points.emplace_back(static_cast<T>(near_one(rng)), static_cast<T>(large(rng)));
    points.emplace_back(read_as<T>(rng()), read_as<T>(rng()));
    points.emplace_back(read_as<T>(rng()), static_cast<T>(exponent(rng) / 40));
    points.emplace_back(static_cast<T>(exponent(rng)),
                        static_cast<T>(static_cast<int64_t>(rng() % 41) - 20));
  }
  return points;
}

TEST(Functions, PowersWithinTheirBounds) {
  for (const bool has_fma : {true, false}) {
    sweep_pow<float, double>(has_fma, pow_points<float>(200'000), 4);
    sweep_pow<double, long double>(has_fma, pow_points<double>(30'000), 8);
  }
}

}  // namespace
}  // namespace ignis::codegen
