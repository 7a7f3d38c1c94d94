#include "ignis/codegen/codegen.h"
#include "ignis/drivers/cpu/loader.h"
#include "ignis/schedule/schedule.h"
#include "ignis/tensor/tensor.h"

#include "tests/compiler/run_schedule.h"
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

// What the parts of a kernel write: each runs alone on a buffer of NaN.
namespace ignis {
namespace {

using tensor::Tensor;

schedule::Schedule schedule_of(const std::vector<Tensor>& inputs, const Tensor& output,
                               const Target& target, bool chooses_layouts) {
  std::vector<ir::Node> nodes;
  for (const Tensor& t : inputs) nodes.push_back(t.node());
  schedule::Options options;
  options.choose_layouts = chooses_layouts;
  auto s = schedule::make_schedule(nodes, {output.node()}, target, options);
  IGNIS_CHECK(s.has_value()) << s.error().to_string();
  return *std::move(s);
}

/// For each part the number of elements that it writes; checks that no two write the same one.
std::vector<int64_t> written_by_parts(const schedule::Schedule& s, const schedule::Kernel& kernel,
                                      const codegen::Config& config, int parts) {
  auto lowered = codegen::lower(kernel.sink, config);
  EXPECT_TRUE(lowered.has_value()) << lowered.error().to_string();
  if (!lowered) return {};
  lowered->program.name = "kernel";
  const auto image = codegen::compile_llvm(lowered->program, config.target);
  EXPECT_TRUE(image.has_value());
  const auto object = cpu::LoadedObject::load(image->object, image->name);
  EXPECT_TRUE(object.has_value());
  std::vector<std::vector<float>> memory;
  std::vector<void*> pointers;
  for (const int id : kernel.buffers) {
    const auto& buffer = s.buffers[static_cast<size_t>(id)];
    // A margin: whole vectors of a packed operand may be read to their end.
    memory.emplace_back(static_cast<size_t>(buffer.size_bytes()) / sizeof(float) + 64, 0.5f);
    pointers.push_back(memory.back().data());
  }
  std::vector<int> writers(memory[0].size(), 0);
  std::vector<int64_t> counts;
  for (int part = 0; part < parts; ++part) {
    std::fill(memory[0].begin(), memory[0].end(), NAN);
    object->entry()(pointers.data(), part, parts);
    counts.push_back(0);
    for (size_t i = 0; i < memory[0].size(); ++i) {
      if (std::isnan(memory[0][i])) continue;
      ++writers[i];
      ++counts.back();
    }
  }
  EXPECT_LE(*std::max_element(writers.begin(), writers.end()), 1) << "two parts write one element";
  return counts;
}

int64_t sum_of(const std::vector<int64_t>& counts) {
  int64_t sum = 0;
  for (const int64_t c : counts) sum += c;
  return sum;
}

TEST(Threads, PartsWriteEveryElementOnceHoweverTheyAreCut) {
  const auto g = std::make_shared<ir::Graph>();
  const Tensor x = Tensor::input(g, 0, "x", DType::Float32, {5, 7, 13, 37});
  const Tensor w = Tensor::input(g, 1, "w", DType::Float32, {5, 1, 1, 37});
  // Axes after merging: 0 of 5, 1 of 91, 2 of 37.
  codegen::Config config;
  config.target = detect_host_target();
  const auto s = schedule_of({x, w}, relu(x * w) + 1.0, config.target, false);
  ASSERT_EQ(s.kernels.size(), 1u);
  const std::vector<std::vector<std::string>> tilings = {
      {},
      {"VECTOR(2,8,2)", "TILE_REG(1,6)"},
      {"VECTOR(2,8,1)", "SEGMENT(1,3,50,90)"},
      {"VECTOR(2,8,2)", "TILE_REG(1,6)", "REORDER(2,0,1)", "TILE_CACHE(1,4,0)"},
      {"VECTOR(2,8,1)", "SEGMENT(1,3,50)", "REORDER(0,1,2)", "TILE_CACHE(1,9,1)",
       "TILE_CACHE(2,2,0)"},
  };
  for (const auto& tiling : tilings) {
    for (const char* threads : {"THREAD(0)", "THREAD(1)", "THREAD(2)", "THREAD(0,1)", "THREAD(1,0)",
                                "THREAD(2,1)", "THREAD(0,1,2)", "THREAD(2,0,1)"}) {
      config.actions = tiling;
      config.actions.emplace_back(threads);
      std::string text;
      for (const std::string& a : config.actions) text += a + " ";
      SCOPED_TRACE(text);
      for (const int parts : {1, 2, 3, 7, 500}) {
        EXPECT_EQ(sum_of(written_by_parts(s, s.kernels[0], config, parts)), 5 * 91 * 37) << parts;
        if (HasFailure()) return;
      }
    }
  }
}

struct Shape4 {
  const char* name;
  int64_t in, out, rows, columns;  ///< channels, pixels
  int kernel;
  int64_t groups;
};

TEST(Threads, NoThreadHasMuchMoreToDoThanTheOthers) {
  const std::vector<Shape4> convolutions = {
      {"1x1 14x14", 96, 144, 14, 14, 1, 1},       {"1x1 7x7", 160, 320, 7, 7, 1, 1},
      {"1x1 odd", 61, 83, 13, 11, 1, 1},          {"3x3 7x7", 64, 96, 7, 7, 3, 1},
      {"3x3 28x28", 32, 48, 28, 28, 3, 1},        {"3x3 odd", 19, 45, 9, 23, 3, 1},
      {"3x3 wide", 16, 16, 5, 200, 3, 1},         {"depthwise 7x7", 320, 320, 7, 7, 3, 320},
      {"depthwise 14x14", 96, 96, 14, 14, 3, 96}, {"depthwise odd", 45, 45, 9, 31, 3, 45},
  };
  for (const auto& c : convolutions) {
    for (const int threads : {2, 3}) {
      SCOPED_TRACE(std::string(c.name) + " on " + std::to_string(threads));
      codegen::Config config;
      config.target = detect_host_target();
      config.target.threads = threads;
      const auto g = std::make_shared<ir::Graph>();
      const Tensor x = Tensor::input(g, 0, "x", DType::Float32, {1, c.in, c.rows, c.columns});
      const Tensor w =
          Tensor::input(g, 1, "w", DType::Float32, {c.out, c.in / c.groups, c.kernel, c.kernel});
      tensor::ConvOptions options;
      options.groups = c.groups;
      options.pads_lo = options.pads_hi = {c.kernel / 2, c.kernel / 2};
      const auto s = schedule_of({x, w}, conv(x, w, std::nullopt, options), config.target, true);
      // The kernel that multiplies most.
      const schedule::Kernel* main = nullptr;
      double most = 0;
      for (const auto& kernel : s.kernels) {
        const auto lowered = codegen::lower(kernel.sink, config);
        ASSERT_TRUE(lowered.has_value());
        if (lowered->flops > most) main = &kernel, most = lowered->flops;
      }
      ASSERT_NE(main, nullptr);
      const auto counts = written_by_parts(s, *main, config, threads);
      const double mean = static_cast<double>(sum_of(counts)) / threads;
      EXPECT_EQ(sum_of(counts), c.out * c.rows * c.columns);
      EXPECT_LE(static_cast<double>(*std::max_element(counts.begin(), counts.end())), 1.2 * mean);
    }
  }
}

// The mean of a plane for each channel, and its relatives: by rows first where several threads share the work.
TEST(Threads, LongReductionsAreSplitByRows) {
  const auto g = std::make_shared<ir::Graph>();
  test::Case c;
  c.inputs = {Tensor::input(g, 0, "x", DType::Float32, {1, 37, 53, 41}),
              Tensor::input(g, 1, "y", DType::Float32, {3, 61, 67}),
              Tensor::input(g, 2, "z", DType::Float32, {2, 19, 23, 47})};
  const Tensor x = c.inputs[0], y = c.inputs[1], z = c.inputs[2];
  c.outputs = {global_avg_pool(relu(x) + 0.5), max(x * x, {2, 3}, true), sum(y, {0, 1, 2}),
               min(z, {1, 3}), relu(sum(z, {0, 2, 3}) - 1.0)};
  for (size_t i = 0; i < c.inputs.size(); ++i)
    c.values.push_back(test::random_tensor(c.inputs[i].shape(), 40 + i));
  const std::vector<HostTensor> expected = c.expected();
  test::RunOptions run;
  run.config.target = detect_host_target();
  size_t kernels = 0;
  for (const bool splits : {false, true}) {
    for (const bool chooses : {false, true}) {
      for (const int threads : {1, 2, 5}) {
        SCOPED_TRACE(std::to_string(threads) + (splits ? " threads, split" : " threads"));
        schedule::Options options;
        options.split_reduces = splits;
        options.choose_layouts = chooses;
        run.config.target.threads = threads;
        const auto s =
            schedule::make_schedule(c.input_nodes(), c.output_nodes(), run.config.target, options);
        ASSERT_TRUE(s.has_value()) << s.error().to_string();
        const auto got = test::run_schedule(*s, c.values, run);
        ASSERT_TRUE(got.has_value()) << got.error().to_string();
        // Sums of at most 4,087 values up to 2, or 4: each addition rounds by 2^-24 of a partial sum.
        for (size_t i = 0; i < expected.size(); ++i)
          EXPECT_LE(test::max_error((*got)[i], expected[i]), 1e-4) << i;
        if (!chooses) continue;
        if (!splits) kernels = s->kernels.size();
        if (splits && threads == 1) {
          EXPECT_EQ(s->kernels.size(), kernels);
        } else if (splits && threads == 2) {
          EXPECT_GT(s->kernels.size(), kernels);
        }
      }
    }
  }
}

}  // namespace
}  // namespace ignis
