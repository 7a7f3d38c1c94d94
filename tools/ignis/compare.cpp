#include "tools/ignis/compare.h"

#include "tools/ignis/exit_code.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace ignis::tools {

Result<Stat> parse_stat(const std::string& text) {
  constexpr std::pair<const char*, Stat> kStats[] = {
      {"max", Stat::Max}, {"mean", Stat::Mean},     {"median", Stat::Median},
      {"p99", Stat::P99}, {"cosine", Stat::Cosine}, {"nmse", Stat::Nmse}};
  for (const auto& [name, stat] : kStats)
    if (text == name) return stat;
  return usage_error("--stat takes max, mean, median, p99, cosine or nmse, not '" + text + "'.");
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
