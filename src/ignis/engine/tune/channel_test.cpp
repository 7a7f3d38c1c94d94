#include "ignis/engine/tune/channel.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <thread>

namespace ignis::engine {
namespace {

using std::chrono::steady_clock;

class ChannelTest : public ::testing::Test {
 protected:
  void SetUp() override {
    int ends[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    here_ = std::make_unique<Channel>(ends[0]);
    there_ = ends[1];
  }
  void TearDown() override {
    if (there_ >= 0) ::close(there_);
  }
  void send_raw(const std::string& bytes) {
    ASSERT_EQ(::write(there_, bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  }
  static steady_clock::time_point soon() {
    return steady_clock::now() + std::chrono::milliseconds(20);
  }
  static steady_clock::time_point later() { return steady_clock::now() + std::chrono::seconds(60); }

  std::unique_ptr<Channel> here_;
  int there_ = -1;
};

TEST_F(ChannelTest, MessagesArriveInFieldsHoweverTheyAreCut) {
  send_raw("one\ttwo\t\nth");
  EXPECT_EQ(*here_->receive(later()), (Channel::Message{"one", "two", ""}));
  EXPECT_EQ(here_->receive(soon()).error().code(), ErrorCode::Timeout);
  send_raw("ree\n");
  EXPECT_EQ(*here_->receive(later()), Channel::Message{"three"});
}

TEST_F(ChannelTest, TabsAndLineBreaksInAFieldBecomeBlanks) {
  ASSERT_TRUE(here_->send({"error", "two\nlines\tand a tab"}));
  char bytes[64];
  const ssize_t count = ::read(there_, bytes, sizeof bytes);
  EXPECT_EQ(std::string(bytes, static_cast<size_t>(count)), "error\ttwo lines and a tab\n");
}

TEST_F(ChannelTest, AClosedEndIsAnErrorAndNoSignal) {
  ::close(there_);
  there_ = -1;
  EXPECT_EQ(here_->receive(later()).error().reason(), "WorkerGone");
  Status sent = here_->send({"a"});
  if (sent) sent = here_->send({"b"});
  EXPECT_EQ(sent.error().reason(), "WorkerGone");
}

TEST_F(ChannelTest, ALineWithoutAnEndIsRefused) {
  std::thread sender([fd = there_] {
    const std::string block(size_t{1} << 20, 'x');
    for (int i = 0; i < 20; ++i) {
      if (::send(fd, block.data(), block.size(), MSG_NOSIGNAL) < 0) return;
    }
  });
  EXPECT_EQ(here_->receive(later()).error().reason(), "WorkerGone");
  here_.reset();
  sender.join();
}

}  // namespace
}  // namespace ignis::engine
