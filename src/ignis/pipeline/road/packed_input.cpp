#include "ignis/pipeline/road/packed_input.h"

#include "ignis/base/check.h"
#include "ignis/base/math.h"
#include "ignis/pipeline/frames/layout.h"

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <utility>

namespace ignis::pipeline {
namespace {

constexpr uint64_t kAlignment = 128;  // of each block, section 11.1

Error mismatch(const std::string& message, const char* reason = "ContractMismatch") {
  return Error(ErrorCode::InvalidArgument, message, reason);
}

std::string describe(std::string_view name, DType dtype, const Shape& shape) {
  return "'" + std::string(name) + "' " + std::string(ignis::to_string(dtype)) + " " +
         ignis::to_string(shape);
}

// The inputs that the host fills, but for the frames, whose size depends on the camera.
struct KnownInput {
  std::string_view name;
  int64_t count;
};
constexpr KnownInput kKnownInputs[] = {
    {kTransformsInput, 18}, {kDesireInput, kDesireCount}, {kTrafficInput, 2}, {kActionInput, 2}};

Result<uint64_t> checked_bytes(const RoadPort& port) {
  IGNIS_TRY_ASSIGN(const int64_t count, checked_element_count(port.shape));
  const auto bytes = checked_mul<int64_t>(count, size_bytes(port.dtype));
  if (!bytes || *bytes <= 0) {
    return mismatch("Input " + describe(port.name, port.dtype, port.shape) + " holds no bytes.");
  }
  return static_cast<uint64_t>(*bytes);
}

Status check_port(const RoadPort& port, uint64_t frame_bytes) {
  if (port.name == kFramesInput) {
    const Shape expected = {2, static_cast<int64_t>(frame_bytes)};
    if (port.dtype == DType::UInt8 && port.shape == expected) return {};
    return mismatch("Input " + describe(port.name, port.dtype, port.shape) +
                    " does not hold the two frames, which are u8 " + ignis::to_string(expected) +
                    ".");
  }
  for (const KnownInput& known : kKnownInputs) {
    if (port.name != known.name) continue;
    IGNIS_TRY_ASSIGN(const int64_t count, checked_element_count(port.shape));
    if (port.dtype == DType::Float32 && count == known.count) return {};
    return mismatch("Input " + describe(port.name, port.dtype, port.shape) + " is not f32 of " +
                    std::to_string(known.count) + " values.");
  }
  return mismatch("Input '" + port.name +
                  "' is none that the host can fill: transforms, desire_pulse, "
                  "traffic_convention, action_t, frames.");
}

}  // namespace

std::array<float, kDesireCount> DesirePulse::step(std::array<float, kDesireCount> desire) {
  desire[0] = 0;
  std::array<float, kDesireCount> pulse{};
  for (size_t i = 0; i < desire.size(); ++i) {
    if (desire[i] - last_[i] > 0.99f) pulse[i] = desire[i];
  }
  last_ = desire;
  return pulse;
}

Result<PackedLayout> make_packed_layout(const RoadContract& contract, const FrameLayout& layout) {
  PackedLayout packed;
  packed.frame_bytes = road_copy_bytes(layout);
  if (packed.frame_bytes == 0) {
    return mismatch("The stream is " + to_string(layout) +
                    "; the road host copies frames with the padding of nv12_layout.");
  }
  const std::vector<RoadPort>& ports = contract.inputs;
  if (ports.empty() || ports.front().name != kTransformsInput ||
      ports.back().name != kFramesInput) {
    return mismatch("The artifact's inputs do not begin with 'transforms' and end with 'frames'.");
  }
  uint64_t offset = 0;
  for (size_t i = 0; i < ports.size(); ++i) {
    for (size_t k = 0; k < i; ++k) {
      if (ports[k].name == ports[i].name) {
        return mismatch("Input '" + ports[i].name + "' is stated twice.");
      }
    }
    IGNIS_TRY(check_port(ports[i], packed.frame_bytes));
    IGNIS_TRY_ASSIGN(const uint64_t bytes, checked_bytes(ports[i]));
    packed.views.push_back({ports[i].name, ports[i].dtype, ports[i].shape, offset, bytes});
    // The frames come last and end the buffer without rounding.
    offset += i + 1 < ports.size() ? align_up(bytes, kAlignment) : bytes;
  }
  packed.size_bytes = offset;
  return packed;
}

Status check_views(const PackedLayout& layout, std::span<const RoadPort> inputs) {
  constexpr const char* kReason = "ViewMismatch";
  if (layout.views.size() != inputs.size()) {
    return mismatch(std::to_string(layout.views.size()) + " views are bound to " +
                        std::to_string(inputs.size()) + " inputs.",
                    kReason);
  }
  uint64_t end = 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const RoadView& view = layout.views[i];
    const RoadPort& port = inputs[i];
    if (view.name != port.name || view.dtype != port.dtype || view.shape != port.shape) {
      return mismatch("View " + describe(view.name, view.dtype, view.shape) +
                          " is bound to input " + describe(port.name, port.dtype, port.shape) + ".",
                      kReason);
    }
    IGNIS_TRY_ASSIGN(const uint64_t bytes, checked_bytes(port));
    if (view.size_bytes != bytes) {
      return mismatch("View '" + view.name + "' has " + std::to_string(view.size_bytes) +
                          " bytes; the input reads " + std::to_string(bytes) + ".",
                      kReason);
    }
    if (view.offset_bytes % kAlignment != 0 || view.offset_bytes < end) {
      return mismatch("View '" + view.name + "' begins at byte " +
                          std::to_string(view.offset_bytes) +
                          ", which is no multiple of 128 or "
                          "lies before byte " +
                          std::to_string(end) + ", the end of the former.",
                      kReason);
    }
    if (!is_range_inside(view.offset_bytes, view.size_bytes, layout.size_bytes)) {
      return mismatch("View '" + view.name + "' ends beyond the buffer of " +
                          std::to_string(layout.size_bytes) + " bytes.",
                      kReason);
    }
    end = view.offset_bytes + view.size_bytes;
  }
  return {};
}

Status check_road_input(const RoadInput& input, const FrameLayout& layout) {
  const std::pair<const char*, const Frame*> frames[] = {{"main", &input.main},
                                                         {"wide", &input.wide}};
  for (const auto& [name, frame] : frames) {
    if (frame->layout != layout) {
      return Error(ErrorCode::InvalidArgument,
                   std::string("The ") + name + " frame is " + to_string(frame->layout) +
                       "; the model is bound to " + to_string(layout) + ".",
                   "BadFrame");
    }
    if (frame->bytes.size() < road_copy_bytes(layout)) {
      return Error(ErrorCode::InvalidArgument,
                   std::string("The ") + name + " frame has " +
                       std::to_string(frame->bytes.size()) + " bytes; the host copies " +
                       std::to_string(road_copy_bytes(layout)) + ".",
                   "BadFrame");
    }
    if (!frame->info.valid) {
      return Error(ErrorCode::InvalidArgument,
                   std::string("The ") + name + " frame " + std::to_string(frame->info.frame_id) +
                       " is marked as not valid by its producer.",
                   "BadFrame");
    }
  }
  const std::pair<const char*, std::span<const float>> floats[] = {
      {"transforms", input.transforms[0]},
      {"transforms", input.transforms[1]},
      {"desire", input.desire},
      {"traffic_convention", input.traffic_convention},
      {"action_t", input.action_t},
  };
  for (const auto& [name, values] : floats) {
    for (const float value : values) {
      if (std::isfinite(value)) continue;
      return Error(ErrorCode::InvalidArgument,
                   std::string("Input '") + name + "' holds " + std::to_string(value) +
                       "; every value must be finite.",
                   "NonFiniteInput");
    }
  }
  return {};
}

void PackedInput::Free::operator()(std::byte* bytes) const { std::free(bytes); }

Result<PackedInput> PackedInput::create(PackedLayout layout) {
  const uint64_t rounded = align_up(layout.size_bytes, kAlignment);
  std::unique_ptr<std::byte, Free> buffer(
      static_cast<std::byte*>(std::aligned_alloc(kAlignment, rounded)));
  if (buffer == nullptr) {
    return Error(ErrorCode::OutOfMemory, "There is no memory for the packed input of " +
                                             std::to_string(layout.size_bytes) + " bytes.");
  }
  PackedInput packed(std::move(layout), std::move(buffer));
  packed.clear();
  return packed;
}

std::span<const std::byte> PackedInput::view(size_t index) const {
  const RoadView& view = layout_.views[index];
  return bytes().subspan(view.offset_bytes, view.size_bytes);
}

void PackedInput::write_floats(std::string_view name, std::span<const float> values) {
  for (const RoadView& view : layout_.views) {
    if (view.name != name) continue;
    IGNIS_CHECK(view.size_bytes == values.size_bytes()) << view.name;
    std::memcpy(buffer_.get() + view.offset_bytes, values.data(), values.size_bytes());
  }
}

void PackedInput::write(const RoadInput& input,
                        const std::array<float, kDesireCount>& desire_pulse) {
  std::byte* frames = buffer_.get() + layout_.views.back().offset_bytes;
  std::memcpy(frames, input.main.bytes.data(), layout_.frame_bytes);
  std::memcpy(frames + layout_.frame_bytes, input.wide.bytes.data(), layout_.frame_bytes);
  std::array<float, 18> transforms;
  std::copy(input.transforms[0].begin(), input.transforms[0].end(), transforms.begin());
  std::copy(input.transforms[1].begin(), input.transforms[1].end(), transforms.begin() + 9);
  write_floats(kTransformsInput, transforms);
  write_floats(kDesireInput, desire_pulse);
  write_floats(kTrafficInput, input.traffic_convention);
  write_floats(kActionInput, input.action_t);
}

void PackedInput::clear() { std::memset(buffer_.get(), 0, layout_.size_bytes); }

void PackedInput::write_warm_up() {
  clear();
  std::array<float, 18> identity{};
  for (const size_t i : {0u, 4u, 8u, 9u, 13u, 17u}) identity[i] = 1;
  write_floats(kTransformsInput, identity);
}

}  // namespace ignis::pipeline
