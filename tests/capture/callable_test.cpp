// Phases, inputs and what is captured: the tables of the capture specification by their ids.

#include "tests/capture/callable_rig.h"

#include <set>

namespace ignis::engine {
namespace {

using Captures = CallableTest;
INSTANTIATE_TEST_SUITE_P(Places, Captures, all_places(), place_name);

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

}  // namespace
}  // namespace ignis::engine
