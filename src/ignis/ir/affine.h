#pragma once

#include "ignis/ir/graph.h"
#include "ignis/ir/order.h"
#include "ignis/ir/range.h"

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

namespace ignis::ir {

/// constant + sum of coefficient * atom. An atom is a Range or any node that is not itself a sum or a multiple.
/// Atoms are distinct, coefficients are not 0; terms stand by descending |coefficient|, then structural order.
struct Affine {
  int64_t constant = 0;
  std::vector<std::pair<Node, int64_t>> terms;

  /// Coefficient of an atom, 0 when it does not occur.
  int64_t coefficient(const Node& atom) const;
  bool is_constant() const { return terms.empty(); }
};

/// Decomposes an integer expression exactly as weak integers (no wrap). An expression whose constants would leave
/// int64 becomes one opaque atom.
Affine to_affine(Graph& graph, const Node& node);

/// The same with the caller's caches: `ranges`, when given, folds atoms with one possible value.
Affine to_affine(const Node& node, StructuralOrder& order, RangeAnalysis* ranges = nullptr);

/// Canonical expression of a weak integer sum: the terms in their order, then the constant.
Node from_affine(Graph& graph, const Affine& affine, DType dtype = DType::WeakInt);

/// a * scale + b, merged and ordered; nullopt when a coefficient leaves int64.
std::optional<Affine> add_scaled(const Affine& a, const Affine& b, int64_t scale,
                                 StructuralOrder& order);

/// `root` with every node that is a key of `map` replaced by its value (not searched again). Memoised.
Node substitute(Graph& graph, const Node& root, const std::unordered_map<Node, Node>& map);

/// True when `node` is `root` or among what it reaches.
bool depends_on(const Node& root, const Node& node);

/// Whether `value` is one thing here and another there along a range: it compares the range with constants more often than
/// an inside and its borders ask for.
bool chooses_by(const Node& value, const Node& range);

/// Open ranges of nodes: the ranges a node uses minus those ended below it by Reduce or End; in order of range id.
class OpenRanges {
 public:
  const std::vector<Node>& of(const Node& node);

 private:
  using Set = std::vector<Node>;
  SideArray<std::shared_ptr<const Set>> sets_;
};
std::vector<Node> open_ranges(const Node& node);

}  // namespace ignis::ir
