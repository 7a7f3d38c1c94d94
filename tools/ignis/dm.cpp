// `ignis dm`: joins a source of frames, a model, the host and whoever wants to see what comes out.
#include "ignis/pipeline/driver_monitoring/build/models.h"
#include "ignis/pipeline/driver_monitoring/profile.h"

#include "tools/ignis/commands.h"
#include "tools/ignis/dm/dm_report.h"
#include "tools/ignis/dm/intrinsics.h"
#include "tools/ignis/dm/loop.h"
#include "tools/ignis/dm/page_server.h"
#include "tools/ignis/dm/reason_text.h"
#include "tools/ignis/dm/replay.h"
#include "tools/ignis/dm/status_line.h"
#include "tools/ignis/terminal.h"
#include "tools/video/open_source.h"
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <optional>
#include <random>
#include <utility>

namespace ignis::tools {
namespace {

std::atomic<bool> g_is_stopped{false};

/// The first Ctrl-C ends the run in order; the second one ends the process.
void on_interrupt(int) {
  if (g_is_stopped.exchange(true)) ::_exit(130);
}

class StopOnInterrupt {
 public:
  StopOnInterrupt() {
    g_is_stopped.store(false);
    struct sigaction action{};
    action.sa_handler = on_interrupt;
    ::sigaction(SIGINT, &action, &old_interrupt_);
    ::sigaction(SIGTERM, &action, &old_terminate_);
  }
  ~StopOnInterrupt() {
    ::sigaction(SIGINT, &old_interrupt_, nullptr);
    ::sigaction(SIGTERM, &old_terminate_, nullptr);
  }
  StopOnInterrupt(const StopOnInterrupt&) = delete;
  StopOnInterrupt& operator=(const StopOnInterrupt&) = delete;

 private:
  struct sigaction old_interrupt_{}, old_terminate_{};
};

/// What the options come to before anything is opened.
struct Setup {
  std::vector<pipeline::Camera> cameras;
  std::optional<pipeline::CalibrationSetting> calibration;
  pipeline::ModelOptions model;
  SourceOptions source;
};

/// An error of the source: whose fault it is, on one line. What its text says wrong is usage; what it names may be a file.
Error as_source(const Error& error, const std::string& source) {
  if (error.code() == ErrorCode::DeviceLost || error.code() == ErrorCode::Timeout) return error;
  const size_t end = error.message().find('\n');
  std::string sentence = error.message().substr(0, end);
  if (end != std::string::npos) {
    sentence.resize(sentence.rfind(". ") + 1);
    sentence += " The forms of a source: ignis dm --help.";
  }
  const Error short_error(error.code(), sentence, error.reason());
  const bool is_text_wrong = error.code() != ErrorCode::NotFound && !parse_source(source);
  const bool names_no_file = source.starts_with("synthetic:") || source.starts_with("ring:");
  return is_text_wrong || names_no_file ? as_usage(short_error) : as_file(short_error);
}

Result<Setup> read_options(const Context& context, const DmOptions& options) {
  Setup setup;
  const std::span<const pipeline::Camera> known = pipeline::known_cameras();
  setup.cameras.assign(known.begin(), known.end());
  for (const std::string& text : options.intrinsics) {
    IGNIS_TRY_ASSIGN(pipeline::Camera camera, parse_intrinsics(text));
    // The user's word counts before the table's.
    std::erase_if(setup.cameras, [&](const pipeline::Camera& other) {
      return other.width_px == camera.width_px && other.height_px == camera.height_px;
    });
    setup.cameras.push_back(std::move(camera));
  }
  if (!options.calibration.empty()) {
    auto calibration = pipeline::parse_calibration(options.calibration);
    if (!calibration) {
      return calibration.error().code() == ErrorCode::NotFound
                 ? as_file(std::move(calibration).error())
                 : as_usage(std::move(calibration).error());
    }
    setup.calibration = *std::move(calibration);
  }
  if (options.profile != "auto") {
    if (auto profile = pipeline::parse_profile(options.profile); !profile)
      return as_usage(std::move(profile).error());
  }
  if (auto spec = parse_source(options.source); !spec)
    return as_source(spec.error(), options.source);
  setup.model.profile = options.profile;
  setup.model.side =
      options.side == "right" ? pipeline::DriverSide::Right : pipeline::DriverSide::Left;
  setup.model.device = context.options().device;
  setup.model.program_cache = context.program_cache();
  setup.model.threads = context.threads();
  return setup;
}

Result<std::unique_ptr<pipeline::Model>> load(const std::string& path,
                                              const pipeline::ModelOptions& options) {
  auto model = pipeline::load_model(path, options);
  if (model) return model;
  Error error = std::move(model).error();
  if (error.code() == ErrorCode::NotFound)
    return error.message().find("device") != std::string::npos ? as_device(std::move(error))
                                                               : as_file(std::move(error));
  if (error.code() == ErrorCode::InvalidArgument || error.code() == ErrorCode::Unsupported)
    return as_model(std::move(error));
  return error;
}

pipeline::HostOptions host_options(const Setup& setup, const DmOptions& options) {
  pipeline::HostOptions host;
  host.cameras = setup.cameras;
  host.publishes_raw = options.publishes_raw;
  host.writer_id = (uint64_t{std::random_device{}()} << 32) | std::random_device{}();
  if (options.calibration_blocks) {
    host.also_blocking = pipeline::Reasons(pipeline::Reason::CalibMissing) |
                         pipeline::Reason::CalibStale | pipeline::Reason::CalibShape;
  }
  return host;
}

/// Binds the model to the source's first frame, so that no frame waits for a compile. The source is opened only to look and
/// opened again afterwards: what it gives meanwhile would be late. A source that gives nothing yet is no error.
Status prepare(pipeline::Host& host, const std::string& source, const SourceOptions& options) {
  auto opened = open_source(source, options);
  if (!opened) return as_source(opened.error(), source);
  const std::unique_ptr<pipeline::FrameSource> look = *std::move(opened);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(2);
  while (std::chrono::steady_clock::now() < deadline && !g_is_stopped.load()) {
    const auto frame = look->receive(std::chrono::milliseconds(200));
    if (frame) {
      Status status = host.prepare(frame->layout);
      if (status) return status;
      if (status.error().reason() == "UnknownGeometry") {
        return usage_error(status.error().message() + " Give it with --intrinsics " +
                           std::to_string(frame->layout.width_px) + "x" +
                           std::to_string(frame->layout.height_px) + ":FOCAL[,CX,CY].");
      }
      return status.error().code() == ErrorCode::Unsupported ? as_model(std::move(status).error())
                                                             : std::move(status);
    }
    if (frame.error().reason() == "EndOfStream") return Status::ok();
  }
  return Status::ok();
}

/// Everything that listens to the loop; closed in the reverse order.
struct Listeners {
  std::optional<pipeline::Publisher> publisher;
  std::optional<pipeline::LogWriter> log;
  std::unique_ptr<Recording> recording;
  std::optional<pipeline::CalibrationReceiver> calibration;
  LiveFeed feed;
  std::optional<Shadow> shadow;
  std::unique_ptr<PageServer> page;
};

Status open_listeners(Listeners& l, const Setup& setup, const DmOptions& options) {
  if (setup.calibration) {
    auto calibration = pipeline::CalibrationReceiver::open(*setup.calibration);
    if (!calibration) return as_usage(std::move(calibration).error());
    l.calibration = *std::move(calibration);
  }
  if (!options.publish.empty()) {
    auto publisher = pipeline::Publisher::open(options.publish);
    if (!publisher) {
      return publisher.error().reason() == "EndpointInUse" ? as_file(std::move(publisher).error())
                                                           : as_usage(std::move(publisher).error());
    }
    l.publisher.emplace(*std::move(publisher));
  }
  if (!options.log.empty()) {
    auto log = pipeline::LogWriter::open(options.log);
    if (!log) return as_file(std::move(log).error());
    l.log.emplace(*std::move(log));
  }
  if (!options.record.empty()) {
    IGNIS_TRY_ASSIGN(l.recording, Recording::open(options.record, 20));
  }
  l.shadow.emplace(setup.cameras,
                   options.side == "right" ? pipeline::Side::Right : pipeline::Side::Left,
                   pipeline::monotonic_ns());
  return Status::ok();
}

PageInfo page_info(const DmOptions& options, const Context& context, const RunIdentity& identity,
                   const Listeners& listeners) {
  PageInfo info;
  info.version = version_text();
  info.source = identity.source;
  info.model = identity.model_name;
  info.profile = identity.profile;
  info.model_hash = identity.model_hash.substr(0, 12);
  info.device = context.options().device;
  info.side = options.side;
  if (listeners.publisher)
    info.publish = listeners.publisher->endpoint(pipeline::Topic::DriverStateV2);
  info.log = options.log;
  info.record = options.record;
  return info;
}

Result<Exit> watch(const Context& context, const DmOptions& options, Setup& setup) {
  Listeners listeners;
  IGNIS_TRY(open_listeners(listeners, setup, options));
  Progress progress(context.shows_progress());
  setup.model.progress = progress.callback();
  auto loaded = load(options.model, setup.model);
  setup.model.progress = {};
  std::unique_ptr<pipeline::Model> model;
  std::optional<Error> refusal;
  pipeline::Reasons load_reasons;
  RunIdentity identity;
  if (loaded) {
    model = *std::move(loaded);
    identity = describe(*model);
  } else {
    // Who listens must hear that there is no model, and why; silence would be the worst answer.
    if (!listeners.publisher) return std::move(loaded).error();
    refusal = std::move(loaded).error();
    load_reasons = pipeline::load_reasons(*refusal) | pipeline::Reason::ModelUnavailable;
    identity.model_name = options.model;
    progress.clear();
    std::fprintf(stderr, "warning: %s Published as ModelUnavailable.\n",
                 refusal->message().c_str());
  }
  pipeline::HostOptions host_settings = host_options(setup, options);
  host_settings.make_model = [path = options.model, settings = setup.model] {
    return pipeline::load_model(path, settings);
  };
  pipeline::Host host(std::move(model), load_reasons, std::move(host_settings));
  if (!refusal) {
    progress.show("preparing for the source's frames");
    IGNIS_TRY(prepare(host, options.source, setup.source));
    progress.clear();
  }
  auto source = open_source(options.source, setup.source);
  if (!source) return as_source(source.error(), options.source);
  identity.source = (*source)->describe();
  if (options.view_port >= 0) {
    IGNIS_TRY_ASSIGN(listeners.page,
                     PageServer::start(options.view_port, listeners.feed,
                                       page_info(options, context, identity, listeners)));
  }
  if (listeners.page && !context.prints_text() && !context.options().is_quiet)
    std::fprintf(stderr, "live page: %s\n", listeners.page->url().c_str());
  if (context.prints_text()) {
    std::printf("%s\n", heading(identity).c_str());
    if (listeners.publisher) {
      std::printf("published at: %s and %s\n",
                  listeners.publisher->endpoint(pipeline::Topic::DriverStateV2).c_str(),
                  listeners.publisher->endpoint(pipeline::Topic::DriverStateQuality).c_str());
    }
    if (listeners.page)
      std::printf("live page: %s\n", styled(listeners.page->url(), Style::Strong).c_str());
    std::fflush(stdout);
  }

  LoopSinks sinks;
  sinks.publisher = listeners.publisher ? &*listeners.publisher : nullptr;
  sinks.log = listeners.log ? &*listeners.log : nullptr;
  sinks.recording = listeners.recording.get();
  sinks.feed = &listeners.feed;
  sinks.shadow = &*listeners.shadow;
  if (listeners.page) sinks.view_state = [&] { return listeners.page->state(); };
  LoopOptions loop_options;
  loop_options.seconds = options.seconds;
  LoopSummary summary;
  {
    std::optional<StatusLine> line;
    if (context.prints_text()) line.emplace(listeners.feed);
    summary = run_loop(**source, host, listeners.calibration ? &*listeners.calibration : nullptr,
                       sinks, loop_options, g_is_stopped);
  }
  listeners.feed.close();
  listeners.page.reset();
  if (context.prints_text()) std::fputs(summary_text(summary).c_str(), stdout);
  IGNIS_TRY(context.write_json(summary_json(identity, summary, host.counters())));
  if (refusal) {
    std::fprintf(stderr, "error: %s\n", refusal->message().c_str());
    return exit_code(*refusal);
  }
  IGNIS_TRY(check_summary(summary, identity));
  return Exit::Ok;
}

Result<Exit> replay(const Context& context, const DmOptions& options, Setup& setup) {
  IGNIS_TRY_ASSIGN(const ReplayLog log, read_replay_log(options.replay));
  Progress progress(context.shows_progress());
  setup.model.progress = progress.callback();
  IGNIS_TRY_ASSIGN(auto model, load(options.model, setup.model));
  RunIdentity identity = describe(*model);
  const auto clock = std::make_shared<std::atomic<uint64_t>>(pipeline::monotonic_ns());
  pipeline::HostOptions host_settings = host_options(setup, options);
  host_settings.now_ns = [clock] { return clock->load(); };
  host_settings.run_limit = std::chrono::seconds(30);  // a slow machine may replay, too
  pipeline::Host host(std::move(model), {}, std::move(host_settings));
  setup.source.pace = pipeline::Pace::Fast;
  IGNIS_TRY(prepare(host, options.source, setup.source));
  auto source = open_source(options.source, setup.source);
  if (!source) return as_source(source.error(), options.source);
  identity.source = (*source)->describe();
  ReplayOptions replay_options;
  replay_options.tolerance = options.tolerance;
  if (options.seconds > 0)
    replay_options.max_frames = static_cast<uint64_t>(std::max(1.0, options.seconds * 20));
  replay_options.progress = [&](uint64_t done, uint64_t total) {
    if (done % 20 == 0)
      progress.show("replay " + std::to_string(done) + "/" + std::to_string(total));
  };
  IGNIS_TRY_ASSIGN(const ReplayResult result,
                   run_replay(**source, host, log, clock, replay_options, g_is_stopped));
  progress.clear();
  if (context.prints_text())
    std::fputs(replay_text(result, log, options.tolerance).c_str(), stdout);
  IGNIS_TRY(context.write_json(replay_json(identity, result, log, options.tolerance)));
  return result.has_passed() && !g_is_stopped.load() ? Exit::Ok : Exit::Different;
}

}  // namespace

Result<Exit> dm_command(const Context& context, const DmOptions& options) {
  const StopOnInterrupt stop;
  IGNIS_TRY_ASSIGN(Setup setup, read_options(context, options));
  if (options.replay.empty()) return watch(context, options, setup);
  if (!options.publish.empty() || !options.log.empty() || !options.record.empty() ||
      options.view_port >= 0) {
    return usage_error(
        "--replay compares and does nothing else; leave out --publish, --log, --record and "
        "--view.");
  }
  if (setup.calibration)
    return usage_error("--replay takes the angles from the log; leave out --calib.");
  return replay(context, options, setup);
}

}  // namespace ignis::tools
