#include "ignis/pipeline/driver_monitoring/face_decode.h"
#include "ignis/pipeline/driver_monitoring/face_pose.h"
#include "ignis/pipeline/driver_monitoring/geometry.h"
#include "ignis/pipeline/driver_monitoring/staged_model.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace ignis::pipeline {
namespace {

constexpr uint32_t kWarpId = 3;
// The consumer's reference image and the lens that its positions are shares of.
constexpr double kReferenceWidthPx = 1928, kReferenceHeightPx = 1208, kReferenceFocalPx = 567;
// Beyond this the far eye is hidden and what the detector says of it is made up.
constexpr double kMaxTurnRad = 1.2;

/// Positions of the four maps among the network's outputs.
struct MapOrder {
  size_t heat = 0, size = 0, offset = 0, landmarks = 0;
};

class FaceModel final : public StagedModel {
 public:
  FaceModel(const ModelFacts& facts, const StageOptions& options,
            std::unique_ptr<ProgramSource> source, const MapOrder& order, int width_px,
            int height_px)
      : StagedModel(facts, options, std::move(source), Profile::Face, kWarpId),
        input_name_(facts.inputs[0].name),
        order_(order),
        width_px_(width_px),
        height_px_(height_px) {
    output_.resize(kOutputCount);
  }
  using StagedModel::load_network;

  Decoded decode() const override;

 private:
  // Score, box, five landmarks in frame pixels; zeros but for the score when there is no face.
  static constexpr size_t kOutputCount = 15;

  // The maps must be those that the decoder knows: one cell for 4x4 pixels.
  Status check_network(const Stage& network) override {
    rows_ = height_px_ / 4;
    columns_ = width_px_ / 4;
    const auto& outputs = network.outputs();
    const std::pair<size_t, int64_t> wanted[] = {
        {order_.heat, 1}, {order_.size, 2}, {order_.offset, 2}, {order_.landmarks, 10}};
    for (const auto& [index, channels] : wanted) {
      if (outputs[index].shape == Shape{1, channels, rows_, columns_}) continue;
      return Error(
          ErrorCode::Unsupported,
          "Output '" + outputs[index].name + "' is " + ignis::to_string(outputs[index].shape) +
              " for a picture of " + std::to_string(width_px_) + "x" + std::to_string(height_px_) +
              "; a map of " + ignis::to_string(Shape{1, channels, rows_, columns_}) + " is read.",
          "ArtifactMismatch");
    }
    return {};
  }
  Result<Warp> make_warp(const FrameLayout& layout, const Camera& camera) override {
    IGNIS_TRY_ASSIGN(
        const WarpRequest request,
        make_warp_request(Profile::Face, layout, camera, options_.side, width_px_, height_px_));
    scale_ = static_cast<float>(rgb_scale(layout, width_px_, height_px_));
    IGNIS_TRY_ASSIGN(Stage stage, make_stage(request));
    return Warp{std::move(stage), {nullptr}};
  }
  std::map<std::string, Shape> network_shapes() const override {
    return {{input_name_, {1, 3, height_px_, width_px_}}};
  }
  void read_back(const Stage& network) override;
  DriverData describe_face(uint32_t& known) const;

  std::string input_name_;
  MapOrder order_;
  int width_px_, height_px_;
  int64_t rows_ = 0, columns_ = 0;
  float scale_ = 1;
  FaceDecoder decoder_;
  FaceDecode found_;
};

// Finding boxes in the maps is what makes this model's output, so it is part of reading back.
void FaceModel::read_back(const Stage& network) {
  found_ =
      decoder_.decode({rows_, columns_, network.floats(order_.heat), network.floats(order_.size),
                       network.floats(order_.offset), network.floats(order_.landmarks)});
  // From pixel centres of the network's picture to those of the frame.
  const auto to_frame = [&](float& value) { value = (value + 0.5f) * scale_ - 0.5f; };
  Prediction::Face& face = found_.face;
  std::fill(output_.begin(), output_.end(), 0.0f);
  output_[0] = found_.score;
  if (!found_.has_face) return;
  for (float* value : {&face.x0, &face.y0, &face.x1, &face.y1}) to_frame(*value);
  for (auto& [x, y] : face.landmarks) {
    to_frame(x);
    to_frame(y);
  }
  const float box[4] = {face.x0, face.y0, face.x1, face.y1};
  std::copy(std::begin(box), std::end(box), output_.begin() + 1);
  for (size_t i = 0; i < face.landmarks.size(); ++i) {
    output_[5 + 2 * i] = face.landmarks[i][0];
    output_[6 + 2 * i] = face.landmarks[i][1];
  }
}

DriverData FaceModel::describe_face(uint32_t& known) const {
  const Prediction::Face& face = found_.face;
  DriverData data;
  data.face_prob = found_.score;
  known = bit(DriverField::FaceProb);
  if (!found_.has_face) return data;
  const HeadPose pose = fit_head_pose(face.landmarks);
  const bool is_plausible = pose.has_converged && std::abs(pose.yaw_rad) <= kMaxTurnRad &&
                            std::abs(pose.pitch_rad) <= kMaxTurnRad;
  if (!is_plausible) return data;
  data.has_lists = true;
  data.face_orientation = {static_cast<float>(pose.pitch_rad), static_cast<float>(pose.yaw_rad),
                           static_cast<float>(pose.roll_rad)};
  for (size_t i = 0; i < 3; ++i) {
    data.face_orientation_std[i] = static_cast<float>(pose.std_rad[i]);
  }
  // Shares of the reference image, whatever this camera's size: the same ray, the same position.
  const double to_reference = kReferenceFocalPx / camera().focal_px;
  const double x_px = (static_cast<double>(face.x0 + face.x1) / 2 - camera().center_x_px);
  const double y_px = (static_cast<double>(face.y0 + face.y1) / 2 - camera().center_y_px);
  data.face_position = {static_cast<float>(x_px * to_reference / kReferenceWidthPx),
                        static_cast<float>(y_px * to_reference / kReferenceHeightPx)};
  // Boxes are good to about a twentieth of their size.
  const double width_px = static_cast<double>(face.x1 - face.x0) * to_reference;
  const double height_px = static_cast<double>(face.y1 - face.y0) * to_reference;
  data.face_position_std = {static_cast<float>(width_px / 20 / kReferenceWidthPx),
                            static_cast<float>(height_px / 20 / kReferenceHeightPx)};
  known |= bit(DriverField::FaceOrientation) | bit(DriverField::FaceOrientationStd) |
           bit(DriverField::FacePosition) | bit(DriverField::FacePositionStd);
  return data;
}

Decoded FaceModel::decode() const {
  Decoded decoded;
  if (output().empty()) {
    decoded.reasons = Reason::OutputSize;
    return decoded;
  }
  decoded.reasons = found_.reasons;
  decoded.head = found_.head;
  if (!decoded.reasons.is_empty()) return decoded;
  Prediction& prediction = decoded.prediction;
  const bool is_left = options_.side == DriverSide::Left;
  (is_left ? prediction.left : prediction.right) =
      describe_face(is_left ? prediction.known_left : prediction.known_right);
  prediction.has_face_box = found_.has_face;
  prediction.face = found_.face;
  return decoded;
}

}  // namespace

Result<std::unique_ptr<Model>> make_face(const ModelFacts& facts, const StageOptions& options,
                                         std::unique_ptr<ProgramSource> source) {
  MapOrder order;
  bool has_size = false;
  for (size_t i = 0; i < facts.outputs.size(); ++i) {
    const int64_t channels = facts.outputs[i].dims[1];
    if (channels == 1) order.heat = i;
    if (channels == 10) order.landmarks = i;
    if (channels != 2) continue;
    (has_size ? order.offset : order.size) = i;  // the size comes first
    has_size = true;
  }
  IGNIS_TRY_ASSIGN(const auto size, choose_picture_size(facts.inputs[0]));
  auto model = std::make_unique<FaceModel>(facts, options, std::move(source), order, size.first,
                                           size.second);
  IGNIS_TRY(model->load_network());
  return std::unique_ptr<Model>(std::move(model));
}

}  // namespace ignis::pipeline
