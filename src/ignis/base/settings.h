#pragma once

#include "ignis/base/result.h"

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ignis {

/// One environment twin that Ignis knows.
struct SettingInfo {
  std::string_view name;     ///< without the prefix: "THREADS" for IGNIS_THREADS
  std::string_view meaning;  ///< one phrase for --help
};

/// Every setting there is, sorted by name. A name that is not here is unknown to the whole product.
std::span<const SettingInfo> known_settings();

/// A snapshot of the `IGNIS_*` part of an environment.
class Settings {
 public:
  /// Reads "NAME=value" lines; those without the prefix are skipped. `lines` as `environ`: ends with a null.
  static Settings from_lines(const char* const* lines);
  /// The process environment as it was at the first call.
  static const Settings& environment();

  /// Value of IGNIS_<name>, if set and not empty. The name must be in known_settings().
  std::optional<std::string_view> find(std::string_view name) const;
  /// The value as a whole number in [lowest, highest]; nothing when unset. Errors: InvalidArgument.
  Result<std::optional<int64_t>> find_int(std::string_view name, int64_t lowest,
                                          int64_t highest) const;

  /// Full names ("IGNIS_THREAD") that are set but unknown, sorted.
  const std::vector<std::string>& unknown() const { return unknown_; }
  /// Logs one warning that lists the unknown names, each with the nearest known one; nothing if there are none.
  void warn_about_unknown() const;

 private:
  std::map<std::string, std::string, std::less<>> values_;
  std::vector<std::string> unknown_;
};

}  // namespace ignis
