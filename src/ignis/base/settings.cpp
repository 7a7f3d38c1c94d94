#include "ignis/base/settings.h"

#include "ignis/base/log.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>

namespace ignis {
namespace {

constexpr std::string_view kPrefix = "IGNIS_";

constexpr SettingInfo kSettings[] = {
    {"CACHE", "folder of compiled kernels, or off"},
    {"CACHE_SIZE", "what the folder of compiled kernels may take, such as 100M"},
    {"COLOR", "auto, always or never"},
    {"CONFIG", "file of options"},
    {"CPUS", "list of CPUs to run on, such as 0,2-3"},
    {"DEVICE", "device to use, such as cpu or cpu:interp"},
    {"JSON", "print the report as JSON"},
    {"LIMITS", "file of limits for untrusted models"},
    {"LOG_FORMAT", "text or json"},
    {"QUIET", "print results only"},
    {"SEED", "seed of random inputs"},
    {"SHARED", "folder with further models for the tests"},
    {"SKIP_DEPS", "1: the build scripts install nothing and trust the system"},
    {"TEST_BATCHES", "number of command batches the random tests make"},
    {"TEST_CAPTURES", "number of captured functions the random tests make"},
    {"TEST_GRAPHS", "number of graphs the random tests make"},
    {"TEST_REPLAYS", "number of replays the soak test makes"},
    {"TEST_RUNNER", "command that runs artifacts for AArch64 in the tests"},
    {"TEST_SCREENSHOTS", "folder for pictures of the pages that the tests look at"},
    {"TEST_SEED", "seed of the random tests"},
    {"THREADS", "number of threads, or auto"},
    {"TIMEOUT", "seconds until a wait fails"},
};

bool is_known(std::string_view name) {
  return std::any_of(std::begin(kSettings), std::end(kSettings),
                     [name](const SettingInfo& s) { return s.name == name; });
}

/// Number of single-letter insertions, deletions and replacements between two words.
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

/// The known name nearest to `name`, or nothing when none is close.
std::string_view nearest_setting(std::string_view name) {
  std::string_view best;
  size_t best_distance = 3;
  for (const SettingInfo& s : kSettings) {
    const size_t distance = edit_distance(name, s.name);
    if (distance < best_distance) {
      best = s.name;
      best_distance = distance;
    }
  }
  return best;
}

}  // namespace

std::span<const SettingInfo> known_settings() { return kSettings; }

Settings Settings::from_lines(const char* const* lines) {
  Settings result;
  for (; lines != nullptr && *lines != nullptr; ++lines) {
    const std::string_view line = *lines;
    const size_t equals = line.find('=');
    if (!line.starts_with(kPrefix) || equals == std::string_view::npos || equals < kPrefix.size())
      continue;
    const std::string_view name = line.substr(kPrefix.size(), equals - kPrefix.size());
    if (is_known(name)) result.values_.emplace(name, line.substr(equals + 1));
    else result.unknown_.emplace_back(line.substr(0, equals));
  }
  std::sort(result.unknown_.begin(), result.unknown_.end());
  return result;
}

const Settings& Settings::environment() {
  // Never destroyed, so that it can be read at any time.
  static const auto* settings = new Settings(from_lines(environ));
  return *settings;
}

std::optional<std::string_view> Settings::find(std::string_view name) const {
  IGNIS_CHECK(is_known(name)) << name << " is missing from the list of settings";
  const auto found = values_.find(name);
  if (found == values_.end() || found->second.empty()) return std::nullopt;
  return found->second;
}

Result<std::optional<int64_t>> Settings::find_int(std::string_view name, int64_t lowest,
                                                  int64_t highest) const {
  const std::optional<std::string_view> text = find(name);
  if (!text) return std::optional<int64_t>();
  int64_t value = 0;
  const auto [end, code] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (code != std::errc() || end != text->data() + text->size() || value < lowest ||
      value > highest) {
    return Error(ErrorCode::InvalidArgument,
                 std::string(kPrefix) + std::string(name) + " is '" + std::string(*text) +
                     "'; it takes a whole number from " + std::to_string(lowest) + " to " +
                     std::to_string(highest) + ".");
  }
  return std::optional<int64_t>(value);
}

void Settings::warn_about_unknown() const {
  if (unknown_.empty()) return;
  std::string text = "Unknown settings in the environment are ignored: ";
  for (size_t i = 0; i < unknown_.size(); ++i) {
    if (i != 0) text += ", ";
    text += unknown_[i];
    const std::string_view nearest =
        nearest_setting(std::string_view(unknown_[i]).substr(kPrefix.size()));
    if (!nearest.empty())
      text += " (is " + std::string(kPrefix) + std::string(nearest) + " meant?)";
  }
  IGNIS_LOG(Warning, "settings") << text << ".";
}

}  // namespace ignis
