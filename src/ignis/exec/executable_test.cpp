#include "ignis/exec/executable.h"

#include "ignis/drivers/cpu/loader.h"
#include "ignis/drivers/cpu/test_object.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace ignis::exec {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// A device that runs C++ functions: the object's first byte chooses one. What exec hands over can be looked at.
using Function = void (*)(void* const* buffers, int64_t part, int64_t parts);

class FakeProgram final : public runtime::Program {
 public:
  FakeProgram(const ProgramImage& image, Function f)
      : Program(image.name, image.buffer_count), function(f) {}
  const Function function;
};

class FakeDevice final : public runtime::Device {
 public:
  FakeDevice(int thread_count, std::vector<Function> table)
      : Device("fake", Target()), threads_(thread_count), functions(std::move(table)) {}
  int threads() const override { return threads_; }
  Result<runtime::DeviceMemory> allocate(uint64_t size_bytes) override {
    const size_t rounded = (size_bytes + 64) / 64 * 64;
    auto* bytes = static_cast<std::byte*>(std::aligned_alloc(64, rounded));
    std::memset(bytes, 0, rounded);
    return make_memory(bytes, size_bytes);
  }
  Result<std::shared_ptr<const runtime::Program>> load(const ProgramImage& image) override {
    return std::shared_ptr<const runtime::Program>(
        std::make_shared<FakeProgram>(image, functions[std::to_integer<size_t>(image.object[0])]));
  }
  Status run(std::span<const runtime::Launch> launches, runtime::Deadline,
             std::span<runtime::LaunchTime> times) override {
    for (const runtime::Launch& launch : launches) {
      for (int64_t part = 0; part < launch.parts; ++part) {
        static_cast<const FakeProgram*>(launch.program)
            ->function(launch.buffers, part, launch.parts);
      }
    }
    for (runtime::LaunchTime& time : times) time.end = time.begin + milliseconds(3);
    return {};
  }
  Status state() const override { return {}; }

 private:
  void release(std::byte* bytes, uint64_t) noexcept override { std::free(bytes); }
  int threads_;
  std::vector<Function> functions;
};

// out[i] = a[i] + b[i], four floats.
void add4(void* const* buffers, int64_t part, int64_t parts) {
  auto* out = static_cast<float*>(buffers[0]);
  const auto* a = static_cast<const float*>(buffers[1]);
  const auto* b = static_cast<const float*>(buffers[2]);
  for (int64_t i = 4 * part / parts; i < 4 * (part + 1) / parts; ++i) out[i] = a[i] + b[i];
}

ProgramImage image_of(uint8_t function, int buffer_count) {
  ProgramImage image;
  image.name = "f" + std::to_string(function);
  image.object = {std::byte{function}};
  image.buffer_count = buffer_count;
  return image;
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
  plan.programs = {image_of(0, 3)};
  for (const std::vector<int>& buffers : {std::vector<int>{3, 0, 2}, std::vector<int>{1, 3, 0}}) {
    Call call;
    call.buffers = buffers;
    call.max_parts = 2;
    call.name = "add4";
    plan.calls.push_back(call);
  }
  plan.inputs = {{"x", DType::Float32, {2, 2}, 0}};
  plan.outputs = {{"y", DType::Float32, {4}, 1}};
  return plan;
}

std::shared_ptr<runtime::Device> fake_device(int threads = 2) {
  return std::make_shared<FakeDevice>(threads, std::vector<Function>{add4});
}

std::span<const std::byte> bytes_of(const std::vector<float>& v) {
  return std::as_bytes(std::span(v));
}
std::span<std::byte> writable(std::vector<float>& v) {
  return std::as_writable_bytes(std::span(v));
}

runtime::Deadline soon() { return runtime::deadline_after(seconds(60)); }

TEST(Executable, BindsConstantsArenaAndPorts) {
  auto executable = Executable::create(make_plan(), fake_device());
  ASSERT_TRUE(executable) << executable.error().to_string();
  std::vector<float> x = {1, 2, 3, 4}, y(4);
  const std::span<const std::byte> inputs[] = {bytes_of(x)};
  const std::span<std::byte> outputs[] = {writable(y)};
  ASSERT_TRUE(executable->run(inputs, outputs, soon()));
  EXPECT_EQ(y, (std::vector<float>{12, 24, 36, 48}));
  // Other memory at the next run.
  std::vector<float> x2 = {5, 5, 5, 5}, y2(4);
  const std::span<const std::byte> inputs2[] = {bytes_of(x2)};
  const std::span<std::byte> outputs2[] = {writable(y2)};
  ASSERT_TRUE(executable->run(inputs2, outputs2, soon()));
  EXPECT_EQ(y2, (std::vector<float>{20, 30, 40, 50}));
  EXPECT_EQ(y, (std::vector<float>{12, 24, 36, 48}));
}

TEST(Executable, TwoExecutablesOfOnePlanHaveArenasOfTheirOwn) {
  auto a = Executable::create(make_plan(), fake_device());
  auto b = Executable::create(make_plan(), fake_device());
  ASSERT_TRUE(a);
  ASSERT_TRUE(b);
  std::vector<float> x = {1, 1, 1, 1}, y(4), z(4);
  const std::span<const std::byte> inputs[] = {bytes_of(x)};
  const std::span<std::byte> to_y[] = {writable(y)}, to_z[] = {writable(z)};
  ASSERT_TRUE(a->run(inputs, to_y, soon()));
  ASSERT_TRUE(b->run(inputs, to_z, soon()));
  EXPECT_EQ(y, z);
}

TEST(Executable, RefusesWrongSizesWithBothValues) {
  auto executable = Executable::create(make_plan(), fake_device());
  ASSERT_TRUE(executable);
  std::vector<float> x(4), y(4), small(3);
  const auto run = [&](std::vector<std::span<const std::byte>> in,
                       std::vector<std::span<std::byte>> out) {
    return executable->run(in, out, soon());
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

TEST(Executable, RefusesOverlappingMemory) {
  auto executable = Executable::create(make_plan(), fake_device());
  ASSERT_TRUE(executable);
  std::vector<float> x(7);
  const std::span<const std::byte> inputs[] = {bytes_of(x).subspan(0, 16)};
  const std::span<std::byte> outputs[] = {writable(x).subspan(12, 16)};
  const Status status = executable->run(inputs, outputs, soon());
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().reason(), "AliasedArguments");
}

TEST(Executable, ProfileGivesATimeForEachCall) {
  auto executable = Executable::create(make_plan(), fake_device());
  ASSERT_TRUE(executable);
  std::vector<float> x(4), y(4);
  const std::span<const std::byte> inputs[] = {bytes_of(x)};
  const std::span<std::byte> outputs[] = {writable(y)};
  runtime::LaunchTime times[2] = {};
  ASSERT_TRUE(executable->profile(inputs, outputs, soon(), times));
  EXPECT_EQ(times[0].end - times[0].begin, milliseconds(3));
  EXPECT_EQ(times[1].end - times[1].begin, milliseconds(3));
}

TEST(Executable, StepwiseShowsWhatEachCallWrote) {
  auto executable = Executable::create(make_plan(), fake_device());
  ASSERT_TRUE(executable);
  std::vector<float> x = {1, 2, 3, 4}, y(4), seen;
  const std::span<const std::byte> inputs[] = {bytes_of(x)};
  const std::span<std::byte> outputs[] = {writable(y)};
  const auto look = [&](size_t, std::span<void* const> buffers) {
    EXPECT_EQ(buffers.size(), 3u);
    seen.push_back(static_cast<const float*>(buffers[0])[3]);
    return Status();
  };
  ASSERT_TRUE(executable->run_stepwise(inputs, outputs, soon(), look));
  EXPECT_EQ(seen, (std::vector<float>{44, 48}));
  const auto stop = [](size_t, std::span<void* const>) {
    return Status(Error(ErrorCode::NotFound, "Enough."));
  };
  EXPECT_EQ(executable->run_stepwise(inputs, outputs, soon(), stop).error().code(),
            ErrorCode::NotFound);
  EXPECT_TRUE(executable->run(inputs, outputs, soon()));  // the run has ended
}

TEST(Executable, CutsOnlyCallsThatAreWorthIt) {
  Plan plan = make_plan();
  plan.calls[0].max_parts = 8;
  plan.calls[1].max_parts = 8;
  plan.calls[1].flops = 100;
  plan.calls.push_back(plan.calls[1]);
  plan.calls[2].flops = 1e9;
  plan.calls.push_back(plan.calls[2]);
  plan.calls[3].max_parts = 1;
  const auto executable = Executable::create(std::move(plan), fake_device(3));
  ASSERT_TRUE(executable);
  EXPECT_EQ(executable->parts(0), 3);  // unknown work: as many as there are threads
  EXPECT_EQ(executable->parts(1), 1);
  EXPECT_EQ(executable->parts(2), 3);
  EXPECT_EQ(executable->parts(3), 1);
}

TEST(Executable, AShortRunWakesNobody) {
  Plan plan = make_plan();
  for (Call& call : plan.calls) {
    call.max_parts = 8;
    call.flops = 800e3;  // 10 us at the assumed rate: two parts each, if the run were longer
  }
  const auto executable = Executable::create(plan, fake_device(2));
  ASSERT_TRUE(executable);
  EXPECT_EQ(executable->parts(0), 1);
  plan.calls.insert(plan.calls.end(), 4, plan.calls[0]);
  const auto longer = Executable::create(plan, fake_device(2));
  ASSERT_TRUE(longer);
  EXPECT_EQ(longer->parts(0), 2);
}

TEST(CheckPlan, RefusesWhatDoesNotFitTogether) {
  const auto expect = [](auto&& change, const char* part) {
    Plan plan = make_plan();
    change(plan);
    const auto executable = Executable::create(std::move(plan), fake_device());
    ASSERT_FALSE(executable) << part;
    EXPECT_EQ(executable.error().code(), ErrorCode::InvalidArgument);
    EXPECT_NE(executable.error().message().find(part), std::string::npos)
        << executable.error().message();
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

// x86-64: waits until the 64-bit word at buffers[0] is not 0 if `part` is 1; part 0 waits for the word at
// buffers[1], which part 1 sets first. So part 1 runs on a worker, and comes back when the test says so.
std::vector<std::byte> stuck_object() {
  cpu::test::ObjectWriter writer;
  const uint16_t text = writer.text({
      0x48, 0x8b, 0x07,                          //  0 mov rax, [rdi]
      0x48, 0x8b, 0x4f, 0x08,                    //  3 mov rcx, [rdi + 8]
      0x48, 0x85, 0xf6,                          //  7 test rsi, rsi
      0x75, 0x09,                                // 10 jne 21
      0xf3, 0x90,                                // 12 pause
      0x48, 0x83, 0x39, 0x00,                    // 14 cmp qword [rcx], 0
      0x74, 0xf8,                                // 18 je 12
      0xc3,                                      // 20 ret
      0x48, 0xc7, 0x01, 0x01, 0x00, 0x00, 0x00,  // 21 mov qword [rcx], 1
      0xf3, 0x90,                                // 28 pause
      0x48, 0x83, 0x38, 0x00,                    // 30 cmp qword [rax], 0
      0x74, 0xf8,                                // 34 je 28
      0xc3,                                      // 36 ret
  });
  writer.symbol("stuck", text, 0);
  return writer.write();
}

TEST(Executable, AProgramThatDoesNotComeBackLosesTheDeviceOnly) {
  if (cpu::host_arch() != Arch::X86_64) GTEST_SKIP() << "The object is for x86-64.";
  static std::atomic<int64_t> may_return{0};
  static int64_t began = 0;
  runtime::DeviceOptions options;
  options.threads = 2;
  std::shared_ptr<runtime::Device> device = *runtime::open_device("cpu", options);
  {
    Plan plan;
    plan.programs.resize(1);
    plan.programs[0].name = "stuck";
    plan.programs[0].object = stuck_object();
    plan.programs[0].buffer_count = 2;
    plan.buffers = {buffer(BufferRole::Input, 8, "may_return"),
                    buffer(BufferRole::Output, 8, "began")};
    plan.inputs = {{"may_return", DType::Int64, {}, 0}};
    plan.outputs = {{"began", DType::Int64, {}, 1}};
    Call call;
    call.buffers = {0, 1};
    call.max_parts = 2;
    plan.calls = {call};
    auto executable = Executable::create(std::move(plan), device);
    ASSERT_TRUE(executable) << executable.error().to_string();
    const std::span<const std::byte> inputs[] = {std::as_bytes(std::span(&may_return, 1))};
    const std::span<std::byte> outputs[] = {std::as_writable_bytes(std::span(&began, 1))};
    const Status first =
        executable->run(inputs, outputs, runtime::deadline_after(milliseconds(20)));
    ASSERT_FALSE(first);
    EXPECT_EQ(first.error().code(), ErrorCode::Timeout);
    const Status second = executable->run(inputs, outputs, soon());
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().code(), ErrorCode::DeviceLost);
    EXPECT_EQ(device->state().error().code(), ErrorCode::DeviceLost);
  }  // the executable goes away while its program runs on
  may_return.store(1);
  device = *runtime::open_device("cpu", options);  // reopened: works again
  EXPECT_TRUE(device->state());
  std::this_thread::sleep_for(milliseconds(1));
}

}  // namespace
}  // namespace ignis::exec
