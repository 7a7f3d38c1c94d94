#include "ignis/engine/tune/search.h"

#include "ignis/engine/tuning.h"

#include <algorithm>
#include <map>
#include <set>

namespace ignis::engine {
namespace {

using Clock = std::chrono::steady_clock;
using Actions = std::vector<std::string>;

constexpr double kClearlyFaster = 0.985;  // of whole runs and of kernels in them: below is noise
constexpr double kWorthAnotherStep = 0.99;
constexpr double kSearchShare = 0.75;  // of the budget; the rest is for whole runs
constexpr size_t kFinalists = 3;
constexpr int kKernelRounds = 7, kModelRounds = 9;

// A list that somebody should look at: legal, and no good.
bool is_dropped(Trial::Outcome outcome) {
  return outcome == Trial::Outcome::Wrong || outcome == Trial::Outcome::Crashed ||
         outcome == Trial::Outcome::Hung;
}

class Search {
 public:
  Search(TuneBench& bench, const SearchOptions& options)
      : bench_(bench), options_(options), begin_(now()) {}

  Result<SearchReport> run() {
    IGNIS_TRY(choose_schedule());
    IGNIS_TRY(find_kernels());
    IGNIS_TRY(search_kernels());
    IGNIS_TRY(choose_in_model());
    return std::move(report_);
  }

 private:
  struct Found {
    Actions actions;
    double ratio = 1;  // to the heuristics' time in the same measurement
  };
  struct State {
    SearchReport::Kernel outcome;
    size_t index = 0;         // of the bench
    double model_ns = 0;      // all its calls in a run
    std::vector<Found> best;  // the best first, the heuristics' among them
    std::vector<Found> beam;  // to be developed
    std::set<Actions> seen;
    int idle = 0;  // generations in a row that brought little
    bool is_done = false;
  };

  Clock::time_point now() const { return options_.now ? options_.now() : Clock::now(); }
  double spent_s() const { return std::chrono::duration<double>(now() - begin_).count(); }
  bool has_time(double share) const { return spent_s() < share * options_.budget_s; }
  void tell(const std::string& what) const {
    if (!options_.progress) return;
    double before = 0, after = 0;
    for (const State& state : states_) {
      before += state.model_ns;
      after += state.model_ns * (state.best.empty() ? 1 : state.best.front().ratio);
    }
    options_.progress(what, after > 0 ? before / after : 1,
                      std::max(0.0, options_.budget_s - spent_s()));
  }

  Status choose_schedule();
  Status find_kernels();
  Status search_kernels();
  Status step(State& state);
  Status choose_in_model();

  TuneBench& bench_;
  const SearchOptions& options_;
  Clock::time_point begin_;
  SearchReport report_;
  Variant chosen_;  // of the schedule
  std::vector<State> states_;
};

// Which of the schedule's options a whole run likes better than the cost models do.
Status Search::choose_schedule() {
  tell("whole runs");
  std::vector<Variant> variants(1);
  for (const char* what : {"winograd", "chain"}) {
    for (const char* choice : {"off", "on"}) {
      variants.emplace_back();
      variants.back().choices = {{what, choice}};
    }
  }
  IGNIS_TRY(bench_.run_models(variants, kModelRounds));
  if (!variants.front().is_sound()) {
    return Error(ErrorCode::Internal,
                 "The model as the heuristics compile it does not run: " + variants.front().why);
  }
  const double base_ns = variants.front().run_ns;
  // The better choice of each option, then both together.
  std::vector<const Variant*> better;
  for (size_t i = 1; i + 1 < variants.size(); i += 2) {
    const Variant* best = nullptr;
    for (const Variant* v : {&variants[i], &variants[i + 1]}) {
      if (v->is_sound() && v->run_ns < kClearlyFaster * base_ns &&
          (best == nullptr || v->run_ns < best->run_ns))
        best = v;
    }
    if (best != nullptr) better.push_back(best);
  }
  // Once more, apart and together: of many variants one is the fastest by chance.
  if (!better.empty()) {
    std::vector<Variant> last(1);
    for (const Variant* v : better) {
      last.emplace_back();
      last.back().choices = v->choices;
    }
    if (better.size() == 2) {
      last.emplace_back();
      last.back().choices = {better[0]->choices.front(), better[1]->choices.front()};
    }
    IGNIS_TRY(bench_.run_models(last, 2 * kModelRounds));
    for (const Variant& v : last) {
      if (v.is_sound() && v.run_ns < kClearlyFaster * last.front().run_ns &&
          (chosen_.choices.empty() || v.run_ns < chosen_.run_ns))
        chosen_ = v;
    }
    if (better.size() == 2) variants.push_back(last.back());
  }
  if (chosen_.choices.empty()) chosen_ = variants.front();
  report_.variants = std::move(variants);
  return {};
}

Status Search::find_kernels() {
  IGNIS_TRY_ASSIGN(const std::vector<TunedKernel> kernels, bench_.kernels(chosen_));
  std::map<std::string, double> ns_of(chosen_.kernel_ns.begin(), chosen_.kernel_ns.end());
  double all_ns = 0;
  for (const auto& [digest, ns] : ns_of) all_ns += ns;
  for (size_t i = 0; i < kernels.size(); ++i) {
    const double ns = ns_of[kernel_key(kernels[i].digest)];
    if (ns <= options_.least_share * all_ns) continue;
    State state;
    state.outcome.kernel = kernels[i];
    state.index = i;
    state.model_ns = ns;
    state.best = state.beam = {{kernels[i].actions, 1}};
    state.seen = {kernels[i].actions};
    states_.push_back(std::move(state));
  }
  std::stable_sort(states_.begin(), states_.end(),
                   [](const State& a, const State& b) { return a.model_ns > b.model_ns; });
  return {};
}

// One generation: what lies beside the beam, the best by the model of costs.
Status Search::step(State& state) {
  std::vector<codegen::Candidate> candidates;
  for (const Found& found : state.beam) {
    IGNIS_TRY_ASSIGN(std::vector<codegen::Candidate> beside,
                     bench_.neighbours(state.index, found.actions));
    for (codegen::Candidate& candidate : beside) {
      const bool is_known =
          state.seen.contains(candidate.actions) ||
          std::any_of(candidates.begin(), candidates.end(),
                      [&](const codegen::Candidate& c) { return c.actions == candidate.actions; });
      if (!is_known) candidates.push_back(std::move(candidate));
    }
  }
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const auto& a, const auto& b) { return a.estimate_ns < b.estimate_ns; });
  if (candidates.size() > static_cast<size_t>(options_.tries))
    candidates.resize(static_cast<size_t>(options_.tries));
  if (candidates.empty()) {
    state.is_done = true;
    return {};
  }
  std::vector<Trial> trials(1 + candidates.size());
  trials[0].actions = state.outcome.kernel.actions;
  for (size_t i = 0; i < candidates.size(); ++i) {
    trials[i + 1].actions = std::move(candidates[i].actions);
    state.seen.insert(trials[i + 1].actions);
  }
  IGNIS_TRY(bench_.measure(state.index, trials, kKernelRounds));
  report_.tried += static_cast<int>(trials.size() - 1);
  state.outcome.tried += static_cast<int>(trials.size() - 1);
  ++state.outcome.generations;
  if (trials[0].outcome != Trial::Outcome::Timed) {
    report_.dropped.push_back({state.outcome.kernel.name, trials[0]});
    state.is_done = true;
    return {};
  }
  const double before = state.best.front().ratio;
  std::vector<Found> fresh;
  for (size_t i = 1; i < trials.size(); ++i) {
    const Trial& trial = trials[i];
    if (trial.outcome == Trial::Outcome::Timed)
      fresh.push_back({trial.actions, trial.ns / trials[0].ns});
    if (is_dropped(trial.outcome)) report_.dropped.push_back({state.outcome.kernel.name, trial});
  }
  // Equal ratios stay in the order of the candidates: the same measurements give the same choice.
  const auto is_faster = [](const Found& a, const Found& b) { return a.ratio < b.ratio; };
  state.best.insert(state.best.end(), fresh.begin(), fresh.end());
  std::stable_sort(state.best.begin(), state.best.end(), is_faster);
  std::stable_sort(fresh.begin(), fresh.end(), is_faster);
  state.beam = std::move(fresh);
  if (state.beam.size() > static_cast<size_t>(options_.beam))
    state.beam.resize(static_cast<size_t>(options_.beam));
  state.idle = state.best.front().ratio > kWorthAnotherStep * before ? state.idle + 1 : 0;
  state.is_done = state.beam.empty() || state.idle >= options_.patience;
  return {};
}

// Generation by generation, the expensive kernels first: the budget ends where least is lost.
Status Search::search_kernels() {
  bool is_moving = true;
  while (is_moving) {
    is_moving = false;
    for (State& state : states_) {
      if (state.is_done) continue;
      if (!has_time(kSearchShare)) return {};
      tell(state.outcome.kernel.name);
      IGNIS_TRY(step(state));
      is_moving |= !state.is_done;
    }
  }
  report_.is_complete = true;
  return {};
}

Status Search::choose_in_model() {
  tell("whole runs");
  // Variant i has each kernel's i-th best.
  std::vector<Variant> variants(1 + kFinalists);
  for (Variant& variant : variants) variant.choices = chosen_.choices;
  for (const State& state : states_) {
    size_t next = 1;
    for (const Found& found : state.best) {
      if (next == variants.size() || found.ratio > kClearlyFaster) break;
      variants[next++].choices.emplace_back(state.outcome.kernel.digest,
                                            join_actions(found.actions));
    }
  }
  while (variants.size() > 1 && variants.back().choices.size() == chosen_.choices.size())
    variants.pop_back();
  IGNIS_TRY(bench_.run_models(variants, kModelRounds));

  // The heuristics, and the choices that were better in the model.
  std::vector<Variant> last(2);
  last[1].choices = chosen_.choices;
  for (State& state : states_) {
    const std::string& digest = state.outcome.kernel.digest;
    const auto ns_in = [&](const Variant& variant) {
      for (const auto& [of, ns] : variant.kernel_ns) {
        if (of == kernel_key(digest)) return ns;
      }
      return 0.0;
    };
    SearchReport::Kernel& outcome = state.outcome;
    outcome.before_ns = outcome.after_ns = ns_in(variants[0]);
    for (size_t i = 1; i < variants.size(); ++i) {
      if (!variants[i].is_sound()) continue;
      for (const auto& [what, choice] : variants[i].choices) {
        if (what != digest || ns_in(variants[i]) >= kClearlyFaster * outcome.before_ns ||
            ns_in(variants[i]) >= outcome.after_ns)
          continue;
        outcome.after_ns = ns_in(variants[i]);
        outcome.actions = split_actions(choice);
      }
    }
    if (!outcome.actions.empty())
      last[1].choices.emplace_back(digest, join_actions(outcome.actions));
  }
  for (State& state : states_) report_.kernels.push_back(std::move(state.outcome));
  for (const Variant& variant : variants) {
    if (is_dropped(variant.outcome))
      report_.dropped.push_back({"whole model", {{}, variant.outcome, 0, variant.why}});
  }
  if (last[1].choices.empty()) {
    report_.before_ns = report_.after_ns = variants[0].run_ns;
    return {};
  }
  IGNIS_TRY(bench_.run_models(last, 2 * kModelRounds));
  report_.before_ns = report_.after_ns = last[0].run_ns;
  if (last[1].is_sound() && last[1].run_ns < last[0].run_ns) {
    report_.after_ns = last[1].run_ns;
    report_.choices = std::move(last[1].choices);
  } else {
    for (SearchReport::Kernel& kernel : report_.kernels) kernel.actions.clear();
  }
  return {};
}

}  // namespace

std::string_view to_string(Trial::Outcome outcome) {
  switch (outcome) {
    case Trial::Outcome::Timed: return "timed";
    case Trial::Outcome::Same: return "same code";
    case Trial::Outcome::Refused: return "refused";
    case Trial::Outcome::Wrong: return "wrong numbers";
    case Trial::Outcome::Crashed: return "crashed";
    case Trial::Outcome::Hung: return "hung";
  }
  return "unknown";
}

Result<SearchReport> search(TuneBench& bench, const SearchOptions& options) {
  return Search(bench, options).run();
}

}  // namespace ignis::engine
