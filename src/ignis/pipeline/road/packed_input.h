#pragma once

#include "ignis/base/result.h"
#include "ignis/pipeline/frames/frame.h"
#include "ignis/pipeline/road/contract.h"

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ignis::pipeline {

inline constexpr int kDesireCount = 8;

/// What one run of the road host is about.
struct RoadInput {
  Frame main, wide;                                  ///< of the same layout, made by nv12_layout
  std::array<std::array<float, 9>, 2> transforms{};  ///< main, wide: model pixels to frame pixels
  std::array<float, kDesireCount> desire{};          ///< as wished; the host makes the pulse
  std::array<float, 2> traffic_convention{};
  std::array<float, 2> action_t{};
};

/// Passes a desire on when it begins (section 11.1): element 0 is always 0, another one passes in the frame in which it
/// rises by more than 0.99.
class DesirePulse {
 public:
  std::array<float, kDesireCount> step(std::array<float, kDesireCount> desire);
  void clear() { last_ = {}; }

 private:
  std::array<float, kDesireCount> last_{};
};

/// Where an input lies in the one buffer that is uploaded.
struct RoadView {
  std::string name;
  DType dtype = DType::Float32;
  Shape shape;
  uint64_t offset_bytes = 0, size_bytes = 0;
};

/// The one buffer's layout: each float input on a multiple of 128 bytes in the contract's order, the two frames last.
struct PackedLayout {
  std::vector<RoadView> views;  ///< one for each of the contract's inputs, in its order
  uint64_t frame_bytes = 0;     ///< of one camera
  uint64_t size_bytes = 0;
};

/// Lays out the inputs of `contract` for frames of `layout`.
/// Errors: InvalidArgument, reason ContractMismatch, naming the input whose name, dtype or shape the host cannot fill, or a
/// layout that is not the padded NV12 one.
Result<PackedLayout> make_packed_layout(const RoadContract& contract, const FrameLayout& layout);

/// Holds views against what an artifact states of its inputs: name, dtype, shape, alignment, byte length, and that
/// each lies inside the buffer and overlaps no other.
/// Errors: InvalidArgument, reason ViewMismatch, naming the view with both values.
Status check_views(const PackedLayout& layout, std::span<const RoadPort> inputs);

/// Refuses what no model should see: frames of another layout or with too few bytes, numbers that are not finite.
/// Errors: InvalidArgument, reason BadFrame or NonFiniteInput.
Status check_road_input(const RoadInput& input, const FrameLayout& layout);

/// The buffer itself, 128-byte aligned.
class PackedInput {
 public:
  /// Zeros. Errors: OutOfMemory.
  static Result<PackedInput> create(PackedLayout layout);

  const PackedLayout& layout() const { return layout_; }
  std::span<const std::byte> bytes() const { return {buffer_.get(), layout_.size_bytes}; }
  std::span<const std::byte> view(size_t index) const;

  /// Copies the frames, then the transforms and floats; `desire_pulse` is the pulse already. The input is checked.
  void write(const RoadInput& input, const std::array<float, kDesireCount>& desire_pulse);
  /// Zeros.
  void clear();
  /// Identity transforms in a cleared buffer: what the warm-up runs on.
  void write_warm_up();

 private:
  struct Free {
    void operator()(std::byte* bytes) const;
  };
  PackedInput(PackedLayout layout, std::unique_ptr<std::byte, Free> buffer)
      : layout_(std::move(layout)), buffer_(std::move(buffer)) {}
  void write_floats(std::string_view name, std::span<const float> values);

  PackedLayout layout_;
  std::unique_ptr<std::byte, Free> buffer_;
};

}  // namespace ignis::pipeline
