#include "ignis/ir/row_chain.h"

#include "tests/compiler/run_schedule.h"
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

// Attention by bands of query rows: scores, softmax and the values' sums of a band, one after the other. The scores of all
// queries and keys stand nowhere.
namespace ignis {
namespace {

using tensor::Tensor;

constexpr double kTolerance = 1e-4;

enum class Mask { None, Causal, Added, OfKeys };

struct Attention {
  std::string name;
  int64_t batch, heads, queries, keys, depth, width;  // of a key; of a value
  Mask mask = Mask::None;
};

const std::vector<Attention> kCases = {
    {"one head", 1, 1, 24, 32, 16, 16},
    {"heads", 1, 3, 26, 32, 16, 32},
    {"batch and heads", 2, 3, 25, 32, 16, 48},
    {"primes", 3, 2, 13, 17, 7, 11},
    {"fewer keys than lanes", 2, 2, 19, 3, 5, 6},
    {"cross attention", 1, 4, 37, 11, 8, 24},
    {"one query", 2, 3, 1, 23, 16, 16},
    {"causal", 2, 2, 29, 29, 8, 16, Mask::Causal},
    {"causal of more keys than queries", 1, 3, 14, 21, 8, 8, Mask::Causal},
    {"added mask", 2, 3, 21, 18, 8, 16, Mask::Added},
    {"keys masked by batch", 3, 2, 15, 33, 8, 16, Mask::OfKeys},
};

double element(const HostTensor& t, const std::vector<int64_t>& at) {
  int64_t offset = 0;
  for (size_t i = 0; i < at.size(); ++i) offset = offset * t.shape[i] + at[i];
  return element_as_double(t, offset);
}

/// What is added to a score; minus infinity where the query does not see the key.
double mask_of(const Attention& a, const std::vector<HostTensor>& values, int64_t b, int64_t q,
               int64_t k) {
  switch (a.mask) {
    case Mask::None: return 0;
    case Mask::Causal: return k <= q ? 0 : -INFINITY;
    case Mask::Added: return element(values[3], {q, k});
    case Mask::OfKeys: return element(values[3], {b, 0, 0, k});
  }
  return 0;
}

/// By the definition, in float64.
std::vector<double> attend(const Attention& a, const std::vector<HostTensor>& values,
                           bool keys_are_columns) {
  std::vector<double> result;
  for (int64_t b = 0; b < a.batch; ++b) {
    for (int64_t h = 0; h < a.heads; ++h) {
      for (int64_t q = 0; q < a.queries; ++q) {
        std::vector<double> scores;
        double sum = 0;
        for (int64_t k = 0; k < a.keys; ++k) {
          double score = 0;
          for (int64_t d = 0; d < a.depth; ++d)
            score += element(values[0], {b, h, q, d}) *
                     element(values[1],
                             keys_are_columns ? std::vector{b, h, d, k} : std::vector{b, h, k, d});
          scores.push_back(std::exp(score * 0.25 + mask_of(a, values, b, q, k)));
          sum += scores.back();
        }
        for (int64_t w = 0; w < a.width; ++w) {
          double value = 0;
          for (int64_t k = 0; k < a.keys; ++k)
            value += scores[static_cast<size_t>(k)] / sum * element(values[2], {b, h, k, w});
          result.push_back(value);
        }
      }
    }
  }
  return result;
}

class AttentionModel {
 public:
  /// Keys come as columns, which the scores read as they are, or as rows: a kernel that turns them is one more that may
  /// run by heads together with the others.
  AttentionModel(const Attention& a, bool keys_are_columns)
      : a_(a), keys_are_columns_(keys_are_columns) {
    const Tensor q = input({a.batch, a.heads, a.queries, a.depth});
    const Tensor k = keys_are_columns
                         ? input({a.batch, a.heads, a.depth, a.keys})
                         : permute(input({a.batch, a.heads, a.keys, a.depth}), {0, 1, 3, 2});
    const Tensor v = input({a.batch, a.heads, a.keys, a.width});
    Tensor scores = matmul(q, k) * 0.25;
    if (a.mask == Mask::Causal) {
      const Tensor rows = Tensor::arange(graph_, 0, a.queries),
                   columns = Tensor::arange(graph_, 0, a.keys);
      const Tensor seen = less_equal(columns, reshape(rows, {a.queries, 1}));
      scores = where(seen, scores, -std::numeric_limits<double>::infinity());
    } else if (a.mask == Mask::Added) {
      scores = scores + input({a.queries, a.keys});
    } else if (a.mask == Mask::OfKeys) {
      scores = scores + input({a.batch, 1, 1, a.keys});
    }
    case_.outputs = {matmul(softmax(scores, -1), v)};
  }

  schedule::Schedule schedule(Choice chain, const Target& target) const {
    schedule::Options options;
    options.chain = chain;
    auto s = schedule::make_schedule(case_.input_nodes(), case_.output_nodes(), target, options);
    IGNIS_CHECK(s.has_value()) << s.error().to_string();
    return *std::move(s);
  }
  HostTensor run(const schedule::Schedule& s, const Target& target, int parts,
                 const std::vector<std::string>& chain_actions = {}) const {
    test::RunOptions options;
    options.config.target = target;
    options.parts = parts;
    for (const schedule::Kernel& k : s.kernels)
      options.actions.push_back(k.sink.source_count() > 1 ? chain_actions
                                                          : std::vector<std::string>{});
    auto got = test::run_schedule(s, case_.values, options);
    IGNIS_CHECK(got.has_value()) << got.error().to_string();
    return std::move((*got)[0]);
  }
  std::vector<double> expected() const { return attend(a_, case_.values, keys_are_columns_); }

 private:
  Tensor input(const Shape& shape) {
    const auto number = static_cast<int64_t>(case_.inputs.size());
    case_.inputs.push_back(Tensor::input(graph_, number, "x", DType::Float32, shape));
    case_.values.push_back(test::random_tensor(shape, 70 + static_cast<uint64_t>(number)));
    return case_.inputs.back();
  }

  Attention a_;
  bool keys_are_columns_;
  std::shared_ptr<ir::Graph> graph_ = std::make_shared<ir::Graph>();
  test::Case case_;
};

const schedule::Kernel* longest(const schedule::Schedule& s) {
  const schedule::Kernel* most = nullptr;
  for (const schedule::Kernel& k : s.kernels)
    if (most == nullptr || k.sink.source_count() > most->sink.source_count()) most = &k;
  return most;
}

double max_error(const HostTensor& got, const std::vector<double>& want) {
  double most = 0;
  for (int64_t i = 0; i < got.count(); ++i) {
    const double w = want[static_cast<size_t>(i)];
    const double error = std::fabs(element_as_double(got, i) - w) / (1 + std::fabs(w));
    if (!(error <= most)) most = std::isnan(error) ? INFINITY : error;
  }
  return most;
}

bool same_bits(const HostTensor& a, const HostTensor& b) { return a.bytes == b.bytes; }

TEST(AttentionChain, GivesTheBitsOfItsKernelsWithAnyBands) {
  for (size_t i = 0; i < 2 * kCases.size(); ++i) {
    const Attention& a = kCases[i / 2];
    SCOPED_TRACE(a.name + (i % 2 == 0 ? ", keys as rows" : ", keys as columns"));
    const AttentionModel m(a, i % 2 == 1);
    Target target = detect_host_target();
    target.threads = 3;
    const auto apart = m.schedule(Choice::Off, target);
    const auto chained = m.schedule(Choice::On, target);
    EXPECT_EQ(longest(apart)->sink.source_count(), 1);
    if (a.queries > 1) {
      EXPECT_GE(longest(chained)->sink.source_count(), 3);
    }
    if (a.queries > 1 && i % 2 == 1) {
      ir::Graph graph;
      const auto stages = ir::row_stages(graph, graph.import(longest(chained)->sink));
      ASSERT_TRUE(stages.has_value());
      EXPECT_EQ(stages->back().extent, a.queries);
      EXPECT_EQ(ir::outer_count(stages->back()), a.batch * a.heads);
    }
    const HostTensor want = m.run(apart, target, 1);
    ASSERT_EQ(want.count(), static_cast<int64_t>(m.expected().size()));
    EXPECT_LE(max_error(want, m.expected()), kTolerance);
    EXPECT_TRUE(same_bits(m.run(chained, target, 3), want)) << "bands as chosen";
    EXPECT_TRUE(same_bits(m.run(chained, target, 5, {"BAND(1,1)"}), want));
    const auto bands = ir::bands_of(longest(chained)->sink);
    if (!bands || bands->units < 3) continue;
    for (const auto& [rows, units, parts] :
         {std::tuple{1, 3, 2}, std::tuple{2, 2, 5}, std::tuple{5, 3, 3}, std::tuple{12, 2, 1}}) {
      if (rows > bands->rows) continue;
      const std::string band = "BAND(" + std::to_string(rows) + "," + std::to_string(units) + ")";
      EXPECT_TRUE(same_bits(m.run(chained, target, parts, {band}), want)) << band;
    }
  }
}

TEST(AttentionChain, RunsOnEveryInstructionSet) {
  for (const Isa isa : {Isa::Sse2, Isa::Avx2}) {
    const Target target = make_target(isa);
    if (!detect_host_target().can_run(target)) continue;
    const AttentionModel m(kCases[2], true);
    const HostTensor got = m.run(m.schedule(Choice::On, target), target, 2);
    EXPECT_LE(max_error(got, m.expected()), kTolerance);
    EXPECT_TRUE(same_bits(got, m.run(m.schedule(Choice::Off, target), target, 1)));
  }
}

TEST(AttentionChain, HoldsScoresOfABandOnlyWhereTheyLeaveL2) {
  // 4 heads of 96 x 96 scores take 36 KB each.
  const AttentionModel m({"", 1, 4, 96, 96, 16, 16}, true);
  Target small = make_target(Isa::Avx2), large = small;
  small.l2_bytes = 64 * 1024;
  large.l2_bytes = 1024 * 1024;
  EXPECT_EQ(longest(m.schedule(Choice::Auto, large))->sink.source_count(), 1);
  const auto chained = m.schedule(Choice::Auto, small);
  ASSERT_GE(longest(chained)->sink.source_count(), 3);
  int held = 0;
  for (const schedule::Buffer& buffer : chained.buffers) {
    if (buffer.role != schedule::BufferRole::Temporary || buffer.shape.back() != 96) continue;
    EXPECT_LE(buffer.size_bytes(), small.l2_bytes * small.threads);
    held += buffer.held_bytes >= 0;
  }
  EXPECT_GE(held, 2);
  EXPECT_LT(chained.arena_bytes, m.schedule(Choice::Off, small).arena_bytes);
}

TEST(AttentionChain, TilesRowsAlikeInAllStoresAndWithinABand) {
  const AttentionModel m({"", 1, 2, 50, 64, 16, 64}, true);
  codegen::Config config;
  config.target = make_target(Isa::Avx2);
  const auto s = m.schedule(Choice::On, config.target);
  const schedule::Kernel* chain = longest(s);
  const auto chosen = codegen::lower(chain->sink, config);
  ASSERT_TRUE(chosen.has_value()) << chosen.error().to_string();
  std::vector<std::string> tiles;
  for (const std::string& action : chosen->actions)
    if (action.starts_with("TILE_REG(1,")) tiles.push_back(action);
  ASSERT_EQ(tiles.size(), 2u) << "scores and sums of values";
  EXPECT_EQ(tiles[0], tiles[1]);
  config.actions = chosen->actions;
  const auto replayed = codegen::lower(chain->sink, config);
  ASSERT_TRUE(replayed.has_value()) << replayed.error().to_string();
  EXPECT_EQ(replayed->actions, chosen->actions);
  const auto refuses = [&](const std::string& from, const std::string& to) {
    config.actions = chosen->actions;
    *std::find(config.actions.begin(), config.actions.end(), from) = to;
    const auto lowered = codegen::lower(chain->sink, config);
    return !lowered.has_value() && lowered.error().code() == ErrorCode::InvalidArgument;
  };
  EXPECT_TRUE(refuses(tiles[0], "TILE_REG(1,3)")) << "another one than the other store's";
  EXPECT_TRUE(refuses(tiles[0], "TILE_REG(0,2)")) << "heads stand around the bands";
  EXPECT_TRUE(refuses(chosen->actions.back(), "BAND(1,1)")) << "a band holds whole tiles";
}

}  // namespace
}  // namespace ignis
