#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ignis::testing {

/// How a run of the `ignis` command ended.
struct ToolRun {
  int exit_code = -1;  ///< 128 + signal when it was killed
  std::string out, err;
};

struct ToolEnvironment {
  std::vector<std::string> variables;  ///< "NAME=value", added to the present ones without IGNIS_*
  int64_t max_address_bytes = 0;       ///< of the process; 0: as it is
  int64_t max_file_bytes = 0;          ///< that it writes, as on a disk that is full; 0: as it is
};

/// Runs the command that the build made with these arguments and waits for it.
ToolRun run_tool(const std::vector<std::string>& arguments,
                 const ToolEnvironment& environment = {});

/// Expects that the run ends with `code`, and that `text` stands in its one error line.
void expect_error(const std::vector<std::string>& arguments, int code, const std::string& text);

/// A folder that disappears with the object.
class TemporaryFolder {
 public:
  TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder();
  std::string path(const std::string& name) const { return folder_ + "/" + name; }
  /// Writes a file and returns its path.
  std::string write(const std::string& name, const std::string& contents) const;

 private:
  std::string folder_;
};

std::string read_text(const std::string& path);

}  // namespace ignis::testing
