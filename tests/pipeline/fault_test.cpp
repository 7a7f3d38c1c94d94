// The part of the list of bad input that needs more than a host: frames come through a ring, reports go out through a
// publisher and into a log, a subscriber and the gate look at them. Each row brings a fault about; afterwards the pipeline
// must deliver valid reports of just this frame again. The rest of the list is in driver_monitoring/fault_test.cpp.

#include "ignis/pipeline/driver_monitoring/consumer/gate.h"
#include "ignis/pipeline/driver_monitoring/testing/test_host_rig.h"
#include "ignis/pipeline/frames/layout.h"
#include "ignis/pipeline/frames/ring_client.h"
#include "ignis/pipeline/frames/ring_server.h"
#include "ignis/pipeline/messages/log.h"
#include "ignis/pipeline/messages/wire.h"
#include "ignis/pipeline/transport/calibration_receiver.h"
#include "ignis/pipeline/transport/publisher.h"
#include "ignis/pipeline/transport/subscriber.h"
#include "ignis/pipeline/transport/test_sockets.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zmq.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <functional>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

namespace ignis::pipeline {
namespace {

using namespace std::chrono_literals;
using Step = FakeScript::Step;
using testing::Folder;
using testing::wait_until;

/// Frames of 640x480, so that copying them is no load; the lens does not matter to the fake model.
FrameLayout small_layout() { return nv12_layout(640, 480).value(); }

HostOptions real_time_options(uint64_t writer_id) {
  HostOptions options;
  options.cameras = known_cameras_and(std::vector{parse_camera("640x480,focal=200").value(),
                                                  parse_camera("320x240,focal=100").value()});
  options.writer_id = writer_id;
  options.watches_view = false;
  options.fixed_rpy_rad = {0, 0, 0};
  // Of the real clock: a machine under load is no fault here.
  options.run_limit = 10s;
  options.stale_after = 60s;
  options.frame_timeout = 100ms;
  options.timeout_period = 50ms;
  options.restart_delay = 10ms;
  return options;
}

/// From a ring to a publisher and a log, all in this process.
class Pipeline {
 public:
  std::shared_ptr<FakeScript> script = std::make_shared<FakeScript>();
  Folder folder;
  std::string ring_name = "fault-" + std::to_string(::getpid());
  std::unique_ptr<RingServer> server;
  std::unique_ptr<RingClient> client;
  std::unique_ptr<Host> host;
  std::optional<Publisher> publisher;
  std::optional<LogWriter> log;
  std::optional<Subscriber> states, companions;
  std::atomic<bool> is_disk_full{false};
  uint32_t next_id = 1;

  void start(bool with_log = false) {
    start_server(small_layout());
    client = RingClient::create(ring_name).value();
    HostOptions options = real_time_options(1);
    options.make_model = [s = script]() -> Result<std::unique_ptr<Model>> {
      return std::unique_ptr<Model>(std::make_unique<FakeModel>(s));
    };
    if (with_calibration) options.fixed_rpy_rad.reset();
    host = std::make_unique<Host>(std::make_unique<FakeModel>(script), Reasons(), options);
    publisher = Publisher::open(base()).value();
    if (with_log) {
      LogOptions log_options;
      log_options.write = [this](int descriptor, const void* bytes, size_t size, off_t offset) {
        if (!is_disk_full) return ::pwrite(descriptor, bytes, size, offset);
        errno = ENOSPC;
        return ssize_t{-1};
      };
      log = LogWriter::open(log_path(), log_options).value();
    }
    subscribe();
  }
  bool with_calibration = false;

  std::string base() const { return "ipc://" + folder.path() + "/dm"; }
  std::string log_path() const { return folder.path() + "/log"; }
  void start_server(const FrameLayout& layout) {
    server = RingServer::create(ring_name, layout).value();
  }
  void subscribe() {
    const auto open = [&](Topic topic) {
      return Subscriber::open(publisher->endpoint(topic), topic).value();
    };
    states = open(Topic::DriverStateV2);
    companions = open(Topic::DriverStateQuality);
  }

  /// The camera makes a frame.
  bool make_frame() {
    Result<std::span<std::byte>> bytes = server->begin_frame();
    if (!bytes) return false;
    std::fill(bytes->begin(), bytes->end(), std::byte{77});
    FrameInfo info;
    info.frame_id = next_id++;
    info.timestamp_sof_ns = info.timestamp_eof_ns = monotonic_ns();
    server->end_frame(info);
    return true;
  }
  /// One turn of the host's loop. \return its report; none when there was neither a frame nor a time-out to tell.
  std::optional<FrameReport> turn(std::chrono::nanoseconds timeout = 20ms) {
    Result<Frame> frame = client->receive(timeout);
    std::optional<FrameReport> report =
        frame ? std::optional(host->process(*frame)) : host->check_watchdog();
    if (report) publish(*report);
    return report;
  }
  void publish(const FrameReport& report) {
    const uint64_t now = monotonic_ns();
    if (report.has_state) {
      const auto event = writer_.driver_state(report.state, report.quality.valid, now);
      ASSERT_TRUE(event);
      EXPECT_TRUE(publisher->send(Topic::DriverStateV2, *event));
      if (log) (void)log->append_event(*event);
    }
    const auto quality = writer_.quality(report.quality);
    ASSERT_TRUE(quality);
    EXPECT_TRUE(publisher->send(Topic::DriverStateQuality, *quality));
    if (log) (void)log->append_quality(*quality);
  }
  /// A frame goes in; its own report comes out. Tried until one gets through: connections take their time.
  FrameReport next_report() {
    std::optional<FrameReport> report;
    EXPECT_TRUE(wait_until([&] {
      const uint32_t id = next_id;
      if (!make_frame()) return false;
      report = turn(100ms);
      return report && report->has_state && report->state.frame_id == id;
    }));
    return report.value_or(FrameReport());
  }
  /// The companion of what is published while waiting, when `is_wanted`.
  std::optional<DriverStateQuality> hear(
      const std::function<bool(const DriverStateQuality&)>& is_wanted) {
    std::optional<DriverStateQuality> heard;
    EXPECT_TRUE(wait_until([&] {
      std::vector<std::byte> message;
      if (!companions->receive(message, 5ms)) return false;
      const auto quality = decode_quality(message);
      EXPECT_TRUE(quality);
      if (!quality || !is_wanted(*quality)) return false;
      heard = *quality;
      return true;
    }));
    return heard;
  }
  /// Valid again at the far end, with the values of just this frame.
  void expect_delivery() {
    EXPECT_TRUE(wait_until([&] {
      const FrameReport report = next_report();
      if (!report.quality.valid) return false;
      expect_fresh(report, report.state.frame_id);
      std::vector<std::byte> message;
      if (!states->receive(message, 50ms)) return false;
      const auto event = decode_driver_state(message);
      EXPECT_TRUE(event);
      if (!event || event->state.frame_id != report.state.frame_id) return false;
      EXPECT_TRUE(event->valid);
      EXPECT_EQ(event->state.left, fake_prediction(event->state.frame_id).left);
      return true;
    }));
  }

 private:
  EventWriter writer_;
};

struct Fault {
  const char* name;
  std::function<void(Pipeline&)> inject;  ///< from starting the pipeline to the end of the cause
};
std::ostream& operator<<(std::ostream& out, const Fault& fault) { return out << fault.name; }

/// A subscriber that connects and never reads.
class DeafSocket {
 public:
  explicit DeafSocket(const std::string& endpoint)
      : context_(zmq_ctx_new()), socket_(zmq_socket(context_, ZMQ_SUB)) {
    const int one = 1;
    zmq_setsockopt(socket_, ZMQ_RCVHWM, &one, sizeof(one));
    const int none = 0;
    zmq_setsockopt(socket_, ZMQ_LINGER, &none, sizeof(none));
    zmq_setsockopt(socket_, ZMQ_SUBSCRIBE, "", 0);
    EXPECT_EQ(zmq_connect(socket_, endpoint.c_str()), 0);
  }
  DeafSocket(const DeafSocket&) = delete;
  DeafSocket& operator=(const DeafSocket&) = delete;
  ~DeafSocket() {
    zmq_close(socket_);
    zmq_ctx_term(context_);
  }

 private:
  void* context_;
  void* socket_;
};

void subscriber_never_reads(Pipeline& pipeline) {
  pipeline.start();
  const DeafSocket deaf_to_states(pipeline.publisher->endpoint(Topic::DriverStateV2));
  const DeafSocket deaf_to_companions(pipeline.publisher->endpoint(Topic::DriverStateQuality));
  const uint64_t sent = pipeline.publisher->counters().sent;
  for (int i = 0; i < 500; ++i) EXPECT_TRUE(pipeline.next_report().quality.valid);
  EXPECT_GE(pipeline.publisher->counters().sent, sent + 1000) << "The others get all of it.";
  EXPECT_EQ(pipeline.publisher->counters().failed, 0U);
  pipeline.expect_delivery();  // while they are still there
}

void disk_is_full(Pipeline& pipeline) {
  pipeline.start(/*with_log=*/true);
  for (int i = 0; i < 5; ++i) pipeline.next_report();
  ASSERT_TRUE(pipeline.log->flush(20s));
  const uint64_t written = pipeline.log->counters().written;
  EXPECT_EQ(pipeline.log->counters().lost, 0U);

  pipeline.is_disk_full = true;
  std::optional<Error> error;
  EXPECT_TRUE(wait_until([&] {
    EXPECT_TRUE(pipeline.next_report().quality.valid) << "The log is not the driver's business.";
    error = pipeline.log->take_error();
    return error.has_value();
  }));
  ASSERT_TRUE(error);
  EXPECT_EQ(error->reason(), "DiskFull");
  EXPECT_EQ(error->code(), ErrorCode::OutOfMemory);
  EXPECT_GT(pipeline.log->counters().lost, 0U);

  pipeline.is_disk_full = false;
  EXPECT_TRUE(wait_until([&] {
    pipeline.next_report();
    return pipeline.log->counters().written > written;
  })) << "There is space again.";
  ASSERT_TRUE(pipeline.log->flush(20s));

  // Every message in the files is whole, and the ids rise: nothing was written twice.
  Result<LogReader> reader = LogReader::open(pipeline.log_path());
  ASSERT_TRUE(reader);
  uint32_t last_id = 0;
  int count = 0;
  while (true) {
    const auto message = reader->next();
    if (!message) {
      EXPECT_EQ(message.error().reason(), "EndOfLog");
      break;
    }
    const auto event = decode_driver_state(*message);
    ASSERT_TRUE(event);
    EXPECT_GT(event->state.frame_id, last_id);
    last_id = event->state.frame_id;
    ++count;
  }
  EXPECT_GT(count, 5);
}

/// What a child does: a pipeline of its own without a ring, until it is killed.
[[noreturn]] void publish_for_ever(const std::string& base, uint64_t writer_id) {
  ::alarm(120);  // should the test end early
  auto script = std::make_shared<FakeScript>();
  Host host(std::make_unique<FakeModel>(script), Reasons(), real_time_options(writer_id));
  Result<Publisher> publisher = Publisher::open(base);
  if (!publisher) ::_exit(2);
  EventWriter writer;
  HostRig pixels;
  pixels.layout = layout_a();
  while (true) {
    Frame frame = pixels.next_frame();
    frame.info.timestamp_sof_ns = frame.info.receive_time_ns = monotonic_ns();
    const FrameReport report = host.process(frame);
    const auto event = writer.driver_state(report.state, report.quality.valid, monotonic_ns());
    if (event) (void)publisher->send(Topic::DriverStateV2, *event);
    const auto quality = writer.quality(report.quality);
    if (quality) (void)publisher->send(Topic::DriverStateQuality, *quality);
    ::usleep(2000);
  }
}

void publisher_is_killed(Pipeline& pipeline) {
  // Children before any thread is there; the second one waits for its turn.
  int go[2];
  ASSERT_EQ(::pipe(go), 0);
  pid_t children[2];
  for (uint64_t i = 0; i < 2; ++i) {
    children[i] = ::fork();
    ASSERT_GE(children[i], 0);
    if (children[i] != 0) continue;
    char turn = 0;
    ::alarm(120);
    if (i == 1 && ::read(go[0], &turn, 1) != 1) ::_exit(1);
    publish_for_ever(pipeline.base(), 100 + i);
  }
  const auto hear_from = [&](uint64_t writer_id) {
    return pipeline.hear([&](const DriverStateQuality& quality) {
      return quality.writer_id == writer_id && quality.valid;
    });
  };
  pipeline.companions =
      Subscriber::open(endpoint_below(pipeline.base(), Topic::DriverStateQuality).value(),
                       Topic::DriverStateQuality)
          .value();
  Gate gate(GateOptions(), monotonic_ns());
  const std::optional<DriverStateQuality> before = hear_from(100);
  if (before) gate.receive(*before, monotonic_ns());

  ::kill(children[0], SIGKILL);
  ::waitpid(children[0], nullptr, 0);
  const uint64_t killed_ns = monotonic_ns();
  // What was on its way may still arrive, once and in its order; then nothing does, and above all nothing old again.
  std::vector<std::byte> message;
  uint32_t last_id = before ? before->frame_id : 0;
  while (pipeline.companions->receive(message, 300ms)) {
    const auto late = decode_quality(message);
    ASSERT_TRUE(late);
    EXPECT_GT(late->frame_id, last_id);
    EXPECT_LE(late->publish_time_ns, killed_ns);
    last_id = late->frame_id;
  }
  const ControlRequest request = gate.check(monotonic_ns() + 2 * kSecond);
  EXPECT_EQ(request.kind, ControlRequest::Kind::LeaveControl);
  EXPECT_EQ(request.cause, LeaveCause::NoCompanion);

  EXPECT_EQ(::write(go[1], "x", 1), 1);
  const std::optional<DriverStateQuality> after = hear_from(101);
  ASSERT_TRUE(after);
  EXPECT_GT(after->publish_time_ns, killed_ns);
  ::kill(children[1], SIGKILL);
  ::waitpid(children[1], nullptr, 0);
  ::close(go[0]);
  ::close(go[1]);
  pipeline.companions.reset();
  pipeline.start();  // on the endpoint that both left behind
}

void second_publisher(Pipeline& pipeline) {
  pipeline.start();
  const Result<Publisher> second = Publisher::open(pipeline.base());
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().reason(), "EndpointInUse");
}

void camera_server_dies(Pipeline& pipeline) {
  pipeline.start();
  pipeline.expect_delivery();
  const uint32_t last_id = pipeline.next_id - 1;
  pipeline.server.reset();
  std::optional<FrameReport> report;
  EXPECT_TRUE(wait_until([&] {
    report = pipeline.turn();
    return report.has_value();
  }));
  ASSERT_TRUE(report);
  EXPECT_FALSE(report->has_state);
  EXPECT_TRUE(report->quality.reasons.has(Reason::FrameTimeout));
  EXPECT_EQ(report->quality.frame_id, last_id);
  const auto heard = pipeline.hear(
      [](const DriverStateQuality& quality) { return quality.reasons.has(Reason::FrameTimeout); });
  ASSERT_TRUE(heard);
  EXPECT_FALSE(heard->valid);
  EXPECT_GT(heard->frame_age_ns, 100 * kMillisecond);
  // The new server counts from the beginning.
  pipeline.next_id = 1;
  pipeline.start_server(small_layout());
  pipeline.expect_delivery();
  EXPECT_EQ(pipeline.host->counters().rebinds, 1U);
}

void camera_changes_its_size(Pipeline& pipeline) {
  pipeline.start();
  pipeline.expect_delivery();
  ASSERT_TRUE(pipeline.server->change_layout(nv12_layout(320, 240).value()));
  pipeline.expect_delivery();
  EXPECT_EQ(pipeline.script->bound_layout().width_px, 320);
  // 360 rows that nobody knows: told as such to the far end, with the frame's own id and nothing else.
  ASSERT_TRUE(pipeline.server->change_layout(nv12_layout(640, 360).value()));
  const FrameReport report = pipeline.next_report();
  expect_empty(report, report.state.frame_id);
  EXPECT_EQ(report.quality.reasons, Reasons(Reason::UnknownGeometry));
  ASSERT_TRUE(pipeline.server->change_layout(small_layout()));
}

void every_slot_is_held(Pipeline& pipeline) {
  pipeline.start();
  pipeline.expect_delivery();
  // The host hangs in a run for as long as the camera goes round its ring: nothing is overwritten under its hands.
  pipeline.script->add_runs(Step::Hang);
  const uint32_t id = pipeline.next_id;
  ASSERT_TRUE(pipeline.make_frame());
  std::optional<FrameReport> report;
  std::thread host_thread([&] { report = pipeline.turn(5s); });
  EXPECT_TRUE(wait_until([&] { return pipeline.script->hanging() == 1; }));
  for (int i = 0; i < 40; ++i) pipeline.make_frame();
  pipeline.script->release();
  host_thread.join();
  ASSERT_TRUE(report);
  expect_fresh(*report, id);
  // The newest is next, and the hole is told.
  report = pipeline.turn(5s);
  ASSERT_TRUE(report);
  EXPECT_TRUE(report->quality.valid);
  EXPECT_TRUE(report->quality.reasons.has(Reason::FrameIdGap));
  EXPECT_EQ(report->quality.dropped_frames, report->state.frame_id - id - 1);
}

void calibration_of_two_values(Pipeline& pipeline) {
  pipeline.with_calibration = true;
  pipeline.start();
  const Topic topics[] = {Topic::ExtrinsicsCalibration};
  Publisher calibrator =
      Publisher::open("ipc://" + pipeline.folder.path() + "/calib", topics).value();
  CalibrationSetting setting;
  setting.endpoint = calibrator.endpoint(Topic::ExtrinsicsCalibration);
  CalibrationReceiver receiver = CalibrationReceiver::open(setting).value();
  EventWriter writer;
  const auto send = [&](const std::vector<float>& rpy_rad) {
    EXPECT_TRUE(wait_until([&] {
      Calibration calibration;
      calibration.rpy_rad = rpy_rad;
      calibration.status = CalibrationStatus::Calibrated;
      calibration.valid = true;
      calibration.log_mono_time_ns = monotonic_ns();
      const auto event = writer.calibration(calibration);
      EXPECT_TRUE(event);
      EXPECT_TRUE(calibrator.send(Topic::ExtrinsicsCalibration, *event));
      std::this_thread::sleep_for(2ms);
      const std::optional<Calibration> received = receiver.poll();
      if (!received || received->rpy_rad != rpy_rad) return false;
      pipeline.host->calibrate(*received);
      return true;
    }));
  };
  EXPECT_TRUE(pipeline.next_report().quality.reasons.has(Reason::CalibMissing));
  send({0.1F, 0.2F, 0.3F});
  EXPECT_FALSE(pipeline.next_report().quality.reasons.has(Reason::CalibShape));
  EXPECT_EQ(pipeline.script->last_rpy_rad(), (std::array{0.1F, 0.2F, 0.3F}));
  send({0.4F, 0.4F});
  const FrameReport report = pipeline.next_report();
  EXPECT_TRUE(report.quality.reasons.has(Reason::CalibShape));
  EXPECT_TRUE(report.quality.valid);
  EXPECT_EQ(pipeline.script->last_rpy_rad(), (std::array{0.1F, 0.2F, 0.3F})) << "last good kept";
  send({0.2F, 0.2F, 0.2F});
  EXPECT_FALSE(pipeline.next_report().quality.reasons.has(Reason::CalibShape));
}

class PipelineFaults : public ::testing::TestWithParam<Fault> {};

TEST_P(PipelineFaults, IsToldAndEnds) {
  Pipeline pipeline;
  GetParam().inject(pipeline);
  if (::testing::Test::HasFatalFailure()) return;
  pipeline.expect_delivery();
}

INSTANTIATE_TEST_SUITE_P(
    BadInput, PipelineFaults,
    ::testing::Values(Fault{"PublisherIsKilled", publisher_is_killed},
                      Fault{"SubscriberNeverReads", subscriber_never_reads},
                      Fault{"DiskIsFull", disk_is_full}, Fault{"SecondPublisher", second_publisher},
                      Fault{"CameraServerDies", camera_server_dies},
                      Fault{"CameraChangesItsSize", camera_changes_its_size},
                      Fault{"EverySlotIsHeld", every_slot_is_held},
                      Fault{"CalibrationOfTwoValues", calibration_of_two_values}),
    [](const auto& row) { return std::string(row.param.name); });

}  // namespace
}  // namespace ignis::pipeline
