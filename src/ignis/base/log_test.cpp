#include "ignis/base/log.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

namespace ignis {
namespace {

class Log : public testing::Test {
 protected:
  void TearDown() override { set_log_sink({}); }

  void listen(LogLevel lowest) {
    set_log_sink(
        [this](const LogRecord& r) {
          lines_.push_back(std::string(to_string(r.level)) + " " + std::string(r.area) + ": " +
                           std::string(r.text));
        },
        lowest);
  }

  std::vector<std::string> lines_;
};

TEST_F(Log, IsSilentWithoutASink) {
  testing::internal::CaptureStderr();
  testing::internal::CaptureStdout();
  int computed = 0;
  IGNIS_LOG(Error, "test") << ++computed;
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
  EXPECT_EQ(computed, 0) << "The operands are computed although nobody listens.";
}

TEST_F(Log, SinkGetsRecordsFromItsLevelUp) {
  listen(LogLevel::Warning);
  IGNIS_LOG(Info, "test") << "not this";
  IGNIS_LOG(Warning, "test") << "this " << 1;
  IGNIS_LOG(Error, "other") << "and this";
  EXPECT_EQ(lines_, (std::vector<std::string>{"warning test: this 1", "error other: and this"}));
}

TEST_F(Log, OffAndAnEmptySinkAreSilent) {
  listen(LogLevel::Off);
  IGNIS_LOG(Error, "test") << "no";
  listen(LogLevel::Debug);
  set_log_sink({}, LogLevel::Debug);
  IGNIS_LOG(Error, "test") << "no";
  EXPECT_TRUE(lines_.empty());
}

TEST_F(Log, OncePerPlace) {
  listen(LogLevel::Debug);
  for (int i = 0; i < 3; ++i) IGNIS_LOG_ONCE(Info, "test") << "round " << i;
  IGNIS_LOG_ONCE(Info, "test") << "another place";
  EXPECT_EQ(lines_, (std::vector<std::string>{"info test: round 0", "info test: another place"}));
}

TEST_F(Log, RateLimitLetsTheFirstPass) {
  listen(LogLevel::Debug);
  for (int i = 0; i < 100; ++i) IGNIS_LOG_EVERY_MS(Info, "test", 3'600'000) << i;
  EXPECT_EQ(lines_, std::vector<std::string>{"info test: 0"});
  for (int i = 0; i < 3; ++i) IGNIS_LOG_EVERY_MS(Info, "always", 0) << i;
  EXPECT_EQ(lines_.size(), 4U);
}

TEST_F(Log, WorksAsTheOnlyStatementOfAnIf) {
  listen(LogLevel::Debug);
  if (lines_.empty()) IGNIS_LOG(Info, "test") << "yes";
  else IGNIS_LOG(Info, "test") << "no";
  EXPECT_EQ(lines_, std::vector<std::string>{"info test: yes"});
}

TEST_F(Log, ASinkThatLogsDoesNotRecurse) {
  int calls = 0;
  set_log_sink(
      [&calls](const LogRecord&) {
        ++calls;
        IGNIS_LOG(Error, "test") << "from the sink";
      },
      LogLevel::Debug);
  IGNIS_LOG(Error, "test") << "from outside";
  EXPECT_EQ(calls, 1);
}

TEST_F(Log, ThreadsSpeakOneAtATime) {
  listen(LogLevel::Debug);
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([] {
      for (int i = 0; i < 200; ++i) IGNIS_LOG(Info, "test") << i;
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(lines_.size(), 800U);
}

}  // namespace
}  // namespace ignis
