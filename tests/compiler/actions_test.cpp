#include "tests/compiler/run_schedule.h"
#include <gtest/gtest.h>

namespace ignis {
namespace {

using tensor::Tensor;

constexpr double kTolerance = 1e-4;  // sums of at most 576 products of values up to 2

struct Prepared {
  test::Case graph;
  schedule::Schedule schedule;
  std::vector<HostTensor> expected;
};

Prepared prepare(std::vector<Tensor> inputs, std::vector<Tensor> outputs) {
  Prepared p;
  p.graph.inputs = std::move(inputs);
  p.graph.outputs = std::move(outputs);
  for (size_t i = 0; i < p.graph.inputs.size(); ++i) {
    p.graph.values.push_back(test::random_tensor(p.graph.inputs[i].shape(), 7 + i));
  }
  // Row-major only: kernel 0 is then the kernel that the test means.
  schedule::Options options;
  options.choose_layouts = false;
  auto s = schedule::make_schedule(p.graph.input_nodes(), p.graph.output_nodes(),
                                   detect_host_target(), options);
  IGNIS_CHECK(s.has_value()) << s.error().to_string();
  p.schedule = *std::move(s);
  p.expected = p.graph.expected();
  return p;
}

Prepared product() {  // axes after merging: 0 = m (37), 1 = n (50), 2 = k (23)
  const auto g = std::make_shared<ir::Graph>();
  const Tensor a = Tensor::input(g, 0, "a", DType::Float32, {37, 23});
  const Tensor b = Tensor::input(g, 1, "b", DType::Float32, {23, 50});
  return prepare({a, b}, {relu(matmul(a, b))});
}
Prepared row_sums() {
  const auto g = std::make_shared<ir::Graph>();
  const Tensor x = Tensor::input(g, 0, "x", DType::Float32, {9, 77});
  return prepare({x}, {sum(x, {1})});
}
Prepared turned() {
  const auto g = std::make_shared<ir::Graph>();
  const Tensor x = Tensor::input(g, 0, "x", DType::Float32, {45, 70});
  return prepare({x}, {permute(x, {1, 0}) * 2.0});
}

void expect_same(const Prepared& p, const std::vector<std::string>& actions) {
  std::string text;
  for (const std::string& a : actions) text += a + " ";
  SCOPED_TRACE(text);
  test::RunOptions options;
  options.config.target = detect_host_target();
  options.actions = {actions};
  for (const int parts : {1, 5}) {
    options.parts = parts;
    const auto got = test::run_schedule(p.schedule, p.graph.values, options);
    ASSERT_TRUE(got.has_value()) << got.error().to_string();
    EXPECT_LE(test::max_error((*got)[0], p.expected[0]), kTolerance);
  }
}

TEST(Actions, EachKeepsEveryElementOfAProduct) {
  const Prepared p = product();
  const std::vector<std::vector<std::string>> lists = {
      {"REORDER(0,1)"},
      {"REORDER(1,0)"},
      {"THREAD(0)"},
      {"THREAD(1,0)"},
      {"VECTOR(1,4,1)"},
      {"VECTOR(1,8,2)"},
      {"VECTOR(1,8,8)"},
      {"VECTOR(0,4,2)"},
      {"TILE_REG(0,6)"},
      {"TILE_REG(1,4)"},
      {"VECTOR(1,8,2)", "TILE_REG(0,6)"},
      {"VECTOR(1,8,2)", "TILE_REG(0,37)"},
      {"VECTOR(1,8,2)", "TILE_REG(0,6)", "REORDER(1,0)", "TILE_CACHE(0,3,0)", "THREAD(1,0)"},
      {"VECTOR(1,8,2)", "TILE_REG(0,5)", "REORDER(1,0)", "TILE_CACHE(1,2,0)", "THREAD(1)"},
      {"TILE_CACHE(0,10,0)", "THREAD(0)"},
      {"UNROLL(2,4)"},
      {"UNROLL(2,23)"},
      {"UNROLL(2,5)", "VECTOR(1,8,1)"},
      {"SPLIT_REDUCE(2,4,2)"},
      {"SPLIT_REDUCE(2,8,4)"},
  };
  for (const auto& list : lists) expect_same(p, list);
}

TEST(Actions, SplitReduceCoversShortAndOddRows) {
  const Prepared p = row_sums();
  for (const char* a : {"SPLIT_REDUCE(1,8,1)", "SPLIT_REDUCE(1,8,4)", "SPLIT_REDUCE(1,16,2)",
                        "SPLIT_REDUCE(1,4,3)", "SPLIT_REDUCE(1,32,4)"}) {
    expect_same(p, {a});
  }
}

TEST(Actions, SegmentsCoverPaddingAndDropItsGates) {
  const auto g = std::make_shared<ir::Graph>();
  const Tensor x = Tensor::input(g, 0, "x", DType::Float32, {6, 20});
  const Prepared p =
      prepare({x}, {exp(pad(x, {{2, 3}, {1, 7}}))});  // axes 0: 11 rows, 1: 28 columns
  for (const char* cuts : {"SEGMENT(0,2,8)", "SEGMENT(0,1)", "SEGMENT(0,10)", "SEGMENT(0,3,4,5)"}) {
    expect_same(p, {cuts});
    expect_same(p, {"VECTOR(1,8,1)", cuts, "REORDER(0,1)", "THREAD(0)"});
    expect_same(p, {cuts, "REORDER(0,1)", "TILE_CACHE(0,2,0)", "THREAD(0)"});
  }
  expect_same(p, {"SEGMENT(0,2,8)", "SEGMENT(1,1,21)", "REORDER(0,1)", "THREAD(0,1)"});
  codegen::Config config;
  config.target = make_target(Isa::Avx2);
  config.actions = {"SEGMENT(0,2,8)", "SEGMENT(1,1,21)", "REORDER(0,1)"};
  const auto lowered = codegen::lower(p.schedule.kernels[0].sink, config);
  ASSERT_TRUE(lowered.has_value());
  int gated = 0, plain = 0;
  for (const ir::Node& n : lowered->program.list) {
    if (!n.is(ir::Op::Load)) continue;
    (n.source_count() == 3 ? gated : plain) += 1;
  }
  EXPECT_EQ(plain, 1) << "the middle of both axes needs no gate";
  EXPECT_EQ(gated, 0) << "all around lies in padding as a whole";
}

TEST(Actions, TransposeTurnsWholeAndPartialSquares) {
  const Prepared p = turned();
  for (const char* lanes : {"4", "8", "16"}) {
    expect_same(p, {"VECTOR(1," + std::string(lanes) + ",1)", "TRANSPOSE(0)"});
  }
}

Prepared softmax_rows(int64_t rows, int64_t columns) {
  const auto g = std::make_shared<ir::Graph>();
  const Tensor x = Tensor::input(g, 0, "x", DType::Float32, {rows, columns});
  return prepare({x}, {softmax(x * 3.0, -1)});
}

/// Axes: 0 = row, 1 = column; 2 = the sum's, 3 = the maximum's.
TEST(Actions, StageKeepsTermsOfSoftmaxInItsRow) {
  for (const int64_t columns : {5, 16, 77, 300}) {
    const Prepared p = softmax_rows(6, columns);
    const std::vector<std::string> rows = {"VECTOR(1,8,2)", "REORDER(0,1)", "THREAD(0)",
                                           "SPLIT_REDUCE(3,8,2)"};
    std::vector<std::string> recompute = rows, stage = rows;
    recompute.push_back("SPLIT_REDUCE(2,8,4)");
    stage.insert(stage.end(), {"SPLIT_REDUCE(2,8,4)", "STAGE(2)"});
    expect_same(p, recompute);
    expect_same(p, stage);
    expect_same(p, {"VECTOR(1,8,1)", "SPLIT_REDUCE(2,4,1)", "STAGE(2)"});
  }
  // The terms are computed in one place instead of two.
  const Prepared p = softmax_rows(6, 64);
  const auto additions = [&](std::vector<std::string> list) {
    codegen::Config config;
    config.target = make_target(Isa::Avx2);
    config.actions = std::move(list);
    const auto lowered = codegen::lower(p.schedule.kernels[0].sink, config);
    EXPECT_TRUE(lowered.has_value()) << lowered.error().to_string();
    int n = 0;
    for (const ir::Node& node : lowered->program.list) n += node.is(ir::Op::Mulacc) ? 1 : 0;
    return n;
  };
  const int twice = additions({"VECTOR(1,8,1)", "SPLIT_REDUCE(2,8,1)"});
  const int once = additions({"VECTOR(1,8,1)", "SPLIT_REDUCE(2,8,1)", "STAGE(2)"});
  EXPECT_LE(2 * once, twice);
}

TEST(Actions, StageIsChosenForExponentialsOnly) {
  const auto actions = [](const Prepared& p) {
    codegen::Config config;
    config.target = make_target(Isa::Avx2);
    const auto lowered = codegen::lower(p.schedule.kernels[0].sink, config);
    EXPECT_TRUE(lowered.has_value()) << lowered.error().to_string();
    std::string text;
    for (const std::string& a : lowered->actions) text += a + " ";
    return text;
  };
  EXPECT_NE(actions(softmax_rows(6, 64)).find("STAGE(2)"), std::string::npos);
  const auto g = std::make_shared<ir::Graph>();
  const Tensor x = Tensor::input(g, 0, "x", DType::Float32, {6, 64});
  const Prepared cheap = prepare({x}, {x / sum(x, {1}, true)});
  EXPECT_EQ(actions(cheap).find("STAGE"), std::string::npos);
}

TEST(Lowering, SoftmaxInvertsItsSumOnceARow) {
  const Prepared p = softmax_rows(6, 64);
  for (const FloatLevel level : {FloatLevel::Finite, FloatLevel::Strict}) {
    codegen::Config config;
    config.target = make_target(Isa::Avx2);
    config.float_level = level;
    const auto lowered = codegen::lower(p.schedule.kernels[0].sink, config);
    ASSERT_TRUE(lowered.has_value());
    int of_numbers = 0, of_vectors = 0;
    for (const ir::Node& n : lowered->program.list) {
      if (n.is(ir::Op::Fdiv)) (n.lanes() == 1 ? of_numbers : of_vectors) += 1;
    }
    if (level == FloatLevel::Strict) {
      EXPECT_EQ(of_numbers, 0);
      EXPECT_GT(of_vectors, 0);
    } else {
      EXPECT_EQ(of_numbers, 1);
      EXPECT_EQ(of_vectors, 0);
    }
  }
}

TEST(Lowering, DivisorsOfUnknownSizeStayDivisors) {
  // Of a sum of 2e38, say, the reciprocal is no normal number.
  const auto g = std::make_shared<ir::Graph>();
  const Tensor x = Tensor::input(g, 0, "x", DType::Float32, {3, 32});
  const Prepared p = prepare({x}, {x / sum(x, {1}, true)});
  codegen::Config config;
  config.target = make_target(Isa::Avx2);
  const auto lowered = codegen::lower(p.schedule.kernels[0].sink, config);
  ASSERT_TRUE(lowered.has_value());
  for (const ir::Node& n : lowered->program.list) {
    if (n.is(ir::Op::Fdiv)) {
      EXPECT_GT(n.lanes(), 1);
    }
  }
}

TEST(Actions, StageNeedsARowOfItsOwn) {
  const Prepared p = softmax_rows(6, 64);
  const std::vector<std::vector<std::string>> bad = {
      {"STAGE(2)"},
      {"VECTOR(1,8,1)", "STAGE(2)"},
      {"VECTOR(1,8,1)", "SPLIT_REDUCE(2,8,1)", "STAGE(1)"},
      {"VECTOR(1,8,1)", "SPLIT_REDUCE(2,8,1)", "THREAD(1)", "STAGE(2)"},
      {"VECTOR(1,8,1)", "SPLIT_REDUCE(2,8,1)", "REORDER(1,0)", "STAGE(2)"},
      {"VECTOR(1,8,1)", "SPLIT_REDUCE(2,8,1)", "TILE_CACHE(1,2,0)", "STAGE(2)"},
      {"VECTOR(1,8,1)", "TILE_REG(0,2)", "SPLIT_REDUCE(2,8,1)", "STAGE(2)"},
  };
  for (const auto& list : bad) {
    codegen::Config config;
    config.target = make_target(Isa::Avx2);
    config.actions = list;
    const auto lowered = codegen::lower(p.schedule.kernels[0].sink, config);
    ASSERT_FALSE(lowered.has_value()) << list.size();
    EXPECT_NE(lowered.error().message().find("STAGE"), std::string::npos)
        << lowered.error().message();
  }
}

TEST(Actions, IllegalOnesAreNamed) {
  const Prepared p = product();
  const std::vector<std::pair<std::string, std::vector<std::string>>> bad = {
      {"UPCAST", {"UPCAST(0,4)"}},
      {"VECTOR", {"VECTOR(2,8,1)"}},
      {"VECTOR", {"VECTOR(9,8,1)"}},
      {"TILE_REG", {"VECTOR(1,8,1)", "TILE_REG(1,4)"}},
      {"SLIDE", {"SLIDE(0)"}},
      {"SLIDE", {"TILE_REG(0,4)", "SLIDE(1)"}},
      {"THREAD", {"THREAD(7)"}},
      {"THREAD", {"THREAD(2)"}},
      {"THREAD", {"THREAD(0,1,0)"}},
      {"no loop", {"REORDER(0)"}},
      {"two loops", {"REORDER(0,0,1)"}},
      {"cache tile", {"TILE_CACHE(0,3,2)"}},
      {"SEGMENT", {"SEGMENT(0,37)"}},
      {"SEGMENT", {"SEGMENT(0,5,5)"}},
      {"SEGMENT", {"VECTOR(1,8,1)", "SEGMENT(1,12)"}},
      {"SEGMENT", {"VECTOR(1,8,1)", "TRANSPOSE(0)", "SEGMENT(0,8)"}},
      {"SEGMENT", {"SEGMENT(0,5)", "SEGMENT(0,7)"}},
      {"UNROLL", {"UNROLL(2,24)"}},
      {"UNROLL", {"UNROLL(0,2)"}},
      {"SPLIT_REDUCE", {"SPLIT_REDUCE(0,8,1)"}},
      {"SPLIT_REDUCE", {"VECTOR(1,8,1)", "SPLIT_REDUCE(2,8,1)"}},
      {"NAME", {"VECTOR(1,8"}},
      {"NAME", {"VECTOR(1;8)"}},
  };
  for (const auto& [word, actions] : bad) {
    codegen::Config config;
    config.target = detect_host_target();
    config.actions = actions;
    const auto lowered = codegen::lower(p.schedule.kernels[0].sink, config);
    ASSERT_FALSE(lowered.has_value()) << actions.back();
    EXPECT_EQ(lowered.error().code(), ErrorCode::InvalidArgument) << actions.back();
    EXPECT_NE(lowered.error().message().find(word), std::string::npos) << lowered.error().message();
  }
}

TEST(Actions, AppliedListReplaysToTheSameProgram) {
  const Prepared p = product();
  codegen::Config config;
  config.target = make_target(Isa::Avx2);
  auto first = codegen::lower(p.schedule.kernels[0].sink, config);
  ASSERT_TRUE(first.has_value());
  config.actions = first->actions;
  auto second = codegen::lower(p.schedule.kernels[0].sink, config);
  ASSERT_TRUE(second.has_value()) << second.error().to_string();
  EXPECT_EQ(second->actions, first->actions);
  ASSERT_EQ(second->program.list.size(), first->program.list.size());
  EXPECT_EQ(ir::content_key(first->program.list.back()),
            ir::content_key(second->program.list.back()));
}

}  // namespace
}  // namespace ignis
