#include "ignis/engine/eager/recorder.h"

#include "ignis/engine/capture/plan_memory.h"
#include "ignis/engine/capture/prune.h"
#include "ignis/engine/eager/test_places.h"
#include "ignis/exec/run_linked.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace ignis::engine {
namespace {

using Floats = std::vector<float>;

/// Records what `work` does.
template <typename Work>
Recording record(Workspace& ws, Recorder& recorder, const Work& work) {
  EXPECT_TRUE(ok(ws.set_recorder(&recorder)));
  work();
  EXPECT_TRUE(ok(ws.set_recorder(nullptr)));
  Result<Recording> made = recorder.finish();
  EXPECT_TRUE(made) << (made ? "" : made.error().to_string());
  return made ? *std::move(made) : Recording();
}

class RecorderOnEveryPlace : public testing::TestWithParam<PlaceKind> {
 protected:
  std::unique_ptr<Place> place = make_place(GetParam());
  Workspace& ws = place->ws();

  Array make(const Shape& shape, const Floats& values) {
    return take(ws.from_host(floats(shape, values)));
  }
};

INSTANTIATE_TEST_SUITE_P(Places, RecorderOnEveryPlace,
                         testing::Values(PlaceKind::Cpu, PlaceKind::CopyQueue,
                                         PlaceKind::NoCopyQueue, PlaceKind::Hidden));

TEST_P(RecorderOnEveryPlace, RecordsAndDoesNotRun) {
  const Array a = make({2}, {1, 2}), b = make({2}, {10, 20});
  Recorder recorder;
  Array sum;
  const uint64_t runs = ws.counts().runs;
  const Recording made = record(ws, recorder, [&] {
    sum = take(ws.compute(tensor::add(a.value(), b.value())));
    sum.set_name("sum");
    EXPECT_TRUE(sum.is_realized());
    EXPECT_EQ(sum.base_memory().memory, nullptr);
    EXPECT_EQ(reason(ws.to_host(sum)), "DataAccessDuringCapture");
    EXPECT_EQ(reason(ws.to_host(a)), "DataAccessDuringCapture");
  });
  EXPECT_EQ(ws.counts().runs, runs);
  ASSERT_EQ(made.schedule.calls.size(), 1u);
  ASSERT_EQ(made.buffers.size(), 3u);
  for (const Array& input : {a, b}) {
    const int buffer = made.find(input.base());
    ASSERT_GE(buffer, 0);
    EXPECT_TRUE(made.buffers[static_cast<size_t>(buffer)].existed_before);
    EXPECT_EQ(made.schedule.buffers[static_cast<size_t>(buffer)].memory[0],
              input.base_memory().memory);
  }
  const int out = made.find(sum.base());
  ASSERT_GE(out, 0);
  EXPECT_TRUE(made.buffers[static_cast<size_t>(out)].is_live);
  EXPECT_FALSE(made.buffers[static_cast<size_t>(out)].existed_before);
  EXPECT_NE(sum.base_memory().memory, nullptr) << "who holds it may read it after a replay";
  EXPECT_EQ(reason(ws.to_host(sum)), "NotComputed");
  ASSERT_TRUE(ok(ws.run(made)));
  recorder.mark_computed();
  EXPECT_EQ(read(ws, sum), (Floats{11, 22}));
}

TEST_P(RecorderOnEveryPlace, TemporariesHaveNoMemory) {
  const Array a = make({2}, {1, 2});
  Recorder recorder;
  Array last;
  const Recording made = record(ws, recorder, [&] {
    Array first = take(ws.compute(tensor::add(a.value(), 1)));
    Array second = take(ws.compute(tensor::mul(first.value(), 2)));
    first = Array();
    last = take(ws.compute(tensor::sub(second.value(), 3)));
  });
  ASSERT_EQ(made.schedule.calls.size(), 3u);
  ASSERT_EQ(made.buffers.size(), 4u);
  int placeholders = 0;
  for (size_t i = 0; i < made.buffers.size(); ++i) {
    if (!made.schedule.buffers[i].memory.empty()) continue;
    ++placeholders;
    EXPECT_FALSE(made.buffers[i].is_live);
  }
  EXPECT_EQ(placeholders, 2);
  const MemoryPlan plan = take(plan_memory(made.schedule));
  EXPECT_EQ(plan.buffers.size(), 2u);
  ASSERT_TRUE(ok(ws.run(apply_memory_plan(made.schedule, plan))));
  recorder.mark_computed();
  EXPECT_EQ(read(ws, last), (Floats{1, 3}));
}

TEST_P(RecorderOnEveryPlace, AssignmentsGoToTheStorageItself) {
  Array x = make({2}, {1, 2}), moved = make({3}, {1, 2, 3});
  Recorder recorder;
  const Recording made = record(ws, recorder, [&] {
    ASSERT_TRUE(ok(ws.assign(x, tensor::add(x.value(), 1))));
    ASSERT_TRUE(ok(ws.assign(x, tensor::add(x.value(), 1))));
    ASSERT_TRUE(ok(ws.assign(moved, tensor::flip(moved.value(), {0}))));
  });
  EXPECT_EQ(made.schedule.calls.size(), 4u) << "the last one is computed aside and copied";
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(ok(ws.run(made)));
  recorder.mark_computed();
  EXPECT_EQ(read(ws, x), (Floats{7, 8}));
  EXPECT_EQ(read(ws, moved), (Floats{3, 2, 1}));
}

TEST_P(RecorderOnEveryPlace, SaysWhatIsRandomConstantAndState) {
  const Array x = make({4}, {0, 0, 0, 0});
  Array weights = make({4}, {1, 2, 3, 4});
  weights.mark_constant().set_name("weights");
  Recorder recorder;
  Array y;
  const Recording made = record(ws, recorder, [&] {
    Array noise = take(ws.random_uniform({4}));
    const Array inside = make({4}, {5, 6, 7, 8});
    y = take(ws.compute(tensor::add(
        tensor::add(tensor::mul(noise.value(), weights.value()), x.value()), inside.value())));
  });
  const std::vector<int> random = made.random_calls();
  ASSERT_EQ(random.size(), 1u);
  EXPECT_EQ(random[0], 0);
  std::vector<std::string> constants, states;
  for (size_t i = 0; i < made.buffers.size(); ++i) {
    if (made.buffers[i].is_constant) constants.push_back(made.schedule.buffers[i].name);
    if (made.buffers[i].is_generator_state) states.push_back(made.schedule.buffers[i].name);
  }
  EXPECT_NE(std::find(constants.begin(), constants.end(), "weights"), constants.end());
  EXPECT_EQ(states.size(), 2u);
  const int input = made.find(x.base());
  EXPECT_FALSE(made.buffers[static_cast<size_t>(input)].is_constant);
  // An array of host data that nobody can reach any more is one too.
  EXPECT_GE(constants.size(), 2u);
  Floats before;
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(ok(ws.run(made)));
    recorder.mark_computed();
    const Floats now = read(ws, y);
    EXPECT_NE(now, before);
    for (size_t k = 0; k < 4; ++k) {
      EXPECT_GE(now[k], static_cast<float>(5 + k));
      EXPECT_LT(now[k], static_cast<float>(5 + k) + static_cast<float>(1 + k));
    }
    before = now;
  }
}

TEST_P(RecorderOnEveryPlace, APauseRunsAtOnce) {
  const Array a = make({2}, {1, 2});
  Recorder recorder;
  Array inside, recorded;
  const Recording made = record(ws, recorder, [&] {
    recorded = take(ws.compute(tensor::add(a.value(), 1)));
    const Workspace::Pause pause(ws);
    EXPECT_FALSE(ws.is_recording());
    inside = take(ws.compute(tensor::mul(a.value(), 3)));
    EXPECT_EQ(read(ws, inside), (Floats{3, 6}));
    EXPECT_EQ(reason(ws.compute(tensor::mul(recorded.value(), 3))), "DataAccessDuringCapture");
  });
  EXPECT_EQ(made.schedule.calls.size(), 1u);
  EXPECT_EQ(read(ws, inside), (Floats{3, 6}));
}

TEST_P(RecorderOnEveryPlace, CopiesAreCalls) {
  const Array on_host = take(ws.from_host(floats({2}, {1, 2}), "CPU"));
  Recorder recorder;
  Array sum;
  const Recording made = record(ws, recorder, [&] {
    const Array moved = take(ws.copy_to(on_host, place->device));
    sum = take(ws.compute(tensor::add(moved.value(), 1)));
  });
  ASSERT_EQ(made.schedule.calls.size(), 2u);
  EXPECT_EQ(made.schedule.calls[0].kind, exec::CallKind::Copy);
  ASSERT_TRUE(ok(ws.run(made)));
  recorder.mark_computed();
  EXPECT_EQ(read(ws, sum), (Floats{2, 3}));
}

TEST_P(RecorderOnEveryPlace, WhatIsMadeInsideIsMadeAtEveryReplay) {
  Array x = make({2}, {1, 2}), sum, product;
  Recorder recorder;
  const Recording made = record(ws, recorder, [&] {
    sum = take(ws.zeros({2}));
    ASSERT_TRUE(ok(ws.assign(sum, tensor::add(sum.value(), x.value()))));
    product = make({2}, {3, 4});
    ASSERT_TRUE(ok(ws.assign(product, tensor::mul(product.value(), x.value()))));
  });
  for (int i = 0; i < 3; ++i) {
    const auto v = static_cast<float>(i);
    ASSERT_TRUE(ok(ws.assign(x, make({2}, {v, v + 1}))));
    ASSERT_TRUE(ok(ws.run(made)));
    recorder.mark_computed();
    EXPECT_EQ(read(ws, sum), (Floats{v, v + 1}));
    EXPECT_EQ(read(ws, product), (Floats{3 * v, 4 * (v + 1)}));
  }
}

TEST_P(RecorderOnEveryPlace, ValuesFromBeforeAReplayAreNotTakenForThoseAfterIt) {
  Array state = make({2}, {1, 2});
  const tensor::Tensor twice = tensor::mul(state.value(), 2);
  Recorder recorder;
  Array inside;
  const Recording made = record(ws, recorder, [&] {
    inside = take(ws.compute(tensor::add(tensor::mul(state.value(), 2), 1)));
    ASSERT_TRUE(ok(ws.assign(state, tensor::add(state.value(), 10))));
  });
  EXPECT_EQ(reason(ws.compute(twice)), "StaleValue");
  ASSERT_TRUE(ok(ws.run(made)));
  recorder.mark_computed();
  EXPECT_EQ(read(ws, inside), (Floats{3, 5}));
  const Array first = take(ws.compute(tensor::mul(state.value(), 2)));
  EXPECT_EQ(read(ws, first), (Floats{22, 24}));
  const Array lazy = take(ws.lazy(tensor::mul(state.value(), 2)));
  const Array follows = take(ws.lazy(tensor::add(inside.value(), 1)));
  ASSERT_TRUE(ok(ws.run(made)));
  EXPECT_EQ(read(ws, first), (Floats{22, 24}));
  EXPECT_EQ(reason(ws.clone(lazy)), "StaleValue") << "as after an assign()";
  EXPECT_EQ(read(ws, take(ws.clone(follows))), (Floats{24, 26})) << "made by the recording";
  EXPECT_EQ(read(ws, inside), (Floats{23, 25}));
}

TEST_P(RecorderOnEveryPlace, APauseDoesNotWriteWhatIsOnlyRecorded) {
  const Array a = make({2}, {1, 2});
  Recorder recorder;
  record(ws, recorder, [&] {
    Array recorded = take(ws.compute(tensor::add(a.value(), 1)));
    const Workspace::Pause pause(ws);
    EXPECT_EQ(reason(ws.assign(recorded, a)), "DataAccessDuringCapture");
  });
}

TEST_P(RecorderOnEveryPlace, VariablesAndPartsOfBlocks) {
  const runtime::MemoryRef block =
      take(ws.machine()->allocate(place->device, 256, runtime::Purpose::Data)).memory;
  Array x = take(ws.adopt({block, 128, 8}, DType::Float32, {2}));
  ASSERT_TRUE(ok(ws.assign(x, make({2}, {1, 2}))));
  const tensor::Tensor i = take(ws.variable("i", 0, 9));
  Recorder recorder;
  Array y;
  Recording made = record(ws, recorder, [&] {
    y = take(ws.compute(tensor::mul(x.value(), tensor::cast(i, DType::Float32))));
    ASSERT_TRUE(ok(ws.assign(x, y)));
  });
  EXPECT_EQ(made.variables, std::vector<std::string>{"i"});
  const auto part = static_cast<size_t>(made.find(x.base()));
  EXPECT_EQ(made.buffers[part].part.offset_bytes, 128u);
  EXPECT_TRUE(made.schedule.buffers[part].memory.empty());
  for (const int value : {3, 5}) {
    ASSERT_TRUE(ok(ws.bind("i", value)));
    ASSERT_TRUE(ok(ws.run(made)));
  }
  recorder.mark_computed();
  EXPECT_EQ(read(ws, x), (Floats{15, 30}));
  EXPECT_EQ(read(ws, y), (Floats{15, 30}));
  made.place_parts();
  EXPECT_EQ(made.schedule.buffers[part].memory[0], block);
}

TEST_P(RecorderOnEveryPlace, WhatFailedIsPoisoned) {
  Array a = make({2}, {1, 2}), made;
  {
    Recorder recorder;
    ASSERT_TRUE(ok(ws.set_recorder(&recorder)));
    made = take(ws.compute(tensor::add(a.value(), 1)));
    ASSERT_TRUE(ok(ws.assign(a, tensor::mul(a.value(), 2))));
    Recorder second;
    EXPECT_EQ(reason(ws.set_recorder(&second)), "NestedCapture");
    ASSERT_TRUE(ok(ws.set_recorder(nullptr)));
  }
  EXPECT_EQ(reason(ws.to_host(made)), "PoisonedTensor");
  EXPECT_EQ(reason(ws.to_host(a)), "PoisonedTensor");
  ASSERT_TRUE(ok(ws.assign(a, tensor::Tensor::scalar(ws.graph(), 4))));
  EXPECT_EQ(read(ws, a), (Floats{4, 4}));
}

TEST_P(RecorderOnEveryPlace, AReplayWithOtherInputs) {
  Array x = make({2, 2}, {1, 2, 3, 4});
  const Array w = make({2, 2}, {1, 0, 0, 2});
  Recorder recorder;
  Array y;
  Recording made = record(ws, recorder, [&] {
    const Array scaled = take(ws.compute(tensor::mul(w.value(), 2)));
    y = take(ws.compute(tensor::matmul(x.value(), scaled.value())));
  });
  const auto input = static_cast<size_t>(made.find(x.base()));
  made.schedule.buffers[input].input = 0;
  made.schedule.buffers[input].memory.clear();
  const MemoryPlan plan = take(plan_memory(made.schedule));
  const exec::Schedule planned = apply_memory_plan(made.schedule, plan);
  const exec::TemplateRef compiled = take(ws.templates().compile(planned, ws.environment()));
  const auto linked = take(exec::link(ws.machine(), compiled, {}));
  for (int i = 0; i < 3; ++i) {
    const auto v = static_cast<float>(i);
    const Array now = make({2, 2}, {v, v + 1, v + 2, v + 3});
    const exec::BoundInput bound = exec::bind(now.base_memory().memory);
    ASSERT_TRUE(ok(exec::run(*linked, {&bound, 1})));
    recorder.mark_computed();
    EXPECT_EQ(read(ws, y), (Floats{2 * v, 4 * (v + 1), 2 * (v + 2), 4 * (v + 3)}));
  }
}

TEST(Recorder, AHaloKeepsMemoryOfItsOwn) {
  auto place = make_place(PlaceKind::CopyQueue);
  Workspace& ws = place->ws();
  Floats pixels(2 * 3 * 16 * 16);
  for (size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<float>(i % 11) - 5;
  Floats kernel(8 * 3 * 3 * 3);
  for (size_t i = 0; i < kernel.size(); ++i) kernel[i] = static_cast<float>(i % 7) - 3;
  const tensor::Tensor w = tensor::Tensor::constant(ws.graph(), floats({8, 3, 3, 3}, kernel));
  const Array x = take(ws.from_host(floats({2, 3, 16, 16}, pixels)));
  const auto model = [&](const tensor::Tensor& in) {
    tensor::ConvOptions options;
    options.pads_lo = options.pads_hi = {1, 1};
    const tensor::Tensor first = tensor::maximum(tensor::conv(in, w, {}, options), 0);
    return tensor::sum(first, {1});
  };
  const Floats direct = read(ws, take(ws.compute(model(x.value()))));
  Recorder recorder;
  Array y;
  const Recording made = record(ws, recorder, [&] { y = take(ws.compute(model(x.value()))); });
  int zeroed = 0;
  for (size_t i = 0; i < made.buffers.size(); ++i) {
    if (!made.buffers[i].reads_zeros) continue;
    ++zeroed;
    EXPECT_EQ(made.schedule.buffers[i].memory.size(), 1u);
  }
  EXPECT_EQ(zeroed, 1);
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(ok(ws.run(made)));
    recorder.mark_computed();
    EXPECT_EQ(read(ws, y), direct);
  }
}

}  // namespace
}  // namespace ignis::engine
