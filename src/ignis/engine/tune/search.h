#pragma once

#include "ignis/base/result.h"
#include "ignis/codegen/codegen.h"
#include "ignis/exec/artifact_sections.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace ignis::engine {

/// A distinct kernel of the model under search.
struct TunedKernel {
  std::string digest;                ///< kernel_digest() in hex
  std::string name;                  ///< "k07_conv_relu"
  std::vector<std::string> actions;  ///< of the heuristics
};

/// The part of a kernel's digest that its program's symbol ends in.
inline std::string kernel_key(const std::string& digest) { return digest.substr(0, 16); }

/// What came of trying a list of actions.
struct Trial {
  enum class Outcome : uint8_t {
    Timed,
    Same,     ///< the code of another trial
    Refused,  ///< not legal, or not compiled
    Wrong,    ///< its numbers differ from the reference
    Crashed,  ///< took its process along
    Hung,     ///< did not come back within its limit
  };
  std::vector<std::string> actions;
  Outcome outcome = Outcome::Refused;
  double ns = 0;    ///< Timed: of one launch, the lower quartile
  std::string why;  ///< otherwise, in words
};
std::string_view to_string(Trial::Outcome outcome);

/// A way to compile the whole model, and what it took.
struct Variant {
  std::vector<std::pair<std::string, std::string>> choices;  ///< as a TuningRecord has them
  /// Timed: ran, and its outputs agree with those of the first variant.
  Trial::Outcome outcome = Trial::Outcome::Refused;
  std::string why;    ///< otherwise, in words
  double run_ns = 0;  ///< Timed: of a run, the lower quartile
  std::vector<std::pair<std::string, double>>
      kernel_ns;  ///< by kernel_key(): of all its calls in a run
  bool is_sound() const { return outcome == Trial::Outcome::Timed; }
};

/// What a search asks of whoever can run kernels. Every call ends within a limit of its own; after an error the search
/// is over.
class TuneBench {
 public:
  virtual ~TuneBench() = default;
  /// Distinct kernels, of the graph scheduled with these "winograd" and "chain" choices.
  virtual Result<std::vector<TunedKernel>> kernels(const Variant& variant) = 0;
  /// As codegen::neighbours, of a kernel of the last kernels().
  virtual Result<std::vector<codegen::Candidate>> neighbours(
      size_t kernel, const std::vector<std::string>& actions) = 0;
  /// Compiles each, checks its numbers, then times all in turns. The first is what the others are held against.
  virtual Status measure(size_t kernel, std::vector<Trial>& trials, int rounds) = 0;
  /// Compiles the model each way, checks the outputs, then times all in turns.
  virtual Status run_models(std::vector<Variant>& variants, int rounds) = 0;
};

struct SearchOptions {
  int beam = 4;  ///< lists that are developed further in each generation; 1 or more
  int tries =
      32;  ///< of a kernel and generation, at the most: those that the model of costs likes best
  int patience =
      3;  ///< generations of a kernel in a row that bring less than 1 %, until it is left
  double budget_s = 120;
  double least_share = 0.003;  ///< of a run's time that a kernel must take to be searched
  /// Called after each step; `gain`: how much faster the searched kernels are, by themselves.
  std::function<void(const std::string& what, double gain, double left_s)> progress;
  std::function<std::chrono::steady_clock::time_point()> now;  ///< empty: the clock
};

struct SearchReport {
  struct Kernel {
    TunedKernel kernel;
    std::vector<std::string> actions;    ///< chosen; empty: the heuristics' stay
    double before_ns = 0, after_ns = 0;  ///< all its calls in a run of the model
    int tried = 0, generations = 0;
  };
  struct Dropped {
    std::string kernel;  ///< or "whole model"
    Trial trial;
  };
  std::vector<std::pair<std::string, std::string>> choices;  ///< what a record gets
  std::vector<Kernel> kernels;         ///< that were searched, the most expensive first
  std::vector<Dropped> dropped;        ///< crashed, hung or wrong
  std::vector<Variant> variants;       ///< of the whole model, the heuristics first
  double before_ns = 0, after_ns = 0;  ///< a run of the model, measured in turns at the end
  int tried = 0;                       ///< lists of actions
  bool is_complete = false;            ///< nothing was left to try within the budget
};

/// Looks for better choices than those of the heuristics: the options of the schedule first, by whole runs; then, for
/// each kernel that matters, a beam search over lists of actions one step apart, the best three of which are timed again
/// in the model, where caches are as they are. Nothing is chosen that is not faster there.
/// Errors: those of `bench`.
Result<SearchReport> search(TuneBench& bench, const SearchOptions& options);

}  // namespace ignis::engine
