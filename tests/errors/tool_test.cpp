// What the tool answers when all is well, on small models with answers worked out by hand.
#include "tests/errors/models.h"
#include "tests/errors/run_tool.h"
#include "tools/io/files.h"
#include "tools/io/npy.h"
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace ignis::testing {
namespace {

using Json = nlohmann::json;

class Tool : public ::testing::Test {
 protected:
  void SetUp() override {
    small_ = folder_.write("small.onnx", small_model());
    open_ = folder_.write("open.onnx", open_model());
  }
  ToolRun run(const std::vector<std::string>& arguments) {
    ToolRun r = run_tool(arguments);
    EXPECT_EQ(r.exit_code, 0) << r.err;
    return r;
  }
  Json report(std::vector<std::string> arguments, int exit_code = 0) {
    arguments.push_back("--json");
    const ToolRun r = run_tool(arguments);
    EXPECT_EQ(r.exit_code, exit_code) << r.err;
    Json json = Json::parse(r.out, nullptr, false);
    EXPECT_TRUE(json.is_object()) << r.out;
    return json;
  }

  TemporaryFolder folder_;
  std::string small_, open_;
  const std::string input_ = "x=2x3xf32=0,0.5,1,2,-3,0.75";  // relu(2x - 1) = 0, 0, 1, 3, 0, 0.5
};

TEST_F(Tool, RunsOnEveryDevice) {
  for (const char* device : {"cpu", "cpu:interp", "cpu:llvm:sse2"}) {
    const Json json =
        report({"run", small_, "--input", input_, "--print-max", "6", "--device", device});
    EXPECT_EQ(json["outputs"][0]["values"], Json({0.0, 0.0, 1.0, 3.0, 0.0, 0.5})) << device;
    EXPECT_EQ(json["outputs"][0]["shape"], Json({2, 3}));
    EXPECT_EQ(json["outputs"][0]["max"], 3.0);
  }
}

TEST_F(Tool, TextHasNoColourWithoutATerminal) {
  const ToolRun r = run({"run", small_, "--input", input_, "--print-max", "2"});
  EXPECT_NE(r.out.find("y = 0, 0, …"), std::string::npos) << r.out;
  EXPECT_EQ(r.out.find('\x1b'), std::string::npos);
  EXPECT_EQ(r.err, "");
}

TEST_F(Tool, WritesOutputsAndReadsThemBack) {
  run({"run", small_, "--input", input_, "--output", "y=@" + folder_.path("y.npy"), "--output",
       "@" + folder_.path("all.npz"), "--output", "y=@" + folder_.path("y.raw"), "--quiet"});
  const HostTensor y = tools::parse_npy(tools::read_file(folder_.path("y.npy")).value()).value();
  EXPECT_EQ(y.shape, (Shape{2, 3}));
  EXPECT_EQ(element_as_double(y, 3), 3);
  EXPECT_EQ(tools::parse_npz(tools::read_file(folder_.path("all.npz")).value()).value()[0].first,
            "y");
  EXPECT_EQ(tools::read_file(folder_.path("y.raw"))->size(), 24u);
  const Json json =
      report({"run", small_, "--input", "x=@" + folder_.path("y.npy"), "--print-max", "6"});
  EXPECT_EQ(json["outputs"][0]["values"][3], 5.0);
}

TEST_F(Tool, DumpsTappedLayers) {
  run({"run", small_, "--input", input_, "--tap", "shift", "--dump", folder_.path("dump")});
  const HostTensor b =
      tools::parse_npy(tools::read_file(folder_.path("dump/0_b.npy")).value()).value();
  EXPECT_EQ(element_as_double(b, 0), -1);
  EXPECT_EQ(element_as_double(b, 4), -7);
}

TEST_F(Tool, OpenDimsAreBoundByOptionOrInput) {
  EXPECT_EQ(report({"run", open_, "--input", "x:ones", "--dim", "batch=2"})["outputs"][0]["shape"],
            Json({2, 3}));
  EXPECT_EQ(report({"run", open_, "--input", "x:ones", "--shape", "x=4x3"})["outputs"][0]["shape"],
            Json({4, 3}));
  EXPECT_EQ(report({"run", open_, "--input", "x=5x3xf32=1"})["outputs"][0]["shape"], Json({5, 3}));
}

TEST_F(Tool, ConfigFileAndEnvironment) {
  const std::string config = folder_.write("ignis.ini", "device=cpu:interp\nseed=5\n");
  EXPECT_EQ(report({"run", small_, "--input", input_, "--config", config})["device"], "cpu:interp");
  ToolEnvironment environment;
  environment.variables = {"IGNIS_DEVICE=cpu:interp"};
  const ToolRun r = run_tool({"run", small_, "--input", input_, "--json"}, environment);
  EXPECT_EQ(Json::parse(r.out)["device"], "cpu:interp");
}

TEST_F(Tool, VerifyPassesAndFindsADifference) {
  const Json good = report({"verify", small_, "--layers", "--soak", "3", "--seed", "1"});
  EXPECT_TRUE(good["passed"]);
  ASSERT_EQ(good["cases"][0]["layers"]["layers"].size(), 3u);
  EXPECT_EQ(good["cases"][0]["layers"]["layers"][1]["output"], "b");
  EXPECT_EQ(good["cases"][0]["soak"]["different"], 0);
  // relu(2x - 1) of the input, with one element wrong by 0.25.
  const HostTensor x =
      HostTensor::from(DType::Float32, {2, 3}, std::vector<float>{0, 0.5f, 1, 2, -3, 0.75f});
  const HostTensor y =
      HostTensor::from(DType::Float32, {2, 3}, std::vector<float>{0, 0, 1, 3.25f, 0, 0.5f});
  const std::string ref = folder_.path("ref.npz");
  ASSERT_TRUE(tools::write_file(ref, tools::format_npz({{"x", x}, {"y", y}}).value()));
  const Json bad = report({"verify", small_, "--ref", ref}, 1);
  EXPECT_FALSE(bad["passed"]);
  EXPECT_EQ(bad["cases"][0]["outputs"][0]["worst_index"], 3);
  EXPECT_EQ(bad["cases"][0]["outputs"][0]["max_abs"], 0.25);
  EXPECT_TRUE(report({"verify", small_, "--ref", ref, "--atol", "y:0.3"})["passed"]);
}

TEST_F(Tool, VerifyNamesTheKernelWithASeededFault) {
  const Json json = report({"verify", small_, "--layers", "--fault", "0"}, 1);
  const Json& layers = json["cases"][0]["layers"];
  EXPECT_NE(layers["first_kernel_beyond"]["layer"].get<std::string>().find("clip"),
            std::string::npos)
      << layers;
  EXPECT_TRUE(layers["first_layer_beyond"].is_null());  // the programs beside it have no fault
}

TEST_F(Tool, VerifyComparesTheKernelsOfAChainApart) {
  const std::string model = folder_.write("attention.onnx", attention_model());
  const Json good = report({"verify", model, "--layers", "--chain", "on"})["cases"][0]["layers"];
  ASSERT_EQ(good["kernels"].size(), 1u) << good;
  EXPECT_GE(good["kernels"][0]["stores"], 3);
  ASSERT_EQ(good["apart"].size(), 3u);
  EXPECT_EQ(good["apart"][0]["layer"], "scores");
  EXPECT_EQ(good["apart"][1]["layer"], "weights");
  EXPECT_EQ(good["apart"][1]["shape"], Json({1, 2, 9, 7}));
  EXPECT_EQ(good["layers"].size(), 3u);
  const Json plain = report({"verify", model, "--layers", "--chain", "off"})["cases"][0]["layers"];
  EXPECT_TRUE(plain["apart"].empty());
  EXPECT_EQ(plain["kernels"].size(), 3u);
  const Json bad = report({"verify", model, "--layers", "--chain", "on", "--fault", "0"},
                          1)["cases"][0]["layers"];
  EXPECT_FALSE(bad["first_kernel_beyond"].is_null());
  EXPECT_TRUE(bad["first_apart_beyond"].is_null()) << "the program without chains has no fault";
}

TEST_F(Tool, InspectShowsEveryStage) {
  const Json json =
      report({"inspect", small_, "--ops", "--shapes", "--weights", "--kernels", "--memory-plan"});
  EXPECT_EQ(json["info"]["inputs"][0]["dims"], Json({2, 3}));
  EXPECT_EQ(json["ops"].size(), 3u);
  EXPECT_EQ(json["shapes"][2]["shape"], Json({2, 3}));
  EXPECT_EQ(json["kernels"].size(), 1u);  // fused
  EXPECT_EQ(json["memory_plan"]["arena_bytes"], 0);
  for (const char* stage : {"graph", "kernels", "passes", "llvm", "c", "asm"}) {
    const Json emitted = report({"inspect", small_, "--emit", stage});
    EXPECT_FALSE(emitted["emit"][0]["text"].get<std::string>().empty()) << stage;
  }
}

TEST_F(Tool, BenchReportsStagesAndPercentiles) {
  const std::string baseline = folder_.path("b.json");
  run({"bench", small_, "--duration", "0.05", "--warmup", "1", "--profile", "--json=" + baseline,
       "--samples", folder_.path("s.csv")});
  const Json json = Json::parse(read_text(baseline));
  EXPECT_GE(json["steady"]["count"].get<int>(), 10);
  EXPECT_LE(json["steady"]["p50_s"].get<double>(), json["steady"]["p99.9_s"].get<double>());
  EXPECT_GT(json["stages"]["compile_s"].get<double>(), 0);
  EXPECT_FALSE(json["passes"].empty());
  EXPECT_EQ(json["profile"].size(), 1u);
  EXPECT_NE(read_text(folder_.path("s.csv")).find("seconds\n"), std::string::npos);
  Json slow = json, fast = json;
  slow["steady"]["p50_s"] = 1e3;
  fast["steady"]["p50_s"] = 1e-12;
  const std::vector<std::string> again{
      "bench", small_, "--duration", "0.01", "--warmup", "0", "--fail-above", "5%", "--baseline"};
  auto with = [&](const Json& file) {
    auto arguments = again;
    arguments.push_back(folder_.write("other.json", file.dump()));
    return run_tool(arguments).exit_code;
  };
  EXPECT_EQ(with(slow), 0);
  EXPECT_EQ(with(fast), 1);
}

TEST_F(Tool, ProfilesEachCallAndWritesATrace) {
  const std::string trace = folder_.path("trace.json");
  const Json json = report({"profile", small_, "--runs", "3", "--by", "op", "--trace", trace});
  EXPECT_GE(json["rows"].size(), 1u);
  EXPECT_GT(json["rows"][0]["seconds"].get<double>(), 0);
  const Json events = Json::parse(read_text(trace))["traceEvents"];
  int runs = 0;
  for (const Json& event : events) runs += event["cat"] == "run" ? 1 : 0;
  EXPECT_EQ(runs, 3);
  EXPECT_EQ(run_tool({"profile", small_, "--device", "cpu:interp"}).exit_code, 2);
  EXPECT_EQ(run_tool({"profile", small_, "--trace", folder_.path("none/t.json")}).exit_code, 6);
}

TEST_F(Tool, ProfileSaysWhyAKernelHasItsSchedule) {
  const Json json = report({"profile", small_, "--runs", "3", "--schedules"});
  ASSERT_FALSE(json["rows"][0]["why"].empty());
  const std::string note = json["rows"][0]["why"][0];
  const ToolRun shown = run({"profile", small_, "--runs", "3", "--schedules"});
  EXPECT_NE(shown.out.find("\n  " + note + "\n"), std::string::npos) << shown.out;
  EXPECT_EQ(run({"profile", small_, "--runs", "3"}).out.find(note), std::string::npos);
}

TEST_F(Tool, TakesHowAModelIsCompiled) {
  const std::vector<std::string> how = {"--float-level", "strict",  "--winograd",
                                        "off",           "--chain", "on"};
  const auto with = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), how.begin(), how.end());
    return arguments;
  };
  const std::string path = folder_.path("how.ignis");
  run(with({"compile", small_, "-o", path, "-q"}));
  const Json manifest = report({"inspect", path})["manifest"];
  EXPECT_EQ(manifest["options.float_level"], "strict");
  EXPECT_EQ(manifest["options.winograd"], "off");
  EXPECT_EQ(manifest["options.chain"], "on");
  run(with({"run", small_, "--input", input_}));
  run(with({"bench", small_, "--duration", "0.01", "--warmup", "0"}));
  run(with({"profile", small_, "--runs", "1"}));
  run(with({"inspect", small_, "--kernels"}));
  run(with({"verify", small_}));
  const ToolRun refused = run_tool({"run", path, "--input", input_, "--winograd", "off"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_NE(refused.err.find("is compiled already"), std::string::npos) << refused.err;
}

TEST_F(Tool, CompilesOnceAndRunsTheFile) {
  const std::string path = folder_.path("small.ignis");
  const Json compiled = report({"compile", small_, "-o", path, "--target", "cpu", "--target",
                                "cpu:llvm:sse2", "--threads", "2"});
  EXPECT_EQ(compiled["targets"].size(), 2u);
  for (const char* device : {"cpu", "cpu:llvm:sse2"}) {
    const Json json =
        report({"run", path, "--input", input_, "--print-max", "6", "--device", device});
    EXPECT_EQ(json["outputs"][0]["values"], Json({0.0, 0.0, 1.0, 3.0, 0.0, 0.5})) << device;
  }
  EXPECT_GE(
      report({"bench", path, "--duration", "0.05", "--warmup", "1"})["steady"]["count"].get<int>(),
      10);
  const Json shown = report({"inspect", path, "--kernels", "--memory-plan"});
  EXPECT_EQ(shown["manifest"]["model.name"], "small");
  EXPECT_EQ(shown["targets"][1]["inputs"][0]["shape"], Json({2, 3}));
  const std::string again = folder_.path("again.ignis");
  run({"compile", small_, "-o", again, "--target", "cpu", "--target", "cpu:llvm:sse2", "--threads",
       "2", "-q"});
  EXPECT_EQ(read_text(path), read_text(again));

  // What belongs to the model file is refused with the way out; damage is a refused model.
  const std::string bytes = read_text(path);
  const std::string cut = folder_.write("cut.ignis", bytes.substr(0, 300));
  std::string flipped = bytes;
  flipped[flipped.size() - 1] = static_cast<char>(flipped.back() ^ 1);
  const std::string damaged = folder_.write("damaged.ignis", flipped);
  const std::vector<std::pair<std::vector<std::string>, int>> refused = {
      {{"run", cut, "--input", input_}, 3},
      {{"run", damaged, "--input", input_}, 3},
      {{"inspect", damaged}, 3},
      {{"inspect", path, "--ops"}, 2},
      {{"compile", path}, 2},
      {{"compile", small_, "-o", folder_.path("x"), "--target", "cpu:interp"}, 2},
      {{"compile", small_, "-o", folder_.path("x"), "--target", "cpu:llvm:aarch64-sve"}, 2},
      {{"compile", small_, "-o", folder_.path("none/x.ignis")}, 6},
      {{"compile", small_, "-o", folder_.path("x"), "--sign", small_}, 6},
      {{"run", path, "--input", input_, "--dim", "n=1"}, 2},
      {{"run", path, "--input", input_, "--tap", "r", "--dump", folder_.path("d")}, 2},
      {{"run", path, "--input", input_, "--device", "cpu:interp"}, 3},
  };
  for (const auto& [arguments, exit_code] : refused) {
    const ToolRun r = run_tool(arguments);
    EXPECT_EQ(r.exit_code, exit_code) << arguments[0] << " " << arguments[1] << ": " << r.err;
    EXPECT_EQ(r.err.rfind("error: ", 0), 0u) << r.err;
  }
}

TEST_F(Tool, ACompiledModelCarriesWhatItIsCheckedWith) {
  const std::string path = folder_.path("small.ignis");
  const Json compiled = report({"compile", small_, "-o", path});
  EXPECT_EQ(compiled["golden"]["bytes"], 48);
  const Json good = report({"verify", path, "--soak", "5"});
  EXPECT_TRUE(good["passed"]);
  EXPECT_EQ(good["reference"], "golden");
  EXPECT_EQ(good["cases"][0]["outputs"][0]["atol"], 1e-4);
  EXPECT_EQ(good["cases"][0]["soak"]["different"], 0);
  const Json shown = report({"inspect", path});
  EXPECT_EQ(shown["golden"][0]["source"], "cpu:interp");
  EXPECT_EQ(shown["sections"][0]["name"], "manifest");
  EXPECT_TRUE(shown["sections"][0]["mandatory"]);

  // relu(2x - 1), with one element wrong by 0.25: such a file is only made when it is asked for, and verify says so.
  const HostTensor x =
      HostTensor::from(DType::Float32, {2, 3}, std::vector<float>{0, 0.5f, 1, 2, -3, 0.75f});
  const HostTensor y =
      HostTensor::from(DType::Float32, {2, 3}, std::vector<float>{0, 0, 1, 3.25f, 0, 0.5f});
  const std::string given = folder_.path("given.npz");
  ASSERT_TRUE(tools::write_file(given, tools::format_npz({{"x", x}, {"y", y}}).value()));
  const std::string odd = folder_.path("odd.ignis");
  const Json refused = report({"compile", small_, "-o", odd, "--golden", given}, 1);
  EXPECT_FALSE(refused["golden"]["passed"]);
  EXPECT_EQ(run_tool({"inspect", odd}).exit_code, 6);  // nothing was written
  report({"compile", small_, "-o", odd, "--golden", given, "--atol", "y:0.3", "--rtol", "0"});
  EXPECT_TRUE(report({"verify", odd})["passed"]);
  const Json bad = report({"verify", odd, "--atol", "0.2"}, 1);
  EXPECT_FALSE(bad["passed"]);
  EXPECT_EQ(bad["cases"][0]["outputs"][0]["worst_index"], 3);
  const ToolRun table = run_tool({"verify", odd, "--atol", "0.2"});
  EXPECT_EQ(table.exit_code, 1);
  EXPECT_NE(table.out.find("[1, 0]"), std::string::npos) << table.out;
  EXPECT_NE(table.out.find("DIFFERENT"), std::string::npos) << table.out;
  EXPECT_EQ(report({"verify", path, "--ref", given}, 1)["reference"], given);

  const std::string bare = folder_.path("bare.ignis");
  report({"compile", small_, "-o", bare, "--golden", "off"});
  const std::vector<std::pair<std::vector<std::string>, int>> wrong = {
      {{"verify", bare}, 2},
      {{"verify", path, "--layers"}, 2},
      {{"verify", path, "--ref-device", "cpu:interp"}, 2},
      {{"verify", path, "--input", input_}, 2},
      {{"compile", small_, "-o", odd, "--golden", folder_.path("none.npz")}, 6},
      {{"compile", small_, "-o", odd, "--golden", small_}, 6},
  };
  for (const auto& [arguments, exit_code] : wrong) {
    const ToolRun r = run_tool(arguments);
    EXPECT_EQ(r.exit_code, exit_code) << arguments[0] << " " << arguments[1] << ": " << r.err;
    EXPECT_EQ(r.err.rfind("error: ", 0), 0u) << r.err;
  }
}

TEST_F(Tool, KeepsProgramsFromOneRunToTheNext) {
  const std::string cache = folder_.path("cache");
  const auto run_with = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments{"run",         small_, "--input",        input_,
                                       "--print-max", "6",    "--explain-cache"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    Json json = report(arguments);
    EXPECT_EQ(json["outputs"][0]["values"], Json({0.0, 0.0, 1.0, 3.0, 0.0, 0.5}));
    return json["cache"];
  };
  Json first = run_with({"--cache", cache});
  EXPECT_EQ(first["folder"], cache);
  EXPECT_GT(first["misses"], 0);
  EXPECT_EQ(first["stored"], first["misses"]);
  EXPECT_EQ(first["kernels"][0]["outcome"], "miss");
  EXPECT_EQ(first["kernels"][0]["why"], "not there");
  Json second = run_with({"--cache", cache});
  EXPECT_EQ(second["misses"], 0);
  EXPECT_EQ(second["disk_hits"], first["misses"]);
  EXPECT_EQ(second["kernels"][0]["outcome"], "disk hit");
  EXPECT_EQ(run_with({"--cache", "off"})["kernels"][0]["outcome"], "unused");

  ToolEnvironment environment;
  environment.variables = {"IGNIS_CACHE=" + cache};
  const ToolRun text = run_tool({"run", small_, "--input", input_, "--explain-cache"}, environment);
  EXPECT_NE(text.out.find("disk hit"), std::string::npos) << text.out;
  environment.variables = {"IGNIS_CACHE=", "XDG_CACHE_HOME=" + folder_.path("xdg")};
  const ToolRun fresh =
      run_tool({"run", small_, "--input", input_, "--explain-cache"}, environment);
  EXPECT_NE(fresh.out.find(folder_.path("xdg") + "/ignis"), std::string::npos) << fresh.out;

  const Json rows = report({"cache", "ls", "--cache", cache});
  EXPECT_EQ(Json(rows["programs"].size()), first["misses"]);
  EXPECT_EQ(report({"cache", "verify", "--cache", cache})["whole"], first["misses"]);
  const std::string file = folder_.path("programs.bin"), other = folder_.path("other");
  report({"cache", "export", file, "--cache", cache});
  EXPECT_EQ(report({"cache", "import", file, "--cache", other})["added"], first["misses"]);
  EXPECT_EQ(report({"cache", "import", file, "--cache", other})["known"], first["misses"]);
  EXPECT_EQ(run_with({"--cache", other})["misses"], 0);
  EXPECT_EQ(report({"cache", "prune", "--max-size", "0", "--cache", other})["removed"],
            first["misses"]);
  EXPECT_EQ(run_with({"--cache", other})["misses"], first["misses"]);
  // Beyond its limit nothing stays.
  run_with({"--cache", other, "--cache-size", "0"});
  EXPECT_EQ(report({"cache", "ls", "--cache", other})["programs"].size(), 0u);
}

TEST_F(Tool, BenchTimesCompilerDiskAndMemoryApart) {
  const Json json = report({"bench", small_, "--warmup", "1", "--duration", "0.01"});
  EXPECT_GT(json["compile"]["cold"]["misses"], 0);
  EXPECT_GT(json["compile"]["cold"]["compile_s"], 0);
  for (const char* stage : {"disk_hit", "memory_hit"}) {
    EXPECT_EQ(json["compile"][stage]["misses"], 0) << stage;
    EXPECT_EQ(json["compile"][stage]["hits"], json["compile"]["cold"]["misses"]) << stage;
    EXPECT_EQ(json["compile"][stage]["compile_s"], 0) << stage;
    EXPECT_GT(json["compile"][stage]["cache_s"], 0) << stage;
    EXPECT_GT(json["compile"][stage]["link_s"], 0) << stage;
    EXPECT_GT(json["compile"][stage]["first_run_s"], 0) << stage;
  }
}

TEST_F(Tool, DevicesPassTheirSelfTest) {
  const Json json = report({"devices", "--check"});
  EXPECT_GE(json["devices"].size(), 2u);
  for (const Json& device : json["devices"]) EXPECT_EQ(device["self_test"], "passed") << device;
}

TEST_F(Tool, HelpAndVersion) {
  EXPECT_NE(run({"--version"}).out.find("ignis "), std::string::npos);
  for (const char* command : {"run", "bench", "inspect", "verify", "cache", "devices"}) {
    const ToolRun r = run({command, "--help"});
    EXPECT_NE(r.out.find("Example:"), std::string::npos) << command;
    EXPECT_NE(r.out.find("Exit codes:"), std::string::npos) << command;
  }
}

}  // namespace
}  // namespace ignis::testing
