#include "ignis/codegen/compile/test_program.h"

#include <gtest/gtest.h>

#include <functional>

namespace ignis::codegen {
namespace {

using ir::Arg;
using ir::Node;
using ir::Op;
using testing::ProgramBuilder;

constexpr DType kF32 = DType::Float32, kI32 = DType::Int32, kI64 = DType::Int64,
                kBool = DType::Bool;

/// One way to break a program, and a piece of the sentence that has to say so.
struct Violation {
  const char* name;
  const char* message;
  std::function<void(ProgramBuilder&)> build;
};

std::ostream& operator<<(std::ostream& os, const Violation& v) { return os << v.name; }

Node f32(ProgramBuilder& b, double v = 1) { return b.constant_float(kF32, v); }
Node i64(ProgramBuilder& b, int64_t v = 1) { return b.constant(kI64, v); }
Node vec(ProgramBuilder& b, DType d = kF32, int lanes = 4) {
  return b.broadcast(is_float(d) ? b.constant_float(d, 1) : b.constant(d, 1), lanes);
}

const std::vector<Violation>& violations() {
  static const std::vector<Violation> list = {
      // ---- order and nesting
      {"SourceLater", "does not stand before it",
       [](ProgramBuilder& b) {
         const Node x = b.graph().constant_float(kF32, 1), y = b.graph().constant_float(kF32, 2);
         b.alu(Op::Add, {x, y});
       }},
      {"SourceOfClosedLoop", "only in a loop closed since",
       [](ProgramBuilder& b) {
         const Node n = i64(b, 8), r = b.range(n);
         const Node inside = b.alu(Op::Add, {r, n});
         b.end(r);
         b.program().list.push_back(b.graph().alu(Op::Mul, {inside, n}));
       }},
      {"StandsTwice", "stands twice",
       [](ProgramBuilder& b) { b.program().list.push_back(f32(b)); }},
      {"CrossedLoops", "innermost open loop",
       [](ProgramBuilder& b) {
         const Node outer = b.range(i64(b, 4));
         b.range(i64(b, 4));
         b.end(outer);
       }},
      {"LoopLeftOpen", "ends inside a loop", [](ProgramBuilder& b) { b.range(i64(b, 4)); }},
      {"OtherGraph", "another graph",
       [](ProgramBuilder& b) {
         static ir::Graph other;
         b.program().list.push_back(other.constant(kI64, 1));
       }},
      {"BufferBeyondCount", "names a buffer beyond",
       [](ProgramBuilder& b) {
         b.param(3, kF32);
         b.program().buffer_count = 3;
       }},
      // ---- dtypes
      {"WeakConstant", "has a dtype that programs do not have",
       [](ProgramBuilder& b) { b.constant(DType::WeakInt, 1); }},
      {"NarrowFloatParam", "has a dtype that programs do not have",
       [](ProgramBuilder& b) { b.param(0, DType::Float16); }},
      {"Invalid", "Invalid",
       [](ProgramBuilder& b) { b.program().list.push_back(b.graph().invalid(kI64)); }},
      {"RangeNotInt64", "int64 scalar",
       [](ProgramBuilder& b) { b.add(Op::Range, kI32, {b.constant(kI32, 4)}, Arg{{0, 0}, {}}); }},
      {"SpecialUnknown", "unknown special value", [](ProgramBuilder& b) { b.special("lane"); }},
      {"SpecialNotInt64", "int64 scalar",
       [](ProgramBuilder& b) { b.add(Op::Special, kI32, {}, Arg{{}, "part"}); }},
      // ---- memory
      {"IndexOfNoParam", "not [param, offset]",
       [](ProgramBuilder& b) { b.add(Op::Index, kF32, {f32(b), i64(b)}); }},
      {"IndexOfManyOffsets", "not [param, offset]",
       [](ProgramBuilder& b) { b.add(Op::Index, kF32, {b.param(0, kF32), i64(b), i64(b, 2)}); }},
      {"IndexOffsetInt32", "offset other than an int64",
       [](ProgramBuilder& b) { b.index(b.param(0, kF32), b.constant(kI32, 0)); }},
      {"LoadDtype", "another dtype than its buffer",
       [](ProgramBuilder& b) { b.add(Op::Load, kI32, {b.index(b.param(0, kF32), 0)}); }},
      {"LoadOfValue", "neither a register nor an index",
       [](ProgramBuilder& b) { b.add(Op::Load, kF32, {f32(b)}); }},
      {"LoadRegLanes", "differs in dtype or lanes from its register",
       [](ProgramBuilder& b) { b.add(Op::Load, kF32, {b.reg(kF32, 8)}, {}, 4); }},
      {"LoadAlternativeLanes", "from its alternative",
       [](ProgramBuilder& b) {
         b.add(Op::Load, kF32, {b.index(b.param(0, kF32), 0), f32(b), b.constant(kBool, 1)}, {}, 4);
       }},
      {"LoadGateDtype", "gate that is no bool",
       [](ProgramBuilder& b) {
         b.load(b.index(b.param(0, kF32), 0), f32(b), b.constant(kI32, 1));
       }},
      {"LoadGateLanes", "gate that is no bool of 1 or its own lanes",
       [](ProgramBuilder& b) { b.load(b.index(b.param(0, kF32), 0), vec(b), vec(b, kBool, 8)); }},
      {"LoadTwoSources", "[index, alternative, gate]",
       [](ProgramBuilder& b) { b.add(Op::Load, kF32, {b.index(b.param(0, kF32), 0), f32(b)}); }},
      {"StoreDtype", "another dtype than its buffer's",
       [](ProgramBuilder& b) { b.store(b.index(b.param(0, kF32), 0), b.constant(kI32, 1)); }},
      {"StoreToValue", "neither a register nor an index",
       [](ProgramBuilder& b) { b.store(f32(b), f32(b)); }},
      {"StoreRegLanes", "from its register",
       [](ProgramBuilder& b) { b.store(b.reg(kF32, 8), vec(b)); }},
      {"StoreRegGated", "register behind a gate",
       [](ProgramBuilder& b) { b.store(b.reg(kF32, 4), vec(b), vec(b, kBool)); }},
      {"StoreGateLanes", "gate that is no bool",
       [](ProgramBuilder& b) { b.store(b.index(b.param(0, kF32), 0), vec(b), vec(b, kBool, 2)); }},
      // ---- vectors
      {"StackCount", "one source for each lane",
       [](ProgramBuilder& b) { b.add(Op::Stack, kF32, {f32(b), f32(b)}, {}, 4); }},
      {"StackOfVectors", "no scalar",
       [](ProgramBuilder& b) { b.add(Op::Stack, kF32, {vec(b), vec(b)}, {}, 2); }},
      {"BroadcastOfVector", "does not broadcast a scalar",
       [](ProgramBuilder& b) { b.add(Op::Broadcast, kF32, {vec(b)}, {}, 8); }},
      {"ExtractLane", "names no lane",
       [](ProgramBuilder& b) { b.add(Op::Extract, kF32, {vec(b)}, Arg{{4}, {}}); }},
      {"ShuffleLane", "lane beyond its sources",
       [](ProgramBuilder& b) { b.add(Op::Shuffle, kF32, {vec(b), vec(b)}, Arg{{0, 8}, {}}, 2); }},
      {"ShuffleCount", "one source lane for each lane",
       [](ProgramBuilder& b) {
         b.add(Op::Shuffle, kF32, {vec(b), vec(b)}, Arg{{0, 1, 2}, {}}, 2);
       }},
      // ---- elementwise
      {"OperandLanes", "operand of other lanes",
       [](ProgramBuilder& b) { b.add(Op::Add, kF32, {vec(b), f32(b)}, {}, 4); }},
      {"OperandDtype", "operand of another dtype",
       [](ProgramBuilder& b) { b.add(Op::Add, kF32, {f32(b), b.constant(kI32, 1)}); }},
      {"CompareDtypes", "compares different dtypes",
       [](ProgramBuilder& b) { b.add(Op::Cmplt, kBool, {f32(b), b.constant(kI32, 1)}); }},
      {"CompareResult", "comparison but not bool",
       [](ProgramBuilder& b) { b.add(Op::Cmplt, kF32, {f32(b), f32(b)}); }},
      {"WhereCondition", "condition other than bool",
       [](ProgramBuilder& b) { b.add(Op::Where, kF32, {b.constant(kI32, 1), f32(b), f32(b)}); }},
      {"ShiftOfFloat", "shifts other than integers",
       [](ProgramBuilder& b) { b.alu(Op::Shl, {f32(b), f32(b)}); }},
      {"BitcastSize", "size of an element",
       [](ProgramBuilder& b) { b.add(Op::Bitcast, kI64, {f32(b)}); }},
      {"AndOfFloats", "not defined for its dtype",
       [](ProgramBuilder& b) { b.alu(Op::And, {f32(b), f32(b)}); }},
      {"SumOfBools", "not defined for its dtype",
       [](ProgramBuilder& b) { b.alu(Op::Add, {b.constant(kBool, 1), b.constant(kBool, 1)}); }},
      {"FdivOfInts", "not defined for its dtype",
       [](ProgramBuilder& b) { b.alu(Op::Fdiv, {i64(b), i64(b)}); }},
      {"ExpNotLowered", "not defined for its dtype",
       [](ProgramBuilder& b) { b.alu(Op::Exp, {f32(b)}); }},
      {"FloordivNotLowered", "not defined for its dtype",
       [](ProgramBuilder& b) { b.alu(Op::Floordiv, {i64(b), i64(b)}); }},
      {"Group", "not legal in a program",
       [](ProgramBuilder& b) { b.add(Op::Group, DType::Void, {}); }},
  };
  return list;
}

class VerifyProgram : public ::testing::TestWithParam<Violation> {};

TEST_P(VerifyProgram, NamesTheViolation) {
  ProgramBuilder b("broken");
  GetParam().build(b);
  const Status status = verify_program(b.program());
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code(), ErrorCode::Internal);
  EXPECT_NE(status.error().message().find(GetParam().message), std::string::npos)
      << status.error().message();
  EXPECT_NE(status.error().message().find("broken"), std::string::npos);
  // Both renderers refuse it the same way instead of running into it.
  EXPECT_FALSE(compile_llvm(b.program(), make_target(Isa::Avx2)));
  EXPECT_FALSE(render_c(b.program(), make_target(Isa::Avx2)));
}

std::string violation_name(const ::testing::TestParamInfo<Violation>& test) {
  return test.param.name;
}
INSTANTIATE_TEST_SUITE_P(All, VerifyProgram, ::testing::ValuesIn(violations()), violation_name);

TEST(VerifyProgramAccepts, EqualStoresAndLoopsInTwoPlaces) {
  ProgramBuilder b("ok");
  const Node out = b.param(0, kF32), zero = f32(b, 0), reg = b.reg(kF32, 1);
  const Node n = i64(b, 4);
  b.store(reg, zero);
  const Node r = b.range(n);
  b.store(b.index(out, r), b.load_reg(reg));
  b.end(r);
  b.store(reg, zero);             // the same node again
  b.program().list.push_back(r);  // the same loop again, after it was closed
  b.program().list.push_back(b.graph().make(Op::End, DType::Void, {r}));
  const Status status = verify_program(b.program());
  EXPECT_TRUE(status) << status.error().to_string();
}

}  // namespace
}  // namespace ignis::codegen
