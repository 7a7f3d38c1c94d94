#include "ignis/base/compare.h"

#include "ignis/base/float_formats.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace ignis {
namespace {

/// Place of a value in the order of all values of its dtype; neighbours differ by 1. -0 and 0 share a place.
double ordinal(const HostTensor& tensor, int64_t i) {
  if (!is_float(tensor.dtype)) return element_as_double(tensor, i);
  const uint64_t code = encode_float(tensor.dtype, element_as_double(tensor, i));
  const uint64_t sign = uint64_t{1} << (bits(tensor.dtype) - 1);
  const auto magnitude = static_cast<double>(code & (sign - 1));
  return (code & sign) != 0 ? -magnitude : magnitude;
}

double statistic(std::vector<double>& errors, Stat stat) {
  if (errors.empty()) return 0;
  double sum = 0;
  switch (stat) {
    case Stat::Mean:
      for (const double e : errors) sum += e;
      return sum / static_cast<double>(errors.size());
    case Stat::Median:
    case Stat::P99: {
      const double share = stat == Stat::Median ? 0.5 : 0.99;
      const auto at =
          static_cast<size_t>(std::ceil(share * static_cast<double>(errors.size()))) - 1;
      std::nth_element(errors.begin(), errors.begin() + static_cast<std::ptrdiff_t>(at),
                       errors.end());
      return errors[at];
    }
    default: return *std::max_element(errors.begin(), errors.end());
  }
}

}  // namespace

Tolerance default_tolerance(DType dtype) {
  switch (dtype) {
    case DType::Float64:
    case DType::Float32: return {1e-4, 1e-4, -1};
    case DType::Float16: return {2e-3, 2e-3, -1};   // two units of 2^-11
    case DType::BFloat16: return {2e-2, 2e-2, -1};  // 2^-8
    case DType::Fp8E4M3:
    case DType::Fp8E4M3Fnuz: return {0.07, 0.07, -1};
    case DType::Fp8E5M2:
    case DType::Fp8E5M2Fnuz: return {0.13, 0.13, -1};
    default: return {0, 0, -1};
  }
}

Comparison compare(const HostTensor& got, const HostTensor& want, const Tolerance& tolerance,
                   Stat stat) {
  IGNIS_CHECK(got.shape == want.shape && got.dtype == want.dtype);
  Comparison result;
  result.count = got.count();
  double dot = 0, got_square = 0, want_square = 0, error_square = 0, abs_sum = 0, worst_ratio = -1;
  std::vector<double> ratios(static_cast<size_t>(result.count));
  const double inf = std::numeric_limits<double>::infinity();
  for (int64_t i = 0; i < result.count; ++i) {
    const double a = element_as_double(got, i), b = element_as_double(want, i);
    const bool is_same = a == b || (std::isnan(a) && std::isnan(b));
    double error = is_same ? 0 : std::fabs(a - b);
    if (std::isnan(error)) error = inf;
    // 64-bit integers that a double cannot tell apart.
    if (is_same && !is_float(got.dtype) && element_as_int(got, i) != element_as_int(want, i))
      error = 1;
    const double ulp = error == 0             ? 0
                       : std::isfinite(error) ? std::fabs(ordinal(got, i) - ordinal(want, i))
                                              : inf;
    const double allowed =
        tolerance.ulp >= 0 ? tolerance.ulp : tolerance.atol + tolerance.rtol * std::fabs(b);
    const double distance = tolerance.ulp >= 0 ? ulp : error;
    const double ratio = distance == 0                           ? 0
                         : allowed > 0 && std::isfinite(allowed) ? distance / allowed
                                                                 : inf;
    ratios[static_cast<size_t>(i)] = ratio;
    if (ratio > 1) ++result.beyond;
    if (ratio > worst_ratio) {
      worst_ratio = ratio;
      result.worst = i;
      result.worst_got = a;
      result.worst_want = b;
    }
    result.max_abs = std::max(result.max_abs, error);
    result.max_ulp = std::max(result.max_ulp, ulp);
    if (error > 0) result.max_rel = std::max(result.max_rel, b == 0 ? inf : error / std::fabs(b));
    abs_sum += error;
    if (std::isfinite(a) && std::isfinite(b)) {
      dot += a * b;
      got_square += a * a;
      want_square += b * b;
    }
    error_square += error * error;
  }
  if (result.count > 0) result.mean_abs = abs_sum / static_cast<double>(result.count);
  if (got_square > 0 && want_square > 0) result.cosine = dot / std::sqrt(got_square * want_square);
  else if (got_square != want_square) result.cosine = 0;
  result.nmse = error_square == 0 ? 0 : want_square > 0 ? error_square / want_square : inf;
  switch (stat) {
    case Stat::Cosine:
      result.stat = 1 - result.cosine;
      result.passed = result.stat <= tolerance.rtol;
      break;
    case Stat::Nmse:
      result.stat = result.nmse;
      result.passed = result.stat <= tolerance.rtol;
      break;
    default: result.stat = statistic(ratios, stat); result.passed = result.stat <= 1;
  }
  return result;
}

}  // namespace ignis
