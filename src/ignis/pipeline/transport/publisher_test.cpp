#include "ignis/pipeline/transport/publisher.h"

#include "ignis/pipeline/messages/wire.h"
#include "ignis/pipeline/transport/subscriber.h"
#include "ignis/pipeline/transport/test_sockets.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zmq.h>

#include <array>
#include <cstring>
#include <fstream>
#include <string>

namespace ignis::pipeline {
namespace {

using namespace std::chrono_literals;
using testing::bytes_of;
using testing::Folder;
using testing::text_of;
using testing::wait_until;

/// A plain ZeroMQ socket, to be the peer that does not follow the rules.
class RawSocket {
 public:
  explicit RawSocket(int type) : context_(zmq_ctx_new()), socket_(zmq_socket(context_, type)) {
    set(ZMQ_LINGER, 0);
  }
  RawSocket(const RawSocket&) = delete;
  RawSocket& operator=(const RawSocket&) = delete;
  ~RawSocket() {
    zmq_close(socket_);
    zmq_ctx_term(context_);
  }
  void set(int option, int value) { zmq_setsockopt(socket_, option, &value, sizeof(value)); }
  std::string bind() {
    EXPECT_EQ(zmq_bind(socket_, "tcp://127.0.0.1:*"), 0);
    char endpoint[256] = {};
    size_t size = sizeof(endpoint);
    EXPECT_EQ(zmq_getsockopt(socket_, ZMQ_LAST_ENDPOINT, endpoint, &size), 0);
    return endpoint;
  }
  void send(const std::vector<std::string>& parts) {
    for (size_t i = 0; i < parts.size(); ++i) {
      zmq_send(socket_, parts[i].data(), parts[i].size(),
               ZMQ_DONTWAIT | (i + 1 < parts.size() ? ZMQ_SNDMORE : 0));
    }
  }
  void* socket() { return socket_; }

 private:
  void* context_;
  void* socket_;
};

Subscriber subscribe(const std::string& endpoint, Topic topic = Topic::DriverStateV2) {
  auto subscriber = Subscriber::open(endpoint, topic);
  EXPECT_TRUE(subscriber) << subscriber.error().to_string();
  return *std::move(subscriber);
}

/// Publishes until the subscriber has it: what is sent before it has connected is lost, as it should be.
bool deliver(Publisher& publisher, Topic topic, std::string_view text, Subscriber& subscriber) {
  std::vector<std::byte> message;
  return wait_until([&] {
    EXPECT_TRUE(publisher.send(topic, bytes_of(text)));
    return subscriber.receive(message, 5ms) && text_of(message) == text;
  });
}

class AnyTransport : public ::testing::TestWithParam<std::string> {
 protected:
  std::string base() const {
    return GetParam() == "tcp" ? "tcp://127.0.0.1:*" : "ipc://" + folder_.path() + "/dm";
  }
  Folder folder_;
};

TEST_P(AnyTransport, EachTopicReachesItsSubscriber) {
  auto publisher = Publisher::open(base());
  ASSERT_TRUE(publisher) << publisher.error().to_string();
  EXPECT_NE(publisher->endpoint(Topic::DriverStateV2),
            publisher->endpoint(Topic::DriverStateQuality));
  EXPECT_EQ(publisher->endpoint(Topic::ExtrinsicsCalibration), "");
  Subscriber states = subscribe(publisher->endpoint(Topic::DriverStateV2));
  Subscriber companions =
      subscribe(publisher->endpoint(Topic::DriverStateQuality), Topic::DriverStateQuality);
  EXPECT_TRUE(deliver(*publisher, Topic::DriverStateV2, "a state", states));
  EXPECT_TRUE(deliver(*publisher, Topic::DriverStateQuality, "a companion", companions));
  EXPECT_EQ(states.counters().refused, 0u);
  EXPECT_EQ(companions.counters().refused, 0u);
}

TEST_P(AnyTransport, AMessageIsTheNameThenTheBytes) {
  auto publisher = Publisher::open(base());
  ASSERT_TRUE(publisher);
  RawSocket raw(ZMQ_SUB);
  zmq_setsockopt(raw.socket(), ZMQ_SUBSCRIBE, "", 0);
  ASSERT_EQ(zmq_connect(raw.socket(), publisher->endpoint(Topic::DriverStateV2).c_str()), 0);
  char part[64] = {};
  int size = -1;
  ASSERT_TRUE(wait_until([&] {
    EXPECT_TRUE(publisher->send(Topic::DriverStateV2, bytes_of("the bytes")));
    size = zmq_recv(raw.socket(), part, sizeof(part), ZMQ_DONTWAIT);
    return size >= 0;
  }));
  EXPECT_EQ(std::string(part, static_cast<size_t>(size)), "driverStateV2");
  int more = 0;
  size_t more_size = sizeof(more);
  zmq_getsockopt(raw.socket(), ZMQ_RCVMORE, &more, &more_size);
  ASSERT_EQ(more, 1);
  size = zmq_recv(raw.socket(), part, sizeof(part), ZMQ_DONTWAIT);
  EXPECT_EQ(std::string(part, static_cast<size_t>(size)), "the bytes");
  zmq_getsockopt(raw.socket(), ZMQ_RCVMORE, &more, &more_size);
  EXPECT_EQ(more, 0);
}

TEST_P(AnyTransport, SecondPublisherIsRefusedByName) {
  auto first = Publisher::open(base());
  ASSERT_TRUE(first);
  const Topic alone[] = {Topic::DriverStateV2};
  for (const Topic topic : {Topic::DriverStateV2, Topic::DriverStateQuality}) {
    const std::string taken = first->endpoint(topic);
    const auto second = Publisher::open(taken, alone);  // whose first topic lies at the base
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().code(), ErrorCode::InvalidArgument);
    EXPECT_EQ(second.error().reason(), "EndpointInUse");
    EXPECT_NE(second.error().message().find("'" + taken + "'"), std::string::npos);
  }
  // The first one is unharmed.
  Subscriber states = subscribe(first->endpoint(Topic::DriverStateV2));
  EXPECT_TRUE(deliver(*first, Topic::DriverStateV2, "still here", states));
}

TEST_P(AnyTransport, AnEndpointIsFreeAgainWhenItsPublisherGoes) {
  const Topic alone[] = {Topic::DriverStateV2};
  auto first = Publisher::open(base(), alone);
  ASSERT_TRUE(first);
  const std::string endpoint = first->endpoint(Topic::DriverStateV2);
  Subscriber states = subscribe(endpoint);
  ASSERT_TRUE(deliver(*first, Topic::DriverStateV2, "first", states));
  {
    const Publisher gone = *std::move(first);
  }
  auto second = Publisher::open(endpoint, alone);
  ASSERT_TRUE(second) << second.error().to_string();
  EXPECT_TRUE(deliver(*second, Topic::DriverStateV2, "second", states));
}

TEST_P(AnyTransport, KilledPublisherIsReplacedAndTheSubscriberGoesOn) {
  // Children, forked before any thread is there: each publishes its own text until it is killed.
  const Topic alone[] = {Topic::DriverStateV2};
  int pipes[2][2];
  pid_t children[2];
  int go[2];
  ASSERT_EQ(::pipe(go), 0);
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(::pipe(pipes[i]), 0);
    children[i] = ::fork();
    ASSERT_GE(children[i], 0);
    if (children[i] == 0) {
      ::close(go[1]);
      ::alarm(60);  // should the test end early
      char at[256] = {};
      std::string endpoint = base();
      if (i == 1) {  // waits for the first one's endpoint
        if (::read(go[0], at, sizeof(at)) <= 0) ::_exit(1);
        endpoint = at;
      }
      auto publisher = Publisher::open(endpoint, alone);
      if (!publisher) ::_exit(2);
      const std::string bound = publisher->endpoint(Topic::DriverStateV2);
      if (::write(pipes[i][1], bound.c_str(), bound.size() + 1) < 0) ::_exit(3);
      while (true) {
        (void)publisher->send(Topic::DriverStateV2, bytes_of(i == 0 ? "first" : "second"));
        ::usleep(2000);
      }
    }
  }
  char endpoint[256] = {};
  ASSERT_GT(::read(pipes[0][0], endpoint, sizeof(endpoint)), 0);
  {
    Subscriber states = subscribe(endpoint);
    std::vector<std::byte> message;
    EXPECT_TRUE(states.receive(message, 30s));
    EXPECT_EQ(text_of(message), "first");
    ::kill(children[0], SIGKILL);
    ::waitpid(children[0], nullptr, 0);
    ASSERT_GT(::write(go[1], endpoint, std::strlen(endpoint) + 1), 0);
    EXPECT_TRUE(
        wait_until([&] { return states.receive(message, 50ms) && text_of(message) == "second"; }));
  }
  ::kill(children[1], SIGKILL);
  ::waitpid(children[1], nullptr, 0);
  for (const int descriptor : {go[0], go[1], pipes[0][0], pipes[0][1], pipes[1][0], pipes[1][1]}) {
    ::close(descriptor);
  }
}

INSTANTIATE_TEST_SUITE_P(Transport, AnyTransport, ::testing::Values("tcp", "ipc"),
                         [](const auto& param) { return param.param; });

TEST(Publisher, SubscriberThatNeverReadsBlocksNobody) {
  auto publisher = Publisher::open("tcp://127.0.0.1:*");
  ASSERT_TRUE(publisher);
  const std::string endpoint = publisher->endpoint(Topic::DriverStateV2);
  RawSocket sleeper(ZMQ_SUB);
  sleeper.set(ZMQ_RCVHWM, 1);
  sleeper.set(ZMQ_RCVBUF, 4096);
  zmq_setsockopt(sleeper.socket(), ZMQ_SUBSCRIBE, "", 0);
  ASSERT_EQ(zmq_connect(sleeper.socket(), endpoint.c_str()), 0);
  char name[32];
  ASSERT_TRUE(wait_until([&] {
    EXPECT_TRUE(publisher->send(Topic::DriverStateV2, bytes_of("hello")));
    return zmq_recv(sleeper.socket(), name, sizeof(name), ZMQ_DONTWAIT) >= 0;
  }));
  // 40 MB: more than any buffer between the two holds.
  const std::vector<std::byte> message(4096);
  for (int i = 0; i < 10000; ++i) ASSERT_TRUE(publisher->send(Topic::DriverStateV2, message));
  EXPECT_EQ(publisher->counters().failed, 0u);
  Subscriber states = subscribe(endpoint);
  EXPECT_TRUE(deliver(*publisher, Topic::DriverStateV2, "for those who listen", states));
}

TEST(Publisher, RefusesWhatItCannotSend) {
  const Topic alone[] = {Topic::DriverStateV2};
  auto publisher = Publisher::open("tcp://127.0.0.1:*", alone);
  ASSERT_TRUE(publisher);
  EXPECT_EQ(publisher->send(Topic::DriverStateQuality, bytes_of("x")).error().code(),
            ErrorCode::InvalidArgument);
  const std::vector<std::byte> huge(kMaxMessageBytes + 1);
  EXPECT_EQ(publisher->send(Topic::DriverStateV2, huge).error().code(), ErrorCode::InvalidArgument);
  EXPECT_EQ(publisher->counters().failed, 1u);
  EXPECT_EQ(publisher->counters().sent, 0u);
}

TEST(Publisher, AFailedOpenLeavesNothingBound) {
  // The second topic's port is taken, the first one's is not: another program may have the one before ours, so look for it.
  const auto open_one = [](const std::string& endpoint, Topic topic) {
    return Publisher::open(endpoint, std::array{topic});
  };
  std::vector<Publisher> blockers;
  std::string taken, base;
  for (int i = 0; i < 20 && base.empty(); ++i) {
    auto blocker = open_one("tcp://127.0.0.1:*", Topic::DriverStateQuality);
    ASSERT_TRUE(blocker);
    taken = blocker->endpoint(Topic::DriverStateQuality);
    const int port = std::atoi(taken.substr(taken.rfind(':') + 1).c_str());
    blockers.push_back(*std::move(blocker));
    const std::string before = "tcp://127.0.0.1:" + std::to_string(port - 1);
    if (open_one(before, Topic::DriverStateV2)) base = before;
  }
  ASSERT_FALSE(base.empty());
  const auto both = Publisher::open(base);
  ASSERT_FALSE(both);
  EXPECT_EQ(both.error().reason(), "EndpointInUse");
  EXPECT_NE(both.error().message().find(taken), std::string::npos);
  const auto state_alone = open_one(base, Topic::DriverStateV2);
  EXPECT_TRUE(state_alone) << state_alone.error().to_string();
}

TEST(Publisher, NeverRemovesAFileToBindThere) {
  Folder folder;
  const std::string path = folder.path() + "/precious";
  std::ofstream(path) << "data";
  const auto publisher = Publisher::open("ipc://" + path);
  ASSERT_FALSE(publisher);
  EXPECT_EQ(publisher.error().reason(), "Endpoint");
  std::string text;
  std::ifstream(path) >> text;
  EXPECT_EQ(text, "data");
}

TEST(Publisher, BindsToLocalhostByName) {
  auto publisher = Publisher::open("tcp://localhost:*");
  ASSERT_TRUE(publisher) << publisher.error().to_string();
  EXPECT_TRUE(publisher->endpoint(Topic::DriverStateV2).starts_with("tcp://127.0.0.1:"));
  Subscriber states = subscribe(publisher->endpoint(Topic::DriverStateV2));
  EXPECT_TRUE(deliver(*publisher, Topic::DriverStateV2, "a state", states));
}

TEST(Publisher, EndpointsThatCannotBeAreNamed) {
  const std::vector<std::string> endpoints = {
      "tcp://203.0.113.77:7100", "tcp://nosuchhost:7100", "ipc:///nowhere/at/all",
      "ipc:///tmp/" + std::string(200, 'x'), "http://localhost:1"};
  for (const std::string& bad : endpoints) {
    const auto publisher = Publisher::open(bad);
    ASSERT_FALSE(publisher) << bad;
    EXPECT_EQ(publisher.error().reason(), "Endpoint") << publisher.error().to_string();
    EXPECT_NE(publisher.error().message().find(bad), std::string::npos);
  }
}

TEST(Subscriber, GivesTheNewestAndCountsTheOthers) {
  RawSocket raw(ZMQ_PUB);
  raw.set(ZMQ_SNDHWM, 0);
  Subscriber states = subscribe(raw.bind());
  ASSERT_TRUE(wait_until([&] {
    raw.send({"driverStateV2", "0"});
    return states.counters().received > 0;
  }));
  for (int i = 1; i <= 50; ++i) raw.send({"driverStateV2", std::to_string(i)});
  std::vector<std::byte> message;
  const auto has_last = [&] {
    // Counted, not handed over, until all fifty are there: they come in order.
    return states.counters().received >= 51;
  };
  ASSERT_TRUE(wait_until(has_last));
  ASSERT_TRUE(wait_until([&] { return states.try_receive(message) && text_of(message) == "50"; }));
  EXPECT_FALSE(states.try_receive(message));
  EXPECT_EQ(states.receive(message, 0ns).error().code(), ErrorCode::Timeout);
  EXPECT_GE(states.counters().replaced, 45u);
}

TEST(Subscriber, RefusesOtherPartsAndTopics) {
  RawSocket raw(ZMQ_PUB);
  Subscriber states = subscribe(raw.bind());
  ASSERT_TRUE(wait_until([&] {
    raw.send({"driverStateV2", "good"});
    return states.counters().received > 0;
  }));
  const std::vector<std::vector<std::string>> bad = {
      {"driverStateV2"},
      {"driverStateV2", "bytes", "more"},
      {"driverStateV2", "a", "b", "c", "d"},
      {"driverStateV2Next", "bytes"},
  };
  uint64_t refused = 0;
  for (const auto& parts : bad) {
    raw.send(parts);
    ++refused;
    EXPECT_TRUE(wait_until([&] { return states.counters().refused == refused; })) << parts.size();
  }
  const uint64_t received = states.counters().received;
  raw.send({"driverStateQuality", "not subscribed"});
  raw.send({"driverStateV2", "good again"});
  ASSERT_TRUE(wait_until([&] { return states.counters().received == received + 1; }));
  std::vector<std::byte> message;
  ASSERT_TRUE(states.try_receive(message));
  EXPECT_EQ(text_of(message), "good again");
  EXPECT_EQ(states.counters().refused, refused);
}

TEST(Subscriber, OutlivesAMessageThatIsTooLong) {
  RawSocket raw(ZMQ_PUB);
  Subscriber states = subscribe(raw.bind());
  ASSERT_TRUE(wait_until([&] {
    raw.send({"driverStateV2", "before"});
    return states.counters().received > 0;
  }));
  raw.send({"driverStateV2", std::string(kMaxMessageBytes + 1, 'x')});
  std::vector<std::byte> message;
  EXPECT_TRUE(wait_until([&] {
    raw.send({"driverStateV2", "after"});
    return states.receive(message, 5ms) && text_of(message) == "after";
  }));
}

TEST(Subscriber, StopsAtOnceWithNobodyThere) {
  Folder folder;
  for (const std::string& endpoint :
       {"ipc://" + folder.path() + "/nobody", std::string("tcp://127.0.0.1:9")}) {
    Subscriber states = subscribe(endpoint);
    std::vector<std::byte> message;
    EXPECT_EQ(states.receive(message, 1ms).error().code(), ErrorCode::Timeout);
  }
  EXPECT_FALSE(Subscriber::open("tcp://*:7100", Topic::DriverStateV2));
  EXPECT_FALSE(Subscriber::open("nonsense", Topic::DriverStateV2));
}

TEST(Transport, CarriesPackedMessages) {
  Folder folder;
  auto publisher = Publisher::open("ipc://" + folder.path() + "/dm");
  ASSERT_TRUE(publisher);
  Subscriber states = subscribe(publisher->endpoint(Topic::DriverStateV2));
  EventWriter writer;
  DriverState state;
  state.frame_id = 77;
  state.left.has_lists = true;
  state.left.face_prob = 0.5f;
  std::vector<std::byte> message;
  ASSERT_TRUE(wait_until([&] {
    const auto bytes = writer.driver_state(state, true, 123);
    EXPECT_TRUE(bytes);
    EXPECT_TRUE(publisher->send(Topic::DriverStateV2, *bytes));
    return states.receive(message, 5ms).has_value();
  }));
  const auto event = decode_driver_state(message);
  ASSERT_TRUE(event) << event.error().to_string();
  EXPECT_EQ(event->state.frame_id, 77u);
  EXPECT_EQ(event->state.left, state.left);
}

}  // namespace
}  // namespace ignis::pipeline
