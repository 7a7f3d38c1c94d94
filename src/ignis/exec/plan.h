#pragma once

#include "ignis/base/host_tensor.h"
#include "ignis/base/program_image.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace ignis::exec {

struct Captured;

enum class BufferRole : uint8_t {
  Input,     ///< bound by the caller at each run
  Output,    ///< bound by the caller at each run
  Constant,  ///< weights: read-only, lives as long as the plan
  Arena,     ///< temporary at arena_offset of the context's arena
};

/// One buffer of a plan: where it lies and how many bytes it takes.
struct BufferPlan {
  BufferRole role = BufferRole::Arena;
  int64_t size_bytes = 0;
  int64_t arena_offset = 0;  ///< Arena only; 64-byte aligned
  bool reads_zeros =
      false;  ///< Arena only: has a halo or padding, which calls read and none writes
  const std::byte* constant = nullptr;  ///< Constant only; valid while `owner` lives
  std::shared_ptr<const void> owner;
  std::string name;
};

/// One launch: program `program` on `buffers` (index = the program's Param slot), cut into at most `max_parts` parts.
struct Call {
  int program = 0;
  std::vector<int> buffers;
  int max_parts = 1;         ///< 1: runs on the calling thread
  std::string name;          ///< kernel name
  std::string layer;         ///< the model's layer or layers it computes; may be empty
  double flops = 0;          ///< estimate for one launch
  double bytes = 0;          ///< compulsory traffic, estimate
  std::vector<int> written;  ///< slots that the program stores to; none: not known
};

/// A named tensor at the edge of the model. `buffer` indexes Plan::buffers.
struct Port {
  std::string name;
  DType dtype = DType::Float32;
  Shape shape;
  int buffer = 0;
};

/// A compiled model: plain data, nothing bound to a device. Arena memory starts as zeros and halos rely on it: a
/// buffer with a halo has its arena range for itself and for buffers of the same layout.
struct Plan {
  std::vector<BufferPlan> buffers;
  std::vector<ProgramImage> programs;
  std::vector<Call> calls;  ///< in execution order
  std::vector<Port> inputs, outputs;
  int64_t arena_bytes = 0;
  /// How the queue chain runs it (captured.h): what Model::create() links. Null: it was not captured yet.
  std::shared_ptr<const Captured> captured;
};

}  // namespace ignis::exec
