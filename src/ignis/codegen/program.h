#pragma once

#include "ignis/base/target.h"
#include "ignis/ir/graph.h"

#include <memory>
#include <string>
#include <vector>

namespace ignis::codegen {

/// A lowered kernel: an ordered list of nodes, each after its sources, that a renderer turns into code line by line.
///
/// Legal nodes (verify_program checks them):
///  - Const: scalar of a strong dtype. Param: base pointer of buffer `slot`. Special "part"/"parts": int64 scalar.
///  - Range [end: int64 scalar]: opens a loop, its value is the int64 counter 0 … end-1 (no iteration when end <= 0).
///    End [range] closes it; ranges nest properly. A node is visible to the end of the loop body it stands in.
///  - Reg(id), any lanes: a mutable variable, declared where it stands. Load [reg] reads it, Store [reg, v] sets it;
///    After [Load-of-reg, Store…] does not occur here: list order is execution order. Two Loads of one Reg are two
///    different values when a Store lies between; the builder gives each its own Load node (arg ints = serial).
///  - Index [param, offset: int64 scalar]: address of element `offset`, in elements of the param's dtype.
///  - Load [index] with n lanes reads n consecutive elements; Load [index, alternative, gate]: gate bool with 1 lane
///    guards the whole access, with n lanes each lane; where false, `alternative` (n lanes) is the result and memory
///    is not touched. Store [index, value] and [index, value, gate] likewise. Natural element alignment only.
///  - Stack of n equal scalars: vector. Broadcast: scalar to lanes. Extract(lane). Shuffle(lanes of a ++ b).
///  - Elementwise ops on operands of equal lanes: Cast Bitcast Neg Trunc Rint Sqrt Add Sub Mul Fdiv Cdiv Cmod Max Min
///    And Or Xor Shl Shr Cmplt Cmpne Cmpeq Where Mulacc. Integers wrap. Cdiv/Cmod: the divisor is neither 0 nor
///    (for the lowest dividend) -1: earlier passes guard it. Shift counts are in [0, bits). Float Max/Min: NaN wins.
///    Cast float -> int saturates, NaN gives 0; -> bool is x != 0; bool -> number is 0 or 1.
/// dtypes: Bool (one byte 0/1 in memory), (u)int8 … (u)int64, Float32, Float64. Narrow floats have been lowered to
/// integer operations before, unless the target has them.
struct Program {
  std::string name;
  std::shared_ptr<ir::Graph> graph;  ///< owns the nodes
  std::vector<ir::Node> list;
  int buffer_count = 0;
};

}  // namespace ignis::codegen
