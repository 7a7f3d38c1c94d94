#pragma once

#include "ignis/exec/artifact_sections.h"
#include "ignis/pipeline/driver_monitoring/decode.h"
#include "ignis/pipeline/driver_monitoring/model.h"
#include "ignis/pipeline/driver_monitoring/profile.h"
#include "ignis/pipeline/driver_monitoring/slices.h"
#include "ignis/pipeline/driver_monitoring/stage.h"
#include "ignis/pipeline/driver_monitoring/warp.h"

#include <array>
#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace ignis::pipeline {

/// How the models' programs run.
struct StageOptions {
  /// The side that a one-sided model ("comma-38", "face") fills; the other one stays unknown.
  DriverSide side = DriverSide::Left;
  std::string device = "cpu";  ///< SPEC of a device: "cpu", "cpu:llvm:avx2", "cpu:interp"
  int threads = 0;             ///< 0: what the affinity mask and the cgroup quota allow
  /// How long a worker spins before it sleeps. A camera's period is far longer than a run.
  std::chrono::nanoseconds spin = std::chrono::microseconds(50);
  std::chrono::nanoseconds warm_up_limit = std::chrono::seconds(60);  ///< of the run at bind
};

/// What a file says of its model.
struct ModelFacts {
  std::string path;
  std::array<std::byte, 32> digest{};           ///< the file's identity
  std::map<std::string, std::string> metadata;  ///< the model's own
  std::vector<PortShape> inputs, outputs;
  std::vector<exec::OutputSlice> slices;  ///< of an artifact; else the metadata has them
};

/// The program that brings a frame to a network's picture.
struct WarpRequest {
  Profile profile = Profile::Face;
  FrameLayout layout;
  Camera camera;
  DriverSide side = DriverSide::Left;  ///< Comma38
  WarpShape shape;                     ///< Comma553
  WarpKind kind = WarpKind::AxisAligned;
  int width_px = 0, height_px = 0;  ///< Face: of the network's picture
  /// Names all that the program depends on, and nothing else: "warp luma 1928x1208 stride 2048 axis-aligned".
  std::string name() const;
};

/// Where a model's programs come from.
class ProgramSource {
 public:
  virtual ~ProgramSource() = default;
  /// The network; `shapes` are the fixed shapes of inputs that the file leaves open.
  virtual Result<std::unique_ptr<StageProgram>> make_network(
      const std::map<std::string, Shape>& shapes) = 0;
  /// Input 0 is the frame's bytes (Comma553: its luma), input 1 of Comma553 the matrix.
  virtual Result<std::unique_ptr<StageProgram>> make_warp(const WarpRequest& request) = 0;
};

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

  StagedModel(const ModelFacts& facts, StageOptions options, std::unique_ptr<ProgramSource> source,
              Profile profile, uint32_t warp_id);

  /// Makes the network ready. Must be called once before bind.
  Status load_network();
  Result<Stage> make_stage(const WarpRequest& request);
  /// Makes the warp of a checked layout. Called by bind.
  virtual Result<Warp> make_warp(const FrameLayout& layout, const Camera& camera) = 0;
  /// Fixed input shapes of the network, where the file leaves them open.
  virtual std::map<std::string, Shape> network_shapes() const { return {}; }
  /// Looks at a network that was just made ready. Errors: Unsupported.
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

  StageOptions options_;
  std::vector<float> output_;

 private:
  Status check_frame(const Frame& frame) const;
  Result<RunTimes> run_bytes(std::span<const std::byte> bytes, const std::array<float, 3>& rpy_rad,
                             std::chrono::steady_clock::time_point deadline);
  Status run_warp(std::span<const std::byte> bytes, std::chrono::steady_clock::time_point deadline);
  bool is_lost() const;
  /// After a run that did not come back: its memory may still be read, and stays.
  void abandon_run(const std::shared_ptr<const void>& bytes);

  std::unique_ptr<ProgramSource> source_;
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

/// The model behind the profile, its network ready; what depends on the camera is made by bind().
/// Errors: InvalidArgument (slices that do not fit, reason SliceOutOfRange, SliceWidth, SliceOverlap, SliceMissing or
/// SliceMap), Unsupported (reason ArtifactMismatch: inputs or outputs that are not the profile's), as `source`.
Result<std::unique_ptr<Model>> make_staged_model(Profile profile, const ModelFacts& facts,
                                                 const StageOptions& options,
                                                 std::unique_ptr<ProgramSource> source);
/// The heads that a two-sided model's file describes. Errors: as above.
Result<HeadTable> read_head_table(const ModelFacts& facts);
/// The one warp that `profile` makes of such frames. Errors: InvalidArgument, Unsupported for frames it cannot take.
Result<WarpRequest> make_warp_request(Profile profile, const FrameLayout& layout,
                                      const Camera& camera, DriverSide side, int width_px,
                                      int height_px);
/// The size of the pictures that a face detector is run with. Errors: Unsupported, reason "ArtifactMismatch".
Result<std::pair<int, int>> choose_picture_size(const PortShape& input);
/// The network's picture as an artifact states it. `width_px` and `height_px` count for Face only.
exec::Geometry describe_geometry(Profile profile, int width_px, int height_px);

Result<std::unique_ptr<Model>> make_comma_553(const ModelFacts& facts, const StageOptions& options,
                                              std::unique_ptr<ProgramSource> source);
Result<std::unique_ptr<Model>> make_comma_38(const ModelFacts& facts, const StageOptions& options,
                                             std::unique_ptr<ProgramSource> source);
Result<std::unique_ptr<Model>> make_face(const ModelFacts& facts, const StageOptions& options,
                                         std::unique_ptr<ProgramSource> source);

}  // namespace ignis::pipeline
