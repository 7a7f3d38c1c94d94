#include "tools/ignis/dm/page_server.h"

#include "ignis/base/log.h"

#include "tools/ignis/dm/jpeg.h"
#include "tools/ignis/dm/page_files.h"
#include <httplib.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <thread>
#include <utility>

namespace ignis::tools {
namespace {

using std::chrono::milliseconds;

constexpr size_t kThreads = 24;  // a tab holds one for its events and one for its picture
constexpr int kMaxStreams = 8;   // tabs that get events at the same time
constexpr auto kStatistics = milliseconds(500);
constexpr uint64_t kWatchedNs =
    3'000'000'000;  // pictures are made while someone asked within this time

struct Picture {
  uint64_t sequence = 0;
  std::vector<std::byte> jpeg;
};

std::string event(const char* name, const nlohmann::ordered_json& data) {
  return std::string("event: ") + name +
         "\ndata: " + data.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) +
         "\n\n";
}

uint64_t number(const httplib::Request& request, const char* name) {
  if (!request.has_param(name)) return 0;
  return std::strtoull(request.get_param_value(name).c_str(), nullptr, 10);
}

}  // namespace

bool is_own_host(const std::string& host, int port) {
  const std::string suffix = ":" + std::to_string(port);
  for (const char* name : {"127.0.0.1", "localhost"}) {
    if (host == name + suffix || (port == 80 && host == name)) return true;
  }
  return false;
}

struct PageServer::State {
  State(LiveFeed& live, const PageInfo& page_info) : feed(live), info(info_json(page_info)) {}

  bool may_answer(const httplib::Request& request, httplib::Response& response);
  void add_routes();
  void send_picture(const httplib::Request& request, httplib::Response& response);
  void stream_events(httplib::Response& response);
  void make_pictures();

  LiveFeed& feed;
  nlohmann::ordered_json info;
  httplib::Server server;
  int port = 0;
  std::thread listener, painter;
  std::atomic<bool> is_stopping{false};
  std::atomic<int> streams{0};
  std::atomic<uint64_t> asked_ns{0};
  mutable std::mutex mutex;  // of what follows
  std::condition_variable painted;
  std::shared_ptr<const Picture> picture;
  SinkState counts;
};

/// Refuses what a page of another site could send: a name that only resolves to this machine, or a request from a
/// foreign page. The pictures are of people; "only on loopback" alone would let any open web page look at them.
bool PageServer::State::may_answer(const httplib::Request& request, httplib::Response& response) {
  const std::string origin = request.get_header_value("Origin");
  const std::string site = request.get_header_value("Sec-Fetch-Site");
  const bool is_own =
      is_own_host(request.get_header_value("Host"), port) &&
      (origin.empty() || (origin.starts_with("http://") && is_own_host(origin.substr(7), port))) &&
      (site.empty() || site == "same-origin" || site == "none");
  if (!is_own) {
    response.status = 403;
    response.set_content("This page is only for this machine: open " +
                             std::string("http://127.0.0.1:") + std::to_string(port) + "/\n",
                         "text/plain; charset=utf-8");
  }
  return is_own;
}

void PageServer::State::send_picture(const httplib::Request& request, httplib::Response& response) {
  const uint64_t after = number(request, "after");
  asked_ns.store(pipeline::monotonic_ns());
  feed.keep_frames(true);
  std::shared_ptr<const Picture> newest;
  {
    std::unique_lock lock(mutex);
    painted.wait_for(lock, milliseconds(1000), [&] {
      return is_stopping.load() || (picture != nullptr && picture->sequence > after);
    });
    newest = picture;
    if (newest != nullptr && newest->sequence > after) ++counts.done;
  }
  if (newest == nullptr || newest->sequence <= after) {
    response.status = 204;
    return;
  }
  response.set_header("X-Sequence", std::to_string(newest->sequence));
  response.set_content(reinterpret_cast<const char*>(newest->jpeg.data()), newest->jpeg.size(),
                       "image/jpeg");
}

void PageServer::State::stream_events(httplib::Response& response) {
  if (streams.fetch_add(1) >= kMaxStreams) {
    streams.fetch_sub(1);
    response.status = 503;
    response.set_content("Too many pages are open on this pipeline.\n", "text/plain");
    return;
  }
  struct Cursor {
    uint64_t sequence = 0;
    std::chrono::steady_clock::time_point next_statistics;
    bool has_begun = false;
    std::vector<Snapshot> snapshots;
  };
  auto cursor = std::make_shared<Cursor>();
  response.set_chunked_content_provider(
      "text/event-stream",
      [this, cursor](size_t, httplib::DataSink& sink) {
        std::string text;
        if (!cursor->has_begun) {
          text += "retry: 1000\n\n" + event("info", info);
          cursor->has_begun = true;
        }
        cursor->snapshots.clear();
        feed.read_after(cursor->sequence, milliseconds(250), LiveFeed::kHistory, cursor->snapshots);
        for (const Snapshot& snapshot : cursor->snapshots) {
          text += event("turn", snapshot_json(snapshot));
          cursor->sequence = snapshot.sequence;
        }
        const auto now = std::chrono::steady_clock::now();
        if (now >= cursor->next_statistics) {
          text += event("statistics", statistics_json(feed));
          cursor->next_statistics = now + kStatistics;
        }
        if (is_stopping.load() || feed.is_closed()) {
          text += event("end", {{"text", "The run has ended."}});
          (void)sink.write(text.data(), text.size());
          sink.done();
          return false;
        }
        return text.empty() || sink.write(text.data(), text.size());
      },
      [this](bool) { streams.fetch_sub(1); });
}

void PageServer::State::add_routes() {
  server.set_pre_routing_handler(
      [this](const httplib::Request& request, httplib::Response& response) {
        return may_answer(request, response) ? httplib::Server::HandlerResponse::Unhandled
                                             : httplib::Server::HandlerResponse::Handled;
      });
  server.set_default_headers(
      {{"Cache-Control", "no-store"},
       {"X-Content-Type-Options", "nosniff"},
       {"Referrer-Policy", "no-referrer"},
       {"Cross-Origin-Resource-Policy", "same-origin"},
       {"X-Frame-Options", "DENY"},
       {"Content-Security-Policy",
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"}});
  for (const PageFile& file : page_files()) {
    std::string pattern;
    for (const char c : file.path) pattern += c == '.' ? std::string("\\.") : std::string(1, c);
    server.Get(pattern, [&file](const httplib::Request&, httplib::Response& response) {
      response.set_content(file.contents.data(), file.contents.size(),
                           std::string(file.type).c_str());
    });
  }
  server.Get("/frame\\.jpg", [this](const httplib::Request& request, httplib::Response& response) {
    send_picture(request, response);
  });
  server.Get("/events", [this](const httplib::Request&, httplib::Response& response) {
    stream_events(response);
  });
}

/// The newest frame becomes a picture while someone looks; frames that come in the meantime are skipped.
void PageServer::State::make_pictures() {
  JpegEncoder encoder;
  uint64_t sequence = 0;
  while (!is_stopping.load()) {
    if (pipeline::monotonic_ns() - asked_ns.load() > kWatchedNs) feed.keep_frames(false);
    auto frame = feed.take_frame(sequence, milliseconds(100));
    if (!frame) {
      if (feed.is_closed()) std::this_thread::sleep_for(milliseconds(20));
      continue;
    }
    sequence = frame->sequence;
    auto jpeg = encoder.encode(frame->frame);
    frame.reset();  // its memory is wanted elsewhere
    const std::scoped_lock lock(mutex);
    if (!jpeg) {
      ++counts.errors;
      const std::string& message = jpeg.error().message();
      std::strncpy(counts.last_error.data(), message.c_str(), counts.last_error.size() - 1);
      continue;
    }
    picture = std::make_shared<Picture>(Picture{sequence, *std::move(jpeg)});
    painted.notify_all();
  }
}

PageServer::PageServer(std::unique_ptr<State> state) : state_(std::move(state)) {}

Result<std::unique_ptr<PageServer>> PageServer::start(int port, LiveFeed& feed,
                                                      const PageInfo& info) {
  auto state = std::make_unique<State>(feed, info);
  State& s = *state;
  s.counts.is_on = true;
  // SO_REUSEPORT, which the library sets by itself, would let two runs share a port, each with half of the requests.
  s.server.set_socket_options([](socket_t socket) {
    const int yes = 1;
    (void)::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  });
  s.server.new_task_queue = [] { return new httplib::ThreadPool(kThreads); };
  s.server.set_keep_alive_timeout(2);
  s.server.set_read_timeout(2);
  s.server.set_write_timeout(2);
  s.server.set_payload_max_length(1024);
  s.server.set_tcp_nodelay(true);
  s.add_routes();
  if (port == 0) {
    s.port = s.server.bind_to_any_port("127.0.0.1");
  } else if (s.server.bind_to_port("127.0.0.1", port)) {
    s.port = port;
  }
  if (s.port <= 0) {
    return Error(ErrorCode::InvalidArgument,
                 "Port " + std::to_string(port) +
                     " of 127.0.0.1 is in use or not allowed; choose another one, or --view 0 for "
                     "any free one.",
                 "File");
  }
  s.listener = std::thread([&s] { s.server.listen_after_bind(); });
  s.painter = std::thread([&s] { s.make_pictures(); });
  for (int i = 0; i < 1000 && !s.server.is_running(); ++i)
    std::this_thread::sleep_for(milliseconds(1));
  return std::unique_ptr<PageServer>(new PageServer(std::move(state)));
}

PageServer::~PageServer() {
  {
    const std::scoped_lock lock(state_->mutex);
    state_->is_stopping.store(true);
  }
  state_->painted.notify_all();
  state_->server.stop();
  state_->listener.join();
  state_->painter.join();
}

int PageServer::port() const { return state_->port; }

std::string PageServer::url() const {
  return "http://127.0.0.1:" + std::to_string(state_->port) + "/";
}

SinkState PageServer::state() const {
  const std::scoped_lock lock(state_->mutex);
  return state_->counts;
}

}  // namespace ignis::tools
