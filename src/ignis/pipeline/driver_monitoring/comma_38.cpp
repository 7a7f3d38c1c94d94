#include "ignis/pipeline/driver_monitoring/staged_model.h"

#include <algorithm>
#include <utility>

namespace ignis::pipeline {
namespace {

constexpr uint32_t kWarpId = 2;

class Comma38 final : public StagedModel {
 public:
  Comma38(const ModelFacts& facts, const StageOptions& options,
          std::unique_ptr<ProgramSource> source)
      : StagedModel(facts, options, std::move(source), Profile::Comma38, kWarpId) {
    output_.resize(kOneSidedOutputCount);
  }
  using StagedModel::load_network;

  Decoded decode() const override { return decode_one_sided(options_.side, output()); }

 private:
  Result<Warp> make_warp(const FrameLayout& layout, const Camera& camera) override {
    IGNIS_TRY_ASSIGN(const WarpRequest request,
                     make_warp_request(Profile::Comma38, layout, camera, options_.side, 0, 0));
    IGNIS_TRY_ASSIGN(Stage stage, make_stage(request));
    return Warp{std::move(stage), {nullptr}};
  }
  void read_back(const Stage& network) override {
    const std::span<const float> values = network.floats(0);
    std::copy(values.begin(), values.end(), output_.begin());
  }
};

}  // namespace

Result<std::unique_ptr<Model>> make_comma_38(const ModelFacts& facts, const StageOptions& options,
                                             std::unique_ptr<ProgramSource> source) {
  auto model = std::make_unique<Comma38>(facts, options, std::move(source));
  IGNIS_TRY(model->load_network());
  return std::unique_ptr<Model>(std::move(model));
}

}  // namespace ignis::pipeline
