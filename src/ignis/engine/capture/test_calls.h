#pragma once

// Schedules for the tests of this folder, and a host that runs them call by call.

#include "ignis/engine/queues/view.h"
#include "ignis/exec/schedule.h"

#include "tests/support/seed.h"
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace ignis::engine {

using ignis::testing::test_seed;

/// Memory that has an owner and no bytes: makes a buffer an implicit input.
class MarkerMemory final : public runtime::Memory {
 public:
  const std::string& owner() const override { return owner_; }
  uint64_t size_bytes() const override { return 16; }
  std::byte* host() const override { return nullptr; }

 private:
  std::string owner_ = "G";
};

/// A schedule that grows. Elements are of 8 bytes.
struct TestCalls {
  exec::Schedule schedule;

  int buffer(const std::string& name, uint64_t size_bytes = 16, std::string device = "G") {
    exec::ScheduleBuffer made;
    made.name = name;
    made.devices = {std::move(device)};
    made.size_bytes = size_bytes;
    schedule.buffers.push_back(std::move(made));
    return static_cast<int>(schedule.buffers.size()) - 1;
  }
  int input(const std::string& name, int number, uint64_t size_bytes = 16) {
    const int made = buffer(name, size_bytes);
    schedule.buffers[static_cast<size_t>(made)].input = number;
    return made;
  }
  int implicit(const std::string& name) {
    const int made = buffer(name);
    schedule.buffers[static_cast<size_t>(made)].memory = {std::make_shared<MarkerMemory>()};
    return made;
  }
  static exec::BufferView whole(int buffer) {
    exec::BufferView view;
    view.buffer = buffer;
    view.item_bytes = 8;
    return view;
  }
  static exec::BufferView element(int buffer, int64_t index) {
    return slice(whole(buffer), index, index + 1);
  }
  /// out = add + the sum of ins, element by element; a short one is read again from its start.
  exec::ScheduleCall& sum(exec::BufferView out, std::vector<exec::BufferView> ins, int64_t add = 0,
                          exec::CallKind kind = exec::CallKind::Program) {
    exec::ScheduleCall call;
    call.kind = kind;
    call.name = "call_" + std::to_string(schedule.calls.size());
    call.program = 0;
    call.arguments.push_back(std::move(out));
    call.outs = {0};
    for (exec::BufferView& in : ins) {
      call.ins.push_back(static_cast<int>(call.arguments.size()));
      call.arguments.push_back(std::move(in));
    }
    call.variables.push_back({"add", add});
    schedule.calls.push_back(std::move(call));
    return schedule.calls.back();
  }
  exec::ScheduleCall& sum(int out, const std::vector<int>& ins, int64_t add = 0) {
    std::vector<exec::BufferView> views;
    for (const int in : ins) views.push_back(whole(in));
    return sum(whole(out), std::move(views), add);
  }
  exec::ScheduleCall& copy(int out, int in) {
    exec::ScheduleCall& call = sum(out, {in});
    call.kind = exec::CallKind::Copy;
    return call;
  }
};

/// Buffers on the host.
struct TestHost {
  std::vector<std::vector<int64_t>> memory;  ///< by buffer
  int64_t run_time_variable = 0;             ///< what calls that bind "v" add
  int64_t next_random = 0;

  explicit TestHost(const exec::Schedule& schedule) {
    for (const exec::ScheduleBuffer& buffer : schedule.buffers) {
      memory.emplace_back((buffer.size_bytes + 7) / 8, int64_t{-1});
    }
  }
  std::vector<int64_t>& at(int buffer) { return memory[static_cast<size_t>(buffer)]; }

  /// Runs all calls; those whose number `is_random` names draw.
  void run(const exec::Schedule& schedule, const std::vector<bool>& is_random = {}) {
    for (size_t i = 0; i < schedule.calls.size(); ++i) {
      run_call(schedule, schedule.calls[i], i < is_random.size() && is_random[i]);
    }
  }
  void run_call(const exec::Schedule& schedule, const exec::ScheduleCall& call, bool is_random) {
    const auto range = [&](size_t argument) {
      return resolve_view(schedule.buffers, call.arguments[argument]).value();
    };
    const exec::BufferRange out = range(0);
    std::vector<int64_t> result(out.size_bytes / 8, 0);
    for (const exec::CallVariable& variable : call.variables) {
      for (int64_t& one : result) one += variable.name == "v" ? run_time_variable : variable.value;
    }
    if (is_random) {
      ++next_random;
      for (int64_t& one : result) one += next_random * 7919;
    }
    for (size_t k = 1; k < call.arguments.size(); ++k) {
      const exec::BufferRange in = range(k);
      const std::vector<int64_t>& from = at(in.buffer);
      for (size_t e = 0; e < result.size(); ++e) {
        result[e] += from[in.offset_bytes / 8 + e % (in.size_bytes / 8)];
      }
    }
    std::copy(result.begin(), result.end(),
              at(out.buffer).begin() + static_cast<int64_t>(out.offset_bytes / 8));
  }
};

}  // namespace ignis::engine
