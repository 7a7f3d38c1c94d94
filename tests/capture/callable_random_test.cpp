// Random functions, captured, against plain loops.

#include "tests/capture/callable_rig.h"

#include <array>
#include <cmath>
#include <cstdlib>
#include <random>

namespace ignis::engine {
namespace {

using CapturedFunctions = CallableTest;
INSTANTIATE_TEST_SUITE_P(Places, CapturedFunctions, all_places(), place_name);

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

TEST_P(CapturedFunctions, RandomFunctionsGiveWhatPlainLoopsGive) {
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
