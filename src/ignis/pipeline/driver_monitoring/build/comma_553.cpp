#include "ignis/base/float_formats.h"
#include "ignis/pipeline/driver_monitoring/build/staged_model.h"
#include "ignis/pipeline/driver_monitoring/build/warp_graph.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace ignis::pipeline {
namespace {

// The model's virtual camera (section 4 of the contract).
constexpr int kWidthPx = 1440, kHeightPx = 960;
constexpr double kFocalPx = 567, kCenterXPx = 720, kCenterYPx = 356;
constexpr uint32_t kWarpId = 1;

class Comma553 final : public StagedModel {
 public:
  Comma553(const std::string& path, const ModelOptions& options, const onnx::ModelInfo& info,
           HeadTable table)
      : StagedModel(path, options, Profile::Comma553, kWarpId, info), table_(std::move(table)) {
    calibration_.slot = info.inputs[0].dtype == DType::UInt8 ? 1 : 0;
    calibration_.dtype = info.inputs[static_cast<size_t>(calibration_.slot)].dtype;
    output_.resize(static_cast<size_t>(table_.output_count));
  }
  using StagedModel::load_network;

  Decoded decode() const override { return decode_two_sided(table_, output()); }

 private:
  Result<Warp> make_warp(const FrameLayout& layout, const Camera& camera) override {
    const auto matrix = std::make_shared<const std::array<float, 9>>(
        warp_matrix(camera, kFocalPx, kCenterXPx, kCenterYPx));
    const WarpShape shape{layout.width_px, layout.height_px, layout.y_stride, kWidthPx, kHeightPx};
    IGNIS_TRY_ASSIGN(const WarpGraph graph, make_warp_graph(shape, warp_kind(*matrix)));
    SessionOptions session = session_options();
    // Exact: no product may be fused with its sum.
    session.float_level = FloatLevel::Strict;
    IGNIS_TRY_ASSIGN(Session warp,
                     Session::from_graph({{"luma", graph.luma}, {"matrix", graph.matrix}},
                                         {{"image", graph.image}}, session));
    return Warp{Stage(std::move(warp)), {nullptr, matrix->data()}, matrix};
  }
  CalibrationInput calibration_input() const override { return calibration_; }
  // Files in half precision give their outputs in it as well.
  void read_back(const Stage& network) override {
    if (network.session().outputs()[0].dtype == DType::Float32) {
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

Result<std::unique_ptr<Model>> load_comma_553(const std::string& path, const ModelOptions& options,
                                              const onnx::ModelInfo& info) {
  const int64_t output_count = info.outputs[0].dims[1].value;
  const auto map = info.metadata.find("output_slices");
  std::vector<NamedSlice> slices;
  if (map != info.metadata.end()) {
    IGNIS_TRY_ASSIGN(slices, read_slice_map(map->second));
  } else {
    IGNIS_TRY_ASSIGN(slices, default_slices(output_count));
  }
  IGNIS_TRY_ASSIGN(HeadTable table, make_head_table(slices, output_count));
  auto model = std::make_unique<Comma553>(path, options, info, std::move(table));
  IGNIS_TRY(model->load_network());
  return std::unique_ptr<Model>(std::move(model));
}

}  // namespace ignis::pipeline
