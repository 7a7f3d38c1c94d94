#include "ignis/engine/eager/test_places.h"

#include "tests/support/count_allocations.h"
#include <gtest/gtest.h>

namespace ignis::engine {
namespace {

// What every replay asks of its arguments and does to its results.
TEST(ArrayAllocations, DescribingAndOutdatingAllocatesNothing) {
  auto place = make_place(PlaceKind::CopyQueue);
  Workspace& ws = place->ws();
  const Array a = take(ws.from_host(floats({2, 3}, {1, 2, 3, 4, 5, 6})));
  const Array view = take(take(a.slice({{0, 2}, {1, 3}})).permute({1, 0}));
  const Array constant = take(ws.lazy(tensor::Tensor::scalar(ws.graph(), 1)));
  ASSERT_TRUE(a.value());
  const size_t nodes = ws.graph()->size();
  const int64_t before = testing::allocation_count();
  int64_t total = 0;
  for (int i = 0; i < 100; ++i) {
    for (const Array* array : {&a, &view, &constant}) {
      total += describe(*array).description.size_bytes.value;
    }
    ws.note_written(a);
    const Array copy = a;
    total += copy.is_sole();
  }
  EXPECT_EQ(testing::allocation_count() - before, 0);
  EXPECT_EQ(total, 100 * (24 + 16));
  EXPECT_EQ(ws.graph()->size(), nodes);
}

}  // namespace
}  // namespace ignis::engine
