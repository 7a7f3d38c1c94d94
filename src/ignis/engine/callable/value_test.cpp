#include "ignis/engine/callable/value.h"

#include <gtest/gtest.h>

namespace ignis::engine {
namespace {

std::vector<std::pair<std::string, Value>> leaves_of(Value value) {
  std::vector<std::pair<std::string, Value>> found;
  visit_leaves(value,
               [&](const std::string& path, Value& leaf) { found.emplace_back(path, leaf); });
  return found;
}

std::vector<std::string> paths_of(const Value& value) {
  std::vector<std::string> paths;
  for (const auto& [path, leaf] : leaves_of(value)) paths.push_back(path);
  return paths;
}

TEST(Value, KnowsWhatItIs) {
  EXPECT_EQ(kind_of(Value()), "nothing");
  EXPECT_EQ(kind_of(Value(true)), "a bool");
  EXPECT_EQ(kind_of(Value(3)), "a whole number");
  EXPECT_EQ(kind_of(Value(3.5)), "a number");
  EXPECT_EQ(kind_of(Value("three")), "a text");
  EXPECT_EQ(kind_of(Value(Sequence{1, 2})), "a sequence");
  EXPECT_EQ(kind_of(Value(ValueMap{})), "a map");
}

TEST(Value, LeavesHavePaths) {
  EXPECT_EQ(paths_of(Value(1)), (std::vector<std::string>{""}));
  const Value nested(ValueMap{{"a.b", Sequence{1, Sequence{2}}}, {"c", 3}});
  EXPECT_EQ(paths_of(nested), (std::vector<std::string>{".a\\.b[0]", ".a\\.b[1][0]", ".c"}));
}

TEST(Value, PathsMakeTheValueAgain) {
  const Value values[] = {
      Value(1), Value(Sequence{1, 2, Sequence{3, 4}}),
      Value(ValueMap{{"x", Sequence{1}}, {"", 2}, {"y]\\[.", ValueMap{{"z", 3}}}})};
  for (const Value& value : values) {
    const Result<Value> made = make_value(leaves_of(value));
    ASSERT_TRUE(made) << made.error().to_string();
    EXPECT_EQ(paths_of(*made), paths_of(value));
    for (size_t i = 0; i < leaves_of(value).size(); ++i) {
      EXPECT_EQ(leaves_of(*made)[i].second.get<int64_t>(),
                leaves_of(value)[i].second.get<int64_t>());
    }
  }
}

TEST(Value, WrongPathsAreRefused) {
  const std::vector<std::vector<std::pair<std::string, Value>>> wrong = {
      {{"x", 1}},    // no step begins so
      {{"[", 1}},    // cut
      {{"[0", 1}},   // cut
      {{"[x]", 1}},  // no number
      {{"[1]", 1}},  // a hole
      {{"[99999999999999999999]", 1}},
      {{".a\\", 1}},          // cut
      {{"", 1}, {"", 2}},     // twice
      {{"", 1}, {"[0]", 2}},  // a leaf is no sequence
      {{"[0]", 1}, {".a", 2}},
      {{".a", 1}, {".a.b", 2}},
  };
  for (const auto& leaves : wrong) {
    const Result<Value> made = make_value(leaves);
    ASSERT_FALSE(made) << leaves.front().first;
    EXPECT_EQ(made.error().reason(), "BadPath");
  }
}

}  // namespace
}  // namespace ignis::engine
