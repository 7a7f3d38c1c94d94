#include "ignis/pipeline/road/build/session_model.h"

#include "ignis/pipeline/frames/layout.h"
#include "ignis/pipeline/road/build/road_warp_graph.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <utility>

namespace ignis::pipeline {
namespace {

constexpr std::string_view kImageName = "image", kOutputName = "outputs", kNextPrefix = "next_";

Error mismatch(const std::string& message) {
  return Error(ErrorCode::InvalidArgument, message, "ContractMismatch");
}

std::string describe(const PortInfo& port) {
  return "'" + port.name + "' " + std::string(ignis::to_string(port.dtype)) + " " +
         ignis::to_string(port.shape);
}

const PortInfo* find_port(const std::vector<PortInfo>& ports, std::string_view name) {
  const auto at = std::find_if(ports.begin(), ports.end(),
                               [&](const PortInfo& port) { return port.name == name; });
  return at == ports.end() ? nullptr : &*at;
}

/// One recurrent state: the buffer that is current and the one that the next run writes.
struct State {
  std::string name;
  std::array<HostTensor, 2> buffers;
  int current = 0;
};

class SessionModel : public RoadModel {
 public:
  explicit SessionModel(SessionModelOptions options) : options_(std::move(options)) {}

  Status load(const FrameLayout& layout) override;
  const RoadContract& contract() const override { return contract_; }
  Status run(const PackedInput& input, std::span<float> output,
             runtime::Deadline deadline) override;
  void reset_state() override;

 private:
  Status make_warp(const FrameLayout& layout);
  Status bind_inputs();
  Status bind_outputs();

  SessionModelOptions options_;
  RoadContract contract_;
  std::optional<Session> warp_, network_;
  HostTensor image_;
  std::vector<State> states_;
  /// Where each input of the network comes from: a view of the packed input, a state, or the image.
  struct Source {
    enum class Kind : uint8_t { Image, View, State } kind = Kind::Image;
    size_t index = 0;
  };
  std::vector<Source> sources_;
  /// Which state each output of the network is the next value of; -1: the output vector.
  std::vector<int> state_of_output_;
  std::vector<const void*> input_addresses_;
  std::vector<void*> output_addresses_;
};

Status SessionModel::make_warp(const FrameLayout& layout) {
  IGNIS_TRY_ASSIGN(const RoadWarpGraph graph, make_road_warp_graph(RoadWarpShape::of(layout)));
  SessionOptions session;
  session.device = options_.device;
  session.threads = options_.threads;
  session.program_cache = options_.program_cache;
  session.shares_threads = false;            // the small model must survive what hangs the big one
  session.float_level = FloatLevel::Strict;  // bit for bit
  IGNIS_TRY_ASSIGN(Session made,
                   Session::from_graph({{std::string(kFramesInput), graph.frames},
                                        {std::string(kTransformsInput), graph.transforms}},
                                       {{std::string(kImageName), graph.image}}, session));
  warp_.emplace(std::move(made));
  image_ = HostTensor::zeros(DType::UInt8, {2, kRoadPlanes, kRoadPlaneRows, kRoadPlaneColumns});
  return {};
}

// The contract's inputs: transforms, the network's floats in its order, frames.
Status SessionModel::bind_inputs() {
  for (const PortInfo& port : network_->inputs()) {
    if (port.name == kImageName) {
      if (port.dtype != image_.dtype || port.shape != image_.shape) {
        return mismatch("The network's input " + describe(port) + " is not u8 " +
                        ignis::to_string(image_.shape) + ".");
      }
      sources_.push_back({Source::Kind::Image, 0});
      continue;
    }
    const std::string next = std::string(kNextPrefix) + port.name;
    if (find_port(network_->outputs(), next) == nullptr) {
      sources_.push_back({Source::Kind::View, contract_.inputs.size()});
      contract_.inputs.push_back({port.name, port.dtype, port.shape});
      continue;
    }
    sources_.push_back({Source::Kind::State, states_.size()});
    State state;
    state.name = port.name;
    for (HostTensor& buffer : state.buffers) buffer = HostTensor::zeros(port.dtype, port.shape);
    states_.push_back(std::move(state));
  }
  return {};
}

Status SessionModel::bind_outputs() {
  for (const PortInfo& port : network_->outputs()) {
    if (port.name == kOutputName) {
      if (port.dtype != DType::Float32 || port.shape.size() != 2 || port.shape[0] != 1) {
        return mismatch("The network's output " + describe(port) + " is not f32 [1, N].");
      }
      contract_.output_count = port.shape[1];
      state_of_output_.push_back(-1);
      continue;
    }
    const auto state = std::find_if(states_.begin(), states_.end(), [&](const State& candidate) {
      return port.name == std::string(kNextPrefix) + candidate.name;
    });
    if (state == states_.end()) {
      return mismatch("The network's output " + describe(port) +
                      " is neither 'outputs' nor the next value of an input.");
    }
    const HostTensor& buffer = state->buffers[0];
    if (port.dtype != buffer.dtype || port.shape != buffer.shape) {
      return mismatch("The network's output " + describe(port) + " is the next value of input '" +
                      state->name + "' " + std::string(ignis::to_string(buffer.dtype)) + " " +
                      ignis::to_string(buffer.shape) + "; they must be alike.");
    }
    state_of_output_.push_back(static_cast<int>(state - states_.begin()));
  }
  if (contract_.output_count == 0) return mismatch("The network has no output 'outputs'.");
  return {};
}

Status SessionModel::load(const FrameLayout& layout) {
  IGNIS_TRY(make_warp(layout));
  IGNIS_TRY_ASSIGN(Session made, options_.make_network());
  network_.emplace(std::move(made));
  contract_.slices = options_.slices;
  contract_.inputs.push_back({std::string(kTransformsInput), DType::Float32, {2, 3, 3}});
  IGNIS_TRY(bind_inputs());
  contract_.inputs.push_back({std::string(kFramesInput),
                              DType::UInt8,
                              {2, static_cast<int64_t>(road_copy_bytes(layout))}});
  IGNIS_TRY(bind_outputs());
  input_addresses_.resize(sources_.size());
  output_addresses_.resize(state_of_output_.size());
  return {};
}

Status SessionModel::run(const PackedInput& input, std::span<float> output,
                         runtime::Deadline deadline) {
  const void* const warp_inputs[] = {input.view(contract_.inputs.size() - 1).data(),
                                     input.view(0).data()};
  void* const warp_outputs[] = {image_.bytes.data()};
  IGNIS_TRY(warp_->run_raw(warp_inputs, warp_outputs, deadline));

  for (size_t i = 0; i < sources_.size(); ++i) {
    const Source& source = sources_[i];
    switch (source.kind) {
      case Source::Kind::Image: input_addresses_[i] = image_.bytes.data(); break;
      case Source::Kind::View: input_addresses_[i] = input.view(source.index).data(); break;
      case Source::Kind::State: {
        State& state = states_[source.index];
        input_addresses_[i] = state.buffers[static_cast<size_t>(state.current)].bytes.data();
        break;
      }
    }
  }
  for (size_t i = 0; i < state_of_output_.size(); ++i) {
    const int index = state_of_output_[i];
    if (index < 0) {
      output_addresses_[i] = output.data();
    } else {
      State& state = states_[static_cast<size_t>(index)];
      output_addresses_[i] = state.buffers[static_cast<size_t>(1 - state.current)].bytes.data();
    }
  }
  IGNIS_TRY(network_->run_raw(input_addresses_.data(), output_addresses_.data(), deadline));
  for (State& state : states_) state.current = 1 - state.current;
  return {};
}

void SessionModel::reset_state() {
  for (State& state : states_) {
    for (HostTensor& buffer : state.buffers) {
      std::fill(buffer.bytes.begin(), buffer.bytes.end(), std::byte{0});
    }
    state.current = 0;
  }
}

}  // namespace

Result<std::unique_ptr<RoadModel>> make_session_model(SessionModelOptions options) {
  if (!options.make_network) {
    return Error(ErrorCode::InvalidArgument, "No network is given.", "NoNetwork");
  }
  return std::unique_ptr<RoadModel>(std::make_unique<SessionModel>(std::move(options)));
}

}  // namespace ignis::pipeline
