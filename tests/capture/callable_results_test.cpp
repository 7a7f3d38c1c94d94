// Results, signatures, memory, replays and guards of captured functions, by the ids of the specification.

#include "tests/capture/callable_rig.h"

namespace ignis::engine {
namespace {

using CapturedResults = CallableTest;
INSTANTIATE_TEST_SUITE_P(Places, CapturedResults, all_places(), place_name);

// --- results (section 5) ---

TEST_P(CapturedResults, OU2_BorrowedResultsGoStale) {
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

TEST_P(CapturedResults, OU3_CopiesStay) {
  CaptureOptions options;
  options.output_mode = exec::OutputMode::Copy;
  auto f = capture(
      ws, [](Array x) -> Tensor { return tensor::sum(x.value(), tensor::Axes{0}); }, options);
  const Array r1 = take(f(make({1, 1}))), r2 = take(f(make({2, 2}))), r3 = take(f(make({3, 3})));
  EXPECT_EQ(first(r1), 2);
  EXPECT_EQ(first(r3), 6);
  EXPECT_EQ(first(r2), 4);
}

TEST_P(CapturedResults, OU4_ARingKeepsTheLastN) {
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

TEST_P(CapturedResults, OU4_CallersStorage) {
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

TEST_P(CapturedResults, OU5_ClonesStay) {
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

TEST_P(CapturedResults, OU7_OnlyTensorsComeBack) {
  Capture f = Capture::create(ws, [](const Arguments& given) -> Result<Value> {
    return Value(Sequence{Value(given[0].array().value() + 1), Value(5)});
  });
  EXPECT_EQ(reason(f.call({{scalar(1)}, {}})), "ok");
  const Result<Value> second = f.call({{scalar(1)}, {}});
  EXPECT_EQ(reason(second), "NonTensorReturn");
  EXPECT_NE(second.error().message().find("a whole number at '[1]'"), std::string::npos)
      << second.error().message();
}

TEST_P(CapturedResults, OU9_AResultIsItsOwn) {
  auto f = capture(ws, [](Array x) -> Tensor { return x.value() + 1; });
  take(f(scalar(0)));
  const Array kept = take(ws.clone(take(f(scalar(1)))));
  const Array next = take(f(scalar(2)));
  EXPECT_EQ(first(kept), 2);
  EXPECT_EQ(first(next), 3);
}

TEST_P(CapturedResults, OU10_AVariableIsBoundAtEachReplay) {
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

TEST_P(CapturedResults, AResultThatIsAnInputIsACopyOfIt) {
  auto f = capture(ws, [](Array x) -> std::tuple<Array, Tensor> { return {x, x.value() + 1}; });
  for (int i = 0; i < 4; ++i) {
    const auto v = static_cast<float>(i);
    const auto [same, next] = take(f(scalar(v)));
    EXPECT_EQ(first(same), v);
    EXPECT_EQ(first(next), v + 1);
  }
}

TEST_P(CapturedResults, AResultThatNoCallTouchesIsACopyToo) {
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

TEST_P(CapturedResults, SG2_SG5_OtherInputsDoNotFitAndChangeNothing) {
  auto f = capture(ws, [](Array x) -> Tensor { return x.value() + 1; });
  for (int i = 0; i < 2; ++i) take(f(filled({10, 10}, 1)));
  EXPECT_EQ(reason(f(filled({20, 20}, 1))), "SignatureMismatch");
  const Array ints =
      take(ws.from_host(HostTensor::from(DType::Int32, {10, 10}, std::vector<int32_t>(100, 7))));
  EXPECT_EQ(reason(f(ints)), "SignatureMismatch");
  EXPECT_EQ(f.object().count(), 2);
  EXPECT_EQ(first(take(f(filled({10, 10}, 4)))), 5);
}

TEST_P(CapturedResults, SG12_SixPairs) {
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

TEST_P(CapturedResults, PN1_ConstantWorkRunsOnce) {
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

TEST_P(CapturedResults, PN4_AStartValueIsMadeAnewEachTime) {
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

TEST_P(CapturedResults, PN5_WeightsThatChangeAreFollowed) {
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

TEST_P(CapturedResults, PN6_NothingDependsOnAnInput) {
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

TEST_P(CapturedResults, MP1_TemporariesShareMemory) {
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

TEST_P(CapturedResults, MP8_WhatStaysLazyIsRightAfterEachReplay) {
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

TEST_P(CapturedResults, GG10_FedBackAndReplaced) {
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

TEST_P(CapturedResults, GG9_WithoutGraphsTheSameValues) {
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

TEST_P(CapturedResults, RP1_AWindowThatIsFedBack) {
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

TEST_P(CapturedResults, RP2_AHalfThatMoves) {
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

TEST_P(CapturedResults, RP3_WhatIsFreedIsMadeAgain) {
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

TEST_P(CapturedResults, RP4_StateIsNotFreed) {
  Array x = scalar(1);
  auto f = capture(ws, [&](Array y) -> Status { return ws.assign(x, x.value() + y.value()); });
  for (int i = 0; i < 5; ++i) take(f(scalar(1)));
  EXPECT_EQ(first(x), 6);
  EXPECT_EQ(take(f.object().free_intermediates()), 0U);
  take(f(scalar(2)));
  EXPECT_EQ(first(x), 8);
}

TEST_P(CapturedResults, RP5_NewInputsMakeNothingNew) {
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

TEST_P(CapturedResults, FZ1_AValueIsFrozenUnlessItIsGuarded) {
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

TEST_P(CapturedResults, FZ1_AGuardMaySelectAnotherCapture) {
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

TEST_P(CapturedResults, FZ2_ABranchIsFrozen) {
  bool flag = true;
  auto f = capture(
      ws, [&flag](Array x) -> Tensor { return flag ? x.value() * x.value() : x.value() * 2; });
  EXPECT_EQ(first(take(f(scalar(3)))), 9);
  flag = false;
  take(f(scalar(3)));
  flag = true;
  EXPECT_EQ(first(take(f(scalar(3)))), 6);
}

TEST_P(CapturedResults, FZ3_EachInstanceHasItsOwn) {
  struct Scaler {
    double scale;
    Tensor operator()(Array x) const { return x.value() * scale; }
  };
  auto two = capture(ws, Scaler{2}), three = capture(ws, Scaler{3});
  for (int i = 0; i < 3; ++i) EXPECT_EQ(first(take(two(scalar(5)))), 10);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(first(take(three(scalar(5)))), 15);
}

// --- serialise and load (section 13) ---

TEST_P(CapturedResults, SE1_SE2_PH9_ALoadedCaptureReplays) {
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

}  // namespace
}  // namespace ignis::engine
