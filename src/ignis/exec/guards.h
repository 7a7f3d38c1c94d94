#pragma once

#include "ignis/base/result.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace ignis::exec {

/// A host value that a capture froze and that must not change silently (capture spec 11). Text is not owned.
struct GuardValue {
  std::string_view name;
  std::variant<bool, int64_t, double, std::string_view> value;  ///< doubles are compared bit by bit
};

/// What in a vehicle must be guarded wherever it can change: a change needs a guard or a new capture object.
inline constexpr std::string_view kMandatoryGuards[] = {"model_size", "driver_side",
                                                        "camera_format", "model_instance"};

/// The guarded values of one capture. Copies own their text.
class GuardSet {
 public:
  GuardSet() = default;
  /// Errors: InvalidArgument with the reason DuplicateGuard for two guards of one name.
  static Result<GuardSet> make(std::span<const GuardValue> values);

  /// Compares values in the order of make(). Allocates nothing when they are equal.
  /// Errors: InvalidArgument with the reason GuardMismatch naming the guard and both values, or both lists of names.
  Status check(std::span<const GuardValue> values) const;
  bool is_equal(std::span<const GuardValue> values) const;

  /// In the order of make(); they look at texts of this set.
  std::vector<GuardValue> values() const;
  uint64_t hash() const { return hash_; }
  size_t size() const { return guards_.size(); }
  bool has(std::string_view name) const;

 private:
  struct Guard {
    std::string name;
    std::variant<bool, int64_t, double, std::string> value;
  };
  std::vector<Guard> guards_;
  uint64_t hash_ = 0;
};

/// The mandatory guards that `guards` lacks, for a message at load.
std::vector<std::string_view> missing_mandatory_guards(const GuardSet& guards);

/// What a capture object does when a guarded value has changed.
struct GuardPolicy {
  enum class OnChange : uint8_t {
    Fail,    ///< GuardMismatch
    Select,  ///< uses the artifact of these values, or has one made
  };
  OnChange on_change = OnChange::Fail;
  size_t max_artifacts = 4;  ///< Select: at least 1
};

/// Artifacts of one capture object, told apart by their guarded values. It knows their numbers and nothing else.
class GuardedArtifacts {
 public:
  explicit GuardedArtifacts(GuardPolicy policy = {}) : policy_(policy) {}

  /// The number of the artifact for these values; nothing: none yet and one more may be captured. Allocates nothing when there
  /// is one. Errors: InvalidArgument with the reason GuardMismatch for values of no artifact when the policy is Fail; OutOfMemory
  /// with the reason TooManyArtifacts when all have other values and no more may be made.
  Result<std::optional<size_t>> select(std::span<const GuardValue> values) const;
  /// After a capture succeeded with these values: the number of its artifact, counted from 0.
  /// Errors: as select(), and as GuardSet::make(); InvalidArgument when there is one already.
  Result<size_t> add(std::span<const GuardValue> values);
  size_t size() const { return sets_.size(); }
  void clear() { sets_.clear(); }

 private:
  GuardPolicy policy_;
  std::vector<GuardSet> sets_;
};

}  // namespace ignis::exec
