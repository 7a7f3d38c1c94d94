// The command-line tool: options, dispatch, and how it ends. What each sub-command does lies in its own file.
#include "ignis/base/target.h"
#include "ignis/tensor/core.h"

#include "tools/ignis/commands.h"
#include "tools/ignis/terminal.h"
#include "tools/ignis/tune.h"
#include "tools/io/files.h"
#include "tools/video/open_source.h"
#include <CLI/CLI.hpp>
#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstring>
#include <functional>
#include <new>
#include <tuple>

namespace ignis::tools {
namespace {

constexpr const char* kExitCodes =
    "Exit codes: 0 done and passed, 1 compared and different or slower than allowed, 2 wrong "
    "usage, 3 model refused,\n"
    "4 device missing, lost or timed out, 5 out of memory, 6 input or output file, 7 internal "
    "error.";

char g_report_path[256];  // made before it is needed: a signal handler may not

/// A failed check aborts. The process then ends with the code of an internal error and leaves a report behind.
void on_abort(int) {
  const int fd = ::open(g_report_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  const char what[] =
      "ignis ended by a failed check or abort(); the reason is on standard error.\n";
  if (fd >= 0) {
    (void)!::write(fd, what, sizeof what - 1);
    ::close(fd);
  }
  const char note[] = "error: internal error; report: ";
  (void)!::write(STDERR_FILENO, note, sizeof note - 1);
  (void)!::write(STDERR_FILENO, g_report_path, std::strlen(g_report_path));
  (void)!::write(STDERR_FILENO, "\n", 1);
  ::_exit(static_cast<int>(Exit::Internal));
}

void prepare_report() {
  const char* folder = std::getenv("TMPDIR");
  std::snprintf(g_report_path, sizeof g_report_path, "%.200s/ignis-report-%d.txt",
                folder != nullptr && *folder != '\0' ? folder : "/tmp",
                static_cast<int>(::getpid()));
  std::signal(SIGABRT, on_abort);
}

/// The command line and the whole error, for whoever has to find out.
void write_report(const std::string& what, int argc, char** argv) {
  std::string text = "ignis " + version_text() + "\n" + what + "\n";
  for (int i = 0; i < argc; ++i) text += std::string(i == 0 ? "" : " ") + argv[i];
  if (write_file(g_report_path, text + "\n")) std::fprintf(stderr, "report: %s\n", g_report_path);
}

/// The last line of a command that failed: "error: sentence", and the same as JSON where that is asked for.
Exit fail(const Error& error, const std::string& json, int argc, char** argv) {
  const Exit exit = exit_code(error);
  std::string place;
  for (const std::string& where : error.context())
    place += (place.empty() ? " (in " : ", in ") + where;
  if (!place.empty()) place += ")";
  std::fprintf(stderr, "error: %s%s\n", error.message().c_str(), place.c_str());
  if (!json.empty()) {
    const Json report{{"schema", "ignis.error/1"},
                      {"error",
                       {{"message", error.message()},
                        {"code", std::string(to_string(error.code()))},
                        {"reason", error.reason()},
                        {"context", error.context()}}},
                      {"exit_code", static_cast<int>(exit)}};
    (void)write_file(json, report.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
  }
  if (exit == Exit::Internal) write_report(error.to_string(), argc, argv);
  return exit;
}

void add_common(CLI::App& app, CommonOptions& c) {
  app.add_option("--device", c.device,
                 "Device SPEC, or a comma list to try in order: cpu, cpu:llvm:avx2, cpu:interp")
      ->envname("IGNIS_DEVICE");
  app.add_flag("--json{-}", c.json,
               "Report as JSON on standard output, or with --json=FILE into a file")
      ->envname("IGNIS_JSON");
  app.add_flag("-q,--quiet", c.is_quiet, "Print nothing but errors and results asked for")
      ->envname("IGNIS_QUIET");
  app.add_flag("-v,--verbose", c.verbosity, "More of what happens; -vv for all of it");
  app.add_option("--log-format", c.log_format, "text or json")
      ->check(CLI::IsMember({"text", "json"}))
      ->envname("IGNIS_LOG_FORMAT");
  app.add_option("--color", c.color, "auto, always or never (NO_COLOR is respected)")
      ->check(CLI::IsMember({"auto", "always", "never"}))
      ->envname("IGNIS_COLOR");
  app.add_option("--seed", c.seed, "Seed of random inputs; printed when it is made up")
      ->envname("IGNIS_SEED");
  app.add_option("--threads", c.threads, "Number of threads, or auto")->envname("IGNIS_THREADS");
  app.add_option("--cpus", c.cpus, "Run on these CPUs only, such as 0,2-3")->envname("IGNIS_CPUS");
  app.add_option("--timeout", c.timeout_s, "Seconds until a run fails")->envname("IGNIS_TIMEOUT");
  app.add_option("--limits", c.limits_file, "JSON file of limits for untrusted models")
      ->envname("IGNIS_LIMITS");
  app.add_option("--cache", c.cache,
                 "Folder of compiled kernels, or off; ~/.cache/ignis when nothing is said")
      ->envname("IGNIS_CACHE");
  app.add_option("--cache-size", c.cache_size,
                 "What that folder may take, such as 100M or 2G; 512M when nothing is said")
      ->envname("IGNIS_CACHE_SIZE");
  app.set_config("--config", "", "File of options (key=value lines)")->envname("IGNIS_CONFIG");
  app.set_version_flag("--version", [] {
    std::string text = "ignis " + version_text() + "\ntargets: cpu (llvm: ";
    for (const Isa isa : {Isa::Sse2, Isa::Avx2, Isa::Avx512, Isa::Neon})
      text += std::string(isa == Isa::Sse2 ? "" : ", ") + std::string(to_string(isa));
    return text + "; c), cpu:interp";
  });
}

void add_model(CLI::App& app, ModelOptions& m) {
  app.add_option("model", m.path, "ONNX file, or a compiled model (.ignis)")->required();
  // One value each, so that the model may follow.
  const auto add = [&](const char* name, std::vector<std::string>& values, const char* help) {
    app.add_option(name, values, help)->expected(1)->take_all()->allow_extra_args(false);
  };
  add("-i,--input", m.inputs,
      "NAME=@FILE (npy, npz, raw, pb, png, jpg, ppm), NAME=1x3xf32=1,2,3 or NAME:uniform(0,1), "
      ":normal, :randint, :zeros, :ones; "
      "an image takes ,layout=NCHW,mean=127/127/127,scale=0.01,color=rgb|bgr|gray,resize=1; "
      "@FILE.npz gives all inputs");
  add("--shape", m.shapes, "Shape of an input: NAME=1x3x?x?");
  add("--dim", m.dims, "Extent of a named dim: batch=4");
  add("--fix", m.fixed,
      "Take this input's value as a constant of the model (for inputs that hold shapes)");
  app.add_option("--float-level", m.float_level,
                 "What floats may be rewritten to: strict (the same bits), finite (the default) or "
                 "fast")
      ->check(CLI::IsMember({"strict", "finite", "fast"}));
  app.add_option("--winograd", m.winograd,
                 "Winograd's products for 3 x 3 convolutions: auto (where they pay), off or on")
      ->check(CLI::IsMember({"auto", "off", "on"}));
  app.add_option("--chain", m.chain,
                 "Kernels that run by bands of rows together: auto (where it pays), off or on")
      ->check(CLI::IsMember({"auto", "off", "on"}));
  app.add_option("--load-tuning", m.tuning,
                 "File of choices that compile --tune saved; one of another machine or version is "
                 "ignored with a note");
}

void add_dm(CLI::App& app, DmOptions& o) {
  app.add_option("source", o.source,
                 "Path of a video, a picture or raw frames, v4l2:DEVICE, synthetic:SCENARIO or "
                 "ring:NAME; settings may follow, as in synthetic:drive,seconds=30")
      ->required();
  app.add_option("-m,--model", o.model,
                 "ONNX file of a cabin model or a face detector, or the same compiled (.ignis)")
      ->required();
  app.add_option("--profile", o.profile,
                 "Contract of the model: comma-553, comma-38, face or auto");
  app.add_option("--side", o.side, "Side of the driver for a model that knows one: left or right")
      ->check(CLI::IsMember({"left", "right"}));
  app.add_option("--calib", o.calibration,
                 "Camera angles roll,pitch,yaw in rad, a file of them, or the tcp:// or ipc:// "
                 "endpoint where they are published");
  app.add_option("--intrinsics", o.intrinsics,
                 "Lens of a camera that is not known: WIDTHxHEIGHT:FOCAL or "
                 "WIDTHxHEIGHT:FOCAL,CX,CY in px")
      ->expected(1)
      ->take_all()
      ->allow_extra_args(false);
  app.add_option(
      "--publish", o.publish,
      "Publish driverStateV2 at this tcp:// or ipc:// endpoint and driverStateQuality at "
      "the next port (ipc: at PATH.quality); a model that cannot be used is then published as "
      "ModelUnavailable instead of ending the command");
  app.add_option("--log", o.log, "Write messages to this file and companions to FILE.quality");
  app.add_option("--record", o.record,
                 "Record the frames: FILE.mp4 as video, else raw with an index, for a replay");
  app.add_option("--view", o.view_port,
                 "Serve the live page on this port of 127.0.0.1; 0 takes a free one")
      ->check(CLI::Range(0, 65535));
  app.add_option("--replay", o.replay,
                 "Run again over the source's frames and compare with this log of an earlier run");
  app.add_option("--tolerance", o.tolerance,
                 "With --replay: floats may differ by this much, relative above 1")
      ->check(CLI::Range(0.0, 1.0));
  app.add_option("--seconds", o.seconds, "End after so many seconds")->check(CLI::Range(0.0, 1e9));
  app.add_flag("--raw-predictions", o.publishes_raw,
               "Publish and log the model's raw output too; it is private (cabin-biometric)");
  app.add_flag("--require-calib", o.calibration_blocks,
               "Without a fresh calibration no state is valid");
}

void add_explain_cache(CLI::App& app, bool& explains) {
  app.add_flag("--explain-cache", explains,
               "For each kernel: found in the program cache or compiled, and why");
}

using Command = std::function<Result<Exit>(const Context&)>;

/// A sub-command, its options bound to a struct that lives as long as its command.
template <typename Options>
CLI::App* add_command(CLI::App& app, const char* name, const char* what, const char* example,
                      Result<Exit> (*run)(const Context&, const Options&),
                      std::shared_ptr<Options>& options, Command& chosen) {
  options = std::make_shared<Options>();
  CLI::App* sub = app.add_subcommand(name, what);
  sub->fallthrough();  // options that every command takes
  sub->footer(
      std::string("Example:\n  ") + example +
      "\n\nOptions of every command (--device, --json, --threads, --seed …): ignis --help\n" +
      kExitCodes);
  sub->callback([options, run, &chosen] {
    chosen = [options, run](const Context& context) { return run(context, *options); };
  });
  return sub;
}

void add_commands(CLI::App& app, Command& chosen) {
  std::shared_ptr<RunOptions> run;
  CLI::App* sub = add_command(
      app, "run", "Run a model once and show or write its outputs",
      "ignis run face.onnx --input x=@photo.png,layout=NCHW,scale=0.0078 --output y=@y.npy",
      run_command, run, chosen);
  add_model(*sub, run->model);
  sub->add_option("-o,--output", run->outputs,
                  "NAME=@FILE (npy, npz, else raw bytes), or @FILE.npz for all")
      ->expected(1)
      ->take_all()
      ->allow_extra_args(false);
  sub->add_option("--print-max", run->print_max, "Elements of each output to print")
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 40));
  sub->add_option("--repeat", run->repeat, "Runs; the last one's outputs count")
      ->check(CLI::Range(1, 1000000000));
  sub->add_option("--dump", run->dump, "Folder for the values of the layers that --tap names");
  sub->add_option("--tap", run->tap, "Regular expression on layer names or outputs");

  add_explain_cache(*sub, run->explains_cache);

  std::shared_ptr<BenchOptions> bench;
  sub = add_command(app, "bench", "Measure a model, from the file to the steady state",
                    "ignis bench model.onnx --threads 1 --duration 5 --json=report.json",
                    bench_command, bench, chosen);
  add_model(*sub, bench->model);
  sub->add_option("--warmup", bench->warmup_ms, "Milliseconds of runs before the measured ones")
      ->check(CLI::Range(0.0, 1e9));
  sub->add_option("--duration", bench->duration_s, "Seconds to measure")
      ->check(CLI::Range(0.0, 1e9));
  sub->add_option("--iters", bench->iterations, "Least number of runs to measure")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 40));
  sub->add_option("--rate", bench->rate_fps, "Start runs at this rate; late ones are counted")
      ->check(CLI::Range(0.0, 1e9));
  sub->add_flag("--profile", bench->profiles, "Time of each kernel, from runs of their own");
  sub->add_option("--top", bench->top, "Kernels to print with --profile")
      ->check(CLI::Range(1, 1000000));
  sub->add_option("--samples", bench->samples_file, "CSV file of all measured latencies");
  sub->add_option("--baseline", bench->baseline_file,
                  "Compare p50 with that of an earlier JSON report");
  sub->add_option("--fail-above", bench->fail_above_percent,
                  "Percent slower than the baseline that still passes")
      ->transform([](std::string text) {
        return !text.empty() && text.back() == '%' ? text.substr(0, text.size() - 1) : text;
      });

  add_explain_cache(*sub, bench->explains_cache);

  std::shared_ptr<ProfileOptions> profile;
  sub = add_command(app, "profile", "Show where the time of a run goes, kernel by kernel",
                    "ignis profile model.onnx --by layer --trace trace.json", profile_command,
                    profile, chosen);
  add_model(*sub, profile->model);
  sub->add_option("--runs", profile->runs, "Profiled runs; the medians count")
      ->check(CLI::Range(1, 100000));
  sub->add_option("--by", profile->by, "Sum up by call, kernel, op or layer")
      ->check(CLI::IsMember({"call", "kernel", "op", "layer"}));
  sub->add_option("--top", profile->top, "Rows to print")->check(CLI::Range(1, 1000000));
  sub->add_flag("--schedules", profile->shows_schedules,
                "Scheduling actions of each kernel, and what was compared to choose them (with "
                "--by call or kernel)");
  sub->add_option(
      "--trace", profile->trace_file,
      "File for chrome://tracing or Perfetto: compile stages and every call of each run");

  std::shared_ptr<CompileCommandOptions> compile;
  sub = add_command(app, "compile", "Compile a model into one file that runs without the compiler",
                    "ignis compile model.onnx --dim batch=1 --target cpu:llvm:avx2 --target "
                    "cpu:llvm:aarch64-neon -o model.ignis",
                    compile_command, compile, chosen);
  add_model(*sub, compile->model);
  sub->add_option("-o,--output", compile->output,
                  "The file; without it the model's name with .ignis");
  sub->add_option("--target", compile->targets,
                  "Device SPEC to compile for, of this or another machine; several go into one "
                  "file, and a device takes the best it can run")
      ->expected(1)
      ->take_all()
      ->allow_extra_args(false);
  sub->add_option("--sign", compile->key_file,
                  "File of an Ed25519 secret key (64 bytes) that signs");

  sub->add_option("--profile", compile->profile,
                  "What a cabin model's artifact carries for ignis dm: auto, none, comma-553, "
                  "comma-38 or face");
  sub->add_option("--intrinsics", compile->intrinsics,
                  "A cabin model also takes frames of this camera: WIDTHxHEIGHT:FOCAL or "
                  "WIDTHxHEIGHT:FOCAL,CX,CY in px")
      ->expected(1)
      ->take_all()
      ->allow_extra_args(false);
  sub->add_option("--side", compile->side,
                  "Side that a one-sided cabin model is run for: left, right or both")
      ->check(CLI::IsMember({"left", "right", "both"}));
  sub->add_flag("--tight-frames", compile->takes_tight_frames,
                "A cabin model also takes frames without padding, NV12 and I420");
  sub->add_option("--golden", compile->golden,
                  "Inputs and answers to check the file with where it is installed: auto, on, off, "
                  "or an npz file of inputs and, if it holds them, outputs");
  for (const auto& [name, values, help] :
       {std::tuple("--rtol", &compile->rtol,
                   "Relative tolerance of the golden outputs: NUMBER or NAME:NUMBER"),
        std::tuple("--atol", &compile->atol,
                   "Absolute tolerance of the golden outputs: NUMBER or NAME:NUMBER")}) {
    sub->add_option(name, *values, help)->expected(1)->take_all()->allow_extra_args(false);
  }

  add_explain_cache(*sub, compile->explains_cache);
  sub->add_option("--tune", compile->tune,
                  "Search for faster code than the heuristics choose, on this machine: off, fast, "
                  "or how many lists of actions to develop side by side (4 is thorough)");
  sub->add_option("--tune-budget", compile->tune_budget_s,
                  "Seconds the search may take; 30 for fast, else 120")
      ->check(CLI::Range(1.0, 1e6));
  sub->add_option("--save-tuning", compile->save_tuning,
                  "File for what the search chose, for --load-tuning");
  sub->add_option("--tune-limit", compile->tune_limit_s,
                  "Seconds after which a trial counts as hung; 20 when nothing is said")
      ->check(CLI::Range(0.1, 1e6));
  sub->add_option("--tune-faults", compile->tune_faults)->group("");

  std::shared_ptr<TuneWorkerCommandOptions> tune_worker;
  sub = add_command(app, "tune-worker", "Compile and time for compile --tune", "",
                    tune_worker_command, tune_worker, chosen);
  sub->group("");  // nothing that a person calls
  add_model(*sub, tune_worker->model);
  sub->add_option("--faults", tune_worker->faults);

  std::shared_ptr<InspectOptions> inspect;
  sub = add_command(app, "inspect", "Show what a model holds and what the compiler makes of it",
                    "ignis inspect model.onnx --ops --kernels --dim batch=1", inspect_command,
                    inspect, chosen);
  add_model(*sub, inspect->model);
  sub->add_flag("--ops", inspect->shows_ops, "Operators, and which are missing");
  sub->add_flag("--shapes", inspect->shows_shapes, "Dtype and shape of every layer");
  sub->add_flag("--weights", inspect->shows_weights, "Constants by size");
  sub->add_flag("--kernels", inspect->shows_kernels,
                "Kernels with layouts, scheduling actions and layers");
  sub->add_flag("--memory-plan", inspect->shows_memory_plan,
                "Buffers and their places in the arena");
  sub->add_option("--emit", inspect->emit, "Print a stage: graph, kernels, passes, llvm, c or asm")
      ->check(CLI::IsMember({"graph", "kernels", "passes", "llvm", "c", "asm"}));
  sub->add_option("--kernel", inspect->kernel,
                  "With --emit: only kernels whose name matches this regular expression");

  std::shared_ptr<VerifyOptions> verify;
  sub = add_command(
      app, "verify", "Compare a model's outputs, and its layers, with a reference",
      "ignis verify model.onnx --ref-device cpu:interp --layers --rtol 1e-4 --atol boxes:1e-3",
      verify_command, verify, chosen);
  add_model(*sub, verify->model);
  sub->add_option("--ref", verify->ref_file,
                  "npz file of reference outputs (and of inputs, when it holds them); a compiled "
                  "model is compared with its golden data when nothing is said");
  sub->add_option("--ref-device", verify->ref_device,
                  "Device that computes the reference; cpu:interp when nothing is said");
  sub->add_option("--test-data", verify->test_data,
                  "Folder of the ONNX test-set layout (test_data_set_0/input_0.pb …)");
  const auto add_values = [&](const char* name, std::vector<std::string>& values,
                              const char* help) {
    sub->add_option(name, values, help)->expected(1)->take_all()->allow_extra_args(false);
  };
  add_values("--rtol", verify->rtol, "Relative tolerance: NUMBER or NAME:NUMBER");
  add_values("--atol", verify->atol, "Absolute tolerance: NUMBER or NAME:NUMBER");
  add_values("--ulp", verify->ulp,
             "Tolerance in units of the last place instead: NUMBER or NAME:NUMBER");
  sub->add_option("--stat", verify->stat,
                  "What is held to the tolerance: max, mean, median, p99, cosine or nmse");
  sub->add_flag("--layers", verify->compares_layers,
                "Compare every layer; name the first one beyond its tolerance");
  sub->add_option("--soak", verify->soak,
                  "Run so many times more; every answer has to be the same bits")
      ->check(CLI::Range(0, 1000000000));

  sub->add_option("--fault", verify->fault,
                  "To test the comparison itself: program N of the model stores wrong values")
      ->check(CLI::Range(0, 1000000));

  std::shared_ptr<DmOptions> dm;
  sub = add_command(app, "dm", "Watch a driver: frames in, driver states out, a live page beside",
                    "ignis dm synthetic:drive --model centerface.onnx --view 8780\n  ignis dm "
                    "ring:cabin --model dmonitoring.onnx --calib tcp://127.0.0.1:7300 \\\n      "
                    "--publish tcp://127.0.0.1:7100 --log drive.log\n  ignis dm clip.nv12 --model "
                    "dmonitoring.onnx --replay drive.log",
                    dm_command, dm, chosen);
  add_dm(*sub, *dm);
  sub->footer("Sources:\n" + source_forms() + "\n\n" + sub->get_footer());

  std::shared_ptr<CacheOptions> cache;
  sub = add_command(app, "cache", "Look after the programs that are kept on disk",
                    "ignis cache ls\n  ignis cache prune --max-size 100M\n  ignis cache verify\n  "
                    "ignis cache export programs.bin\n  ignis cache import programs.bin",
                    cache_command, cache, chosen);
  sub->add_option("action", cache->action, "ls, prune, verify, export or import")->required();
  sub->add_option("file", cache->file, "The file of export and import");
  sub->add_option("--max-size", cache->max_size,
                  "With prune: what may stay, as in 0, 100M or 2G; the least recently used goes");

  std::shared_ptr<DevicesOptions> devices;
  sub = add_command(app, "devices", "List the devices of this machine", "ignis devices --check",
                    devices_command, devices, chosen);
  sub->add_flag("--check", devices->checks, "Run a small self-test on each");
  sub->add_flag("--roofline", devices->measures_roofline,
                "Measure what the CPU reaches at most, with --threads threads");
}

int run_main(int argc, char** argv) {
  CLI::App app{
      "Ignis compiles a trained network (ONNX) and runs it on the devices of this machine."};
  app.name("ignis");
  app.footer(std::string("Help on one command: ignis run --help\n") + kExitCodes);
  app.require_subcommand(1);
  CommonOptions common;
  Command command;
  add_common(app, common);
  add_commands(app, command);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success))
      return app.exit(e);  // --help, --version
    const bool is_file = dynamic_cast<const CLI::FileError*>(&e) != nullptr;
    std::string message = e.what();
    const std::string first = argc > 1 ? argv[1] : "";
    if (app.get_subcommands().empty() && !first.empty() && first[0] != '-') {
      message =
          "'" + first +
          "' is no command; there are run, bench, profile, compile, inspect, verify, dm, cache and "
          "devices.";
    }
    Error error(ErrorCode::InvalidArgument, message, is_file ? "File" : "Usage");
    const Exit exit = fail(error, common.json, argc, argv);
    if (!is_file)
      std::fprintf(stderr, "help: ignis %s--help\n",
                   app.get_subcommands().empty()
                       ? ""
                       : (app.get_subcommands()[0]->get_name() + " ").c_str());
    return static_cast<int>(exit);
  }
  const std::string json = common.json;
  auto context = Context::create(std::move(common));
  if (!context) return static_cast<int>(fail(context.error(), json, argc, argv));
  const auto exit = command(*context);
  std::fflush(stdout);
  return static_cast<int>(exit ? *exit : fail(exit.error(), json, argc, argv));
}

}  // namespace
}  // namespace ignis::tools

int main(int argc, char** argv) {
  using namespace ignis;
  std::signal(SIGXFSZ, SIG_IGN);  // a file beyond the process's limit is an error of the write
  tools::prepare_report();
  try {
    return tools::run_main(argc, argv);
  } catch (const tensor::GraphError& e) {
    return static_cast<int>(tools::fail(tools::as_model(e.error()), "", argc, argv));
  } catch (const std::bad_alloc&) {
    std::fputs("error: The machine has not enough memory for this.\n", stderr);
    return static_cast<int>(tools::Exit::Memory);
  } catch (const std::exception& e) {
    return static_cast<int>(tools::fail(Error(ErrorCode::Internal, e.what()), "", argc, argv));
  }
}
