#include "ignis/engine/queues/dependencies.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <tuple>
#include <utility>

namespace ignis::engine {
namespace {

bool is_written(const exec::BatchCall& call, int argument) {
  return std::find(call.outs.begin(), call.outs.end(), argument) != call.outs.end();
}

bool share_set(const std::vector<std::vector<int>>& sets, int a, int b) {
  return std::any_of(sets.begin(), sets.end(), [&](const std::vector<int>& set) {
    return std::find(set.begin(), set.end(), a) != set.end() &&
           std::find(set.begin(), set.end(), b) != set.end();
  });
}

}  // namespace

BaseTable::BaseTable(std::span<const exec::ScheduleBuffer> buffers,
                     std::span<const std::vector<int>> aliased_inputs) {
  int next = static_cast<int>(aliased_inputs.size());  // the sets have the first numbers
  std::map<std::pair<int, int>, int> of_input;         // by input, lane
  std::map<const runtime::Memory*, int> of_memory;
  const auto set_of = [&](int input) {
    for (size_t i = 0; i < aliased_inputs.size(); ++i) {
      const std::vector<int>& set = aliased_inputs[i];
      if (std::find(set.begin(), set.end(), input) != set.end()) return static_cast<int>(i);
    }
    return -1;
  };
  for (const exec::ScheduleBuffer& buffer : buffers) {
    std::vector<Lane> lanes(buffer.devices.size());
    for (size_t i = 0; i < lanes.size(); ++i) {
      const int set = buffer.input < 0 ? -1 : set_of(buffer.input);
      if (set >= 0) {
        lanes[i] = {set, true};
      } else if (buffer.input >= 0) {
        const auto [found, is_new] =
            of_input.try_emplace({buffer.input, static_cast<int>(i)}, next);
        lanes[i].base = found->second;
        next += is_new;
      } else if (i < buffer.memory.size() && buffer.memory[i] != nullptr) {
        const auto [found, is_new] = of_memory.try_emplace(buffer.memory[i].get(), next);
        lanes[i].base = found->second;
        next += is_new;
      } else {
        lanes[i].base = next++;
      }
    }
    lanes_.push_back(std::move(lanes));
  }
}

void BaseTable::append(const exec::BufferRange& range, bool is_written,
                       std::vector<Access>* to) const {
  if (range.size_bytes == 0) return;
  const std::vector<Lane>& lanes = lanes_[static_cast<size_t>(range.buffer)];
  for (size_t i = 0; i < lanes.size(); ++i) {
    if (range.lane != exec::kAllLanes && range.lane != static_cast<int>(i)) continue;
    Access access{lanes[i].base, range.offset_bytes, range.offset_bytes + range.size_bytes,
                  is_written};
    if (lanes[i].is_whole) {
      access.begin_bytes = 0;
      access.end_bytes = std::numeric_limits<uint64_t>::max();
    }
    to->push_back(access);
  }
}

std::vector<Access> BaseTable::accesses_of(const exec::BatchCall& call) const {
  std::vector<Access> accesses;
  for (size_t i = 0; i < call.arguments.size(); ++i) {
    append(call.arguments[i], is_written(call, static_cast<int>(i)), &accesses);
  }
  return accesses;
}

bool conflict(std::span<const Access> a, std::span<const Access> b) {
  for (const Access& x : a) {
    for (const Access& y : b) {
      if (x.base == y.base && (x.is_written || y.is_written) && x.begin_bytes < y.end_bytes &&
          y.begin_bytes < x.end_bytes) {
        return true;
      }
    }
  }
  return false;
}

DependencyTracker::Base& DependencyTracker::base(int index) {
  if (static_cast<size_t>(index) >= bases_.size()) bases_.resize(static_cast<size_t>(index) + 1);
  return bases_[static_cast<size_t>(index)];
}

/// Takes [begin, end) out of every record and keeps what is left of it on either side.
void DependencyTracker::cut(std::vector<Record>& records, uint64_t begin_bytes,
                            uint64_t end_bytes) {
  std::vector<Record> kept;
  kept.reserve(records.size() + 1);
  for (const Record& record : records) {
    if (record.begin_bytes >= end_bytes || begin_bytes >= record.end_bytes) {
      kept.push_back(record);
      continue;
    }
    if (record.begin_bytes < begin_bytes) {
      kept.push_back({record.begin_bytes, begin_bytes, record.tag, record.queue});
    }
    if (end_bytes < record.end_bytes) {
      kept.push_back({end_bytes, record.end_bytes, record.tag, record.queue});
    }
  }
  records = std::move(kept);
}

std::vector<int> DependencyTracker::add(int tag, int queue, bool is_in_order,
                                        std::span<const Access> accesses) {
  // All is collected before anything is recorded: a call never depends on itself.
  std::set<int> owners;
  for (const Access& access : accesses) {
    if (access.begin_bytes >= access.end_bytes) continue;
    const auto collect = [&](const std::vector<Record>& records) {
      for (const Record& record : records) {
        if (record.begin_bytes < access.end_bytes && access.begin_bytes < record.end_bytes) {
          owners.insert(record.tag);
        }
      }
    };
    Base& of = base(access.base);
    collect(of.writes);
    if (access.is_written) collect(of.reads);
  }
  for (const Access& access : accesses) {
    if (access.begin_bytes >= access.end_bytes) continue;
    Base& of = base(access.base);
    const Record record{access.begin_bytes, access.end_bytes, tag, queue};
    if (access.is_written) {
      // Safe to forget what is cut away: this write itself waits for it.
      cut(of.writes, access.begin_bytes, access.end_bytes);
      cut(of.reads, access.begin_bytes, access.end_bytes);
      of.writes.push_back(record);
      continue;
    }
    const auto older = std::find_if(of.reads.begin(), of.reads.end(), [&](const Record& other) {
      return is_in_order && other.queue == queue && other.begin_bytes == record.begin_bytes &&
             other.end_bytes == record.end_bytes;
    });
    if (older != of.reads.end()) {
      *older = record;
    } else {
      of.reads.push_back(record);
    }
  }
  return {owners.begin(), owners.end()};
}

size_t DependencyTracker::record_count() const {
  size_t count = 0;
  for (const Base& of : bases_) count += of.writes.size() + of.reads.size();
  return count;
}

std::vector<exec::InputUse> collect_input_uses(const exec::QueueTemplate& queue_template) {
  std::vector<exec::InputUse> uses;
  const auto add_call = [&](const exec::BatchCall& call) {
    for (size_t i = 0; i < call.arguments.size(); ++i) {
      const exec::BufferRange& range = call.arguments[i];
      const auto& buffer = queue_template.buffers[static_cast<size_t>(range.buffer)];
      if (buffer.input < 0 || range.size_bytes == 0) continue;
      for (int lane = 0; lane < static_cast<int>(buffer.devices.size()); ++lane) {
        if (range.lane != exec::kAllLanes && range.lane != lane) continue;
        uses.push_back({buffer.input, lane, range.offset_bytes,
                        range.offset_bytes + range.size_bytes,
                        is_written(call, static_cast<int>(i))});
      }
    }
  };
  for (const exec::TemplateStep& step : queue_template.steps) {
    for (const exec::BatchCall& call : step.batch.calls) {
      add_call(call);
    }
  }
  const auto kind = [](const exec::InputUse& use) {
    return std::make_tuple(use.input, use.lane, use.is_written);
  };
  std::sort(uses.begin(), uses.end(), [&](const exec::InputUse& a, const exec::InputUse& b) {
    return std::make_pair(kind(a), a.begin_bytes) < std::make_pair(kind(b), b.begin_bytes);
  });
  std::vector<exec::InputUse> merged;
  for (const exec::InputUse& use : uses) {
    if (!merged.empty() && kind(merged.back()) == kind(use) &&
        use.begin_bytes <= merged.back().end_bytes) {
      merged.back().end_bytes = std::max(merged.back().end_bytes, use.end_bytes);
    } else {
      merged.push_back(use);
    }
  }
  return merged;
}

std::vector<std::pair<int, int>> must_not_alias(const exec::QueueTemplate& queue_template) {
  std::map<int, bool> written;  // by input that is used
  for (const exec::InputUse& use : queue_template.input_uses) {
    written[use.input] = written[use.input] || use.is_written;
  }
  std::vector<std::pair<int, int>> pairs;
  for (auto a = written.begin(); a != written.end(); ++a) {
    for (auto b = std::next(a); b != written.end(); ++b) {
      if (!a->second && !b->second) continue;
      if (share_set(queue_template.aliased_inputs, a->first, b->first)) continue;
      pairs.emplace_back(a->first, b->first);
    }
  }
  return pairs;
}

}  // namespace ignis::engine
