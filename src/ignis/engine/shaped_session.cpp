#include "ignis/engine/shaped_session.h"

#include "ignis/onnx/import.h"

#include <algorithm>
#include <list>
#include <map>
#include <utility>

namespace ignis {

struct ShapedSession::State {
  struct Entry {
    std::vector<Shape> shapes;
    Session session;
  };
  std::string path;
  SessionOptions options;
  size_t capacity = 0;
  std::vector<OpenPortInfo> inputs;
  std::list<Entry> entries;  // the most recently used first
  int64_t compile_count = 0;

  Status check(const std::vector<Shape>& shapes) const;
};

namespace {

// A dim's value as far as the options say it.
int64_t bound(const onnx::Dim& dim, const SessionOptions& options) {
  if (dim.value >= 0 || dim.symbol.empty()) return dim.value;
  const auto found = options.dims.find(dim.symbol);
  return found == options.dims.end() ? -1 : found->second;
}

OpenPortInfo open_port(const onnx::ValueInfo& value, const SessionOptions& options) {
  OpenPortInfo port{value.name, value.dtype, value.has_shape, {}, {}};
  for (const onnx::Dim& dim : value.dims) {
    port.shape.push_back(bound(dim, options));
    port.symbols.push_back(dim.symbol);
  }
  const auto stated = options.shapes.find(value.name);
  if (stated != options.shapes.end()) {
    port.has_rank = true;
    port.symbols.resize(stated->second.size());
    port.shape.resize(stated->second.size(), -1);
    for (size_t i = 0; i < port.shape.size(); ++i) {
      if (stated->second[i] >= 0) port.shape[i] = stated->second[i];
    }
  }
  return port;
}

std::string words(const OpenPortInfo& port) {
  std::string text = "[";
  for (size_t i = 0; i < port.shape.size(); ++i) {
    if (i > 0) text += ", ";
    if (port.shape[i] >= 0) text += std::to_string(port.shape[i]);
    else text += port.symbols[i].empty() ? "?" : port.symbols[i];
  }
  return text + "]";
}

}  // namespace

// Fixed dims must be met, and a symbol has one value in all inputs.
Status ShapedSession::State::check(const std::vector<Shape>& shapes) const {
  if (shapes.size() != inputs.size()) {
    return Error(ErrorCode::InvalidArgument,
                 std::to_string(shapes.size()) + " inputs are given; the model has " +
                     std::to_string(inputs.size()) + ".",
                 "WrongCount");
  }
  std::map<std::string, std::pair<int64_t, std::string>> seen;  // symbol -> value, input
  for (size_t i = 0; i < shapes.size(); ++i) {
    const OpenPortInfo& port = inputs[i];
    if (!port.has_rank) continue;
    bool fits = shapes[i].size() == port.shape.size();
    for (size_t axis = 0; fits && axis < port.shape.size(); ++axis) {
      fits = shapes[i][axis] >= 0 && (port.shape[axis] < 0 || port.shape[axis] == shapes[i][axis]);
    }
    if (!fits) {
      return Error(ErrorCode::InvalidArgument,
                   "Input '" + port.name + "' is given " + to_string(shapes[i]) +
                       "; the model takes " + words(port) + ".",
                   "WrongShape");
    }
    for (size_t axis = 0; axis < port.shape.size(); ++axis) {
      if (port.symbols[axis].empty()) continue;
      const auto [at, is_new] =
          seen.emplace(port.symbols[axis], std::pair(shapes[i][axis], port.name));
      if (is_new || at->second.first == shapes[i][axis]) continue;
      return Error(ErrorCode::InvalidArgument,
                   "Dim '" + port.symbols[axis] + "' is " + std::to_string(at->second.first) +
                       " in input '" + at->second.second + "' and " +
                       std::to_string(shapes[i][axis]) + " in input '" + port.name + "'.",
                   "WrongShape");
    }
  }
  return {};
}

ShapedSession::ShapedSession(std::unique_ptr<State> state) : state_(std::move(state)) {}
ShapedSession::ShapedSession(ShapedSession&&) noexcept = default;
ShapedSession& ShapedSession::operator=(ShapedSession&&) noexcept = default;
ShapedSession::~ShapedSession() = default;

Result<ShapedSession> ShapedSession::open(const std::string& path, const SessionOptions& options,
                                          size_t capacity) {
  if (capacity == 0) {
    return Error(ErrorCode::InvalidArgument,
                 "A capacity of 0 sessions cannot hold the one that runs.", "WrongOption");
  }
  IGNIS_TRY_ASSIGN(const onnx::ModelInfo info, onnx::read_info(path));
  std::string missing;
  for (const onnx::OpCount& op : info.ops) {
    if (!op.supported) missing += (missing.empty() ? "" : ", ") + op.op;
  }
  if (!missing.empty()) {
    return Error(ErrorCode::Unsupported,
                 "The model needs operators that are missing: " + missing + ".",
                 "MissingOperators");
  }
  auto state = std::make_unique<State>();
  state->path = path;
  state->options = options;
  state->capacity = capacity;
  for (const onnx::ValueInfo& input : info.inputs) {
    if (!options.constants.contains(input.name)) state->inputs.push_back(open_port(input, options));
  }
  return ShapedSession(std::move(state));
}

Result<Session*> ShapedSession::prepare(const std::vector<Shape>& shapes) {
  State& state = *state_;
  const auto found =
      std::find_if(state.entries.begin(), state.entries.end(),
                   [&](const State::Entry& entry) { return entry.shapes == shapes; });
  if (found != state.entries.end()) {
    state.entries.splice(state.entries.begin(), state.entries, found);
    return &state.entries.front().session;
  }
  IGNIS_TRY(state.check(shapes));
  SessionOptions options = state.options;
  for (size_t i = 0; i < shapes.size(); ++i) options.shapes[state.inputs[i].name] = shapes[i];
  IGNIS_TRY_ASSIGN(Session session, Session::load(state.path, options));
  ++state.compile_count;
  state.entries.push_front({shapes, std::move(session)});
  if (state.entries.size() > state.capacity) state.entries.pop_back();
  return &state.entries.front().session;
}

Result<std::vector<HostTensor>> ShapedSession::run(const std::vector<HostTensor>& inputs) {
  std::vector<Shape> shapes;
  for (const HostTensor& input : inputs) shapes.push_back(input.shape);
  IGNIS_TRY_ASSIGN(Session * session, prepare(shapes));
  Result<std::vector<HostTensor>> outputs = session->run(inputs);
  // A session that timed out has lost its device; that of the next run opens another one.
  if (!outputs && (outputs.error().code() == ErrorCode::Timeout ||
                   outputs.error().code() == ErrorCode::DeviceLost)) {
    state_->entries.pop_front();
  }
  return outputs;
}

const std::vector<OpenPortInfo>& ShapedSession::inputs() const { return state_->inputs; }
int64_t ShapedSession::compile_count() const { return state_->compile_count; }

}  // namespace ignis
