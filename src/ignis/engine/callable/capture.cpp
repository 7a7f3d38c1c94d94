#include "ignis/engine/callable/capture.h"

#include "ignis/engine/callable/argument_list.h"
#include "ignis/engine/callable/trace.h"
#include "ignis/tensor/core.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <variant>

namespace ignis::engine {
namespace {

// The functions of capture objects that this thread is in: at most one.
struct RunningFunction {
  bool has_nested_call = false;
};
thread_local RunningFunction* running_function = nullptr;

Error nested_capture() {
  return Error(ErrorCode::InvalidArgument,
               "The function of a capture object calls another capture object, which would freeze "
               "the inner one's result; call the inner one's function instead.",
               "NestedCapture");
}

Error no_callable(const char* what) {
  return Error(ErrorCode::InvalidArgument,
               std::string("This capture was loaded and has no function, which ") + what +
                   " needs; make a capture object of the function.",
               "NoCallable");
}

Error not_captured() {
  return Error(ErrorCode::InvalidArgument,
               "Nothing is captured yet; call the object twice, with jit above 0.", "NotCaptured");
}

// Calls a user's function: what it throws as the front end does becomes an Error.
Result<Value> call_function(const Capture::Function& function, const Arguments& arguments) {
  RunningFunction running;
  struct Marks {
    explicit Marks(RunningFunction* mine) { running_function = mine; }
    ~Marks() { running_function = nullptr; }
  } marks(&running);
  Result<Value> result = [&]() -> Result<Value> {
    try {
      return function(arguments);
    } catch (const tensor::GraphError& error) {
      return error.error();
    }
  }();
  // Also when the function did not hand the inner error on.
  if (running.has_nested_call) return nested_capture();
  return result;
}

}  // namespace

struct Capture::State {
  State(Workspace given_workspace, Function given_function, CaptureOptions given_options)
      : workspace(std::move(given_workspace)),
        function(std::move(given_function)),
        options(std::move(given_options)),
        arguments(workspace, options.allow_read_only_duplicates),
        selection(options.guard_policy) {}

  // Memory of an output as an array.
  struct Adopted {
    exec::Placement place;
    size_t output = 0;
    Array array;
  };
  // A capture and what belongs to it.
  struct Artifact {
    exec::CapturedRef captured;
    std::shared_ptr<exec::Replay> replay;
    CaptureReport report;
    std::unique_ptr<Recorder> recorder;  // knows the storages that replays write; null when loaded
    Value returned;                      // the shape of the result; its tensors are empty
    std::vector<Value*> leaves;          // their places in it, one for each output
    std::vector<Array> looks;            // by output: at memory that stays; empty for the others
    std::vector<Adopted> adopted;        // that outputs lay in
    std::vector<size_t> written_inputs;
    Recording noted;  // of it only what its calls write
    bool has_run = false;
  };

  Workspace workspace;
  Function function;
  CaptureOptions options;
  int64_t count = 0;
  int64_t direct_runs = 0;  // since the last reset; a capture needs one
  ArgumentList arguments;
  std::vector<std::pair<
      std::string, std::variant<const bool*, const int64_t*, const double*, const std::string*>>>
      guards;
  std::vector<exec::GuardValue> guard_values;  // scratch
  exec::GuardedArtifacts selection;
  std::optional<exec::GuardSet> loaded_guards;  // of the only artifact, when it comes from a file
  std::vector<std::unique_ptr<Artifact>> artifacts;
  std::vector<exec::Placement> caller_places;  // scratch

  Result<Value> call(const Arguments& given, std::span<const Array> outputs);
  Result<Value> run_directly(const Arguments& given, std::span<const Array> outputs);
  Result<Value> capture(const Arguments& given, std::span<const Array> outputs);
  Result<Value> replay(Artifact& artifact, std::span<const Array> outputs);
  Result<std::vector<TracedLeaf>> record(const Arguments& given, const Recorder& recorder,
                                         Value& returned);
  Status make(Artifact& artifact, Recording recording, std::vector<TracedLeaf> leaves);
  Status check_duplicates(const exec::Captured& captured) const;
  Status open(Artifact& artifact);
  void settle(const Recording& recorded, Recorder& recorder);
  void read_guards();
  Result<std::optional<size_t>> select() const;
  Status check_callers(const Artifact& artifact, std::span<const Array> outputs);
  void note_written(Artifact& artifact, std::span<const Array> outputs);
  Result<Array> result_array(Artifact& artifact, size_t output, const exec::OutputHandle& handle,
                             std::span<const Array> outputs);
  void forget() {
    artifacts.clear();
    selection.clear();
  }
  Artifact* newest() const { return artifacts.empty() ? nullptr : artifacts.back().get(); }
};

void Capture::State::read_guards() {
  guard_values.clear();
  for (const auto& [name, at] : guards) {
    exec::GuardValue& value = guard_values.emplace_back();
    value.name = name;
    std::visit(
        [&](const auto* pointer) {
          if constexpr (std::is_same_v<decltype(pointer), const std::string*>) {
            value.value = std::string_view(*pointer);
          } else {
            value.value = *pointer;
          }
        },
        at);
  }
}

// The artifact for the guarded values of now; nothing: none yet.
Result<std::optional<size_t>> Capture::State::select() const {
  if (!loaded_guards) return selection.select(guard_values);
  IGNIS_TRY(loaded_guards->check(guard_values));
  return std::optional<size_t>(0);
}

Result<Value> Capture::State::call(const Arguments& given, std::span<const Array> outputs) {
  if (running_function != nullptr) {
    running_function->has_nested_call = true;
    return nested_capture();
  }
  IGNIS_TRY(arguments.collect(given));
  const auto run = [&]() -> Result<Value> {
    if (options.jit == 0) return run_directly(given, outputs);
    read_guards();
    IGNIS_TRY_ASSIGN(const std::optional<size_t> index, select());
    if (index) return replay(*artifacts[*index], outputs);
    // The state says what comes next, not the count: one direct run, then the capture.
    return direct_runs == 0 ? run_directly(given, outputs) : capture(given, outputs);
  };
  Result<Value> result = run();
  if (result) ++count;
  return result;
}

// --- the function itself ---

Result<Value> Capture::State::run_directly(const Arguments& given, std::span<const Array> outputs) {
  if (function == nullptr) return no_callable("a direct run");
  IGNIS_TRY(arguments.bind_variables());
  // What the function returns may read arrays of its own.
  std::optional<Workspace::Keeper> keeper(workspace);
  IGNIS_TRY_ASSIGN(Value returned, call_function(function, given));
  std::vector<Value*> tensors;
  Status status;
  visit_leaves(returned, [&](const std::string&, Value& leaf) {
    if (const auto* expression = std::get_if<tensor::Tensor>(&leaf.data()); expression && status) {
      Result<Array> array = workspace.lazy(*expression);
      if (!array) status = std::move(array).error();
      else leaf = *std::move(array);
    }
    if (std::holds_alternative<Array>(leaf.data())) tensors.push_back(&leaf);
  });
  IGNIS_TRY(std::move(status));
  keeper.reset();
  std::vector<Array> arrays;
  std::vector<Array*> to_realize;
  for (Value* leaf : tensors) arrays.push_back(leaf->array());
  for (Array& array : arrays) to_realize.push_back(&array);
  IGNIS_TRY(workspace.realize(to_realize));
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (i < outputs.size()) {
      Array to = outputs[i];
      IGNIS_TRY(workspace.assign(to, arrays[i]));
      arrays[i] = to;
    }
    *tensors[i] = arrays[i];
  }
  ++direct_runs;
  return returned;
}

// Runs the function with its calls recorded; every tensor it returns has storage of its own afterwards, or is a dense look at
// storage that stays.
Result<std::vector<TracedLeaf>> Capture::State::record(const Arguments& given,
                                                       const Recorder& recorder, Value& returned) {
  std::optional<Workspace::Keeper> keeper(workspace);
  IGNIS_TRY_ASSIGN(returned, call_function(function, given));
  std::vector<std::pair<std::string, Value*>> leaves;
  Status status, returned_status;
  visit_leaves(returned, [&](const std::string& path, Value& leaf) {
    if (leaf.is_none() || !status) return;
    if (const auto* expression = std::get_if<tensor::Tensor>(&leaf.data())) {
      Result<Array> array = workspace.lazy(*expression);
      if (!array) status = std::move(array).error();
      else leaf = *std::move(array);
    }
    if (std::holds_alternative<Array>(leaf.data())) {
      leaves.emplace_back(path, &leaf);
    } else if (returned_status) {
      returned_status = Error(ErrorCode::InvalidArgument,
                              "The captured function returns " + std::string(kind_of(leaf)) +
                                  (path.empty() ? "" : " at '" + path + "'") +
                                  "; a replay can give back tensors only, alone or in containers.",
                              "NonTensorReturn");
    }
  });
  IGNIS_TRY(std::move(status));
  keeper.reset();
  std::vector<TracedLeaf> made;
  for (const auto& [path, leaf] : leaves) {
    made.push_back({path, std::get<Array>(leaf->data())});
    *leaf = Value();  // so that only `made` holds it
  }
  std::vector<Array*> to_realize;
  for (TracedLeaf& leaf : made) to_realize.push_back(&leaf.array);
  IGNIS_TRY(workspace.realize(to_realize));
  IGNIS_TRY(std::move(returned_status));
  for (TracedLeaf& leaf : made) {
    const bool is_input = arguments.has_base(leaf.array.base());
    // Borrow: a look at memory that stays. Else the storage becomes a parameter, which nobody else may hold.
    const bool fits = options.output_mode == exec::OutputMode::Borrow
                          ? leaf.array.is_contiguous() && leaf.array.base_memory().offset_bytes == 0
                          : leaf.array.is_sole();
    if (fits && !is_input && recorder.touches(leaf.array)) continue;
    IGNIS_TRY_ASSIGN(leaf.array, workspace.clone(leaf.array));
  }
  return made;
}

Result<Value> Capture::State::capture(const Arguments& given, std::span<const Array> outputs) {
  if (function == nullptr) return no_callable("a capture");
  IGNIS_TRY(arguments.bind_variables());
  auto artifact = std::make_unique<Artifact>();
  artifact->recorder = std::make_unique<Recorder>();
  Recorder& recorder = *artifact->recorder;
  IGNIS_TRY(workspace.set_recorder(&recorder));
  Result<std::vector<TracedLeaf>> leaves = record(given, recorder, artifact->returned);
  IGNIS_TRY(workspace.set_recorder(nullptr));
  if (recorder.call_count() == 0 && (leaves || leaves.error().reason() == "NonTensorReturn")) {
    return Error(ErrorCode::InvalidArgument,
                 "The function recorded no call: it computes nothing that a replay could run. "
                 "Return or realize a tensor that depends on an input.",
                 "NothingCaptured");
  }
  IGNIS_TRY_ASSIGN(Recording recording, recorder.finish());
  const Recording recorded = recording;
  artifact->noted.written = recording.written;
  Result<Value> result = [&]() -> Result<Value> {
    IGNIS_TRY_ASSIGN(std::vector<TracedLeaf> traced, std::move(leaves));
    IGNIS_TRY(make(*artifact, std::move(recording), std::move(traced)));
    return replay(*artifact, outputs);
  }();
  if (!result) {
    settle(recorded, recorder);
    return result;
  }
  IGNIS_TRY(selection.add(guard_values));
  artifacts.push_back(std::move(artifact));
  return result;
}

// What was recorded has not run. Without this, tensors assigned in the function would hold what nobody wrote (W-6).
void Capture::State::settle(const Recording& recorded, Recorder& recorder) {
  if (options.runs_after_failure && workspace.run(recorded) && workspace.synchronize()) {
    recorder.mark_computed();
  } else {
    recorder.poison();
  }
}

Status Capture::State::make(Artifact& artifact, Recording recording,
                            std::vector<TracedLeaf> leaves) {
  IGNIS_TRY_ASSIGN(exec::GuardSet guard_set, exec::GuardSet::make(guard_values));
  IGNIS_TRY_ASSIGN(Traced traced, trace(workspace, std::move(recording), arguments.inputs(), leaves,
                                        std::move(guard_set), options));
  artifact.captured = std::move(traced.captured);
  artifact.report = std::move(traced.report);
  IGNIS_TRY(check_duplicates(*artifact.captured));
  const bool is_borrowed = options.output_mode == exec::OutputMode::Borrow;
  for (const TracedLeaf& leaf : leaves) {
    artifact.looks.push_back(is_borrowed ? leaf.array : Array());
  }
  // Storages of outputs are the capture's from here on.
  leaves.clear();
  return open(artifact);
}

// Two inputs over one storage: neither may be written.
Status Capture::State::check_duplicates(const exec::Captured& captured) const {
  std::vector<uint8_t> is_written(captured.input_count(), 0);
  for (const exec::InputUse& use : captured.queues->queues().input_uses) {
    const auto input = static_cast<size_t>(use.input);
    if (use.is_written && input < is_written.size()) is_written[input] = 1;
  }
  return arguments.inputs().check_shared_bases(is_written);
}

Status Capture::State::open(Artifact& artifact) {
  artifact.leaves.clear();
  visit_leaves(artifact.returned, [&](const std::string& path, Value& leaf) {
    // Places of tensors were emptied; what the function returned as nothing has no output.
    const auto& outputs = artifact.captured->outputs;
    const size_t next = artifact.leaves.size();
    if (next < outputs.size() && outputs[next].name == path) artifact.leaves.push_back(&leaf);
  });
  IGNIS_CHECK(artifact.leaves.size() == artifact.captured->outputs.size());
  for (const exec::InputUse& use : artifact.captured->queues->queues().input_uses) {
    const auto input = static_cast<size_t>(use.input);
    if (!use.is_written || input >= artifact.captured->input_count()) continue;
    if (!artifact.written_inputs.empty() && artifact.written_inputs.back() == input) continue;
    artifact.written_inputs.push_back(input);
  }
  IGNIS_TRY_ASSIGN(artifact.replay, exec::Replay::create(artifact.captured, workspace.machine()));
  return {};
}

// --- replays ---

Result<Value> Capture::State::replay(Artifact& artifact, std::span<const Array> outputs) {
  exec::ReplayCall replayed;
  replayed.inputs = arguments.inputs().inputs();
  replayed.memory = arguments.memory();
  replayed.variables = arguments.inputs().variables();
  replayed.guards = guard_values;
  replayed.limits = options.limits;
  replayed.waits = options.waits;
  IGNIS_TRY(check_callers(artifact, outputs));
  replayed.outputs = caller_places;
  Result<exec::OutputHandle> handle = artifact.replay->run(replayed);
  caller_places.clear();
  // Expressions over what it wrote are stale, whether it went well or not.
  note_written(artifact, outputs);
  if (!handle) return std::move(handle).error();
  if (artifact.recorder != nullptr && !artifact.has_run) artifact.recorder->mark_computed();
  artifact.has_run = true;
  for (size_t i = 0; i < artifact.leaves.size(); ++i) {
    IGNIS_TRY_ASSIGN(*artifact.leaves[i], result_array(artifact, i, *handle, outputs));
  }
  Value result = artifact.returned;
  for (Value* leaf : artifact.leaves) *leaf = Value();  // a result lives as long as the caller's
  return result;
}

Status Capture::State::check_callers(const Artifact& artifact, std::span<const Array> outputs) {
  caller_places.clear();
  const bool is_caller = options.output_mode == exec::OutputMode::Caller;
  const size_t wanted = is_caller ? artifact.captured->outputs.size() : 0;
  if (outputs.size() != wanted) {
    return Error(ErrorCode::InvalidArgument,
                 "The call is given " + std::to_string(outputs.size()) +
                     " arrays for its results; its output mode wants " + std::to_string(wanted) +
                     ".",
                 "OutputMismatch");
  }
  for (size_t i = 0; i < wanted; ++i) {
    const exec::CapturedOutput& output = artifact.captured->outputs[i];
    const Array& array = outputs[i];
    if (!array || !array.is_realized() || array.dtype() != output.dtype ||
        array.shape() != Shape(output.shape.begin(), output.shape.end()) ||
        !array.is_contiguous()) {
      return Error(
          ErrorCode::InvalidArgument,
          "The array for result '" + output.name + "' must have storage, lie densely and be " +
              std::string(to_string(output.dtype)) + " " +
              to_string(Shape(output.shape.begin(), output.shape.end())) + "; it is " +
              (array ? std::string(to_string(array.dtype())) + " " + to_string(array.shape())
                     : std::string("empty")) +
              ".",
          "OutputMismatch");
    }
    exec::Placement place = array.base_memory();
    place.offset_bytes += static_cast<uint64_t>(array.offset_elements() * size_bytes(output.dtype));
    place.size_bytes = output.range.size_bytes;
    caller_places.push_back(std::move(place));
  }
  return {};
}

void Capture::State::note_written(Artifact& artifact, std::span<const Array> outputs) {
  artifact.noted.note_replayed();
  for (const size_t input : artifact.written_inputs) workspace.note_written(arguments.array(input));
  for (const Array& output : outputs) workspace.note_written(output);
}

Result<Array> Capture::State::result_array(Artifact& artifact, size_t output,
                                           const exec::OutputHandle& handle,
                                           std::span<const Array> outputs) {
  const int number = static_cast<int>(output);
  if (!outputs.empty()) return outputs[output];
  if (output < artifact.looks.size() && artifact.looks[output]) {
    return artifact.looks[output].with_result(handle, static_cast<int>(output));
  }
  IGNIS_TRY_ASSIGN(const exec::Placement place, handle.place(number));
  const exec::CapturedOutput& captured = artifact.captured->outputs[output];
  Array* known = nullptr;
  for (Adopted& each : artifact.adopted) {
    const bool is_it = each.place.memory == place.memory &&
                       each.place.offset_bytes == place.offset_bytes && each.output == output;
    if (is_it) known = &each.array;
  }
  if (known == nullptr) {
    const Shape shape(captured.shape.begin(), captured.shape.end());
    IGNIS_TRY_ASSIGN(Array made, workspace.adopt(place, captured.dtype, shape));
    artifact.adopted.push_back({place, output, std::move(made)});
    known = &artifact.adopted.back().array;
  }
  workspace.note_written(*known);
  return known->with_result(handle, static_cast<int>(output));
}

// --- the public face ---

Capture Capture::create(Workspace workspace, Function function, CaptureOptions options) {
  return Capture(
      std::make_shared<State>(std::move(workspace), std::move(function), std::move(options)));
}

Result<Capture> Capture::load(Workspace workspace, exec::CapturedRef captured,
                              CaptureOptions options) {
  options.output_mode = captured->output_mode;
  auto state = std::make_shared<State>(std::move(workspace), Function(), std::move(options));
  auto artifact = std::make_unique<State::Artifact>();
  artifact->captured = std::move(captured);
  std::vector<std::pair<std::string, Value>> places;
  for (const exec::CapturedOutput& output : artifact->captured->outputs) {
    places.emplace_back(output.name, Value(false));  // a leaf that is there
  }
  IGNIS_TRY_ASSIGN(artifact->returned, make_value(places));
  IGNIS_TRY(state->open(*artifact));
  for (Value* leaf : artifact->leaves) *leaf = Value();
  state->loaded_guards = artifact->captured->guards;
  state->artifacts.push_back(std::move(artifact));
  state->count = 2;
  return Capture(std::move(state));
}

Result<Value> Capture::call(const Arguments& given, std::span<const Array> outputs) {
  Result<Value> result = state_->call(given, outputs);
  state_->arguments.release();
  return result;
}

void Capture::guard(std::string name, const bool* value) {
  state_->guards.emplace_back(std::move(name), value);
}
void Capture::guard(std::string name, const int64_t* value) {
  state_->guards.emplace_back(std::move(name), value);
}
void Capture::guard(std::string name, const double* value) {
  state_->guards.emplace_back(std::move(name), value);
}
void Capture::guard(std::string name, const std::string* value) {
  state_->guards.emplace_back(std::move(name), value);
}

void Capture::set_jit(int jit) { state_->options.jit = jit; }
int64_t Capture::count() const { return state_->count; }
bool Capture::is_captured() const { return !state_->artifacts.empty(); }

Status Capture::reset() {
  if (state_->function == nullptr) return no_callable("reset()");
  state_->forget();
  state_->count = 0;
  state_->direct_runs = 0;
  return {};
}

Status Capture::recapture() {
  if (state_->function == nullptr) return no_callable("recapture()");
  state_->forget();
  return {};
}

Result<exec::CapturedRef> Capture::captured() const {
  const auto* newest = state_->newest();
  if (newest == nullptr) return not_captured();
  return with_state(state_->workspace, newest->captured, *newest->replay);
}

Result<CaptureReport> Capture::report() const {
  const auto* newest = state_->newest();
  if (newest == nullptr) return not_captured();
  return newest->report;
}

Result<exec::PrepareReport> Capture::prepare() {
  auto* newest = state_->newest();
  if (newest == nullptr) return not_captured();
  return newest->replay->prepare(state_->options.limits);
}

Result<uint64_t> Capture::free_intermediates() {
  auto* newest = state_->newest();
  if (newest == nullptr) return not_captured();
  newest->adopted.clear();
  return newest->replay->free_intermediates(state_->options.limits);
}

Result<exec::RebindReport> Capture::rebind(const exec::RebindOptions& options) {
  auto* newest = state_->newest();
  if (newest == nullptr) return not_captured();
  newest->adopted.clear();
  return newest->replay->rebind(options);
}

exec::Replay* Capture::replay() const {
  auto* newest = state_->newest();
  return newest == nullptr ? nullptr : newest->replay.get();
}

}  // namespace ignis::engine
