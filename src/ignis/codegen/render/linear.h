#pragma once

#include "ignis/codegen/program.h"

#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

namespace ignis::codegen {

/// An int64 scalar as constant + sum of coefficient * atom, mod 2^64. Atoms are nodes that are no such sums
/// themselves: loop counters, loads, quotients. Terms stand in the order of their atoms' ids; no coefficient is 0.
struct LinearForm {
  int64_t constant = 0;
  std::vector<std::pair<ir::Node, int64_t>> terms;
};

/// Linear forms of a program's int64 scalars, each worked out once.
class LinearForms {
 public:
  const LinearForm& of(const ir::Node& node);

  /// Int64 scalar sums, differences and multiples: nodes that `of` looks into.
  static bool is_sum(const ir::Node& node);

 private:
  std::unordered_map<uint32_t, LinearForm> known_;
};

/// Ids of the nodes whose value is used other than in an address: sums that only make up addresses need no code.
std::vector<bool> find_used_values(const Program& program);

}  // namespace ignis::codegen
