// Reads every include below src/ignis and holds it against the table of layers. The table is the architecture: a row
// changes only together with docs/README.md.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace ignis {
namespace {

namespace fs = std::filesystem;

struct Layer {
  std::string folder;  ///< below src/ignis; the longest prefix of a file's path counts
  std::vector<std::string> may_include;  ///< folders of ours, besides itself
  std::vector<std::string> third_party;  ///< first parts of include paths from other projects
};

const std::vector<Layer>& layers() {
  // clang-format off
  static const std::vector<Layer> table = {
      {"base",     {}, {}},
      {"ir",       {"base"}, {"xxhash.h"}},
      {"tensor",   {"base", "ir"}, {}},
      {"onnx",     {"base", "ir", "tensor"}, {"protozero", "sodium.h", "xxhash.h"}},
      {"schedule", {"base", "ir"}, {"xxhash.h"}},
      {"codegen",  {"base", "ir"}, {"xxhash.h"}},
      {"codegen/render",  {"base", "ir", "codegen"}, {"llvm", "fmt"}},
      {"codegen/compile", {"base", "ir", "codegen"}, {"llvm"}},
      {"interp",   {"base", "ir"}, {}},
      {"runtime",  {"base"}, {}},
      {"exec",     {"base", "runtime"}, {"sodium.h"}},
      {"vdev/queue", {"base", "runtime"}, {}},
      {"drivers",  {"base", "runtime"}, {}},
      {"engine",   {"base", "ir", "tensor", "onnx", "schedule", "codegen", "interp", "runtime", "exec"}, {"xxhash.h", "sodium.h", "sqlite3.h"}},
      {"engine/queues", {"base", "runtime", "exec"}, {}},
      {"engine/capture", {"base", "runtime", "exec", "engine/queues"}, {}},
      {"engine/eager", {"base", "ir", "tensor", "schedule", "codegen", "interp", "runtime", "exec", "engine", "engine/queues", "engine/capture"}, {"xxhash.h"}},
      {"engine/callable", {"base", "ir", "tensor", "runtime", "exec", "engine", "engine/queues", "engine/capture", "engine/eager"}, {}},
      {"engine/tune", {"base", "ir", "tensor", "onnx", "schedule", "codegen", "runtime", "exec", "engine"}, {}},
      {"pipeline/frames",    {"base"}, {"nlohmann"}},
      {"pipeline/messages",  {"base"}, {"capnp", "kj", "event.capnp.h"}},
      {"pipeline/transport", {"base", "pipeline/messages"}, {"zmq.h"}},
      {"pipeline/driver_monitoring", {"base", "runtime", "exec", "pipeline/frames", "pipeline/messages"}, {}},
      {"pipeline/driver_monitoring/build", {"base", "ir", "tensor", "onnx", "runtime", "exec", "engine", "pipeline/frames", "pipeline/messages", "pipeline/driver_monitoring"}, {"sodium.h"}},
      {"pipeline/road", {"base", "runtime", "exec", "pipeline/frames", "pipeline/messages"}, {}},
      {"pipeline/road/build", {"base", "ir", "tensor", "onnx", "runtime", "exec", "engine", "pipeline/frames", "pipeline/messages", "pipeline/road"}, {}},
  };
  // clang-format on
  return table;
}

const std::string kRoot = std::string(IGNIS_SOURCE_DIR) + "/src/ignis/";

struct Include {
  std::string path;
  bool is_quoted;
  int line;
};

std::vector<Include> read_includes(const fs::path& file) {
  std::vector<Include> result;
  std::ifstream stream(file);
  std::string text;
  for (int line = 1; std::getline(stream, text); ++line) {
    const size_t hash = text.find_first_not_of(" \t");
    if (hash == std::string::npos || text[hash] != '#') continue;
    const size_t word = text.find_first_not_of(" \t", hash + 1);
    if (word == std::string::npos || text.compare(word, 7, "include") != 0) continue;
    const size_t open = text.find_first_of("\"<", word);
    if (open == std::string::npos) continue;
    const size_t close = text.find_first_of("\">", open + 1);
    if (close == std::string::npos) continue;
    result.push_back({text.substr(open + 1, close - open - 1), text[open] == '"', line});
  }
  return result;
}

std::vector<fs::path> sources_below(const std::string& folder) {
  std::vector<fs::path> result;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    const std::string extension = entry.path().extension().string();
    if (extension == ".h" || extension == ".cpp") result.push_back(entry.path());
  }
  std::sort(result.begin(), result.end());
  return result;
}

bool is_below(const std::string& path, const std::string& folder) {
  return path == folder || path.starts_with(folder + "/");
}

/// The row with the longest folder that holds `path` (relative to src/ignis).
const Layer* layer_of(const std::string& path) {
  const Layer* best = nullptr;
  for (const Layer& layer : layers()) {
    if (is_below(path, layer.folder) &&
        (best == nullptr || layer.folder.size() > best->folder.size())) {
      best = &layer;
    }
  }
  return best;
}

bool is_test_file(const fs::path& file) {
  // Tests may look across: a compiled kernel is held against the reference. So may what only tests are linked with.
  const std::string name = file.filename().string();
  return name.ends_with("_test.cpp") || name.starts_with("test_");
}

/// Why this include is not allowed, or nothing.
std::optional<std::string> fault_of(const std::string& file, const Layer& layer,
                                    const Include& include) {
  const std::string prefix = "ignis/";
  if (include.path.starts_with(prefix)) {
    if (!include.is_quoted) return "is written with <>";
    const std::string target = include.path.substr(prefix.size());
    if (!fs::exists(kRoot + target)) return "does not exist";
    const Layer* target_layer = layer_of(target);
    if (target_layer == nullptr) return "is in no layer";
    if (is_below(target, layer.folder)) return std::nullopt;
    // A folder of its own row may include the rows below its top folder only when that row says so.
    const bool allowed =
        std::any_of(layer.may_include.begin(), layer.may_include.end(),
                    [&](const std::string& folder) { return is_below(target, folder); });
    if (!allowed) return "is not a layer that " + layer.folder + " may include";
    return std::nullopt;
  }
  if (include.is_quoted && fs::exists(fs::path(kRoot + file).parent_path() / include.path)) {
    return "is relative; the include path is src/";
  }
  // The standard library's headers have no dot and no slash; the C library's and the system's end in .h.
  const std::string top = include.path.substr(0, include.path.find('/'));
  const bool is_cpp_standard = include.path.find_first_of("./") == std::string::npos;
  static const std::set<std::string> kSystem = {
      "sys",     "linux",   "unistd.h", "fcntl.h", "sched.h",     "pthread.h", "elf.h",  "errno.h",
      "dlfcn.h", "cpuid.h", "signal.h", "spawn.h", "immintrin.h", "time.h",    "poll.h",
  };
  const bool is_third_party =
      std::find(layer.third_party.begin(), layer.third_party.end(), top) != layer.third_party.end();
  if (is_cpp_standard || kSystem.contains(top) || is_third_party) return std::nullopt;
  return "is a third-party header that " + layer.folder + " may not include";
}

TEST(Layering, EveryIncludeFollowsTheTable) {
  int files = 0;
  int includes = 0;
  for (const fs::path& path : sources_below(kRoot)) {
    const std::string file = fs::relative(path, kRoot).string();
    if (file.find('/') == std::string::npos)
      continue;  // the umbrella header may include every folder
    if (is_test_file(path)) continue;
    const Layer* layer = layer_of(file);
    ASSERT_NE(layer, nullptr) << "src/ignis/" << file << " lies in no folder of the table.";
    ++files;
    for (const Include& include : read_includes(path)) {
      ++includes;
      const std::optional<std::string> fault = fault_of(file, *layer, include);
      EXPECT_FALSE(fault) << "src/ignis/" << file << ":" << include.line << ": " << include.path
                          << " " << *fault;
    }
  }
  EXPECT_GT(files, 20) << "The sources were not found below " << kRoot;
  EXPECT_GT(includes, 100);
}

TEST(Layering, NothingInTheTableGoesInACircle) {
  // Follows every row to its end; a folder that reaches itself by way of another one is a circle.
  std::map<std::string, std::vector<std::string>> edges;
  for (const Layer& layer : layers()) {
    const std::string top = layer.folder.substr(0, layer.folder.find('/'));
    for (const std::string& other : layer.may_include) {
      if (other != top) edges[top].push_back(other);
    }
  }
  for (const auto& [start, unused] : edges) {
    std::set<std::string> reached;
    std::vector<std::string> open = edges[start];
    while (!open.empty()) {
      const std::string folder = open.back();
      open.pop_back();
      if (!reached.insert(folder).second) continue;
      const auto found = edges.find(folder);
      if (found != edges.end()) open.insert(open.end(), found->second.begin(), found->second.end());
    }
    EXPECT_FALSE(reached.contains(start)) << start << " reaches itself";
  }
}

TEST(Layering, TheDeviceHalfKnowsNoCompiler) {
  const std::set<std::string> compiler = {"ir",      "tensor", "onnx",  "schedule",
                                          "codegen", "interp", "engine"};
  for (const Layer& layer : layers()) {
    if (layer.folder != "base" && layer.folder != "runtime" && layer.folder != "exec" &&
        layer.folder != "drivers") {
      continue;
    }
    for (const std::string& other : layer.may_include) {
      EXPECT_FALSE(compiler.contains(other)) << layer.folder << " includes " << other;
    }
  }
}

TEST(Layering, FindsWhatIsWrong) {
  const Layer& exec = *layer_of("exec/plan.h");
  EXPECT_TRUE(fault_of("exec/plan.h", exec, {"ignis/ir/node.h", true, 1}));
  EXPECT_TRUE(fault_of("exec/plan.h", exec, {"ignis/base/dtype.h", false, 1}));
  EXPECT_TRUE(fault_of("exec/plan.h", exec, {"ignis/base/missing.h", true, 1}));
  EXPECT_TRUE(fault_of("exec/plan.h", exec, {"plan.h", true, 1}));
  EXPECT_TRUE(fault_of("exec/plan.h", exec, {"llvm/IR/Module.h", false, 1}));
  EXPECT_FALSE(fault_of("exec/plan.h", exec, {"ignis/base/dtype.h", true, 1}));
  EXPECT_FALSE(fault_of("exec/plan.h", exec, {"vector", false, 1}));
  EXPECT_TRUE(fault_of("base/log.h", *layer_of("base/log.h"), {"fmt/core.h", false, 1}));
}

TEST(Readme, EveryFolderHasOne) {
  for (const auto& entry : fs::directory_iterator(kRoot)) {
    if (!entry.is_directory()) continue;
    EXPECT_TRUE(fs::exists(entry.path() / "README.md")) << entry.path();
  }
}

}  // namespace
}  // namespace ignis
