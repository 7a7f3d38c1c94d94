// Run-time variables: their values change from run to run of one link, on a device and on the host.

#include "tests/queues/test_rig.h"
#include <gtest/gtest.h>

#include <array>
#include <cstring>

namespace ignis::testing {
namespace {

/// One kernel on `owner` that adds the cell of run-time variable 1 to each of four numbers.
struct VariableRig : Rig {
  exec::BufferView out, in, cell;
  runtime::MemoryRef result;

  explicit VariableRig(const std::string& owner) {
    add_device("G");
    const int program = add_program("add_variable", 3, [](std::span<std::byte* const> buffers) {
      int64_t add = 0;
      std::memcpy(&add, buffers[2], sizeof add);
      for (size_t i = 0; i < 4; ++i) {
        float value = 0;
        std::memcpy(&value, buffers[1] + i * sizeof value, sizeof value);
        value += static_cast<float>(add);
        std::memcpy(buffers[0] + i * sizeof value, &value, sizeof value);
      }
    });
    out = buffer("out", {owner});
    in = buffer("in", {owner});
    cell = buffer("variable 1", {"CPU"}, exec::kVariableBytes);
    schedule.buffers.back().variable = 1;
    result = give(out);
    write_floats(whole(give(in)), {1, 2, 3, 4});
    kernel({out}, {in, cell}).program = program;
  }
  Status run(exec::LinkedSchedule& linked, std::vector<int64_t> values) {
    return exec::run(linked, {}, {.variables = values});
  }
};

TEST(Variables, ACellHoldsTheValueOfTheRun) {
  for (const char* owner : {"G", "CPU"}) {
    SCOPED_TRACE(owner);
    VariableRig rig(owner);
    const auto linked = rig.link();
    ASSERT_TRUE(linked) << linked.error().to_string();
    for (const int64_t value : {10, -3, 0}) {
      const Status status = rig.run(**linked, {77, value});
      ASSERT_TRUE(status) << status.error().to_string();
      const auto add = static_cast<float>(value);
      EXPECT_EQ(read_floats(whole(rig.result), 4),
                (std::vector<float>{1 + add, 2 + add, 3 + add, 4 + add}));
    }
  }
}

TEST(Variables, TooFewValuesAreRefusedBeforeAnythingMoves) {
  VariableRig rig("G");
  const auto linked = rig.link();
  ASSERT_TRUE(linked);
  for (const std::vector<int64_t>& values :
       {std::vector<int64_t>{}, std::vector<int64_t>{1}, std::vector<int64_t>{1, 2, 3}}) {
    const Status refused = rig.run(**linked, values);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().reason(), "MissingVariable");
    EXPECT_EQ(refused.error().code(), ErrorCode::InvalidArgument);
  }
  EXPECT_EQ(rig.world.find("G")->timeline().announced.load(), 0u);
}

TEST(Variables, ABoundVariableOfACallTakesTheRunsValue) {
  Rig rig;
  rig.add_device("G");
  rig.schedule.programs.push_back(
      rig.world.add_function("store", 1, [](const vdev::FunctionCall& call) {
        for (size_t i = 0; i < 2; ++i) {
          std::memcpy(call.buffers[0] + 8 * i, &call.variables[i], sizeof(int64_t));
        }
      }));
  const exec::BufferView out = rig.buffer("out", {"G"});
  const runtime::MemoryRef result = rig.give(out);
  rig.kernel({out}).variables = {{.name = "a", .value = 5},
                                 {.name = "b", .value = 1, .run_time = 0}};
  const auto linked = rig.link();
  ASSERT_TRUE(linked) << linked.error().to_string();
  for (const int64_t value : {41, -1}) {
    const std::array<int64_t, 1> values = {value};
    ASSERT_TRUE(exec::run(**linked, {}, {.variables = values}));
    std::array<int64_t, 2> stored{};
    std::memcpy(stored.data(), result->host(), sizeof stored);
    EXPECT_EQ(stored, (std::array<int64_t, 2>{5, value + 1}));
  }
}

TEST(Variables, NobodyWritesOrCopiesACell) {
  const auto reason = [](const std::function<void(VariableRig&)>& change) {
    VariableRig rig("G");
    change(rig);
    const auto made = rig.compile();
    return made ? std::string("ok") : made.error().reason();
  };
  EXPECT_EQ(reason([](VariableRig&) {}), "ok");
  EXPECT_EQ(reason([](VariableRig& rig) { rig.kernel({rig.cell}); }), "BadSchedule");
  EXPECT_EQ(reason([](VariableRig& rig) { rig.schedule.calls[0].knows_writes = false; }),
            "BadSchedule");
  EXPECT_EQ(reason([](VariableRig& rig) {
              rig.copy(rig.buffer("h", {"CPU"}, exec::kVariableBytes), rig.cell);
            }),
            "BadSchedule");
  EXPECT_EQ(reason([](VariableRig& rig) { rig.schedule.buffers[2].size_bytes = 16; }),
            "BadSchedule");
  EXPECT_EQ(reason([](VariableRig& rig) { rig.schedule.buffers[2].devices = {"G"}; }),
            "BadSchedule");
  EXPECT_EQ(reason([](VariableRig& rig) { rig.schedule.buffers[2].variable = 1 << 30; }),
            "BadSchedule");
}

}  // namespace
}  // namespace ignis::testing
