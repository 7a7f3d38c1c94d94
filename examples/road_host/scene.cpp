#include "examples/road_host/scene.h"

#include <cstring>

namespace ignis::examples {

Result<pipeline::Frame> RoadScene::receive(std::chrono::nanoseconds) {
  IGNIS_TRY_ASSIGN(pipeline::WritableFrame made, pool_.acquire(layout_));
  pipeline::Frame& frame = made.frame;
  frame.info.frame_id = next_id_++;
  frame.info.stream_id = stream_id_;
  frame.info.timestamp_sof_ns =
      1'000'000'000 + uint64_t{frame.info.frame_id} * 50'000'000 + late_ns_;
  frame.info.timestamp_eof_ns = frame.info.timestamp_sof_ns + 10'000'000;
  frame.info.receive_time_ns = pipeline::monotonic_ns();

  const auto width = static_cast<size_t>(layout_.width_px);
  const int horizon = layout_.height_px / 3;
  for (int y = 0; y < layout_.height_px; ++y) {
    std::byte* row = made.bytes.data() + y * layout_.y_stride;
    const int depth = y - horizon;
    std::memset(row, depth < 0 ? 180 - y * 40 / horizon : 60 + depth * 40 / layout_.height_px,
                width);
    // Marks: 1 / distance grows downwards, so that they come nearer faster.
    const int mark =
        depth <= 0
            ? 0
            : (layout_.height_px * 40 / depth + static_cast<int>(frame.info.frame_id) * 3) % 40;
    if (depth <= 0 || mark > 20) continue;
    const auto half = 1 + static_cast<size_t>(depth) / 40;
    std::memset(row + width / 2 - half, 220, 2 * half);
  }
  for (int y = 0; y < layout_.height_px / 2; ++y) {
    std::memset(made.bytes.data() + layout_.u_offset + y * layout_.uv_stride, 128, width);
  }
  return frame;
}

}  // namespace ignis::examples
