// What a replay does on the host again and again allocates nothing.

#include "ignis/exec/guards.h"
#include "ignis/exec/outputs.h"
#include "ignis/exec/signature.h"

#include "tests/support/count_allocations.h"
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

namespace ignis::exec {
namespace {

constexpr runtime::WaitLimits kNoWait{0, 0};

TEST(ReplayAllocations, ASignatureOfEightInputsThatFits) {
  const std::array<InputDevice, 2> devices = {InputDevice{"CUDA", 1}, InputDevice{"CUDA:1", 1}};
  std::vector<std::string> names;
  for (int i = 0; i < 8; ++i) names.push_back("an input with a long name " + std::to_string(i));
  const std::array<SymbolicNumber, 4> shape = {
      SymbolicNumber{3, "batch_of_the_current_frame", 1, 8}, {3}, {224}, {224}};
  const std::array<SymbolicNumber, 4> strides = {SymbolicNumber{150528}, {50176}, {224}, {1}};
  std::vector<InputDescription> inputs(8);
  for (size_t i = 0; i < 8; ++i) {
    inputs[i].name = names[i];
    inputs[i].layout = "NV12 1928x1208 stride 2048";
    inputs[i].devices = devices;
    inputs[i].size_bytes = {3 * 602112, "602112*batch_of_the_current_frame", 602112, 8 * 602112};
    inputs[i].base_bytes = 8 * 602112;
    inputs[i].shape = shape;
    inputs[i].strides = strides;
  }
  const std::array<VariableBinding, 1> variables = {
      VariableBinding{"batch_of_the_current_frame", 3, 1, 8}};
  const Signature signature = Signature::make(inputs, variables);
  const int64_t before = testing::allocation_count();
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(signature.check(inputs, variables));
  EXPECT_EQ(testing::allocation_count() - before, 0);
}

TEST(ReplayAllocations, GuardsThatAreEqual) {
  const std::string side = "the side that is not the passenger's side";
  const std::array<GuardValue, 2> values = {GuardValue{"driver_side", std::string_view(side)},
                                            GuardValue{"model_size", int64_t{2}}};
  GuardedArtifacts artifacts;
  ASSERT_TRUE(artifacts.add(values));
  const int64_t before = testing::allocation_count();
  for (int i = 0; i < 100; ++i) ASSERT_EQ(artifacts.select(values).value(), 0U);
  EXPECT_EQ(testing::allocation_count() - before, 0);
}

TEST(ReplayAllocations, OutputsOfEveryModeAfterTheFirstTurns) {
  for (const OutputMode mode :
       {OutputMode::Borrow, OutputMode::Copy, OutputMode::Ring, OutputMode::Caller}) {
    // Storage comes from a first object, whose counts are not looked at.
    OutputOptions source_options;
    source_options.mode = OutputMode::Ring;
    Outputs source = Outputs::create({{"a", 100}, {"b", 200}}, source_options).value();
    const OutputHandle storage = std::move(source.begin(kNoWait).value()).finish();
    const std::array<Placement, 2> places = {storage.place(0).value(), storage.place(1).value()};

    OutputOptions options;
    options.mode = mode;
    if (mode == OutputMode::Borrow) options.borrowed.assign(places.begin(), places.end());
    Outputs outputs = Outputs::create({{"a", 100}, {"b", 200}}, options).value();
    const std::span<const Placement> callers = mode == OutputMode::Caller
                                                   ? std::span<const Placement>(places)
                                                   : std::span<const Placement>();
    std::array<std::byte, 200> bytes{};
    const auto turn = [&] {
      OutputHandle first = std::move(outputs.begin(kNoWait, callers).value()).finish();
      ASSERT_TRUE(first.read(1, bytes, kNoWait));
      const OutputHandle second = std::move(outputs.begin(kNoWait, callers).value()).finish();
      const OutputHandle copy = second;
      first = copy;
      ASSERT_TRUE(copy.pin().value().bytes(0, kNoWait));
    };
    turn();
    const int64_t before = testing::allocation_count();
    for (int i = 0; i < 100; ++i) turn();
    EXPECT_EQ(testing::allocation_count() - before, 0) << to_string(mode);
  }
}

}  // namespace
}  // namespace ignis::exec
