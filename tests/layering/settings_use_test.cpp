// The table of settings and what the project reads must be one: a name that is read but not listed would be reported as
// unknown, one that is listed but not read would be ignored in silence.

#include "ignis/base/settings.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>
#include <string>

namespace ignis {
namespace {

namespace fs = std::filesystem;

/// Names (without the prefix) in `getenv("IGNIS_NAME"`, `envname("IGNIS_NAME"`, `${IGNIS_NAME` and `environment().find("NAME")` below a
/// folder.
void collect_names(const fs::path& folder, std::set<std::string>* names) {
  static const std::regex kUse(
      R"re((?:getenv|envname)\("IGNIS_([A-Z_]+)"|\$\{IGNIS_([A-Z_]+)|environment\(\)\.find(?:_int)?\("(?!IGNIS_)([A-Z_]+)"\))re");
  static const std::set<std::string> kExtensions = {".cpp", ".h", ".sh", ".py"};
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (!kExtensions.contains(entry.path().extension().string()) || name.starts_with("settings"))
      continue;
    std::ifstream file(entry.path());
    std::stringstream stream;
    stream << file.rdbuf();
    const std::string text = stream.str();
    for (std::sregex_iterator match(text.begin(), text.end(), kUse), end; match != end; ++match) {
      for (size_t group = 1; group <= 3; ++group) {
        if ((*match)[group].matched) names->insert((*match)[group].str());
      }
    }
  }
}

TEST(Settings, TheTableListsWhatIsReadAndNothingElse) {
  std::set<std::string> used;
  for (const char* folder : {"src", "tools", "tests", "bench", "scripts"}) {
    collect_names(fs::path(IGNIS_SOURCE_DIR) / folder, &used);
  }
  std::set<std::string> listed;
  for (const SettingInfo& setting : known_settings()) listed.emplace(setting.name);
  for (const std::string& name : used) {
    EXPECT_TRUE(listed.contains(name))
        << "IGNIS_" << name << " is read but not in base/settings.cpp";
  }
  for (const std::string& name : listed) {
    EXPECT_TRUE(used.contains(name))
        << "IGNIS_" << name << " is in base/settings.cpp but nothing reads it";
  }
}

}  // namespace
}  // namespace ignis
