#pragma once

#include "ignis/base/host_tensor.h"

#include <map>
#include <string>
#include <vector>

namespace ignis::tools {

enum class Stat : uint8_t { Max, Mean, Median, P99, Cosine, Nmse };
Result<Stat> parse_stat(const std::string& text);

/// How far a value may be from its reference: |got - want| <= atol + rtol * |want|, or `ulp` units in the last place
/// of the dtype when that is set.
struct Tolerance {
  double atol = 0, rtol = 0;
  double ulp = -1;  ///< below 0: not asked
};
/// What a float dtype is held to when nothing is said; integers and bool are exact.
Tolerance default_tolerance(DType dtype);

/// What two tensors of one dtype and shape differ by.
struct Comparison {
  int64_t count = 0, beyond = 0;  ///< elements, and how many of them are beyond the tolerance
  double max_abs = 0, max_rel = 0, max_ulp = 0;
  double mean_abs = 0;
  double cosine = 1, nmse = 0;
  double stat = 0;     ///< of |got - want| / allowed; cosine and nmse: their distance from the best
  int64_t worst = -1;  ///< index of the largest |got - want| / allowed
  double worst_got = 0, worst_want = 0;
  bool passed = true;
};

/// Compares element by element; NaN equals NaN, infinities equal themselves. With Max every element has to be within
/// the tolerance; with Mean, Median or P99 that statistic of |got - want| / allowed has to be at most 1; Cosine:
/// 1 - cosine <= rtol; Nmse: sum of squared errors / sum of squares <= rtol.
Comparison compare(const HostTensor& got, const HostTensor& want, const Tolerance& tolerance,
                   Stat stat = Stat::Max);

/// What looks wrong with a tensor by itself.
struct Flags {
  int64_t nan = 0, inf = 0;
  bool is_constant = false, is_all_zero = false;  ///< of two or more elements
  double min = 0, max = 0, mean = 0;              ///< of the finite elements
  std::string to_string() const;                  ///< "NaN 3, all zero"; empty when nothing is
};
Flags inspect_values(const HostTensor& tensor);

/// Values of --rtol, --atol or --ulp: "1e-3" for all outputs, "name:1e-3" for one.
class NamedValues {
 public:
  /// Errors: reason "Usage".
  static Result<NamedValues> parse(const std::vector<std::string>& arguments,
                                   const std::string& option);
  /// The value for `name`, else that for all, else `otherwise`.
  double value(const std::string& name, double otherwise) const;
  bool has(const std::string& name) const { return has_default_ || by_name_.count(name) != 0; }
  const std::map<std::string, double>& by_name() const { return by_name_; }

 private:
  bool has_default_ = false;
  double default_ = 0;
  std::map<std::string, double> by_name_;
};

/// "[0, 3, 17]": the index of element `flat`.
std::string index_text(int64_t flat, const Shape& shape);

}  // namespace ignis::tools
