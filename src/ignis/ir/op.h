#pragma once

#include "ignis/base/result.h"

#include <cstdint>
#include <string_view>

namespace ignis::ir {

// clang-format off
// name, number of sources (-1: any), class. The order is the order key of nodes: do not sort.
#define IGNIS_IR_OPS(X)                                                                          \
  /* values and storage */                                                                       \
  X(Const, 0, Value)       /* arg: value, or Invalid */                                          \
  X(Buffer, 0, Value)      /* arg: slot, dims…; storage owned by a tensor graph (a leaf) */      \
  X(Param, 0, Value)       /* arg: ParamArg; function input or kernel argument */                \
  X(Special, 0, Value)     /* arg: name, [min, max]; "part", "parts" or a symbolic variable */   \
  X(Stack, -1, Value)      /* vector of equal scalars; tensor stack along a new leading axis */  \
  /* elementwise, unary */                                                                       \
  X(Cast, 1, Unary) X(Bitcast, 1, Unary)                                                         \
  X(Neg, 1, Unary) X(Trunc, 1, Unary) X(Rint, 1, Unary) /* to even */                            \
  X(Sqrt, 1, Unary) X(Reciprocal, 1, Unary)                                                      \
  X(Exp2, 1, Unary) X(Log2, 1, Unary) X(Exp, 1, Unary) X(Log, 1, Unary)                          \
  X(Sin, 1, Unary) X(Cos, 1, Unary) X(Erf, 1, Unary) X(Tanh, 1, Unary) X(Atan, 1, Unary)         \
  /* elementwise, binary */                                                                      \
  X(Add, 2, Binary) X(Sub, 2, Binary) X(Mul, 2, Binary) X(Fdiv, 2, Binary)                       \
  X(Cdiv, 2, Binary) X(Cmod, 2, Binary) X(Floordiv, 2, Binary) X(Floormod, 2, Binary)            \
  X(Max, 2, Binary) X(Min, 2, Binary) X(Pow, 2, Binary)                                          \
  X(And, 2, Binary) X(Or, 2, Binary) X(Xor, 2, Binary) X(Shl, 2, Binary) X(Shr, 2, Binary)       \
  X(Cmplt, 2, Binary) X(Cmpne, 2, Binary) X(Cmpeq, 2, Binary)                                    \
  /* elementwise, ternary */                                                                     \
  X(Where, 3, Ternary)     /* [condition, then, else] */                                         \
  X(Mulacc, 3, Ternary)    /* a * b + c, rounded once where the target has it */                 \
  /* movement: tensor graph only */                                                              \
  X(Reshape, 1, Movement)  /* arg: dims */                                                       \
  X(Expand, 1, Movement)   /* arg: dims; same rank, stretches extents of 1 */                    \
  X(Permute, 1, Movement)  /* arg: perm; output axis i is source axis perm[i] */                 \
  X(Pad, 1, Movement)      /* arg: (lo, hi) per axis, both >= 0; pads with 0 */                  \
  X(Shrink, 1, Movement)   /* arg: (begin, end) per axis */                                      \
  X(Flip, 1, Movement)     /* arg: 0 or 1 per axis */                                            \
  X(Window, 1, Movement)   /* arg: axis, kernel, stride, dilation; see node.h */                 \
  X(Cat, -1, Movement)     /* arg: axis; concatenation */                                        \
  X(Gather, -1, Movement)  /* [x, i0, i1…]: leading axes of x indexed by equal-shaped integers */\
  X(Contiguous, 1, Movement) /* materialise here */                                              \
  /* reduction */                                                                                \
  X(ReduceAxes, 1, Reduce) /* arg: op, axes…; removes the axes (graph form) */                   \
  X(Reduce, -1, Reduce)    /* [value, range…] arg: op (range form, kernels) */                   \
  /* kernels */                                                                                  \
  X(Range, -1, Loop)       /* [end] or [end, dep…] arg: id, AxisKind; 0 … end - 1 */             \
  X(Index, -1, Memory)     /* [param, i…]: pointer to an element; -1 dims left is an error */    \
  X(Load, -1, Memory)      /* [index] or [index, alternative, gate] */                           \
  X(Store, -1, Memory)     /* [index, value] or [index, value, gate] */                          \
  X(Reg, 0, Memory)        /* arg: id; a scalar or vector register variable */                   \
  X(End, -1, Loop)         /* [effect, range…]: closes ranges */                                 \
  X(After, -1, Loop)       /* [x, dep…]: x, ordered after deps */                                \
  X(Group, -1, Loop)       /* effects in any order */                                            \
  X(Sink, -1, Loop)        /* root; arg text: kernel name */                                     \
  /* vectors: program stage only */                                                              \
  X(Broadcast, 1, Vector)  /* scalar to `lanes` lanes */                                         \
  X(Extract, 1, Vector)    /* arg: lane */                                                       \
  X(Shuffle, 2, Vector)    /* arg: lane of a ++ b for each result lane */
// clang-format on

enum class Op : uint16_t {
#define IGNIS_IR_OP_ENUM(name, arity, cls) name,
  IGNIS_IR_OPS(IGNIS_IR_OP_ENUM)
#undef IGNIS_IR_OP_ENUM
};
#define IGNIS_IR_OP_COUNT(name, arity, cls) +1
inline constexpr int kOpCount = 0 IGNIS_IR_OPS(IGNIS_IR_OP_COUNT);
#undef IGNIS_IR_OP_COUNT

enum class OpClass : uint8_t {
  Value,
  Unary,
  Binary,
  Ternary,
  Movement,
  Reduce,
  Loop,
  Memory,
  Vector
};

/// "Add", "ReduceAxes": the enumerator's spelling, also used by the text form.
std::string_view to_string(Op op);
Result<Op> parse_op(std::string_view text);
OpClass op_class(Op op);
/// Number of sources, or -1 when any number is legal.
int op_arity(Op op);

inline bool is_elementwise(Op op) { return op >= Op::Cast && op <= Op::Mulacc; }
inline bool is_movement(Op op) { return op_class(op) == OpClass::Movement; }
inline bool is_comparison(Op op) { return op >= Op::Cmplt && op <= Op::Cmpeq; }
/// Add Mul Max Min Cmpne Cmpeq Xor And Or.
bool is_commutative(Op op);
/// Add Mul And Or Max Min.
bool is_associative(Op op);

/// What a loop over a range is for. Printed as one letter.
enum class AxisKind : uint8_t {
  Loop,    ///< L: output axis, plain loop
  Reduce,  ///< R: reduce axis, plain loop
  Thread,  ///< t: cut between threads
  Vector,  ///< v: lanes
  Unroll,  ///< u: copied body (register tile)
};
char letter(AxisKind kind);

}  // namespace ignis::ir
