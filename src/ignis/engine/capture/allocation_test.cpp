// Collecting the inputs of a replay allocates nothing once the largest call was seen.

#include "ignis/engine/capture/inputs.h"

#include "tests/support/count_allocations.h"
#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace ignis::engine {
namespace {

TEST(CaptureAllocations, InputsAreCollectedWithoutAny) {
  const std::array<exec::InputDevice, 1> devices = {exec::InputDevice{"CUDA", 1}};
  const std::array<exec::VariableBinding, 1> variables = {exec::VariableBinding{"i", 2, 1, 10}};
  const auto tensor = [&](uint64_t number) {
    TensorArgument made;
    made.tensor = made.base = number;
    made.description.devices = devices;
    made.description.size_bytes.value = 4;
    made.variables = variables;
    return made;
  };
  const std::vector<Element> elements = {{"zebra", tensor(4)}, {"a", tensor(5)}};
  const std::vector<ArgumentValue> positional = {tensor(1), Container{true, elements}, tensor(2)};
  const std::vector<KeywordArgument> keyword = {
      {"a_keyword_longer_than_a_small_string", tensor(3)},
      {"scale", HostScalar{true, 1, 0, 3}},
      {"another_keyword_longer_than_a_small_string", Container{false, {}}}};
  InputCollector collector;
  ASSERT_TRUE(collector.collect(positional, keyword));
  ASSERT_EQ(collector.inputs().size(), 5U);
  const exec::Signature signature = collector.make_signature();
  const int64_t before = testing::allocation_count();
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(collector.collect(positional, keyword));
    ASSERT_TRUE(signature.check(collector.inputs(), collector.variables()));
  }
  EXPECT_EQ(testing::allocation_count() - before, 0);
}

}  // namespace
}  // namespace ignis::engine
