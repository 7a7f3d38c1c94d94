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
  for (const int64_t count : {1, 3, 7, 8, 9, 15, 17, 31, 33, 64, 67, 1023, 40'001, 500'009}) {
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

}  // namespace
}  // namespace ignis::engine
