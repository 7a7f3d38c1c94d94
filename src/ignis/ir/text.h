#pragma once

#include "ignis/ir/graph.h"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ignis::ir {

/// The textual form of all that `roots` reach, one node a line, sources first:
///
///     %0 = Const.weakint 16
///     %1 = Range.weakint %0 [L0]
///     %2 = Param.f32 [0, "x", shape 16, layout 0:1x16]
///     %3 = Index.f32 %2, %1
///     %4 = Load.f32 %3
///     => %4
///
/// After `.` stand dtype and, when more than one, lanes (`f32x8`). A Const is followed by its value (floats in the
/// shortest decimal form that reads back exactly) or `Invalid`; other args stand in brackets: integers, then a quoted
/// text. Range: axis kind and id. Reduce and ReduceAxes: the operation first. Data of a Buffer is not part of the text.
/// Numbers follow the order of visiting, so equal graphs have equal texts.
std::string print_text(std::span<const Node> roots);
std::string print_text(const Node& root);

/// Reads the textual form into `graph` and returns the roots: what `=>` lists, else the last node. Comments go from
/// `//` to the end of the line. Text of any origin is safe: shapes and args are checked before a node is made.
/// Errors: InvalidArgument, beginning with the line number.
Result<std::vector<Node>> parse_text(Graph& graph, std::string_view text);

/// Reads Layout::to_string() of a buffer with `rank` dims. Errors: InvalidArgument.
Result<Layout> parse_layout(std::string_view text, int rank);

/// One readable line: `(L0*4 + R1)//3`, `where(L0 < 3, L0, Invalid)`. For messages and debugging; does not parse
/// back. Parts deeper or longer than a line can hold are printed as `…`.
std::string print_expr(const Node& node);

}  // namespace ignis::ir
