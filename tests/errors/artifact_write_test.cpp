// What becomes of an artifact whose writing does not end well: the path holds the old file or the whole new one.
#include "tests/errors/models.h"
#include "tests/errors/run_tool.h"
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

extern char** environ;

namespace ignis::testing {
namespace {

pid_t start_tool(std::vector<std::string> words) {
  words.insert(words.begin(), IGNIS_TOOL_PATH);
  words.insert(words.end(), {"--cache", "off", "--quiet"});
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  pid_t process = -1;
  EXPECT_EQ(::posix_spawn(&process, argv[0], nullptr, nullptr, argv.data(), environ), 0);
  return process;
}

class ArtifactWrite : public ::testing::Test {
 protected:
  void SetUp() override {
    model_ = folder_.write("small.onnx", small_model());
    path_ = folder_.path("small.ignis");
  }
  int count_files() const {
    int count = 0;
    for (const auto& entry :
         std::filesystem::directory_iterator(std::filesystem::path(path_).parent_path())) {
      count += entry.is_regular_file() ? 1 : 0;
    }
    return count;
  }

  TemporaryFolder folder_;
  std::string model_, path_;
};

TEST_F(ArtifactWrite, AFullDiskLeavesTheOldFile) {
  ASSERT_EQ(run_tool({"compile", model_, "-o", path_}).exit_code, 0);
  const std::string old = read_text(path_);
  ToolEnvironment full;
  full.max_file_bytes = 1000;  // less than a page; an artifact has more than one
  const ToolRun run = run_tool({"compile", model_, "-o", path_, "--golden", "off"}, full);
  EXPECT_EQ(run.exit_code, 6) << run.err;
  EXPECT_NE(run.err.find(path_), std::string::npos) << run.err;
  EXPECT_EQ(read_text(path_), old);
  EXPECT_EQ(count_files(), 2);  // nothing half-written stays beside it
  const std::string fresh = folder_.path("fresh.ignis");
  EXPECT_EQ(run_tool({"compile", model_, "-o", fresh}, full).exit_code, 6);
  EXPECT_FALSE(std::filesystem::exists(fresh));
}

TEST_F(ArtifactWrite, TwoWritersGiveOneWholeFile) {
  for (int round = 0; round < 3; ++round) {
    const pid_t first = start_tool({"compile", model_, "-o", path_, "--golden", "off"});
    const pid_t second = start_tool({"compile", model_, "-o", path_});
    int status = -1;
    EXPECT_EQ(::waitpid(first, &status, 0), first);
    EXPECT_EQ(status, 0);
    EXPECT_EQ(::waitpid(second, &status, 0), second);
    EXPECT_EQ(status, 0);
    EXPECT_EQ(run_tool({"inspect", path_}).exit_code, 0);
  }
}

// Killed at any time: the file is absent or whole, never in between.
TEST_F(ArtifactWrite, AKilledWriterLeavesNothingHalfWritten) {
  int whole = 0;
  for (int round = 0; round < 12; ++round) {
    std::filesystem::remove(path_);
    const pid_t writer = start_tool({"compile", model_, "-o", path_});
    std::this_thread::sleep_for(std::chrono::milliseconds(10 * round));
    ::kill(writer, SIGKILL);
    int status = 0;
    EXPECT_EQ(::waitpid(writer, &status, 0), writer);
    const ToolRun run = run_tool({"verify", path_});
    EXPECT_EQ(run.exit_code, std::filesystem::exists(path_) ? 0 : 6) << run.err;
    whole += run.exit_code == 0 ? 1 : 0;
  }
  RecordProperty("whole", whole);
}

}  // namespace
}  // namespace ignis::testing
