#include "tools/ignis/dm/test_chromium.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <thread>

namespace ignis::testing {
namespace {

using Json = nlohmann::json;
using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

std::string decode_base64(const std::string& text) {
  std::string out;
  uint32_t bits = 0;
  int count = 0;
  for (const char c : text) {
    int value = -1;
    if (c >= 'A' && c <= 'Z') value = c - 'A';
    else if (c >= 'a' && c <= 'z') value = c - 'a' + 26;
    else if (c >= '0' && c <= '9') value = c - '0' + 52;
    else if (c == '+') value = 62;
    else if (c == '/') value = 63;
    if (value < 0) continue;
    bits = (bits << 6) | static_cast<uint32_t>(value);
    count += 6;
    if (count < 8) continue;
    count -= 8;
    out += static_cast<char>((bits >> count) & 0xff);
  }
  return out;
}

}  // namespace

std::optional<std::string> Chromium::find() {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "" : path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    for (const char* name : {"chromium-headless-shell", "chromium", "google-chrome"}) {
      const std::string program = folder + "/" + name;
      if (::access(program.c_str(), X_OK) == 0) return program;
    }
  }
  return std::nullopt;
}

Chromium::Chromium(const std::string& program) {
  int down[2], up[2];  // the browser reads commands from descriptor 3 and answers on 4
  char folder[] = "/tmp/ignis-chromium-XXXXXX";
  if (::mkdtemp(folder) == nullptr || ::pipe2(down, O_CLOEXEC) != 0 || ::pipe2(up, O_CLOEXEC) != 0)
    return;
  folder_ = folder;
  // Out of the way of 3 and 4 first, in case that a pipe got these numbers.
  const int read_end = ::fcntl(down[0], F_DUPFD_CLOEXEC, 10);
  const int write_end = ::fcntl(up[1], F_DUPFD_CLOEXEC, 10);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, read_end, 3);
  posix_spawn_file_actions_adddup2(&actions, write_end, 4);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  std::vector<std::string> arguments = {
      program,          "--headless",   "--remote-debugging-pipe", "--disable-gpu",
      "--no-first-run", "--mute-audio", "--disable-dev-shm-usage", "--user-data-dir=" + folder_,
      "about:blank"};
  if (::geteuid() == 0) arguments.insert(arguments.begin() + 1, "--no-sandbox");
  std::vector<char*> argv;
  for (std::string& a : arguments) argv.push_back(a.data());
  argv.push_back(nullptr);
  pid_t pid = -1;
  if (::posix_spawn(&pid, program.c_str(), &actions, nullptr, argv.data(), environ) == 0)
    process_ = pid;
  posix_spawn_file_actions_destroy(&actions);
  for (const int fd : {down[0], up[1], read_end, write_end}) ::close(fd);
  to_ = down[1];
  from_ = up[0];
  if (process_ < 0) return;
  const Json target = call("Target.createTarget", {{"url", "about:blank"}});
  if (!target.contains("targetId")) return;
  const Json session =
      call("Target.attachToTarget", {{"targetId", target["targetId"]}, {"flatten", true}});
  if (!session.contains("sessionId")) return;
  session_ = session["sessionId"].get<std::string>();
  call("Page.enable", Json::object());
  call("Runtime.enable", Json::object());
  call("Log.enable", Json::object());
}

Chromium::~Chromium() {
  if (process_ > 0) {
    if (is_running()) {
      session_.clear();
      call("Browser.close", Json::object(), milliseconds(3000));
    }
    int status = 0;
    for (int i = 0; i < 300 && ::waitpid(process_, &status, WNOHANG) == 0; ++i)
      std::this_thread::sleep_for(milliseconds(10));
    if (::waitpid(process_, &status, WNOHANG) == 0) {
      ::kill(process_, SIGKILL);
      ::waitpid(process_, &status, 0);
    }
  }
  for (const int fd : {to_, from_})
    if (fd >= 0) ::close(fd);
  std::error_code ignored;
  if (!folder_.empty()) std::filesystem::remove_all(folder_, ignored);
}

std::optional<Json> Chromium::read(Clock::time_point deadline) {
  for (;;) {
    if (const size_t end = buffer_.find('\0'); end != std::string::npos) {
      Json message = Json::parse(buffer_.substr(0, end), nullptr, false);
      buffer_.erase(0, end + 1);
      return message;
    }
    const auto left = std::chrono::duration_cast<milliseconds>(deadline - Clock::now()).count();
    if (left <= 0) return std::nullopt;
    pollfd waiting{from_, POLLIN, 0};
    if (::poll(&waiting, 1, static_cast<int>(left)) <= 0) return std::nullopt;
    char bytes[65536];
    const ssize_t count = ::read(from_, bytes, sizeof bytes);
    if (count <= 0) return std::nullopt;
    buffer_.append(bytes, static_cast<size_t>(count));
  }
}

Json Chromium::call(const std::string& method, const Json& params, milliseconds limit) {
  const int id = next_id_++;
  Json request{{"id", id}, {"method", method}, {"params", params}};
  if (!session_.empty()) request["sessionId"] = session_;
  const std::string text = request.dump() + '\0';
  for (size_t at = 0; at < text.size();) {
    const ssize_t count = ::write(to_, text.data() + at, text.size() - at);
    if (count <= 0) return Json::object();
    at += static_cast<size_t>(count);
  }
  const auto deadline = Clock::now() + limit;
  while (const auto message = read(deadline)) {
    if (!message->is_object()) continue;
    if (message->value("id", 0) == id) return message->value("result", Json::object());
    const std::string what = message->value("method", "");
    if (what == "Runtime.exceptionThrown" ||
        (what == "Runtime.consoleAPICalled" && (*message)["params"].value("type", "") == "error")) {
      complaints_.push_back((*message)["params"].dump());
    }
    if (what == "Log.entryAdded" && (*message)["params"]["entry"].value("level", "") == "error")
      complaints_.push_back((*message)["params"]["entry"].dump());
  }
  return Json::object();
}

void Chromium::set_size(int width_px, int height_px) {
  call("Emulation.setDeviceMetricsOverride",
       {{"width", width_px}, {"height", height_px}, {"deviceScaleFactor", 1}, {"mobile", false}});
}

void Chromium::open(const std::string& url) { call("Page.navigate", {{"url", url}}); }

Json Chromium::evaluate(const std::string& expression) {
  const Json answer =
      call("Runtime.evaluate",
           {{"expression", expression}, {"returnByValue", true}, {"awaitPromise", true}});
  if (!answer.contains("result") || answer.contains("exceptionDetails")) return nullptr;
  return answer["result"].value("value", Json());
}

bool Chromium::wait_until(const std::string& expression, milliseconds limit) {
  const auto deadline = Clock::now() + limit;
  do {
    if (evaluate(expression) == Json(true)) return true;
    std::this_thread::sleep_for(milliseconds(50));
  } while (Clock::now() < deadline);
  return false;
}

std::string Chromium::screenshot() {
  const Json answer = call("Page.captureScreenshot", {{"format", "png"}});
  return answer.contains("data") ? decode_base64(answer["data"].get<std::string>()) : "";
}

}  // namespace ignis::testing
