#include "ignis/pipeline/transport/endpoints.h"

#include "ignis/pipeline/transport/writer_watch.h"

#include <gtest/gtest.h>

#include <set>

namespace ignis::pipeline {
namespace {

TEST(Endpoints, TableIsInOrderAndWithoutDoubles) {
  std::set<std::string_view> names, endpoints, suffixes;
  std::set<int> ports;
  for (int i = 0; i < kTopicCount; ++i) {
    const TopicInfo& topic = info(static_cast<Topic>(i));
    EXPECT_EQ(topic.topic, static_cast<Topic>(i));
    EXPECT_GE(topic.queue_messages, 1);
    EXPECT_LE(topic.queue_messages, 4);
    names.insert(topic.name);
    endpoints.insert(topic.default_endpoint);
    suffixes.insert(topic.path_suffix);
    ports.insert(topic.port_offset);
    EXPECT_EQ(*endpoint_below("tcp://127.0.0.1:7100", topic.topic), topic.default_endpoint);
  }
  for (const size_t count : {names.size(), endpoints.size(), suffixes.size(), ports.size()}) {
    EXPECT_EQ(count, static_cast<size_t>(kTopicCount));
  }
  EXPECT_EQ(info(Topic::DriverStateV2).name, "driverStateV2");
  EXPECT_EQ(info(Topic::DriverStateQuality).name, "driverStateQuality");
}

TEST(Endpoints, EachTopicHasItsOwnBelowOneBase) {
  const Topic quality = Topic::DriverStateQuality;
  EXPECT_EQ(*endpoint_below("tcp://*:9000", quality), "tcp://*:9001");
  EXPECT_EQ(*endpoint_below("tcp://[::1]:9000", quality), "tcp://[::1]:9001");
  EXPECT_EQ(*endpoint_below("tcp://127.0.0.1:*", quality), "tcp://127.0.0.1:*");
  EXPECT_EQ(*endpoint_below("ipc:///run/dm", quality), "ipc:///run/dm.quality");
  EXPECT_EQ(*endpoint_below("ipc:///run/dm", Topic::DriverStateV2), "ipc:///run/dm");
  const auto last = endpoint_below("tcp://127.0.0.1:65535", quality);
  ASSERT_FALSE(last);
  EXPECT_EQ(last.error().reason(), "Endpoint");
}

TEST(Endpoints, OthersAreRefusedWithTheirName) {
  for (const std::string bad :
       {"", "7100", "127.0.0.1:7100", "tcp://", "tcp://127.0.0.1", "tcp://:7100", "tcp://host:0",
        "tcp://host:65536", "tcp://host:70x", "tcp://host:", "tcp://host:-1", "udp://host:1",
        "inproc://x", "ipc://", "ipc://@"}) {
    const Status status = check_endpoint(bad);
    ASSERT_FALSE(status) << bad;
    EXPECT_EQ(status.error().reason(), "Endpoint");
    EXPECT_NE(status.error().message().find("'" + bad + "'"), std::string::npos);
  }
}

TEST(WriterWatch, TellsASecondWriterFromARestart) {
  WriterWatch watch;
  EXPECT_FALSE(watch.observe(5));
  EXPECT_FALSE(watch.observe(5));
  EXPECT_FALSE(watch.observe(8));  // started anew
  EXPECT_FALSE(watch.observe(8));
  EXPECT_TRUE(watch.observe(5));  // both are there
  EXPECT_TRUE(watch.observe(8));
  WriterWatch other;
  EXPECT_FALSE(other.observe(0));
  EXPECT_FALSE(other.observe(1));
  EXPECT_TRUE(other.observe(0));
}

}  // namespace
}  // namespace ignis::pipeline
