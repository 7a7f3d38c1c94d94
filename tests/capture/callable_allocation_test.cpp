// Replays of a captured function allocate nothing once they have settled, with inputs that move (capture spec 10).

#include "ignis/engine/callable/typed.h"
#include "ignis/engine/eager/test_places.h"

#include "tests/support/count_allocations.h"
#include <gtest/gtest.h>

namespace ignis::engine {
namespace {

using tensor::Tensor;

class CaptureAllocations : public ::testing::TestWithParam<exec::OutputMode> {};

INSTANTIATE_TEST_SUITE_P(Modes, CaptureAllocations,
                         ::testing::Values(exec::OutputMode::Borrow, exec::OutputMode::Copy,
                                           exec::OutputMode::Ring));

TEST_P(CaptureAllocations, NoneAfterTheSecondReplay) {
  const auto place = make_place(PlaceKind::Cpu);
  Workspace& ws = place->ws();
  Array state = take(ws.from_host(floats({4}, {0, 0, 0, 0})));
  CaptureOptions options;
  options.output_mode = GetParam();
  auto f = capture(
      ws,
      [&](Array x, Array w) -> Result<std::tuple<Tensor, Tensor>> {
        IGNIS_TRY(ws.assign(state, state.value() + x.value()));
        IGNIS_TRY_ASSIGN(const Array product, ws.compute(x.value() * w.value()));
        return std::tuple(product.value() + 1, state.value() * 2);
      },
      options);
  std::vector<Array> inputs;
  for (int i = 0; i < 3; ++i) {
    const auto v = static_cast<float>(i);
    inputs.push_back(take(ws.from_host(floats({4}, {v, v, v, v}))));
  }
  const Array w = take(ws.from_host(floats({4}, {1, 2, 3, 4})));
  Arguments arguments;
  arguments.positional = {inputs[0], w};
  // A result in a tuple allocates its sequence: the plain object shows what the replay itself does.
  float sum = 0;
  for (int i = 0; i < 6; ++i) {
    arguments.positional[0] = inputs[static_cast<size_t>(i) % 3];
    ASSERT_TRUE(f.object().call(arguments));
    sum += static_cast<float>(i % 3);
  }
  auto g = capture(ws, [](Array x, Array y) -> Tensor { return x.value() + y.value(); }, options);
  Array last;
  for (int i = 0; i < 6; ++i) last = take(g(inputs[static_cast<size_t>(i) % 3], w));
  const int64_t before = testing::allocation_count();
  for (int i = 0; i < 300; ++i) last = *g(inputs[static_cast<size_t>(i) % 3], w);
  EXPECT_EQ(testing::allocation_count() - before, 0);
  EXPECT_EQ(read(ws, last), (std::vector<float>{3, 4, 5, 6}));
  EXPECT_EQ(read(ws, state)[0], sum);
}

TEST(CaptureAllocationsOfFeedback, NoneAfterTheSecondRound) {
  const auto place = make_place(PlaceKind::Cpu);
  Workspace& ws = place->ws();
  auto f = capture(ws, [](Array window, Array frame) -> Tensor {
    return tensor::concat({tensor::slice(window.value(), 0, 1, 4), frame.value()}, 0);
  });
  Array window = take(ws.from_host(floats({4}, {0, 0, 0, 0})));
  const Array frame = take(ws.from_host(floats({1}, {7})));
  for (int i = 0; i < 6; ++i) window = take(f(window, frame));
  const int64_t before = testing::allocation_count();
  for (int i = 0; i < 1000; ++i) window = *f(window, frame);
  EXPECT_EQ(testing::allocation_count() - before, 0);
  EXPECT_EQ(read(ws, window), (std::vector<float>{7, 7, 7, 7}));
}

}  // namespace
}  // namespace ignis::engine
