#include "tests/errors/run_tool.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

extern char** environ;

namespace ignis::testing {
namespace {

int open_empty(const std::string& path) {
  return ::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
}

}  // namespace

ToolRun run_tool(const std::vector<std::string>& arguments, const ToolEnvironment& environment) {
  const TemporaryFolder folder;
  const std::string out_path = folder.path("out"), err_path = folder.path("err");
  const int out = open_empty(out_path), err = open_empty(err_path);
  std::vector<std::string> words{IGNIS_TOOL_PATH};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<std::string> variables = environment.variables;
  // The cache of whoever runs the tests stays as it is.
  const bool has_cache = std::any_of(variables.begin(), variables.end(), [](const auto& variable) {
    return variable.starts_with("IGNIS_CACHE=");
  });
  if (!has_cache) variables.emplace_back("IGNIS_CACHE=off");
  for (char** each = environ; *each != nullptr; ++each) {
    if (std::strncmp(*each, "IGNIS_", 6) != 0) variables.emplace_back(*each);
  }
  std::vector<char*> argv, envp;
  for (std::string& word : words) argv.push_back(word.data());
  for (std::string& variable : variables) envp.push_back(variable.data());
  argv.push_back(nullptr);
  envp.push_back(nullptr);
  const pid_t child = ::fork();
  if (child == 0) {
    if (environment.max_address_bytes > 0) {
      const rlimit limit{static_cast<rlim_t>(environment.max_address_bytes),
                         static_cast<rlim_t>(environment.max_address_bytes)};
      ::setrlimit(RLIMIT_AS, &limit);
    }
    if (environment.max_file_bytes > 0) {
      const rlimit limit{static_cast<rlim_t>(environment.max_file_bytes),
                         static_cast<rlim_t>(environment.max_file_bytes)};
      ::setrlimit(RLIMIT_FSIZE, &limit);
    }
    ::dup2(out, STDOUT_FILENO);
    ::dup2(err, STDERR_FILENO);
    ::execve(argv[0], argv.data(), envp.data());
    ::_exit(127);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  ::close(out);
  ::close(err);
  ToolRun run;
  run.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  run.out = read_text(out_path);
  run.err = read_text(err_path);
  return run;
}

void expect_error(const std::vector<std::string>& arguments, int code, const std::string& text) {
  std::string command;
  for (const std::string& word : arguments) command += word + " ";
  SCOPED_TRACE(command);
  const ToolRun run = run_tool(arguments);
  EXPECT_EQ(run.exit_code, code) << run.err;
  const size_t at = run.err.find("error: ");
  ASSERT_NE(at, std::string::npos) << run.err;
  EXPECT_EQ(run.err.find("error: ", at + 1), std::string::npos) << run.err;
  const std::string line = run.err.substr(at, run.err.find('\n', at) - at);
  EXPECT_NE(line.find(text), std::string::npos) << line;
}

TemporaryFolder::TemporaryFolder() {
  std::string pattern = (std::filesystem::temp_directory_path() / "ignis_test_XXXXXX").string();
  folder_ = ::mkdtemp(pattern.data()) == nullptr ? "" : pattern;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  if (!folder_.empty()) std::filesystem::remove_all(folder_, ignored);
}

std::string TemporaryFolder::write(const std::string& name, const std::string& contents) const {
  std::ofstream(path(name), std::ios::binary) << contents;
  return path(name);
}

std::string read_text(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

}  // namespace ignis::testing
