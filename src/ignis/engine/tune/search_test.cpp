#include "ignis/engine/tune/search.h"

#include "ignis/engine/tuning.h"

#include <gtest/gtest.h>

#include <charconv>
#include <cmath>
#include <map>
#include <set>

namespace ignis::engine {
namespace {

using std::chrono::steady_clock;

// Kernels whose only action is "N(n)"; n's neighbours are n - 1 and n + 1, and what a launch takes is a given function.
class FakeBench final : public TuneBench {
 public:
  struct Kernel {
    std::string digest;
    int begin = 0;                            // of the heuristics
    std::function<double(int)> alone, model;  // ns
  };
  std::vector<Kernel> list;
  std::map<std::pair<size_t, int>, Trial::Outcome> bad;
  std::map<std::string, double> schedule_gain;  // "winograd=off" -> factor on the whole
  steady_clock::time_point time;
  std::chrono::seconds step{1};
  int measured = 0;

  static int number(const std::string& action) {
    int n = 0;
    std::from_chars(action.data() + 2, action.data() + action.size() - 1, n);
    return n;
  }
  static std::vector<std::string> action(int n) { return {"N(" + std::to_string(n) + ")"}; }

  Result<std::vector<TunedKernel>> kernels(const Variant&) override {
    std::vector<TunedKernel> made;
    for (const Kernel& k : list)
      made.push_back({k.digest, "k_" + k.digest.substr(0, 2), action(k.begin)});
    return made;
  }
  Result<std::vector<codegen::Candidate>> neighbours(
      size_t, const std::vector<std::string>& actions) override {
    const int n = number(actions.front());
    return std::vector<codegen::Candidate>{{action(n - 1), 1}, {action(n + 1), 2}};
  }
  Status measure(size_t kernel, std::vector<Trial>& trials, int) override {
    time += step;
    ++measured;
    for (Trial& trial : trials) {
      const int n = number(trial.actions.front());
      const auto at = bad.find({kernel, n});
      trial.outcome = at == bad.end() ? Trial::Outcome::Timed : at->second;
      trial.ns = list[kernel].alone(n);
    }
    return {};
  }
  Status run_models(std::vector<Variant>& variants, int) override {
    time += step;
    for (Variant& variant : variants) {
      variant.outcome = Trial::Outcome::Timed;
      variant.run_ns = 0;
      variant.kernel_ns.clear();
      double factor = 1;
      std::map<std::string, int> n_of;
      for (const auto& [what, choice] : variant.choices) {
        const auto gain = schedule_gain.find(what + "=" + choice);
        if (gain != schedule_gain.end()) factor *= gain->second;
        if (choice.starts_with("N(")) n_of[what] = number(choice);
      }
      for (const Kernel& k : list) {
        const double ns = factor * k.model(n_of.contains(k.digest) ? n_of[k.digest] : k.begin);
        variant.kernel_ns.emplace_back(kernel_key(k.digest), ns);
        variant.run_ns += ns;
      }
    }
    return {};
  }
};

std::string digest(char c) { return std::string(64, c); }

// 1 at `best`, and 10 % more for each step away.
std::function<double(int)> valley(int best, double ns) {
  return [=](int n) { return ns * (1 + 0.1 * std::abs(n - best)); };
}

SearchReport run(FakeBench& bench, SearchOptions options = {}) {
  options.now = [&bench] { return bench.time; };
  auto report = search(bench, options);
  EXPECT_TRUE(report.has_value());
  return *std::move(report);
}

TEST(Search, WalksDownToTheBestListOfEachKernel) {
  FakeBench bench;
  bench.list = {{digest('a'), 0, valley(7, 100), valley(7, 100)},
                {digest('b'), 3, valley(-2, 500), valley(-2, 500)}};
  const SearchReport report = run(bench);
  EXPECT_EQ(report.choices, (std::vector<std::pair<std::string, std::string>>{
                                {digest('b'), "N(-2)"}, {digest('a'), "N(7)"}}));
  EXPECT_TRUE(report.is_complete);
  EXPECT_LT(report.after_ns, report.before_ns);
  EXPECT_EQ(report.kernels[0].kernel.digest, digest('b'));  // the expensive one first
}

TEST(Search, WhatIsFasterAloneAndNotInTheModelIsNotChosen) {
  FakeBench bench;
  bench.list = {{digest('a'), 0, valley(5, 100), [](int n) { return n == 0 ? 100.0 : 120.0; }}};
  const SearchReport report = run(bench);
  EXPECT_TRUE(report.choices.empty());
  EXPECT_EQ(report.after_ns, report.before_ns);
}

TEST(Search, TheModelDecidesBetweenTheBestThree) {
  FakeBench bench;
  // Alone 4 is the best and 3 and 5 come next; in the model 3 is.
  bench.list = {{digest('a'), 0, valley(4, 100), valley(3, 100)}};
  EXPECT_EQ(run(bench).choices,
            (std::vector<std::pair<std::string, std::string>>{{digest('a'), "N(3)"}}));
}

TEST(Search, DropsAndReportsWhatCrashesHangsOrIsWrong) {
  FakeBench bench;
  bench.list = {{digest('a'), 0, valley(2, 100), valley(2, 100)}};
  bench.bad = {{{0, 3}, Trial::Outcome::Wrong},
               {{0, -1}, Trial::Outcome::Crashed},
               {{0, 4}, Trial::Outcome::Hung}};
  const SearchReport report = run(bench);
  EXPECT_EQ(report.choices,
            (std::vector<std::pair<std::string, std::string>>{{digest('a'), "N(2)"}}));
  std::set<Trial::Outcome> outcomes;
  for (const auto& dropped : report.dropped) outcomes.insert(dropped.trial.outcome);
  EXPECT_TRUE(outcomes.contains(Trial::Outcome::Wrong));
  EXPECT_TRUE(outcomes.contains(Trial::Outcome::Crashed));
}

TEST(Search, TakesTheSchedulesOptionsThatAWholeRunLikes) {
  FakeBench bench;
  bench.list = {{digest('a'), 0, valley(0, 100), valley(0, 100)}};
  bench.schedule_gain = {
      {"winograd=off", 0.9}, {"winograd=on", 0.8}, {"chain=off", 1.2}, {"chain=on", 0.995}};
  EXPECT_EQ(run(bench).choices,
            (std::vector<std::pair<std::string, std::string>>{{"winograd", "on"}}));
}

TEST(Search, EndsWithItsBudget) {
  FakeBench bench;
  for (char c = 'a'; c < 'a' + 20; ++c)
    bench.list.push_back({digest(c), 0, valley(40, 1e6), valley(40, 1e6)});
  SearchOptions options;
  options.budget_s = 40;
  const SearchReport report = run(bench, options);
  EXPECT_FALSE(report.is_complete);
  EXPECT_LE(bench.measured, 31);  // a second each, three quarters of the budget
  EXPECT_LT(report.after_ns, report.before_ns);
}

TEST(Search, LeavesCheapKernelsAlone) {
  FakeBench bench;
  bench.list = {{digest('a'), 0, valley(3, 1000), valley(3, 1000)},
                {digest('b'), 0, valley(3, 1), valley(3, 1)}};
  const SearchReport report = run(bench);
  EXPECT_EQ(report.kernels.size(), 1U);
}

TEST(Search, AModelThatDoesNotRunIsAnError) {
  class Broken final : public TuneBench {
    Result<std::vector<TunedKernel>> kernels(const Variant&) override {
      return std::vector<TunedKernel>();
    }
    Result<std::vector<codegen::Candidate>> neighbours(size_t,
                                                       const std::vector<std::string>&) override {
      return std::vector<codegen::Candidate>();
    }
    Status measure(size_t, std::vector<Trial>&, int) override { return {}; }
    Status run_models(std::vector<Variant>& variants, int) override {
      for (Variant& v : variants) v.why = "killed";
      return {};
    }
  } broken;
  const auto report = search(broken, {});
  ASSERT_FALSE(report.has_value());
  EXPECT_NE(report.error().message().find("killed"), std::string::npos);
}

}  // namespace
}  // namespace ignis::engine
