#pragma once

#include "tools/ignis/common.h"

#include <optional>
#include <string>
#include <vector>

namespace ignis::tools {

struct RunOptions {
  ModelOptions model;
  std::vector<std::string> outputs;  ///< "name=@o.npy", "name=@o.raw", "@all.npz"
  int64_t print_max = 0;
  int repeat = 1;
  std::string dump, tap;
  bool explains_cache = false;
};
Result<Exit> run_command(const Context& context, const RunOptions& options);

struct BenchOptions {
  ModelOptions model;
  double warmup_ms = 300, duration_s = 3, rate_fps = 0, fail_above_percent = 5;
  int64_t iterations = 10;
  bool profiles = false, explains_cache = false;
  int top = 20;
  std::string samples_file, baseline_file;
};
Result<Exit> bench_command(const Context& context, const BenchOptions& options);

struct ProfileOptions {
  ModelOptions model;
  int runs = 20, top = 30;
  std::string by = "call";  ///< "call", "kernel", "op", "layer"
  std::string trace_file;
  bool shows_schedules = false;
};
Result<Exit> profile_command(const Context& context, const ProfileOptions& options);

struct CompileCommandOptions {
  ModelOptions model;
  std::string output;                   ///< empty: the model's name with .ignis
  std::vector<std::string> targets;     ///< device SPECs; empty: --device
  std::string key_file;                 ///< Ed25519 secret key that signs
  std::string golden = "auto";          ///< or "on", "off", an npz file of inputs and outputs
  std::vector<std::string> rtol, atol;  ///< of the golden outputs
  std::string profile = "auto";  ///< of a cabin model: "none", "comma-553", "comma-38", "face"
  std::vector<std::string> intrinsics;  ///< cameras besides the known ones, as of `dm`
  std::string side = "left";            ///< of a one-sided cabin model: "left", "right" or "both"
  bool takes_tight_frames = false;      ///< of a cabin model: not only padded NV12
  bool explains_cache = false;
  std::string tune = "off";  ///< "off", "fast", or the beam's width
  double tune_budget_s = 0;  ///< 0: the mode's own
  std::string save_tuning;   ///< file for what was found
  double tune_limit_s = 0;   ///< of one trial; 0: the worker's own
  std::string tune_faults;   ///< for tests, as engine::parse_trial_faults() reads it
};
Result<Exit> compile_command(const Context& context, const CompileCommandOptions& options);

struct InspectOptions {
  ModelOptions model;
  bool shows_ops = false, shows_shapes = false, shows_weights = false, shows_kernels = false,
       shows_memory_plan = false;
  std::string emit;    ///< "graph", "kernels", "passes", "llvm", "c", "asm"
  std::string kernel;  ///< regular expression on kernel names; empty: all
};
Result<Exit> inspect_command(const Context& context, const InspectOptions& options);
/// The same for a compiled model.
Result<Exit> inspect_artifact(const Context& context, const InspectOptions& options);

struct VerifyOptions {
  ModelOptions model;
  std::string ref_file, ref_device, test_data;
  std::vector<std::string> rtol, atol, ulp;
  std::string stat = "max";
  bool compares_layers = false;
  int soak = 0;
  int fault = -1;  ///< to test the comparison: this program of the model stores wrong values
};
Result<Exit> verify_command(const Context& context, const VerifyOptions& options);

struct CacheOptions {
  std::string action;    ///< "ls", "prune", "verify", "export" or "import"
  std::string file;      ///< of export and import
  std::string max_size;  ///< "100M"; of prune
};
Result<Exit> cache_command(const Context& context, const CacheOptions& options);

struct DevicesOptions {
  bool checks = false;
  bool measures_roofline = false;
};
Result<Exit> devices_command(const Context& context, const DevicesOptions& options);

struct DmOptions {
  std::string source, model;
  std::string profile = "auto";         ///< or "comma-553", "comma-38", "face"
  std::string side = "left";            ///< that a one-sided model fills: "left" or "right"
  std::string calibration;              ///< "r,p,y", a file, or an endpoint; empty: none
  std::vector<std::string> intrinsics;  ///< "WIDTHxHEIGHT:FOCAL[,CX,CY]" in px
  std::string publish, log, record, replay;
  int view_port = -1;  ///< -1: no page; 0: any free port
  double seconds = 0;
  bool publishes_raw = false, calibration_blocks = false;
  double tolerance = 1e-4;  ///< of a replay
};
Result<Exit> dm_command(const Context& context, const DmOptions& options);

}  // namespace ignis::tools
