// `ignis dm` from outside: its errors, its log and replay, Ctrl-C, and the live page in a real browser. The models are
// made here; no file from elsewhere is needed.
#include "ignis/pipeline/driver_monitoring/build/test_synthetic_detector.h"
#include "ignis/pipeline/driver_monitoring/build/test_synthetic_model.h"

#include "tests/errors/models.h"
#include "tests/errors/run_tool.h"
#include "tools/ignis/dm/test_chromium.h"
#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <nlohmann/json.hpp>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <thread>

namespace ignis::testing {
namespace {

using Json = nlohmann::json;
using Words = std::vector<std::string>;
using pipeline::testing::SyntheticDetector;
using pipeline::testing::SyntheticModel;
using std::chrono::milliseconds;
using std::chrono::seconds;

/// A listening socket on a port of its own.
class TakenPort {
 public:
  TakenPort() : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    EXPECT_EQ(::bind(socket_, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(::listen(socket_, 1), 0);
    ::getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
  }
  ~TakenPort() { ::close(socket_); }
  TakenPort(const TakenPort&) = delete;
  TakenPort& operator=(const TakenPort&) = delete;
  std::string text() const { return std::to_string(port_); }

 private:
  int socket_;
  int port_ = 0;
};

/// The command while it runs, its output in files.
class BackgroundTool {
 public:
  BackgroundTool(Words arguments, std::string out) : out_(std::move(out)) {
    arguments.insert(arguments.begin(), IGNIS_TOOL_PATH);
    arguments.insert(arguments.end(), {"--cache", "off"});  // of whoever runs the tests
    std::vector<char*> argv;
    for (std::string& a : arguments) argv.push_back(a.data());
    argv.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, out_.c_str(),
                                     O_WRONLY | O_CREAT | O_TRUNC, 0600);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, (out_ + ".err").c_str(),
                                     O_WRONLY | O_CREAT | O_TRUNC, 0600);
    EXPECT_EQ(::posix_spawn(&process_, argv[0], &actions, nullptr, argv.data(), environ), 0);
    posix_spawn_file_actions_destroy(&actions);
  }
  ~BackgroundTool() {
    if (process_ > 0) {
      ::kill(process_, SIGKILL);
      ::waitpid(process_, nullptr, 0);
    }
  }
  BackgroundTool(const BackgroundTool&) = delete;
  BackgroundTool& operator=(const BackgroundTool&) = delete;

  std::string output() const { return read_text(out_); }
  std::string errors() const { return read_text(out_ + ".err"); }
  /// The first text between `before` and the line's end; empty when it does not come within `limit`.
  std::string wait_for(const std::string& before, seconds limit) const {
    const auto deadline = std::chrono::steady_clock::now() + limit;
    do {
      const std::string text = output();
      const size_t at = text.find(before);
      const size_t end = at == std::string::npos ? at : text.find('\n', at);
      if (end != std::string::npos)
        return text.substr(at + before.size(), end - at - before.size());
      std::this_thread::sleep_for(milliseconds(50));
    } while (std::chrono::steady_clock::now() < deadline);
    return "";
  }
  void interrupt() { ::kill(process_, SIGINT); }
  void kill() { ::kill(process_, SIGKILL); }
  /// The exit code, or -1 when it still runs after `limit`.
  int wait(seconds limit) {
    const auto deadline = std::chrono::steady_clock::now() + limit;
    int status = 0;
    while (::waitpid(process_, &status, WNOHANG) == 0) {
      if (std::chrono::steady_clock::now() > deadline) return -1;
      std::this_thread::sleep_for(milliseconds(20));
    }
    process_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

 private:
  std::string out_;
  pid_t process_ = -1;
};

class Dm : public ::testing::Test {
 protected:
  void SetUp() override {
    model_ = folder_.write("model.onnx", SyntheticModel().bytes());
    detector_ = folder_.write("detector.onnx", SyntheticDetector().bytes());
  }
  Json report(Words arguments, int exit_code = 0) {
    arguments.push_back("--json");
    const ToolRun run = run_tool(arguments);
    EXPECT_EQ(run.exit_code, exit_code) << run.err;
    Json json = Json::parse(run.out, nullptr, false);
    EXPECT_TRUE(json.is_object()) << run.out << run.err;
    return json;
  }

  TemporaryFolder folder_;
  std::string model_, detector_;
};

const std::string kSource = "synthetic:drive";

TEST_F(Dm, UsageIsTwo) {
  const std::string& m = model_;
  expect_error({"dm"}, 2, "source");
  expect_error({"dm", kSource}, 2, "--model");
  expect_error({"dm", "v5l2:/dev/video0", "--model", m}, 2, "v5l2:/dev/video0");
  expect_error({"dm", "synthetic:nowhere", "--model", m}, 2, "nowhere");
  expect_error({"dm", "ring:bad/name", "--model", m}, 2, "bad/name");
  expect_error({"dm", "synthetic:drive,size=big", "--model", m}, 2, "big");
  expect_error({"dm", kSource, "--model", m, "--profile", "comma-99"}, 2, "comma-99");
  expect_error({"dm", kSource, "--model", m, "--side", "middle"}, 2, "middle");
  expect_error({"dm", kSource, "--model", m, "--calib", "1,2"}, 2, "1,2");
  expect_error({"dm", kSource, "--model", m, "--calib", "0,0,nan"}, 2, "0,0,nan");
  expect_error({"dm", kSource, "--model", m, "--intrinsics", "1280x720"}, 2, "1280x720");
  expect_error({"dm", kSource, "--model", m, "--view", "70000"}, 2, "70000");
  expect_error({"dm", kSource, "--model", m, "--publish", "udp://somewhere"}, 2, "udp://somewhere");
  expect_error({"dm", kSource, "--model", m, "--replay", "a.log", "--view", "0"}, 2, "--replay");
  // A camera that is not known: told before anything runs, with what is known and the way out.
  expect_error({"dm", "synthetic:drive,size=640x480", "--model", m}, 2, "--intrinsics 640x480:");
}

TEST_F(Dm, FilesAreSix) {
  const std::string& m = model_;
  const std::string none = folder_.path("none");
  expect_error({"dm", none + ".mp4", "--model", m}, 6, "none.mp4");
  expect_error({"dm", kSource, "--model", none + ".onnx"}, 6, "none.onnx");
  expect_error({"dm", kSource, "--model", m, "--calib", none + ".json"}, 6, "none.json");
  expect_error({"dm", kSource, "--model", m, "--log", "/no/such/folder/log"}, 6, "/no/such/folder");
  expect_error({"dm", kSource, "--model", m, "--record", "/no/such/folder/a.mp4"}, 6,
               "/no/such/folder");
  expect_error({"dm", kSource, "--model", m, "--replay", none}, 6, "none");
  expect_error({"dm", kSource, "--model", m, "--replay", m}, 6, "is no log");
  const TakenPort port;
  expect_error({"dm", kSource, "--model", m, "--view", port.text()}, 6,
               "Port " + port.text() + " of 127.0.0.1 is in use");
  expect_error({"dm", kSource, "--model", m, "--publish", "tcp://127.0.0.1:" + port.text()}, 6,
               port.text());
}

TEST_F(Dm, ModelsAreThree) {
  const std::string text = folder_.write("text.onnx", "no model at all");
  expect_error({"dm", kSource, "--model", text}, 3, "text.onnx");
  const std::string small = folder_.write("small.onnx", small_model());
  expect_error({"dm", kSource, "--model", small}, 3, "comma-38");
  expect_error({"dm", kSource, "--model", model_, "--profile", "face"}, 3, "face");
  SyntheticModel short_model;
  short_model.output_count = 500;
  expect_error({"dm", kSource, "--model", folder_.write("short.onnx", short_model.bytes())}, 3,
               "500");
}

TEST_F(Dm, WhoListensHearsThatThereIsNoModel) {
  const std::string text = folder_.write("text.onnx", "no model at all");
  SyntheticModel short_model;
  short_model.output_count = 500;
  const std::string cut = folder_.write("short.onnx", short_model.bytes());
  for (const std::string& model : {text, cut, folder_.path("nowhere.onnx")}) {
    SCOPED_TRACE(model);
    const Json json = report({"dm", "synthetic:drive,seconds=0.5", "--model", model, "--publish",
                              "ipc://" + folder_.path("state")},
                             model == folder_.path("nowhere.onnx") ? 6 : 3);
    EXPECT_GT(json["frames"].get<int>(), 0);
    EXPECT_EQ(json["valid"], 0);
    EXPECT_EQ(json["reasons"]["ModelUnavailable"], json["frames"]);
  }
}

TEST_F(Dm, NothingValidIsAFailure) {
  SyntheticModel zero;
  zero.is_zero = true;
  const std::string model = folder_.write("zero.onnx", zero.bytes());
  expect_error({"dm", "synthetic:drive,seconds=0.5", "--model", model}, 3, "DegenerateOutput");
}

TEST_F(Dm, LogsAndReplays) {
  const std::string source = "synthetic:drive,seconds=1", log = folder_.path("drive.log");
  const Json run = report({"dm", source, "--model", model_, "--calib", "0.01,0.02,-0.03", "--log",
                           log, "--publish", "tcp://127.0.0.1:*"});
  EXPECT_EQ(run["schema"], "ignis.dm/1");
  EXPECT_EQ(run["model"]["profile"], "comma-553");
  EXPECT_EQ(run["end"], "end of the source");
  EXPECT_EQ(run["frames"].get<int>() + run["dropped"].get<int>(), 20);
  EXPECT_GT(run["valid"].get<int>(), 0);
  EXPECT_GT(run["stages"]["model"]["p50_s"].get<double>(), 0);
  EXPECT_EQ(run["publish"]["done"], 2 * run["frames"].get<int>() + run["timeouts"].get<int>());
  EXPECT_EQ(run["log"]["lost"], 0);
  const Json same = report({"dm", source, "--model", model_, "--replay", log});
  EXPECT_TRUE(same["passed"].get<bool>());
  EXPECT_EQ(same["logged"], run["frames"]);
  EXPECT_EQ(same["missing"], 0);
  EXPECT_EQ(same["different"], 0);

  // Another model: different, and told by frame, field and both values.
  SyntheticModel other;
  other.biases = {{12, 5.0f}};  // face_prob of the left side
  const std::string other_path = folder_.write("other.onnx", other.bytes());
  const ToolRun text = run_tool({"dm", source, "--model", other_path, "--replay", log});
  EXPECT_EQ(text.exit_code, 1) << text.err;
  EXPECT_NE(text.out.find("leftDriverData.faceProb is "), std::string::npos) << text.out;
  EXPECT_NE(text.out.find("replay: different"), std::string::npos);
  // Frames of another drive are compared and differ; a shorter one leaves frames out. Neither passes.
  report({"dm", source + ",seed=5", "--model", model_, "--replay", log}, 1);
  const Json part =
      report({"dm", "synthetic:drive,seconds=0.2", "--model", model_, "--replay", log}, 1);
  EXPECT_GT(part["missing"].get<int>(), 0);
  EXPECT_EQ(part["different"], 0);
}

// The same drive by the model file and by its artifact gives the same messages; the artifact's identity is published.
TEST_F(Dm, RunsFromAnArtifact) {
  const std::string source = "synthetic:drive,seconds=0.5", log = folder_.path("file.log");
  report({"dm", source, "--model", model_, "--calib", "0.01,0.02,-0.03", "--log", log});
  const std::string artifact = folder_.path("model.ignis");
  const Json compiled = report({"compile", model_, "-o", artifact, "--golden", "off"});
  EXPECT_EQ(compiled["profile"], "comma-553");
  const Json shown = report({"inspect", artifact});
  EXPECT_EQ(shown["geometry"]["profile"], "comma-553");
  EXPECT_EQ(shown["parts"], compiled["parts"]);
  const Json same = report({"dm", source, "--model", artifact, "--replay", log});
  EXPECT_TRUE(same["passed"].get<bool>());
  EXPECT_EQ(same["model"]["hash"], shown["identity"]);
  EXPECT_EQ(same["model"]["profile"], "comma-553");
  // Damage is a refused model; a profile that it is not of, too.
  std::string bytes = read_text(artifact);
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
  const std::string damaged = folder_.write("damaged.ignis", bytes);
  EXPECT_EQ(run_tool({"dm", source, "--model", damaged}).exit_code, 3);
  EXPECT_EQ(run_tool({"dm", source, "--model", artifact, "--profile", "face"}).exit_code, 3);
  EXPECT_EQ(run_tool({"compile", model_, "-o", artifact, "--profile", "face"}).exit_code, 3);
  EXPECT_EQ(run_tool({"compile", model_, "-o", artifact, "--profile", "cat"}).exit_code, 2);
}

TEST_F(Dm, RecordsWhatItReplays) {
  const std::string clip = folder_.path("clip.nv12"), log = folder_.path("clip.log");
  const Json run = report({"dm", "synthetic:drive,seconds=0.5,size=1344x760", "--model", model_,
                           "--record", clip, "--log", log});
  EXPECT_EQ(run["record"]["done"].get<int>() + run["record"]["lost"].get<int>(),
            run["frames"].get<int>());
  EXPECT_EQ(run["record"]["errors"], 0);
  if (run["record"]["lost"] == 0) {
    EXPECT_TRUE(report({"dm", clip, "--model", model_, "--replay", log})["passed"].get<bool>());
  }
}

TEST_F(Dm, RawPredictionsOnlyWhenAskedFor) {
  const std::string with = folder_.path("with.log"), without = folder_.path("without.log");
  report(
      {"dm", "synthetic:drive,seconds=0.5", "--model", model_, "--log", with, "--raw-predictions"});
  report({"dm", "synthetic:drive,seconds=0.5", "--model", model_, "--log", without});
  EXPECT_GT(read_text(with).size(), read_text(without).size() + 553 * 4);
}

TEST_F(Dm, OneLineAndNoColourWithoutATerminal) {
  const ToolRun run = run_tool({"dm", kSource, "--model", detector_, "--seconds", "1.5"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(run.out.find('\x1b'), std::string::npos);
  EXPECT_EQ(run.out.find('\r'), std::string::npos);
  EXPECT_NE(run.out.find("\nframe "), std::string::npos) << run.out;
  EXPECT_NE(run.out.find("eyes ?/?"), std::string::npos) << "unknown is to be said:\n" << run.out;
  EXPECT_NE(run.out.find("CalibMissing"), std::string::npos);
}

TEST_F(Dm, CtrlCEndsInOrder) {
  const std::string log = folder_.path("c.log");
  BackgroundTool tool({"dm", kSource, "--model", detector_, "--log", log, "--view", "0"},
                      folder_.path("out"));
  ASSERT_NE(tool.wait_for("frame ", seconds(60)), "") << tool.errors();
  tool.interrupt();
  EXPECT_EQ(tool.wait(seconds(20)), 0) << tool.errors();
  EXPECT_NE(tool.output().find("; interrupted"), std::string::npos) << tool.output();
  EXPECT_GT(read_text(log).size(), 0u);
}

TEST_F(Dm, PageTellsThatTheProcessIsGone) {
  const auto program = Chromium::find();
  if (!program)
    GTEST_SKIP() << "No Chromium here (chromium-headless-shell): the live page is NOT tested.";
  BackgroundTool tool({"dm", kSource, "--model", model_, "--view", "0"}, folder_.path("out"));
  const std::string url = tool.wait_for("live page: ", seconds(60));
  ASSERT_NE(url, "") << tool.output() << tool.errors();
  Chromium browser(*program);
  ASSERT_TRUE(browser.is_running()) << *program << " does not start";
  browser.open(url);
  // A model without boxes: the place is shown, the size is not made up. Its poses are nonsense, but known.
  EXPECT_TRUE(
      browser.wait_until("document.body.dataset.frame > 3 && "
                         "document.body.dataset.connection === 'live'",
                         seconds(60)));
  EXPECT_NE(browser.evaluate("document.body.dataset.face"), "box");
  tool.kill();
  EXPECT_TRUE(
      browser.wait_until("document.body.dataset.message === 'Connection lost' && "
                         "document.body.dataset.valid === 'unknown'",
                         seconds(20)))
      << browser.evaluate("JSON.stringify(document.body.dataset)");
  EXPECT_EQ(browser.evaluate("document.getElementById('banner').hidden"), false);
}

TEST_F(Dm, PageShowsABoxedFaceInChromium) {
  const auto program = Chromium::find();
  if (!program)
    GTEST_SKIP() << "No Chromium here (chromium-headless-shell): the live page is NOT tested.";
  BackgroundTool tool({"dm", kSource, "--model", detector_, "--view", "0", "--calib", "0,0,0"},
                      folder_.path("out"));
  const std::string url = tool.wait_for("live page: ", seconds(60));
  ASSERT_NE(url, "") << tool.output() << tool.errors();
  EXPECT_EQ(url.find("http://127.0.0.1:"), 0u);
  Chromium browser(*program);
  ASSERT_TRUE(browser.is_running()) << *program << " does not start";
  browser.set_size(1280, 800);
  browser.open(url);
  EXPECT_TRUE(
      browser.wait_until("document.body.dataset.frame > 10 && "
                         "document.body.dataset.picture === '960x600' && "
                         "document.body.dataset.face === 'box'",
                         seconds(60)))
      << browser.evaluate("JSON.stringify(document.body.dataset)") << tool.output();
  // The picture is there: not one colour all over.
  EXPECT_EQ(
      browser.evaluate("(() => { const c = document.getElementById('picture');"
                       "const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;"
                       "let low = 255, high = 0;"
                       "for (let i = 0; i < d.length; i += 400) {"
                       "  low = Math.min(low, d[i]); high = Math.max(high, d[i]); }"
                       "return high - low > 100; })()"),
      true);
  // Two looks, some time apart: the values live.
  const Json first = browser.evaluate("Number(document.body.dataset.frame)");
  EXPECT_TRUE(browser.wait_until(
      "Number(document.body.dataset.frame) > " + std::to_string(first.get<int>() + 5),
      seconds(20)));
  EXPECT_EQ(browser.evaluate("document.querySelectorAll('#stages td').length"), 18);
  EXPECT_NE(browser.evaluate("document.getElementById('tile-p50').textContent"), "–");
  EXPECT_EQ(browser.screenshot().substr(1, 3), "PNG");
  tool.interrupt();
  EXPECT_EQ(tool.wait(seconds(20)), 0) << tool.errors();
  EXPECT_TRUE(
      browser.wait_until("document.body.dataset.connection !== 'live' && "
                         "document.body.dataset.face === 'none'",
                         seconds(20)));
}

}  // namespace
}  // namespace ignis::testing
