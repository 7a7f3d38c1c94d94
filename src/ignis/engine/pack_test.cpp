#include "ignis/engine/pack.h"

#include "tests/support/seed.h"
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <random>

namespace ignis::engine {
namespace {

using ir::Layout;

schedule::Buffer make_buffer(DType dtype, Shape shape, Layout layout) {
  schedule::Buffer buffer;
  buffer.role = schedule::BufferRole::Constant;
  buffer.dtype = dtype;
  buffer.shape = std::move(shape);
  buffer.layout = std::move(layout);
  buffer.name = "w";
  return buffer;
}

std::vector<float> counted(int64_t count) {
  std::vector<float> values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i + 1);
  return values;
}

// By the definition in schedule.h, one element at a time.
std::vector<float> expected(const schedule::Pack& pack, const std::vector<float>& source,
                            const schedule::Buffer& dest) {
  std::vector<float> out(static_cast<size_t>(dest.layout.storage_count()));
  std::vector<int64_t> index(pack.extents.size());
  for (int64_t n = 0; n < element_count(pack.extents); ++n) {
    int64_t rest = n, from = pack.source_base;
    for (size_t d = index.size(); d-- > 0;) {
      index[d] = rest % pack.extents[d];
      rest /= pack.extents[d];
      from += index[d] * pack.source_strides[d];
    }
    out[static_cast<size_t>(dest.layout.offset(index))] = source[static_cast<size_t>(from)];
  }
  return out;
}

std::vector<float> packed(const schedule::Pack& pack, const schedule::Buffer& source,
                          const std::vector<float>& values, const schedule::Buffer& dest) {
  std::vector<float> out(static_cast<size_t>(dest.layout.storage_count()));
  const Status status = run_pack(pack, source, std::as_bytes(std::span(values)), dest,
                                 std::as_writable_bytes(std::span(out)));
  EXPECT_TRUE(status) << status.error().to_string();
  return out;
}

TEST(Pack, TransposesAMatrix) {
  const auto source = make_buffer(DType::Float32, {2, 3}, Layout::planar({2, 3}));
  const auto dest = make_buffer(DType::Float32, {3, 2}, Layout::planar({3, 2}));
  const schedule::Pack pack = {0, 1, {3, 2}, {1, 3}, 0};
  EXPECT_EQ(packed(pack, source, {1, 2, 3, 4, 5, 6}, dest), (std::vector<float>{1, 4, 2, 5, 3, 6}));
}

TEST(Pack, FillsBlocksAndLeavesPaddingZero) {
  // Five output channels in blocks of four: [oc / 4][ic][oc % 4]; channels 5 to 7 stay zero.
  const auto source = make_buffer(DType::Float32, {5, 2}, Layout::planar({5, 2}));
  const auto dest = make_buffer(DType::Float32, {5, 2}, Layout::blocked({5, 2}, {0, 1}, 0, 4));
  const schedule::Pack pack = {0, 1, {5, 2}, {2, 1}, 0};
  EXPECT_EQ(packed(pack, source, counted(10), dest),
            (std::vector<float>{1, 3, 5, 7, 2, 4, 6, 8, 9, 0, 0, 0, 10, 0, 0, 0}));
}

TEST(Pack, ReadsBackwardsFromABase) {
  const auto source = make_buffer(DType::Float32, {4}, Layout::planar({4}));
  const auto dest = make_buffer(DType::Float32, {4}, Layout::planar({4}));
  const schedule::Pack pack = {0, 1, {4}, {-1}, 3};
  EXPECT_EQ(packed(pack, source, {1, 2, 3, 4}, dest), (std::vector<float>{4, 3, 2, 1}));
}

TEST(Pack, CopiesScalarsAndNothing) {
  const auto scalar = make_buffer(DType::Float32, {}, Layout::planar({}));
  EXPECT_EQ(packed({0, 1, {}, {}, 0}, scalar, {7}, scalar), (std::vector<float>{7}));
  const auto empty = make_buffer(DType::Float32, {0, 3}, Layout::planar({0, 3}));
  EXPECT_EQ(packed({0, 1, {0, 3}, {3, 1}, 0}, empty, {}, empty), std::vector<float>());
}

TEST(Pack, AgreesWithTheDefinitionOnRandomLayouts) {
  const uint64_t seed = ignis::testing::test_seed();
  SCOPED_TRACE("IGNIS_TEST_SEED=" + std::to_string(seed));
  std::mt19937_64 rng(seed);
  const auto below = [&](int n) { return static_cast<int>(rng() % static_cast<uint64_t>(n)); };
  for (int i = 0; i < 300; ++i) {
    const int rank = 1 + below(4);
    Shape shape;
    std::vector<int> perm;
    std::vector<int64_t> halo_lo, halo_hi;
    for (int d = 0; d < rank; ++d) {
      shape.push_back(1 + below(6));
      perm.push_back(d);
      halo_lo.push_back(below(3));
      halo_hi.push_back(below(3));
    }
    std::shuffle(perm.begin(), perm.end(), rng);
    Layout layout = i % 3 == 0
                        ? Layout::permuted(shape, perm, halo_lo, halo_hi)
                        : Layout::blocked(shape, perm, below(rank), 1 + below(5), halo_lo, halo_hi);
    const auto source = make_buffer(DType::Float32, shape, Layout::planar(shape));
    const auto dest = make_buffer(DType::Float32, shape, std::move(layout));
    schedule::Pack pack;
    pack.extents = shape;
    int64_t stride = 1;
    for (size_t d = shape.size(); d-- > 0; stride *= shape[d]) {
      pack.source_strides.insert(pack.source_strides.begin(), stride);
    }
    const std::vector<float> values = counted(element_count(shape));
    ASSERT_EQ(packed(pack, source, values, dest), expected(pack, values, dest))
        << to_string(shape) << " " << dest.layout.to_string();
  }
}

TEST(ReadLayout, UndoesAPack) {
  const Shape shape = {5, 3};
  const Layout layout = Layout::blocked(shape, {1, 0}, 0, 4, {1, 0}, {0, 2});
  std::vector<float> storage(static_cast<size_t>(layout.storage_count()));
  for (int64_t i = 0; i < 5; ++i) {
    for (int64_t j = 0; j < 3; ++j) {
      storage[static_cast<size_t>(layout.offset({i, j}))] = static_cast<float>(10 * i + j);
    }
  }
  const HostTensor values = read_layout(reinterpret_cast<const std::byte*>(storage.data()),
                                        DType::Float32, shape, layout);
  for (int64_t i = 0; i < 5; ++i) {
    for (int64_t j = 0; j < 3; ++j) {
      EXPECT_EQ(values.data<float>()[3 * i + j], static_cast<float>(10 * i + j));
    }
  }
}

TEST(Pack, RefusesToLeaveABuffer) {
  const auto source = make_buffer(DType::Float32, {4}, Layout::planar({4}));
  const auto dest = make_buffer(DType::Float32, {4}, Layout::planar({4}));
  const std::vector<float> values(4);
  std::vector<float> out(4);
  const auto run = [&](const schedule::Pack& pack, const schedule::Buffer& to) {
    return run_pack(pack, source, std::as_bytes(std::span(values)), to,
                    std::as_writable_bytes(std::span(out)));
  };
  EXPECT_TRUE(run({0, 1, {4}, {1}, 0}, dest));
  EXPECT_FALSE(run({0, 1, {4}, {1}, 1}, dest));
  EXPECT_FALSE(run({0, 1, {4}, {-1}, 0}, dest));
  EXPECT_FALSE(run({0, 1, {4}, {2}, 0}, dest));
  EXPECT_FALSE(run({0, 1, {4}, {1, 1}, 0}, dest));
  EXPECT_FALSE(run({0, 1, {4}, {1}, 0},
                   make_buffer(DType::Float32, {8}, Layout::permuted({4}, {0}, {1}, {0}))));
  EXPECT_FALSE(run({0, 1, {4}, {1}, 0}, make_buffer(DType::Int8, {4}, Layout::planar({4}))));
}

}  // namespace
}  // namespace ignis::engine
