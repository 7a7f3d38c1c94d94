#include "ignis/ir/row_chain.h"

#include <gtest/gtest.h>

namespace ignis::ir {
namespace {

class RowChainTest : public ::testing::Test {
 protected:
  Node param(int64_t slot, Shape shape, std::vector<int64_t> halo = {}) {
    ParamArg arg;
    arg.slot = slot;
    arg.shape = std::move(shape);
    arg.layout = Layout::permuted(arg.shape, {0, 1}, halo, halo);
    return g.param(DType::Float32, arg);
  }
  Node at(const Node& buffer, const Node& row, const Node& column) {
    return g.make(Op::Index, DType::Float32, {buffer, row, column});
  }
  Node load(const Node& index) { return g.make(Op::Load, DType::Float32, {index}); }
  Node store(const Node& index, const Node& v) {
    return g.make(Op::Store, DType::Void, {index, v});
  }
  Node number(int64_t v) { return g.constant(DType::WeakInt, v); }
  Node add(const Node& a, const Node& b) { return g.alu(Op::Add, {a, b}); }
  Node mul(const Node& a, int64_t c) { return g.alu(Op::Mul, {a, number(c)}); }

  Graph g;
  Node rows = g.range(10, 0, AxisKind::Thread), columns = g.range(7, 1, AxisKind::Loop);
  Node window = g.range(3, 2, AxisKind::Reduce);
};

TEST_F(RowChainTest, WindowsAreMultiplesOfOneRangeAndWhatIsReduced) {
  const Node x = param(1, {20, 7}, {1, 0}), y = param(0, {10, 7});
  const auto find = [&](const Node& row) {
    return find_row_window(g, store(at(y, rows, columns), load(at(x, row, columns))), 1, 0);
  };
  const auto strided = find(add(add(mul(rows, 2), window), number(-1)));
  ASSERT_TRUE(strided.has_value());
  EXPECT_EQ(strided->rows, rows);
  EXPECT_EQ(strided->stride, 2);
  EXPECT_EQ(strided->first, -1);
  EXPECT_EQ(strided->last, 1);
  EXPECT_FALSE(find(window)) << "all rows for each";
  EXPECT_FALSE(find(add(rows, columns)));
  EXPECT_FALSE(find(add(mul(rows, -1), number(9)))) << "upwards";
  EXPECT_FALSE(find(g.alu(Op::Floordiv, {rows, number(2)})));
  EXPECT_FALSE(find_row_window(g, store(at(y, rows, columns), load(at(x, rows, columns))), 2, 0))
      << "another slot";
}

TEST_F(RowChainTest, WindowsOfSeveralLoadsJoin) {
  const Node x = param(1, {20, 7}, {2, 0}), y = param(0, {10, 7});
  const auto find = [&](const Node& a, const Node& b) {
    const Node sum = g.alu(Op::Add, {load(at(x, a, columns)), load(at(x, b, columns))});
    return find_row_window(g, store(at(y, rows, columns), sum), 1, 0);
  };
  const auto joined = find(add(rows, number(-2)), add(rows, number(5)));
  ASSERT_TRUE(joined.has_value());
  EXPECT_EQ(joined->first, -2);
  EXPECT_EQ(joined->last, 5);
  EXPECT_FALSE(find(rows, mul(rows, 2)));
}

TEST_F(RowChainTest, StagesAreReadFromASink) {
  const Node x = param(2, {10, 7}), between = param(1, {10, 7}, {1, 2}), y = param(0, {5, 7});
  const Node half = g.range(5, 3, AxisKind::Thread), other = g.range(7, 4, AxisKind::Loop);
  const Node first = store(at(between, rows, columns), load(at(x, rows, columns)));
  const Node second = store(at(y, half, other), load(at(between, mul(half, 2), other)));
  const auto stages = row_stages(g, g.make(Op::Sink, DType::Void, {first, second}));
  ASSERT_TRUE(stages.has_value()) << stages.error().to_string();
  ASSERT_EQ(stages->size(), 2u);
  EXPECT_EQ((*stages)[0].extent, 10);
  EXPECT_EQ((*stages)[0].row_elements, 7 + 2 * 2);
  EXPECT_EQ((*stages)[0].row_bytes, 44);
  EXPECT_EQ((*stages)[0].halo_lo, 1);
  EXPECT_EQ((*stages)[1].extent, 5);
  EXPECT_EQ((*stages)[1].window.stride, 2);
  EXPECT_FALSE(row_stages(g, g.make(Op::Sink, DType::Void, {second, first})));
}

TEST_F(RowChainTest, OuterRangesStandAroundTheRows) {
  const auto buffer = [&](int64_t slot, const Shape& shape) {
    ParamArg arg;
    arg.slot = slot;
    arg.shape = shape;
    return g.param(DType::Float32, arg);
  };
  const Node x = buffer(2, {1, 4, 6, 7}), between = buffer(1, {1, 4, 6, 7}), y = buffer(0, {6, 28});
  const Node zero = number(0);
  const auto full = [&](const Node& b, const Node& h, const Node& r, const Node& c) {
    return g.make(Op::Index, DType::Float32, {b, zero, h, r, c});
  };
  const Node heads = g.range(4, 0, AxisKind::Thread), r = g.range(6, 1, AxisKind::Thread);
  const Node c = g.range(7, 2, AxisKind::Loop);
  const Node heads2 = g.range(4, 3, AxisKind::Thread), r2 = g.range(6, 4, AxisKind::Thread);
  const Node c2 = g.range(7, 5, AxisKind::Loop);
  const Node first = store(full(between, heads, r, c), load(full(x, heads, r, c)));
  // The last store may have its ranges anywhere: here heads beside each other.
  const auto last = [&](const Node& head) {
    return store(at(y, r2, add(mul(heads2, 7), c2)), load(full(between, head, r2, c2)));
  };
  const auto dims = slowest_dims(first);
  ASSERT_EQ(dims.size(), 3u) << "one value is no dim";
  EXPECT_EQ(dims[0].dim, 1u);
  EXPECT_EQ(dims[0].range, heads);
  EXPECT_EQ(dims[2].range, c);
  EXPECT_EQ(slowest_dims(last(heads2)).size(), 1u) << "two ranges in one index";
  const auto stages = row_stages(g, g.make(Op::Sink, DType::Void, {first, last(heads2)}));
  ASSERT_TRUE(stages.has_value()) << stages.error().to_string();
  EXPECT_EQ((*stages)[0].outer, std::vector<Node>{heads});
  EXPECT_EQ((*stages)[0].outer_elements, std::vector<int64_t>{42});
  EXPECT_EQ((*stages)[0].row_elements, 7);
  EXPECT_EQ((*stages)[1].outer, std::vector<Node>{heads2});
  EXPECT_EQ((*stages)[1].rows, r2);
  EXPECT_EQ((*stages)[1].row_elements, 7);
  EXPECT_EQ(outer_count((*stages)[1]), 4);
  EXPECT_TRUE(rows_are_alike(*stages));
  const Node other = add(number(3), mul(heads2, -1));
  EXPECT_FALSE(row_stages(g, g.make(Op::Sink, DType::Void, {first, last(other)})))
      << "others' rows";
}

TEST_F(RowChainTest, BandsHoldTheRowsOfTheirWindows) {
  // An expansion, a window of 5 rows at every second, a projection: 100 bytes a row each.
  std::vector<RowStage> stages(3);
  for (RowStage& stage : stages) {
    stage.extent = 50;
    stage.row_bytes = 100;
  }
  stages[1].window = {{}, 2, -2, 2};
  EXPECT_EQ(held_rows(stages, 1), (std::vector<int64_t>{5, 1, 1}));
  EXPECT_EQ(held_rows(stages, 4), (std::vector<int64_t>{11, 4, 4}));
  // 2 * (n - 1) + 5 + n + n rows.
  EXPECT_EQ(most_band_rows(stages, 1900), 4);
  EXPECT_EQ(most_band_rows(stages, 1899), 3);
  EXPECT_EQ(most_band_rows(stages, 699), 0);
  EXPECT_EQ(most_band_rows(stages, 1 << 30), 50);
}

TEST_F(RowChainTest, SinksSayTheirBands) {
  const Node y = param(0, {10, 7});
  const Node effect = store(at(y, rows, columns), g.constant_float(DType::Float32, 1));
  const auto bands = bands_of(g.make(Op::Sink, DType::Void, {effect}, encode(Bands{3, 2})));
  ASSERT_TRUE(bands.has_value());
  EXPECT_EQ(bands->rows, 3);
  EXPECT_EQ(bands->units, 2);
  EXPECT_FALSE(bands_of(g.make(Op::Sink, DType::Void, {effect})));
  EXPECT_FALSE(bands_of(g.make(Op::Sink, DType::Void, {effect}, Arg{{0, 1}, {}})));
}

}  // namespace
}  // namespace ignis::ir
