#include "ignis/ir/text.h"

#include "ignis/ir/simplify.h"
#include "ignis/ir/test_eval.h"
#include "ignis/ir/verify.h"

#include <gtest/gtest.h>

#include <cmath>

namespace ignis::ir {
namespace {

using testing::test_seed;

// A kernel with a gate, a reduction, a layout with a halo, every kind of constant.
Node sample_kernel(Graph& g) {
  const auto weak = [&](int64_t v) { return g.constant(DType::WeakInt, v); };
  const Shape shape{3, 20};
  const Node x = g.param(DType::Float32, {0, "x \"quoted\" \\ \n", shape,
                                          Layout::permuted(shape, {1, 0}, {0, 1}, {0, 2})});
  const Node y = g.param(DType::Float32, {1, "y", {16}, Layout::blocked({16}, {0}, 0, 4)});
  const Node i = g.range(16, 0, AxisKind::Loop), r = g.range(3, 1, AxisKind::Reduce);
  const Node at = g.alu(Op::Add, {i, weak(-1)});
  const Node gate = g.alu(Op::Cmplt, {weak(-1), at});
  const Node index =
      g.make(Op::Index, DType::Float32, {x, r, g.alu(Op::Where, {gate, at, g.invalid()})});
  const Node load = g.make(Op::Load, DType::Float32, {index});
  const Node sum =
      g.make(Op::Reduce, DType::Float32, {load, r}, Arg{{static_cast<int64_t>(Op::Max)}, {}});
  const Node value = g.alu(Op::Mul, {sum, g.constant_float(DType::Float32, 0.1)});
  const Node store =
      g.make(Op::Store, DType::Void, {g.make(Op::Index, DType::Float32, {y, i}), value});
  return g.make(Op::Sink, DType::Void, {store}, Arg{{}, "kernel_1"});
}

TEST(Text, GoldenLines) {
  Graph g;
  EXPECT_EQ(
      print_text(sample_kernel(g)),
      "%0 = Param.f32 [1, \"y\", shape 16, layout 0:4x4,0:1x4]\n"
      "%1 = Const.weakint 16\n"
      "%2 = Range.weakint %1 [L0]\n"
      "%3 = Index.f32 %0, %2\n"
      "%4 = Param.f32 [0, \"x \\\"quoted\\\" \\\\ \\x0a\", shape 3x20, layout 1:1x23,0:1x3;1+1+2]\n"
      "%5 = Const.weakint 3\n"
      "%6 = Range.weakint %5 [R1]\n"
      "%7 = Const.weakint -1\n"
      "%8 = Add.weakint %2, %7\n"
      "%9 = Cmplt.bool %7, %8\n"
      "%10 = Const.weakint Invalid\n"
      "%11 = Where.weakint %9, %8, %10\n"
      "%12 = Index.f32 %4, %6, %11\n"
      "%13 = Load.f32 %12\n"
      "%14 = Reduce.f32 %13, %6 [Max]\n"
      "%15 = Const.f32 0.10000000149011612\n"
      "%16 = Mul.f32 %14, %15\n"
      "%17 = Store.void %3, %16\n"
      "%18 = Sink.void %17 [\"kernel_1\"]\n"
      "=> %18\n");
}

void expect_round_trip(Graph& g, const Node& root) {
  const std::string text = print_text(root);
  // Into the same graph: the very same nodes. Into another: the same structure.
  const auto same = parse_text(g, text);
  ASSERT_TRUE(same) << same.error().to_string() << "\n" << text;
  EXPECT_EQ(same->at(0), root) << text;
  Graph other;
  const auto copy = parse_text(other, text);
  ASSERT_TRUE(copy);
  EXPECT_EQ(content_key(copy->at(0)), content_key(root));
  EXPECT_EQ(print_text(copy->at(0)), text);
}

TEST(Text, KernelRoundTrip) {
  Graph g;
  expect_round_trip(g, sample_kernel(g));
}

TEST(Text, ConstantsAreExact) {
  Graph g;
  for (const double v : {0.0, -0.0, 1.0, 0.1, -1e-320, 1e300, static_cast<double>(INFINITY),
                         -static_cast<double>(INFINITY), static_cast<double>(NAN), 5e-324}) {
    for (const DType d : {DType::Float64, DType::Float32, DType::Float16, DType::BFloat16,
                          DType::Fp8E5M2, DType::WeakFloat}) {
      expect_round_trip(g, g.constant_float(d, v));
    }
  }
  for (const int64_t v : {int64_t{0}, int64_t{1}, int64_t{-1}, std::numeric_limits<int64_t>::min(),
                          std::numeric_limits<int64_t>::max()}) {
    for (const DType d :
         {DType::Bool, DType::WeakInt, DType::Int8, DType::UInt8, DType::Int64, DType::UInt64}) {
      expect_round_trip(g, g.constant(d, v));
    }
  }
  EXPECT_NE(g.constant_float(DType::Float32, 0.0), g.constant_float(DType::Float32, -0.0));
  EXPECT_NE(g.constant(DType::Int32, 1), g.constant_float(DType::Float32, 1.0));
  EXPECT_NE(g.constant(DType::Int32, 1), g.constant(DType::Bool, 1));
  EXPECT_EQ(g.constant_float(DType::Float32, NAN), g.constant_float(DType::Float32, -NAN));
}

TEST(Text, TensorGraphRoundTrip) {
  Graph g;
  const Node x = g.param(DType::Float32, {0, "input", {1, 3, 8, 8}, {}});
  const Node padded = g.make(Op::Pad, DType::Float32, {x}, Arg{{0, 0, 0, 0, 1, 1, 1, 1}, {}});
  const Node window = g.make(Op::Window, DType::Float32, {padded}, Arg{{2, 3, 2, 1}, {}});
  const Node sum = g.make(Op::ReduceAxes, DType::Float32, {window},
                          Arg{{static_cast<int64_t>(Op::Add), 1, 4}, {}});
  const Node flat = g.make(Op::Reshape, DType::Float32, {sum}, Arg{{40}, {}});
  const Node half = g.make(Op::Shrink, DType::Float32, {flat}, Arg{{0, 20}, {}});
  const Node both =
      g.make(Op::Cat, DType::Float32,
             {half, g.make(Op::Flip, DType::Float32, {half}, Arg{{1}, {}})}, Arg{{0}, {}});
  expect_round_trip(g, g.make(Op::Contiguous, DType::Float32, {both}));
  expect_round_trip(g, g.buffer(DType::Int8, {2, 5}));
  // A halo of zeros has no short form.
  Layout zeros = Layout::planar({4});
  zeros.halo_lo = zeros.halo_hi = {0};
  expect_round_trip(g, g.param(DType::Float32, {3, "z", {4}, zeros}));
  expect_round_trip(g, g.param(DType::Float32, {4, "scalar", {}, {}}));
}

TEST(Text, SeveralRootsCommentsAndVectors) {
  Graph g;
  const auto roots = parse_text(g,
                                "// a comment\n"
                                "%5 = Reg.f32x8 [3]   // another\n"
                                "\n"
                                "%7 = Load.f32x8 %5 [1]\n"
                                "%9 = Shuffle.f32x2 %7, %7 [0, 15]\n"
                                "=> %7, %9\n");
  ASSERT_TRUE(roots) << roots.error().to_string();
  ASSERT_EQ(roots->size(), 2u);
  EXPECT_EQ((*roots)[1].lanes(), 2);
  EXPECT_EQ(
      print_text(*roots),
      "%0 = Reg.f32x8 [3]\n%1 = Load.f32x8 %0 [1]\n%2 = Shuffle.f32x2 %1, %1 [0, 15]\n=> %1, %2\n");
}

TEST(Text, ErrorsNameTheLine) {
  Graph g;
  const auto expect_error = [&](const std::string& text, const std::string& part) {
    const auto result = parse_text(g, text);
    ASSERT_FALSE(result) << text;
    EXPECT_EQ(result.error().code(), ErrorCode::InvalidArgument);
    EXPECT_NE(result.error().message().find(part), std::string::npos) << result.error().message();
  };
  expect_error("", "no node");
  expect_error("%0 = Const.i32 1\n%1 = Bad.i32 %0\n", "Line 2: 'Bad'");
  expect_error("%0 = Const.i99 1\n", "Line 1");
  expect_error("%0 = Const.i32 1\n%0 = Const.i32 2\n", "Line 2: %0 is defined twice");
  expect_error("%0 = Neg.i32 %1\n", "%1 is not defined");
  expect_error("%0 = Const.i32 1\n%1 = Add.i32 %0\n", "has 1 sources");
  expect_error("%0 = Param.f32 [0, \"x\", shape 2x3]\n%1 = Reshape.f32 %0 [7]\n",
               "Line 2: Reshape");
  expect_error("%0 = Param.f32 [0, \"x\", shape 4294967296x4294967296]\n", "2^47");
  expect_error("%0 = Param.f32 [0, \"x\", shape 2]\n%1 = Shrink.f32 %0 [0, 3]\n",
               "leaves its source");
  expect_error("%0 = Const.weakint 4\n%1 = Range.weakint %0 [Q1]\n", "kind");
  expect_error("%0 = Const.f32 1 2\n", "Unexpected");
  expect_error("%0 = Sink.void [\"open]\n", "not closed");
  expect_error("=> %0\n", "not defined");
}

// Text of any origin gives nodes or an Error, never a failed check.
TEST(Text, HostileTextIsRefusedOrRead) {
  std::mt19937_64 rng(test_seed());
  const auto pick = [&](size_t below) { return static_cast<size_t>(rng() % below); };
  Graph g;
  std::string kernel = print_text(sample_kernel(g));
  const Node x = g.param(DType::Float32, {0, "input", {2, 3, 8}, {}});
  const Node y = g.make(Op::Window, DType::Float32,
                        {g.make(Op::Pad, DType::Float32, {x}, Arg{{0, 0, 0, 0, 1, 1}, {}})},
                        Arg{{2, 3, 2, 1}, {}});
  const Node z =
      g.make(Op::Permute, DType::Float32,
             {g.make(Op::Reshape, DType::Float32, {y}, Arg{{6, 12}, {}})}, Arg{{1, 0}, {}});
  std::string tensors = print_text(
      g.make(Op::ReduceAxes, DType::Float32, {z}, Arg{{static_cast<int64_t>(Op::Add), 1}, {}}));
  static const char* const kPieces[] = {"%",
                                        "0",
                                        "1",
                                        "9",
                                        "-",
                                        "99999999999999999999",
                                        "[",
                                        "]",
                                        ",",
                                        "x",
                                        "f32",
                                        "Reshape",
                                        "Gather",
                                        "Cat",
                                        "Window",
                                        "Shuffle",
                                        "raw",
                                        "\"",
                                        "\n",
                                        "=>",
                                        "Range.weakint",
                                        " ",
                                        "9223372036854775807",
                                        "-9223372036854775808",
                                        "Param.f32",
                                        ";",
                                        "+",
                                        "Stack.i8"};
  int read = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::string text = pick(2) == 0 ? kernel : tensors;
    for (size_t edits = 1 + pick(4); edits > 0 && !text.empty(); --edits) {
      const size_t at = pick(text.size());
      switch (pick(4)) {
        case 0: text.erase(at, 1 + pick(6)); break;
        case 1: text.insert(at, kPieces[pick(std::size(kPieces))]); break;
        case 2: text[at] = static_cast<char>(rng()); break;
        case 3: {  // one number for another
          const size_t digit = text.find_first_of("0123456789", at);
          if (digit != std::string::npos) text[digit] = static_cast<char>('0' + pick(10));
          break;
        }
      }
    }
    const auto result = parse_text(g, text);
    if (!result) continue;
    ++read;
    const std::string again = print_text(*result);
    const auto second = parse_text(g, again);
    ASSERT_TRUE(second) << again;
    ASSERT_EQ(*second, *result);
    for (const Node& root : *result) {
      print_expr(root);
      // Whatever was read can be simplified and looked at by the verifiers.
      const Node simple = simplify(g, root);
      if (simple.is(Op::Sink)) (void)verify_kernel(simple);
      else (void)verify_tensor(simple);
    }
  }
  EXPECT_GT(read, 100);
}

}  // namespace
}  // namespace ignis::ir
