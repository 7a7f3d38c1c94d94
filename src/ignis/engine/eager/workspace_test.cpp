#include "ignis/engine/eager/workspace.h"

#include "ignis/engine/eager/random.h"
#include "ignis/engine/eager/test_places.h"

#include <gtest/gtest.h>

#include <cstring>
#include <set>

namespace ignis::engine {
namespace {

using Floats = std::vector<float>;

class OnEveryPlace : public testing::TestWithParam<PlaceKind> {
 protected:
  std::unique_ptr<Place> place = make_place(GetParam());
  Workspace& ws = place->ws();

  Array make(const Shape& shape, const Floats& values) {
    return take(ws.from_host(floats(shape, values)));
  }
};

std::string name_place(const testing::TestParamInfo<PlaceKind>& made) {
  switch (made.param) {
    case PlaceKind::Cpu: return "Cpu";
    case PlaceKind::CopyQueue: return "CopyQueue";
    case PlaceKind::NoCopyQueue: return "NoCopyQueue";
    case PlaceKind::Unified: return "Unified";
    case PlaceKind::Hidden: return "Hidden";
    case PlaceKind::TwoDevices: return "TwoDevices";
  }
  return "";
}

INSTANTIATE_TEST_SUITE_P(Places, OnEveryPlace,
                         testing::Values(PlaceKind::Cpu, PlaceKind::CopyQueue,
                                         PlaceKind::NoCopyQueue, PlaceKind::Unified,
                                         PlaceKind::Hidden),
                         name_place);

TEST_P(OnEveryPlace, HostDataComesBack) {
  const Array a = make({2, 3}, {1, 2, 3, 4, 5, 6});
  EXPECT_TRUE(a.is_realized());
  EXPECT_EQ(a.device(), place->device);
  EXPECT_EQ(read(ws, a), (Floats{1, 2, 3, 4, 5, 6}));
}

TEST_P(OnEveryPlace, RealizesSeveralAtOnce) {
  const Array a = make({3}, {1, 2, 3}), b = make({3}, {10, 20, 30});
  Array sum = take(ws.lazy(tensor::add(a.value(), b.value())));
  Array product = take(ws.lazy(tensor::mul(a.value(), b.value())));
  EXPECT_FALSE(sum.is_realized());
  Array* const both[] = {&sum, &product, &sum};
  ASSERT_TRUE(ok(ws.realize(both)));
  EXPECT_TRUE(sum.is_realized());
  EXPECT_EQ(ws.counts().plans_made, 1u);
  EXPECT_EQ(read(ws, sum), (Floats{11, 22, 33}));
  EXPECT_EQ(read(ws, product), (Floats{10, 40, 90}));
}

TEST_P(OnEveryPlace, AnExpressionIsCompiledOnce) {
  for (int i = 0; i < 5; ++i) {
    const auto x = static_cast<float>(i);
    const Array a = make({2}, {x, x + 1});
    const Array sum = take(ws.compute(tensor::add(a.value(), 3)));
    EXPECT_EQ(read(ws, sum), (Floats{x + 3, x + 4}));
  }
  EXPECT_EQ(ws.counts().plans_made, 1u);
  EXPECT_EQ(ws.counts().plan_hits, 4u);
}

TEST_P(OnEveryPlace, ConstantsOfTheExpressionHaveTheirValues) {
  const Array a = make({2}, {1, 2});
  for (const float add : {5.0f, 7.0f}) {
    const tensor::Tensor constant =
        tensor::Tensor::constant(ws.graph(), floats({2}, {add, add + 1}));
    EXPECT_EQ(read(ws, take(ws.compute(tensor::add(a.value(), constant)))),
              (Floats{1 + add, 3 + add}));
  }
  std::vector<float> many(3000);
  for (size_t i = 0; i < many.size(); ++i) many[i] = static_cast<float>(i);
  const tensor::Tensor large = tensor::Tensor::constant(ws.graph(), floats({3000}, many));
  const Array x = make({3000}, many);
  const Floats sum = read(ws, take(ws.compute(tensor::add(x.value(), large))));
  for (size_t i = 0; i < many.size(); ++i) ASSERT_EQ(sum[i], 2 * many[i]);
}

TEST_P(OnEveryPlace, WhatWasComputedIsNotComputedAgain) {
  const Array a = make({2}, {1, 2});
  Array half = take(ws.lazy(tensor::mul(a.value(), 0.5)));
  const Array whole = take(ws.lazy(tensor::add(half.value(), half.value())));
  ASSERT_TRUE(ok(ws.realize(half)));
  Array read_again = whole;
  ASSERT_TRUE(ok(ws.realize(read_again)));
  EXPECT_EQ(read(ws, whole), (Floats{1, 2})) << "copies of a handle are one tensor";
  // Written since: the expression is what it was, from its own arrays.
  const Array other = take(ws.lazy(tensor::add(half.value(), 1)));
  Array later = take(ws.lazy(tensor::mul(tensor::mul(a.value(), 0.5), 4)));
  ASSERT_TRUE(ok(ws.assign(half, make({2}, {100, 100}))));
  EXPECT_EQ(read(ws, later), (Floats{2, 4}));
  Array stale = other;
  EXPECT_EQ(reason(ws.realize(stale)), "StaleValue");
}

TEST_P(OnEveryPlace, AnArrayOfAnArrayIsACopy) {
  Array a = make({2}, {1, 2});
  Array same = take(ws.compute(a.value()));
  Array twice = take(ws.lazy(a.value())), thrice = take(ws.lazy(a.value()));
  Array* const both[] = {&twice, &thrice};
  ASSERT_TRUE(ok(ws.realize(both)));
  EXPECT_NE(twice.base(), thrice.base());
  ASSERT_TRUE(ok(ws.assign(a, make({2}, {7, 8}))));
  EXPECT_EQ(read(ws, same), (Floats{1, 2}));
  EXPECT_EQ(read(ws, twice), (Floats{1, 2}));
}

TEST_P(OnEveryPlace, Views) {
  const Array a = make({2, 4}, {0, 1, 2, 3, 4, 5, 6, 7});
  const Array right = take(a.slice({{0, 2}, {1, 3}}));
  EXPECT_EQ(right.base(), a.base());
  EXPECT_NE(right.id(), a.id());
  EXPECT_EQ(right.offset_elements(), 1);
  EXPECT_EQ(right.strides(), (std::vector<int64_t>{4, 1}));
  EXPECT_FALSE(right.is_contiguous());
  EXPECT_EQ(read(ws, right), (Floats{1, 2, 5, 6}));
  const Array turned = take(right.permute({1, 0}));
  EXPECT_EQ(read(ws, turned), (Floats{1, 5, 2, 6}));
  EXPECT_EQ(read(ws, take(ws.compute(tensor::add(turned.value(), 10)))), (Floats{11, 15, 12, 16}));
  const Array lower = take(take(a.slice({{1, 2}, {0, 4}})).reshape({2, 2}));
  EXPECT_TRUE(lower.is_contiguous());
  EXPECT_EQ(read(ws, lower), (Floats{4, 5, 6, 7}));
  EXPECT_EQ(reason(right.reshape({4})), "BadView");
  EXPECT_EQ(reason(a.slice({{0, 3}, {0, 4}})), "BadView");
  EXPECT_EQ(reason(a.slice({{0, 1}})), "BadView");
  EXPECT_EQ(reason(a.permute({0, 0})), "BadView");
  // Of an array without storage a view is an expression.
  const Array lazy = take(ws.lazy(tensor::add(a.value(), 1)));
  EXPECT_EQ(read(ws, take(lazy.slice({{1, 2}, {0, 2}}))), (Floats{5, 6}));
}

TEST_P(OnEveryPlace, AssignsInPlace) {
  Array x = make({3}, {0, 0, 0});
  const uint64_t base = x.base();
  const runtime::MemoryRef memory = x.base_memory().memory;
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(ok(ws.assign(x, tensor::add(x.value(), 1))));
  EXPECT_EQ(read(ws, x), (Floats{5, 5, 5}));
  EXPECT_EQ(x.base(), base);
  EXPECT_EQ(x.base_memory().memory, memory);
  EXPECT_EQ(ws.counts().plans_made, 1u);
  EXPECT_EQ(ws.counts().runs, 5u + (GetParam() == PlaceKind::Hidden)) << "no copies but the read";
}

TEST_P(OnEveryPlace, InPlaceWritesOfAllSizes) {
  for (const int64_t count : {1, 3, 7, 8, 9, 15, 17, 31, 33, 64, 67, 1023, 40'001}) {
    Floats wanted(static_cast<size_t>(count));
    for (size_t i = 0; i < wanted.size(); ++i) wanted[i] = static_cast<float>(i % 97);
    Array x = make({count}, wanted);
    const Array y = make({count}, wanted);
    for (float& value : wanted) value = value * 3 + value + 1;
    ASSERT_TRUE(
        ok(ws.assign(x, tensor::add(tensor::add(tensor::mul(x.value(), 3), y.value()), 1))));
    ASSERT_EQ(read(ws, x), wanted) << count;
  }
}

TEST_P(OnEveryPlace, AssignReadsBeforeItWrites) {
  Array x = make({2, 3}, {1, 2, 3, 4, 5, 6});
  ASSERT_TRUE(ok(ws.assign(x, tensor::flip(x.value(), {0, 1}))));
  EXPECT_EQ(read(ws, x), (Floats{6, 5, 4, 3, 2, 1}));
  ASSERT_TRUE(ok(ws.assign(x, tensor::sub(x.value(), tensor::sum(x.value(), {0, 1}, true)))));
  EXPECT_EQ(read(ws, x), (Floats{-15, -16, -17, -18, -19, -20}));
  ASSERT_TRUE(ok(ws.assign(x, x)));
  EXPECT_EQ(read(ws, x), (Floats{-15, -16, -17, -18, -19, -20}));
}

TEST_P(OnEveryPlace, AssignsToViews) {
  Array x = make({2, 4}, {0, 1, 2, 3, 4, 5, 6, 7});
  Array middle = take(take(x.slice({{0, 2}, {1, 3}})).permute({1, 0}));
  ASSERT_TRUE(ok(ws.assign(middle, make({2, 2}, {10, 20, 30, 40}))));
  EXPECT_EQ(read(ws, x), (Floats{0, 10, 30, 3, 4, 20, 40, 7}));
  ASSERT_TRUE(ok(ws.assign(middle, tensor::transpose(middle.value()))));
  EXPECT_EQ(read(ws, x), (Floats{0, 10, 20, 3, 4, 30, 40, 7}));
  Array row = take(take(x.slice({{1, 2}, {0, 4}})).reshape({4}));
  ASSERT_TRUE(ok(ws.assign(row, tensor::Tensor::scalar(ws.graph(), 9))));
  EXPECT_EQ(read(ws, x), (Floats{0, 10, 20, 3, 9, 9, 9, 9}));
}

TEST_P(OnEveryPlace, AssignToViewsFitsShapes) {
  Array x = make({4}, {0, 1, 2, 3});
  EXPECT_EQ(reason(ws.assign(x, make({3}, {1, 2, 3}))), "WrongShape");
  EXPECT_EQ(reason(ws.assign(x, tensor::cast(x.value(), DType::Int32))), "WrongShape");
  ASSERT_TRUE(ok(ws.assign(x, tensor::Tensor::zeros(ws.graph(), {4}))));
  EXPECT_EQ(read(ws, x), (Floats{0, 0, 0, 0}));
}

TEST_P(OnEveryPlace, AViewSeesWhatWasWritten) {
  Array x = make({4}, {0, 1, 2, 3});
  const Array half = take(x.slice({{2, 4}}));
  const tensor::Tensor before = half.value();
  ASSERT_TRUE(ok(ws.assign(x, tensor::add(x.value(), 10))));
  EXPECT_EQ(read(ws, half), (Floats{12, 13}));
  EXPECT_EQ(reason(ws.compute(before)), "StaleValue");
}

TEST_P(OnEveryPlace, ClonesAndCopies) {
  Array x = make({2, 2}, {1, 2, 3, 4});
  const Array turned = take(x.permute({1, 0}));
  const Array clone = take(ws.clone(turned));
  EXPECT_NE(clone.base(), x.base());
  EXPECT_TRUE(clone.is_contiguous());
  EXPECT_EQ(read(ws, clone), (Floats{1, 3, 2, 4}));
  EXPECT_EQ(take(ws.contiguous(x)).id(), x.id());
  EXPECT_NE(take(ws.contiguous(turned)).base(), x.base());
  const Array on_host = take(ws.copy_to(turned, "cpu"));
  EXPECT_EQ(on_host.device(), "CPU");
  EXPECT_EQ(read(ws, on_host), (Floats{1, 3, 2, 4}));
  const Array back = take(ws.copy_to(on_host, place->device));
  EXPECT_EQ(back.device(), place->device);
  EXPECT_EQ(read(ws, back), (Floats{1, 3, 2, 4}));
  ASSERT_TRUE(ok(ws.assign(x, tensor::Tensor::zeros(ws.graph(), {2, 2}))));
  EXPECT_EQ(read(ws, on_host), (Floats{1, 3, 2, 4}));
}

TEST_P(OnEveryPlace, ZerosAndEmptyArrays) {
  const Array zeros = take(ws.zeros({2, 2}));
  EXPECT_EQ(read(ws, zeros), (Floats{0, 0, 0, 0}));
  const Array none = make({0, 3}, {});
  EXPECT_EQ(read(ws, none), Floats{});
  const Array slice = take(zeros.slice({{1, 1}, {0, 2}}));
  EXPECT_EQ(read(ws, slice), Floats{});
  Array sum = take(ws.compute(tensor::add(none.value(), 1)));
  EXPECT_EQ(read(ws, sum), Floats{});
  ASSERT_TRUE(ok(ws.assign(sum, none)));
  EXPECT_EQ(read(ws, take(ws.copy_to(none, "CPU"))), Floats{});
  EXPECT_EQ(read(ws, take(ws.random_uniform({0}))), Floats{});
}

TEST_P(OnEveryPlace, ConstantsAreVirtualUntilTheyAreCloned) {
  Array two = take(ws.lazy(tensor::Tensor::scalar(ws.graph(), 2.0)));
  EXPECT_TRUE(two.is_virtual());
  EXPECT_EQ(two.device(), "");
  ASSERT_TRUE(ok(ws.realize(two)));
  EXPECT_FALSE(two.is_realized());
  EXPECT_EQ(read(ws, two), Floats{2});
  EXPECT_EQ(reason(ws.assign(two, two)), "VirtualArray");
  const Array cloned = take(ws.clone(two));
  EXPECT_TRUE(cloned.is_realized());
  EXPECT_EQ(cloned.dtype(), DType::Float32);
  EXPECT_EQ(read(ws, cloned), Floats{2});
  // A filled tensor with a dtype has storage.
  EXPECT_EQ(read(ws, take(ws.compute(tensor::Tensor::ones(ws.graph(), {3})))), (Floats{1, 1, 1}));
}

TEST_P(OnEveryPlace, WrappedMemoryStaysWhereItIs) {
  auto frame = std::make_shared<Floats>(Floats{1, 2, 3, 4});
  const std::weak_ptr<Floats> alive = frame;
  ExternalMemory memory;
  memory.bytes = reinterpret_cast<std::byte*>(frame->data());
  memory.size_bytes = 16;
  memory.layout = "camera";
  memory.keeps = frame;
  Array x = take(ws.wrap(memory, DType::Float32, {4}));
  EXPECT_EQ(reason(ws.assign(x, make({4}, {1, 1, 1, 1}))), "ReadOnly");
  const Array scale = make({4}, {2, 2, 2, 2});
  const tensor::Tensor product = tensor::mul(x.value(), scale.value());
  const Array first = take(ws.compute(product));
  EXPECT_EQ(first.device(), place->device);
  EXPECT_EQ(read(ws, first), (Floats{2, 4, 6, 8}));
  (*frame)[0] = 50;
  EXPECT_EQ(read(ws, take(ws.compute(tensor::add(product, 0.5))))[1], 4.5f);
  memory.size_bytes = 12;
  EXPECT_EQ(reason(ws.wrap(memory, DType::Float32, {4})), "WrongSize");
  frame.reset();
  memory.keeps.reset();
  EXPECT_FALSE(alive.expired());
  x = Array();
  ASSERT_TRUE(ok(ws.synchronize()));
}

TEST_P(OnEveryPlace, VariablesAreBoundForEachRun) {
  const tensor::Tensor i = take(ws.variable("i", 1, 10));
  const Array x = make({3}, {1, 2, 3});
  for (const int value : {1, 4, 7}) {
    ASSERT_TRUE(ok(ws.bind("i", value)));
    const Array y = take(ws.compute(tensor::mul(x.value(), tensor::cast(i, DType::Float32))));
    const auto v = static_cast<float>(value);
    EXPECT_EQ(read(ws, y), (Floats{v, 2 * v, 3 * v}));
  }
  EXPECT_EQ(ws.counts().plans_made, 1u);
  EXPECT_EQ(reason(ws.bind("i", 11)), "OutOfRange");
  EXPECT_EQ(reason(ws.bind("j", 1)), "NoVariable");
  EXPECT_EQ(reason(ws.variable("i", 0, 10)), "VariableConflict");
}

TEST_P(OnEveryPlace, RandomNumbersGoOn) {
  ASSERT_TRUE(ok(ws.manual_seed(7)));
  const Floats first = read(ws, take(ws.random_uniform({40})));
  const Floats second = read(ws, take(ws.random_uniform({2, 20})));
  std::set<float> distinct(first.begin(), first.end());
  distinct.insert(second.begin(), second.end());
  EXPECT_GT(distinct.size(), 75u);
  EXPECT_GE(*distinct.begin(), 0.0f);
  EXPECT_LT(*distinct.rbegin(), 1.0f);
  ASSERT_TRUE(ok(ws.manual_seed(7)));
  const Floats all = read(ws, take(ws.random_uniform({80})));
  EXPECT_EQ(Floats(all.begin(), all.begin() + 40), first);
  EXPECT_EQ(Floats(all.begin() + 40, all.end()), second);
  // The same numbers on the host.
  auto cpu = make_place(PlaceKind::Cpu, {.seed = 7});
  EXPECT_EQ(read(cpu->ws(), take(cpu->ws().random_uniform({80}))), all);
}

// Known answers of the paper's own library (Random123, kat_vectors), 20 rounds: counter, key, result.
TEST(Random, ThreefryHasItsKnownAnswers) {
  const uint32_t known[][6] = {
      {0, 0, 0, 0, 0x6b200159, 0x99ba4efe},
      {0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0x1cb996fc, 0xbb002be7},
      {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344, 0xc4923a9c, 0x483df7a0}};
  auto place = make_place(PlaceKind::Cpu);
  Workspace& ws = place->ws();
  std::vector<std::vector<int64_t>> columns(4);
  for (const auto& row : known) {
    for (size_t i = 0; i < 4; ++i) columns[i].push_back(row[i]);
  }
  std::vector<Array> words;
  for (const auto& column : columns) {
    words.push_back(take(ws.from_host(HostTensor::from(DType::UInt32, {3}, column))));
  }
  const auto made =
      threefry2x32({words[2].value(), words[3].value()}, {words[0].value(), words[1].value()});
  const HostTensor x0 = take(ws.to_host(take(ws.compute(made.first))));
  const HostTensor x1 = take(ws.to_host(take(ws.compute(made.second))));
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(x0.data<uint32_t>()[i], known[i][4]) << i;
    EXPECT_EQ(x1.data<uint32_t>()[i], known[i][5]) << i;
  }
}

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

TEST_P(OnEveryPlace, PartsOfABlock) {
  const runtime::MemoryRef block =
      take(ws.machine()->allocate(place->device, 1024, runtime::Purpose::Data)).memory;
  Array low = take(ws.adopt({block, 0, 16}, DType::Float32, {4}));
  Array high = take(ws.adopt({block, 512, 16}, DType::Float32, {4}));
  ASSERT_TRUE(ok(ws.assign(low, make({4}, {1, 2, 3, 4}))));
  ASSERT_TRUE(ok(ws.assign(high, tensor::mul(low.value(), 10))));
  ASSERT_TRUE(ok(ws.assign(high, tensor::add(high.value(), low.value()))));
  EXPECT_EQ(read(ws, high), (Floats{11, 22, 33, 44}));
  EXPECT_EQ(read(ws, take(high.slice({{1, 3}}))), (Floats{22, 33}));
  EXPECT_EQ(read(ws, take(ws.copy_to(high, "CPU"))), (Floats{11, 22, 33, 44}));
  EXPECT_EQ(read(ws, low), (Floats{1, 2, 3, 4}));
  EXPECT_EQ(high.base_memory().offset_bytes, 512u);
  EXPECT_EQ(reason(ws.adopt({block, 1012, 16}, DType::Float32, {4})), "WrongSize");
  EXPECT_EQ(reason(ws.adopt({block, 512, 12}, DType::Float32, {4})), "WrongSize");
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
