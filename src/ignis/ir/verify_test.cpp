#include "ignis/ir/verify.h"

#include "ignis/ir/graph.h"
#include "ignis/ir/text.h"

#include <gtest/gtest.h>

namespace ignis::ir {
namespace {

class VerifyTest : public ::testing::Test {
 protected:
  Node k(int64_t v) { return graph.constant(DType::WeakInt, v); }
  Node f(double v) { return graph.constant_float(DType::Float32, v); }
  Node loop(int64_t extent, int64_t id) { return graph.range(extent, id, AxisKind::Loop); }
  Node add(Node a, Node b) { return graph.alu(Op::Add, {a, b}); }
  Node index(Node param, std::vector<Node> at) {
    at.insert(at.begin(), param);
    return graph.make(Op::Index, param.dtype(), at);
  }
  Node load(Node param, std::vector<Node> at) {
    return graph.make(Op::Load, param.dtype(), {index(param, std::move(at))});
  }
  Node store(Node pointer, Node value) {
    return graph.make(Op::Store, DType::Void, {pointer, value});
  }
  Node sink(std::vector<Node> effects) {
    return graph.make(Op::Sink, DType::Void, effects, Arg{{}, "k"});
  }
  Node reduce(Node value, Node range) {
    return graph.make(Op::Reduce, value.dtype(), {value, range},
                      Arg{{static_cast<int64_t>(Op::Add)}, {}});
  }
  Node gated(Node gate, Node at) { return graph.alu(Op::Where, {gate, at, graph.invalid()}); }

  void expect_good(const Node& kernel) {
    const Status status = verify_kernel(kernel);
    EXPECT_TRUE(status) << status.error().to_string();
  }
  void expect_bad(const Node& kernel, const std::string& part) {
    const Status status = verify_kernel(kernel);
    ASSERT_FALSE(status) << print_text(kernel);
    EXPECT_EQ(status.error().code(), ErrorCode::Internal);
    EXPECT_NE(status.error().message().find(part), std::string::npos) << status.error().to_string();
  }

  Graph graph;
  Node x = graph.param(DType::Float32, {0, "x", {8, 16}, {}});
  Node y = graph.param(DType::Float32, {1, "y", {8}, {}});
  Node i = loop(8, 0), r = graph.range(16, 1, AxisKind::Reduce);
};

TEST_F(VerifyTest, GoodKernels) {
  expect_good(sink({store(index(y, {i}), reduce(load(x, {i, r}), r))}));
  // Ended by hand, two effects.
  const Node one = store(index(y, {i}), f(1));
  expect_good(sink({graph.make(Op::End, DType::Void, {one, i}), store(index(y, {k(3)}), f(2))}));
  // A gate where the range leaves the shape; an index that fits only once simplified.
  expect_good(sink(
      {store(index(y, {i}), load(y, {gated(graph.alu(Op::Cmplt, {i, k(7)}), add(i, k(1)))}))}));
  const Node whole = add(graph.alu(Op::Mul, {graph.alu(Op::Floordiv, {i, k(3)}), k(3)}),
                         graph.alu(Op::Floormod, {i, k(3)}));
  expect_good(sink({store(index(y, {i}), load(y, {whole}))}));
}

TEST_F(VerifyTest, AHaloMayBeRead) {
  const Node padded =
      graph.param(DType::Float32, {0, "p", {8}, Layout::permuted({8}, {0}, {1}, {2})});
  expect_good(sink({store(index(y, {i}), load(padded, {add(i, k(2))}))}));
  expect_good(sink({store(index(y, {i}), load(padded, {add(i, k(-1))}))}));
  expect_bad(sink({store(index(y, {i}), load(padded, {add(i, k(3))}))}), "may leave its buffer");
  expect_bad(sink({store(index(y, {i}), load(padded, {add(i, k(-2))}))}), "may leave its buffer");
}

TEST_F(VerifyTest, BadKernels) {
  expect_bad(f(1), "root is not a Sink");
  expect_bad(sink({store(index(y, {i}), load(y, {add(i, k(1))}))}),
             "lies in [1, 8] and may lie in [0, 7]");
  expect_bad(sink({store(index(y, {add(i, k(-1))}), f(1))}), "may leave its buffer");
  expect_bad(sink({store(index(y, {i}), load(x, {i}))}), "has 1 indices for a shape of [8, 16]");
  expect_bad(sink({store(index(y, {i}), load(x, {i, r}))}), "leaves R1 open");
  expect_bad(sink({store(index(x, {i, r}), reduce(load(x, {i, r}), r))}),
             "which its value reduces over");
  expect_bad(sink({store(index(y, {i}), load(y, {loop(4, 0)}))}), "has the id of another range");
  expect_bad(sink({store(index(y, {i}), graph.constant(DType::Int32, 1))}), "writes i32 to f32");
  expect_bad(sink({store(y, f(1))}), "uses a buffer without an Index");
  expect_bad(sink({load(y, {i})}), "joins what is no effect");
  expect_bad(sink({store(index(y, {f(1)}), f(1))}), "has an index of f32");
  const Node pointer = index(y, {i});
  expect_bad(sink({store(pointer, graph.alu(Op::Neg, {pointer}))}), "uses a pointer as a value");
  const Node flipped = graph.make(Op::Permute, DType::Float32, {load(y, {i})}, Arg{{}, {}});
  expect_bad(sink({store(pointer, flipped)}), "has no place in a kernel");
  const Node vector = graph.make(Op::Broadcast, DType::Float32, {f(1)}, Arg{}, 4);
  expect_bad(sink({store(pointer, vector)}), "later stage");
}

TEST_F(VerifyTest, OperandTypes) {
  const auto value = [&](Node v) {
    return sink({store(index(y, {i}), graph.cast(v, DType::Float32))});
  };
  const Node n = graph.cast(i, DType::Int32), u = graph.cast(i, DType::UInt8), x0 = load(y, {i});
  expect_good(value(graph.make(Op::Add, DType::Int32, {n, k(1)})));  // a weak constant agrees
  expect_bad(value(graph.make(Op::Add, DType::Int32, {n, u})), "has an operand of u8");
  expect_bad(value(graph.make(Op::And, DType::Float32, {x0, x0})), "works on bits of a float");
  expect_bad(value(graph.make(Op::Sqrt, DType::Int32, {n})), "needs a float");
  expect_bad(value(graph.make(Op::Where, DType::Int32, {n, n, n})), "has a condition of i32");
  expect_bad(value(graph.make(Op::Cmplt, DType::Int32, {n, n})), "is a comparison and not bool");
  expect_bad(value(graph.make(Op::Cmplt, DType::Bool, {n, u})), "compares i32 with u8");
  expect_bad(value(graph.make(Op::Bitcast, DType::Float64, {n})), "has a source of another size");
  expect_bad(value(graph.make(Op::Const, DType::UInt8, std::span<const Node>{}, Arg{{300}, {}})),
             "its dtype has not");
}

TEST_F(VerifyTest, TensorGraphs) {
  const Node t = graph.param(DType::Float32, {5, "t", {4, 4}, {}});
  const Node sum = graph.make(Op::ReduceAxes, DType::Float32, {graph.alu(Op::Mul, {t, t})},
                              Arg{{static_cast<int64_t>(Op::Add), 1}, {}});
  EXPECT_TRUE(verify_tensor(sum));
  const auto expect_bad_tensor = [&](const Node& n, const std::string& part) {
    const Status status = verify_tensor(n);
    ASSERT_FALSE(status);
    EXPECT_NE(status.error().message().find(part), std::string::npos) << status.error().to_string();
  };
  expect_bad_tensor(load(x, {i, k(0)}), "has no place in a tensor graph");
  expect_bad_tensor(graph.make(Op::Reshape, DType::Int32, {t}, Arg{{16}, {}}), "changes the dtype");
  expect_bad_tensor(graph.make(Op::Gather, DType::Float32, {t, t}), "has an index of f32");
}

}  // namespace
}  // namespace ignis::ir
