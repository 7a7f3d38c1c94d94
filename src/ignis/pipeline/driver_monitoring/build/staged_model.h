#pragma once

#include "ignis/onnx/import.h"
#include "ignis/pipeline/driver_monitoring/build/models.h"
#include "ignis/pipeline/driver_monitoring/build/stage.h"

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace ignis::pipeline {

/// What the models have in common: a warp made for the bound layout, a network made once, and what happens to both when
/// a run does not come back.
class StagedModel : public Model {
 public:
  const ModelIdentity& identity() const override { return identity_; }
  Status bind(const FrameLayout& layout, const Camera& camera) override;
  Result<RunTimes> run(const Frame& frame, const std::array<float, 3>& rpy_rad,
                       std::chrono::steady_clock::time_point deadline) override;
  std::span<const float> output() const override;

 protected:
  /// A warp and what its inputs are; made anew at each bind.
  struct Warp {
    Stage stage;
    /// Inputs of the stage; the frame's bytes are written to position 0 at each run.
    std::vector<const void*> inputs;
    std::shared_ptr<const void> kept = {};  ///< what further inputs point into
  };

  StagedModel(std::string path, ModelOptions options, Profile profile, uint32_t warp_id,
              const onnx::ModelInfo& info);

  /// Compiles the network. Must be called once before bind.
  Status load_network();
  SessionOptions session_options() const;
  /// Makes the warp of a checked layout. Called by bind.
  virtual Result<Warp> make_warp(const FrameLayout& layout, const Camera& camera) = 0;
  /// Fixed input shapes of the network, where the file leaves them open.
  virtual std::map<std::string, Shape> network_shapes() const { return {}; }
  /// Looks at a network that was just compiled. Errors: Unsupported.
  virtual Status check_network(const Stage&) { return {}; }
  /// Takes what the network gave into `output_`; is timed as read-back.
  virtual void read_back(const Stage& network) = 0;
  /// Where the network takes the calibration, beside the warp's output.
  struct CalibrationInput {
    int slot = -1;  ///< 0, 1, or -1: it takes none
    DType dtype = DType::Float32;
  };
  virtual CalibrationInput calibration_input() const { return {}; }

  const FrameLayout& layout() const { return layout_; }
  const Camera& camera() const { return camera_; }

  ModelOptions options_;
  std::vector<float> output_;

 private:
  Status check_frame(const Frame& frame) const;
  Result<RunTimes> run_bytes(std::span<const std::byte> bytes, const std::array<float, 3>& rpy_rad,
                             std::chrono::steady_clock::time_point deadline);
  Status run_warp(std::span<const std::byte> bytes, std::chrono::steady_clock::time_point deadline);
  bool is_lost() const;
  /// After a run that did not come back: its memory may still be read, and stays.
  void abandon_run(const std::shared_ptr<const void>& bytes);

  std::string path_;
  ModelIdentity identity_;
  FrameLayout layout_;
  Camera camera_;
  bool is_bound_ = false, has_output_ = false;
  std::optional<Warp> warp_;
  std::optional<Stage> network_;
  /// The angles as the network reads them.
  struct CalibrationMemory {
    std::array<float, 3> floats{};
    std::array<uint16_t, 3> halves{};
  };
  std::shared_ptr<CalibrationMemory> calibration_;  // shared with abandoned threads
};

/// The three models; load_model() chooses. `info` is what the file says.
Result<std::unique_ptr<Model>> load_comma_553(const std::string& path, const ModelOptions& options,
                                              const onnx::ModelInfo& info);
Result<std::unique_ptr<Model>> load_comma_38(const std::string& path, const ModelOptions& options,
                                             const onnx::ModelInfo& info);
Result<std::unique_ptr<Model>> load_face(const std::string& path, const ModelOptions& options,
                                         const onnx::ModelInfo& info);

}  // namespace ignis::pipeline
