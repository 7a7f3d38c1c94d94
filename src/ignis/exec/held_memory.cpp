#include "ignis/exec/held_memory.h"

#include "ignis/base/math.h"
#include "ignis/exec/external_memory.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

namespace ignis::exec {
namespace {

/// As memory that a device gives out.
constexpr uint64_t kInPlaceAlignmentBytes = 64;

/// Programs of the host read weights where the file is mapped, if that is aligned as memory of its own would be.
bool shows_bytes_in_place(const HeldBuffer& held, size_t lane, const std::string& owner,
                          const Machine& machine) {
  return held.kind == HeldKind::Weights && lane < held.bytes.size() &&
         owner == machine.options().host_name && !held.bytes[lane].bytes.empty() &&
         reinterpret_cast<uintptr_t>(held.bytes[lane].bytes.data()) % kInPlaceAlignmentBytes == 0;
}

bool same_buffers(const Captured& a, const Captured& b) {
  return std::equal(a.held.begin(), a.held.end(), b.held.begin(), b.held.end(),
                    [&](const HeldBuffer& x, const HeldBuffer& y) {
                      const auto& of_x = a.queues->queues().buffers[static_cast<size_t>(x.buffer)];
                      const auto& of_y = b.queues->queues().buffers[static_cast<size_t>(y.buffer)];
                      return x.buffer == y.buffer && x.kind == y.kind && x.name == y.name &&
                             of_x.size_bytes == of_y.size_bytes && of_x.devices == of_y.devices;
                    });
}

constexpr uint64_t kZerosBytes = uint64_t{1} << 20;  // the host's copy of zeros for a device

}  // namespace

Status upload(Machine& machine, const Placement& to, std::span<const std::byte> bytes,
              UploadCounts& counts) {
  if (bytes.size() > to.size_bytes) {
    return Error(ErrorCode::InvalidArgument,
                 std::to_string(bytes.size()) + " bytes are written to memory of " +
                     std::to_string(to.size_bytes) + ".",
                 "OutOfRange");
  }
  runtime::QueuedDevice* device = to.memory->owner() == machine.options().host_name
                                      ? nullptr
                                      : machine.find(to.memory->owner());
  for (uint64_t begin = 0; begin < bytes.size(); begin += kUploadPieceBytes) {
    const auto piece =
        bytes.subspan(begin, std::min<uint64_t>(kUploadPieceBytes, bytes.size() - begin));
    if (device != nullptr) {
      IGNIS_TRY(device->upload(to.memory, to.offset_bytes + begin, piece));
    } else if (to.memory->host() != nullptr) {
      std::memcpy(to.memory->host() + to.offset_bytes + begin, piece.data(), piece.size());
    } else {
      return Error(ErrorCode::NotFound, "Device '" + to.memory->owner() + "' is not open.",
                   "NoSuchDevice");
    }
    counts.bytes += piece.size();
    ++counts.pieces;
  }
  return Status::ok();
}

namespace {

Status upload_zeros(Machine& machine, const Placement& to, UploadCounts& counts) {
  const std::vector<std::byte> zeros(std::min<uint64_t>(to.size_bytes, kZerosBytes));
  for (uint64_t begin = 0; begin < to.size_bytes; begin += zeros.size()) {
    const uint64_t size_bytes = std::min<uint64_t>(zeros.size(), to.size_bytes - begin);
    IGNIS_TRY(upload(machine, {to.memory, to.offset_bytes + begin, size_bytes},
                     std::span(zeros).first(size_bytes), counts));
  }
  return Status::ok();
}

}  // namespace

HeldStore::HeldStore(CapturedRef captured) : captured_(std::move(captured)) {
  for (const HeldBuffer& held : captured_->held) {
    const auto& buffer = captured_->queues->queues().buffers[static_cast<size_t>(held.buffer)];
    HeldMemory& made = memory_.emplace_back();
    made.buffer = held.buffer;
    made.lanes = held.lanes;
    made.lanes.resize(buffer.devices.size());
    for (Placement& lane : made.lanes) {
      lane.size_bytes = std::min(lane.size_bytes, buffer.size_bytes);  // a block may be longer
    }
    std::vector<uint8_t>& filled = is_filled_.emplace_back();
    // What the capture left in its memory is good.
    for (const Placement& lane : made.lanes) filled.push_back(lane.memory != nullptr ? 1 : 0);
    is_lost_.emplace_back(buffer.devices.size(), uint8_t{0});
    had_start_.push_back(filled);
  }
}

bool HeldStore::adopt(const CapturedRef& captured) {
  if (!same_buffers(*captured_, *captured)) return false;
  captured_ = captured;
  return true;
}

Status HeldStore::make_arenas(Machine& machine) {
  struct Request {
    size_t held, lane;
    uint64_t offset_bytes, size_bytes;
  };
  struct Arena {
    uint64_t size_bytes = 0;
    std::vector<Request> requests;
  };
  std::map<std::string, Arena> arenas;  // by owner
  for (size_t i = 0; i < memory_.size(); ++i) {
    const HeldBuffer& held = captured_->held[i];
    const auto& buffer = captured_->queues->queues().buffers[static_cast<size_t>(held.buffer)];
    for (size_t lane = 0; lane < memory_[i].lanes.size(); ++lane) {
      Placement& to = memory_[i].lanes[lane];
      if (to.memory != nullptr) continue;
      const std::string& owner = buffer.devices[lane];
      if (shows_bytes_in_place(held, lane, owner, machine)) {
        const HostBytes& from = held.bytes[lane];
        // Nothing writes it: no call does, and it is no state.
        auto* bytes = const_cast<std::byte*>(from.bytes.data());
        to = {std::make_shared<ExternalMemory>(owner, bytes, from.bytes.size(), from.owner), 0,
              from.bytes.size()};
        is_filled_[i][lane] = 1;
        continue;
      }
      Arena& arena = arenas[owner];
      const auto padded = checked_add(arena.size_bytes, kHeldAlignmentBytes - 1);
      const uint64_t offset = padded.value_or(0) / kHeldAlignmentBytes * kHeldAlignmentBytes;
      const auto end = checked_add(offset, buffer.size_bytes);
      if (!padded || !end) {
        return Error(ErrorCode::OutOfMemory,
                     "The held buffers on '" + owner + "' take more than 64 bits of bytes.");
      }
      arena.requests.push_back({i, lane, offset, buffer.size_bytes});
      arena.size_bytes = *end;
    }
  }
  for (const auto& [owner, arena] : arenas) {
    IGNIS_TRY_ASSIGN(const Placement block,
                     machine.allocate(owner, arena.size_bytes, runtime::Purpose::Data));
    const bool is_zeroed = owner == machine.options().host_name;
    for (const auto& [held, lane, offset_bytes, size_bytes] : arena.requests) {
      memory_[held].lanes[lane] = {block.memory, block.offset_bytes + offset_bytes, size_bytes};
      if (is_zeroed && captured_->held[held].kind == HeldKind::Scratch) is_filled_[held][lane] = 1;
    }
  }
  return Status::ok();
}

Status HeldStore::fill_lane(Machine& machine, size_t held, size_t lane, UploadCounts& counts) {
  const HeldBuffer& of = captured_->held[held];
  const bool has_bytes = lane < of.bytes.size();
  const bool is_start = of.kind == HeldKind::State && had_start_[held][lane] == 0;
  if (of.kind == HeldKind::OneTime) {
    if (captured_->one_time != nullptr) needs_one_time_ = true;
    is_lost_[held][lane] = captured_->one_time == nullptr ? 1 : 0;
  } else if (has_bytes && (of.kind == HeldKind::Weights || is_start)) {
    IGNIS_TRY(upload(machine, memory_[held].lanes[lane], of.bytes[lane].bytes, counts));
    had_start_[held][lane] = 1;
  } else if (of.kind == HeldKind::Scratch) {
    IGNIS_TRY(upload_zeros(machine, memory_[held].lanes[lane], counts));
  } else {
    is_lost_[held][lane] = 1;
  }
  is_filled_[held][lane] = 1;
  return Status::ok();
}

Status HeldStore::fill(Machine& machine, UploadCounts& counts) {
  IGNIS_TRY(make_arenas(machine));
  const int64_t begin_ns = machine.clock().now_ns();
  for (size_t i = 0; i < memory_.size(); ++i) {
    for (size_t lane = 0; lane < memory_[i].lanes.size(); ++lane) {
      if (is_filled_[i][lane] == 0) IGNIS_TRY(fill_lane(machine, i, lane, counts));
    }
  }
  counts.took_ns += machine.clock().now_ns() - begin_ns;
  return Status::ok();
}

void HeldStore::lose(size_t held, Placement& lane) {
  const auto index = static_cast<size_t>(&lane - memory_[held].lanes.data());
  lane = {};
  is_filled_[held][index] = 0;
}

void HeldStore::lose_written() {
  for (size_t i = 0; i < memory_.size(); ++i) {
    if (captured_->held[i].is_written && captured_->held[i].kind != HeldKind::Scratch) {
      std::fill(is_lost_[i].begin(), is_lost_[i].end(), uint8_t{1});
    }
  }
}

std::vector<std::string> HeldStore::lost() const {
  std::vector<std::string> names;
  for (size_t i = 0; i < memory_.size(); ++i) {
    const auto& lost = is_lost_[i];
    if (std::find(lost.begin(), lost.end(), uint8_t{1}) != lost.end()) {
      names.push_back(captured_->held[i].name);
    }
  }
  return names;
}

Status HeldStore::check() const {
  for (const auto& lost : is_lost_) {
    if (std::find(lost.begin(), lost.end(), uint8_t{1}) == lost.end()) continue;
    std::string names;
    for (const std::string& name : this->lost())
      names += (names.empty() ? "'" : ", '") + name + "'";
    return Error(ErrorCode::DeviceLost,
                 "What " + names +
                     " held is lost, by a reopened device or a replay that failed; supply it "
                     "before the next replay.",
                 "StateLost");
  }
  return Status::ok();
}

Status HeldStore::supply(Machine& machine, size_t held, size_t lane,
                         std::span<const std::byte> bytes, UploadCounts& counts) {
  const Placement& to = memory_[held].lanes[lane];
  if (bytes.size() != to.size_bytes) {
    return Error(ErrorCode::InvalidArgument,
                 "Held buffer '" + captured_->held[held].name + "' has " +
                     std::to_string(to.size_bytes) + " bytes; " + std::to_string(bytes.size()) +
                     " are supplied.",
                 "StateMismatch");
  }
  IGNIS_TRY(upload(machine, to, bytes, counts));
  is_lost_[held][lane] = 0;
  had_start_[held][lane] = 1;
  return Status::ok();
}

}  // namespace ignis::exec
