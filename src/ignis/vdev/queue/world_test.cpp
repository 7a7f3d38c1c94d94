#include "ignis/vdev/queue/world.h"

#include "ignis/drivers/cpu/loader.h"
#include "ignis/drivers/cpu/test_object.h"
#include "ignis/runtime/completion.h"
#include "ignis/vdev/queue/test_batch.h"

#include <gtest/gtest.h>

namespace ignis::vdev::test {
namespace {

using runtime::Purpose;
using runtime::QueuedDevice;

DeviceSpec gpu(const std::string& name) {
  DeviceSpec spec;
  spec.name = name;
  return spec;
}

TEST(World, AKernelRunsOnRealMemory) {
  World world;
  QueuedDevice& device = world.add(gpu("cuda:0"));
  EXPECT_EQ(device.name(), "CUDA");
  const auto data = device.allocate(12, Purpose::Data).value();
  KernelBatch batch(world, device, data, 3);
  ASSERT_TRUE(batch.link());
  ASSERT_TRUE(batch.run());
  EXPECT_EQ(device.timeline().announced, 1u);
  EXPECT_EQ(*device.timeline().reached, 0u) << "nothing runs while nobody sleeps";
  EXPECT_TRUE(world.run_until_idle());
  EXPECT_EQ(*device.timeline().reached, 1u);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(numbers_of(data)[i], 1);
  ASSERT_TRUE(batch.run());
  EXPECT_TRUE(world.run_until_idle());
  EXPECT_EQ(numbers_of(data)[2], 2);
  EXPECT_TRUE(device.is_online()) << device.state().reason;
}

TEST(World, ACallTakesAStepToBeginAndOneToComplete) {
  World world;
  QueuedDevice& device = world.add(gpu("CUDA"));
  const auto data = device.allocate(4, Purpose::Data).value();
  KernelBatch batch(world, device, data, 1);
  ASSERT_TRUE(batch.link());
  ASSERT_TRUE(batch.run());
  const QueueRef queue{"CUDA", kCompute};
  EXPECT_EQ(world.step(queue), Step::Ran);  // barrier
  EXPECT_EQ(world.step(queue), Step::Ran);  // wait
  EXPECT_EQ(world.step(queue), Step::Ran);  // the kernel begins
  EXPECT_EQ(world.step(queue), Step::Busy);
  EXPECT_EQ(numbers_of(data)[0], 0);
  EXPECT_EQ(world.step({"CUDA", kCopy}), Step::Empty);
  world.pass(1000);
  EXPECT_EQ(numbers_of(data)[0], 1);
  EXPECT_EQ(*device.timeline().reached, 1u);
  EXPECT_EQ(world.step(queue), Step::Empty);
}

// Two kernels of 1 us each, one queue: two ranges of 1 us, in order.
TEST(World, PR1_TimeStampsAreThoseOfTheDevice) {
  for (const uint32_t ticks_per_us : {1000u, 100u}) {
    World world({.serves_on_sleep = false});
    DeviceSpec spec = gpu("CUDA");
    spec.capabilities.ticks_per_us = ticks_per_us;
    QueuedDevice& device = world.add(spec);
    TestBatch batch(world, {&device});
    const int program = batch.add_program(device, add_one(world, 1));
    const int data = batch.add_address(device.allocate(4, Purpose::Data).value());
    std::vector<Command> commands = {barrier(), wait_reached(0)};
    for (int i = 0; i < 2; ++i) {
      const int tag = batch.add_exec(program, {data});
      commands.push_back(timestamp(batch.add_slot()));
      commands.push_back(launch(tag));
      commands.push_back(timestamp(batch.add_slot()));
    }
    commands.push_back(store_reached(0));
    batch.add_stream(0, kCompute, commands);
    ASSERT_TRUE(batch.link());
    ASSERT_TRUE(batch.run());
    world.pass(5 * kMs);  // it is served late, and has worked all the same
    EXPECT_TRUE(world.run_until_idle());
    EXPECT_EQ(batch.time_of(1) - batch.time_of(0), ticks_per_us);
    EXPECT_EQ(batch.time_of(3) - batch.time_of(2), ticks_per_us);
    EXPECT_EQ(batch.time_of(2), batch.time_of(1));
    EXPECT_EQ(batch.time_of(0), uint64_t{1'000'000} * ticks_per_us);
  }
}

TEST(World, PartsAndVariablesReachTheFunction) {
  World world;
  QueuedDevice& device = world.add(gpu("CUDA"));
  TestBatch batch(world, {&device});
  const ProgramImage image = world.add_function("mark", 1, [](const FunctionCall& call) {
    ASSERT_EQ(call.room_bytes[0], 8u);
    ASSERT_EQ(call.variables.size(), 2u);
    auto* numbers = reinterpret_cast<int32_t*>(call.buffers[0]);
    numbers[call.part] = static_cast<int32_t>(call.variables[0] * 100 + call.variables[1]);
  });
  const auto data = device.allocate(12, Purpose::Data).value();
  batch.run_variables = {40};
  const int tag = batch.add_exec(batch.add_program(device, image), {batch.add_address(data, 4)},
                                 {{.value = 3}, {.index = 0, .value = 2}}, 2);
  batch.add_stream(0, kCompute, {launch(tag), store_reached(0)});
  ASSERT_TRUE(batch.link());
  ASSERT_TRUE(batch.run());
  EXPECT_TRUE(world.run_until_idle());
  EXPECT_EQ(numbers_of(data)[0], 0);
  EXPECT_EQ(numbers_of(data)[1], 342);
  EXPECT_EQ(numbers_of(data)[2], 342);
}

TEST(World, ObjectsRunOnTheCpu) {
  WorldOptions options;
  options.cpu = *runtime::open_device("cpu");
  World world(options);
  QueuedDevice& device = world.add(gpu("CUDA"));
  // buffers[0][part] = its constants' number plus the part's, of floats (test_object.h).
  ProgramImage image;
  image.name = "kernel";
  image.object = cpu::test::host_add_constant().write();
  image.buffer_count = 1;
  const auto expected = options.cpu->allocate(64).value();
  void* const buffers[] = {expected.bytes()};
  const auto program = options.cpu->load(image).value();
  const runtime::Launch on_cpu{program.get(), buffers, 2};
  ASSERT_TRUE(options.cpu->run({&on_cpu, 1}, runtime::deadline_after(std::chrono::seconds(60))));

  const auto data = device.allocate(64, Purpose::Data).value();
  TestBatch batch(world, {&device});
  const int tag =
      batch.add_exec(batch.add_program(device, image), {batch.add_address(data)}, {}, 2);
  batch.add_stream(0, kCompute, {launch(tag), store_reached(0)});
  ASSERT_TRUE(batch.link());
  ASSERT_TRUE(batch.run());
  EXPECT_TRUE(world.run_until_idle());
  EXPECT_TRUE(device.is_online()) << device.state().reason;
  EXPECT_EQ(std::memcmp(data->host(), expected.bytes(), 64), 0);
}

/// A copy fills A, the kernel adds 1 to it, another copy brings it home; two queues.
class RoundTrip : public TestBatch {
 public:
  RoundTrip(World& world, QueuedDevice& device, runtime::MemoryRef a, runtime::MemoryRef in,
            runtime::MemoryRef out)
      : TestBatch(world, {&device}) {
    const int inside = add_address(std::move(a));
    const int c0 = add_copy(inside, add_address(std::move(in)), 16);
    const int k1 = add_exec(add_program(device, add_one(world, 4)), {inside});
    const int c2 = add_copy(add_address(std::move(out)), inside, 16);
    copy_signal = add_signal();
    kernel_signal = add_signal();
    add_stream(0, kCopy,
               {barrier(), wait_reached(0), copy(c0), store_signal(copy_signal, 1),
                wait_signal(kernel_signal, 2), copy(c2), store_signal(copy_signal, 3)});
    add_stream(0, kCompute,
               {barrier(), wait_reached(0), wait_signal(copy_signal, 1), launch(k1),
                store_signal(kernel_signal, 2), wait_signal(copy_signal, 3), store_reached(0)});
  }
  int copy_signal = 0, kernel_signal = 0;
};

TEST(World, EveryOrderOfServiceGivesTheSameAnswer) {
  for (int order = 0; order < 22; ++order) {
    World world;
    QueuedDevice& device = world.add(gpu("CUDA"));
    if (order < 2) {
      world.set_rotation(static_cast<size_t>(order));
    } else {
      world.set_random_order(static_cast<uint64_t>(order));
    }
    const auto in = world.host_memory(16).value();
    const auto out = world.host_memory(16).value();
    RoundTrip batch(world, device, device.allocate(16, Purpose::Data).value(), in, out);
    ASSERT_TRUE(batch.link());
    for (int run = 0; run < 5; ++run) {
      for (int i = 0; i < 4; ++i) numbers_of(in)[i] = 10 * i + run;
      ASSERT_TRUE(batch.run());
      ASSERT_TRUE(world.run_until_idle()) << order;
      for (int i = 0; i < 4; ++i) EXPECT_EQ(numbers_of(out)[i], 10 * i + run + 1);
    }
  }
}

TEST(World, WT7_ACompleteCopyQueueProvesNothingOfTheKernel) {
  World world;
  DeviceSpec spec = gpu("CUDA");
  spec.kernel_ns = 100 * kMs;
  QueuedDevice& device = world.add(spec);
  TestBatch batch(world, {&device});
  const auto data = device.allocate(8, Purpose::Data).value();
  const int kernel =
      batch.add_exec(batch.add_program(device, add_one(world, 1)), {batch.add_address(data)});
  const int moved = batch.add_copy(batch.add_address(data, 4),
                                   batch.add_address(world.host_memory(4).value()), 4);
  const int kernel_signal = batch.add_signal();
  const int copy_signal = batch.add_signal();
  batch.add_stream(0, kCompute,
                   {barrier(), wait_reached(0), launch(kernel), store_signal(kernel_signal, 1),
                    wait_signal(copy_signal, 2), store_reached(0)});
  batch.add_stream(0, kCopy,
                   {barrier(), wait_reached(0), copy(moved), store_signal(copy_signal, 2)});
  ASSERT_TRUE(batch.link());
  ASSERT_TRUE(batch.run());
  const runtime::Submitted submitted = batch.fence->submitted()[0];
  world.pass(kMs);
  EXPECT_TRUE(runtime::QueueComplete::prove(submitted, kCopy, batch.signal(copy_signal), 2));
  EXPECT_FALSE(runtime::QueueComplete::prove(submitted, kCompute, batch.signal(kernel_signal), 1));
  EXPECT_FALSE(
      runtime::KernelComplete::prove_by_signal(submitted, kernel, batch.signal(kernel_signal)));
  EXPECT_FALSE(runtime::KernelComplete::prove_by_timeline(submitted, kernel));
  EXPECT_TRUE(
      runtime::KernelComplete::prove_by_signal(submitted, moved, batch.signal(copy_signal)));
  world.pass(100 * kMs);
  EXPECT_TRUE(
      runtime::KernelComplete::prove_by_signal(submitted, kernel, batch.signal(kernel_signal)));
  EXPECT_TRUE(runtime::KernelComplete::prove_by_timeline(submitted, kernel));
}

TEST(World, ADeviceWithoutOrderCompletesTheNewestFirst) {
  for (const bool has_barrier : {false, true}) {
    World world;
    DeviceSpec spec = gpu("CUDA");
    spec.capabilities.is_in_order = false;
    QueuedDevice& device = world.add(spec);
    TestBatch batch(world, {&device});
    const ProgramImage twice = world.add_function("double", 1, [](const FunctionCall& call) {
      *reinterpret_cast<int32_t*>(call.buffers[0]) *= 2;
    });
    const auto data = device.allocate(4, Purpose::Data).value();
    const int address = batch.add_address(data);
    const int plus = batch.add_exec(batch.add_program(device, add_one(world, 1)), {address});
    const int times = batch.add_exec(batch.add_program(device, twice), {address});
    std::vector<Command> commands = {launch(plus), launch(times), barrier(), store_reached(0)};
    if (has_barrier) commands.insert(commands.begin() + 1, barrier());
    batch.add_stream(0, kCompute, commands);
    ASSERT_TRUE(batch.link());
    numbers_of(data)[0] = 5;
    ASSERT_TRUE(batch.run());
    EXPECT_TRUE(world.run_until_idle());
    EXPECT_EQ(numbers_of(data)[0], has_barrier ? 12 : 11);
    EXPECT_FALSE(runtime::KernelComplete::prove_by_signal(batch.fence->submitted()[0], 0,
                                                          std::atomic<uint64_t>(9)));
  }
}

TEST(World, RingsGoAroundAndSayWhatIsFree) {
  World world;
  DeviceSpec spec = gpu("CUDA");
  spec.ring_bytes = 200;  // no multiple of the batch's words
  QueuedDevice& device = world.add(spec);
  const auto data = device.allocate(4, Purpose::Data).value();
  KernelBatch batch(world, device, data, 1);
  ASSERT_TRUE(batch.link());
  const uint64_t batch_bytes = 4 + 20 + 36 + 20;
  EXPECT_EQ(device.ring_bytes(kCompute), 200u);
  EXPECT_EQ(device.free_bytes(kCompute), 200u);
  ASSERT_TRUE(batch.run());
  EXPECT_EQ(device.free_bytes(kCompute), 200 - batch_bytes);
  for (int i = 1; i < 50; ++i) ASSERT_TRUE(batch.run()) << i;
  EXPECT_TRUE(world.run_until_idle());
  EXPECT_EQ(numbers_of(data)[0], 50);
  EXPECT_EQ(device.free_bytes(kCompute), 200u);

  const std::vector<std::byte> words(201);
  const Status too_large = device.submit(kCompute, words);
  EXPECT_EQ(too_large.error().reason(), "SubmitTooLarge");
  EXPECT_EQ(device.free_bytes(kCopy), 200u);
  EXPECT_FALSE(device.submit({QueueId::Kind::Copy, 5}, {}));
}

TEST(World, WhoMapsWhat) {
  World world;
  QueuedDevice& a = world.add(gpu("CUDA"));
  QueuedDevice& b = world.add(gpu("CUDA:1"));
  DeviceSpec hidden = gpu("AMD");
  hidden.hides_memory = true;
  QueuedDevice& c = world.add(hidden);
  DeviceSpec grouped = gpu("NV");
  grouped.capabilities.peer_group = "CUDA";
  QueuedDevice& d = world.add(grouped);
  const auto host = world.host_memory(64).value();
  const auto of_a = a.allocate(64, Purpose::Data).value();
  const auto of_c = c.allocate(64, Purpose::Data).value();
  EXPECT_EQ(of_c->host(), nullptr);
  EXPECT_NE(c.allocate(64, Purpose::Signals).value()->host(), nullptr);
  for (QueuedDevice* device : {&a, &b, &c, &d}) ASSERT_TRUE(device->map(host));
  EXPECT_NE(a.map(host).value(), b.map(host).value()) << "each device has addresses of its own";
  EXPECT_EQ(a.map(host).value(), a.map(host).value());
  EXPECT_TRUE(b.map(of_a));
  EXPECT_TRUE(d.map(of_a)) << "of one peer group";
  const auto refused = c.map(of_a);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::Unsupported);
  EXPECT_EQ(refused.error().reason(), "NotMappable");
  EXPECT_NE(refused.error().message().find("'AMD'"), std::string::npos);

  world.inject("CUDA:1", {.kind = FaultKind::MappingRefused});
  EXPECT_TRUE(b.map(host)) << "what is mapped stays so";
  const auto later = world.host_memory(64).value();
  EXPECT_EQ(b.map(later).error().reason(), "NotMappable");
  EXPECT_TRUE(b.map(b.allocate(8, Purpose::Data).value())) << "its own memory is no mapping";
  world.heal("CUDA:1");
  EXPECT_TRUE(b.map(later));
}

TEST(World, ADeviceThatIsNotCoherentShowsItsWorkWhenAsked) {
  World world;
  DeviceSpec spec = gpu("CUDA");
  spec.capabilities.is_host_coherent = false;
  QueuedDevice& device = world.add(spec);
  const auto data = device.allocate(8, Purpose::Data).value();
  KernelBatch batch(world, device, data, 2);
  ASSERT_TRUE(batch.link());
  numbers_of(data)[0] = 10;  // reaches the device with the submit
  ASSERT_TRUE(batch.run());
  EXPECT_TRUE(world.run_until_idle());
  EXPECT_EQ(*device.timeline().reached, 1u) << "the words that the host polls are coherent";
  EXPECT_EQ(numbers_of(data)[0], 10);
  EXPECT_EQ(numbers_of(data)[1], 0);
  ASSERT_TRUE(device.make_visible(data, 0, 4));
  EXPECT_EQ(numbers_of(data)[0], 11);
  EXPECT_EQ(numbers_of(data)[1], 0);
  ASSERT_TRUE(device.make_visible(data, 0, 8));
  EXPECT_EQ(numbers_of(data)[1], 1);
  EXPECT_FALSE(device.make_visible(data, 4, 9));
  ASSERT_TRUE(batch.run());
  EXPECT_TRUE(world.run_until_idle());
  ASSERT_TRUE(device.make_visible(data, 0, 8));
  EXPECT_EQ(numbers_of(data)[0], 12) << "what the host did not write stays the device's";
}

TEST(World, MemoryIsCountedAndLimited) {
  World world;
  DeviceSpec spec = gpu("CUDA");
  spec.memory_bytes = 1000;
  QueuedDevice& device = world.add(spec);
  EXPECT_EQ(world.memory_in_use_bytes("CUDA"), 0u);
  auto memory = device.allocate(600, Purpose::Data).value();
  EXPECT_EQ(world.memory_in_use_bytes("CUDA"), 600u);
  const auto refused = device.allocate(401, Purpose::Data);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::OutOfMemory);
  memory.reset();
  EXPECT_TRUE(device.allocate(1000, Purpose::Data));
  const auto host = world.host_memory(24).value();
  EXPECT_EQ(world.memory_in_use_bytes("CPU"), 24u);
}

TEST(World, ANetworkCopyNeedsBothHalves) {
  World world;
  DeviceSpec spec = gpu("CUDA");
  spec.capabilities.has_network_card = true;
  QueuedDevice& a = world.add(spec);
  spec.name = "AMD";
  QueuedDevice& b = world.add(spec);
  const auto from = a.allocate(16, Purpose::Data).value();
  const auto to = b.allocate(16, Purpose::Data).value();
  const auto out = a.open_wire(16, nullptr).value();
  EXPECT_FALSE(b.open_wire(8, out));
  EXPECT_FALSE(a.open_wire(16, out));
  const auto in = b.open_wire(16, out).value();

  TestBatch send(world, {&a});
  const int sent = send.add_copy(send.add_address(out), send.add_address(from), 16);
  send.add_stream(0, kCopy, {wait_reached(0), copy(sent), store_reached(0)});
  TestBatch receive(world, {&b});
  const int received = receive.add_copy(receive.add_address(to), receive.add_address(in), 16);
  receive.add_stream(0, kCopy, {wait_reached(0), copy(received), store_reached(0)});
  ASSERT_TRUE(send.link());
  ASSERT_TRUE(receive.link());
  for (int run = 0; run < 3; ++run) {
    numbers_of(from)[0] = run + 5;
    ASSERT_TRUE(send.run());
    EXPECT_FALSE(world.run_until_idle()) << "a send alone never ends";
    EXPECT_TRUE(a.only_waits());
    ASSERT_TRUE(receive.run());
    EXPECT_TRUE(world.run_until_idle());
    EXPECT_EQ(numbers_of(to)[0], run + 5);
  }
}

TEST(World, WrongWordsMakeTheDeviceUnavailable) {
  struct Row {
    const char* name;
    std::vector<std::byte> words;
    const char* cause;
  };
  const auto word = [](uint32_t value) {
    std::vector<std::byte> bytes;
    for (int i = 0; i < 4; ++i) bytes.push_back(static_cast<std::byte>(value >> (8 * i)));
    return bytes;
  };
  std::vector<std::byte> wild(20);
  std::memcpy(wild.data(), word(0xA503'0005).data(), 4);
  std::vector<std::byte> cut = word(0xA503'0005);
  for (const Row& row : {Row{"garbage", word(0x12345678), "0x12345678"}, Row{"cut", cut, "cut off"},
                         Row{"wild", wild, "page fault at 0x0"}}) {
    SCOPED_TRACE(row.name);
    World world;
    QueuedDevice& device = world.add(gpu("CUDA"));
    ASSERT_TRUE(device.submit(kCompute, row.words));
    world.run_until_blocked();
    EXPECT_EQ(device.state().condition, runtime::DeviceCondition::Unavailable);
    EXPECT_NE(device.state().reason.find(row.cause), std::string::npos) << device.state().reason;
    EXPECT_EQ(device.submit(kCompute, word(0xA501'0001)).error().reason(), "DeviceUnavailable");
    ASSERT_TRUE(device.reopen());
    EXPECT_TRUE(device.submit(kCompute, word(0xA501'0001)));
    EXPECT_TRUE(world.run_until_blocked());
  }
}

TEST(World, ReopenKeepsWhatItCanProve) {
  for (const bool keeps : {true, false}) {
    World world;
    DeviceSpec spec = gpu("CUDA");
    spec.keeps_memory = keeps;
    QueuedDevice& device = world.add(spec);
    const auto memory = device.allocate(4, Purpose::Data).value();
    numbers_of(memory)[0] = 77;
    const uint64_t address = device.map(memory).value();
    device.report_hang("a test");
    EXPECT_FALSE(device.allocate(4, Purpose::Data));
    ASSERT_TRUE(device.reopen());
    EXPECT_EQ(device.generation(), 2u);
    EXPECT_EQ(device.is_whole(*memory), keeps);
    EXPECT_EQ(numbers_of(memory)[0] == 77, keeps);
    if (keeps) {
      EXPECT_EQ(device.map(memory).value(), address);
    } else {
      EXPECT_FALSE(device.map(memory));
    }
    EXPECT_TRUE(device.allocate(4, Purpose::Data));
  }
  World world;
  DeviceSpec spec = gpu("CUDA");
  spec.capabilities.can_recover = false;
  QueuedDevice& device = world.add(spec);
  device.report_hang("a test");
  EXPECT_EQ(device.reopen().error().reason(), "CannotReset");
}

TEST(World, AThreadServesInRealTime) {
  WorldOptions options;
  options.clock = &runtime::Clock::real();
  World world(options);
  QueuedDevice& device = world.add(gpu("CUDA"));
  const auto data = device.allocate(4, Purpose::Data).value();
  KernelBatch batch(world, device, data, 1);
  ASSERT_TRUE(batch.link());
  world.start_worker();
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(batch.run());
  const auto read = [&] { return device.timeline().reached->load(); };
  EXPECT_EQ(wait_at_least(world.clock(), read, 100, kPatient), runtime::WaitEnd::Reached);
  EXPECT_EQ(numbers_of(data)[0], 100);
}

}  // namespace
}  // namespace ignis::vdev::test
