#pragma once

#include "ignis/ir/rule.h"

namespace ignis::ir {

/// The simplifier's rows. Each leaves fewer or cheaper nodes, so every set of them terminates.
///@{
/// Integers of every dtype: true under wrap. Division and remainder by zero give 0.
const RuleTable& integer_rules();
/// Sums and products of integers that wrap; those of exact integers are gathered by the Simplifier instead.
const RuleTable& wrapping_rules();
/// Exact (weak) integers, floor division; what ranges decide at once. The searches are in the Simplifier.
const RuleTable& index_rules();
/// Comparisons of exact integers.
const RuleTable& compare_rules();
/// Truth values.
const RuleTable& bool_rules();
/// Selection, for every dtype.
const RuleTable& where_rules();
/// Floats; each row at its level.
const RuleTable& float_rules();
///@}

/// Multiply and add to one rounding, from `finite` on. Not part of the simplifier: a pass decides where it pays.
const RuleTable& contraction_rules();

}  // namespace ignis::ir
