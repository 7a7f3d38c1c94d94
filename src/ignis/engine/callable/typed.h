#pragma once

#include "ignis/engine/callable/capture.h"

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace ignis::engine {

/// How a C++ type travels through a capture: `Returned` is what a call gives for it.
template <typename T>
struct CaptureType {
  static constexpr bool is_returnable = false;
  using Returned = T;
  static Value to_value(const T& from) { return Value(from); }
  static T from_value(const Value& value) {
    if constexpr (std::is_same_v<T, bool> || std::is_same_v<T, std::string> ||
                  std::is_same_v<T, RunVariable>) {
      return value.get<T>();
    } else if constexpr (std::is_integral_v<T>) {
      return static_cast<T>(value.get<int64_t>());
    } else {
      static_assert(std::is_floating_point_v<T>,
                    "a captured function takes tensors, numbers, texts, variables and containers");
      return static_cast<T>(value.get<double>());
    }
  }
};

template <>
struct CaptureType<Array> {
  static constexpr bool is_returnable = true;
  using Returned = Array;
  static Value to_value(const Array& from) { return Value(from); }
  static Array from_value(const Value& value) { return value.array(); }
};

/// An expression: the call gives the array of its value.
template <>
struct CaptureType<tensor::Tensor> {
  static constexpr bool is_returnable = true;
  using Returned = Array;
  static Value to_value(const tensor::Tensor& from) { return Value(from); }
};

template <>
struct CaptureType<Value> {
  static constexpr bool is_returnable = true;  // looked at when it is captured
  using Returned = Value;
  static Value to_value(const Value& from) { return from; }
  static Value from_value(const Value& value) { return value; }
};

template <typename T>
struct CaptureType<std::vector<T>> {
  static constexpr bool is_returnable = CaptureType<T>::is_returnable;
  using Returned = std::vector<typename CaptureType<T>::Returned>;
  static Value to_value(const std::vector<T>& from) {
    Sequence made;
    made.reserve(from.size());
    for (const T& element : from) made.push_back(CaptureType<T>::to_value(element));
    return made;
  }
  static Returned from_value(const Value& value) {
    Returned made;
    made.reserve(value.sequence().size());
    for (const Value& element : value.sequence()) {
      made.push_back(CaptureType<typename CaptureType<T>::Returned>::from_value(element));
    }
    return made;
  }
};

template <typename T>
struct CaptureType<std::map<std::string, T>> {
  static constexpr bool is_returnable = CaptureType<T>::is_returnable;
  using Returned = std::map<std::string, typename CaptureType<T>::Returned>;
  static Value to_value(const std::map<std::string, T>& from) {
    ValueMap made;
    for (const auto& [key, element] : from) made[key] = CaptureType<T>::to_value(element);
    return made;
  }
  static Returned from_value(const Value& value) {
    Returned made;
    for (const auto& [key, element] : value.map()) {
      made[key] = CaptureType<typename CaptureType<T>::Returned>::from_value(element);
    }
    return made;
  }
};

template <typename... T>
struct CaptureType<std::tuple<T...>> {
  static constexpr bool is_returnable = (CaptureType<T>::is_returnable && ...);
  using Returned = std::tuple<typename CaptureType<T>::Returned...>;
  static Value to_value(const std::tuple<T...>& from) {
    return std::apply(
        [](const T&... element) { return Value(Sequence{CaptureType<T>::to_value(element)...}); },
        from);
  }
  static Returned from_value(const Value& value) {
    return from_sequence(value.sequence(), std::index_sequence_for<T...>());
  }

 private:
  template <size_t... I>
  static Returned from_sequence(const Sequence& sequence, std::index_sequence<I...> /*places*/) {
    IGNIS_CHECK(sequence.size() == sizeof...(T));
    return Returned(CaptureType<typename CaptureType<T>::Returned>::from_value(sequence[I])...);
  }
};

/// A capture of a C++ callable with its own types. What it may return is checked when it is compiled: nothing, tensors, and
/// vectors, tuples and string maps of what may be returned; `Value` leaves the check to the capture.
template <typename Signature>
class TypedCapture;

template <typename R, typename... A>
class TypedCapture<R(A...)> {
  template <typename T>
  struct Unwrapped {
    using Type = T;
    static constexpr bool is_result = false;
  };
  template <typename T>
  struct Unwrapped<Result<T>> {
    using Type = T;
    static constexpr bool is_result = true;
  };
  using Plain = typename Unwrapped<R>::Type;
  static constexpr bool returns_nothing = std::is_void_v<R> || std::is_same_v<R, Status>;
  template <typename T, bool is_nothing>
  struct ReturnedOf {
    using Type = Value;
  };
  template <typename T>
  struct ReturnedOf<T, false> {
    using Type = typename CaptureType<T>::Returned;
  };
  template <typename T>
  static constexpr bool may_return() {
    if constexpr (returns_nothing) return true;
    else return CaptureType<T>::is_returnable;
  }
  static_assert(may_return<Plain>(),
                "a captured function returns tensors, alone or in vectors, tuples and string maps, "
                "or nothing: a host value would be frozen at the capture");

 public:
  /// What a call gives; an empty Value for a function that returns nothing.
  using Returned = typename ReturnedOf<Plain, returns_nothing>::Type;

  TypedCapture(Workspace workspace, std::function<R(A...)> function, CaptureOptions options = {},
               std::vector<std::string> parameter_names = {})
      : object_(
            Capture::create(std::move(workspace), wrap(std::move(function)), std::move(options))),
        scratch_(std::make_shared<Arguments>()) {
    IGNIS_CHECK(parameter_names.empty() || parameter_names.size() == sizeof...(A));
    scratch_->positional.resize(parameter_names.empty() ? sizeof...(A) : 0);
    for (std::string& name : parameter_names) {
      scratch_->keyword.emplace_back(std::move(name), Value());
    }
  }

  /// Errors: as Capture::call().
  Result<Returned> operator()(const std::decay_t<A>&... arguments) {
    return call({}, arguments...);
  }
  /// With the caller's arrays for the results (mode Caller).
  Result<Returned> call(std::span<const Array> outputs, const std::decay_t<A>&... arguments) {
    [[maybe_unused]] size_t next = 0;
    [[maybe_unused]] const auto place = [&](Value value) {
      Value& to = scratch_->positional.empty() ? scratch_->keyword[next].second
                                               : scratch_->positional[next];
      to = std::move(value);
      ++next;
    };
    (place(CaptureType<std::decay_t<A>>::to_value(arguments)), ...);
    Result<Value> result = object_.call(*scratch_, outputs);
    for (Value& value : scratch_->positional) value = Value();
    for (auto& [name, value] : scratch_->keyword) value = Value();
    IGNIS_TRY_ASSIGN(Value value, std::move(result));
    if constexpr (returns_nothing) return Value();
    else return CaptureType<Returned>::from_value(value);
  }

  Capture& object() { return object_; }
  const Capture& object() const { return object_; }

 private:
  static Capture::Function wrap(std::function<R(A...)> function) {
    return [function = std::move(function)](const Arguments& arguments) -> Result<Value> {
      return invoke(function, arguments, std::index_sequence_for<A...>());
    };
  }
  template <size_t... I>
  static Result<Value> invoke(const std::function<R(A...)>& function, const Arguments& arguments,
                              std::index_sequence<I...> /*places*/) {
    const auto at = [&](size_t i) -> const Value& {
      return arguments.positional.empty() ? arguments.keyword[i].second : arguments.positional[i];
    };
    (void)at;
    if constexpr (std::is_void_v<R>) {
      function(CaptureType<std::decay_t<A>>::from_value(at(I))...);
      return Value();
    } else if constexpr (std::is_same_v<R, Status>) {
      IGNIS_TRY(function(CaptureType<std::decay_t<A>>::from_value(at(I))...));
      return Value();
    } else if constexpr (Unwrapped<R>::is_result) {
      IGNIS_TRY_ASSIGN(const Plain made,
                       function(CaptureType<std::decay_t<A>>::from_value(at(I))...));
      return CaptureType<Plain>::to_value(made);
    } else {
      return CaptureType<Plain>::to_value(
          function(CaptureType<std::decay_t<A>>::from_value(at(I))...));
    }
  }

  Capture object_;
  std::shared_ptr<Arguments> scratch_;
};

/// A capture of a lambda or functor: capture(workspace, [](Array a, Array b) { return a.value() + b.value(); }).
template <typename F>
auto capture(Workspace workspace, F function, CaptureOptions options = {},
             std::vector<std::string> parameter_names = {}) {
  return [&]<typename R, typename... A>(std::function<R(A...)> wrapped) {
    return TypedCapture<R(A...)>(std::move(workspace), std::move(wrapped), std::move(options),
                                 std::move(parameter_names));
  }(std::function(std::move(function)));
}

}  // namespace ignis::engine
