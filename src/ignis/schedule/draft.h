#pragma once

#include "ignis/ir/graph.h"
#include "ignis/schedule/schedule.h"
#include "ignis/schedule/split.h"

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

// Looking at and rewriting drafts: shared by the layout passes.
namespace ignis::schedule {

/// A Load of a draft.
struct LoadSite {
  ir::Node load;
  int slot = 0;
  std::vector<ir::Node> index;
  ir::Node reduce;  ///< the innermost Reduce around it, or null
};

std::vector<LoadSite> loads_of(const Draft& draft);
ir::Node store_of(const Draft& draft);
std::vector<ir::Node> store_index(const Draft& draft);
/// Indices of an Index node, without its Param.
std::vector<ir::Node> index_of(const ir::Node& index);

/// Rebuilds the draft's expressions with `map` applied; nodes that are keys are not searched further.
void replace(ir::Graph& graph, Draft& draft, const std::unordered_map<ir::Node, ir::Node>& map);

/// A further buffer of the schedule; returns its number.
int add_buffer(Schedule& schedule, BufferRole role, DType dtype, const Shape& shape,
               ir::Layout layout, const std::string& name);

/// Adds a slot for `buffer` (or finds it) and returns a Load of it at `index`.
ir::Node load_buffer(ir::Graph& graph, Draft& draft, int buffer, const Shape& shape, DType dtype,
                     const std::vector<ir::Node>& index);

/// A draft that stores `value` (an expression over the slots of `like`, with `ranges` free) to `buffer`.
Draft copy_draft(ir::Graph& graph, const Draft& like, int buffer, const Shape& shape, DType dtype,
                 const std::vector<ir::Node>& ranges, const ir::Node& value);

/// Coefficient of each range in an affine expression; nullopt when the expression is not affine in plain ranges.
struct PlainAffine {
  int64_t constant = 0;
  std::vector<std::pair<ir::Node, int64_t>> terms;
  int64_t coefficient(const ir::Node& range) const;
};
std::optional<PlainAffine> plain_affine(ir::Graph& graph, const ir::Node& expression);

}  // namespace ignis::schedule
