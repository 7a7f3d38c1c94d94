#include "ignis/pipeline/driver_monitoring/build/planes_graph.h"
#include "ignis/pipeline/driver_monitoring/build/staged_model.h"

#include <algorithm>
#include <utility>

namespace ignis::pipeline {
namespace {

constexpr uint32_t kWarpId = 2;

class Comma38 final : public StagedModel {
 public:
  Comma38(const std::string& path, const ModelOptions& options, const onnx::ModelInfo& info)
      : StagedModel(path, options, Profile::Comma38, kWarpId, info) {
    output_.resize(kOneSidedOutputCount);
  }
  using StagedModel::load_network;

  Decoded decode() const override { return decode_one_sided(options_.side, output()); }

 private:
  Result<Warp> make_warp(const FrameLayout& layout, const Camera& camera) override {
    IGNIS_TRY_ASSIGN(const PlanesGraph graph, make_planes_graph(layout, camera, options_.side));
    IGNIS_TRY_ASSIGN(Session warp,
                     Session::from_graph({{"frame", graph.frame}}, {{"planes", graph.planes}},
                                         session_options()));
    return Warp{Stage(std::move(warp)), {nullptr}};
  }
  void read_back(const Stage& network) override {
    const std::span<const float> values = network.floats(0);
    std::copy(values.begin(), values.end(), output_.begin());
  }
};

}  // namespace

Result<std::unique_ptr<Model>> load_comma_38(const std::string& path, const ModelOptions& options,
                                             const onnx::ModelInfo& info) {
  auto model = std::make_unique<Comma38>(path, options, info);
  IGNIS_TRY(model->load_network());
  return std::unique_ptr<Model>(std::move(model));
}

}  // namespace ignis::pipeline
