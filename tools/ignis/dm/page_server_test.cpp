// The server as other programs of this machine see it, good and hostile ones; with plain sockets.
#include "tools/ignis/dm/page_server.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <chrono>
#include <string>

namespace ignis::tools {
namespace {

using Clock = std::chrono::steady_clock;

/// A connection to the server; reads give up after five seconds.
class Connection {
 public:
  explicit Connection(int port) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const timeval limit{5, 0};
    ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    is_open_ = ::connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  }
  ~Connection() { ::close(socket_); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  bool is_open() const { return is_open_; }
  void send(const std::string& text) {
    EXPECT_EQ(::send(socket_, text.data(), text.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(text.size()));
  }
  /// What comes until the connection closes, `until` was seen, or nothing came for a while.
  std::string receive(const std::string& until = "") {
    std::string text;
    char bytes[4096];
    for (;;) {
      const ssize_t count = ::recv(socket_, bytes, sizeof bytes, 0);
      if (count <= 0) return text;
      text.append(bytes, static_cast<size_t>(count));
      if (!until.empty() && text.find(until) != std::string::npos) return text;
    }
  }

 private:
  int socket_;
  bool is_open_ = false;
};

class PageServerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    PageInfo info;
    info.source = "test source";
    auto server = PageServer::start(0, feed_, info);
    ASSERT_TRUE(server) << server.error().to_string();
    server_ = *std::move(server);
  }
  std::string host() const { return "127.0.0.1:" + std::to_string(server_->port()); }
  std::string get(const std::string& path, const std::string& headers) {
    Connection connection(server_->port());
    connection.send("GET " + path + " HTTP/1.1\r\nConnection: close\r\n" + headers + "\r\n");
    return connection.receive();
  }
  static std::string status(const std::string& answer) { return answer.substr(0, 12); }

  LiveFeed feed_;
  std::unique_ptr<PageServer> server_;
};

TEST_F(PageServerTest, AnswersItsOwnPage) {
  const std::string answer = get("/", "Host: " + host() + "\r\n");
  EXPECT_EQ(status(answer), "HTTP/1.1 200");
  EXPECT_NE(answer.find("Content-Type: text/html; charset=utf-8"), std::string::npos);
  EXPECT_NE(answer.find("Content-Security-Policy: default-src 'none'"), std::string::npos);
  EXPECT_NE(answer.find("Cross-Origin-Resource-Policy: same-origin"), std::string::npos);
  EXPECT_NE(answer.find("</html>"), std::string::npos);
  EXPECT_EQ(status(get("/nothing", "Host: " + host() + "\r\n")), "HTTP/1.1 404");
  EXPECT_EQ(status(get("/../../etc/passwd", "Host: " + host() + "\r\n")), "HTTP/1.1 404");
  EXPECT_EQ(status(get("/frame.jpg?after=0", "Host: " + host() + "\r\n")), "HTTP/1.1 204");
}

TEST_F(PageServerTest, RefusesOtherSites) {
  for (const char* path : {"/", "/events", "/frame.jpg"}) {
    SCOPED_TRACE(path);
    // A name of somebody else's that was made to resolve to this machine.
    EXPECT_EQ(status(get(path, "Host: evil.example:" + std::to_string(server_->port()) + "\r\n")),
              "HTTP/1.1 403");
    EXPECT_EQ(status(get(path, "")), "HTTP/1.1 403");
    const std::string own = "Host: " + host() + "\r\n";
    EXPECT_EQ(status(get(path, own + "Origin: http://evil.example\r\n")), "HTTP/1.1 403");
    EXPECT_EQ(status(get(path, own + "Origin: null\r\n")), "HTTP/1.1 403");
    EXPECT_EQ(status(get(path, own + "Sec-Fetch-Site: cross-site\r\n")), "HTTP/1.1 403");
    EXPECT_EQ(status(get(path, own + "Sec-Fetch-Site: same-site\r\n")), "HTTP/1.1 403");
  }
  EXPECT_EQ(status(get("/", "Host: " + host() + "\r\nOrigin: http://" + host() +
                                "\r\nSec-Fetch-Site: same-origin\r\n")),
            "HTTP/1.1 200");
}

TEST_F(PageServerTest, StreamsWhatIsFed) {
  Connection connection(server_->port());
  connection.send("GET /events HTTP/1.1\r\nHost: " + host() + "\r\n\r\n");
  EXPECT_NE(connection.receive("event: info").find("test source"), std::string::npos);
  Snapshot snapshot;
  snapshot.has_frame = true;
  snapshot.quality.frame_id = 4711;
  feed_.push(snapshot, nullptr);
  EXPECT_NE(connection.receive("4711").find("event: turn"), std::string::npos);
  feed_.close();
  EXPECT_NE(connection.receive().find("event: end"), std::string::npos);
}

TEST_F(PageServerTest, NeitherASlowReaderNorASilentOneHoldsAnythingUp) {
  Connection slow(server_->port()), silent(server_->port()), half(server_->port());
  ASSERT_TRUE(slow.is_open() && silent.is_open() && half.is_open());
  slow.send("GET /events HTTP/1.1\r\nHost: " + host() + "\r\n\r\n");  // and never reads
  half.send("GET / HTTP/1.1\r\nHost:");                               // and never goes on
  Snapshot snapshot;
  snapshot.has_frame = true;
  const auto start = Clock::now();
  for (int i = 0; i < 20000; ++i) feed_.push(snapshot, nullptr);  // far more than a socket holds
  EXPECT_EQ(status(get("/", "Host: " + host() + "\r\n")), "HTTP/1.1 200");
  feed_.close();
  server_.reset();
  // Not a measurement: it would be for ever if somebody had to read first.
  EXPECT_LT(Clock::now() - start, std::chrono::seconds(60));
}

TEST_F(PageServerTest, APortIsNotShared) {
  LiveFeed feed;
  const auto second = PageServer::start(server_->port(), feed, {});
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().reason(), "File");
  EXPECT_NE(second.error().message().find(std::to_string(server_->port())), std::string::npos);
}

}  // namespace
}  // namespace ignis::tools
