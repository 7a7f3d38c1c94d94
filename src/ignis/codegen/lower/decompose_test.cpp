#include "ignis/codegen/lower/decompose.h"

#include "ignis/codegen/lower/contract.h"
#include "ignis/codegen/lower/test_evaluate.h"
#include "ignis/codegen/lower/transcendental.h"

#include <gtest/gtest.h>

namespace ignis::codegen {
namespace {

using ir::Node;
using ir::Op;
__extension__ typedef __int128 Wide;  // holds every operand and product of 64 bits

Node leaf(ir::Graph& graph, DType dtype, int64_t id) {
  return graph.make(Op::Reg, dtype, std::span<const Node>{}, ir::Arg{{id}, {}});
}

Wide value_of(DType dtype, uint64_t raw) {
  if (is_unsigned(dtype)) return static_cast<Wide>(raw);
  return wrap_int(dtype, static_cast<int64_t>(raw));
}
uint64_t wrap(DType dtype, Wide value) {
  const auto raw = static_cast<uint64_t>(value);
  return bits(dtype) == 64 ? raw : raw & ((uint64_t{1} << bits(dtype)) - 1);
}

/// The written rule of each operation (docs/dtypes.md), on unbounded integers.
uint64_t reference(Op op, DType dtype, uint64_t a, uint64_t b) {
  const Wide x = value_of(dtype, a), y = value_of(dtype, b);
  switch (op) {
    case Op::Shl: return y < 0 || y >= bits(dtype) ? 0 : wrap(dtype, x << static_cast<int>(y));
    case Op::Shr:
      return y < 0 || y >= bits(dtype) ? (x < 0 ? wrap(dtype, -1) : 0)
                                       : wrap(dtype, x >> static_cast<int>(y));
    default: break;
  }
  if (y == 0) return 0;
  const Wide quotient = x / y, rest = x % y;
  const bool off = rest != 0 && (rest < 0) != (y < 0);
  switch (op) {
    case Op::Cdiv: return wrap(dtype, quotient);
    case Op::Cmod: return wrap(dtype, rest);
    case Op::Floordiv: return wrap(dtype, quotient - (off ? 1 : 0));
    default: return wrap(dtype, rest + (off ? y : 0));
  }
}

constexpr DType kIntegers[] = {DType::Int8,  DType::UInt8,  DType::Int16, DType::UInt16,
                               DType::Int32, DType::UInt32, DType::Int64, DType::UInt64};
constexpr Op kOps[] = {Op::Cdiv, Op::Cmod, Op::Floordiv, Op::Floormod, Op::Shl, Op::Shr};

std::vector<uint64_t> edges(DType dtype, std::mt19937_64& rng) {
  std::vector<uint64_t> values;
  for (const int64_t v :
       {int64_t{0}, int64_t{1}, int64_t{-1}, int64_t{2}, int64_t{-2}, int64_t{3}, int64_t{7},
        int64_t{8}, int64_t{-7}, int64_t{31}, int64_t{32}, int64_t{63}, int64_t{64}, int_min(dtype),
        int_max(dtype), (int64_t{1} << 31), (int64_t{1} << 32) + 1, -(int64_t{1} << 32)}) {
    values.push_back(wrap(dtype, v));
  }
  for (int i = 0; i < 20; ++i)
    values.push_back(wrap(dtype, static_cast<int64_t>(rng() >> (rng() % 64))));
  return values;
}

TEST(Decompose, IntegerRulesOfEveryDtype) {
  std::mt19937_64 rng(test_seed());
  for (const DType dtype : kIntegers) {
    const std::vector<uint64_t> values = edges(dtype, rng);
    Column xs, ys;
    for (const uint64_t x : values) {
      for (const uint64_t y : values) {
        xs.push_back(x);
        ys.push_back(y);
      }
    }
    for (const Op op : kOps) {
      SCOPED_TRACE(std::string(to_string(dtype)) + " " + std::string(ir::to_string(op)));
      ir::Graph graph;
      const Node a = leaf(graph, dtype, 0), b = leaf(graph, dtype, 1);
      Evaluator evaluator(true);
      evaluator.set(a, xs);
      evaluator.set(b, ys);
      const Node both = decompose_ops(graph, graph.alu(op, {a, b}), make_target(Isa::Avx2));
      const Column& result = evaluator.of(both);
      for (size_t i = 0; i < xs.size(); ++i) {
        ASSERT_EQ(result[i], reference(op, dtype, xs[i], ys[i]))
            << static_cast<int64_t>(value_of(dtype, xs[i])) << " "
            << static_cast<int64_t>(value_of(dtype, ys[i]));
      }
      // The same with a constant on the right, which takes the short ways.
      for (const uint64_t y : values) {
        const Node c = graph.constant(dtype, static_cast<int64_t>(y));
        const Column& fixed =
            evaluator.of(decompose_ops(graph, graph.alu(op, {a, c}), make_target(Isa::Avx2)));
        for (size_t i = 0; i < xs.size(); i += values.size()) {
          ASSERT_EQ(fixed[i], reference(op, dtype, xs[i], y))
              << static_cast<int64_t>(value_of(dtype, xs[i])) << " by "
              << static_cast<int64_t>(value_of(dtype, y));
        }
      }
    }
  }
}

bool has_op(const Node& root, Op op) {
  for (const Node& n : ir::toposort(root)) {
    if (n.is(op)) return true;
  }
  return false;
}

TEST(Decompose, RangesMakeGuardsUnnecessary) {
  ir::Graph graph;
  const Node r = graph.cast(graph.range(100, 0, ir::AxisKind::Loop), DType::Int32);
  const Target target = make_target(Isa::Avx2);
  const auto lowered = [&](Op op, int64_t c) {
    return decompose_ops(graph, graph.alu(op, {r, graph.constant(DType::Int32, c)}), target);
  };
  EXPECT_EQ(lowered(Op::Floordiv, 7).op(), Op::Cdiv);
  EXPECT_EQ(lowered(Op::Floormod, 7).op(), Op::Cmod);
  EXPECT_EQ(lowered(Op::Floordiv, 8).op(), Op::Shr);
  EXPECT_EQ(lowered(Op::Floormod, 8).op(), Op::And);
  EXPECT_EQ(lowered(Op::Cdiv, 8).op(), Op::Shr);
  EXPECT_EQ(lowered(Op::Shl, 3).op(), Op::Shl);
  const Node n =
      graph.alu(Op::Add, {r, graph.constant(DType::Int32, 1)});  // 1 … 100: a safe divisor
  const Node quotient = decompose_ops(graph, graph.alu(Op::Floordiv, {r, n}), target);
  EXPECT_EQ(quotient.op(), Op::Cdiv);
  EXPECT_FALSE(has_op(quotient, Op::Where));
}

TEST(Decompose, FloatForms) {
  ir::Graph graph;
  const Node x = leaf(graph, DType::Float32, 0), y = leaf(graph, DType::Float32, 1);
  const Target target = make_target(Isa::Avx2);
  const auto number = [&](double v) { return graph.constant_float(DType::Float32, v); };
  EXPECT_EQ(decompose_ops(graph, graph.alu(Op::Reciprocal, {x}), target).op(), Op::Fdiv);
  EXPECT_EQ(decompose_ops(graph, graph.alu(Op::Fdiv, {x, number(8)}), target).op(), Op::Mul);
  EXPECT_EQ(decompose_ops(graph, graph.alu(Op::Fdiv, {x, number(3)}), target).op(), Op::Fdiv);
  const Node size =
      graph.alu(Op::Where, {graph.alu(Op::Cmplt, {x, number(0)}), graph.alu(Op::Neg, {x}),
                            graph.alu(Op::Add, {x, number(0)})});
  EXPECT_FALSE(has_op(decompose_ops(graph, size, target), Op::Where));
  Evaluator evaluator(true);
  Column xs, ys;
  for (const float a : {5.f, -5.f, 7.5f, -0.f, 1e10f, -3.f}) {
    for (const float b : {3.f, -3.f, 2.5f, -0.1f, INFINITY}) {
      xs.push_back(raw_of(a));
      ys.push_back(raw_of(b));
    }
  }
  evaluator.set(x, xs);
  evaluator.set(y, ys);
  for (const Op op : {Op::Cmod, Op::Floormod}) {
    const Column& result = evaluator.of(decompose_ops(graph, graph.alu(op, {x, y}), target));
    for (size_t i = 0; i < xs.size(); ++i) {
      const float a = read_as<float>(xs[i]), b = read_as<float>(ys[i]);
      if (std::abs(a / b) > 0x1p24f) continue;  // beyond: no more than a bounded result
      float expected = std::fmod(a, b);
      if (op == Op::Floormod && expected != 0 && (expected < 0) != (b < 0)) expected += b;
      EXPECT_EQ(read_as<float>(result[i]), expected) << a << " " << b;
    }
  }
}

TEST(Decompose, BoolArithmeticIsLogic) {
  ir::Graph graph;
  const Node a = leaf(graph, DType::Bool, 0), b = leaf(graph, DType::Bool, 1);
  for (const auto& [from, to] :
       {std::pair{Op::Add, Op::Or}, {Op::Mul, Op::And}, {Op::Max, Op::Or}, {Op::Min, Op::And}}) {
    EXPECT_EQ(decompose_ops(graph, graph.alu(from, {a, b}), make_target(Isa::Avx2)).op(), to);
  }
}

TEST(Decompose, IntegerPowersWrap) {
  ir::Graph graph;
  const Node x = leaf(graph, DType::Int32, 0), y = leaf(graph, DType::Int32, 1);
  Evaluator evaluator(true);
  Column xs, ys;
  std::vector<int64_t> expected;
  for (const int64_t base : {0, 1, -1, 2, 3, -7}) {
    for (const int64_t e : {0, 1, 2, 5, 33, -1, -2}) {
      xs.push_back(wrap(DType::Int32, base));
      ys.push_back(wrap(DType::Int32, e));
      uint32_t power = 1;
      for (int64_t i = 0; i < e; ++i) power *= static_cast<uint32_t>(base);
      expected.push_back(e >= 0       ? static_cast<int32_t>(power)
                         : base == 1  ? 1
                         : base == -1 ? (e % 2 == 0 ? 1 : -1)
                                      : 0);
    }
  }
  evaluator.set(x, xs);
  evaluator.set(y, ys);
  const Column& result =
      evaluator.of(decompose_ops(graph, graph.alu(Op::Pow, {x, y}), make_target(Isa::Avx2)));
  for (size_t i = 0; i < xs.size(); ++i)
    EXPECT_EQ(static_cast<int32_t>(result[i]), expected[i]) << i;
}

TEST(Contract, ProductsOfOneUserJoinTheirSum) {
  ir::Graph graph;
  const Node a = leaf(graph, DType::Float32, 0), b = leaf(graph, DType::Float32, 1),
             c = leaf(graph, DType::Float32, 2);
  const Node product = graph.alu(Op::Mul, {a, b});
  const Target fused = make_target(Isa::Avx2), plain = make_target(Isa::Sse2);
  const auto contracted = [&](const Node& n) {
    return contract_multiply_add(graph, n, FloatLevel::Finite, fused);
  };
  EXPECT_EQ(contracted(graph.alu(Op::Add, {product, c})),
            graph.make(Op::Mulacc, DType::Float32, {a, b, c}));
  EXPECT_EQ(contracted(graph.alu(Op::Add, {c, product})).op(), Op::Mulacc);
  EXPECT_EQ(contracted(graph.alu(Op::Sub, {product, c})).src(2).op(), Op::Neg);
  EXPECT_EQ(contracted(graph.alu(Op::Sub, {c, product})).src(0).op(), Op::Neg);
  const Node twice = graph.alu(Op::Max, {graph.alu(Op::Add, {product, c}), product});
  EXPECT_FALSE(has_op(contracted(twice), Op::Mulacc));
  const Node sum = graph.alu(Op::Add, {product, c});
  EXPECT_EQ(contract_multiply_add(graph, sum, FloatLevel::Strict, fused), sum);
  EXPECT_EQ(contract_multiply_add(graph, sum, FloatLevel::Finite, plain), sum);
  const Node i = leaf(graph, DType::Int32, 3);
  const Node integers = graph.alu(Op::Add, {graph.alu(Op::Mul, {i, i}), i});
  EXPECT_EQ(contracted(integers), integers);
}

TEST(Transcendental, NothingIsLeft) {
  ir::Graph graph;
  const Node x = leaf(graph, DType::Float32, 0);
  Node all = x;
  constexpr Op kFunctions[] = {Op::Exp, Op::Exp2, Op::Log,  Op::Log2, Op::Sin,
                               Op::Cos, Op::Erf,  Op::Tanh, Op::Atan};
  for (const Op op : kFunctions) all = graph.alu(Op::Add, {all, graph.alu(op, {x})});
  all = graph.alu(Op::Pow, {all, x});
  const Node lowered =
      lower_transcendentals(graph, all, make_target(Isa::Avx2), FloatLevel::Strict);
  for (const Op op : kFunctions) EXPECT_FALSE(has_op(lowered, op)) << ir::to_string(op);
  EXPECT_FALSE(has_op(lowered, Op::Pow));
}

/// x / (1 + exp(-x)) as a model states it, and how many operations it takes.
TEST(Transcendental, ASigmoidJoinsItsReaders) {
  ir::Graph graph;
  const Target target = make_target(Isa::Avx2);
  const Node x = leaf(graph, DType::Float32, 0), one = graph.constant_float(DType::Float32, 1);
  const Node e = graph.alu(Op::Exp, {graph.alu(Op::Neg, {x})});
  const Node sigmoid = graph.alu(Op::Reciprocal, {graph.alu(Op::Add, {e, one})});
  const Node silu = graph.alu(Op::Mul, {x, sigmoid});
  const auto size = [&](const Node& n, FloatLevel level) {
    return ir::toposort(lower_transcendentals(graph, n, target, level)).size();
  };
  const Node joined = lower_transcendentals(graph, silu, target, FloatLevel::Finite);
  EXPECT_TRUE(joined.is(Op::Fdiv));
  EXPECT_EQ(joined.src(0), x);
  EXPECT_FALSE(has_op(joined, Op::Reciprocal));
  EXPECT_LE(size(silu, FloatLevel::Finite) + 6, size(silu, FloatLevel::Strict));
  // A second reader, or a constant beside which small exponentials count, keeps the parts.
  const Node both = graph.alu(Op::Add, {silu, sigmoid});
  EXPECT_TRUE(
      has_op(lower_transcendentals(graph, both, target, FloatLevel::Finite), Op::Reciprocal));
  const Node near_zero = graph.alu(Op::Add, {e, graph.constant_float(DType::Float32, 0.5)});
  EXPECT_EQ(size(near_zero, FloatLevel::Finite), size(near_zero, FloatLevel::Strict));
}

}  // namespace
}  // namespace ignis::codegen
