#include "ignis/codegen/lower/weak.h"

#include "ignis/codegen/lower/test_evaluate.h"

#include <gtest/gtest.h>

#include <random>

namespace ignis::codegen {
namespace {

using ir::Node;
using ir::Op;

class CommitWeak : public ::testing::Test {
 protected:
  Node leaf(DType dtype, int64_t id = 0) {
    return graph_.make(Op::Reg, dtype, std::span<const Node>{}, ir::Arg{{id}, {}});
  }
  Node range(int64_t extent) { return graph_.range(extent, 0, ir::AxisKind::Loop); }
  Node weak(int64_t v) { return graph_.constant(DType::WeakInt, v); }
  Node weak(double v) { return graph_.constant_float(DType::WeakFloat, v); }
  /// Nothing weak but ranges under a cast, their ends, and Invalid.
  void expect_committed(const Node& root) {
    for (const Node& n : ir::toposort(root)) {
      for (int i = 0; i < n.source_count(); ++i) {
        const Node s = n.src(i);
        if (!is_weak(s.dtype()) || s.is_invalid()) continue;
        EXPECT_TRUE((s.is(Op::Range) && n.is(Op::Cast)) || n.is(Op::Range)) << n;
      }
    }
  }

  ir::Graph graph_;
};

TEST_F(CommitWeak, ConstantsTakeWhatTheyMeet) {
  const Node f16 = leaf(DType::Float16), u8 = leaf(DType::UInt8, 1);
  const Node sum = commit_weak(graph_, graph_.make(Op::Add, DType::Float16, {f16, weak(2.0)}));
  EXPECT_EQ(sum,
            graph_.make(Op::Add, DType::Float16, {f16, graph_.constant_float(DType::Float16, 2)}));
  const Node least =
      commit_weak(graph_, graph_.make(Op::Min, DType::UInt8, {u8, weak(int64_t{1})}));
  EXPECT_EQ(least.src(1), graph_.constant(DType::UInt8, 1));
  const Node is_true = leaf(DType::Bool, 2);
  const Node picked =
      commit_weak(graph_, graph_.make(Op::Where, DType::Float16, {is_true, f16, weak(1.0)}));
  EXPECT_EQ(picked.src(0).dtype(), DType::Bool);
  EXPECT_EQ(picked.src(2).dtype(), DType::Float16);
}

TEST_F(CommitWeak, IntegersTakeTheirRange) {
  const Node r = range(1 << 20);
  const Node small = graph_.alu(Op::Mul, {r, weak(int64_t{3})});
  EXPECT_EQ(commit_weak(graph_, small).dtype(), DType::Int32);
  const Node large = graph_.alu(Op::Mul, {r, weak(int64_t{4096})});
  EXPECT_EQ(commit_weak(graph_, large).dtype(), DType::Int64);
  // The quotient fits int32, but its dividend does not: no narrowing on the way.
  const Node back = graph_.alu(Op::Floordiv, {large, weak(int64_t{4096})});
  EXPECT_EQ(commit_weak(graph_, back).dtype(), DType::Int64);
  const Node inside = graph_.alu(Op::Cmplt, {small, weak(int64_t{7})});
  EXPECT_EQ(commit_weak(graph_, inside).src(0).dtype(), DType::Int32);
  for (const Node& n : {small, large, back, inside}) expect_committed(commit_weak(graph_, n));
}

TEST_F(CommitWeak, ACastIsAFloorNotANarrowing) {
  const Node i32 = leaf(DType::Int32);
  const Node sum =
      graph_.make(Op::Add, DType::WeakFloat, {graph_.cast(i32, DType::WeakFloat), weak(1.0)});
  const Node half = commit_weak(graph_, graph_.cast(sum, DType::Float16));
  EXPECT_EQ(half.src(0).dtype(), DType::Float32);
  const Node wide = commit_weak(graph_, graph_.cast(sum, DType::Float64));
  EXPECT_EQ(wide.op(), Op::Add);
  EXPECT_EQ(wide.dtype(), DType::Float64);
  // Float to weak int to weak float truncates and stays.
  const Node f = leaf(DType::Float32, 1);
  const Node truncated =
      graph_.cast(graph_.cast(graph_.cast(f, DType::WeakInt), DType::WeakFloat), DType::Float32);
  const Node done = commit_weak(graph_, truncated);
  EXPECT_EQ(done.op(), Op::Cast);
  EXPECT_EQ(done.src(0).dtype(), DType::Int64);
  for (const Node& n : {half, wide, done}) expect_committed(n);
}

TEST_F(CommitWeak, StoresAndAddresses) {
  ir::ParamArg arg;
  arg.shape = {64};
  const Node param = graph_.param(DType::BFloat16, arg);
  const Node offset = graph_.alu(Op::Add, {range(32), weak(int64_t{3})});
  const Node index = graph_.make(Op::Index, DType::BFloat16, {param, offset});
  const Node gate = graph_.alu(Op::Cmplt, {range(32), weak(int64_t{5})});
  const Node sink = graph_.make(Op::Sink, DType::Void,
                                {graph_.make(Op::Store, DType::Void, {index, weak(5.0), gate})});
  const Node done = commit_weak(graph_, sink);
  const Node store = done.src(0);
  EXPECT_EQ(store.src(1), graph_.constant_float(DType::BFloat16, 5));
  EXPECT_EQ(store.src(0).src(1).dtype(), DType::Int64);
  expect_committed(done);
}

// Random weak integer expressions over ranges: committed, they give the exact values.
TEST_F(CommitWeak, RandomExpressionsKeepTheirValues) {
  std::mt19937_64 rng(test_seed());
  for (int round = 0; round < 300; ++round) {
    ir::Graph graph;
    const Node a = graph.range(1000, 0, ir::AxisKind::Loop),
               b = graph.range(1 << 20, 1, ir::AxisKind::Loop);
    std::vector<Node> pool{a, b, graph.constant(DType::WeakInt, 3),
                           graph.constant(DType::WeakInt, 70000)};
    std::vector<std::vector<int64_t>> exact(pool.size());
    constexpr size_t kCount = 16;
    for (size_t i = 0; i < kCount; ++i) {
      exact[0].push_back(static_cast<int64_t>(rng() % 1000));
      exact[1].push_back(static_cast<int64_t>(rng() % (1 << 20)));
      exact[2].push_back(3);
      exact[3].push_back(70000);
    }
    for (int step = 0; step < 6; ++step) {
      const size_t i = rng() % pool.size(), j = rng() % pool.size();
      constexpr Op kOps[] = {Op::Add, Op::Sub, Op::Mul, Op::Max, Op::Min};
      const Op op = kOps[rng() % 5];
      std::vector<int64_t> values;
      bool small = true;
      for (size_t k = 0; k < kCount; ++k) {
        const int64_t x = exact[i][k], y = exact[j][k];
        const int64_t v = op == Op::Add   ? x + y
                          : op == Op::Sub ? x - y
                          : op == Op::Mul ? x * y
                          : op == Op::Max ? std::max(x, y)
                                          : std::min(x, y);
        small &= std::abs(v) < (int64_t{1} << 30);
        values.push_back(v);
      }
      if (!small && op == Op::Mul) continue;  // keeps everything far inside 64 bits
      pool.push_back(graph.alu(op, {pool[i], pool[j]}));
      exact.push_back(std::move(values));
    }
    const Node done = commit_weak(graph, pool.back());
    if (is_weak(done.dtype())) continue;  // a bare range
    expect_committed(done);
    Evaluator evaluator(true);
    bool has_range = false;
    for (const Node& n : ir::toposort(done)) {
      if (!n.is(Op::Cast) || !n.src(0).is(Op::Range)) continue;
      has_range = true;
      Column column;
      for (size_t k = 0; k < kCount; ++k)
        column.push_back(static_cast<uint64_t>(exact[n.src(0) == a ? 0 : 1][k]));
      evaluator.set(n.src(0), column);
      evaluator.set(n.src(0).src(0), column);
      evaluator.set(n, column);
    }
    if (!has_range) continue;
    const Column& result = evaluator.of(done);
    for (size_t k = 0; k < kCount; ++k) {
      const int64_t value = done.dtype() == DType::Int32 ? static_cast<int32_t>(result[k])
                                                         : static_cast<int64_t>(result[k]);
      ASSERT_EQ(value, exact.back()[k]) << done;
    }
  }
}

}  // namespace
}  // namespace ignis::codegen
