#include "ignis/runtime/device.h"

#include "ignis/drivers/cpu/loader.h"
#include "ignis/drivers/cpu/test_object.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>

namespace ignis::runtime {
namespace {

using std::chrono::seconds;

ProgramImage add_constant() {
  ProgramImage image;
  image.name = "kernel";
  image.object = cpu::test::host_add_constant().write();
  image.buffer_count = 1;
  return image;
}

TEST(OpenDevice, KnowsTheCpuInEveryForm) {
  const std::pair<const char*, const char*> rows[] = {{"cpu", "llvm"},
                                                      {"CPU:0", "llvm"},
                                                      {"cpu:llvm", "llvm"},
                                                      {"cpu:c", "c"},
                                                      {"cpu:interp", "interp"}};
  for (const auto& [spec, renderer] : rows) {
    const auto device = open_device(spec);
    ASSERT_TRUE(device) << device.error().to_string();
    EXPECT_EQ((*device)->target().renderer, renderer);
    EXPECT_GE((*device)->threads(), 1);
    EXPECT_EQ((*device)->target().threads, (*device)->threads());
  }
  if (cpu::host_arch() == Arch::X86_64) {
    EXPECT_EQ((*open_device("cpu:llvm:sse2"))->target().isa, Isa::Sse2);
  }
}

TEST(OpenDevice, SaysWhatThereIs) {
  const auto unknown = open_device("cuda:1");
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code(), ErrorCode::NotFound);
  EXPECT_NE(unknown.error().message().find("'cuda:1'"), std::string::npos);
  EXPECT_NE(unknown.error().message().find("cpu:interp"), std::string::npos);
  EXPECT_EQ(open_device("cpu:1").error().code(), ErrorCode::NotFound);
  EXPECT_EQ(open_device("pci+cpu").error().code(), ErrorCode::NotFound);
  EXPECT_EQ(open_device("cpu:ptx").error().code(), ErrorCode::NotFound);
  EXPECT_EQ(open_device("cpu:llvm:mmx").error().code(), ErrorCode::InvalidArgument);
  EXPECT_EQ(open_device("cpu:llvm:mmx").error().reason(), "UnknownFeature");
  const bool is_x86 = cpu::host_arch() == Arch::X86_64;
  const auto foreign = open_device(is_x86 ? "cpu:llvm:neon" : "cpu:llvm:avx2");
  ASSERT_FALSE(foreign);
  EXPECT_EQ(foreign.error().code(), ErrorCode::Unsupported);
  EXPECT_EQ(foreign.error().reason(), "TargetMismatch");
  for (const std::string& name :
       {make_target(is_x86 ? Isa::Neon : Isa::Avx2).name(), detect_host_target().name()}) {
    EXPECT_NE(foreign.error().message().find(name), std::string::npos) << foreign.error().message();
  }
  EXPECT_EQ(open_device("").error().code(), ErrorCode::InvalidArgument);
  EXPECT_TRUE(open_device("cuda,cpu"));  // the list falls back
  EXPECT_FALSE(open_device("cuda,amd"));
}

TEST(FindTarget, KnowsOtherMachinesThanThisOne) {
  EXPECT_EQ(*runtime::find_target("cpu"), detect_host_target());
  EXPECT_EQ(*runtime::find_target("cuda,cpu"), detect_host_target());
  EXPECT_EQ(runtime::find_target("cpu:c")->renderer, "c");
  for (const Isa isa : {Isa::Sse2, Isa::Avx2, Isa::Avx512, Isa::Neon}) {
    const auto target = runtime::find_target("cpu:llvm:" + make_target(isa).name());
    ASSERT_TRUE(target) << target.error().to_string();
    EXPECT_EQ(target->isa, isa);
    EXPECT_EQ(target->vector_bytes, make_target(isa).vector_bytes);
  }
  EXPECT_EQ(runtime::find_target("cpu:llvm:x86_64-neon").error().reason(), "UnknownFeature");
  EXPECT_EQ(runtime::find_target("cuda").error().reason(), "UnknownDevice");
  EXPECT_EQ(runtime::find_target("cpu:ptx").error().code(), ErrorCode::NotFound);
}

TEST(Device, GivesZeroedAlignedMemory) {
  const auto device = *open_device("cpu");
  for (const uint64_t size : {uint64_t{0}, uint64_t{1}, uint64_t{63}, uint64_t{65'536},
                              uint64_t{65'537}, uint64_t{5} << 20}) {
    const auto memory = device->allocate(size);
    ASSERT_TRUE(memory);
    EXPECT_EQ(memory->size_bytes(), size);
    ASSERT_NE(memory->bytes(), nullptr);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(memory->bytes()) % 64, 0u);
    for (uint64_t i = 0; i < size; ++i) ASSERT_EQ(memory->bytes()[i], std::byte{0});
    std::memset(memory->bytes(), 1, size);
  }
  const auto too_much = device->allocate(uint64_t{1} << 60);
  ASSERT_FALSE(too_much);
  EXPECT_EQ(too_much.error().code(), ErrorCode::OutOfMemory);
}

TEST(Device, RunsLaunchesInOrderAndInParts) {
  DeviceOptions options;
  options.threads = 3;
  const auto device = *open_device("cpu", options);
  const auto program = device->load(add_constant());
  ASSERT_TRUE(program) << program.error().to_string();
  int64_t a[3] = {}, b[3] = {};
  void* buffers_a[] = {a};
  void* buffers_b[] = {b};
  const Launch launches[] = {{program->get(), buffers_a, 1}, {program->get(), buffers_b, 3}};
  LaunchTime times[2];
  ASSERT_TRUE(device->run(launches, deadline_after(seconds(60)), times));
  EXPECT_EQ(a[0], 7);
  EXPECT_EQ(a[1], 0);
  EXPECT_EQ(b[0], 7);
  EXPECT_EQ(b[1], 8);
  EXPECT_EQ(b[2], 9);
  EXPECT_LE(times[0].begin, times[0].end);
  EXPECT_LE(times[0].end, times[1].begin);
  EXPECT_LE(times[1].begin, times[1].end);
}

TEST(Device, ASpentDeadlineStopsBeforeTheNextCall) {
  const auto device = *open_device("cpu");
  const auto program = *device->load(add_constant());
  int64_t out[1] = {};
  void* buffers[] = {out};
  const Launch launch = {program.get(), buffers, 1};
  const Status status = device->run({&launch, 1}, deadline_after(seconds(-1)));
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code(), ErrorCode::Timeout);
  EXPECT_EQ(out[0], 0);
  EXPECT_TRUE(device->state());  // nothing is stuck: the device stays usable
  EXPECT_TRUE(device->run({&launch, 1}, deadline_after(seconds(60))));
}

// Part 0 waits until part 1 has begun, so that no thread but a worker runs part 1, which waits until word 0 is 0.
ProgramImage wait_for_zero() {
#if defined(__aarch64__)
  cpu::test::ObjectWriter object(EM_AARCH64);
  const uint16_t text = object.text({0x03, 0x00, 0x40, 0xf9,    // ldr x3, [x0]
                                     0xe1, 0x00, 0x00, 0xb4,    // cbz x1, 32
                                     0x24, 0x00, 0x80, 0xd2,    // mov x4, 1
                                     0x64, 0x04, 0x00, 0xf9,    // str x4, [x3, 8]
                                     0x3f, 0x20, 0x03, 0xd5,    // 16: yield
                                     0x64, 0x00, 0x40, 0xf9,    // ldr x4, [x3]
                                     0xc4, 0xff, 0xff, 0xb5,    // cbnz x4, 16
                                     0xc0, 0x03, 0x5f, 0xd6,    // ret
                                     0x3f, 0x20, 0x03, 0xd5,    // 32: yield
                                     0x64, 0x04, 0x40, 0xf9,    // ldr x4, [x3, 8]
                                     0xc4, 0xff, 0xff, 0xb4,    // cbz x4, 32
                                     0xc0, 0x03, 0x5f, 0xd6});  // ret
#else
  cpu::test::ObjectWriter object;
  const uint16_t text =
      object.text({0x48, 0x8b, 0x07,                                // mov rax, [rdi]
                   0x48, 0x85, 0xf6,                                // test rsi, rsi
                   0x74, 0x11,                                      // jz 25
                   0x48, 0xc7, 0x40, 0x08, 0x01, 0x00, 0x00, 0x00,  // mov qword [rax + 8], 1
                   0xf3, 0x90,                                      // 16: pause
                   0x48, 0x83, 0x38, 0x00,                          // cmp qword [rax], 0
                   0x75, 0xf8,                                      // jne 16
                   0xc3,                                            // ret
                   0xf3, 0x90,                                      // 25: pause
                   0x48, 0x83, 0x78, 0x08, 0x00,                    // cmp qword [rax + 8], 0
                   0x74, 0xf7,                                      // je 25
                   0xc3});                                          // ret
#endif
  object.symbol("kernel", text, 0);
  ProgramImage image;
  image.name = "kernel";
  image.object = object.write();
  image.buffer_count = 1;
  return image;
}

TEST(Device, AHangTakesAlongOnlyThoseThatShareItsThreads) {
  DeviceOptions options;
  options.threads = 2;
  const auto hanging = *open_device("cpu", options), beside = *open_device("cpu", options);
  options.shares_threads = false;
  const auto apart = *open_device("cpu", options);
  const auto program = *hanging->load(wait_for_zero());
  static int64_t words[2] = {1, 0};  // outlive the test: the abandoned thread reads them
  static void* buffers[] = {words};
  const Launch stuck = {program.get(), buffers, 2};
  const Status status = hanging->run({&stuck, 1}, deadline_after(std::chrono::milliseconds(30)));
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code(), ErrorCode::Timeout);
  EXPECT_EQ(hanging->state().error().code(), ErrorCode::DeviceLost);
  EXPECT_EQ(beside->state().error().code(), ErrorCode::DeviceLost);
  runtime::abandon(program);

  const auto expect_works = [](Device& device) {
    ASSERT_TRUE(device.state());
    const auto add = *device.load(add_constant());
    int64_t out[2] = {};
    void* out_buffers[] = {out};
    const Launch launch = {add.get(), out_buffers, 2};
    ASSERT_TRUE(device.run({&launch, 1}, deadline_after(seconds(60))));
    EXPECT_EQ(out[1], 8);
  };
  expect_works(*apart);
  options.shares_threads = true;
  expect_works(**open_device("cpu", options));  // opened anew: new threads
  std::atomic_ref<int64_t>(words[0]).store(0);
}

TEST(Device, RefusesABadObjectByTheProgramsName) {
  const auto device = *open_device("cpu");
  ProgramImage image = add_constant();
  image.object.resize(image.object.size() / 2);
  const auto program = device->load(image);
  ASSERT_FALSE(program);
  EXPECT_EQ(program.error().code(), ErrorCode::InvalidArgument);
  EXPECT_NE(program.error().to_string().find("kernel"), std::string::npos);
}

TEST(DeadlineAfter, StaysInsideTheClock) {
  EXPECT_EQ(deadline_after(std::chrono::nanoseconds::max()), Deadline::max());
  EXPECT_LT(deadline_after(seconds(1)), Deadline::max());
}

}  // namespace
}  // namespace ignis::runtime
