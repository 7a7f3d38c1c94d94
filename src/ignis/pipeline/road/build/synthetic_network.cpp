#include "ignis/pipeline/road/build/synthetic_network.h"

#include "ignis/pipeline/road/packed_input.h"
#include "ignis/pipeline/road/road_warp.h"
#include "ignis/tensor/tensor.h"

#include <cmath>
#include <random>

namespace ignis::pipeline {
namespace {

using tensor::Tensor;

constexpr int64_t kHistory = 8, kEvery = 4;
constexpr int64_t kOutputs = 48;

/// Weights of a fixed generator, scaled so that values keep their size from layer to layer.
class Weights {
 public:
  Weights(std::shared_ptr<ir::Graph> graph, uint32_t seed) : graph_(std::move(graph)), rng_(seed) {}
  Tensor make(const Shape& shape, int64_t fan_in) {
    HostTensor value = HostTensor::zeros(DType::Float32, shape);
    const float scale = std::sqrt(6.0f / static_cast<float>(fan_in));
    for (int64_t i = 0; i < value.count(); ++i) {
      // From the generator's bits: distributions differ between standard libraries.
      const float unit = static_cast<float>(rng_() >> 8) / 16777216.0f;
      value.data<float>()[i] = (2 * unit - 1) * scale;
    }
    return Tensor::constant(graph_, std::move(value));
  }

 private:
  std::shared_ptr<ir::Graph> graph_;
  std::mt19937 rng_;
};

// [1, kHistory, n] with the oldest entry dropped and `value` [1, n] behind the newest.
Tensor shifted(const Tensor& history, const Tensor& value) {
  return tensor::concat({tensor::slice(history, 1, 1, kHistory), tensor::unsqueeze(value, {1})}, 1);
}

// Every fourth entry, the newest included, as [1, n].
Tensor context(const Tensor& history) {
  const Tensor picked = tensor::slice(history, 1, kEvery - 1, kHistory, kEvery);
  return tensor::flatten(picked, 1, 2);
}

Tensor linear(const Tensor& x, Weights& weights, int64_t outputs) {
  return tensor::matmul(x, weights.make({x.dim(1), outputs}, x.dim(1)));
}

}  // namespace

std::vector<RoadSlice> synthetic_slices() {
  return {{"plan", 0, 36, RoadDecode::Raw},
          {"lane_prob", 36, 40, RoadDecode::Logit},
          {"desire_state", 40, 48, RoadDecode::Softmax}};
}

Result<Session> make_synthetic_network(const SyntheticNetworkOptions& options) {
  try {
    const auto graph = std::make_shared<ir::Graph>();
    Weights weights(graph, options.seed);
    const int64_t channels = options.channels, features = 2 * channels;
    int64_t slot = 0;
    const auto input = [&](std::string_view name, DType dtype, const Shape& shape) {
      const std::string text(name);
      return NamedTensor{text, Tensor::input(graph, slot++, text, dtype, shape)};
    };
    const std::vector<NamedTensor> inputs = {
        input("image", DType::UInt8, {2, kRoadPlanes, kRoadPlaneRows, kRoadPlaneColumns}),
        input(kDesireInput, DType::Float32, {1, kDesireCount}),
        input(kTrafficInput, DType::Float32, {1, 2}),
        input(kActionInput, DType::Float32, {1, 2}),
        input("features", DType::Float32, {1, kHistory, features}),
        input("desire_history", DType::Float32, {1, kHistory, kDesireCount}),
    };
    const Tensor planes =
        tensor::reshape(tensor::cast(inputs[0].value, DType::Float32) / 128.0f - 1.0f,
                        {1, 2 * kRoadPlanes, kRoadPlaneRows, kRoadPlaneColumns});
    tensor::ConvOptions stride_4;
    stride_4.strides = {4, 4};
    const Tensor first = tensor::relu(
        tensor::conv(planes, weights.make({channels, 2 * kRoadPlanes, 4, 4}, 2 * kRoadPlanes * 16),
                     {}, stride_4));
    const Tensor second = tensor::relu(
        tensor::conv(first, weights.make({features, channels, 4, 4}, channels * 16), {}, stride_4));
    const Tensor feature = tensor::reshape(tensor::global_avg_pool(second), {1, features});

    const Tensor next_features = shifted(inputs[4].value, feature);
    const Tensor next_desire = shifted(inputs[5].value, inputs[1].value);
    const Tensor all = tensor::concat({context(next_features), context(next_desire),
                                       inputs[1].value, inputs[2].value, inputs[3].value},
                                      1);
    const Tensor hidden = tensor::relu(linear(all, weights, 64));
    const Tensor outputs = linear(hidden, weights, kOutputs);

    SessionOptions session;
    session.device = options.device;
    session.threads = options.threads;
    return Session::from_graph(inputs,
                               {{"outputs", outputs},
                                {"next_features", next_features},
                                {"next_desire_history", next_desire}},
                               session);
  } catch (const tensor::GraphError& error) {
    return error.error();
  }
}

}  // namespace ignis::pipeline
