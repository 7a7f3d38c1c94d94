// Random tensor graphs, compiled, beside the interpreter. IGNIS_TEST_SEED=<n> starts elsewhere, IGNIS_TEST_GRAPHS=<n> says how
// many (2,000 if not), and a failure prints the seed of its graph and the smallest prefix that fails.
#include "ignis/engine/evaluate.h"

#include "tests/fuzz/mutate.h"
#include "tests/fuzz/random_graph.h"
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <set>

namespace ignis::fuzz {
namespace {

int graph_count() {
  const char* text = std::getenv("IGNIS_TEST_GRAPHS");
  if (text != nullptr && *text != '\0') return std::atoi(text);
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return 200;  // several times slower
#else
  return 2000;
#endif
}

/// Smallest magnitude below which a format has only subnormals, whose handling is free.
double tiny(DType dtype) {
  switch (dtype) {
    case DType::Float16: return 0x1p-14;
    case DType::Fp8E4M3:
    case DType::Fp8E4M3Fnuz: return 0x1p-6;
    case DType::Fp8E5M2:
    case DType::Fp8E5M2Fnuz: return 0x1p-14;
    default: return 1e-30;
  }
}

/// Why the compiled values are not a right answer; empty when they are.
std::string difference(const Value& output, const HostTensor& got, const HostTensor& want) {
  if (got.dtype != want.dtype || got.shape != want.shape) return "another dtype or shape";
  const double allowed = output.error == 0 ? 0 : 2 * output.error + tiny(got.dtype);
  for (int64_t i = 0; i < got.count(); ++i) {
    bool is_right = false;
    if (is_float(got.dtype)) {
      const double a = element_as_double(got, i), b = element_as_double(want, i);
      is_right = a == b || std::fabs(a - b) <= allowed || (std::isnan(a) && std::isnan(b));
    } else {
      is_right = element_as_int(got, i) == element_as_int(want, i);
    }
    if (!is_right) {
      return "element " + std::to_string(i) + " is " + std::to_string(element_as_double(got, i)) +
             ", the reference has " + std::to_string(element_as_double(want, i)) + ", allowed " +
             std::to_string(allowed);
    }
  }
  return "";
}

/// Compiles and compares one graph with the options that belong to its seed. Returns what is wrong.
std::string check(const RandomGraph& random, uint64_t seed) {
  std::vector<tensor::Tensor> outputs;
  for (const Value& value : random.outputs) outputs.push_back(value.tensor);
  EvaluateOptions reference, compiled;
  reference.device = "cpu:interp";
  compiled.choose_layouts = seed % 7 != 0;
  compiled.fuse = seed % 11 != 0;
  compiled.optimize = seed % 13 != 0;
  compiled.chain = seed % 3 == 0 ? Choice::Off : Choice::On;
  compiled.winograd = seed % 4 == 0 ? Choice::Off : Choice::On;
  compiled.threads = 1 + static_cast<int>(seed % 2);
  if (seed % 5 == 0) compiled.device = "cpu:llvm:sse2";
  auto want = evaluate(outputs, random.inputs, random.input_values, reference);
  if (!want) return "reference: " + want.error().to_string();
  auto got = evaluate(outputs, random.inputs, random.input_values, compiled);
  if (!got) return "compiled: " + got.error().to_string();
  for (size_t i = 0; i < outputs.size(); ++i) {
    const std::string wrong = difference(random.outputs[i], (*got)[i], (*want)[i]);
    if (!wrong.empty())
      return "output " + std::to_string(i) + " " + outputs[i].describe() + ": " + wrong;
  }
  return "";
}

/// The same seed with as few steps as still fail.
std::string smallest_failure(uint64_t seed) {
  const int steps = static_cast<int>(make_random_graph(seed).steps.size());
  for (int n = 1; n <= steps; ++n) {
    const RandomGraph random = make_random_graph(seed, n);
    const std::string wrong = check(random, seed);
    if (wrong.empty()) continue;
    std::string text =
        "graph seed " + std::to_string(seed) + ", " + std::to_string(n) + " steps: " + wrong + "\n";
    for (size_t i = 0; i < random.inputs.size(); ++i)
      text += "  " + random.inputs[i].describe() + "\n";
    for (const std::string& step : random.steps) text += "  " + step + "\n";
    return text;
  }
  return "graph seed " + std::to_string(seed) + ": only the whole graph fails";
}

TEST(Differential, RandomGraphsAgreeWithTheInterpreter) {
  int failures = 0;
  const int count = graph_count();
  for (int i = 0; i < count && failures < 10; ++i) {
    const uint64_t seed = test_seed() + static_cast<uint64_t>(i);
    const std::string wrong = check(make_random_graph(seed), seed);
    if (wrong.empty()) continue;
    ++failures;
    ADD_FAILURE() << wrong << "\nIGNIS_TEST_SEED=" << seed << " IGNIS_TEST_GRAPHS=1\n"
                  << smallest_failure(seed);
  }
}

// The generator itself: repeatable, prefixes are prefixes, and every kind of step occurs.
TEST(RandomGraphs, AreRepeatableAndVaried) {
  std::set<std::string> kinds;
  size_t outputs = 0;
  for (uint64_t seed = 1; seed <= 500; ++seed) {
    const RandomGraph a = make_random_graph(seed), b = make_random_graph(seed);
    ASSERT_EQ(a.steps, b.steps);
    const RandomGraph prefix = make_random_graph(seed, 2);
    ASSERT_LE(prefix.steps.size(), a.steps.size());
    for (size_t i = 0; i < prefix.steps.size(); ++i) ASSERT_EQ(prefix.steps[i], a.steps[i]);
    for (const std::string& step : a.steps)
      kinds.insert(step.substr(step.find("= ") + 2,
                               step.find(' ', step.find("= ") + 2) - step.find("= ") - 2));
    outputs += a.outputs.size();
  }
  EXPECT_GT(kinds.size(), 60u);
  EXPECT_GT(outputs, 500u);
}

}  // namespace
}  // namespace ignis::fuzz
