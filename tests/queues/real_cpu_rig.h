#pragma once

// The chain with this machine's CPU as the host, in real time.

#include "ignis/drivers/cpu/queue.h"
#include "ignis/drivers/cpu/test_function.h"

#include "tests/queues/test_rig.h"

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace ignis::testing {

/// An open CPU with threads of its own, so that a hang stays in its test.
inline std::shared_ptr<runtime::Device> open_cpu(int threads = 2) {
  return runtime::open_device("cpu", {.threads = threads, .shares_threads = false}).value();
}

/// Makes a rig's programs objects that call its functions, and its host the CPU. The world must be made with it as `cpu`.
inline void use_real_cpu(Rig& rig, const std::shared_ptr<runtime::Device>& cpu) {
  rig.host = std::make_shared<TestHost>(*cpu->queue());
  rig.host->native = cpu;
  rig.make_program = [](const std::string& name, int buffer_count, TestFunction function) {
    return cpu::test::function_program(name, buffer_count,
                                       [buffer_count, function = std::move(function)](
                                           void* const* buffers, int64_t part, int64_t /*parts*/) {
                                         if (part != 0) return;
                                         std::vector<std::byte*> bytes;
                                         for (int i = 0; i < buffer_count; ++i) {
                                           bytes.push_back(static_cast<std::byte*>(buffers[i]));
                                         }
                                         function(bytes);
                                       });
  };
}

inline vdev::WorldOptions real_world(const std::shared_ptr<runtime::Device>& cpu) {
  return {.clock = &runtime::Clock::real(), .cpu = cpu};
}

}  // namespace ignis::testing
