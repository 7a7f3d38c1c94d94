#pragma once

#include "ignis/base/compare.h"

#include <map>
#include <string>
#include <vector>

namespace ignis::tools {

Result<Stat> parse_stat(const std::string& text);

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
