#pragma once

#include "ignis/base/result.h"
#include "ignis/exec/captured.h"
#include "ignis/exec/link.h"
#include "ignis/exec/machine.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ignis::exec {

/// Of one write to a device: big weights go in pieces (queue spec W-5).
inline constexpr uint64_t kUploadPieceBytes = uint64_t{32} << 20;
/// Of a weight in its arena, as in a file.
inline constexpr uint64_t kHeldAlignmentBytes = 256;

/// Bytes that were brought to memory.
struct UploadCounts {
  uint64_t bytes = 0;
  uint64_t pieces = 0;
  int64_t took_ns = 0;  ///< of held buffers

  UploadCounts since(const UploadCounts& earlier) const {
    return {bytes - earlier.bytes, pieces - earlier.pieces, took_ns - earlier.took_ns};
  }
};

/// The memory of a capture's held buffers on one machine, and which of it holds what it should. Memory of the capture itself is
/// used as long as it is good; what is missing comes from an arena on each device. Not for several threads.
class HeldStore {
 public:
  /// Starts with the memory that `captured` knows.
  explicit HeldStore(CapturedRef captured);

  const Captured& captured() const { return *captured_; }
  /// For another schedule of the same held buffers; false when they are others.
  bool adopt(const CapturedRef& captured);

  /// Makes what is missing and fills it where its bytes are known. Host memory shows weights where they are and copies nothing.
  /// Errors: OutOfMemory, DeviceLost, NotFound; then what was made so far is kept, and is made whole by another call.
  Status fill(Machine& machine, UploadCounts& counts);
  /// Whether one-time results are to be made again; settled by note_one_time().
  bool needs_one_time() const { return needs_one_time_; }
  void note_one_time() { needs_one_time_ = false; }

  /// What link() takes. Valid after fill().
  std::span<const HeldMemory> memory() const { return memory_; }
  const Placement& place(size_t held, size_t lane) const { return memory_[held].lanes[lane]; }

  /// Forgets memory for which `is_good` says no; returns the bytes of what stays.
  template <typename IsGood>
  uint64_t keep_good(IsGood&& is_good) {
    uint64_t kept_bytes = 0;
    for (size_t i = 0; i < memory_.size(); ++i) {
      for (Placement& lane : memory_[i].lanes) {
        if (lane.memory == nullptr) continue;
        if (is_good(captured_->held[i], lane)) {
          kept_bytes += lane.size_bytes;
        } else {
          lose(i, lane);
        }
      }
    }
    return kept_bytes;
  }
  /// What calls write is nobody's state any more.
  void lose_written();
  /// Ok, or DeviceLost with the reason StateLost naming what the caller has to supply.
  Status check() const;
  std::vector<std::string> lost() const;
  /// Brings bytes to a lane. Errors: InvalidArgument for another size; as Device::upload.
  Status supply(Machine& machine, size_t held, size_t lane, std::span<const std::byte> bytes,
                UploadCounts& counts);

 private:
  void lose(size_t held, Placement& lane);
  Status make_arenas(Machine& machine);
  Status fill_lane(Machine& machine, size_t held, size_t lane, UploadCounts& counts);

  CapturedRef captured_;
  std::vector<HeldMemory> memory_;               ///< by held buffer
  std::vector<std::vector<uint8_t>> is_filled_;  ///< by held buffer, by lane
  std::vector<std::vector<uint8_t>> is_lost_;    ///< the caller has to supply it
  std::vector<std::vector<uint8_t>> had_start_;  ///< state began with the capture's bytes
  bool needs_one_time_ = false;
};

/// Writes to memory of a device or the host in pieces. Errors: as runtime::QueuedDevice::upload.
Status upload(Machine& machine, const Placement& to, std::span<const std::byte> bytes,
              UploadCounts& counts);

}  // namespace ignis::exec
