#include "ignis/base/float_formats.h"
#include "ignis/pipeline/driver_monitoring/geometry.h"
#include "ignis/pipeline/driver_monitoring/staged_model.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace ignis::pipeline {
namespace {

constexpr uint32_t kWarpId = 1;

class Comma553 final : public StagedModel {
 public:
  Comma553(const ModelFacts& facts, const StageOptions& options,
           std::unique_ptr<ProgramSource> source, HeadTable table)
      : StagedModel(facts, options, std::move(source), Profile::Comma553, kWarpId),
        table_(std::move(table)) {
    calibration_.slot = facts.inputs[0].dtype == DType::UInt8 ? 1 : 0;
    calibration_.dtype = facts.inputs[static_cast<size_t>(calibration_.slot)].dtype;
    output_.resize(static_cast<size_t>(table_.output_count));
  }
  using StagedModel::load_network;

  Decoded decode() const override { return decode_two_sided(table_, output()); }

 private:
  Result<Warp> make_warp(const FrameLayout& layout, const Camera& camera) override {
    const auto matrix = std::make_shared<const std::array<float, 9>>(comma_553_matrix(camera));
    IGNIS_TRY_ASSIGN(const WarpRequest request,
                     make_warp_request(Profile::Comma553, layout, camera, options_.side, 0, 0));
    IGNIS_TRY_ASSIGN(Stage stage, make_stage(request));
    return Warp{std::move(stage), {nullptr, matrix->data()}, matrix};
  }
  CalibrationInput calibration_input() const override { return calibration_; }
  // Files in half precision give their outputs in it as well.
  void read_back(const Stage& network) override {
    if (network.outputs()[0].dtype == DType::Float32) {
      const std::span<const float> values = network.floats(0);
      std::copy(values.begin(), values.end(), output_.begin());
      return;
    }
    const std::span<const std::byte> bytes = network.output(0);
    for (size_t i = 0; i < output_.size(); ++i) {
      uint16_t code = 0;
      std::memcpy(&code, bytes.data() + i * sizeof code, sizeof code);
      output_[i] = static_cast<float>(decode_float(DType::Float16, code));
    }
  }

  HeadTable table_;
  CalibrationInput calibration_;
};

}  // namespace

Result<HeadTable> read_head_table(const ModelFacts& facts) {
  const int64_t output_count = facts.outputs[0].dims[1];
  const auto map = facts.metadata.find("output_slices");
  std::vector<NamedSlice> slices;
  if (!facts.slices.empty()) {
    for (const exec::OutputSlice& slice : facts.slices) {
      slices.push_back({slice.name, slice.start, slice.stop});
    }
  } else if (map != facts.metadata.end()) {
    IGNIS_TRY_ASSIGN(slices, read_slice_map(map->second));
  } else {
    IGNIS_TRY_ASSIGN(slices, default_slices(output_count));
  }
  return make_head_table(slices, output_count);
}

Result<std::unique_ptr<Model>> make_comma_553(const ModelFacts& facts, const StageOptions& options,
                                              std::unique_ptr<ProgramSource> source) {
  IGNIS_TRY_ASSIGN(HeadTable table, read_head_table(facts));
  auto model = std::make_unique<Comma553>(facts, options, std::move(source), std::move(table));
  IGNIS_TRY(model->load_network());
  return std::unique_ptr<Model>(std::move(model));
}

}  // namespace ignis::pipeline
