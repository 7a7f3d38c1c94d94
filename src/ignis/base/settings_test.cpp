#include "ignis/base/settings.h"

#include "ignis/base/log.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace ignis {
namespace {

Settings from(std::vector<const char*> lines) {
  lines.push_back(nullptr);
  return Settings::from_lines(lines.data());
}

TEST(Settings, FindsWhatIsSet) {
  const Settings s = from({"PATH=/bin", "IGNIS_DEVICE=cpu:interp", "IGNIS_THREADS=2",
                           "IGNIS_CPUS=", "IGNIS_CONFIG=a=b"});
  EXPECT_EQ(s.find("DEVICE"), "cpu:interp");
  EXPECT_EQ(s.find("CONFIG"), "a=b");
  EXPECT_EQ(s.find("CPUS"), std::nullopt) << "An empty value counts as unset.";
  EXPECT_EQ(s.find("SEED"), std::nullopt);
  EXPECT_EQ(*s.find_int("THREADS", 1, 64), 2);
  EXPECT_EQ(*s.find_int("SEED", 0, 10), std::nullopt);
  EXPECT_TRUE(s.unknown().empty());
}

TEST(Settings, RefusesNumbersThatAreNone) {
  for (const char* line : {"IGNIS_THREADS=two", "IGNIS_THREADS=2x", "IGNIS_THREADS=0",
                           "IGNIS_THREADS=65", "IGNIS_THREADS=99999999999999999999"}) {
    const Result<std::optional<int64_t>> threads = from({line}).find_int("THREADS", 1, 64);
    ASSERT_FALSE(threads) << line;
    EXPECT_EQ(threads.error().code(), ErrorCode::InvalidArgument);
    EXPECT_NE(threads.error().message().find("from 1 to 64"), std::string::npos)
        << threads.error().message();
  }
}

TEST(Settings, WarnsOnceAboutUnknownNames) {
  const Settings s = from({"IGNIS_THREAD=2", "IGNIS_BOGUS_NAME=1", "IGNISX=1", "NOT_IGNIS_A=1"});
  EXPECT_EQ(s.unknown(), (std::vector<std::string>{"IGNIS_BOGUS_NAME", "IGNIS_THREAD"}));
  std::vector<std::string> lines;
  set_log_sink([&lines](const LogRecord& r) { lines.emplace_back(r.text); }, LogLevel::Warning);
  s.warn_about_unknown();
  from({"IGNIS_SEED=1"}).warn_about_unknown();
  set_log_sink({});
  EXPECT_EQ(lines, std::vector<std::string>{
                       "Unknown settings in the environment are ignored: IGNIS_BOGUS_NAME, "
                       "IGNIS_THREAD (is IGNIS_THREADS meant?)."});
}

TEST(Settings, ListIsSortedAndHasMeanings) {
  const auto all = known_settings();
  EXPECT_TRUE(std::is_sorted(all.begin(), all.end(),
                             [](const auto& a, const auto& b) { return a.name < b.name; }));
  for (const SettingInfo& s : all) EXPECT_FALSE(s.meaning.empty()) << s.name;
}

TEST(SettingsDeathTest, AskingForAnUnlistedNameIsACheck) {
  const Settings s = from({});
  EXPECT_DEATH((void)s.find("NOT_LISTED"), "NOT_LISTED is missing");
}

}  // namespace
}  // namespace ignis
