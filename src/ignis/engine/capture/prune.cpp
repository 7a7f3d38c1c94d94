#include "ignis/engine/capture/prune.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <span>
#include <utility>

namespace ignis::engine {
namespace {

using exec::Schedule;
using exec::ScheduleBuffer;
using exec::ScheduleCall;

/// What a call does to one block: buffers that are the same memory are one block.
struct Use {
  int block = 0;
  int buffer = 0;
  bool is_read = false, is_written = false;
};

constexpr int kNoneBad = std::numeric_limits<int>::min();

/// The block of each buffer: the lowest number among those that are the same memory.
std::vector<int> find_blocks(std::span<const ScheduleBuffer> buffers) {
  std::vector<int> parent(buffers.size());
  std::iota(parent.begin(), parent.end(), 0);
  const auto root = [&](int i) {
    while (parent[static_cast<size_t>(i)] != i) i = parent[static_cast<size_t>(i)];
    return i;
  };
  const auto join = [&](int a, int b) {
    const int low = std::min(root(a), root(b)), high = std::max(root(a), root(b));
    parent[static_cast<size_t>(high)] = low;
  };
  std::map<int, int> of_input;
  std::map<const runtime::Memory*, int> of_memory;  // looked up only, never walked
  for (size_t i = 0; i < buffers.size(); ++i) {
    const auto index = static_cast<int>(i);
    const ScheduleBuffer& buffer = buffers[i];
    if (buffer.input >= 0) join(index, of_input.emplace(buffer.input, index).first->second);
    for (const runtime::MemoryRef& memory : buffer.memory) {
      if (memory != nullptr) join(index, of_memory.emplace(memory.get(), index).first->second);
    }
    if (buffer.other_end >= 0 && static_cast<size_t>(buffer.other_end) < buffers.size()) {
      join(index, buffer.other_end);
    }
  }
  for (size_t i = 0; i < parent.size(); ++i) parent[i] = root(static_cast<int>(i));
  return parent;
}

Error bad_schedule(const ScheduleCall& call, const std::string& what) {
  return Error(ErrorCode::InvalidArgument, "Call '" + call.name + "' " + what + ".", "BadSchedule");
}

class Pruner {
 public:
  Pruner(const Schedule& schedule, const PruneOptions& options)
      : schedule_(schedule), options_(options) {}

  Result<Pruned> run() {
    blocks_ = find_blocks(schedule_.buffers);
    IGNIS_TRY(find_uses());
    IGNIS_TRY(find_state());
    result_.calls.resize(schedule_.calls.size());
    keep_what_inputs_reach();
    keep_what_changes_by_itself();
    spread();
    return collect();
  }

 private:
  bool is_kept(size_t call) const { return result_.calls[call].fate != CallFate::OneTime; }
  const std::vector<Use>& uses(size_t call) const { return uses_[call]; }

  Status find_uses() {
    touching_.resize(schedule_.buffers.size());
    uses_.resize(schedule_.calls.size());
    for (size_t i = 0; i < schedule_.calls.size(); ++i) {
      const ScheduleCall& call = schedule_.calls[i];
      std::vector<Use>& uses = uses_[i];
      for (const exec::BufferView& argument : call.arguments) {
        if (argument.buffer < 0 || static_cast<size_t>(argument.buffer) >= blocks_.size()) {
          return bad_schedule(call, "names buffer " + std::to_string(argument.buffer) + " of " +
                                        std::to_string(blocks_.size()));
        }
        const bool is_all = !call.knows_writes;
        uses.push_back(
            {blocks_[static_cast<size_t>(argument.buffer)], argument.buffer, is_all, is_all});
      }
      const auto mark = [&](const std::vector<int>& numbers, bool Use::* field) {
        for (const int number : numbers) {
          if (number < 0 || static_cast<size_t>(number) >= uses.size()) return number;
          uses[static_cast<size_t>(number)].*field = true;
        }
        return kNoneBad;
      };
      for (const int bad : {mark(call.outs, &Use::is_written), mark(call.ins, &Use::is_read)}) {
        if (bad != kNoneBad) {
          return bad_schedule(call, "writes or reads argument " + std::to_string(bad) + " of " +
                                        std::to_string(uses.size()));
        }
      }
      for (Use& use : uses) {
        if (!use.is_written) use.is_read = true;
        touching_[static_cast<size_t>(use.block)].push_back(i);
      }
    }
    return Status::ok();
  }

  Status find_state() {
    const auto check = [&](int buffer, size_t count, const char* what) -> Status {
      if (buffer >= 0 && static_cast<size_t>(buffer) < count) return Status::ok();
      return Error(ErrorCode::InvalidArgument,
                   std::string(what) + " " + std::to_string(buffer) + " is marked; there are " +
                       std::to_string(count) + ".",
                   "BadSchedule");
    };
    is_state_.resize(blocks_.size());
    for (size_t i = 0; i < blocks_.size(); ++i) {
      if (!schedule_.buffers[i].memory.empty()) is_state_[static_cast<size_t>(blocks_[i])] = true;
    }
    for (const int buffer : options_.exposed_buffers) {
      IGNIS_TRY(check(buffer, blocks_.size(), "Exposed buffer"));
      is_state_[static_cast<size_t>(blocks_[static_cast<size_t>(buffer)])] = true;
    }
    std::vector<bool> is_written(blocks_.size());
    for (const std::vector<Use>& uses : uses_) {
      for (const Use& use : uses) {
        if (use.is_written) is_written[static_cast<size_t>(use.block)] = true;
      }
    }
    for (const int buffer : options_.constant_buffers) {
      IGNIS_TRY(check(buffer, blocks_.size(), "Constant buffer"));
      // What a call writes is not constant, whatever somebody said.
      const auto block = static_cast<size_t>(blocks_[static_cast<size_t>(buffer)]);
      if (!is_written[block]) is_state_[block] = false;
    }
    for (const int call : options_.random_calls) {
      IGNIS_TRY(check(call, schedule_.calls.size(), "Random call"));
    }
    return Status::ok();
  }

  /// The rule of the base: forwards, all buffers of a call that touches the set join it.
  void keep_what_inputs_reach() {
    std::vector<bool> reached(blocks_.size());
    for (size_t i = 0; i < blocks_.size(); ++i) {
      if (schedule_.buffers[i].input >= 0) reached[static_cast<size_t>(blocks_[i])] = true;
    }
    for (size_t i = 0; i < uses_.size(); ++i) {
      for (const Use& use : uses(i)) {
        if (!reached[static_cast<size_t>(use.block)]) continue;
        keep(i, CallFate::TouchesInput, use.buffer);
        break;
      }
      if (!is_kept(i)) continue;
      for (const Use& use : uses(i)) reached[static_cast<size_t>(use.block)] = true;
    }
  }

  void keep_what_changes_by_itself() {
    for (const int call : options_.random_calls) {
      keep(static_cast<size_t>(call), CallFate::DrawsRandom);
    }
    for (size_t i = 0; i < uses_.size(); ++i) {
      const ScheduleCall& call = schedule_.calls[i];
      if (call.kind == exec::CallKind::Other) keep(i, CallFate::HasOtherEffect);
      for (const exec::CallVariable& variable : call.variables) {
        const auto& names = options_.run_time_variables;
        if (variable.run_time >= 0 ||
            std::find(names.begin(), names.end(), variable.name) != names.end()) {
          keep(i, CallFate::BindsVariable);
        }
      }
      for (const exec::BufferView& argument : call.arguments) {
        const int buffer = argument.buffer;
        if (schedule_.buffers[static_cast<size_t>(buffer)].variable >= 0) {
          keep(i, CallFate::BindsVariable, buffer);
        }
      }
      for (const Use& use : uses(i)) {
        if (!is_state_[static_cast<size_t>(use.block)]) continue;
        if (use.is_read) keep(i, CallFate::ReadsState, use.buffer);
        if (use.is_written) keep(i, CallFate::WritesState, use.buffer);
      }
    }
  }

  /// Moves back what a kept call disturbs, until nothing moves. What stays one-time then touches nothing that a kept call
  /// writes, and writes nothing that an earlier kept call reads: to run it first and once changes no result.
  void spread() {
    while (!new_.empty()) {
      const size_t kept = new_.back();
      new_.pop_back();
      for (const Use& use : uses(kept)) {
        for (const size_t other : touching_[static_cast<size_t>(use.block)]) {
          if (is_kept(other)) continue;
          for (const Use& theirs : uses(other)) {
            if (theirs.block != use.block) continue;
            if (use.is_written && theirs.is_written) {
              keep(other, CallFate::WritesWithKept, theirs.buffer);
            } else if (use.is_written) {
              keep(other, CallFate::ReadsFromKept, theirs.buffer);
            } else if (theirs.is_written && other > kept) {
              keep(other, CallFate::WritesAfterKept, theirs.buffer);
            }
          }
        }
      }
    }
  }

  void keep(size_t call, CallFate fate, int buffer = -1) {
    if (is_kept(call)) return;
    result_.calls[call] = {fate, buffer};
    new_.push_back(call);
  }

  Result<Pruned> collect() {
    for (size_t i = 0; i < uses_.size(); ++i) {
      (is_kept(i) ? result_.kept : result_.one_time).push_back(static_cast<int>(i));
    }
    if (result_.kept.empty()) {
      return Error(ErrorCode::InvalidArgument,
                   uses_.empty()
                       ? "The captured function made no call."
                       : "None of the " + std::to_string(uses_.size()) +
                             " captured calls depends on an input ('" +
                             schedule_.calls.front().name +
                             "' is the first): nothing is left to replay. Pass what changes as an "
                             "argument, or capture without pruning.",
                   "NothingCaptured");
    }
    std::vector<bool> once(blocks_.size()), always(blocks_.size());
    for (size_t i = 0; i < uses_.size(); ++i) {
      for (const Use& use : uses(i)) {
        if (is_kept(i)) always[static_cast<size_t>(use.block)] = true;
        if (!is_kept(i) && use.is_written) once[static_cast<size_t>(use.block)] = true;
      }
    }
    for (size_t i = 0; i < blocks_.size(); ++i) {
      const auto block = static_cast<size_t>(blocks_[i]);
      if (once[block] && always[block]) result_.held_buffers.push_back(static_cast<int>(i));
    }
    return std::move(result_);
  }

  const Schedule& schedule_;
  const PruneOptions& options_;
  std::vector<int> blocks_;                    ///< by buffer
  std::vector<std::vector<Use>> uses_;         ///< by call
  std::vector<std::vector<size_t>> touching_;  ///< calls by block, ascending
  std::vector<bool> is_state_;                 ///< by block: may change between replays
  std::vector<size_t> new_;                    ///< kept calls that were not looked at yet
  Pruned result_;
};

}  // namespace

std::string_view to_string(CallFate fate) {
  switch (fate) {
    case CallFate::OneTime:
      return "depends on no input and nothing changes what it reads or writes";
    case CallFate::TouchesInput: return "touches an input or what comes of one";
    case CallFate::WritesWithKept: return "writes what a kept call writes too";
    case CallFate::ReadsFromKept: return "reads what a kept call writes";
    case CallFate::WritesAfterKept: return "writes what an earlier kept call reads";
    case CallFate::ReadsState: return "reads an implicit input that is not marked constant";
    case CallFate::WritesState: return "writes what others may write between replays";
    case CallFate::DrawsRandom: return "draws random numbers";
    case CallFate::BindsVariable: return "binds a variable of the run";
    case CallFate::HasOtherEffect: return "has effects that are not known";
  }
  return "?";
}

Result<Pruned> prune(const Schedule& schedule, const PruneOptions& options) {
  return Pruner(schedule, options).run();
}

std::string Pruned::to_text(const Schedule& schedule) const {
  std::string text;
  for (size_t i = 0; i < calls.size(); ++i) {
    text += calls[i].fate == CallFate::OneTime ? "once  " : "keep  ";
    text += std::to_string(i) + " " + schedule.calls[i].name + ": ";
    text += to_string(calls[i].fate);
    if (calls[i].buffer >= 0) {
      text += " ('" + schedule.buffers[static_cast<size_t>(calls[i].buffer)].name + "')";
    }
    text += "\n";
  }
  return text;
}

Schedule select_calls(const Schedule& schedule, const std::vector<int>& calls) {
  Schedule result;
  result.buffers = schedule.buffers;
  result.programs = schedule.programs;
  for (const int call : calls) result.calls.push_back(schedule.calls[static_cast<size_t>(call)]);
  return result;
}

exec::Schedule select_one_time(const exec::Schedule& schedule, const std::vector<int>& calls) {
  exec::Schedule selected = select_calls(schedule, calls);
  for (exec::ScheduleBuffer& buffer : selected.buffers) {
    buffer.input = -1;
    buffer.variable = -1;
  }
  return selected;
}

}  // namespace ignis::engine
