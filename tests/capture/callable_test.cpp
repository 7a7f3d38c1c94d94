// The capture of C++ callables: the tables of the capture specification by their ids, on the host and on simulated devices.

#include "ignis/engine/callable/typed.h"
#include "ignis/engine/eager/test_places.h"

#include "tests/support/seed.h"
#include <gtest/gtest.h>

#include <array>
#include <set>

namespace ignis::engine {
namespace {

using tensor::Tensor;
using Floats = std::vector<float>;

class Captures : public ::testing::TestWithParam<PlaceKind> {
 protected:
  std::unique_ptr<Place> place = make_place(GetParam());
  Workspace& ws = place->ws();

  Array make(const Floats& values, const Shape& shape) {
    return take(ws.from_host(floats(shape, values)));
  }
  Array make(const Floats& values) { return make(values, {static_cast<int64_t>(values.size())}); }
  Array scalar(float value) { return make({value}); }
  /// Every element has the value.
  Array filled(const Shape& shape, float value) {
    return make(Floats(static_cast<size_t>(element_count(shape)), value), shape);
  }
  Floats read(const Array& array) { return engine::read(ws, array); }
  float first(const Array& array) {
    const Floats values = read(array);
    return values.empty() ? -1e30F : values.front();
  }
  int recorded(const Capture& capture) { return take(capture.report()).calls; }
};

INSTANTIATE_TEST_SUITE_P(Places, Captures,
                         ::testing::Values(PlaceKind::Cpu, PlaceKind::CopyQueue,
                                           PlaceKind::NoCopyQueue, PlaceKind::Hidden),
                         [](const auto& each) -> std::string {
                           switch (each.param) {
                             case PlaceKind::Cpu: return "Cpu";
                             case PlaceKind::CopyQueue: return "CopyQueue";
                             case PlaceKind::NoCopyQueue: return "NoCopyQueue";
                             case PlaceKind::Hidden: return "Hidden";
                             default: return "Other";
                           }
                         });

// --- three phases (section 2) ---

TEST_P(Captures, PH1_DirectThenCaptureThenReplay) {
  auto f = capture(ws, [](Array a, Array b) -> Tensor { return a.value() + b.value(); });
  Array results[3];
  for (int i = 0; i < 3; ++i) {
    results[i] = take(f(scalar(static_cast<float>(i)), scalar(10)));
    EXPECT_EQ(read(results[i]), Floats{10.0F + static_cast<float>(i)});
    EXPECT_EQ(f.object().count(), i + 1);
    EXPECT_EQ(f.object().is_captured(), i > 0);
  }
  // The same storage, another number.
  EXPECT_EQ(results[1].base_memory().memory, results[2].base_memory().memory);
  EXPECT_NE(results[0].base_memory().memory, results[2].base_memory().memory);
  EXPECT_LT(results[1].sequence(), results[2].sequence());
}

TEST_P(Captures, PH2_WithoutJitTheFunctionRunsEachTime) {
  CaptureOptions options;
  options.jit = 0;
  auto f = capture(ws, [](Array a, Array b) -> Tensor { return a.value() + b.value(); }, options);
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(first(take(f(scalar(static_cast<float>(i)), scalar(1)))), static_cast<float>(i + 1));
  }
  EXPECT_FALSE(f.object().is_captured());
  EXPECT_EQ(f.object().count(), 5);
}

TEST_P(Captures, PH3_StateAndNotTheCountSaysWhatComesNext) {
  CaptureOptions options;
  options.jit = 0;
  auto f = capture(ws, [](Array a, Array b) -> Tensor { return a.value() + b.value(); }, options);
  for (int i = 0; i < 5; ++i) take(f(scalar(1), scalar(1)));
  f.object().set_jit(1);
  EXPECT_EQ(first(take(f(scalar(2), scalar(1)))), 3);
  EXPECT_TRUE(f.object().is_captured());
  EXPECT_EQ(first(take(f(scalar(3), scalar(1)))), 4);
  EXPECT_EQ(f.object().count(), 7);
}

TEST_P(Captures, PH4_JitOffForOneCall) {
  int runs = 0;
  auto f = capture(ws, [&runs](Array a) -> Tensor {
    ++runs;
    return a.value() + 1;
  });
  for (int i = 0; i < 3; ++i) take(f(scalar(1)));
  EXPECT_EQ(runs, 2);
  f.object().set_jit(0);
  EXPECT_EQ(first(take(f(scalar(4)))), 5);
  EXPECT_EQ(runs, 3);
  f.object().set_jit(1);
  EXPECT_EQ(first(take(f(scalar(6)))), 7);
  EXPECT_EQ(runs, 3);
  EXPECT_EQ(f.object().count(), 5);
}

TEST_P(Captures, PH5_ResetTakesOtherShapes) {
  auto f = capture(ws, [](Array a, Array b) -> Tensor { return a.value() + b.value(); });
  for (const int64_t n : {int64_t{10}, int64_t{20}}) {
    for (int i = 0; i < 5; ++i) {
      const auto x = static_cast<float>(i);
      const Array sum = take(f(filled({n, n}, x), filled({n, n}, 1)));
      EXPECT_EQ(read(sum), Floats(static_cast<size_t>(n * n), x + 1));
    }
    EXPECT_EQ(recorded(f.object()), 1);
    ASSERT_TRUE(ok(f.object().reset()));
  }
}

TEST_P(Captures, PH6_ANestedCaptureIsRefusedAtOnce) {
  auto inner = capture(ws, [](Array x) -> Tensor { return x.value() + 1; });
  auto outer = capture(ws, [&inner](Array x) -> Result<Tensor> {
    IGNIS_TRY_ASSIGN(const Array y, inner(x));
    return y.value() * 3;
  });
  EXPECT_EQ(reason(outer(scalar(1))), "NestedCapture");
  EXPECT_EQ(outer.object().count(), 0);
  EXPECT_EQ(inner.object().count(), 0);
  // A function that hides the error does not get through either.
  auto hiding = capture(ws, [&inner](Array x) -> Tensor {
    (void)inner(x);
    return x.value() * 3;
  });
  EXPECT_EQ(reason(hiding(scalar(1))), "NestedCapture");
  EXPECT_EQ(first(take(inner(scalar(1)))), 2);
}

TEST_P(Captures, PH7_NothingRecorded) {
  auto f = capture(ws, [](Array) {});
  EXPECT_EQ(reason(f(scalar(1))), "ok");
  EXPECT_EQ(reason(f(scalar(1))), "NothingCaptured");
  EXPECT_EQ(f.object().count(), 1);
  EXPECT_FALSE(f.object().is_captured());
}

TEST_P(Captures, PH8_AFailedCaptureIsTriedAgain) {
  bool fails = false;
  Array state = scalar(0);
  auto f = capture(ws, [&](Array x) -> Result<Tensor> {
    IGNIS_TRY(ws.assign(state, state.value() + 1));
    if (fails) return Error(ErrorCode::Unsupported, "Not today.", "Whim");
    return x.value() * 2;
  });
  take(f(scalar(1)));
  fails = true;
  EXPECT_EQ(reason(f(scalar(1))), "Whim");
  EXPECT_EQ(f.object().count(), 1);
  fails = false;
  EXPECT_EQ(first(take(f(scalar(4)))), 8);
  EXPECT_TRUE(f.object().is_captured());
  // What the failed call had computed before it failed is there, as after a direct run.
  EXPECT_EQ(first(state), 3);
}

TEST_P(Captures, PH8_WhatTheFrontEndThrowsIsAnError) {
  auto f = capture(ws, [](Array a, Array b) -> Tensor { return a.value() + b.value(); });
  const Result<Array> wrong = f(make({1, 2, 3}), make({1, 2}));
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().code(), ErrorCode::InvalidArgument);
  EXPECT_EQ(read(take(f(make({1, 2}), make({1, 2})))), (Floats{2, 4}));
}

TEST_P(Captures, PH10_ABlockThatIsNotCaptured) {
  for (const bool pauses : {false, true}) {
    auto f = capture(ws, [&](Array a, Array b) -> Result<Tensor> {
      std::unique_ptr<Workspace::Pause> pause;
      if (pauses) pause = std::make_unique<Workspace::Pause>(ws);
      IGNIS_TRY_ASSIGN(const Array other, ws.compute(a.value() * 1));
      pause.reset();
      return a.value() + b.value();
    });
    for (int i = 0; i < 3; ++i) EXPECT_EQ(first(take(f(scalar(1), scalar(2)))), 3);
    EXPECT_EQ(recorded(f.object()), pauses ? 1 : 2);
  }
}

TEST_P(Captures, PH11_TheFunctionRunsTwice) {
  int runs = 0;
  auto f = capture(ws, [&runs](Array a) -> Tensor {
    ++runs;
    return a.value() + 1;
  });
  for (int i = 0; i < 5; ++i) take(f(scalar(1)));
  EXPECT_EQ(runs, 2);
}

TEST_P(Captures, PH12_AnInnerCaptureFromBeforeIsRefused) {
  auto inner = capture(ws, [](Array x) -> Tensor { return x.value() + 1; });
  for (int i = 0; i < 3; ++i) take(inner(scalar(1)));
  auto outer = capture(ws, [&inner](Array x) -> Result<Tensor> {
    IGNIS_TRY_ASSIGN(const Array y, inner(x));
    return y.value() * 3;
  });
  EXPECT_EQ(reason(outer(scalar(1))), "NestedCapture");
}

// --- inputs (section 3) ---

TEST_P(Captures, IN2_KeywordsAreSortedByName) {
  auto f = capture(
      ws, [](Array second, Array first) -> Tensor { return first.value() / second.value(); }, {},
      {"second", "first"});
  for (int i = 0; i < 3; ++i) EXPECT_EQ(first(take(f(scalar(2), scalar(6)))), 3);
  auto g = capture(
      ws, [](Array first, Array second) -> Tensor { return first.value() / second.value(); }, {},
      {"first", "second"});
  for (int i = 0; i < 3; ++i) EXPECT_EQ(first(take(g(scalar(6), scalar(2)))), 3);
  const auto names = [](Capture& capture) {
    std::vector<std::string> found;
    for (const auto& input : take(capture.captured())->signature.inputs()) {
      found.emplace_back(input.name);
    }
    return found;
  };
  EXPECT_EQ(names(f.object()), (std::vector<std::string>{"first", "second"}));
  EXPECT_EQ(names(g.object()), names(f.object()));
}

TEST_P(Captures, IN4_IN5_OneStorageTwiceIsRefused) {
  auto f = capture(ws, [](Array a, Array b) -> Tensor { return a.value() + b.value(); });
  const Array x = make({1, 2, 3, 4});
  EXPECT_EQ(reason(f(x, x)), "DuplicateInput");
  EXPECT_EQ(reason(f(take(x.slice({{0, 2}})), take(x.slice({{2, 4}})))), "DuplicateInput");
  CaptureOptions options;
  options.allow_read_only_duplicates = true;
  auto g = capture(ws, [](Array a, Array b) -> Tensor { return a.value() + b.value(); }, options);
  for (int i = 0; i < 3; ++i) {
    const auto start = static_cast<float>(i);
    const Array y = make({start, 2, 3, 4});
    EXPECT_EQ(read(take(g(take(y.slice({{0, 2}})), take(y.slice({{2, 4}}))))),
              (Floats{start + 3, 6}));
  }
}

TEST_P(Captures, IN6_IN7_ContainersAreSearchedOneLevelDeep) {
  const Array x = scalar(3);
  Capture f = Capture::create(ws, [](const Arguments& given) -> Result<Value> {
    return Value(given[0].array().value() + given[1][size_t{0}].array().value());
  });
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(first(take(f.call({{x, Sequence{x}}, {}})).array()), 6);
  }
  EXPECT_EQ(take(f.captured())->input_count(), 1U);
  const Array y = scalar(5);
  Capture g = Capture::create(ws, [](const Arguments& given) -> Result<Value> {
    return Value(given[0].array().value() + given[1][size_t{0}][size_t{0}].array().value());
  });
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(first(take(g.call({{x, Sequence{Sequence{y}}}, {}})).array()), 8);
  }
  EXPECT_EQ(take(g.captured())->input_count(), 1U);
  EXPECT_FALSE(take(g.captured())->implicit_state().empty());
}

TEST_P(Captures, IN8_AConstantWithoutStorageIsNoInput) {
  auto f = capture(ws, [](Array a, Array b) -> Tensor { return a.value() + b.value(); });
  Array two = take(ws.lazy(Tensor::scalar(ws.graph(), 2.0)));
  EXPECT_EQ(reason(f(make({1, 2}), two)), "VirtualInput");
  (void)ws.realize(two);
  EXPECT_EQ(reason(f(make({1, 2}), two)), "VirtualInput");
  const Array cloned = take(ws.clone(two));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(read(take(f(make({1, 2}), cloned))), (Floats{3, 4}));
}

TEST_P(Captures, IN9_ShapesBroadcast) {
  auto f = capture(ws, [](Array a, Array b) -> Tensor { return a.value() + b.value(); });
  for (int i = 0; i < 5; ++i) {
    const auto x = static_cast<float>(i);
    EXPECT_EQ(read(take(f(scalar(x), make({1, 2, 3})))), (Floats{x + 1, x + 2, x + 3}));
  }
}

TEST_P(Captures, IN10_OneVariableHasOneValue) {
  Capture f = Capture::create(ws, [](const Arguments& given) -> Result<Value> {
    return Value(given[0].array().value() + 1);
  });
  EXPECT_EQ(reason(f.call({{scalar(1), RunVariable{"i", 2, 0, 9}, RunVariable{"i", 3, 0, 9}}, {}})),
            "VariableConflict");
}

TEST_P(Captures, IN11_KeywordContainersAreToldApart) {
  Capture f = Capture::create(ws, [](const Arguments& given) -> Result<Value> {
    return Value(given["x"][size_t{0}].array().value() - given["y"][size_t{0}].array().value());
  });
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(
        first(take(f.call({{}, {{"x", Sequence{scalar(9)}}, {"y", Sequence{scalar(2)}}}})).array()),
        7);
  }
  EXPECT_EQ(
      first(take(f.call({{}, {{"y", Sequence{scalar(1)}}, {"x", Sequence{scalar(5)}}}})).array()),
      4);
}

TEST_P(Captures, IN12_ContainersOfOtherLengthsDoNotFit) {
  auto f = capture(ws, [](std::vector<Array> a, std::vector<Array> b) -> Tensor {
    Tensor sum = a.front().value() + b.back().value();
    if (a.size() > 1) sum = sum + a.back().value();
    return sum;
  });
  const Array a = scalar(1), b = scalar(2), c = scalar(3);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(first(take(f({a, b}, {c}))), 6);
  EXPECT_EQ(reason(f({a}, {b, c})), "SignatureMismatch");
}

// --- capture (section 4) ---

TEST_P(Captures, CA1_AnExpressionThatNobodyRealized) {
  auto f = capture(ws, [](Array x) -> Tensor { return x.value() * 2; });
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(first(take(f(scalar(static_cast<float>(i))))), static_cast<float>(2 * i));
  }
}

TEST_P(Captures, CA2_ResultsInContainers) {
  auto f =
      capture(ws, [](Array a, Array b) -> std::vector<Tensor> { return {a.value() + b.value()}; });
  auto g = capture(ws, [](Array a, Array b) -> std::map<std::string, Tensor> {
    return {{"billy", a.value() + b.value()}};
  });
  for (int i = 0; i < 5; ++i) {
    const auto x = static_cast<float>(i);
    EXPECT_EQ(first(take(f(scalar(x), scalar(1)))[0]), x + 1);
    EXPECT_EQ(first(take(g(scalar(x), scalar(1)))["billy"]), x + 1);
  }
}

TEST_P(Captures, CA3_ThreeRealizedOutputs) {
  auto f = capture(ws, [&](Array x) -> Result<std::tuple<Array, Array, Array>> {
    IGNIS_TRY_ASSIGN(const Array a, ws.compute(x.value() + 1));
    IGNIS_TRY_ASSIGN(const Array b, ws.compute(x.value() * 2));
    IGNIS_TRY_ASSIGN(const Array c, ws.compute(a.value() + b.value()));
    return std::tuple(a, b, c);
  });
  for (int i = 0; i < 5; ++i) {
    const auto x = static_cast<float>(i);
    const auto [a, b, c] = take(f(scalar(x)));
    EXPECT_EQ(first(a), x + 1);
    EXPECT_EQ(first(b), 2 * x);
    EXPECT_EQ(first(c), 3 * x + 1);
  }
  EXPECT_EQ(recorded(f.object()), 3);
}

TEST_P(Captures, CA4_ValuesCanNotBeReadWhileCapturing) {
  auto f = capture(ws, [&](Array x) -> Result<Tensor> {
    IGNIS_TRY_ASSIGN(const HostTensor value, ws.to_host(x));
    return x.value() + static_cast<double>(value.data<float>()[0]);
  });
  EXPECT_EQ(first(take(f(scalar(2)))), 4);
  EXPECT_EQ(reason(f(scalar(2))), "DataAccessDuringCapture");
  EXPECT_EQ(f.object().count(), 1);
}

TEST_P(Captures, CA5_RandomNumbersStayRandom) {
  auto f = capture(ws, [&](Array x) -> Result<Tensor> {
    IGNIS_TRY_ASSIGN(const Array noise, ws.random_uniform({3}));
    return x.value() + noise.value();
  });
  std::set<Floats> seen;
  for (int i = 0; i < 7; ++i) seen.insert(read(take(f(make({0, 0, 0})))));
  EXPECT_EQ(seen.size(), 7U);
}

TEST_P(Captures, CA6_TheSameNumbersWithAndWithoutCapture) {
  std::vector<Floats> runs[2];
  for (const int jit : {0, 1}) {
    ASSERT_TRUE(ok(ws.manual_seed(42)));
    CaptureOptions options;
    options.jit = jit;
    auto f = capture(
        ws,
        [&](Array x) -> Result<Tensor> {
          IGNIS_TRY_ASSIGN(const Array noise, ws.random_uniform({3}));
          return x.value() + noise.value();
        },
        options);
    for (int i = 0; i < 5; ++i) runs[jit].push_back(read(take(f(make({0, 0, 0})))));
  }
  EXPECT_EQ(runs[0], runs[1]);
}

TEST_P(Captures, CA7_InPlace) {
  Array x = scalar(0);
  auto f = capture(ws, [&]() -> Status { return ws.assign(x, x.value() + 1); });
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(reason(f()), "ok");
    EXPECT_EQ(first(x), static_cast<float>(i + 1));
  }
}

TEST_P(Captures, CA8_ImplicitOutput) {
  Array out = scalar(-1);
  auto f = capture(ws, [&](Array x) -> Status { return ws.assign(out, x.value() * 2); });
  for (int i = 0; i < 5; ++i) {
    take(f(scalar(static_cast<float>(i))));
    EXPECT_EQ(first(out), static_cast<float>(2 * i));
  }
}

TEST_P(Captures, CA9_ImplicitInput) {
  Array w = scalar(0);
  auto f = capture(ws, [&]() -> Tensor { return w.value() * 2; });
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(ok(ws.assign(w, take(ws.clone(scalar(static_cast<float>(i)))))));
    EXPECT_EQ(first(take(f())), static_cast<float>(2 * i));
  }
}

TEST_P(Captures, CA10_AConstantListInTheFunction) {
  auto f = capture(ws, [&](Array x) -> Tensor {
    return x.value() + Tensor::constant(ws.graph(), floats({3}, {1, 2, 3}));
  });
  for (int i = 0; i < 5; ++i) {
    const auto v = static_cast<float>(i);
    EXPECT_EQ(read(take(f(make({v, v, v})))), (Floats{v + 1, v + 2, v + 3}));
  }
}

TEST_P(Captures, CA11_AFailedCaptureLeavesWhatADirectRunLeaves) {
  Array out = scalar(-1);
  Capture f = Capture::create(ws, [&](const Arguments& given) -> Result<Value> {
    IGNIS_TRY(ws.assign(out, given[0].array().value() * 2));
    return Value(Sequence{given[0], 5});
  });
  EXPECT_EQ(reason(f.call({{scalar(1)}, {}})), "ok");
  EXPECT_EQ(reason(f.call({{scalar(3)}, {}})), "NonTensorReturn");
  EXPECT_EQ(first(out), 6);
  EXPECT_EQ(f.count(), 1);
}

TEST_P(Captures, CA11_OrReadingItIsAnError) {
  Array out = scalar(-1);
  CaptureOptions options;
  options.runs_after_failure = false;
  Capture f = Capture::create(
      ws,
      [&](const Arguments& given) -> Result<Value> {
        IGNIS_TRY(ws.assign(out, given[0].array().value() * 2));
        return Value(Sequence{given[0], 5});
      },
      options);
  take(f.call({{scalar(1)}, {}}));
  EXPECT_EQ(reason(f.call({{scalar(3)}, {}})), "NonTensorReturn");
  EXPECT_EQ(reason(ws.to_host(out)), "PoisonedTensor");
  ASSERT_TRUE(ok(ws.assign(out, take(ws.clone(scalar(4))))));
  EXPECT_EQ(first(out), 4);
}

// --- results (section 5) ---

TEST_P(Captures, OU2_BorrowedResultsGoStale) {
  auto f = capture(ws, [](Array x) -> Tensor { return tensor::sum(x.value(), tensor::Axes{0}); });
  const Array r1 = take(f(make({1, 1}))), r2 = take(f(make({2, 2}))), r3 = take(f(make({3, 3})));
  EXPECT_EQ(first(r1), 2);
  EXPECT_EQ(first(r3), 6);
  EXPECT_EQ(reason(ws.to_host(r2)), "StaleOutput");
  EXPECT_TRUE(r2.is_stale());
  // Not as an input, and not in an expression.
  EXPECT_EQ(reason(f(r2)), "StaleOutput");
  EXPECT_THROW((void)r2.value(), tensor::GraphError);
}

TEST_P(Captures, OU3_CopiesStay) {
  CaptureOptions options;
  options.output_mode = exec::OutputMode::Copy;
  auto f = capture(
      ws, [](Array x) -> Tensor { return tensor::sum(x.value(), tensor::Axes{0}); }, options);
  const Array r1 = take(f(make({1, 1}))), r2 = take(f(make({2, 2}))), r3 = take(f(make({3, 3})));
  EXPECT_EQ(first(r1), 2);
  EXPECT_EQ(first(r3), 6);
  EXPECT_EQ(first(r2), 4);
}

TEST_P(Captures, OU4_ARingKeepsTheLastN) {
  CaptureOptions options;
  options.output_mode = exec::OutputMode::Ring;
  options.ring_size = 3;
  auto f = capture(
      ws, [](Array x) -> Tensor { return tensor::sum(x.value(), tensor::Axes{0}); }, options);
  take(f(make({0, 0})));
  std::vector<Array> results;
  for (int i = 1; i <= 5; ++i) {
    const auto x = static_cast<float>(i);
    results.push_back(take(f(make({x, x}))));
  }
  for (size_t i = 0; i < 5; ++i) {
    if (i < 2) EXPECT_EQ(reason(ws.to_host(results[i])), "StaleOutput") << i;
    else EXPECT_EQ(first(results[i]), static_cast<float>(2 * (i + 1)));
  }
}

TEST_P(Captures, OU4_CallersStorage) {
  CaptureOptions options;
  options.output_mode = exec::OutputMode::Caller;
  auto f = capture(ws, [](Array x) -> Tensor { return x.value() * 2; }, options);
  const Array places[2] = {make({0, 0}), make({0, 0})};
  for (int i = 0; i < 6; ++i) {
    const auto x = static_cast<float>(i);
    const Array& to = places[i % 2];
    const Array got = take(f.call({&to, 1}, make({x, x + 1})));
    EXPECT_EQ(got.id(), to.id());
    EXPECT_EQ(read(to), (Floats{2 * x, 2 * x + 2}));
  }
  const Array small = scalar(1);
  EXPECT_EQ(reason(f.call({&small, 1}, make({1, 2}))), "OutputMismatch");
  EXPECT_EQ(reason(f.call({}, make({1, 2}))), "OutputMismatch");
}

TEST_P(Captures, OU5_ClonesStay) {
  auto f = capture(ws, [](Array x) -> Tensor { return tensor::sum(x.value(), tensor::Axes{0}); });
  std::vector<Array> clones;
  for (int i = 1; i <= 3; ++i) {
    const auto x = static_cast<float>(i);
    clones.push_back(take(ws.clone(take(f(make({x, x}))))));
  }
  EXPECT_EQ(first(clones[0]), 2);
  EXPECT_EQ(first(clones[1]), 4);
  EXPECT_EQ(first(clones[2]), 6);
}

TEST_P(Captures, OU7_OnlyTensorsComeBack) {
  Capture f = Capture::create(ws, [](const Arguments& given) -> Result<Value> {
    return Value(Sequence{Value(given[0].array().value() + 1), Value(5)});
  });
  EXPECT_EQ(reason(f.call({{scalar(1)}, {}})), "ok");
  const Result<Value> second = f.call({{scalar(1)}, {}});
  EXPECT_EQ(reason(second), "NonTensorReturn");
  EXPECT_NE(second.error().message().find("a whole number at '[1]'"), std::string::npos)
      << second.error().message();
}

TEST_P(Captures, OU9_AResultIsItsOwn) {
  auto f = capture(ws, [](Array x) -> Tensor { return x.value() + 1; });
  take(f(scalar(0)));
  const Array kept = take(ws.clone(take(f(scalar(1)))));
  const Array next = take(f(scalar(2)));
  EXPECT_EQ(first(kept), 2);
  EXPECT_EQ(first(next), 3);
}

TEST_P(Captures, OU10_AVariableIsBoundAtEachReplay) {
  // (a + 1) of the first w elements, padded to 10.
  auto f = capture(ws, [&](Array a, RunVariable w) -> Result<Tensor> {
    IGNIS_TRY_ASSIGN(const Tensor width, ws.variable(w.name, w.min, w.max));
    const Tensor index = Tensor::arange(ws.graph(), 0, 10, 1, DType::Int64);
    const Tensor inside = tensor::less(index, width);
    return tensor::where(inside, tensor::pad(a.value() + 1, {{0, 6}}), 0.0);
  });
  const auto nonzero = [&](int64_t width) {
    const Floats values = read(take(f(make({1, 2, 3, 4}), RunVariable{"w", width, 1, 4})));
    return std::count_if(values.begin(), values.end(), [](float x) { return x != 0; });
  };
  for (int64_t width = 1; width <= 4; ++width) EXPECT_EQ(nonzero(width), width);
  EXPECT_EQ(nonzero(4), 4);
  EXPECT_EQ(nonzero(2), 2);
  EXPECT_EQ(reason(f(make({1, 2, 3, 4}), RunVariable{"w", 5, 1, 4})), "SignatureMismatch");
}

TEST_P(Captures, AResultThatIsAnInputIsACopyOfIt) {
  auto f = capture(ws, [](Array x) -> std::tuple<Array, Tensor> { return {x, x.value() + 1}; });
  for (int i = 0; i < 4; ++i) {
    const auto v = static_cast<float>(i);
    const auto [same, next] = take(f(scalar(v)));
    EXPECT_EQ(first(same), v);
    EXPECT_EQ(first(next), v + 1);
  }
}

TEST_P(Captures, AResultThatNoCallTouchesIsACopyToo) {
  const Array outside = make({7, 8});
  auto f =
      capture(ws, [&](Array x) -> std::tuple<Array, Tensor> { return {outside, x.value() + 1}; });
  for (int i = 0; i < 4; ++i) {
    const auto v = static_cast<float>(i);
    const auto [same, next] = take(f(scalar(v)));
    EXPECT_EQ(read(same), (Floats{7, 8}));
    EXPECT_EQ(first(next), v + 1);
  }
}

// --- signature (section 6) ---

TEST_P(Captures, SG2_SG5_OtherInputsDoNotFitAndChangeNothing) {
  auto f = capture(ws, [](Array x) -> Tensor { return x.value() + 1; });
  for (int i = 0; i < 2; ++i) take(f(filled({10, 10}, 1)));
  EXPECT_EQ(reason(f(filled({20, 20}, 1))), "SignatureMismatch");
  const Array ints =
      take(ws.from_host(HostTensor::from(DType::Int32, {10, 10}, std::vector<int32_t>(100, 7))));
  EXPECT_EQ(reason(f(ints)), "SignatureMismatch");
  EXPECT_EQ(f.object().count(), 2);
  EXPECT_EQ(first(take(f(filled({10, 10}, 4)))), 5);
}

TEST_P(Captures, SG12_SixPairs) {
  auto f = capture(ws, [](std::vector<Array> a, std::vector<Array> b) -> std::vector<Tensor> {
    std::vector<Tensor> made;
    for (size_t i = 0; i < a.size(); ++i) {
      made.push_back(a[i].value() * b[i].value() + a[i].value());
    }
    return made;
  });
  uint64_t plans = 0;
  for (int round = 0; round <= 5; ++round) {
    std::vector<Array> a, b;
    for (int i = 0; i < 6; ++i) {
      a.push_back(filled({23}, static_cast<float>(round)));
      b.push_back(filled({23}, 2));
    }
    const std::vector<Array> sums = take(f(a, b));
    ASSERT_EQ(sums.size(), 6U);
    for (const Array& sum : sums) {
      EXPECT_EQ(read(sum), Floats(23, static_cast<float>(3 * round)));
    }
    if (round == 2) plans = ws.counts().plans_made;
  }
  EXPECT_EQ(ws.counts().plans_made, plans);
}

// --- one-time work (section 7) ---

TEST_P(Captures, PN1_ConstantWorkRunsOnce) {
  for (const bool prunes : {false, true}) {
    Array w = make({1, 2, 3});
    w.mark_constant();
    CaptureOptions options;
    options.prunes = prunes;
    auto f = capture(
        ws,
        [&](Array x) -> Result<Tensor> {
          IGNIS_TRY_ASSIGN(const Array twice, ws.compute(w.value() * 2));
          return twice.value() + x.value();
        },
        options);
    for (int i = 0; i < 4; ++i) {
      const auto v = static_cast<float>(i);
      EXPECT_EQ(read(take(f(make({v, v, v})))), (Floats{v + 2, v + 4, v + 6}));
    }
    EXPECT_EQ(recorded(f.object()), prunes ? 1 : 2);
    EXPECT_EQ(take(f.object().report()).one_time_calls, prunes ? 1 : 0);
  }
}

TEST_P(Captures, PN4_AStartValueIsMadeAnewEachTime) {
  Array acc = scalar(0);
  CaptureOptions options;
  options.prunes = true;
  auto f = capture(
      ws,
      [&](Array x) -> Result<Array> {
        IGNIS_TRY(ws.assign(acc, tensor::Tensor::zeros(ws.graph(), {1})));
        IGNIS_TRY(ws.assign(acc, acc.value() + x.value()));
        return acc;
      },
      options);
  for (const float x : {1.0F, 2.0F, 3.0F}) EXPECT_EQ(first(take(f(scalar(x)))), x);
}

TEST_P(Captures, PN5_WeightsThatChangeAreFollowed) {
  Array w = scalar(1);
  CaptureOptions options;
  options.prunes = true;
  auto f = capture(
      ws,
      [&](Array x) -> Result<Tensor> {
        IGNIS_TRY_ASSIGN(const Array twice, ws.compute(w.value() * 2));
        return twice.value() + x.value();
      },
      options);
  for (int i = 0; i < 5; ++i) {
    const auto v = static_cast<float>(i);
    ASSERT_TRUE(ok(ws.assign(w, take(ws.clone(scalar(v))))));
    EXPECT_EQ(first(take(f(scalar(1)))), 2 * v + 1);
  }
}

TEST_P(Captures, PN6_NothingDependsOnAnInput) {
  Array w = scalar(1);
  w.mark_constant();
  CaptureOptions options;
  options.prunes = true;
  auto f = capture(
      ws, [&](Array) -> Status { return ws.compute(w.value() * 2) ? Status() : Status(); },
      options);
  EXPECT_EQ(reason(f(scalar(1))), "ok");
  EXPECT_EQ(reason(f(scalar(1))), "NothingCaptured");
}

// --- memory (section 8) ---

TEST_P(Captures, MP1_TemporariesShareMemory) {
  for (const bool plans : {true, false}) {
    CaptureOptions options;
    options.plans_memory = plans;
    auto f = capture(
        ws,
        [&](Array x) -> Result<Tensor> {
          Array at = x;
          for (int i = 0; i < 4; ++i) {
            IGNIS_TRY_ASSIGN(at, ws.compute(at.value() * 2));
          }
          return at.value() + 1;
        },
        options);
    for (int i = 0; i < 4; ++i) {
      const auto v = static_cast<float>(i);
      EXPECT_EQ(read(take(f(filled({250}, v)))), Floats(250, 16 * v + 1));
    }
    uint64_t peak = 0;
    for (const auto& [device, size_bytes] : take(f.object().report()).peak_bytes) {
      peak += size_bytes;
    }
    // Two of four are alive at a time. The result has memory of its own.
    EXPECT_EQ(peak, plans ? 2U * 1024 : 4U * 1024);
  }
}

TEST_P(Captures, MP8_WhatStaysLazyIsRightAfterEachReplay) {
  Array kept;
  auto f = capture(ws, [&](Array x) -> Result<Tensor> {
    IGNIS_TRY_ASSIGN(kept, ws.compute(x.value() * 3));
    IGNIS_TRY_ASSIGN(const Array other, ws.compute(kept.value() + 1));
    return other.value() * 2;
  });
  for (int i = 0; i < 6; ++i) {
    const auto v = static_cast<float>(i);
    EXPECT_EQ(first(take(f(scalar(v)))), 6 * v + 2);
    EXPECT_EQ(first(take(ws.compute(kept.value() + 10))), 3 * v + 10);
  }
}

// --- groups (section 9) ---

TEST_P(Captures, GG10_FedBackAndReplaced) {
  auto step = capture(ws, [&](Array x) -> Result<Tensor> {
    IGNIS_TRY_ASSIGN(const Array next, ws.compute(x.value() + 1));
    return next.value() * 2;
  });
  take(step(scalar(0)));
  Array x = take(step(scalar(20)));
  for (int i = 0; i < 3; ++i) x = take(step(x));
  EXPECT_EQ(first(x), 350);
  x = take(step(scalar(100)));
  for (int i = 0; i < 2; ++i) x = take(step(x));
  EXPECT_EQ(first(x), 814);
}

TEST_P(Captures, GG9_WithoutGraphsTheSameValues) {
  CaptureOptions options;
  options.jit = 2;
  auto f = capture(
      ws,
      [&](Array x) -> Result<Tensor> {
        IGNIS_TRY_ASSIGN(const Array next, ws.compute(x.value() + 1));
        return next.value() * 2;
      },
      options);
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(first(take(f(scalar(static_cast<float>(i))))), static_cast<float>(2 * i + 2));
  }
  EXPECT_NE(take(f.object().report()).groups.rfind("graph ", 0), 0U);
}

// --- replay (section 10) ---

TEST_P(Captures, RP1_AWindowThatIsFedBack) {
  auto f = capture(ws, [&](Array window, Array frame) -> Result<std::tuple<Array, Array>> {
    const Tensor rest = tensor::slice(window.value(), 0, 1, 4);
    IGNIS_TRY_ASSIGN(const Array next, ws.compute(tensor::concat({rest, frame.value()}, 0)));
    IGNIS_TRY_ASSIGN(const Array head, next.slice({{0, 1}}));
    return std::tuple(next, head);
  });
  take(f(make({0, 0, 0, 0}), scalar(0)));
  Array window = std::get<0>(take(f(make({1, 2, 3, 4}), scalar(5))));
  for (int i = 0; i < 10; ++i) {
    const auto v = static_cast<float>(i);
    const auto [next, head] = take(f(window, scalar(6 + v)));
    EXPECT_EQ(first(head), 3 + v);
    EXPECT_EQ(read(next), (Floats{3 + v, 4 + v, 5 + v, 6 + v}));
    window = next;
  }
}

TEST_P(Captures, RP2_AHalfThatMoves) {
  constexpr int64_t kCount = 1 << 12;
  auto f = capture(ws, [&](Array buffer, Array next) -> Tensor {
    return tensor::concat({tensor::slice(buffer.value(), 0, kCount / 2, kCount), next.value()}, 0);
  });
  Array buffer = filled({kCount}, 0);
  for (int round = 0; round < 10; ++round) {
    buffer = take(f(buffer, filled({kCount / 2}, static_cast<float>(round + 1))));
    const Floats values = read(buffer);
    EXPECT_EQ(Floats(values.begin(), values.begin() + kCount / 2),
              Floats(kCount / 2, static_cast<float>(round)));
  }
}

TEST_P(Captures, RP3_WhatIsFreedIsMadeAgain) {
  auto f = capture(ws, [&](Array x) -> Result<Tensor> {
    IGNIS_TRY_ASSIGN(const Array t1, ws.compute(x.value() * 2));
    const Tensor added = Tensor::constant(ws.graph(), floats({5}, {1, 24, 23, 45, 1}));
    IGNIS_TRY_ASSIGN(const Array t2, ws.compute(t1.value() + added));
    return tensor::sum(t2.value(), tensor::Axes{0});
  });
  const auto at = [&](int i) { return first(take(f(make({static_cast<float>(i), 1, 2, 3, 4})))); };
  for (int i = 0; i < 5; ++i) EXPECT_EQ(at(i), static_cast<float>(114 + 2 * i));
  EXPECT_GE(take(f.object().free_intermediates()), 44U);
  EXPECT_EQ(at(11), 136);
  take(f.object().free_intermediates());
  take(f.object().free_intermediates());
  EXPECT_EQ(at(11), 136);
}

TEST_P(Captures, RP4_StateIsNotFreed) {
  Array x = scalar(1);
  auto f = capture(ws, [&](Array y) -> Status { return ws.assign(x, x.value() + y.value()); });
  for (int i = 0; i < 5; ++i) take(f(scalar(1)));
  EXPECT_EQ(first(x), 6);
  EXPECT_EQ(take(f.object().free_intermediates()), 0U);
  take(f(scalar(2)));
  EXPECT_EQ(first(x), 8);
}

TEST_P(Captures, RP5_NewInputsMakeNothingNew) {
  auto f = capture(ws, [](Array x) -> Tensor { return x.value() + 1; });
  for (int i = 0; i < 2; ++i) take(f(scalar(0)));
  const WorkspaceCounts before = ws.counts();
  const uint64_t links = f.object().replay()->counts().links;
  for (int i = 0; i < 1000; ++i) {
    ASSERT_EQ(first(take(f(scalar(static_cast<float>(i))))), static_cast<float>(i + 1));
  }
  EXPECT_EQ(ws.counts().plans_made, before.plans_made);
  EXPECT_EQ(f.object().replay()->counts().links, links);
}

// --- frozen control flow (section 11) ---

TEST_P(Captures, FZ1_AValueIsFrozenUnlessItIsGuarded) {
  double m = 1;
  const auto function = [&m](Array x) -> Tensor { return x.value() * m; };
  auto f = capture(ws, function);
  Floats got;
  for (m = 1; m <= 5; ++m) got.push_back(first(take(f(scalar(10)))));
  EXPECT_EQ(got, (Floats{10, 20, 20, 20, 20}));

  auto g = capture(ws, function);
  g.object().guard("m", &m);
  m = 1;
  EXPECT_EQ(first(take(g(scalar(10)))), 10);
  m = 2;
  EXPECT_EQ(first(take(g(scalar(10)))), 20);
  m = 3;
  EXPECT_EQ(reason(g(scalar(10))), "GuardMismatch");
  m = 2;
  EXPECT_EQ(first(take(g(scalar(7)))), 14);
}

TEST_P(Captures, FZ1_AGuardMaySelectAnotherCapture) {
  int64_t m = 1;
  CaptureOptions options;
  options.guard_policy = {exec::GuardPolicy::OnChange::Select, 2};
  auto f =
      capture(ws, [&m](Array x) -> Tensor { return x.value() * static_cast<double>(m); }, options);
  f.object().guard("m", &m);
  for (const int64_t now : {1, 1, 2, 1, 2}) {
    m = now;
    EXPECT_EQ(first(take(f(scalar(10)))), static_cast<float>(10 * now));
  }
  m = 3;
  EXPECT_EQ(reason(f(scalar(10))), "TooManyArtifacts");
}

TEST_P(Captures, FZ2_ABranchIsFrozen) {
  bool flag = true;
  auto f = capture(
      ws, [&flag](Array x) -> Tensor { return flag ? x.value() * x.value() : x.value() * 2; });
  EXPECT_EQ(first(take(f(scalar(3)))), 9);
  flag = false;
  take(f(scalar(3)));
  flag = true;
  EXPECT_EQ(first(take(f(scalar(3)))), 6);
}

TEST_P(Captures, FZ3_EachInstanceHasItsOwn) {
  struct Scaler {
    double scale;
    Tensor operator()(Array x) const { return x.value() * scale; }
  };
  auto two = capture(ws, Scaler{2}), three = capture(ws, Scaler{3});
  for (int i = 0; i < 3; ++i) EXPECT_EQ(first(take(two(scalar(5)))), 10);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(first(take(three(scalar(5)))), 15);
}

// --- serialise and load (section 13) ---

TEST_P(Captures, SE1_SE2_PH9_ALoadedCaptureReplays) {
  Array state = scalar(0);
  auto f = capture(ws, [&](Array x) -> Result<std::map<std::string, Array>> {
    IGNIS_TRY(ws.assign(state, state.value() + x.value()));
    IGNIS_TRY_ASSIGN(const Array twice, ws.compute(x.value() * 2));
    return std::map<std::string, Array>{{"twice", twice}, {"state", state}};
  });
  EXPECT_EQ(reason(f.object().captured()), "NotCaptured");
  for (int i = 0; i < 3; ++i) take(f(scalar(1)));
  const exec::CapturedRef saved = take(f.object().captured());
  Result<Capture> made = Capture::load(ws, saved);
  ASSERT_TRUE(made) << made.error().to_string();
  Capture loaded = *made;
  EXPECT_EQ(loaded.count(), 2);
  Value result = take(loaded.call({{scalar(5)}, {}}));
  EXPECT_EQ(first(result["twice"].array()), 10);
  EXPECT_EQ(loaded.count(), 3);
  EXPECT_EQ(reason(loaded.reset()), "NoCallable");
  loaded.set_jit(0);
  EXPECT_EQ(reason(loaded.call({{scalar(5)}, {}})), "NoCallable");
}

// --- any program ---

// A random function over an input, weights, state and temporaries, as steps that a test can do by itself as well.
struct RandomFunction {
  struct Step {
    enum class Kind { Compute, Assign, Return } kind = Kind::Compute;
    int from[2] = {0, 0};  // numbers of values: 0 input, 1 weights, 2 state, 3 … temporaries
    int factor = 1;
  };
  std::vector<Step> steps;
  int values = 3;

  explicit RandomFunction(std::mt19937_64& rng) {
    const auto below = [&](int n) { return static_cast<int>(rng() % static_cast<uint64_t>(n)); };
    const int count = 2 + below(6);
    for (int i = 0; i < count; ++i) {
      Step step;
      step.kind = below(4) == 0 ? Step::Kind::Assign : Step::Kind::Compute;
      for (int& from : step.from) from = below(values);
      step.factor = 1 + below(2);
      if (step.kind == Step::Kind::Compute) ++values;
      steps.push_back(step);
    }
    Step last;
    last.kind = Step::Kind::Return;
    last.from[0] = 0;
    last.from[1] = below(values);
    steps.push_back(last);
  }

  // Small whole numbers, which floats hold exactly.
  static float combine(float a, float b, int factor) {
    return std::fmod(a + static_cast<float>(factor) * b + 1, 97.0F);
  }

  Floats run(const Floats& input, const Floats& weights, Floats& state) const {
    std::vector<Floats> at = {input, weights, state};
    for (const Step& step : steps) {
      Floats made(input.size());
      for (size_t i = 0; i < made.size(); ++i) {
        made[i] = combine(at[static_cast<size_t>(step.from[0])][i],
                          at[static_cast<size_t>(step.from[1])][i], step.factor);
      }
      if (step.kind == Step::Kind::Return) return made;
      if (step.kind == Step::Kind::Assign) at[2] = state = made;
      else at.push_back(made);
    }
    return {};
  }

  Result<Tensor> run(const Workspace& ws, const Array& input, const Array& weights,
                     Array& state) const {
    std::vector<Array> at = {input, weights, state};
    for (const Step& step : steps) {
      const Tensor sum = at[static_cast<size_t>(step.from[0])].value() +
                         at[static_cast<size_t>(step.from[1])].value() * step.factor + 1;
      const Tensor made = tensor::cmod(sum, 97.0);
      if (step.kind == Step::Kind::Return) return made;
      if (step.kind == Step::Kind::Assign) {
        IGNIS_TRY(ws.assign(state, made));
      } else {
        IGNIS_TRY_ASSIGN(Array computed, ws.compute(made));
        at.push_back(computed);
      }
    }
    return Tensor();
  }
};

TEST_P(Captures, RandomFunctionsGiveWhatPlainLoopsGive) {
  const char* text = std::getenv("IGNIS_TEST_CAPTURES");
  const int programs = text != nullptr ? std::atoi(text) : 60;
  for (int p = 0; p < programs; ++p) {
    const uint64_t seed = ignis::testing::test_seed() * 1'000'003 + static_cast<uint64_t>(p);
    SCOPED_TRACE("IGNIS_TEST_SEED=" + std::to_string(ignis::testing::test_seed()) + ", program " +
                 std::to_string(p));
    std::mt19937_64 rng(seed);
    const RandomFunction function(rng);
    CaptureOptions options;
    options.prunes = rng() % 2 == 0;
    options.plans_memory = rng() % 4 != 0;
    options.jit = 1 + static_cast<int>(rng() % 2);
    options.output_mode = std::array{exec::OutputMode::Borrow, exec::OutputMode::Copy,
                                     exec::OutputMode::Ring}[rng() % 3];
    Floats weights = {3, 5, 7, 11}, state = {1, 2, 3, 4};
    Array weights_array = make(weights), state_array = make(state);
    if (rng() % 2 == 0) weights_array.mark_constant();
    auto f = capture(
        ws,
        [&](Array x) -> Result<Tensor> { return function.run(ws, x, weights_array, state_array); },
        options);
    Array result;
    Floats want;
    for (int i = 0; i < 5; ++i) {
      const bool feeds_back = i > 0 && rng() % 2 == 0;
      Floats input = want;
      Array input_array = result;
      if (!feeds_back) {
        for (float& x : input = Floats(4)) x = static_cast<float>(rng() % 50);
        input_array = make(input);
      }
      want = function.run(input, weights, state);
      Result<Array> got = f(input_array);
      ASSERT_TRUE(got) << got.error().to_string();
      result = *got;
      ASSERT_EQ(read(result), want) << "call " << i;
      ASSERT_EQ(read(state_array), state) << "call " << i;
    }
  }
}

}  // namespace
}  // namespace ignis::engine
