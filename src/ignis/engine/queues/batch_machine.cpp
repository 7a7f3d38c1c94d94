#include "ignis/engine/queues/batch_machine.h"

#include "ignis/engine/queues/streams.h"

#include <algorithm>

namespace ignis::engine {

using runtime::Command;

BatchFacts collect_facts(const DeviceTable& table, std::span<const exec::ScheduleBuffer> buffers,
                         const BaseTable& bases, const exec::Batch& batch) {
  BatchFacts facts;
  facts.batch = &batch;
  std::vector<std::vector<Access>> accesses;
  for (const exec::BatchCall& call : batch.calls) {
    accesses.push_back(bases.accesses_of(call));
    std::vector<int> earlier;
    for (size_t other = 0; other + 1 < accesses.size(); ++other) {
      if (conflict(accesses.back(), accesses[other])) earlier.push_back(static_cast<int>(other));
    }
    facts.conflicts.push_back(std::move(earlier));
    std::vector<bool> touches(batch.devices.size(), false);
    touches[static_cast<size_t>(call.device)] = true;
    for (const int peer : peers_of(batch, buffers, call)) touches[static_cast<size_t>(peer)] = true;
    facts.touches.push_back(std::move(touches));
  }
  for (const exec::QueueStream& stream : batch.streams) {
    const auto* device = table.find(batch.devices[static_cast<size_t>(stream.device)]);
    facts.is_in_order.push_back(device == nullptr || device->is_in_order);
  }
  return facts;
}

BatchMachine::BatchMachine(const BatchFacts& facts)
    : facts_(&facts),
      position_(facts.batch->streams.size(), 0),
      signals_(facts.batch->streams.size(), 0),
      reached_(facts.batch->devices.size(), 0),
      started_(facts.batch->calls.size(), false),
      completed_(facts.batch->calls.size(), false),
      flying_(facts.batch->streams.size()) {}

bool BatchMachine::is_finished() const {
  for (size_t i = 0; i < position_.size(); ++i) {
    if (position_[i] < facts_->batch->streams[i].commands.size()) return false;
  }
  return true;
}

bool BatchMachine::is_held(size_t stream) const {
  const std::vector<int>& flying = flying_[stream];
  return std::find(flying.begin(), flying.end(), held_) != flying.end();
}

bool BatchMachine::can_step(int stream) const {
  const auto index = static_cast<size_t>(stream);
  const std::vector<Command>& commands = facts_->batch->streams[index].commands;
  if (position_[index] >= commands.size()) return false;
  // A queue in order does nothing behind a call that is not complete.
  if (facts_->is_in_order[index] && is_held(index)) return false;
  const Command& command = commands[position_[index]];
  switch (command.kind) {
    case Command::Kind::Barrier: return !is_held(index);
    case Command::Kind::WaitReached: return reached_[static_cast<size_t>(command.device)] >= 0;
    case Command::Kind::WaitSignal:
      return signals_[static_cast<size_t>(command.signal)] >= command.value;
    default: return true;
  }
}

std::optional<std::string> BatchMachine::step(int stream) {
  const auto index = static_cast<size_t>(stream);
  const Command& command = facts_->batch->streams[index].commands[position_[index]];
  ++position_[index];
  order_.push_back(stream);
  switch (command.kind) {
    case Command::Kind::Exec:
    case Command::Kind::Copy: return start_call(index, command.tag);
    case Command::Kind::Barrier:
      for (const int tag : flying_[index]) completed_[static_cast<size_t>(tag)] = true;
      flying_[index].clear();
      break;
    case Command::Kind::StoreSignal:
      signals_[static_cast<size_t>(command.signal)] = command.value;
      break;
    case Command::Kind::StoreReached: return store_reached(command.device);
    case Command::Kind::WaitReached:
    case Command::Kind::WaitSignal:
    case Command::Kind::Timestamp: break;
  }
  return std::nullopt;
}

std::optional<std::string> BatchMachine::start_call(size_t stream, int tag) {
  started_[static_cast<size_t>(tag)] = true;
  if (facts_->is_in_order[stream] && tag != held_) {
    completed_[static_cast<size_t>(tag)] = true;
  } else {
    flying_[stream].push_back(tag);
  }
  for (const int other : facts_->conflicts[static_cast<size_t>(tag)]) {
    if (completed_[static_cast<size_t>(other)]) continue;
    what_ = "Call " + std::to_string(tag) + " runs before call " + std::to_string(other) +
            ", which touches the same bytes, is complete";
    return "I-6";
  }
  for (size_t device = 0; device < reached_.size(); ++device) {
    if (reached_[device] <= 0 || !facts_->touches[static_cast<size_t>(tag)][device]) continue;
    what_ = "Call " + std::to_string(tag) + " runs after the timeline of " +
            facts_->batch->devices[device] + ", which it touches, was stored";
    return "I-3";
  }
  return std::nullopt;
}

std::optional<std::string> BatchMachine::store_reached(int device) {
  reached_[static_cast<size_t>(device)] = 1;
  for (size_t tag = 0; tag < completed_.size(); ++tag) {
    if (completed_[tag] || !facts_->touches[tag][static_cast<size_t>(device)]) continue;
    what_ = "The timeline of " + facts_->batch->devices[static_cast<size_t>(device)] +
            " is stored before call " + std::to_string(tag) + ", which touches it, is complete";
    return "I-3";
  }
  return std::nullopt;
}

std::string BatchMachine::where(int stream) const {
  const exec::QueueStream& one = facts_->batch->streams[static_cast<size_t>(stream)];
  const size_t position = position_[static_cast<size_t>(stream)];
  if (position >= one.commands.size()) return "the end";
  return to_text(*facts_->batch, one.commands[position]);
}

}  // namespace ignis::engine
