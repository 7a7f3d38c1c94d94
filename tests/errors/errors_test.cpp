// Every public error once: one line that says what is wrong, the documented exit code, no crash.
#include "tests/errors/models.h"
#include "tests/errors/run_tool.h"
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <fstream>

namespace ignis::testing {
namespace {

using Words = std::vector<std::string>;

class Errors : public ::testing::Test {
 protected:
  void SetUp() override {
    small_ = folder_.write("small.onnx", small_model());
    open_ = folder_.write("open.onnx", open_model());
  }
  std::string model(const std::string& bytes) { return folder_.write("model.onnx", bytes); }

  TemporaryFolder folder_;
  std::string small_, open_;
};

TEST_F(Errors, UsageIsTwo) {
  const std::string& m = small_;
  expect_error({}, 2, "subcommand");
  expect_error({"frobnicate"}, 2, "frobnicate");
  expect_error({"run"}, 2, "model");
  expect_error({"run", m, "--frobnicate"}, 2, "--frobnicate");
  expect_error({"run", m}, 2, "Input 'x' (f32 [2, 3]) is not given");
  expect_error({"run", m, "--input", "z:zeros"}, 2, "no input 'z'; its inputs are 'x'");
  expect_error({"run", m, "--input", "x:zeros", "--input", "x:ones"}, 2, "'x' is given twice");
  expect_error({"run", m, "--input", "x"}, 2, "'x' is none of");
  expect_error({"run", m, "--input", "x=2x3xf32=1,2"}, 2, "needs 6 values; 2 are given");
  expect_error({"run", m, "--input", "x=3x3xf32=1"}, 2, "[3, 3]; the model takes f32 [2, 3]");
  expect_error({"run", m, "--input", "x=2x3xi32=1"}, 2,
               "has i32 [2, 3]; the model takes f32 [2, 3]");
  expect_error({"run", m, "--input", "x=6xf32=1"}, 2, "is f32 [2, 3]; the given shape is [6]");
  expect_error({"run", m, "--input", "x:zeros", "--dim", "batch=2"}, 2,
               "no dim 'batch'; its open dims are none");
  expect_error({"run", m, "--input", "x:zeros", "--shape", "q=1"}, 2, "no input 'q'");
  expect_error({"run", open_, "--input", "x:zeros"}, 2, "dim 'batch' is open; give --dim batch=N");
  expect_error({"run", open_, "--input", "x:zeros", "--dim", "batch=-2"}, 2,
               "--dim takes a number");
  expect_error({"run", m, "--input", "x:zeros", "--output", "q=@f.npy"}, 2,
               "no output 'q'; its outputs are 'y'");
  expect_error({"run", m, "--input", "x:zeros", "--output", "y"}, 2, "--output takes NAME=@FILE");
  expect_error({"run", m, "--input", "x:zeros", "--threads", "0"}, 2,
               "--threads takes a number from 1");
  expect_error({"run", m, "--input", "x:zeros", "--cpus", "a"}, 2, "--cpus");
  expect_error(
      {
          "run",
          m,
          "--input",
          "x:zeros",
          "--tap",
          "b",
      },
      2, "--dump and --tap go together");
  expect_error({"run", m, "--input", "x:zeros", "--tap", "[", "--dump", folder_.path("d")}, 2,
               "no regular expression");
  expect_error({"run", m, "--input", "x:zeros", "--tap", "nothing", "--dump", folder_.path("d")}, 2,
               "matches no layer");
  expect_error({"run", m, "--input", "x:zeros", "--device", "cpu:::"}, 2, "cpu");
  expect_error({"run", m, "--input", "x:zeros", "--color", "red"}, 2, "color");
  expect_error({"inspect", m, "--emit", "poetry"}, 2, "emit");
  expect_error({"run", m, "--float-level", "loose"}, 2, "--float-level: loose not in");
  expect_error({"compile", m, "--winograd", "maybe"}, 2, "--winograd: maybe not in");
  expect_error({"bench", m, "--chain", "1"}, 2, "--chain: 1 not in");
  expect_error({"verify", m, "--stat", "mode"}, 2, "--stat takes max, mean");
  expect_error({"verify", m, "--rtol", "q:1"}, 2, "no output 'q'");
  expect_error({"verify", m, "--rtol", "-1"}, 2, "--rtol takes a number");
  expect_error({"verify", m, "--ref", "a.npz", "--ref-device", "cpu"}, 2, "Give one of");
}

TEST_F(Errors, CacheUsageIsTwo) {
  const std::string c = folder_.path("cache");
  expect_error({"cache"}, 2, "action");
  expect_error({"cache", "frobnicate", "--cache", c}, 2,
               "'frobnicate' is no command of ignis cache; there are ls, prune, verify, export");
  expect_error({"cache", "ls", "file", "--cache", c}, 2, "ls takes no file");
  expect_error({"cache", "export", "--cache", c}, 2, "export takes a FILE");
  expect_error({"cache", "import", "--cache", c}, 2, "import takes a FILE");
  expect_error({"cache", "ls", "--max-size", "1M", "--cache", c}, 2,
               "belongs to ignis cache prune");
  for (const char* size : {"M", "-1", "1X", "1.5G", "99999999999999999999", "1MB"}) {
    expect_error({"cache", "prune", "--max-size", size, "--cache", c}, 2,
                 std::string("not '") + size + "'");
    expect_error({"cache", "ls", "--cache-size", size, "--cache", c}, 2,
                 std::string("--cache-size takes bytes, as in 0, 4096, 100K, 100M or 2G, not '") +
                     size + "'");
  }
  expect_error({"cache", "ls", "--cache", "off"}, 2, "program cache is off");
}

TEST_F(Errors, ABadCacheFolderIsSixOnlyForWhoAsksForIt) {
  const std::string file = folder_.write("file", "x");
  expect_error({"cache", "ls", "--cache", file}, 6, "'" + file + "' is no folder");
  expect_error({"cache", "ls", "--cache", file + "/deeper"}, 6, "cannot be made");
  const std::string open_to_all = folder_.path("open");
  std::filesystem::create_directory(open_to_all);
  std::filesystem::permissions(open_to_all, std::filesystem::perms::all);
  expect_error({"cache", "verify", "--cache", open_to_all}, 6, "chmod go-w");
  for (const std::string& folder : {file, file + "/deeper", open_to_all}) {
    const ToolRun run = run_tool({"run", small_, "--input", "x:zeros", "--cache", folder});
    EXPECT_EQ(run.exit_code, 0) << run.err;
    const size_t at = run.err.find("warning: cache: The program cache is off");
    ASSERT_NE(at, std::string::npos) << run.err;
    EXPECT_EQ(run.err.find("warning: ", at + 1), std::string::npos) << run.err;
  }
}

TEST_F(Errors, DamagedCachesAndExportsAreSix) {
  const std::string c = folder_.path("cache");
  EXPECT_EQ(run_tool({"run", small_, "--input", "x:zeros", "--cache", c}).exit_code, 0);
  const std::string file = folder_.path("export");
  EXPECT_EQ(run_tool({"cache", "export", file, "--cache", c}).exit_code, 0);
  const std::string whole = read_text(file);
  ASSERT_GT(whole.size(), 100u);
  const auto refuses = [&](const std::string& bytes, const std::string& text) {
    expect_error({"cache", "import", folder_.write("bad", bytes), "--cache", c}, 6, text);
  };
  refuses("", "does not begin with IGNISPCA");
  refuses("nonsense", "does not begin with IGNISPCA");
  refuses(whole.substr(0, whole.size() - 1), "do not have its digest");
  refuses(whole.substr(0, 20), "bytes only");
  std::string changed = whole;
  changed[whole.size() / 2] = static_cast<char>(changed[whole.size() / 2] ^ 1);
  refuses(changed, "do not have its digest");
  changed = whole;
  changed[8] = 77;
  refuses(changed, "has format 77; this Ignis reads ");
  expect_error({"cache", "import", folder_.path("absent"), "--cache", c}, 6, "absent");
  expect_error({"cache", "import", folder_.path(""), "--cache", c}, 6, "no regular file");
  expect_error({"cache", "export", folder_.path("no/folder"), "--cache", c}, 6, "no/folder");
  std::filesystem::remove(c + "/v2/index.sqlite-wal");
  std::ofstream(c + "/v2/index.sqlite", std::ios::trunc) << std::string(8192, 'x');
  for (const char* action : {"ls", "verify", "prune"})
    expect_error({"cache", action, "--cache", c}, 6, "Delete the folder");
  EXPECT_EQ(run_tool({"run", small_, "--input", "x:zeros", "--cache", c}).exit_code, 0);
}

TEST_F(Errors, RefusedModelIsThree) {
  const Words inputs{"--input", "x:zeros"};
  expect_error({"inspect", model("this is no model")}, 3, "");
  expect_error({"inspect", model("")}, 3, "");
  const std::string whole = small_model();
  expect_error({"inspect", model(whole.substr(0, whole.size() / 2))}, 3, "");
  expect_error({"run", model(cyclic_model()), "--input", "x:zeros"}, 3, "");
  expect_error({"run", model(shape_error_model()), "--input", "x:zeros", "--input", "z:zeros"}, 3,
               "[4]");
  expect_error({"run", model(dtype_error_model()), "--input", "x:zeros", "--input", "z:zeros"}, 3,
               "missing");
  expect_error({"run", model(escaping_model()), "--input", "x:zeros"}, 3, "../secret");
  expect_error({"run", model(nested_model(40)), "--input", "c:zeros"}, 3, "");
}

TEST_F(Errors, MissingOperatorsAreListedAllAtOnce) {
  const std::string path = model(unsupported_model());
  expect_error({"run", path, "--input", "x:zeros"}, 3, "Frobnicate");
  expect_error({"run", path, "--input", "x:zeros"}, 3, "Quux");
  const ToolRun run = run_tool({"inspect", path, "--ops"});
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_NE(run.out.find("missing"), std::string::npos) << run.out;
}

TEST_F(Errors, OverALimitIsThree) {
  expect_error({"inspect", small_, "--limits", folder_.write("l.json", R"({"max_nodes": 2})")}, 3,
               "2");
  expect_error(
      {"inspect", small_, "--limits", folder_.write("l.json", R"({"max_file_bytes": 10})")}, 3,
      "10");
}

TEST_F(Errors, MissingDeviceIsFour) {
  expect_error({"run", small_, "--input", "x:zeros", "--device", "cuda"}, 4, "cuda");
  expect_error({"verify", small_, "--ref-device", "usb+amd"}, 4, "amd");
}

TEST_F(Errors, NoMemoryIsFive) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "The sanitizers need more address space than the limit leaves.";
#endif
  ToolEnvironment small_space;
  small_space.max_address_bytes = int64_t{3} << 30;
  for (const char* device : {"cpu", "cpu:interp"}) {
    const ToolRun run = run_tool(
        {"run", model(huge_model()), "--input", "x:zeros", "--device", device}, small_space);
    EXPECT_EQ(run.exit_code, 5) << device << ": " << run.err;
    EXPECT_NE(run.err.find("error: "), std::string::npos);
  }
}

TEST_F(Errors, FilesAreSix) {
  const std::string& m = small_;
  expect_error({"run", folder_.path("absent.onnx")}, 6, "absent.onnx");
  expect_error({"run", m, "--input", "x=@" + folder_.path("absent.npy")}, 6, "absent.npy");
  expect_error({"run", m, "--input", "x=@" + folder_.write("bad.npy", "nonsense")}, 6,
               "does not begin as an npy file");
  expect_error({"run", m, "--input", "x=@" + folder_.write("bad.npz", "nonsense")}, 6, "zip");
  expect_error({"run", m, "--input", "x=@" + folder_.write("bad.png", "nonsense")}, 6, "image");
  expect_error({"run", m, "--input", "x=@" + folder_.write("bad.pb", "nonsense")}, 6, "tensor");
  expect_error(
      {"run", m, "--input", "x:zeros", "--output", "y=@" + folder_.path("no/folder/y.npy")}, 6,
      "y.npy");
  expect_error({"run", m, "--input", "x:zeros", "--json=" + folder_.path("no/folder/r.json")}, 6,
               "r.json");
  expect_error({"run", m, "--config", folder_.path("absent.ini")}, 6, "absent.ini");
  expect_error({"inspect", m, "--limits", folder_.write("l.json", "[1]")}, 6, "no JSON object");
  expect_error({"inspect", m, "--limits", folder_.write("l.json", R"({"max_elephants": 1})")}, 6,
               "max_elephants");
  expect_error({"verify", m, "--ref", folder_.path("absent.npz")}, 6, "absent.npz");
  expect_error({"verify", m, "--test-data", folder_.path("absent")}, 6, "absent");
  expect_error({"bench", m, "--baseline", folder_.write("b.json", "{}")}, 6, "no report");
}

TEST_F(Errors, ErrorsAreJsonToo) {
  const ToolRun run = run_tool({"run", folder_.write("bad.onnx", "nonsense"), "--json"});
  EXPECT_EQ(run.exit_code, 3);
  const auto report = nlohmann::json::parse(run.out, nullptr, false);
  ASSERT_TRUE(report.is_object()) << run.out;
  EXPECT_EQ(report["exit_code"], 3);
  EXPECT_FALSE(report["error"]["message"].get<std::string>().empty());
}

TEST_F(Errors, UnknownEnvironmentNamesWarn) {
  ToolEnvironment environment;
  environment.variables = {"IGNIS_THREDS=2"};
  const ToolRun run = run_tool({"devices"}, environment);
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_NE(run.err.find("IGNIS_THREDS"), std::string::npos) << run.err;
}

}  // namespace
}  // namespace ignis::testing
