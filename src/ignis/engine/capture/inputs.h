#pragma once

#include "ignis/base/result.h"
#include "ignis/exec/signature.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace ignis::engine {

/// A tensor among the arguments of a call. Nothing in it is owned.
struct TensorArgument {
  uint64_t tensor = 0;  ///< which tensor object it is
  uint64_t base =
      0;  ///< which storage lies under its view; a sharded tensor has one. Counts once it is realized
  bool is_realized = true;  ///< has storage
  exec::InputDescription
      description;  ///< all but the name; no device or a weak dtype: it can have no storage
  std::span<const exec::VariableBinding> variables;  ///< that its view binds
};

/// A number, boolean or string: frozen by the capture, unless it is declared as a variable of each run.
struct HostScalar {
  bool is_variable = false;
  int64_t value = 0;         ///< these count for a variable only
  int64_t min = 0, max = 0;  ///< both included
};

/// A container within a container: nobody looks into it, so that a model's weights are not taken as inputs.
struct DeeperContainer {};

using ElementValue =
    std::variant<TensorArgument, exec::VariableBinding, HostScalar, DeeperContainer>;
/// One element of a container.
struct Element {
  std::string_view key;  ///< of a map's; a sequence's have their index
  ElementValue value;
};
struct Container {
  bool is_map = false;
  std::span<const Element> elements;
};

using ArgumentValue = std::variant<TensorArgument, exec::VariableBinding, HostScalar, Container>;
struct KeywordArgument {
  std::string_view name;
  ArgumentValue value;
};

struct InputRules {
  /// Two inputs may have one base; check_shared_bases() then says whether both are only read.
  bool allow_read_only_duplicates = false;
  /// Gives storage to a tensor that has none: sets `base` and `is_realized`. Empty: such a tensor is refused.
  std::function<Status(TensorArgument&)> realize;
};

/// Finds the inputs of a call (capture spec 3). Kept from call to call, it allocates nothing once it has seen the largest.
///
/// Order: top-level tensors by position, then by keyword in the order of names; then what containers hold, one level deep, by
/// position and by keyword, a map's in the order of keys. Every input has a name: "0", "first", "1.0" for element 0 of argument
/// 1, "weights.bias".
class InputCollector {
 public:
  explicit InputCollector(InputRules rules = {}) : rules_(std::move(rules)) {}

  /// What the arguments look at is looked at again by inputs() and variables().
  /// Errors: InvalidArgument with the reason VirtualInput, DuplicateInput (also for views of one base), VariableConflict (two
  /// values or ranges for one name), DuplicateArgument (two keywords of one name); as InputRules::realize. Then nothing is
  /// collected.
  Status collect(std::span<const ArgumentValue> positional,
                 std::span<const KeywordArgument> keyword = {});

  /// With their names.
  std::span<const exec::InputDescription> inputs() const { return inputs_; }
  std::span<const TensorArgument> tensors() const { return tensors_; }
  /// Sorted by name.
  std::span<const exec::VariableBinding> variables() const { return variables_; }
  /// Pairs of inputs with one base; only when the rules allow them.
  std::span<const std::pair<int, int>> shared_bases() const { return shared_; }
  /// `is_written` says for each input whether the captured calls write it.
  /// Errors: InvalidArgument with the reason DuplicateInput for a pair with one that is written.
  Status check_shared_bases(std::span<const uint8_t> is_written) const;

  exec::Signature make_signature() const { return exec::Signature::make(inputs_, variables_); }

 private:
  Status collect_all(std::span<const ArgumentValue> positional,
                     std::span<const KeywordArgument> keyword);
  Status add_argument(std::string_view name, const ArgumentValue& value);
  Status add_container(std::string_view argument, const Container& container);
  Status add_tensor(const TensorArgument& tensor, std::string_view argument,
                    std::string_view element);
  Status add_variable(const exec::VariableBinding& variable);
  Status find_shared_bases();
  std::string_view keep_name(std::string_view argument, std::string_view element);
  Error duplicate(int first, int second) const;

  InputRules rules_;
  std::vector<TensorArgument> tensors_;
  std::vector<exec::InputDescription> inputs_;
  std::vector<exec::VariableBinding> variables_;
  std::vector<std::pair<int, int>> shared_;
  // Scratch that keeps its memory. Names are given out as views, so each lies in a block of its own.
  std::vector<std::unique_ptr<std::string>> names_;
  size_t name_count_ = 0;
  std::vector<uint32_t> order_, inner_order_;
};

}  // namespace ignis::engine
