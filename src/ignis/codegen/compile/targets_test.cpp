// Code for instruction sets that this machine need not have: compiled and looked at, not run.

#include "ignis/codegen/compile/c_compile.h"
#include "ignis/codegen/compile/llvm_compile.h"
#include "ignis/codegen/compile/test_program.h"

#include <gtest/gtest.h>

#include <regex>

namespace ignis::codegen {
namespace {

using ir::Node;
using ir::Op;
using testing::ProgramBuilder;

constexpr DType kF32 = DType::Float32;

/// out = relu(rint(a) * b + c) on one vector, and a as int32.
Program vector_program(int lanes) {
  ProgramBuilder b("vector");
  const Node a = b.load(b.index(b.param(0, kF32), 0), lanes),
             x = b.load(b.index(b.param(1, kF32), 0), lanes),
             c = b.load(b.index(b.param(2, kF32), 0), lanes);
  const Node sum = b.alu(Op::Mulacc, {b.alu(Op::Rint, {a}), x, c});
  const Node zero = b.broadcast(b.constant_float(kF32, 0), lanes);
  b.store(b.index(b.param(3, kF32), 0), b.alu(Op::Max, {sum, zero}));
  b.store(b.index(b.param(4, DType::Int32), 0), b.add(Op::Cast, DType::Int32, {a}, {}, lanes));
  return b.program();
}

int count(const std::string& text, const std::string& pattern) {
  const std::regex expression(pattern);
  return static_cast<int>(std::distance(std::sregex_iterator(text.begin(), text.end(), expression),
                                        std::sregex_iterator()));
}

struct Expectation {
  Isa isa;
  int lanes;
  std::vector<std::string> once;  // instructions that stand there exactly once
  std::vector<std::string> never;
};

TEST(Targets, ChooseTheirInstructions) {
  const std::vector<Expectation> list = {
      {Isa::Sse2, 4, {"mulps", "cvttps2dq", "maxps"}, {"\\bcall", "vmulps", "roundps"}},
      {Isa::Avx2,
       8,
       {"vroundps.*ymm", "vfmadd[0-9]+ps.*ymm", "vmaxps.*ymm", "vcvttps2dq.*ymm"},
       {"\\bcall", "zmm"}},
      {Isa::Avx512,
       16,
       {"vrndscaleps.*zmm", "vfmadd[0-9]+ps.*zmm", "vmaxps.*zmm", "vcvttps2dq.*zmm"},
       {"\\bcall"}},
      {Isa::Neon,
       4,
       {"frintn\\s+v[0-9]+.4s", "fmla\\s+v[0-9]+.4s", "fcvtzs\\s+v[0-9]+.4s"},
       {"\\bbl\\b"}},
  };
  for (const Expectation& e : list) {
    const Target target = make_target(e.isa);
    SCOPED_TRACE(target.name());
    const auto text = assemble_llvm(vector_program(e.lanes), target);
    ASSERT_TRUE(text) << text.error().to_string();
    for (const std::string& pattern : e.once)
      EXPECT_EQ(count(*text, pattern), 1) << pattern << "\n" << *text;
    for (const std::string& pattern : e.never)
      EXPECT_EQ(count(*text, pattern), 0) << pattern << "\n" << *text;
    EXPECT_TRUE(compile_llvm(vector_program(e.lanes), target));
  }
}

TEST(Targets, WithoutFmaMultiplyThenAdd) {
  Target target = make_target(Isa::Avx2);
  target.has_fma = false;
  const auto text = assemble_llvm(vector_program(8), target);
  ASSERT_TRUE(text) << text.error().to_string();
  EXPECT_EQ(count(*text, "vfmadd"), 0) << *text;
  EXPECT_EQ(count(*text, "vmulps"), 1) << *text;
}

TEST(Targets, SeparateMultiplyAndAddStaySeparate) {
  ProgramBuilder b("separate");
  const Node a = b.load(b.index(b.param(0, kF32), 0), 8),
             x = b.load(b.index(b.param(1, kF32), 0), 8);
  b.store(b.index(b.param(2, kF32), 0), b.alu(Op::Add, {b.alu(Op::Mul, {a, x}), a}));
  for (const Isa isa : {Isa::Avx2, Isa::Avx512, Isa::Neon}) {
    const auto text = assemble_llvm(b.program(), make_target(isa));
    ASSERT_TRUE(text) << text.error().to_string();
    EXPECT_EQ(count(*text, "vfmadd|fmla|fmadd"), 0) << *text;
  }
}

TEST(Targets, FillingAndCopyingLoopsCallNothing) {
  // Loops that LLVM's idiom passes would turn into memset and memcpy.
  ProgramBuilder b("fill_and_copy");
  const Node from = b.param(0, kF32), to = b.param(1, kF32), zeros = b.param(2, kF32);
  const Node r = b.range(b.constant(DType::Int64, 4096));
  b.store(b.index(to, r), b.load(b.index(from, r)));
  b.store(b.index(zeros, r), b.constant_float(kF32, 0));
  b.end(r);
  for (const Isa isa : {Isa::Sse2, Isa::Avx2, Isa::Neon}) {
    const auto image =
        compile_llvm(b.program(), make_target(isa));  // fails when a symbol is missing
    EXPECT_TRUE(image) << image.error().to_string();
  }
  const auto image = compile_c(b.program(), make_target(Isa::Avx2));
  EXPECT_TRUE(image) << image.error().to_string();
}

TEST(Targets, OutsideReferencesAreFound) {
  EXPECT_FALSE(check_self_contained("not an object", "bad"));
  const Target target = make_target(Isa::Sse2);
  const auto compiler = find_c_compiler(target);
  ASSERT_TRUE(compiler) << compiler.error().to_string();
  const auto object =
      run_c_compiler("int away(int); int f(int x) { return away(x) + 1; }", target, *compiler);
  ASSERT_TRUE(object) << object.error().to_string();
  const Status status = check_self_contained(*object, "calls");
  ASSERT_FALSE(status);
  EXPECT_NE(status.error().message().find("away"), std::string::npos) << status.error().message();
}

}  // namespace
}  // namespace ignis::codegen
