#pragma once

// A batch written down by a test, encoded, linked and fenced with as little as possible of the queue compiler.

#include "ignis/exec/fence.h"
#include "ignis/vdev/queue/world.h"

#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace ignis::vdev::test {

using runtime::Command;
using runtime::QueueId;

inline constexpr QueueId kCompute{QueueId::Kind::Compute, 0};
inline constexpr QueueId kCopy{QueueId::Kind::Copy, 0};
inline constexpr int64_t kMs = 1'000'000;
/// Plenty for anything that works.
inline constexpr runtime::WaitLimits kPatient{.deadline_ns = 60'000 * kMs,
                                              .stall_ns = 30'000 * kMs};

inline Command barrier() { return {.kind = Command::Kind::Barrier}; }
inline Command wait_reached(int device) {
  return {.kind = Command::Kind::WaitReached, .device = device};
}
inline Command wait_signal(int signal, uint64_t value) {
  return {.kind = Command::Kind::WaitSignal, .signal = signal, .value = value};
}
inline Command launch(int tag) { return {.kind = Command::Kind::Exec, .tag = tag}; }
inline Command copy(int tag) { return {.kind = Command::Kind::Copy, .tag = tag}; }
inline Command store_signal(int signal, uint64_t value) {
  return {.kind = Command::Kind::StoreSignal, .signal = signal, .value = value};
}
inline Command store_reached(int device) {
  return {.kind = Command::Kind::StoreReached, .device = device};
}
inline Command timestamp(int slot) { return {.kind = Command::Kind::Timestamp, .slot = slot}; }

class TestBatch {
 public:
  /// `devices` in name order.
  TestBatch(World& world, std::vector<runtime::QueuedDevice*> devices)
      : world_(world), devices_(std::move(devices)) {
    for (runtime::QueuedDevice* device : devices_) {
      timeline_address_.push_back(
          add_address(device->timeline().memory, device->timeline().offset_bytes));
    }
  }

  /// A number for bytes of memory, for the arguments of calls.
  int add_address(runtime::MemoryRef memory, uint64_t offset_bytes = 0) {
    addresses_.push_back({std::move(memory), offset_bytes});
    return static_cast<int>(addresses_.size()) - 1;
  }
  /// The address of a program on a device. What goes wrong is in upload_status.
  int add_program(runtime::QueuedDevice& device, const ProgramImage& image) {
    const std::vector<std::byte> bytes = device.make_image(image).value();
    auto memory = device.allocate(bytes.size(), runtime::Purpose::Image);
    if (!memory) {
      upload_status = memory.error();
      return -1;
    }
    if (upload_status) upload_status = device.upload(*memory, 0, bytes);
    return add_address(*memory);
  }
  int add_exec(int program, const std::vector<int>& arguments,
               std::vector<runtime::EncodedCall::Variable> variables = {}, int64_t parts = 1) {
    runtime::EncodedCall call;
    call.program = program;
    call.parts = parts;
    call.variables = std::move(variables);
    for (const int argument : arguments) {
      call.arguments.push_back({.source = runtime::Patch::Source::Address, .index = argument});
    }
    calls_.push_back(std::move(call));
    return static_cast<int>(calls_.size()) - 1;
  }
  int add_copy(int destination, int source, uint64_t size_bytes) {
    const int tag = add_exec(-1, {destination, source});
    calls_.back().size_bytes = size_bytes;
    return tag;
  }
  /// A word of the host that queues signal.
  int add_signal() {
    signal_address_.push_back(add_word());
    return static_cast<int>(signal_address_.size()) - 1;
  }
  int add_slot() {
    slot_address_.push_back(add_word());
    return static_cast<int>(slot_address_.size()) - 1;
  }
  std::atomic<uint64_t>& signal(int number) { return word(signal_address_[at(number)], 0); }
  uint64_t time_of(int slot) { return word(slot_address_[at(slot)], 8).load(); }

  /// Streams are submitted in the order of these calls.
  void add_stream(int device, QueueId queue, std::vector<Command> commands) {
    streams_.push_back({device, queue, std::move(commands), {}});
  }

  Status link() {
    std::vector<std::atomic<uint64_t>*> signals;
    for (const int address : signal_address_) signals.push_back(&word(address, 0));
    fence = std::make_unique<exec::BatchFence>(devices_, std::move(signals));
    for (Stream& stream : streams_) {
      const runtime::QueuedDevice::Encoding encoding{calls_, signal_address_, slot_address_,
                                                     timeline_address_};
      stream.words = {};
      for (const Command& command : stream.commands) {
        IGNIS_TRY(devices_[at(stream.device)]->encode(command, encoding, stream.words));
      }
    }
    submits_.clear();
    for (Stream& stream : streams_) {
      for (const runtime::Patch& patch : stream.words.patches) {
        if (patch.source == runtime::Patch::Source::Address) {
          const Address& address = addresses_[at(patch.index)];
          IGNIS_TRY_ASSIGN(const uint64_t base, devices_[at(stream.device)]->map(address.memory));
          write(stream, patch, base + address.offset_bytes);
        } else if (patch.source == runtime::Patch::Source::Variable) {
          write(stream, patch, static_cast<uint64_t>(run_variables[at(patch.index)]));
        }
      }
      submits_.push_back({stream.device, stream.queue, stream.words.bytes});
    }
    return {};
  }

  Status run(const runtime::WaitLimits& limits = kPatient) {
    return fence->run(submits_, limits, [this](std::span<const uint64_t> before) -> Status {
      for (Stream& stream : streams_) {
        for (const runtime::Patch& patch : stream.words.patches) {
          if (patch.source == runtime::Patch::Source::Timeline) {
            write(stream, patch, before[at(patch.index)]);
          }
        }
      }
      return {};
    });
  }

  std::unique_ptr<exec::BatchFence> fence;
  std::vector<int64_t> run_variables;  ///< by number, for link()
  Status upload_status;

 private:
  struct Address {
    runtime::MemoryRef memory;
    uint64_t offset_bytes;
  };
  struct Stream {
    int device;
    QueueId queue;
    std::vector<Command> commands;
    runtime::EncodedQueue words;
  };
  static size_t at(int index) { return static_cast<size_t>(index); }
  int add_word() { return add_address(world_.host_memory(16).value()); }
  std::atomic<uint64_t>& word(int address, uint64_t offset_bytes) {
    return *reinterpret_cast<std::atomic<uint64_t>*>(addresses_[at(address)].memory->host() +
                                                     offset_bytes);
  }
  static void write(Stream& stream, const runtime::Patch& patch, uint64_t value) {
    value += static_cast<uint64_t>(patch.addend);
    std::memcpy(stream.words.bytes.data() + patch.offset_bytes, &value, patch.width_bytes);
  }

  World& world_;
  std::vector<runtime::QueuedDevice*> devices_;
  std::vector<Address> addresses_;
  std::vector<runtime::EncodedCall> calls_;
  std::vector<int> signal_address_, slot_address_, timeline_address_;
  std::vector<Stream> streams_;
  std::vector<exec::StreamSubmit> submits_;
};

/// A program that adds 1 to each of the 32-bit numbers of its buffer.
inline ProgramImage add_one(World& world, int count) {
  return world.add_function("add_one", 1, [count](const FunctionCall& call) {
    auto* numbers = reinterpret_cast<int32_t*>(call.buffers[0]);
    for (int i = 0; i < count; ++i) ++numbers[i];
  });
}

inline int32_t* numbers_of(const runtime::MemoryRef& memory) {
  return reinterpret_cast<int32_t*>(memory->host());
}

/// One kernel on one device (QS-1).
class KernelBatch : public TestBatch {
 public:
  KernelBatch(World& world, runtime::QueuedDevice& device, runtime::MemoryRef data, int count)
      : TestBatch(world, {&device}) {
    const int tag = add_exec(add_program(device, add_one(world, count)), {add_address(data)});
    add_stream(0, kCompute, {barrier(), wait_reached(0), launch(tag), store_reached(0)});
  }
};

/// One kernel on each of two peers, each of which waits for the other's before it stores.
class PairBatch : public TestBatch {
 public:
  PairBatch(World& world, runtime::QueuedDevice& first, runtime::QueuedDevice& second,
            runtime::MemoryRef first_data, runtime::MemoryRef second_data, int count)
      : TestBatch(world, {&first, &second}) {
    const ProgramImage program = add_one(world, count);
    const int data[] = {add_address(std::move(first_data)), add_address(std::move(second_data))};
    runtime::QueuedDevice* const devices[] = {&first, &second};
    const int signals[] = {add_signal(), add_signal()};
    for (int i = 0; i < 2; ++i) {
      const int tag = add_exec(add_program(*devices[i], program), {data[i]});
      add_stream(i, kCompute,
                 {barrier(), wait_reached(i), wait_reached(1 - i), launch(tag),
                  store_signal(signals[i], static_cast<uint64_t>(tag) + 1),
                  wait_signal(signals[1 - i], static_cast<uint64_t>(2 - tag)), store_reached(i)});
    }
  }
};

}  // namespace ignis::vdev::test
