// ignis compile --tune: what it finds is kept and replayed, and no candidate that goes wrong takes the build along.
#include "tests/errors/run_tool.h"
#include "tests/support/onnx_builder.h"
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <set>

namespace ignis::testing {
namespace {

using Json = nlohmann::json;

std::vector<float> wave(int64_t count, float scale) {
  std::vector<float> values;
  for (int64_t i = 0; i < count; ++i)
    values.push_back(scale * std::sin(0.7F * static_cast<float>(i)));
  return values;
}

/// Two convolutions and a product: kernels with something to choose.
std::string network() {
  OnnxModel model(17);
  model.graph.input("x", OnnxType::Float, {1, 16, 20, 20})
      .output("y", OnnxType::Float, {1, 12, 20, 20});
  model.graph.initializer(onnx_floats("w", {24, 16, 3, 3}, wave(int64_t{24} * 16 * 9, 0.2F)))
      .initializer(onnx_floats("v", {12, 24, 1, 1}, wave(int64_t{12} * 24, 0.3F)));
  OnnxNode window("Conv", {"x", "w"}, {"a"});
  window.attr("pads", std::vector<int64_t>{1, 1, 1, 1});
  model.graph.node(window)
      .node(OnnxNode("Relu", {"a"}, {"b"}))
      .node(OnnxNode("Conv", {"b", "v"}, {"y"}));
  return model.bytes();
}

class Tune : public ::testing::Test {
 protected:
  void SetUp() override { model_ = folder_.write("net.onnx", network()); }
  std::vector<std::string> command(std::vector<std::string> more) const {
    std::vector<std::string> words = {
        "compile", model_,      "-o", folder_.path("net.ignis"), "--cache",
        "off",     "--threads", "1",  "--tune-budget",           "8"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  Json tune(std::vector<std::string> more) {
    more.push_back("--json");
    const ToolRun r = run_tool(command(std::move(more)));
    EXPECT_EQ(r.exit_code, 0) << r.err;
    Json json = Json::parse(r.out, nullptr, false);
    EXPECT_TRUE(json.is_object()) << r.out;
    return json;
  }
  static Json run_report(std::vector<std::string> words, std::string* errors = nullptr) {
    words.insert(words.end(), {"--json", "--cache", "off", "--threads", "1"});
    const ToolRun r = run_tool(words);
    EXPECT_EQ(r.exit_code, 0) << r.err;
    if (errors != nullptr) *errors = r.err;
    return Json::parse(r.out, nullptr, false);
  }
  static std::set<std::string> outcomes(const Json& report) {
    std::set<std::string> set;
    for (const Json& dropped : report["tuning"]["dropped"]) set.insert(dropped["outcome"]);
    return set;
  }
  /// A record with one line changed.
  std::string changed(const std::string& record, const std::string& what,
                      const std::string& line) const {
    std::string text = read_text(record), result;
    for (size_t begin = 0; begin < text.size();) {
      const size_t end = std::min(text.find('\n', begin), text.size() - 1);
      const std::string one = text.substr(begin, end - begin);
      result += (one.starts_with(what) ? line : one) + "\n";
      begin = end + 1;
    }
    return folder_.write("changed.tuning", result);
  }

  TemporaryFolder folder_;
  std::string model_;
};

TEST_F(Tune, SearchesSavesAndReplays) {
  const std::string saved = folder_.path("net.tuning");
  const Json report = tune({"--tune", "fast", "--save-tuning", saved});
  EXPECT_GT(report["tuning"]["tried"], 0);
  EXPECT_TRUE(report["golden"]["passed"]);
  EXPECT_TRUE(report["tuning"]["dropped"].empty()) << report["tuning"]["dropped"];
  const std::string first = read_text(folder_.path("net.ignis"));
  // Again from the record: the same bytes.
  const ToolRun again = run_tool({"compile", model_, "-o", folder_.path("again.ignis"), "--cache",
                                  "off", "--threads", "1", "--load-tuning", saved});
  EXPECT_EQ(again.exit_code, 0) << again.err;
  EXPECT_EQ(again.err, "");
  EXPECT_TRUE(read_text(folder_.path("again.ignis")) == first);
  const Json inside = run_report({"inspect", folder_.path("net.ignis")});
  ASSERT_TRUE(inside.contains("tuning"));
  EXPECT_EQ(inside["tuning"].contains("choices"), !report["tuning"]["choices"].empty());
}

TEST_F(Tune, ACandidateThatCrashesHangsOrIsWrongIsDroppedAndReported) {
  const Json report = tune(
      {"--tune", "2", "--tune-limit", "1", "--tune-faults", "crash@2,hang@5,wrong@7,memory@9"});
  EXPECT_EQ(outcomes(report), (std::set<std::string>{"crashed", "hung", "wrong numbers"}));
  for (const Json& dropped : report["tuning"]["dropped"]) {
    EXPECT_NE(dropped["why"], "");
    EXPECT_NE(dropped["actions"], "");
    for (const Json& choice : report["tuning"]["choices"])
      EXPECT_NE(choice["choice"], dropped["actions"]);
  }
  EXPECT_GE(report["tuning"]["worker_restarts"], 2);
  EXPECT_TRUE(report["golden"]["passed"]);
}

TEST_F(Tune, EvenTheHeuristicsOwnListMayCrash) {
  const Json report = tune({"--tune", "fast", "--tune-faults", "crash@0"});
  EXPECT_EQ(outcomes(report), std::set<std::string>{"crashed"});
  EXPECT_TRUE(report["golden"]["passed"]);
}

TEST_F(Tune, ARecordOfAnotherMachineOrVersionIsIgnoredWithANote) {
  const std::string saved = folder_.path("net.tuning");
  tune({"--tune", "fast", "--save-tuning", saved});
  const Json plain = run_report({"run", model_, "-i", "x:uniform(0,1)", "--seed", "1"});
  for (const char* what : {"machine", "version"}) {
    std::string errors;
    const Json run =
        run_report({"run", model_, "-i", "x:uniform(0,1)", "--seed", "1", "--load-tuning",
                    changed(saved, what, std::string(what) + " another one")},
                   &errors);
    EXPECT_NE(errors.find("another " + std::string(what)), std::string::npos) << errors;
    EXPECT_NE(errors.find("ignored"), std::string::npos) << errors;
    EXPECT_EQ(run["outputs"], plain["outputs"]);
  }
}

TEST_F(Tune, ActionsThatDoNotFitTheirKernelGiveWayToTheHeuristics) {
  const std::string saved = folder_.path("net.tuning");
  const Json report =
      tune({"--tune", "fast", "--save-tuning", saved, "--winograd", "off", "--chain", "off"});
  std::string text = read_text(saved);
  const std::string digest = report.at("tuning").at("kernels").at(0).at("digest");
  text = text.substr(0, text.find("\n", text.find("version")) + 1);
  const std::string broken =
      folder_.write("broken.tuning", text + digest + " VECTOR(77,16,1); REORDER(9)\n");
  std::string errors;
  const Json run = run_report({"run", model_, "-i", "x:uniform(0,1)", "--seed", "1",
                               "--load-tuning", broken, "--winograd", "off", "--chain", "off"},
                              &errors);
  const Json plain = run_report({"run", model_, "-i", "x:uniform(0,1)", "--seed", "1", "--winograd",
                                 "off", "--chain", "off"});
  EXPECT_NE(errors.find("does not take the actions"), std::string::npos) << errors;
  EXPECT_EQ(run["outputs"], plain["outputs"]);
}

TEST_F(Tune, WrongUse) {
  expect_error(command({"--tune", "often"}), 2, "--tune takes off, fast or");
  expect_error(command({"--tune", "0"}), 2, "--tune takes off, fast or");
  expect_error(command({"--tune", "fast", "--target", "cpu:llvm:neon"}), 2, "for another one");
  expect_error(command({"--tune", "fast", "--target", "cpu", "--target", "cpu:llvm:sse2"}), 2,
               "for another one");
  expect_error(command({"--save-tuning", folder_.path("t")}), 2, "--save-tuning keeps");
  expect_error(command({"--load-tuning", folder_.path("absent")}), 6, "absent");
  expect_error(command({"--load-tuning", folder_.write("junk", "junk\n")}), 6, "Line 1");
  expect_error(command({"--load-tuning", folder_.write("half", "ignis tuning 1\nmachine x\n")}), 6,
               "does not say which machine and version");
  expect_error(
      command({"--load-tuning",
               folder_.write("odd", "ignis tuning 1\nmachine x\nversion y\nwinograd maybe\n")}),
      6, "Line 4");
}

}  // namespace
}  // namespace ignis::testing
