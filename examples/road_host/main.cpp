// The road-model host on two made-up cameras: one line a second, a big model that is made to hang, the small one that
// takes over within the same frame, and the big one that qualifies again.

#include "ignis/pipeline/frames/layout.h"
#include "ignis/pipeline/road/build/session_model.h"
#include "ignis/pipeline/road/build/synthetic_network.h"
#include "ignis/pipeline/road/host.h"
#include "ignis/pipeline/road/road_warp.h"

#include "examples/road_host/scene.h"
#include "examples/road_host/stubborn_model.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

namespace ignis::examples {
namespace {

using namespace pipeline;  // NOLINT: a program, not a library
using Clock = std::chrono::steady_clock;

constexpr int kRateHz = 20;
constexpr std::chrono::milliseconds kPeriod{1000 / kRateHz};

struct Options {
  int seconds = 6, hang_at_s = 2, requalify_at_s = 4;
  int width_px = 1928, height_px = 1208;
  int run_limit_ms = 150;
  bool is_fast = false;
};

constexpr const char* kHelp =
    "ignis-road-host: the road-model host on two made-up cameras\n"
    "  --seconds N         how long (6)\n"
    "  --hang-at S         the big model hangs in this second (2); -1: never\n"
    "  --requalify-at S    it is tried again in this second (4); -1: never\n"
    "  --size WxH          of both cameras (1928x1208)\n"
    "  --run-limit-ms N    of one run (150)\n"
    "  --fast              as fast as possible instead of 20 Hz\n"
    "Ends with 0 when every frame got a valid report and the hang was served by the small model.\n";

bool parse(int argc, char** argv, Options* options) {
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    if (name == "--fast") {
      options->is_fast = true;
      continue;
    }
    const char* const value = i + 1 < argc ? argv[++i] : nullptr;
    if (value == nullptr) return false;
    if (name == "--size") {
      if (std::sscanf(value, "%dx%d", &options->width_px, &options->height_px) != 2) return false;
      continue;
    }
    int* const number = name == "--seconds"        ? &options->seconds
                        : name == "--hang-at"      ? &options->hang_at_s
                        : name == "--requalify-at" ? &options->requalify_at_s
                        : name == "--run-limit-ms" ? &options->run_limit_ms
                                                   : nullptr;
    if (number == nullptr || std::sscanf(value, "%d", number) != 1) return false;
  }
  return options->seconds > 0 && options->run_limit_ms > 0;
}

TierOptions tier_options(const Options& options, const std::shared_ptr<Hang>& hang) {
  const auto runner = [&](RoadTier tier, int channels) {
    RoadRunnerOptions result;
    result.tier = tier;
    result.name = tier == RoadTier::Big ? "synthetic-big" : "synthetic-small";
    result.run_limit = std::chrono::milliseconds(options.run_limit_ms);
    result.make_model = [=]() -> Result<std::unique_ptr<RoadModel>> {
      SyntheticNetworkOptions network;
      network.channels = channels;
      SessionModelOptions model;
      model.make_network = [network] { return make_synthetic_network(network); };
      model.slices = synthetic_slices();
      IGNIS_TRY_ASSIGN(std::unique_ptr<RoadModel> made, make_session_model(std::move(model)));
      return tier == RoadTier::Big ? make_stubborn(std::move(made), hang) : std::move(made);
    };
    return result;
  };
  TierOptions tiers;
  tiers.big = runner(RoadTier::Big, 16);
  tiers.small = runner(RoadTier::Small, 4);
  return tiers;
}

/// What a second's line is made of.
struct Second {
  int frames = 0, valid = 0;
  std::vector<double> run_ms;
  void add(const RoadReport& report) {
    ++frames;
    if (!report.is_valid) return;
    ++valid;
    run_ms.push_back(static_cast<double>(report.run_ns) * 1e-6);
  }
  void print(int second, const RoadReport& last) {
    std::sort(run_ms.begin(), run_ms.end());
    const double median = run_ms.empty() ? 0 : run_ms[run_ms.size() / 2];
    const double worst = run_ms.empty() ? 0 : run_ms.back();
    std::printf(
        "second %d: %d frames, %d valid, tier %s, %s, epoch %u, run %.1f ms (worst %.1f), "
        "drops %.1f %%\n",
        second, frames, valid, std::string(to_string(last.tier)).c_str(),
        to_string(last.state).c_str(), last.epoch, median, worst, 100 * last.drop_ratio);
    std::fflush(stdout);
  }
};

class Program {
 public:
  Program(const Options& options, const FrameLayout& layout)
      : options_(options),
        host_(tier_options(options, hang_)),
        main_("main camera", layout, 0, 0),
        wide_("wide camera", layout, 2, 2'000'000),
        pairer_(main_, wide_) {
    // The cameras look where the models do; the focal lengths are those of a usual pair.
    const double x = layout.width_px / 2.0, y = layout.height_px / 2.0;
    input_.transforms[0] = road_matrix({1.373 * layout.width_px, x, y}, kMainModelView);
    input_.transforms[1] = road_matrix({0.294 * layout.width_px, x, y}, kWideModelView);
    input_.traffic_convention = {1, 0};
    input_.action_t = {0.2f, 0.5f};
  }
  ~Program() { hang_->release(); }

  Status load(const FrameLayout& layout) {
    const Clock::time_point begin = Clock::now();
    IGNIS_TRY(host_.load(layout));
    std::printf("both models are loaded and warm after %.2f s: %s\n",
                std::chrono::duration<double>(Clock::now() - begin).count(),
                to_string(host_.tiers().state()).c_str());
    return {};
  }

  Result<bool> run() {
    start_ = Clock::now();
    bool is_good = true;
    for (int second = 0; second < options_.seconds; ++second) {
      if (second == options_.hang_at_s) hang_->arm();
      if (second == options_.requalify_at_s) requalify();
      Second line;
      RoadReport report;
      for (int i = 0; i < kRateHz && frame_ < (second + 1) * kRateHz; ++i) {
        IGNIS_TRY_ASSIGN(report, one_frame());
        line.add(report);
      }
      is_good = is_good && line.valid == line.frames;
      line.print(second, report);
    }
    const bool has_fallen_back = host_.tiers().fallbacks() == 1;
    return is_good && has_fallen_back == (options_.hang_at_s >= 0);
  }

 private:
  void requalify() {
    const Status asked = host_.tiers().requalify();
    std::printf("  the big model is tried again: %s\n",
                asked ? "loading" : asked.error().to_string().c_str());
    if (!asked || !options_.is_fast) return;
    // Without pacing the seconds would be over before it is compiled.
    while (host_.tiers().big_state().kind == RunnerState::Kind::Loading) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }

  // Waits for the camera; frames that passed meanwhile are lost, as with a real one.
  void pace() {
    if (options_.is_fast) return;
    const auto passed = static_cast<int>((Clock::now() - start_) / kPeriod);
    if (passed > frame_) {
      main_.skip(static_cast<uint32_t>(passed - frame_));
      wide_.skip(static_cast<uint32_t>(passed - frame_));
      frame_ = passed;
    }
    std::this_thread::sleep_until(start_ + frame_ * kPeriod);
  }

  Result<RoadReport> one_frame() {
    pace();
    IGNIS_TRY_ASSIGN(FramePair pair, pairer_.next(std::chrono::milliseconds(500)));
    ++frame_;
    input_.main = std::move(pair.main);
    input_.wide = std::move(pair.wide);
    input_.desire[3] = frame_ % 40 < 20 ? 1.0f : 0.0f;
    // The deadline leaves the small model time after the big one's limit.
    const auto limit = std::chrono::milliseconds(2 * options_.run_limit_ms);
    RoadReport report = host_.run(input_, Clock::now() + limit);
    input_.main = input_.wide = Frame();  // back to the cameras
    if (report.is_tier_switch) {
      std::printf("  frame %u is the first from the %s model: %s\n", report.frame_id,
                  std::string(to_string(report.tier)).c_str(), to_string(report.state).c_str());
    }
    if (!report.is_valid) {
      std::printf("  frame %u: %s\n", report.frame_id, report.error_text.c_str());
    }
    return report;
  }

  Options options_;
  std::shared_ptr<Hang> hang_ = std::make_shared<Hang>();
  RoadHost host_;
  RoadScene main_, wide_;
  FramePairer pairer_;
  RoadInput input_;
  Clock::time_point start_;
  int frame_ = 0;
};

int fail(const Error& error) {
  std::fprintf(stderr, "%s\n", error.to_string().c_str());
  return 1;
}

int run(int argc, char** argv) {
  Options options;
  if (!parse(argc, argv, &options)) {
    const bool is_help = argc == 2 && std::strcmp(argv[1], "--help") == 0;
    std::fputs(kHelp, is_help ? stdout : stderr);
    return is_help ? 0 : 2;
  }
  const Result<FrameLayout> layout = nv12_layout(options.width_px, options.height_px);
  if (!layout) return fail(layout.error());
  Program program(options, *layout);
  const Status loaded = program.load(*layout);
  if (!loaded) return fail(loaded.error());
  const Result<bool> is_good = program.run();
  if (!is_good) return fail(is_good.error());
  return *is_good ? 0 : 1;
}

}  // namespace
}  // namespace ignis::examples

int main(int argc, char** argv) { return ignis::examples::run(argc, argv); }
