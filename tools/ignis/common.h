#pragma once

#include "ignis/engine/session.h"
#include "ignis/exec/artifact.h"
#include "ignis/onnx/import.h"

#include "tools/ignis/exit_code.h"
#include "tools/io/input_spec.h"
#include <nlohmann/json.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace ignis::tools {

using Json = nlohmann::ordered_json;

/// Options that every sub-command takes.
struct CommonOptions {
  std::string device = "cpu";
  std::string json;  ///< empty: none; "-": standard output instead of text; else a file
  bool is_quiet = false;
  int verbosity = 0;
  std::string log_format = "text";
  std::string color = "auto";
  std::optional<uint64_t> seed;
  std::string threads = "auto";
  std::string cpus;
  double timeout_s = 60;
  std::string limits_file;
  std::string cache;  ///< folder of compiled kernels, "off", or empty for the user's own
  std::string
      cache_size;  ///< what the folder may take, as parse_size() reads it; empty: the library's limit
};

/// "0", "4096", "100K", "100M", "2G": bytes, in powers of 1024. Errors: reason "Usage", naming the option.
Result<uint64_t> parse_size(const std::string& text, const std::string& option);

/// Options about a model, its inputs, and how it is compiled.
struct ModelOptions {
  std::string path;
  std::vector<std::string> inputs, shapes, dims, fixed;
  // As parse_float_level() and parse_choice() read them; empty: SessionOptions' own.
  std::string float_level, winograd, chain;
  std::string tuning;  ///< file of a tuner's choices
};

/// What the options of a run come to: checked, files read.
class Context {
 public:
  /// Applies colour, log sink and CPU list; reads the limits. Errors: reasons "Usage" and "File".
  static Result<Context> create(CommonOptions options);

  const CommonOptions& options() const { return options_; }
  const onnx::Limits& limits() const { return limits_; }
  int threads() const { return threads_; }
  uint64_t seed() const { return seed_; }
  bool prints_text() const { return options_.json != "-" && !options_.is_quiet; }
  bool shows_progress() const { return !options_.is_quiet; }
  SessionOptions session_options() const;
  /// Where compiled kernels are kept; empty: nowhere.
  std::string cache_folder() const;
  uint64_t cache_bytes() const { return cache_bytes_; }
  /// The process's cache, opened when it is first asked for; null when it is off.
  std::shared_ptr<ProgramCache> program_cache() const;
  /// Writes `report` where --json asks for it. Errors: reason "File".
  Status write_json(const Json& report) const;

 private:
  CommonOptions options_;
  onnx::Limits limits_;
  int threads_ = 0;
  uint64_t cache_bytes_ = ProgramCacheOptions().max_disk_bytes;
  uint64_t seed_ = 0;
  struct Cache {
    bool is_open = false;
    std::shared_ptr<ProgramCache> cache;
  };
  std::shared_ptr<Cache> cache_ = std::make_shared<Cache>();  // of all copies
};

/// What a model file says, and the file itself when it is a compiled model: it is opened, and its digests checked, once.
struct ModelFile {
  onnx::ModelInfo info;  ///< of a compiled model: its ports and manifest
  std::optional<exec::Artifact> artifact;
};

/// A model with its options bound: every dim known, every named input there.
struct BoundModel {
  std::string path;
  std::optional<exec::Artifact> artifact;  ///< compiled already: nothing is left to bind
  onnx::ModelInfo info;
  std::vector<InputSpec> specs;
  SessionOptions session;  ///< dims, shapes, constants and how to compile filled in
};

/// Errors: "File" when it cannot be opened, "Model" when it is refused.
Result<ModelFile> read_model(const std::string& path, const Context& context);
/// Reads the model's description, parses the input arguments and binds the dims that the model leaves open: by
/// --dim, by --shape, and by the inputs' own shapes. Errors: as read_model, "Usage", "File".
Result<BoundModel> bind_model(const ModelOptions& options, const Context& context);
/// The same of a file that is read already, with further inputs given as values (of a test data set); they must be inputs
/// of the model.
Result<BoundModel> bind_case(const ModelOptions& options, const ModelFile& file,
                             std::vector<InputSpec> more, const Context& context);
/// Imports the graph as a session would, for what needs the graph itself. Errors: "Model"; "Usage" for a compiled model,
/// which has none.
Result<onnx::Model> import_bound(const BoundModel& bound, const Context& context);
/// Loads the session. Errors: "Device", "Model", and those that speak for themselves.
Result<Session> load_session(const BoundModel& model, const SessionOptions& options);

/// Errors: "Usage" naming the first input of the model without a spec.
Status require_inputs(const BoundModel& model);

enum class Missing : uint8_t { IsError, IsRandom };
/// A value for each input of the session, in its order. Inputs without a spec are refused, or get random values: floats
/// uniform in [0, 1), integers in [0, 10). Errors: "Usage".
Result<std::vector<HostTensor>> make_inputs(const BoundModel& model, const Session& session,
                                            Missing missing, uint64_t seed);

/// {name, dtype, shape} of a port.
Json to_json(const PortInfo& port);
/// This machine and build: CPU, cores, governor, kernel, version, target.
Json describe_machine(const Target* target);
/// "0.1.0 (RelWithDebInfo, gcc 12.2.0)".
std::string version_text();

}  // namespace ignis::tools
