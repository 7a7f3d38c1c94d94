// The list of faults at the end of the queue spec's section 13, one row each: the outcome is typed and comes in time, other
// devices go on, a reopened device gives the same answers as before.

#include "ignis/exec/fence.h"
#include "ignis/exec/synchronize.h"
#include "ignis/vdev/queue/test_batch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <iterator>
#include <memory>
#include <ostream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace ignis::exec {
namespace {

using namespace vdev::test;  // NOLINT: the vocabulary of these tests
using runtime::Purpose;
using runtime::QueuedDevice;
using vdev::DeviceSpec;
using vdev::Fault;
using vdev::FaultKind;
using vdev::World;

constexpr runtime::WaitLimits kLimits{.deadline_ns = 400 * kMs, .stall_ns = 100 * kMs};

/// Two peers, a device of another kind that takes no part, a far device with a network card, and the host's worker.
class Scene {
 public:
  Scene() {
    for (const char* name : {"CUDA", "CUDA:1", "NV", "AMD"}) {
      DeviceSpec spec;
      spec.name = name;
      spec.ring_bytes = 256;
      spec.capabilities.has_network_card = true;
      world.add(spec);
    }
    world.add_host_worker();
  }
  QueuedDevice& device(const std::string& name) { return *world.find(name); }

  /// One kernel on a device, waited for.
  Status compute(const std::string& name) {
    IGNIS_TRY_ASSIGN(const auto data, device(name).allocate(4, Purpose::Data));
    auto& batch = keep<KernelBatch>(world, device(name), data, 1);
    IGNIS_TRY(batch.upload_status);
    IGNIS_TRY(batch.link());
    IGNIS_TRY(batch.run(kLimits));
    IGNIS_TRY(synchronize(device(name), pending, kLimits));
    EXPECT_EQ(numbers_of(data)[0], 1);
    return {};
  }
  /// More batches than the ring takes, of which none is waited for.
  Status compute_much(const std::string& name) {
    IGNIS_TRY_ASSIGN(const auto data, device(name).allocate(4, Purpose::Data));
    for (int i = 0; i < 10; ++i) {
      auto& batch = keep<KernelBatch>(world, device(name), data, 1);
      IGNIS_TRY(batch.link());
      IGNIS_TRY(batch.run(kLimits));
    }
    return synchronize(device(name), pending, kLimits);
  }
  /// A kernel on the host's memory.
  Status compute_on_host_memory(const std::string& name) {
    IGNIS_TRY_ASSIGN(const auto data, world.host_memory(4));
    auto& batch = keep<KernelBatch>(world, device(name), data, 1);
    IGNIS_TRY(batch.link());
    IGNIS_TRY(batch.run(kLimits));
    pending.note("CPU", batch.fence->submitted()[0]);
    IGNIS_TRY(synchronize_owner("CPU", pending, kLimits));
    EXPECT_EQ(numbers_of(data)[0], 1);
    return {};
  }
  /// A kernel on each of two peers, waited for on the first.
  Status compute_on_both() {
    IGNIS_TRY_ASSIGN(const auto first, device("CUDA").allocate(4, Purpose::Data));
    IGNIS_TRY_ASSIGN(const auto second, device("CUDA:1").allocate(4, Purpose::Data));
    auto& batch = keep<PairBatch>(world, device("CUDA"), device("CUDA:1"), first, second, 1);
    IGNIS_TRY(batch.link());
    IGNIS_TRY(batch.run(kLimits));
    pending.note_batch(batch.fence->submitted());
    IGNIS_TRY(synchronize(device("CUDA"), pending, kLimits));
    IGNIS_TRY(synchronize(device("CUDA:1"), pending, kLimits));
    EXPECT_EQ(numbers_of(first)[0], 1);
    EXPECT_EQ(numbers_of(second)[0], 1);
    return {};
  }
  /// A copy over the network: two batches that complete jointly. `between` happens when both are linked.
  Status send(const std::function<void()>& between) {
    QueuedDevice& near = device("CUDA");
    QueuedDevice& far = device("AMD");
    IGNIS_TRY_ASSIGN(const auto from, near.allocate(4, Purpose::Data));
    IGNIS_TRY_ASSIGN(const auto to, far.allocate(4, Purpose::Data));
    IGNIS_TRY_ASSIGN(const auto out, near.open_wire(4, nullptr));
    IGNIS_TRY_ASSIGN(const auto in, far.open_wire(4, out));
    numbers_of(from)[0] = 1234;
    auto& sends = keep<TestBatch>(world, std::vector<QueuedDevice*>{&near});
    const int sent = sends.add_copy(sends.add_address(out), sends.add_address(from), 4);
    sends.add_stream(0, kCopy, {wait_reached(0), copy(sent), store_reached(0)});
    auto& receives = keep<TestBatch>(world, std::vector<QueuedDevice*>{&far});
    const int got = receives.add_copy(receives.add_address(to), receives.add_address(in), 4);
    receives.add_stream(0, kCopy, {wait_reached(0), copy(got), store_reached(0)});
    IGNIS_TRY(sends.link());
    IGNIS_TRY(receives.link());
    if (between) between();
    IGNIS_TRY(sends.run(kLimits));
    IGNIS_TRY(receives.run(kLimits));
    const runtime::Submitted both[] = {sends.fence->submitted()[0], receives.fence->submitted()[0]};
    pending.note_batch(both);
    IGNIS_TRY(wait_for(both, kLimits));
    EXPECT_EQ(numbers_of(to)[0], 1234);
    return {};
  }
  Status everything() {
    for (const char* name : {"CUDA", "CUDA:1", "NV", "AMD", "CPU"}) IGNIS_TRY(compute(name));
    IGNIS_TRY(compute_much("CUDA"));
    IGNIS_TRY(compute_on_host_memory("CUDA"));
    IGNIS_TRY(compute_on_both());
    return send({});
  }

  World world;
  PendingOwners pending;

 private:
  /// Makes a batch that lives on: what a fault leaves in a ring may still run.
  template <typename Batch, typename... Arguments>
  Batch& keep(Arguments&&... arguments) {
    auto batch = std::make_shared<Batch>(std::forward<Arguments>(arguments)...);
    kept_.push_back(batch);
    return *batch;
  }
  std::vector<std::shared_ptr<void>> kept_;
};

struct Row {
  const char* name;
  Fault fault;
  const char* device;  ///< that has the fault
  Status (*act)(Scene& scene, const std::function<void()>& break_it);
  const char* reason;             ///< empty: it succeeds all the same
  const char* named;              ///< the message names it
  std::vector<std::string> lost;  ///< devices that are Unavailable afterwards
};

void PrintTo(const Row& row, std::ostream* out) { *out << row.name; }

// clang-format off
const Row kRows[] = {
    {"StuckSignal", {.kind = FaultKind::StuckSignal}, "CUDA",
     [](Scene& s, const auto& break_it) { break_it(); return s.compute("CUDA"); },
     "DeviceHang", "'CUDA'", {"CUDA"}},
    {"LateSignal", {.kind = FaultKind::LateSignal, .delay_ns = 60 * kMs}, "CUDA",
     [](Scene& s, const auto& break_it) { break_it(); return s.compute("CUDA"); },
     "", "", {}},
    {"MuchTooLateSignal", {.kind = FaultKind::LateSignal, .delay_ns = 900 * kMs}, "CUDA",
     [](Scene& s, const auto& break_it) { break_it(); return s.compute("CUDA"); },
     "DeviceHang", "'CUDA'", {"CUDA"}},
    {"DoorbellLost", {.kind = FaultKind::DoorbellLost}, "CUDA",
     [](Scene& s, const auto& break_it) { break_it(); return s.compute("CUDA"); },
     "DeviceHang", "without a doorbell", {"CUDA"}},
    {"HalfUpload", {.kind = FaultKind::HalfUpload}, "CUDA",
     [](Scene& s, const auto& break_it) { break_it(); return s.compute("CUDA"); },
     "UploadFailed", "'CUDA'", {}},
    {"MappingRefused", {.kind = FaultKind::MappingRefused}, "CUDA",
     [](Scene& s, const auto& break_it) { break_it(); return s.compute_on_host_memory("CUDA"); },
     "NotMappable", "'CUDA'", {}},
    {"RingFull", {.kind = FaultKind::RingFull}, "CUDA",
     [](Scene& s, const auto& break_it) { break_it(); return s.compute_much("CUDA"); },
     "QueueFull", "'CUDA'", {}},
    {"RemovedBetweenFenceAndSubmit", {.kind = FaultKind::RemovedBeforeSubmit}, "CUDA",
     [](Scene& s, const auto& break_it) { break_it(); return s.compute("CUDA"); },
     "DeviceUnavailable", "'CUDA'", {"CUDA"}},
    {"RemovedBetweenTwoSubmits", {.kind = FaultKind::RemovedBeforeSubmit}, "CUDA:1",
     [](Scene& s, const auto& break_it) { break_it(); return s.compute_on_both(); },
     "DeviceUnavailable", "'CUDA:1'", {"CUDA", "CUDA:1"}},
    {"RemovedDuringWait", {.kind = FaultKind::RemovedDuringWait, .delay_ns = 500}, "CUDA",
     [](Scene& s, const auto& break_it) { break_it(); return s.compute("CUDA"); },
     "DeviceUnavailable", "'CUDA'", {"CUDA"}},
    {"PeerLost", {.kind = FaultKind::PeerLost, .delay_ns = 500}, "CUDA:1",
     [](Scene& s, const auto& break_it) { break_it(); return s.compute_on_both(); },
     "DeviceUnavailable", "'CUDA:1'", {"CUDA", "CUDA:1"}},
    {"NetworkCardLost", {.kind = FaultKind::NetworkCardLost}, "AMD",
     [](Scene& s, const auto& break_it) { return s.send(break_it); },
     "DeviceUnavailable", "network card", {"AMD", "CUDA"}},
    {"HostWorkerDead", {.kind = FaultKind::HostWorkerDead}, "CPU",
     [](Scene& s, const auto& break_it) { break_it(); return s.compute("CPU"); },
     "DeviceHang", "'CPU'", {"CPU"}},
};
// clang-format on

class Faults : public testing::TestWithParam<Row> {};

TEST_P(Faults, AreBoundedAndTypedAndPass) {
  const Row& row = GetParam();
  Scene scene;
  const Status before = scene.everything();
  ASSERT_TRUE(before) << before.error().to_string();
  // A link of before: it may go on exactly when its device does.
  const auto data = scene.device(row.device).allocate(4, Purpose::Data).value();
  KernelBatch old(scene.world, scene.device(row.device), data, 1);
  ASSERT_TRUE(old.link());

  const int64_t start_ns = scene.world.clock().now_ns();
  const Status status = row.act(scene, [&] { scene.world.inject(row.device, row.fault); });
  const int64_t elapsed_ns = scene.world.clock().now_ns() - start_ns;
  EXPECT_LE(elapsed_ns, kLimits.deadline_ns + 100 * kMs);
  if (row.reason[0] == '\0') {
    EXPECT_TRUE(status) << status.error().to_string();
  } else {
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().reason(), row.reason) << status.error().to_string();
    EXPECT_NE(status.error().to_string().find(row.named), std::string::npos)
        << status.error().to_string();
  }
  for (QueuedDevice* device : scene.world.devices()) {
    const bool is_lost =
        std::find(row.lost.begin(), row.lost.end(), device->name()) != row.lost.end();
    EXPECT_EQ(!device->is_online(), is_lost) << device->name() << ": " << device->state().reason;
    if (device->name() == row.device) continue;
    // Who has nothing to do with it goes on; who is lost says so at once.
    const Status others = scene.compute(device->name());
    if (is_lost) {
      ASSERT_FALSE(others);
      EXPECT_EQ(others.error().reason(), "DeviceUnavailable");
    } else {
      EXPECT_TRUE(others) << others.error().to_string();
    }
  }

  scene.world.heal(row.device);
  for (const std::string& name : row.lost) {
    const Status opened = scene.device(name).reopen();
    ASSERT_TRUE(opened) << opened.error().to_string();
    EXPECT_EQ(scene.device(name).generation(), 2u);
  }
  const bool was_lost = std::find(row.lost.begin(), row.lost.end(), row.device) != row.lost.end();
  const Status again = old.run(kLimits);
  if (was_lost) {
    ASSERT_FALSE(again);
    EXPECT_EQ(again.error().reason(), "StaleLink");
  } else {
    EXPECT_TRUE(again) << again.error().to_string();
  }
  const Status after = scene.everything();
  EXPECT_TRUE(after) << after.error().to_string();
}

INSTANTIATE_TEST_SUITE_P(Section13, Faults, testing::ValuesIn(kRows),
                         [](const auto& row) { return std::string(row.param.name); });

// Two threads share two peers, a third breaks one and brings it back. Nobody waits beyond the limits, every error has a
// reason, and in the end both threads have done all of their work.
TEST(FaultsInRealTime, ThreadsGoOnWhenTheirDevicesComeBack) {
  constexpr int kRuns = 2000;
  constexpr runtime::WaitLimits kShort{.deadline_ns = 400 * kMs, .stall_ns = 50 * kMs};
  vdev::WorldOptions options;
  options.clock = &runtime::Clock::real();
  World world(options);
  std::vector<QueuedDevice*> devices;
  for (const char* name : {"CUDA", "CUDA:1"}) {
    DeviceSpec spec;
    spec.name = name;
    spec.kernel_ns = 0;
    devices.push_back(&world.add(spec));
  }
  PendingOwners pending;
  world.start_worker();
  std::atomic<int> working{2};
  std::atomic<int> errors{0};
  const auto work = [&] {
    std::vector<std::unique_ptr<PairBatch>> batches;
    int done = 0;
    while (done < kRuns) {
      PairBatch* batch = batches.empty() ? nullptr : batches.back().get();
      Status status;
      if (batch == nullptr || !batch->fence->check()) {
        const auto first = devices[0]->allocate(4, Purpose::Data);
        const auto second = devices[1]->allocate(4, Purpose::Data);
        if (!first || !second) {  // not back yet
          std::this_thread::yield();
          continue;
        }
        auto made =
            std::make_unique<PairBatch>(world, *devices[0], *devices[1], *first, *second, 1);
        if (made->upload_status && made->link()) batches.push_back(std::move(made));
        continue;
      }
      status = batch->run(kShort);
      if (status) {
        pending.note_batch(batch->fence->submitted());
        status = wait_for(batch->fence->submitted(), kShort);
      }
      if (status) {
        ++done;
        continue;
      }
      ++errors;
      ASSERT_FALSE(status.error().reason().empty()) << status.error().to_string();
    }
    --working;
  };
  std::jthread first(work);
  std::jthread second(work);
  const FaultKind kinds[] = {FaultKind::StuckSignal, FaultKind::DoorbellLost,
                             FaultKind::RemovedBeforeSubmit, FaultKind::RingFull,
                             FaultKind::PeerLost};
  for (size_t i = 0; working > 0; ++i) {
    const std::string name = devices[i % 2]->name();
    world.inject(name, {.kind = kinds[i % std::size(kinds)]});
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    world.heal(name);
    for (QueuedDevice* device : devices) {
      // What is full stands still without being lost; its words run once it is healed.
      if (!device->is_online()) {
        ASSERT_TRUE(device->reopen());
      }
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  EXPECT_GT(errors, 0) << "No fault was met: the test says little.";
}

// Every item of the list has a row.
TEST(FaultList, IsWhole) {
  for (const FaultKind kind :
       {FaultKind::StuckSignal, FaultKind::LateSignal, FaultKind::DoorbellLost,
        FaultKind::HalfUpload, FaultKind::MappingRefused, FaultKind::RingFull,
        FaultKind::RemovedBeforeSubmit, FaultKind::RemovedDuringWait, FaultKind::PeerLost,
        FaultKind::NetworkCardLost, FaultKind::HostWorkerDead}) {
    EXPECT_TRUE(std::any_of(std::begin(kRows), std::end(kRows), [&](const Row& row) {
      return row.fault.kind == kind;
    })) << to_string(kind);
  }
}

}  // namespace
}  // namespace ignis::exec
