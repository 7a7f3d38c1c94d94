#include "ignis/exec/model.h"

#include "ignis/drivers/cpu/test_function.h"
#include "ignis/engine/model_probe.h"
#include "ignis/engine/plan_capture.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace ignis::engine {
namespace {

using namespace exec;

using std::chrono::milliseconds;
using std::chrono::seconds;

// out[i] = a[i] + b[i], four floats.
void add4(void* const* buffers, int64_t part, int64_t parts) {
  auto* out = static_cast<float*>(buffers[0]);
  const auto* a = static_cast<const float*>(buffers[1]);
  const auto* b = static_cast<const float*>(buffers[2]);
  for (int64_t i = 4 * part / parts; i < 4 * (part + 1) / parts; ++i) out[i] = a[i] + b[i];
}

BufferPlan buffer(BufferRole role, int64_t size_bytes, std::string name, int64_t offset = 0) {
  BufferPlan b;
  b.role = role;
  b.size_bytes = size_bytes;
  b.arena_offset = offset;
  b.name = std::move(name);
  return b;
}

// y = (x + c) + x, with the sum in the arena.
Plan make_plan() {
  static const float kConstant[4] = {10, 20, 30, 40};
  Plan plan;
  plan.buffers = {buffer(BufferRole::Input, 16, "x"), buffer(BufferRole::Output, 16, "y"),
                  buffer(BufferRole::Constant, 16, "c"), buffer(BufferRole::Arena, 16, "t", 64)};
  plan.buffers[2].constant = reinterpret_cast<const std::byte*>(kConstant);
  plan.arena_bytes = 128;
  plan.programs = {cpu::test::function_program("add4", 3, add4)};
  for (const std::vector<int>& buffers : {std::vector<int>{3, 0, 2}, std::vector<int>{1, 3, 0}}) {
    Call call;
    call.buffers = buffers;
    call.max_parts = 2;
    call.name = "add4";
    call.written = {0};
    plan.calls.push_back(call);
  }
  plan.inputs = {{"x", DType::Float32, {2, 2}, 0}};
  plan.outputs = {{"y", DType::Float32, {4}, 1}};
  return plan;
}

std::shared_ptr<runtime::Device> open_cpu(int threads = 2) {
  return runtime::open_device("cpu", {.threads = threads, .shares_threads = false}).value();
}

Result<Model> make_model(Plan plan, const std::shared_ptr<runtime::Device>& device = open_cpu()) {
  exec::MachineOptions machine_options;
  machine_options.host = device;
  IGNIS_TRY_ASSIGN(plan.captured,
                   capture_plan(plan, exec::Machine::create(std::move(machine_options))));
  return Model::create(std::move(plan), device);
}

std::span<const std::byte> bytes_of(const std::vector<float>& v) {
  return std::as_bytes(std::span(v));
}
std::span<std::byte> writable(std::vector<float>& v) {
  return std::as_writable_bytes(std::span(v));
}

runtime::Deadline soon() { return runtime::deadline_after(seconds(60)); }

TEST(Model, BindsConstantsArenaAndPorts) {
  auto model = make_model(make_plan());
  ASSERT_TRUE(model) << model.error().to_string();
  std::vector<float> x = {1, 2, 3, 4}, y(4);
  const std::span<const std::byte> inputs[] = {bytes_of(x)};
  const std::span<std::byte> outputs[] = {writable(y)};
  ASSERT_TRUE(model->run(inputs, outputs, soon()));
  EXPECT_EQ(y, (std::vector<float>{12, 24, 36, 48}));
  // Other memory at the next run.
  std::vector<float> x2 = {5, 5, 5, 5}, y2(4);
  const std::span<const std::byte> inputs2[] = {bytes_of(x2)};
  const std::span<std::byte> outputs2[] = {writable(y2)};
  ASSERT_TRUE(model->run(inputs2, outputs2, soon()));
  EXPECT_EQ(y2, (std::vector<float>{20, 30, 40, 50}));
  EXPECT_EQ(y, (std::vector<float>{12, 24, 36, 48}));
}

TEST(Model, TwoModelsOfOnePlanHaveArenasOfTheirOwn) {
  auto a = make_model(make_plan());
  auto b = make_model(make_plan());
  ASSERT_TRUE(a);
  ASSERT_TRUE(b);
  std::vector<float> x = {1, 1, 1, 1}, y(4), z(4);
  const std::span<const std::byte> inputs[] = {bytes_of(x)};
  const std::span<std::byte> to_y[] = {writable(y)}, to_z[] = {writable(z)};
  ASSERT_TRUE(a->run(inputs, to_y, soon()));
  ASSERT_TRUE(b->run(inputs, to_z, soon()));
  EXPECT_EQ(y, z);
}

TEST(Model, RefusesWrongSizesWithBothValues) {
  auto model = make_model(make_plan());
  ASSERT_TRUE(model);
  std::vector<float> x(4), y(4), small(3);
  const auto run = [&](std::vector<std::span<const std::byte>> in,
                       std::vector<std::span<std::byte>> out) {
    return model->run(in, out, soon());
  };
  const auto expect = [](const Status& status, const char* reason, const char* a, const char* b) {
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code(), ErrorCode::InvalidArgument);
    EXPECT_EQ(status.error().reason(), reason);
    EXPECT_NE(status.error().message().find(a), std::string::npos) << status.error().message();
    EXPECT_NE(status.error().message().find(b), std::string::npos) << status.error().message();
  };
  expect(run({bytes_of(small)}, {writable(y)}), "WrongSize", "'x' is given 12 bytes", "has 16");
  expect(run({bytes_of(x)}, {writable(small)}), "WrongSize", "'y' is given 12 bytes", "has 16");
  expect(run({}, {writable(y)}), "WrongCount", "0 inputs", "has 1");
  expect(run({bytes_of(x)}, {writable(y), writable(y)}), "WrongCount", "2 outputs", "has 1");
  expect(run({{static_cast<const std::byte*>(nullptr), 16}}, {writable(y)}), "Null", "'x'", "null");
  std::vector<float> wide(5);
  expect(run({bytes_of(wide).subspan(1, 16)}, {writable(y)}), "Misaligned", "'x'", "f32");
}

TEST(Model, RefusesOverlappingMemory) {
  auto model = make_model(make_plan());
  ASSERT_TRUE(model);
  std::vector<float> x(7);
  const std::span<const std::byte> inputs[] = {bytes_of(x).subspan(0, 16)};
  const std::span<std::byte> outputs[] = {writable(x).subspan(12, 16)};
  const Status status = model->run(inputs, outputs, soon());
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().reason(), "AliasedArguments");
}

TEST(Model, ProfileGivesATimeForEachCall) {
  auto model = make_model(make_plan());
  ASSERT_TRUE(model);
  std::vector<float> x = {1, 2, 3, 4}, y(4);
  const std::span<const std::byte> inputs[] = {bytes_of(x)};
  const std::span<std::byte> outputs[] = {writable(y)};
  ModelProbe probe(*model);
  for (int run = 0; run < 3; ++run) {
    runtime::LaunchTime times[2] = {};
    const auto begin = std::chrono::steady_clock::now();
    ASSERT_TRUE(probe.profile(inputs, outputs, soon(), times));
    EXPECT_LE(begin, times[0].begin);
    EXPECT_LE(times[0].begin, times[0].end);
    EXPECT_LE(times[0].end, times[1].begin);
    EXPECT_LE(times[1].begin, times[1].end);
    EXPECT_LE(times[1].end, std::chrono::steady_clock::now());
    EXPECT_EQ(y, (std::vector<float>{12, 24, 36, 48}));
  }
}

TEST(Model, StepwiseShowsWhatEachCallWrote) {
  auto model = make_model(make_plan());
  ASSERT_TRUE(model);
  std::vector<float> x = {1, 2, 3, 4}, y(4), seen;
  const std::span<const std::byte> inputs[] = {bytes_of(x)};
  const std::span<std::byte> outputs[] = {writable(y)};
  const auto look = [&](size_t, std::span<void* const> buffers) {
    EXPECT_EQ(buffers.size(), 3u);
    seen.push_back(static_cast<const float*>(buffers[0])[3]);
    return Status();
  };
  ModelProbe probe(*model);
  ASSERT_TRUE(probe.run_stepwise(inputs, outputs, soon(), look));
  EXPECT_EQ(seen, (std::vector<float>{44, 48}));
  const auto stop = [](size_t, std::span<void* const>) {
    return Status(Error(ErrorCode::NotFound, "Enough."));
  };
  EXPECT_EQ(probe.run_stepwise(inputs, outputs, soon(), stop).error().code(), ErrorCode::NotFound);
  EXPECT_TRUE(model->run(inputs, outputs, soon()));  // the run has ended
}

TEST(CheckPlan, RefusesWhatDoesNotFitTogether) {
  const auto expect = [](auto&& change, const char* part) {
    Plan plan = make_plan();
    change(plan);
    const auto model = make_model(std::move(plan));
    ASSERT_FALSE(model) << part;
    EXPECT_EQ(model.error().code(), ErrorCode::InvalidArgument);
    EXPECT_NE(model.error().message().find(part), std::string::npos) << model.error().message();
  };
  expect([](Plan& p) { p.calls[0].program = 1; }, "program 1; there are 1");
  expect([](Plan& p) { p.calls[0].program = -1; }, "program -1");
  expect([](Plan& p) { p.calls[0].buffers = {0}; }, "passes 1 buffers");
  expect([](Plan& p) { p.calls[0].buffers[2] = 4; }, "buffer 4; there are 4");
  expect([](Plan& p) { p.calls[0].buffers[2] = -1; }, "buffer -1");
  expect([](Plan& p) { p.calls[0].max_parts = 0; }, "0 parts");
  expect([](Plan& p) { p.buffers[3].arena_offset = 32; }, "at 32");
  expect([](Plan& p) { p.buffers[3].arena_offset = 128; }, "at 128 of an arena of 128");
  expect([](Plan& p) { p.buffers[3].arena_offset = -64; }, "at -64");
  expect([](Plan& p) { p.buffers[3].size_bytes = 65; }, "takes 65 bytes");
  expect([](Plan& p) { p.buffers[3].size_bytes = -1; }, "has -1 bytes");
  expect([](Plan& p) { p.buffers[2].constant = nullptr; }, "'c' of 16 bytes has no contents");
  expect([](Plan& p) { p.inputs[0].shape = {5}; }, "f32 [5]; its buffer has 16 bytes");
  expect([](Plan& p) { p.inputs[0].dtype = DType::WeakFloat; }, "its buffer has 16 bytes");
  expect([](Plan& p) { p.inputs[0].buffer = 1; }, "'x' is bound to buffer 'y'");
  expect([](Plan& p) { p.inputs[0].buffer = 9; }, "buffer 9");
  expect([](Plan& p) { p.inputs.push_back(p.inputs[0]); }, "'x' is bound to buffer 'x'");
  expect([](Plan& p) { p.inputs.clear(); }, "which no input or output binds");
  expect([](Plan& p) { p.arena_bytes = int64_t{1} << 60; }, "arena");
}

TEST(Model, WithoutItsCaptureItIsRefused) {
  const auto model = Model::create(make_plan(), open_cpu());
  ASSERT_FALSE(model);
  EXPECT_EQ(model.error().reason(), "NotCaptured");
}

TEST(Model, ALateRunIsNoLostDevice) {
  Plan plan = make_plan();
  static std::atomic<bool> is_slow{true};
  plan.programs = {
      cpu::test::function_program("slow", 3, [](void* const* buffers, int64_t part, int64_t parts) {
        if (is_slow) std::this_thread::sleep_for(milliseconds(40));
        add4(buffers, part, parts);
      })};
  auto model = make_model(std::move(plan), open_cpu(1));
  ASSERT_TRUE(model);
  std::vector<float> x = {1, 2, 3, 4}, y(4);
  const std::span<const std::byte> inputs[] = {bytes_of(x)};
  const std::span<std::byte> outputs[] = {writable(y)};
  // Two calls of 40 ms: late for 60 ms, in time for twice that. On a very busy machine even that may be too little.
  const Status late = model->run(inputs, outputs, runtime::deadline_after(milliseconds(60)));
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code(), ErrorCode::Timeout);
  if (!model->state()) GTEST_SKIP() << "The machine is too busy for this test.";
  is_slow = false;
  const Status next = model->run(inputs, outputs, soon());
  EXPECT_TRUE(next) << next.error().to_string();
  EXPECT_EQ(y, (std::vector<float>{12, 24, 36, 48}));
}

TEST(Model, AProgramThatDoesNotComeBackLosesTheDeviceOnly) {
  static std::atomic<bool> may_return{false};
  std::shared_ptr<runtime::Device> device = open_cpu();
  std::vector<float> x(4), y(4);
  const std::span<const std::byte> inputs[] = {bytes_of(x)};
  const std::span<std::byte> outputs[] = {writable(y)};
  {
    Plan plan = make_plan();
    plan.programs = {
        cpu::test::function_program("stuck", 3, [](void* const*, int64_t part, int64_t) {
          while (part == 1 && !may_return) std::this_thread::yield();
        })};
    auto model = make_model(std::move(plan), device);
    ASSERT_TRUE(model) << model.error().to_string();
    const Status first = model->run(inputs, outputs, runtime::deadline_after(milliseconds(20)));
    ASSERT_FALSE(first);
    EXPECT_EQ(first.error().code(), ErrorCode::Timeout);
    const Status second = model->run(inputs, outputs, soon());
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().code(), ErrorCode::DeviceLost);
    EXPECT_EQ(device->state().error().code(), ErrorCode::DeviceLost);
  }  // the model goes away while its program runs on
  auto other = make_model(make_plan());  // others go on
  ASSERT_TRUE(other);
  EXPECT_TRUE(other->run(inputs, outputs, soon()));
  may_return = true;
  ASSERT_TRUE(device->queue()->reopen());
  EXPECT_TRUE(device->state());
  auto again = make_model(make_plan(), device);
  ASSERT_TRUE(again);
  EXPECT_TRUE(again->run(inputs, outputs, soon()));
}

}  // namespace
}  // namespace ignis::engine
