#include "ignis/exec/guards.h"

#include "ignis/exec/word_mixer.h"

#include <algorithm>
#include <bit>
#include <type_traits>

namespace ignis::exec {
namespace {

/// The bits of a value, and which kind it is.
template <typename Value>
void mix_value(const Value& value, WordMixer& mixer) {
  mixer.add(uint64_t{value.index()});
  std::visit(
      [&](const auto& held) {
        using Held = std::decay_t<decltype(held)>;
        if constexpr (std::is_same_v<Held, double>) {
          mixer.add(std::bit_cast<uint64_t>(held));
        } else if constexpr (std::is_arithmetic_v<Held>) {
          mixer.add(static_cast<uint64_t>(held));
        } else {
          mixer.add(std::string_view(held));
        }
      },
      value);
}

uint64_t hash_values(std::span<const GuardValue> values) {
  WordMixer mixer;
  for (const GuardValue& guard : values) {
    mixer.add(guard.name);
    mix_value(guard.value, mixer);
  }
  return mixer.result();
}

template <typename A, typename B>
bool are_equal(const A& a, const B& b) {
  if (a.index() != b.index()) return false;
  switch (a.index()) {
    case 0: return std::get<0>(a) == std::get<0>(b);
    case 1: return std::get<1>(a) == std::get<1>(b);
    case 2:
      return std::bit_cast<uint64_t>(std::get<2>(a)) == std::bit_cast<uint64_t>(std::get<2>(b));
    default: return std::get<3>(a) == std::get<3>(b);
  }
}

template <typename Value>
std::string print(const Value& value) {
  switch (value.index()) {
    case 0: return std::get<0>(value) ? "true" : "false";
    case 1: return std::to_string(std::get<1>(value));
    case 2: return std::to_string(std::get<2>(value));
    default: return "'" + std::string(std::get<3>(value)) + "'";
  }
}

template <typename Guards>
std::string print_names(const Guards& guards) {
  std::string text = "[";
  for (const auto& guard : guards) {
    if (text.size() > 1) text += ", ";
    text += guard.name;
  }
  return text + "]";
}

}  // namespace

Result<GuardSet> GuardSet::make(std::span<const GuardValue> values) {
  GuardSet result;
  for (const GuardValue& guard : values) {
    if (result.has(guard.name)) {
      return Error(ErrorCode::InvalidArgument,
                   "Two guards have the name '" + std::string(guard.name) + "'.", "DuplicateGuard");
    }
    Guard kept;
    kept.name = guard.name;
    std::visit(
        [&](const auto& held) {
          if constexpr (std::is_same_v<std::decay_t<decltype(held)>, std::string_view>) {
            kept.value = std::string(held);
          } else {
            kept.value = held;
          }
        },
        guard.value);
    result.guards_.push_back(std::move(kept));
  }
  result.hash_ = hash_values(values);
  return result;
}

bool GuardSet::is_equal(std::span<const GuardValue> values) const {
  return hash_values(values) == hash_ &&
         std::equal(guards_.begin(), guards_.end(), values.begin(), values.end(),
                    [](const Guard& a, const GuardValue& b) {
                      return a.name == b.name && are_equal(a.value, b.value);
                    });
}

Status GuardSet::check(std::span<const GuardValue> values) const {
  if (is_equal(values)) return Status::ok();
  const bool are_names_equal =
      std::equal(guards_.begin(), guards_.end(), values.begin(), values.end(),
                 [](const Guard& a, const GuardValue& b) { return a.name == b.name; });
  if (!are_names_equal) {
    return Error(ErrorCode::InvalidArgument,
                 "The capture guards " + print_names(guards_) + "; the call has " +
                     print_names(values) + ".",
                 "GuardMismatch");
  }
  for (size_t i = 0; i < values.size(); ++i) {
    if (are_equal(guards_[i].value, values[i].value)) continue;
    return Error(ErrorCode::InvalidArgument,
                 "Guard '" + guards_[i].name + "' was " + print(guards_[i].value) +
                     " at the capture and is " + print(values[i].value) +
                     " now; capture again, or give the capture a policy that selects.",
                 "GuardMismatch");
  }
  IGNIS_CHECK(false) << "Equal guards have different hashes.";
  return Status::ok();
}

std::vector<GuardValue> GuardSet::values() const {
  std::vector<GuardValue> values;
  for (const Guard& guard : guards_) {
    GuardValue& value = values.emplace_back();
    value.name = guard.name;
    if (const auto* text = std::get_if<std::string>(&guard.value)) {
      value.value = std::string_view(*text);
    } else if (const auto* number = std::get_if<double>(&guard.value)) {
      value.value = *number;
    } else if (const auto* whole = std::get_if<int64_t>(&guard.value)) {
      value.value = *whole;
    } else {
      value.value = std::get<bool>(guard.value);
    }
  }
  return values;
}

bool GuardSet::has(std::string_view name) const {
  return std::any_of(guards_.begin(), guards_.end(),
                     [&](const Guard& guard) { return guard.name == name; });
}

std::vector<std::string_view> missing_mandatory_guards(const GuardSet& guards) {
  std::vector<std::string_view> result;
  for (const std::string_view name : kMandatoryGuards) {
    if (!guards.has(name)) result.push_back(name);
  }
  return result;
}

Result<std::optional<size_t>> GuardedArtifacts::select(std::span<const GuardValue> values) const {
  for (size_t i = 0; i < sets_.size(); ++i) {
    if (sets_[i].is_equal(values)) return std::optional<size_t>(i);
  }
  if (sets_.empty()) return std::optional<size_t>();
  if (policy_.on_change == GuardPolicy::OnChange::Fail) {
    IGNIS_TRY(sets_.front().check(values));
  }
  if (sets_.size() >= std::max<size_t>(1, policy_.max_artifacts)) {
    return Error(ErrorCode::OutOfMemory,
                 "The capture has " + std::to_string(sets_.size()) +
                     " artifacts, the most it may have, and none for these values: " +
                     sets_.back().check(values).error().message(),
                 "TooManyArtifacts");
  }
  return std::optional<size_t>();
}

Result<size_t> GuardedArtifacts::add(std::span<const GuardValue> values) {
  IGNIS_TRY_ASSIGN(const std::optional<size_t> found, select(values));
  if (found) {
    return Error(ErrorCode::InvalidArgument,
                 "Artifact " + std::to_string(*found) + " has these guarded values already.",
                 "DuplicateGuard");
  }
  IGNIS_TRY_ASSIGN(GuardSet made, GuardSet::make(values));
  sets_.push_back(std::move(made));
  return sets_.size() - 1;
}

}  // namespace ignis::exec
