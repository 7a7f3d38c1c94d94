#pragma once

#include "ignis/engine/callable/value.h"
#include "ignis/engine/capture/inputs.h"
#include "ignis/engine/eager/workspace.h"
#include "ignis/exec/link.h"

#include <cstdint>
#include <span>
#include <vector>

namespace ignis::engine {

/// The arguments of one call as a capture looks at them. Kept from call to call, it allocates nothing once it has seen the
/// largest.
class ArgumentList {
 public:
  ArgumentList(Workspace workspace, bool allow_read_only_duplicates);

  /// Realizes what has no storage yet, then finds the inputs (capture spec 3). `arguments` are looked at until release().
  /// Errors: as InputCollector::collect(); InvalidArgument with the reason StaleOutput for a result of an earlier replay.
  Status collect(const Arguments& arguments);
  /// Gives the workspace the values of variables. Errors: as Workspace::bind().
  Status bind_variables() const;
  /// Lets go of the arguments' memory.
  void release();

  const InputCollector& inputs() const { return collector_; }
  /// By input: all of its storage.
  std::span<const exec::BoundInput> memory() const { return {memory_.data(), input_count_}; }
  const Array& array(size_t input) const { return *arrays_[input]; }
  bool has_base(uint64_t base) const;

 private:
  Status add(const Value& value, ArgumentValue& to);
  Result<ElementValue> make_element(const Value& value);
  Result<TensorArgument> make_tensor(const Array& array);

  Workspace workspace_;
  InputCollector collector_;
  // Scratch that keeps its memory.
  std::vector<ArgumentValue> positional_;
  std::vector<KeywordArgument> keyword_;
  std::vector<std::vector<Element>> elements_;  // one list for each container
  size_t container_count_ = 0;
  std::vector<const Array*> seen_;    // tensors in the order of the arguments
  std::vector<const Array*> arrays_;  // by input
  std::vector<exec::BoundInput> memory_;
  size_t input_count_ = 0;
};

}  // namespace ignis::engine
