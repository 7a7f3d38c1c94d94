// What a workspace refuses, keeps and gives back; arrays on several devices, results of replays.

#include "ignis/engine/eager/test_places.h"
#include "ignis/engine/eager/workspace.h"

#include <gtest/gtest.h>

namespace ignis::engine {
namespace {

using Floats = std::vector<float>;

TEST(Workspace, RefusesWhatDoesNotBelong) {
  auto place = make_place(PlaceKind::TwoDevices);
  auto other = make_place(PlaceKind::Cpu);
  Workspace& ws = place->ws();
  const Array a = take(ws.from_host(floats({2}, {1, 2})));
  EXPECT_EQ(reason(other->ws().compute(a.value())), "OtherWorkspace");
  const tensor::Tensor input = tensor::Tensor::input(ws.graph(), 0, "x", DType::Float32, {2});
  EXPECT_EQ(reason(ws.compute(tensor::add(input, 1))), "UnknownInput");
  const Array on_amd = take(ws.from_host(floats({2}, {1, 2}), "amd"));
  EXPECT_EQ(reason(ws.compute(tensor::add(a.value(), on_amd.value()))), "WrongDevice");
  EXPECT_EQ(reason(ws.compute(a.value(), "AMD")), "WrongDevice");
  EXPECT_EQ(reason(ws.compute(a.value(), "tpu")), "NoSuchDevice");
  EXPECT_EQ(
      read(ws, take(ws.compute(tensor::add(a.value(), take(ws.copy_to(on_amd, "CUDA")).value())))),
      (Floats{2, 4}));
  EXPECT_EQ(reason(ws.lazy(tensor::Tensor())), "NoArray");
  EXPECT_EQ(reason(ws.to_host(Array())), "NoArray");
  tensor::Tensor lost;
  {
    const Array gone = take(ws.from_host(floats({2}, {1, 2})));
    lost = tensor::add(gone.value(), 1);
  }
  EXPECT_EQ(reason(ws.compute(lost)), "LostValue");
}

TEST(Workspace, LanesComputeSideBySide) {
  auto place = make_place(PlaceKind::TwoDevices);
  Workspace& ws = place->ws();
  const std::string both = "cuda,amd";
  const Array x = take(ws.from_host(floats({4, 2}, {1, 2, 3, 4, 5, 6, 7, 8}), both));
  EXPECT_EQ(x.device(), "CUDA,AMD");
  EXPECT_EQ(x.lane_count(), 2);
  EXPECT_EQ(x.shape(), (Shape{2, 2}));
  EXPECT_EQ(x.base_memory(0).memory->owner(), "CUDA");
  EXPECT_EQ(x.base_memory(1).memory->owner(), "AMD");
  EXPECT_EQ(read(ws, x), (Floats{1, 2, 3, 4, 5, 6, 7, 8}));
  Array y = take(ws.zeros({2, 2}, DType::Float32, both));
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(ok(ws.assign(y, tensor::add(y.value(), x.value()))));
  EXPECT_EQ(read(ws, y), (Floats{3, 6, 9, 12, 15, 18, 21, 24}));
  // Each lane on its own part.
  EXPECT_EQ(read(ws, take(ws.compute(tensor::sum(x.value(), {0}, true)))), (Floats{4, 6, 12, 14}));
  const Array turned = take(x.permute({1, 0}));
  EXPECT_EQ(read(ws, turned), (Floats{1, 3, 2, 4, 5, 7, 6, 8}));
  const Array whole = take(ws.copy_to(y, "cuda"));
  EXPECT_EQ(whole.shape(), (Shape{4, 2}));
  EXPECT_EQ(read(ws, whole), read(ws, y));
  EXPECT_EQ(read(ws, take(ws.copy_to(whole, "amd,cuda"))), read(ws, y));
  const Array one = take(ws.from_host(floats({2, 2}, {1, 1, 1, 1}), "cuda"));
  EXPECT_EQ(reason(ws.compute(tensor::add(x.value(), one.value()))), "WrongDevice");
  EXPECT_EQ(reason(ws.from_host(floats({3}, {1, 2, 3}), both)), "LaneCount");
  EXPECT_EQ(reason(ws.random_uniform({2}, both)), "SeveralDevices");
  const TensorArgument described = describe(x);
  ASSERT_EQ(described.description.devices.size(), 2u);
  EXPECT_EQ(described.description.devices[1].name, "AMD");
  // Recorded as one call of all lanes.
  Recorder recorder;
  Array z;
  ASSERT_TRUE(ok(ws.set_recorder(&recorder)));
  z = take(ws.compute(tensor::mul(x.value(), 2)));
  ASSERT_TRUE(ok(ws.set_recorder(nullptr)));
  const Recording made = take(recorder.finish());
  ASSERT_EQ(made.schedule.calls.size(), 1u);
  EXPECT_EQ(made.schedule.buffers[0].devices.size(), 2u);
  ASSERT_TRUE(ok(ws.run(made)));
  recorder.mark_computed();
  EXPECT_EQ(read(ws, z), (Floats{2, 4, 6, 8, 10, 12, 14, 16}));
}

TEST(Workspace, NeedsAHostThatRunsPrograms) {
  WorkspaceOptions options;
  options.cpu = "cpu:interp";
  EXPECT_EQ(reason(Workspace::create(options)), "NoPrograms");
  options.cpu = "tpu";
  EXPECT_FALSE(Workspace::create(options));
}

TEST(Workspace, ALazyArrayKeepsWhatItReads) {
  auto place = make_place(PlaceKind::CopyQueue);
  Workspace& ws = place->ws();
  Array sum;
  {
    const Array a = take(ws.from_host(floats({2}, {1, 2})));
    sum = take(ws.lazy(tensor::add(a.value(), 1)));
  }
  EXPECT_EQ(read(ws, sum), (Floats{2, 3}));
}

TEST(Workspace, MemoryGoesWithItsArrays) {
  auto place = make_place(PlaceKind::CopyQueue, {.waits = true});
  Workspace& ws = place->ws();
  const auto use = [&] {
    const Array a = take(ws.from_host(floats({1000}, Floats(1000, 1))));
    Array b = take(ws.compute(tensor::add(a.value(), 1)));
    ASSERT_TRUE(ok(ws.assign(b, tensor::flip(b.value(), {0}))));
    read(ws, b);
  };
  use();
  const uint64_t before = place->world.memory_in_use_bytes("CUDA");
  for (int i = 0; i < 20; ++i) use();
  EXPECT_EQ(place->world.memory_in_use_bytes("CUDA"), before);
}

TEST(Workspace, AReopenedDeviceHasLostItsArrays) {
  auto place = make_place(PlaceKind::CopyQueue);
  Workspace& ws = place->ws();
  const Array a = take(ws.from_host(floats({2}, {1, 2})));
  runtime::QueuedDevice* device = place->world.find("CUDA");
  vdev::Fault fault;
  fault.kind = vdev::FaultKind::RemovedBeforeSubmit;
  fault.count = 1;
  place->world.inject("CUDA", fault);
  EXPECT_EQ(reason(ws.compute(tensor::add(a.value(), 1))), "DeviceUnavailable");
  place->world.heal("CUDA");
  ASSERT_TRUE(ok(device->reopen()));
  EXPECT_EQ(reason(ws.compute(tensor::add(a.value(), 1))), "StorageLost");
  EXPECT_EQ(reason(ws.to_host(a)), "StorageLost");
  const Array b = take(ws.from_host(floats({2}, {1, 2})));
  EXPECT_EQ(read(ws, take(ws.compute(tensor::add(b.value(), 1)))), (Floats{2, 3}));
}

TEST(Workspace, AReopenedDeviceGetsConstantsAndScratchAnew) {
  auto place = make_place(PlaceKind::CopyQueue);
  Workspace& ws = place->ws();
  Floats pixels(3 * 16 * 16), kernel(8 * 3 * 3 * 3);
  for (size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<float>(i % 11) - 5;
  for (size_t i = 0; i < kernel.size(); ++i) kernel[i] = static_cast<float>(i % 7) - 3;
  const tensor::Tensor w = tensor::Tensor::constant(ws.graph(), floats({8, 3, 3, 3}, kernel));
  tensor::ConvOptions options;
  options.pads_lo = options.pads_hi = {1, 1};
  const auto run = [&] {
    const Array x = take(ws.from_host(floats({1, 3, 16, 16}, pixels)));
    return read(ws, take(ws.compute(tensor::conv(x.value(), w, {}, options))));
  };
  const Floats before = run();
  const Floats drawn = read(ws, take(ws.random_uniform({4})));
  vdev::Fault fault;
  fault.kind = vdev::FaultKind::RemovedBeforeSubmit;
  fault.count = 1;
  place->world.inject("CUDA", fault);
  EXPECT_EQ(reason(ws.random_uniform({4})), "DeviceUnavailable");
  place->world.heal("CUDA");
  ASSERT_TRUE(ok(place->world.find("CUDA")->reopen()));
  EXPECT_EQ(run(), before);
  EXPECT_EQ(reason(ws.random_uniform({4})), "StorageLost");
  ASSERT_TRUE(ok(ws.manual_seed(0)));
  EXPECT_EQ(read(ws, take(ws.random_uniform({4}))), drawn);
}

TEST(Workspace, AFailedWritePoisons) {
  auto place = make_place(PlaceKind::CopyQueue);
  Workspace& ws = place->ws();
  Array a = take(ws.from_host(floats({2}, {1, 2})));
  vdev::Fault fault;
  fault.kind = vdev::FaultKind::RemovedBeforeSubmit;
  fault.count = 1;
  place->world.inject("CUDA", fault);
  EXPECT_EQ(reason(ws.assign(a, tensor::add(a.value(), 1))), "DeviceUnavailable");
  EXPECT_EQ(reason(ws.to_host(a)), "PoisonedTensor");
  // What reads it fails and poisons nothing else.
  Array b = take(ws.from_host(floats({2}, {1, 2}), "CPU"));
  EXPECT_EQ(reason(ws.assign(b, a)), "WrongDevice");
  EXPECT_EQ(read(ws, b), (Floats{1, 2}));
  place->world.heal("CUDA");
  ASSERT_TRUE(ok(place->world.find("CUDA")->reopen()));
  Array c = take(ws.from_host(floats({2}, {3, 4})));
  EXPECT_EQ(reason(ws.assign(c, a)), "PoisonedTensor");
  EXPECT_EQ(read(ws, c), (Floats{3, 4}));
}

TEST(Workspace, AReadIsBounded) {
  WorkspaceOptions options;
  options.limits = {50'000'000, 20'000'000};
  auto place = make_place(PlaceKind::CopyQueue, options);
  Workspace& ws = place->ws();
  const Array a = take(ws.from_host(floats({2}, {1, 2})));
  vdev::Fault fault;
  fault.kind = vdev::FaultKind::StuckSignal;
  place->world.inject("CUDA", fault);
  const int64_t begin_ns = place->world.clock().now_ns();
  const Result<Array> sum = ws.compute(tensor::add(a.value(), 1));
  const std::string first = sum ? reason(ws.to_host(*sum)) : reason(sum);
  EXPECT_EQ(first, "DeviceHang");
  EXPECT_LE(place->world.clock().now_ns() - begin_ns, 110'000'000);
}

TEST(Workspace, SoleArrays) {
  auto place = make_place(PlaceKind::Cpu);
  Workspace& ws = place->ws();
  Array a = take(ws.from_host(floats({2}, {1, 2})));
  EXPECT_TRUE(a.is_sole());
  {
    const Array same = a;
    EXPECT_FALSE(a.is_sole());
  }
  {
    const Array view = take(a.slice({{0, 1}}));
    EXPECT_FALSE(a.is_sole());
  }
  {
    const Array later = take(ws.lazy(tensor::add(a.value(), 1)));
    EXPECT_FALSE(a.is_sole());
  }
  EXPECT_TRUE(a.is_sole());
}

TEST(Workspace, AResultIsReadBeforeTheNextReplay) {
  auto place = make_place(PlaceKind::Cpu);
  Workspace& ws = place->ws();
  const Array storage = take(ws.from_host(floats({4}, {1, 2, 3, 4})));
  exec::OutputOptions options;
  options.borrowed = {storage.base_memory()};
  exec::Outputs outputs = *exec::Outputs::create({{"y", 16}}, options);
  const runtime::WaitLimits limits{1'000'000'000, 1'000'000'000};
  const auto replay = [&] {
    return storage.with_result(std::move(*outputs.begin(limits)).finish(), 0);
  };
  const Array first = replay();
  EXPECT_EQ(first.sequence(), 1u);
  EXPECT_TRUE(ok(first.check()));
  const Array view = take(first.slice({{1, 3}}));
  EXPECT_EQ(read(ws, view), (Floats{2, 3}));
  Array sum = take(ws.lazy(tensor::add(first.value(), 1)));
  const Array second = replay();
  ws.note_written(storage);
  EXPECT_TRUE(first.is_stale());
  EXPECT_EQ(reason(ws.to_host(first)), "StaleOutput");
  EXPECT_EQ(reason(ws.to_host(view)), "StaleOutput");
  EXPECT_EQ(reason(ws.clone(first)), "StaleOutput");
  EXPECT_EQ(reason(ws.copy_to(first, "CPU")), "StaleOutput");
  EXPECT_EQ(reason(first.slice({{0, 1}})), "StaleOutput");
  EXPECT_THROW(first.value(), tensor::GraphError);
  EXPECT_EQ(reason(ws.realize(sum)), "StaleValue");
  EXPECT_EQ(second.sequence(), 2u);
  EXPECT_EQ(read(ws, second), (Floats{1, 2, 3, 4}));
  EXPECT_EQ(storage.sequence(), 0u);
}

TEST(Workspace, DescribesAnArray) {
  auto place = make_place(PlaceKind::CopyQueue);
  Workspace& ws = place->ws();
  const Array a = take(ws.from_host(floats({4, 8}, Floats(32, 1))));
  const Array view = take(take(a.slice({{1, 3}, {2, 6}})).permute({1, 0}));
  const TensorArgument made = describe(view);
  EXPECT_EQ(made.base, a.base());
  EXPECT_NE(made.tensor, describe(a).tensor);
  EXPECT_TRUE(made.is_realized);
  const exec::InputDescription& d = made.description;
  EXPECT_EQ(d.dtype, DType::Float32);
  EXPECT_EQ(d.size_bytes.value, 32);
  EXPECT_EQ(d.base_bytes, 128u);
  EXPECT_EQ(d.offset_bytes.value, 40);
  ASSERT_EQ(d.shape.size(), 2u);
  EXPECT_EQ(d.shape[0].value, 4);
  EXPECT_EQ(d.strides[0].value, 1);
  EXPECT_EQ(d.strides[1].value, 8);
  ASSERT_EQ(d.devices.size(), 1u);
  EXPECT_EQ(d.devices[0].name, "CUDA");
  EXPECT_EQ(d.devices[0].generation, 1u);
  EXPECT_EQ(d.alignment_bytes, 8u);
  EXPECT_EQ(d.memory_class, exec::MemoryClass::Device);
  const TensorArgument constant = describe(take(ws.lazy(tensor::Tensor::scalar(ws.graph(), 1))));
  EXPECT_TRUE(constant.description.devices.empty());
  EXPECT_FALSE(constant.is_realized);
}

}  // namespace
}  // namespace ignis::engine
