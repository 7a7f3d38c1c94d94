// ignis-demo-face: finds faces in a picture with CenterFace and draws them. Shows how a program uses the engine.

#include "ignis/engine/session.h"

#include "tools/demo_face/centerface.h"
#include "tools/io/files.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

namespace ignis::demo {
namespace {

struct Options {
  std::string model, picture, drawing;
  std::string device = "cpu";
  int threads = 0;
  int runs = 20;
};

constexpr const char* kUsage =
    "usage: ignis-demo-face MODEL.onnx PICTURE.png OUT.png [--device SPEC] [--threads N] [--runs "
    "N]\n"
    "Finds faces with CenterFace, draws a box and five landmarks for each, and prints the "
    "latency.\n";

bool parse_int(const char* text, int* value) {
  const auto [end, code] = std::from_chars(text, text + std::strlen(text), *value);
  return code == std::errc() && *end == '\0' && *value >= 0;
}

bool parse_options(int argc, char** argv, Options* options) {
  std::vector<std::string> files;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    const bool has_value = i + 1 < argc;
    if (argument == "--device" && has_value) options->device = argv[++i];
    else if (argument == "--threads" && has_value) {
      if (!parse_int(argv[++i], &options->threads)) return false;
    } else if (argument == "--runs" && has_value) {
      if (!parse_int(argv[++i], &options->runs)) return false;
    } else if (argument.starts_with("--")) return false;
    else files.push_back(argument);
  }
  if (files.size() != 3) return false;
  options->model = files[0];
  options->picture = files[1];
  options->drawing = files[2];
  return true;
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

Result<const HostTensor*> output_named(const Session& session,
                                       const std::vector<HostTensor>& outputs,
                                       const std::string& name) {
  for (size_t i = 0; i < session.outputs().size(); ++i) {
    if (session.outputs()[i].name == name) return &outputs[i];
  }
  return Error(ErrorCode::InvalidArgument,
               "The model has no output '" + name + "'; this is not CenterFace.");
}

Result<std::vector<Face>> find_faces(const Session& session,
                                     const std::vector<HostTensor>& outputs) {
  // The names that CenterFace's file gives its outputs.
  IGNIS_TRY_ASSIGN(const HostTensor* heatmap, output_named(session, outputs, "537"));
  IGNIS_TRY_ASSIGN(const HostTensor* scale, output_named(session, outputs, "538"));
  IGNIS_TRY_ASSIGN(const HostTensor* offset, output_named(session, outputs, "539"));
  IGNIS_TRY_ASSIGN(const HostTensor* landmarks, output_named(session, outputs, "540"));
  return decode_faces({*heatmap, *scale, *offset, *landmarks});
}

Status measure(Session& session, const std::vector<HostTensor>& inputs, int runs) {
  std::vector<double> times_ms;
  for (int i = 0; i < runs; ++i) {
    const auto start = std::chrono::steady_clock::now();
    IGNIS_TRY(session.run(inputs));
    times_ms.push_back(1e3 * seconds_since(start));
  }
  if (times_ms.empty()) return Status::ok();
  std::sort(times_ms.begin(), times_ms.end());
  const auto at = [&times_ms](double share) {
    return times_ms[static_cast<size_t>(share * static_cast<double>(times_ms.size() - 1))];
  };
  std::printf("latency       p50 %.2f ms, p90 %.2f ms, max %.2f ms over %d runs\n", at(0.5),
              at(0.9), times_ms.back(), runs);
  return Status::ok();
}

/// Returns how many faces were found.
Result<int> run(const Options& options) {
  IGNIS_TRY_ASSIGN(const std::vector<std::byte> file, tools::read_file(options.picture));
  IGNIS_TRY_ASSIGN(tools::Image image, tools::parse_image(file));
  const std::vector<HostTensor> inputs = {make_input(image)};

  SessionOptions session_options;
  session_options.device = options.device;
  session_options.threads = options.threads;
  session_options.shapes["input.1"] = inputs[0].shape;
  const auto start = std::chrono::steady_clock::now();
  IGNIS_TRY_ASSIGN(Session session, Session::load(options.model, session_options));
  const double load_s = seconds_since(start);
  IGNIS_TRY_ASSIGN(const std::vector<HostTensor> outputs, session.run(inputs));
  const double first_s = seconds_since(start);

  std::printf("model         %s on %s, input %s\n", options.model.c_str(),
              session.target().name().c_str(), to_string(inputs[0].shape).c_str());
  std::printf("program       %d kernels, %d compiled programs, %.1f MB constants, %.1f MB arena\n",
              session.kernel_count(), session.program_count(),
              1e-6 * static_cast<double>(session.constant_bytes()),
              1e-6 * static_cast<double>(session.arena_bytes()));
  std::printf("cold start    %.2f s to compile, %.2f s to the first result\n", load_s, first_s);
  IGNIS_TRY(measure(session, inputs, options.runs));

  IGNIS_TRY_ASSIGN(const std::vector<Face> faces, find_faces(session, outputs));
  for (const Face& f : faces) {
    std::printf("face          score %.3f, box (%.0f, %.0f) to (%.0f, %.0f)\n",
                static_cast<double>(f.score), static_cast<double>(f.upper_left.x_px),
                static_cast<double>(f.upper_left.y_px), static_cast<double>(f.lower_right.x_px),
                static_cast<double>(f.lower_right.y_px));
  }
  draw_faces(image, faces);
  IGNIS_TRY_ASSIGN(const std::vector<std::byte> png, tools::format_png(image));
  IGNIS_TRY(tools::write_file(options.drawing, png));
  std::printf("picture       %s\n", options.drawing.c_str());
  return static_cast<int>(faces.size());
}

}  // namespace
}  // namespace ignis::demo

int main(int argc, char** argv) {
  ignis::demo::Options options;
  if (!ignis::demo::parse_options(argc, argv, &options)) {
    std::fputs(ignis::demo::kUsage, stderr);
    return 2;
  }
  const ignis::Result<int> faces = ignis::demo::run(options);
  if (!faces) {
    std::fprintf(stderr, "ignis-demo-face: %s\n", faces.error().to_string().c_str());
    return 3;
  }
  if (*faces == 0) {
    std::fputs("ignis-demo-face: there is no face in the picture\n", stderr);
    return 1;
  }
  return 0;
}
