#include "ignis/schedule/split_reduce.h"

#include "ignis/ir/affine.h"
#include "ignis/schedule/draft.h"

#include <unordered_map>
#include <utility>

namespace ignis::schedule {
namespace {

using ir::Graph;
using ir::Node;
using ir::Op;

constexpr double kLeastBytes = 128 * 1024;  // of what is reduced: a few microseconds
constexpr int64_t kMostValues = 1024;       // of the result
constexpr int64_t kLeastRow = 8;            // reduced to one value in the first kernel

/// The draft's only reduction, if it is one of a single operand over two axes or more; else null.
Node long_reduce(const Draft& draft, const Target& target) {
  Node found;
  int64_t values = 1, points = 1;
  for (const Node& n : ir::toposort(draft.sink)) {
    if (!n.is(Op::Reduce)) continue;
    if (found) return {};
    found = n;
  }
  if (!found || found.source_count() < 3 || found.dtype() == DType::Bool) return {};
  for (int i = 1; i < found.source_count(); ++i) {
    if (!found.src(i).is(Op::Range)) return {};
    points *= found.src(i).range_extent();
  }
  for (const Node& r : draft.ranges) values *= r.range_extent();
  const int64_t rows = found.src(1).range_extent();
  const double bytes =
      static_cast<double>(values) * static_cast<double>(points) * size_bytes(found.dtype());
  if (values > kMostValues || bytes < kLeastBytes || rows < 2 * target.threads ||
      points / rows < kLeastRow)
    return {};
  int loads = 0;
  for (const LoadSite& site : loads_of(draft)) loads += site.reduce == found;
  return loads == 1 ? found : Node();
}

}  // namespace

void split_reduces(Schedule& schedule, std::vector<Draft>& drafts, const Target& target) {
  if (target.threads < 2) return;
  Graph& g = *schedule.graph;
  for (size_t i = 0; i < drafts.size(); ++i) {
    if (drafts[i].at_load) continue;
    const Node reduce = long_reduce(drafts[i], target);
    if (!reduce) continue;
    Draft& d = drafts[i];
    const Node row = reduce.src(1);
    std::vector<Node> kept{row};
    kept.insert(kept.end(), d.ranges.begin(), d.ranges.end());
    Shape shape;
    for (const Node& r : kept) shape.push_back(r.range_extent());
    const std::string& name = schedule.buffers[static_cast<size_t>(d.buffers[0])].name;
    const int rows = add_buffer(schedule, BufferRole::Temporary, reduce.dtype(), shape,
                                ir::Layout::planar(shape), name + ".rows");

    // Numbers of ranges behind those that the new draft keeps.
    std::unordered_map<Node, Node> renumbered;
    std::vector<Node> sources{reduce.src(0)};
    for (int a = 2; a < reduce.source_count(); ++a) {
      const Node r = reduce.src(a);
      renumbered[r] =
          g.range(r.range_extent(), static_cast<int64_t>(kept.size()) + a, r.axis_kind());
      sources.push_back(renumbered[r]);
    }
    sources[0] = ir::substitute(g, reduce.src(0), renumbered);
    const Node of_row = g.make(Op::Reduce, reduce.dtype(), sources, reduce.arg());
    Draft first = copy_draft(g, d, rows, shape, reduce.dtype(), kept, of_row);
    first.why.push_back(say("reduced by rows first: ", row.range_extent(), " rows for ",
                            target.threads, " threads, 2 for each at least"));

    const Node partial = load_buffer(g, d, rows, shape, reduce.dtype(), kept);
    replace(g, d, {{reduce, g.make(Op::Reduce, reduce.dtype(), {partial, row}, reduce.arg())}});
    drafts.insert(drafts.begin() + static_cast<std::ptrdiff_t>(i), std::move(first));
    ++i;
  }
}

}  // namespace ignis::schedule
