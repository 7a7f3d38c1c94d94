#pragma once

#include "ignis/engine/eager/array.h"
#include "ignis/exec/signature.h"
#include "ignis/tensor/core.h"

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace ignis::engine {

class Value;
using Sequence = std::vector<Value>;
using ValueMap = std::map<std::string, Value, std::less<>>;

/// A whole number that may be another one at each call of a captured function: read its tensor inside, Workspace::variable().
struct RunVariable {
  std::string name;
  int64_t value = 0;
  int64_t min = 0, max = 0;  ///< both included
};

/// What a captured function is given or gives back: tensors, host scalars, nothing, and containers of these.
class Value {
 public:
  using Data = std::variant<std::monostate, Array, tensor::Tensor, RunVariable, bool, int64_t,
                            double, std::string, Sequence, ValueMap>;

  Value() = default;
  template <typename T>
    requires(std::constructible_from<Data, T> && !std::same_as<std::remove_cvref_t<T>, Value> &&
             !std::is_arithmetic_v<std::remove_cvref_t<T>> && !std::convertible_to<T, const char*>)
  Value(T&& from) : data_(std::forward<T>(from)) {}  // NOLINT: implicit by design
  template <typename T>
    requires std::is_arithmetic_v<T>
  Value(T from) {  // NOLINT: implicit by design
    if constexpr (std::same_as<T, bool>) data_ = from;
    else if constexpr (std::integral<T>) data_ = static_cast<int64_t>(from);
    else data_ = static_cast<double>(from);
  }
  Value(const char* text) : data_(std::string(text)) {}  // NOLINT: implicit by design

  const Data& data() const { return data_; }
  Data& data() { return data_; }
  bool is_none() const { return std::holds_alternative<std::monostate>(data_); }
  /// What it is; the wrong question is a failed check.
  const Array& array() const { return get<Array>(); }
  const Sequence& sequence() const { return get<Sequence>(); }
  const ValueMap& map() const { return get<ValueMap>(); }
  const Value& operator[](size_t index) const;
  const Value& operator[](std::string_view key) const;

  template <typename T>
  const T& get() const {
    const T* at = std::get_if<T>(&data_);
    IGNIS_CHECK(at != nullptr);
    return *at;
  }

 private:
  Data data_;
};

/// The arguments of one call. Positional ones come first.
struct Arguments {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> keyword;

  /// The keyword argument of that name; a failed check when there is none.
  const Value& operator[](std::string_view name) const;
  const Value& operator[](size_t index) const { return positional.at(index); }
};

/// Calls `visit` with every leaf: what is no container. `path` says where it is: "[0].box", empty for the value itself.
void visit_leaves(Value& value,
                  const std::function<void(const std::string& path, Value& leaf)>& visit);
/// "a number", "a text", … for messages.
std::string_view kind_of(const Value& leaf);

/// Puts leaves where their paths say; the inverse of visit_leaves() for values without empty containers.
/// Errors: InvalidArgument with the reason BadPath for paths that are none or contradict each other.
Result<Value> make_value(const std::vector<std::pair<std::string, Value>>& leaves);

}  // namespace ignis::engine
