// How long a vehicle waits for the first result: starts itself again and again as a new process that opens a compiled cabin model
// with libignis, makes it ready for a camera and runs one frame. Prints medians since before the process was started.
#include "ignis/pipeline/driver_monitoring/artifact_model.h"
#include "ignis/pipeline/driver_monitoring/camera.h"
#include "ignis/pipeline/frames/layout.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <vector>

namespace {

using ignis::Error;
using ignis::Result;
namespace pipeline = ignis::pipeline;
using Clock = std::chrono::steady_clock;

struct Times {
  std::array<double, 5> ms{};
};
constexpr std::array<const char*, 5> kStages = {"process started", "file opened and checked",
                                                "ready for frames", "first result", "a steady run"};

double now_ms() {
  return std::chrono::duration<double, std::milli>(Clock::now().time_since_epoch()).count();
}

struct FrameBytes final : pipeline::FrameMemory {
  explicit FrameBytes(size_t size) : bytes(size, std::byte{100}) {}
  std::vector<std::byte> bytes;
};

// The new process: writes its times to standard output.
Result<Times> start(const std::string& path, double begin_ms) {
  Times times;
  times.ms[0] = now_ms() - begin_ms;
  IGNIS_TRY_ASSIGN(const auto artifact, ignis::exec::Artifact::open(path));
  times.ms[1] = now_ms() - begin_ms;
  IGNIS_TRY_ASSIGN(const auto model, pipeline::load_artifact_model(artifact, path));
  IGNIS_TRY_ASSIGN(const auto layout, pipeline::nv12_layout(1928, 1208));
  IGNIS_TRY_ASSIGN(const auto camera, pipeline::find_camera(pipeline::known_cameras(), layout));
  IGNIS_TRY(model->bind(layout, camera));
  times.ms[2] = now_ms() - begin_ms;
  // In a vehicle the frame comes from the camera's process.
  const double frame_begin_ms = now_ms();
  auto memory = std::make_shared<FrameBytes>(static_cast<size_t>(layout.size_bytes));
  pipeline::Frame frame;
  frame.layout = layout;
  frame.bytes = memory->bytes;
  frame.memory = memory;
  begin_ms += now_ms() - frame_begin_ms;
  const auto run = [&] { return model->run(frame, {}, Clock::now() + std::chrono::seconds(10)); };
  IGNIS_TRY(run());
  times.ms[3] = now_ms() - begin_ms;
  std::array<double, 21> runs{};
  for (double& run_ms : runs) {
    const double before_ms = now_ms();
    IGNIS_TRY(run());
    run_ms = now_ms() - before_ms;
  }
  std::sort(runs.begin(), runs.end());
  times.ms[4] = runs[runs.size() / 2];
  return times;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 4 && std::string(argv[1]) == "--begun-at-ms") {
    const auto times = start(argv[3], std::atof(argv[2]));
    if (!times) return std::cerr << times.error().to_string() << "\n", 1;
    for (const double ms : times->ms) std::printf("%.4f\n", ms);
    return 0;
  }
  if (argc < 2) return std::cerr << "Usage: start_bench MODEL.ignis [STARTS]\n", 2;
  const int count = argc > 2 ? std::max(1, std::atoi(argv[2])) : 31;
  std::array<std::vector<double>, kStages.size()> all;
  for (int i = 0; i < count; ++i) {
    const std::string begin = std::to_string(now_ms());
    std::array<char*, 5> arguments = {argv[0], const_cast<char*>("--begun-at-ms"),
                                      const_cast<char*>(begin.c_str()), argv[1], nullptr};
    std::array<int, 2> pipe_ends{};
    if (pipe(pipe_ends.data()) != 0) return 1;
    const pid_t child = fork();
    if (child == 0) {
      dup2(pipe_ends[1], STDOUT_FILENO);
      execv("/proc/self/exe", arguments.data());
      _exit(1);
    }
    close(pipe_ends[1]);
    FILE* from = fdopen(pipe_ends[0], "r");
    for (std::vector<double>& values : all) {
      double ms = 0;
      if (std::fscanf(from, "%lf", &ms) != 1) return 1;
      values.push_back(ms);
    }
    std::fclose(from);
    waitpid(child, nullptr, 0);
  }
  for (size_t s = 0; s < all.size(); ++s) {
    std::sort(all[s].begin(), all[s].end());
    std::printf("%-26s %8.2f ms median %8.2f ms least\n", kStages[s], all[s][all[s].size() / 2],
                all[s].front());
  }
}
