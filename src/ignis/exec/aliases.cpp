#include "ignis/exec/aliases.h"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>

namespace ignis::exec {

BoundInput bind(runtime::MemoryRef memory, uint64_t offset_bytes) {
  Placement lane;
  const uint64_t total = memory == nullptr ? 0 : memory->size_bytes();
  lane.offset_bytes = offset_bytes;
  lane.size_bytes = total - std::min(offset_bytes, total);
  lane.memory = std::move(memory);
  return {{std::move(lane)}};
}

AliasCheck::AliasCheck(const QueueTemplate& queues) : uses_(queues.input_uses) {
  set_of_.resize(static_cast<size_t>(queues.input_count), -1);
  for (size_t i = 0; i < queues.aliased_inputs.size(); ++i) {
    for (const int input : queues.aliased_inputs[i]) {
      if (input >= 0 && input < queues.input_count) {
        set_of_[static_cast<size_t>(input)] = static_cast<int>(i);
      }
    }
  }
  ranges_.reserve(uses_.size());
}

bool AliasCheck::is_one_base(const InputUse& a, const InputUse& b) const {
  if (a.input == b.input && a.lane == b.lane) return true;
  const int set = set_of_[static_cast<size_t>(a.input)];
  return set >= 0 && set == set_of_[static_cast<size_t>(b.input)];
}

std::pair<const InputUse*, const InputUse*> AliasCheck::find(std::span<const BoundInput> inputs) {
  ranges_.clear();
  for (const InputUse& use : uses_) {
    const Placement& at =
        inputs[static_cast<size_t>(use.input)].lanes[static_cast<size_t>(use.lane)];
    const std::byte* host = at.memory->host();
    const uint64_t base =
        at.offset_bytes + (host != nullptr ? reinterpret_cast<uintptr_t>(host) : uint64_t{0});
    ranges_.push_back({host != nullptr ? nullptr : at.memory.get(), base + use.begin_bytes,
                       base + use.end_bytes, &use});
  }
  std::sort(ranges_.begin(), ranges_.end(), [](const Range& a, const Range& b) {
    return std::make_tuple(reinterpret_cast<uintptr_t>(a.space), a.begin_bytes) <
           std::make_tuple(reinterpret_cast<uintptr_t>(b.space), b.begin_bytes);
  });
  for (size_t i = 0; i < ranges_.size(); ++i) {
    const Range& first = ranges_[i];
    for (size_t k = i + 1; k < ranges_.size(); ++k) {
      const Range& second = ranges_[k];
      if (second.space != first.space || second.begin_bytes >= first.end_bytes) break;
      if (!first.use->is_written && !second.use->is_written) continue;
      if (!is_one_base(*first.use, *second.use)) return {first.use, second.use};
    }
  }
  return {nullptr, nullptr};
}

Status AliasCheck::check(std::span<const BoundInput> inputs) {
  const auto [first, second] = find(inputs);
  if (first == nullptr) return Status::ok();
  const auto name = [](const InputUse& use) {
    return std::to_string(use.input) + " [" + std::to_string(use.begin_bytes) + ", " +
           std::to_string(use.end_bytes) + ")";
  };
  return Error(ErrorCode::InvalidArgument,
               "Inputs " + name(*first) + " and " + name(*second) +
                   " lie over each other and one is written; compile with them as aliased inputs.",
               "AliasedArguments");
}

std::vector<std::vector<int>> find_aliased_inputs(const QueueTemplate& queues,
                                                  std::span<const BoundInput> inputs) {
  AliasCheck check(queues);
  int next = static_cast<int>(queues.aliased_inputs.size());
  // Each pair that is found joins two sets, so that it is not found again.
  for (;;) {
    const auto [first, second] = check.find(inputs);
    if (first == nullptr) break;
    const int a = check.set_of_[static_cast<size_t>(first->input)];
    const int b = check.set_of_[static_cast<size_t>(second->input)];
    const int joined = next++;
    for (size_t i = 0; i < check.set_of_.size(); ++i) {
      int& set = check.set_of_[i];
      if ((a >= 0 && set == a) || (b >= 0 && set == b) || static_cast<int>(i) == first->input ||
          static_cast<int>(i) == second->input) {
        set = joined;
      }
    }
  }
  std::map<int, std::vector<int>> sets;
  for (size_t i = 0; i < check.set_of_.size(); ++i) {
    if (check.set_of_[i] >= 0) sets[check.set_of_[i]].push_back(static_cast<int>(i));
  }
  std::vector<std::vector<int>> found;
  found.reserve(sets.size());
  for (auto& [set, members] : sets) found.push_back(std::move(members));
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace ignis::exec
