#pragma once

#include "ignis/engine/session.h"
#include "ignis/engine/tune/search.h"
#include "ignis/exec/artifact_sections.h"

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace ignis::engine {

/// A model compiled in several ways, all on the same random inputs.
class ModelBench {
 public:
  ModelBench(std::string model, SessionOptions options)
      : model_(std::move(model)), options_(std::move(options)) {}

  /// Compiles the model as the record says and runs it once. The outcome is Timed, without a time yet, or Refused with
  /// the compiler's error, Wrong when an output differs from that of the first one added, Same when an earlier one has
  /// the same code. Errors: as Session::run_raw.
  Result<Variant> add(const exec::TuningRecord& record);
  /// Whether the n-th added is to be timed.
  bool has(size_t n) const { return compiled_[n] != nullptr; }
  size_t size() const { return compiled_.size(); }
  /// A few runs of the n-th, one after the other. Errors: as Session::run_raw.
  Status take_turn(size_t n);
  /// The n-th with the times of its turns.
  Variant result(size_t n) const;

 private:
  struct Compiled;
  std::string model_;
  SessionOptions options_;
  std::vector<HostTensor> inputs_;
  std::vector<const void*> input_pointers_;
  std::vector<std::shared_ptr<Compiled>> compiled_;  // null: dropped
};

/// The lower quartile: what others do on the machine makes times longer, never shorter. 0 of none.
double typical(std::vector<double> times);

}  // namespace ignis::engine
