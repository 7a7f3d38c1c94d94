#include "ignis/ir/row_chain.h"

#include "tests/compiler/run_schedule.h"
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

// Kernels that run by bands of rows together: an expansion, its window and the projection.
namespace ignis {
namespace {

using tensor::Tensor;

constexpr double kTolerance = 1e-4;  // sums of at most 300 products of values up to 2

struct Bottleneck {
  std::string name;
  int64_t input, expanded, output, height, width, kernel, stride;
  int64_t pad_lo, pad_hi;
};

const std::vector<Bottleneck> kBottlenecks = {
    {"3x3", 8, 24, 8, 12, 10, 3, 1, 1, 1},
    {"3x3, odd sizes", 5, 13, 5, 7, 7, 3, 1, 1, 1},
    {"3x3 stride 2", 8, 20, 12, 13, 11, 3, 2, 1, 1},
    {"3x3 stride 2, padded below only", 8, 16, 12, 12, 10, 3, 2, 0, 1},
    {"3x3 stride 3, no padding", 6, 17, 9, 14, 14, 3, 3, 0, 0},
    {"5x5", 4, 33, 4, 11, 13, 5, 1, 2, 2},
    {"5x5 stride 2", 4, 18, 7, 17, 9, 5, 2, 2, 2},
    {"1x1 stride 2: rows between windows", 6, 16, 8, 11, 8, 1, 2, 0, 0},
    {"1x1 stride 3", 6, 16, 8, 13, 8, 1, 3, 0, 0},
};

class ChainModel {
 public:
  Tensor input(const Shape& shape, DType dtype = DType::Float32) {
    case_.inputs.push_back(
        Tensor::input(graph_, static_cast<int64_t>(case_.inputs.size()), "x", dtype, shape));
    case_.values.push_back(test::random_tensor(shape, 40, dtype));
    return case_.inputs.back();
  }
  Tensor weight(const Shape& shape) {
    return Tensor::constant(graph_, test::random_tensor(shape, ++seed_));
  }
  Tensor bottleneck(const Tensor& x, const Bottleneck& b) {
    tensor::ConvOptions window;
    window.strides = {b.stride, b.stride};
    window.pads_lo = {b.pad_lo, b.pad_lo};
    window.pads_hi = {b.pad_hi, b.pad_hi};
    window.groups = b.expanded;
    const Tensor e = relu(conv(x, weight({b.expanded, b.input, 1, 1}), weight({b.expanded})));
    const Tensor d =
        relu(conv(e, weight({b.expanded, 1, b.kernel, b.kernel}), weight({b.expanded}), window));
    const Tensor y = conv(d, weight({b.output, b.expanded, 1, 1}), weight({b.output}));
    return y.shape() == x.shape() ? y + x : y;
  }
  schedule::Schedule schedule(const Tensor& output, Choice chain, const Target& target) {
    case_.outputs = {output};
    schedule::Options options;
    options.chain = chain;
    auto s = schedule::make_schedule(case_.input_nodes(), case_.output_nodes(), target, options);
    IGNIS_CHECK(s.has_value()) << s.error().to_string();
    return *std::move(s);
  }
  HostTensor run(const schedule::Schedule& s, const Target& target, int parts,
                 const std::vector<std::string>& chain_actions = {}) {
    test::RunOptions options;
    options.config.target = target;
    options.parts = parts;
    for (const schedule::Kernel& k : s.kernels) {
      options.actions.push_back(k.sink.source_count() > 1 ? chain_actions
                                                          : std::vector<std::string>{});
    }
    auto got = test::run_schedule(s, case_.values, options);
    IGNIS_CHECK(got.has_value()) << got.error().to_string();
    return std::move((*got)[0]);
  }
  HostTensor expected() const { return case_.expected()[0]; }

 private:
  std::shared_ptr<ir::Graph> graph_ = std::make_shared<ir::Graph>();
  test::Case case_;
  uint64_t seed_ = 0;
};

/// Stores of the longest chain.
int longest(const schedule::Schedule& s) {
  int most = 0;
  for (const schedule::Kernel& k : s.kernels) most = std::max(most, k.sink.source_count());
  return most;
}

bool same_bits(const HostTensor& a, const HostTensor& b) {
  return a.bytes.size() == b.bytes.size() &&
         std::memcmp(a.bytes.data(), b.bytes.data(), a.bytes.size()) == 0;
}

TEST(RowChain, GivesTheBitsOfItsKernelsWithAnyBands) {
  for (size_t i = 0; i < 2 * kBottlenecks.size(); ++i) {
    const Bottleneck& b = kBottlenecks[i / 2];
    const int64_t batch = i % 2 == 0 ? 1 : 3;
    SCOPED_TRACE(b.name + ", batch " + std::to_string(batch));
    ChainModel m;
    const Tensor y = m.bottleneck(m.input({batch, b.input, b.height, b.width}), b);
    Target target = detect_host_target();
    target.threads = 3;
    const auto apart = m.schedule(y, Choice::Off, target);
    const auto chained = m.schedule(y, Choice::On, target);
    EXPECT_EQ(longest(apart), 1);
    EXPECT_GE(longest(chained), 3);
    const HostTensor want = m.run(apart, target, 1);
    EXPECT_LE(test::max_error(want, m.expected()), kTolerance);
    const std::vector<std::pair<const char*, int>> cases = {
        {"BAND(1,1)", 1}, {"BAND(1,3)", 2}, {"BAND(2,2)", 5}, {"BAND(2,3)", 3}};
    for (const auto& [bands, parts] : cases) {
      EXPECT_TRUE(same_bits(m.run(chained, target, parts, {bands}), want))
          << bands << " in " << parts << " parts";
    }
    EXPECT_TRUE(same_bits(m.run(chained, target, 3), want)) << "bands as chosen";
  }
}

TEST(RowChain, RunsSeveralBlocksAndOtherWindows) {
  ChainModel m;
  const Tensor x = m.input({1, 3, 21, 18}, DType::UInt8);
  tensor::ConvOptions stem;
  stem.strides = {2, 2};
  stem.pads_lo = stem.pads_hi = {1, 1};
  Tensor y =
      relu(conv(cast(x, DType::Float32) * 0.125, m.weight({12, 3, 3, 3}), m.weight({12}), stem));
  tensor::PoolOptions pool;
  pool.kernel = {3, 3};
  pool.strides = {1, 1};
  pool.pads_lo = pool.pads_hi = {1, 1};
  y = max_pool(y, pool) * 0.25;
  y = m.bottleneck(y, {"", 12, 26, 10, 11, 9, 3, 1, 1, 1});
  const Target target = detect_host_target();
  const auto chained = m.schedule(y, Choice::On, target);
  EXPECT_GE(longest(chained), 5);
  const HostTensor want = m.run(m.schedule(y, Choice::Off, target), target, 1);
  EXPECT_LE(test::max_error(want, m.expected()), 100 * kTolerance) << "of values up to thousands";
  for (const char* bands : {"BAND(1,1)", "BAND(2,1)", "BAND(11,1)"}) {
    EXPECT_TRUE(same_bits(m.run(chained, target, 2, {bands}), want)) << bands;
  }
}

TEST(RowChain, HoldsRowsOfNarrowFloats) {
  ChainModel m;
  tensor::PoolOptions pool;
  pool.kernel = {3, 3};
  pool.strides = {1, 1};
  pool.pads_lo = pool.pads_hi = {1, 1};
  const Tensor x = m.input({1, 8, 9, 7}, DType::Float16);
  const Tensor y = avg_pool(max_pool(x * 2.0, pool), pool);
  const Target target = detect_host_target();
  const auto chained = m.schedule(y, Choice::On, target);
  EXPECT_GE(longest(chained), 3);
  const HostTensor want = m.run(m.schedule(y, Choice::Off, target), target, 1);
  EXPECT_TRUE(same_bits(m.run(chained, target, 1, {"BAND(2,1)"}), want));
}

TEST(RowChain, RunsOnTargetsWithoutWideVectors) {
  const Bottleneck& b = kBottlenecks[1];
  for (const Isa isa : {Isa::Sse2, Isa::Avx2}) {
    const Target target = make_target(isa);
    if (!detect_host_target().can_run(target)) continue;
    ChainModel m;
    const Tensor y = m.bottleneck(m.input({1, b.input, b.height, b.width}), b);
    const HostTensor want = m.run(m.schedule(y, Choice::Off, target), target, 1);
    EXPECT_LE(test::max_error(want, m.expected()), kTolerance);
    EXPECT_TRUE(
        same_bits(m.run(m.schedule(y, Choice::On, target), target, 1, {"BAND(2,1)"}), want));
  }
}

TEST(RowChain, IsChosenWherePlanesLeaveL2) {
  ChainModel m;
  // The expanded plane takes 24 * 42 * 42 * 4 bytes = 169 KB, a row of it 4 KB.
  const Tensor y = m.bottleneck(m.input({1, 8, 40, 40}), {"", 8, 24, 8, 40, 40, 3, 1, 1, 1});
  Target small = make_target(Isa::Avx2), large = small;
  small.l2_bytes = 128 * 1024;
  large.l2_bytes = 1024 * 1024;
  EXPECT_EQ(longest(m.schedule(y, Choice::Auto, large)), 1);
  const auto chained = m.schedule(y, Choice::Auto, small);
  ASSERT_GE(longest(chained), 3);
  for (const schedule::Kernel& k : chained.kernels) {
    if (k.sink.source_count() == 1) continue;
    ASSERT_EQ(k.written.size(), static_cast<size_t>(k.sink.source_count()));
    for (size_t i = 1; i < k.written.size(); ++i) {
      const auto& held =
          chained.buffers[static_cast<size_t>(k.buffers[static_cast<size_t>(k.written[i])])];
      EXPECT_LT(held.size_bytes(), small.l2_bytes) << "memory for the rows of a band";
    }
  }
  EXPECT_LT(chained.arena_bytes, m.schedule(y, Choice::Off, small).arena_bytes);
}

TEST(RowChain, WindowsGoDownTheRowsOfABandTileByTile) {
  ChainModel m;
  const Tensor y = m.bottleneck(m.input({1, 8, 40, 40}), {"", 8, 24, 8, 40, 40, 3, 1, 1, 1});
  codegen::Config config;
  config.target = make_target(Isa::Avx2);
  config.target.l2_bytes = 128 * 1024;
  const auto s = m.schedule(y, Choice::Auto, config.target);
  // Axes of the window: 0 = row, 1 = column, 2 = channel. Three rows of a tile take about 3 * 10 * 24 * 4 bytes.
  for (const auto& [l1_bytes, order] :
       {std::pair{32 * 1024, "REORDER(1,0,2)"}, std::pair{1024, "REORDER(0,1,2)"}}) {
    config.target.l1_bytes = l1_bytes;
    int found = 0;
    for (const schedule::Kernel& k : s.kernels) {
      if (k.sink.source_count() == 1) continue;
      const auto lowered = codegen::lower(k.sink, config);
      ASSERT_TRUE(lowered.has_value()) << lowered.error().to_string();
      for (const std::string& action : lowered->actions) found += action == order;
    }
    EXPECT_GE(found, 1) << order;
  }
}

TEST(RowChain, LeavesBuffersAloneThatOthersReadToo) {
  ChainModel m;
  const Tensor x = m.input({1, 8, 12, 12});
  const Tensor e = relu(conv(x, m.weight({24, 8, 1, 1}), m.weight({24})));
  const Tensor scale = mean(e, {2, 3}, true);
  const Tensor y = conv(e * scale, m.weight({8, 24, 1, 1}), m.weight({8}));
  const Target target = detect_host_target();
  const auto s = m.schedule(y, Choice::On, target);
  EXPECT_LE(test::max_error(m.run(s, target, 2), m.expected()), kTolerance);
  for (const schedule::Kernel& k : s.kernels) {
    for (const int id : k.buffers) {
      const auto& buffer = s.buffers[static_cast<size_t>(id)];
      EXPECT_TRUE(buffer.shape != e.shape() || buffer.held_bytes == -1);
    }
  }
}

TEST(RowChain, IllegalActionsAreNamed) {
  ChainModel m;
  const Tensor y = m.bottleneck(m.input({1, 8, 12, 10}), kBottlenecks[0]);
  const Target target = make_target(Isa::Avx2);
  const auto s = m.schedule(y, Choice::On, target);
  const schedule::Kernel* chain = nullptr;
  for (const schedule::Kernel& k : s.kernels) {
    if (k.sink.source_count() > 1) chain = &k;
  }
  ASSERT_NE(chain, nullptr);
  codegen::Config config;
  config.target = target;
  const auto chosen = codegen::lower(chain->sink, config);
  ASSERT_TRUE(chosen.has_value()) << chosen.error().to_string();
  config.actions = chosen->actions;
  const auto replayed = codegen::lower(chain->sink, config);
  ASSERT_TRUE(replayed.has_value()) << replayed.error().to_string();
  EXPECT_EQ(replayed->actions, chosen->actions);
  EXPECT_EQ(replayed->program.list.size(), chosen->program.list.size());
  const std::vector<std::pair<std::string, std::vector<std::string>>> bad = {
      {"VECTOR", {"VECTOR(2,8,1)"}},
      {"STORE", {"STORE(1)"}},
      {"STORE", {"STORE(0)", "STORE(0)"}},
      {"STORE", {"STORE(0)", "STORE(1)", "STORE(2)", "STORE(3)", "STORE(4)", "STORE(5)"}},
      {"BAND", {"BAND(0,1)"}},
      {"BAND", {"BAND(1,2)"}},
      {"BAND", {"BAND(1000000,1)"}},
      {"STORE", {"BAND(1,1)", "STORE(0)"}},
      {"bands", {"STORE(0)", "THREAD(1)"}},
      {"bands", {"STORE(0)", "TILE_CACHE(0,2,0)"}},
  };
  for (const auto& [word, actions] : bad) {
    config.actions = actions;
    const auto lowered = codegen::lower(chain->sink, config);
    ASSERT_FALSE(lowered.has_value()) << actions.back();
    EXPECT_EQ(lowered.error().code(), ErrorCode::InvalidArgument) << actions.back();
    EXPECT_NE(lowered.error().message().find(word), std::string::npos) << lowered.error().message();
  }
}

// Rows may lie further in than the channels: a band must not take what a store has to put in lanes.
TEST(RowChain, EveryStoreOfAChainKeepsItsLanes) {
  for (const auto& [channels, extent] :
       std::vector<std::pair<int64_t, int64_t>>{{64, 28}, {96, 14}, {33, 20}, {256, 28}}) {
    for (const int64_t kernel : {1, 3}) {
      for (const Choice chain : {Choice::Auto, Choice::On}) {
        SCOPED_TRACE(std::to_string(channels) + " channels, kernel " + std::to_string(kernel));
        ChainModel m;
        tensor::ConvOptions window;
        window.pads_lo = window.pads_hi = {kernel / 2, kernel / 2};
        const Tensor y = relu(conv(m.input({1, channels, extent, extent}),
                                   m.weight({channels, channels, kernel, kernel}),
                                   m.weight({channels}), window));
        codegen::Config config;
        config.target = make_target(Isa::Avx2);
        for (const schedule::Kernel& k : m.schedule(y, chain, config.target).kernels) {
          if (k.sink.source_count() == 1) continue;
          const auto lowered = codegen::lower(k.sink, config);
          ASSERT_TRUE(lowered.has_value()) << lowered.error().to_string();
          const auto vectors = std::count_if(
              lowered->actions.begin(), lowered->actions.end(),
              [](const std::string& action) { return action.starts_with("VECTOR("); });
          EXPECT_EQ(vectors, k.sink.source_count());
        }
      }
    }
  }
}

}  // namespace
}  // namespace ignis
