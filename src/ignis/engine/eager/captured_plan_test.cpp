// A compiled model as a capture, replayed on this machine's CPU.
#include "ignis/engine/eager/captured_plan.h"

#include "ignis/drivers/cpu/test_function.h"
#include "ignis/exec/replay.h"
#include "ignis/runtime/device.h"

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <utility>

namespace ignis::engine {
namespace {

constexpr runtime::WaitLimits kLong{20'000'000'000, 20'000'000'000};

exec::BufferPlan make_buffer(exec::BufferRole role, int64_t size_bytes, const std::string& name) {
  exec::BufferPlan buffer;
  buffer.role = role;
  buffer.size_bytes = size_bytes;
  buffer.name = name;
  return buffer;
}

// t = x + w; y = 2 * t: floats by 4, with a temporary in the arena and a
// constant.
class CapturedPlan : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!cpu::test::has_function_programs()) GTEST_SKIP() << "The programs are for x86-64.";
    device_ = runtime::open_device("cpu", {.threads = 2, .shares_threads = false}).value();
    exec::MachineOptions options;
    options.host = device_;
    machine_ = exec::Machine::create(std::move(options));
    using exec::BufferRole;
    plan_.arena_bytes = 128;
    plan_.buffers = {
        make_buffer(BufferRole::Input, 16, "x"), make_buffer(BufferRole::Constant, 16, "w"),
        make_buffer(BufferRole::Arena, 16, "t"), make_buffer(BufferRole::Output, 16, "y")};
    plan_.buffers[1].constant = reinterpret_cast<const std::byte*>(weights_->data());
    plan_.buffers[1].owner = weights_;
    plan_.buffers[2].arena_offset = 64;
    const auto program = [](const std::string& name, int count, auto function) {
      return cpu::test::function_program(name, count,
                                         [function](void* const* buffers, int64_t part, int64_t) {
                                           if (part == 0)
                                             function(reinterpret_cast<float* const*>(buffers));
                                         });
    };
    plan_.programs = {program("add", 3,
                              [](float* const* b) {
                                for (int i = 0; i < 4; ++i) b[0][i] = b[1][i] + b[2][i];
                              }),
                      program("twice", 2, [](float* const* b) {
                        for (int i = 0; i < 4; ++i) b[0][i] = 2 * b[1][i];
                      })};
    plan_.calls = {{0, {2, 0, 1}, 1, "add", "", 4, 48, {0}},
                   {1, {3, 2}, 1, "twice", "", 4, 32, {0}}};
    plan_.inputs = {{"x", DType::Float32, {4}, 0}};
    plan_.outputs = {{"y", DType::Float32, {2, 2}, 3}};
  }
  static exec::RawPort port(std::array<float, 4>& values) {
    return {reinterpret_cast<std::byte*>(values.data()), sizeof values};
  }

  std::shared_ptr<runtime::Device> device_;
  std::shared_ptr<exec::Machine> machine_;
  std::shared_ptr<std::array<float, 4>> weights_ =
      std::make_shared<std::array<float, 4>>(std::array<float, 4>{10, 20, 30, 40});
  exec::Plan plan_;
};

TEST_F(CapturedPlan, RunsOnTheCallersMemory) {
  const auto captured = capture_plan(plan_, *machine_, 2);
  ASSERT_TRUE(captured) << captured.error().to_string();
  EXPECT_EQ((*captured)->input_count(), 1u);
  EXPECT_EQ((*captured)->outputs[0].name, "y");
  EXPECT_EQ((*captured)->held.size(), 1u);
  const auto replay = exec::Replay::create(*captured, machine_);
  ASSERT_TRUE(replay) << replay.error().to_string();
  for (int run = 0; run < 5; ++run) {
    auto x = std::make_unique<std::array<float, 4>>();  // elsewhere at each run
    std::array<float, 4> y{};
    for (size_t i = 0; i < 4; ++i) (*x)[i] = static_cast<float>(run) + static_cast<float>(i);
    const exec::RawPort inputs[] = {port(*x)}, outputs[] = {port(y)};
    const Status status = (*replay)->run_raw(inputs, outputs, kLong);
    ASSERT_TRUE(status) << status.error().to_string();
    for (size_t i = 0; i < 4; ++i) EXPECT_EQ(y[i], 2 * ((*x)[i] + (*weights_)[i]));
  }
  EXPECT_EQ((*replay)->counts().links, 1u);
}

TEST_F(CapturedPlan, RefusesOtherMemory) {
  const auto replay = exec::Replay::create(capture_plan(plan_, *machine_, 1).value(), machine_);
  ASSERT_TRUE(replay);
  std::array<float, 4> x{}, y{};
  exec::RawPort inputs[] = {port(x)}, outputs[] = {port(y)};
  inputs[0].size_bytes = 12;
  EXPECT_EQ((*replay)->run_raw(inputs, outputs, kLong).error().reason(), "SignatureMismatch");
  inputs[0] = port(x);
  outputs[0].bytes += 1;
  EXPECT_EQ((*replay)->run_raw(inputs, outputs, kLong).error().reason(), "OutputMismatch");
  outputs[0] = port(y);
  EXPECT_TRUE((*replay)->run_raw(inputs, outputs, kLong));
}

}  // namespace
}  // namespace ignis::engine
