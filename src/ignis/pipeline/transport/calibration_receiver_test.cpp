#include "ignis/pipeline/transport/calibration_receiver.h"

#include "ignis/pipeline/messages/log.h"
#include "ignis/pipeline/messages/wire.h"
#include "ignis/pipeline/transport/publisher.h"
#include "ignis/pipeline/transport/test_sockets.h"

#include <gtest/gtest.h>
#include <zmq.h>

#include <array>
#include <fstream>
#include <limits>
#include <string>

namespace ignis::pipeline {
namespace {

using testing::bytes_of;
using testing::Folder;
using testing::wait_until;

const std::vector<float> kAngles = {0.01f, -0.02f, 0.03f};

Calibration good(const std::vector<float>& angles = kAngles) {
  return {.rpy_rad = angles,
          .status = CalibrationStatus::Calibrated,
          .valid = true,
          .log_mono_time_ns = 42};
}

TEST(ParseCalibration, TakesAngles) {
  for (const char* text : {"0.01,-0.02,0.03", " 0.01, -2e-2 ,+0.03 "}) {
    const auto setting = parse_calibration(text);
    ASSERT_TRUE(setting) << setting.error().to_string();
    ASSERT_TRUE(setting->fixed);
    EXPECT_EQ(setting->fixed->rpy_rad, kAngles);
    EXPECT_TRUE(setting->fixed->valid);
    EXPECT_EQ(setting->fixed->status, CalibrationStatus::Calibrated);
  }
}

TEST(ParseCalibration, TakesEndpoints) {
  const auto setting = parse_calibration("tcp://10.0.0.1:7102");
  ASSERT_TRUE(setting);
  EXPECT_FALSE(setting->fixed);
  EXPECT_EQ(setting->endpoint, "tcp://10.0.0.1:7102");
  EXPECT_FALSE(parse_calibration("tcp://10.0.0.1"));
  EXPECT_FALSE(parse_calibration("http://10.0.0.1:80"));
}

TEST(ParseCalibration, TakesTextFiles) {
  Folder folder;
  const std::string path = folder.path() + "/calib";
  for (const char* text :
       {"0.01,-0.02,0.03\n", "[0.01, -0.02, 0.03]", "{\n  \"rpy_rad\": [0.01, -0.02, 0.03]\n}\n"}) {
    std::ofstream(path) << text;
    const auto setting = parse_calibration(path);
    ASSERT_TRUE(setting) << setting.error().to_string();
    EXPECT_EQ(setting->fixed->rpy_rad, kAngles);
  }
  for (const char* text : {"", "[]", "[0.1, 0.2]", "[0.1, 0.2, 0.3, 0.4]", "{\"rpy\": [0, 0, 0]}",
                           "{\"rpy_rad\": 0}", "{\"rpy_rad\": [0, 0, 0]", "[0, 0, x]", "[0,,0]"}) {
    std::ofstream(path) << text;
    const auto setting = parse_calibration(path);
    ASSERT_FALSE(setting) << text;
    EXPECT_EQ(setting.error().reason(), "Calibration");
    EXPECT_NE(setting.error().message().find(path), std::string::npos);
  }
}

TEST(ParseCalibration, TakesTheLastGoodEventOfALog) {
  Folder folder;
  const std::string path = folder.path() + "/log";
  EventWriter writer;
  {
    auto log = LogWriter::open(path);
    ASSERT_TRUE(log);
    Calibration invalid = good({0.2f, 0.2f, 0.2f});
    invalid.valid = false;
    Calibration recalibrating = good({0.3f, 0.3f, 0.3f});
    recalibrating.status = CalibrationStatus::Recalibrating;
    for (const Calibration& each :
         {good({0.1f, 0.1f, 0.1f}), good(), invalid, recalibrating, good({0.1f, 0.2f}),
          good({0.1f, 0.1f, 3}), good({0.1f, 0.1f, std::numeric_limits<float>::quiet_NaN()})}) {
      ASSERT_TRUE(log->append_event(*writer.calibration(each)));
      ASSERT_TRUE(log->append_event(*writer.driver_state({}, true, 1)));
    }
    ASSERT_TRUE(log->close());
  }
  std::filesystem::resize_file(path, std::filesystem::file_size(path) - 8);
  const auto setting = parse_calibration(path);
  ASSERT_TRUE(setting) << setting.error().to_string();
  EXPECT_EQ(setting->fixed->rpy_rad, kAngles);
  const auto none = parse_calibration(path + ".quality");
  ASSERT_FALSE(none);
}

TEST(ParseCalibration, RefusesTheRest) {
  for (const char* text : {"0.1,0.2", "0.1,0.2,0.3,0.4", "nan,0,0", "inf,0,0", "0,0,0.6", "1,2,3",
                           "0,0,", ",,", "0.1 0.2 0.3,"}) {
    const auto setting = parse_calibration(text);
    ASSERT_FALSE(setting) << text;
    EXPECT_EQ(setting.error().reason(), "Calibration") << text;
  }
  EXPECT_EQ(parse_calibration("/no/such/file").error().code(), ErrorCode::NotFound);
  EXPECT_EQ(parse_calibration("").error().code(), ErrorCode::NotFound);
  EXPECT_FALSE(parse_calibration("/tmp"));
}

TEST(CalibrationReceiver, GivesFixedAnglesAtItsRateWithAFreshTime) {
  auto receiver = CalibrationReceiver::open(*parse_calibration("0.01,-0.02,0.03"));
  ASSERT_TRUE(receiver);
  const auto first = receiver->poll();
  ASSERT_TRUE(first);
  EXPECT_EQ(first->rpy_rad, kAngles);
  std::optional<Calibration> second;
  ASSERT_TRUE(wait_until([&] { return (second = receiver->poll()).has_value(); }));
  EXPECT_GE(second->log_mono_time_ns, first->log_mono_time_ns + 250000000);
}

TEST(CalibrationReceiver, GivesWhatIsPublishedGoodOrBad) {
  Folder folder;
  auto publisher =
      Publisher::open("ipc://" + folder.path() + "/dm", std::array{Topic::ExtrinsicsCalibration});
  ASSERT_TRUE(publisher) << publisher.error().to_string();
  auto receiver = CalibrationReceiver::open(
      {.fixed = std::nullopt, .endpoint = publisher->endpoint(Topic::ExtrinsicsCalibration)});
  ASSERT_TRUE(receiver);
  EXPECT_FALSE(receiver->poll());
  EventWriter writer;
  for (const std::vector<float>& angles : {kAngles, std::vector<float>{0.5f, 0.25f}}) {
    std::optional<Calibration> came;
    ASSERT_TRUE(wait_until([&] {
      EXPECT_TRUE(publisher->send(Topic::ExtrinsicsCalibration, *writer.calibration(good(angles))));
      came = receiver->poll();
      return came && came->rpy_rad == angles;
    }));
    EXPECT_TRUE(came->valid);
    EXPECT_EQ(came->log_mono_time_ns, 42u);
  }
  EXPECT_TRUE(wait_until([&] {
    EXPECT_TRUE(publisher->send(Topic::ExtrinsicsCalibration, bytes_of("no message")));
    receiver->poll();
    return receiver->refused_count() > 0;
  }));
}

TEST(CalibrationReceiver, TakesTheOlderNameAndBareMessages) {
  void* context = zmq_ctx_new();
  void* socket = zmq_socket(context, ZMQ_PUB);
  const int no_linger = 0;
  zmq_setsockopt(socket, ZMQ_LINGER, &no_linger, sizeof(no_linger));
  ASSERT_EQ(zmq_bind(socket, "tcp://127.0.0.1:*"), 0);
  char endpoint[256] = {};
  size_t size = sizeof(endpoint);
  zmq_getsockopt(socket, ZMQ_LAST_ENDPOINT, endpoint, &size);
  {
    auto receiver = CalibrationReceiver::open({.fixed = std::nullopt, .endpoint = endpoint});
    ASSERT_TRUE(receiver);
    EventWriter writer;
    for (const bool is_named : {true, false}) {
      const std::vector<float> angles = {is_named ? 0.1f : 0.2f, 0, 0};
      const auto message = writer.calibration(good(angles));
      EXPECT_TRUE(wait_until([&] {
        if (is_named) zmq_send(socket, "liveCalibration", 15, ZMQ_SNDMORE | ZMQ_DONTWAIT);
        zmq_send(socket, message->data(), message->size(), ZMQ_DONTWAIT);
        const auto came = receiver->poll();
        return came && came->rpy_rad == angles;
      }));
    }
  }
  zmq_close(socket);
  zmq_ctx_term(context);
}

}  // namespace
}  // namespace ignis::pipeline
