#include "ignis/exec/feedback.h"

#include "ignis/exec/run_linked.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <tuple>
#include <utility>

namespace ignis::exec {

Feedback::Range Feedback::range_of(const Placement& at) {
  const std::byte* host = at.memory->host();
  const uint64_t begin =
      at.offset_bytes + (host != nullptr ? reinterpret_cast<uintptr_t>(host) : uint64_t{0});
  return {host != nullptr ? nullptr : at.memory.get(), begin, begin + at.size_bytes};
}

void Feedback::reset(const Captured& captured, const LinkedSchedule& linked) {
  clear();
  shadows_.resize(captured.input_count());
  const std::vector<ScheduleBuffer>& buffers = linked.queues().buffers;
  for (size_t i = 0; i < buffers.size(); ++i) {
    const int held = captured.find_held(static_cast<int>(i));
    const bool is_constant =
        held >= 0 && captured.held[static_cast<size_t>(held)].kind == HeldKind::Weights;
    if (buffers[i].input >= 0 || buffers[i].is_wire || buffers[i].variable >= 0 || is_constant) {
      continue;
    }
    for (size_t lane = 0; lane < buffers[i].devices.size(); ++lane) {
      const Placement& at = linked.placement(static_cast<int>(i), static_cast<int>(lane));
      if (at.memory != nullptr && at.size_bytes > 0) named_.push_back(range_of(at));
    }
  }
  const auto key = [](const Range& range) {
    return std::make_tuple(reinterpret_cast<uintptr_t>(range.space), range.begin_bytes);
  };
  std::sort(named_.begin(), named_.end(),
            [&](const Range& a, const Range& b) { return key(a) < key(b); });
  size_t count = 0;
  for (const Range& range : named_) {
    if (count > 0 && named_[count - 1].space == range.space &&
        named_[count - 1].end_bytes >= range.begin_bytes) {
      named_[count - 1].end_bytes = std::max(named_[count - 1].end_bytes, range.end_bytes);
    } else {
      named_[count++] = range;
    }
  }
  named_.resize(count);
}

void Feedback::clear() {
  named_.clear();
  shadows_.clear();
}

uint64_t Feedback::size_bytes() const {
  uint64_t bytes = 0;
  for (const Shadow& shadow : shadows_) {
    for (const Placement& lane : shadow.lanes) bytes += lane.size_bytes;
  }
  return bytes;
}

bool Feedback::is_written(const Placement& at, std::span<const Placement> outputs) const {
  const Range range = range_of(at);
  const auto meets = [&](const Range& other) {
    return other.space == range.space && other.begin_bytes < range.end_bytes &&
           range.begin_bytes < other.end_bytes;
  };
  // The first that ends behind its begin.
  const auto found = std::partition_point(named_.begin(), named_.end(), [&](const Range& other) {
    return std::make_tuple(reinterpret_cast<uintptr_t>(other.space), other.end_bytes) <=
           std::make_tuple(reinterpret_cast<uintptr_t>(range.space), range.begin_bytes);
  });
  if (found != named_.end() && meets(*found)) return true;
  return std::any_of(outputs.begin(), outputs.end(),
                     [&](const Placement& output) { return meets(range_of(output)); });
}

Status Feedback::make(const Captured& captured, Machine& machine, size_t input, Shadow& shadow) {
  const InputDescription& described = captured.signature.inputs()[input];
  for (const InputDevice& device : described.devices) {
    IGNIS_TRY_ASSIGN(
        Placement placed,
        machine.allocate(std::string(device.name), described.base_bytes, runtime::Purpose::Data));
    shadow.lanes.push_back(std::move(placed));
  }
  shadow.bound.resize(2);
  shadow.bound[0].lanes = shadow.lanes;
  return Status::ok();
}

Status Feedback::copy_on_host(LinkedSchedule& linked, const Shadow& shadow, const BoundInput& from,
                              const runtime::WaitLimits& limits) {
  // The replay before may still read the shadow.
  IGNIS_TRY(wait(linked, limits));
  for (size_t lane = 0; lane < from.lanes.size(); ++lane) {
    const Placement& source = from.lanes[lane];
    const Placement& to = shadow.lanes[lane];
    if (source.memory->host() == nullptr || to.memory->host() == nullptr) {
      return Error(ErrorCode::Unsupported,
                   "An input lies in memory of '" + source.memory->owner() +
                       "' that the replay writes, and the capture has no copy for it.",
                   "NoShadowCopy");
    }
    IGNIS_TRY(make_readable(linked.machine(), source, limits));
    std::memcpy(to.memory->host() + to.offset_bytes, source.memory->host() + source.offset_bytes,
                std::min(source.size_bytes, to.size_bytes));
  }
  return Status::ok();
}

Result<int> Feedback::apply(const Captured& captured, LinkedSchedule& linked,
                            std::span<const Placement> outputs, std::span<BoundInput> bound,
                            const runtime::WaitLimits& limits) {
  int copied = 0;
  for (size_t i = 0; i < captured.input_count(); ++i) {
    const std::vector<Placement>& lanes = bound[i].lanes;
    if (std::none_of(lanes.begin(), lanes.end(),
                     [&](const Placement& at) { return is_written(at, outputs); })) {
      continue;
    }
    Shadow& shadow = shadows_[i];
    if (shadow.lanes.empty()) {
      Shadow made;
      IGNIS_TRY(make(captured, linked.machine(), i, made));
      shadow = std::move(made);
    }
    const bool knows_copy =
        i < captured.shadow_copies.size() && captured.shadow_copies[i] != nullptr;
    if (knows_copy) {
      if (shadow.copy == nullptr) {
        IGNIS_TRY_ASSIGN(shadow.copy, link(linked.shared_machine(), captured.shadow_copies[i], {}));
      }
      shadow.bound[1].lanes.assign(lanes.begin(), lanes.end());
      const Status status = run(*shadow.copy, shadow.bound, {.waits = false, .limits = limits});
      shadow.bound[1].lanes.clear();
      IGNIS_TRY(status);
    } else {
      IGNIS_TRY(copy_on_host(linked, shadow, bound[i], limits));
    }
    bound[i].lanes.assign(shadow.lanes.begin(), shadow.lanes.end());
    ++copied;
  }
  return copied;
}

}  // namespace ignis::exec
