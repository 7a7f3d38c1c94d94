#include "tools/ignis/compare.h"

#include "ignis/base/float_formats.h"

#include "tools/ignis/exit_code.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

namespace ignis::tools {
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

Result<Stat> parse_stat(const std::string& text) {
  constexpr std::pair<const char*, Stat> kStats[] = {
      {"max", Stat::Max}, {"mean", Stat::Mean},     {"median", Stat::Median},
      {"p99", Stat::P99}, {"cosine", Stat::Cosine}, {"nmse", Stat::Nmse}};
  for (const auto& [name, stat] : kStats)
    if (text == name) return stat;
  return usage_error("--stat takes max, mean, median, p99, cosine or nmse, not '" + text + "'.");
}

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

std::string Flags::to_string() const {
  std::string text;
  const auto add = [&](const std::string& word) { text += (text.empty() ? "" : ", ") + word; };
  if (nan > 0) add("NaN " + std::to_string(nan));
  if (inf > 0) add("Inf " + std::to_string(inf));
  if (is_all_zero) add("all zero");
  else if (is_constant) add("constant");
  return text;
}

Flags inspect_values(const HostTensor& tensor) {
  Flags flags;
  const int64_t count = tensor.count();
  int64_t finite = 0;
  double sum = 0;
  bool is_constant = true, is_all_zero = true;
  for (int64_t i = 0; i < count; ++i) {
    const double v = element_as_double(tensor, i);
    is_all_zero &= v == 0;
    is_constant &= i == 0 || v == element_as_double(tensor, 0);
    if (std::isnan(v)) ++flags.nan;
    else if (std::isinf(v)) ++flags.inf;
    if (!std::isfinite(v)) continue;
    flags.min = finite == 0 ? v : std::min(flags.min, v);
    flags.max = finite == 0 ? v : std::max(flags.max, v);
    sum += v;
    ++finite;
  }
  if (finite > 0) flags.mean = sum / static_cast<double>(finite);
  flags.is_constant = count > 1 && is_constant;
  flags.is_all_zero = count > 1 && is_all_zero;
  return flags;
}

Result<NamedValues> NamedValues::parse(const std::vector<std::string>& arguments,
                                       const std::string& option) {
  NamedValues out;
  for (const std::string& argument : arguments) {
    const size_t at = argument.rfind(':');
    const std::string number = at == std::string::npos ? argument : argument.substr(at + 1);
    double value = 0;
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
    if (error != std::errc() || end != number.data() + number.size() || !(value >= 0)) {
      return usage_error(option + " takes a number or NAME:NUMBER, not '" + argument + "'.");
    }
    if (at == std::string::npos) {
      out.has_default_ = true;
      out.default_ = value;
    } else {
      out.by_name_[argument.substr(0, at)] = value;
    }
  }
  return out;
}

double NamedValues::value(const std::string& name, double otherwise) const {
  const auto at = by_name_.find(name);
  return at != by_name_.end() ? at->second : has_default_ ? default_ : otherwise;
}

std::string index_text(int64_t flat, const Shape& shape) {
  Shape index(shape.size());
  for (size_t i = shape.size(); i-- > 0;) {
    index[i] = shape[i] > 0 ? flat % shape[i] : 0;
    flat = shape[i] > 0 ? flat / shape[i] : 0;
  }
  return to_string(index);
}

}  // namespace ignis::tools
