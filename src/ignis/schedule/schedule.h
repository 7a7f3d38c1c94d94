#pragma once

#include "ignis/base/notes.h"
#include "ignis/base/target.h"
#include "ignis/ir/graph.h"

#include <memory>
#include <string>
#include <vector>

namespace ignis::schedule {

enum class BufferRole : uint8_t { Input, Output, Constant, Temporary };

/// A buffer the schedule made or took over. Its physical form is `layout`; only Temporary and packed Constant buffers
/// have any other than planar.
struct Buffer {
  BufferRole role = BufferRole::Temporary;
  DType dtype = DType::Float32;
  Shape shape;  ///< logical
  ir::Layout layout;
  std::string name;
  int input = -1;  ///< Input: index of the graph input. Output: index of the graph output
  ir::BufferData
      data;  ///< Constant straight from the model; null bytes: filled at load by a Pack or an at_load kernel
  int64_t arena_offset = -1;  ///< Temporary: set by the memory plan
  int64_t held_bytes = -1;    ///< Temporary within a chain: of the rows that have memory
  int64_t size_bytes() const {
    return held_bytes >= 0 ? held_bytes : layout.storage_count() * ignis::size_bytes(dtype);
  }
};

/// One kernel: SINK(STORE(INDEX(param…), value)…) over Param slots; buffers[slot] is an index of Schedule::buffers.
/// Several stores are a chain (ir/row_chain.h): each reads what the one before wrote; slot 0 is the last one's.
struct Kernel {
  ir::Node sink;
  std::vector<int> buffers;
  std::vector<int> written;      ///< slots that are stored
  std::vector<ir::Node> layers;  ///< nodes of the tensor graph that end in this kernel, for names
  bool at_load = false;          ///< depends on constants only: run once when the model is loaded
  Notes why;                     ///< what was compared on its way here
};

/// Re-lays a constant once at load: for every value of the `extents` loops, element at the dot product of the values
/// with `source_strides` (plus source_base, in elements) goes to dest.layout.offset(values). The rest is zero.
struct Pack {
  int source = 0, dest = 0;  ///< buffers; dest.shape == extents
  std::vector<int64_t> extents, source_strides;
  int64_t source_base = 0;
};

struct Schedule {
  std::shared_ptr<ir::Graph> graph;  ///< owns the kernels' nodes
  std::vector<Buffer> buffers;
  std::vector<Pack> packs;           ///< before the kernels
  std::vector<Kernel> kernels;       ///< in execution order
  std::vector<int> inputs, outputs;  ///< buffers of the graph's inputs and outputs
  int64_t arena_bytes = 0;
};

struct Options {
  FloatLevel float_level = FloatLevel::Finite;
  bool choose_layouts = true;  ///< off: everything planar
  /// The terms of products of few columns in lanes, one sum for each element; needs a float level other than strict.
  Choice sums_in_lanes = Choice::Auto;
  Choice planar_windows = Choice::Auto;  ///< windows over the planes of an input stay row-major
  bool fuse = true;             ///< off: every elementwise and reduce node is a kernel of its own
  Choice chain = Choice::Auto;  ///< kernels that run one after the other by bands of rows
  bool split_reduces = true;    ///< off: a reduction is one kernel, however many threads there are
  /// Winograd's products for dense 3 x 3 windows; needs layouts and a float level other than strict.
  Choice winograd = Choice::Auto;
};

/// Splits the tensor graph below `outputs` into kernels, chooses layouts and plans memory. `inputs` are the Param
/// nodes of the graph's inputs, in order.
/// Errors: Unsupported when a node cannot be scheduled (named), OutOfMemory when a buffer exceeds 2^47 bytes.
Result<Schedule> make_schedule(const std::vector<ir::Node>& inputs,
                               const std::vector<ir::Node>& outputs, const Target& target,
                               const Options& options = {});

}  // namespace ignis::schedule
