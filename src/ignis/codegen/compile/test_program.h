#pragma once

#include "ignis/base/program_image.h"
#include "ignis/codegen/codegen.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace ignis::codegen::testing {

/// Builds a program node by node, as the emitter would: each maker appends to the list, unless an
/// equal node is visible.
class ProgramBuilder {
 public:
  explicit ProgramBuilder(std::string name);

  ir::Node add(ir::Op op, DType dtype, std::vector<ir::Node> sources, ir::Arg arg = {},
               int lanes = 1);
  /// Elementwise node, its dtype from the operands as in Graph::alu.
  ir::Node alu(ir::Op op, std::vector<ir::Node> sources);
  ir::Node constant(DType dtype, int64_t value);
  ir::Node constant_float(DType dtype, double value);
  /// `lanes` equal copies of a scalar; the scalar itself for one lane.
  ir::Node broadcast(const ir::Node& scalar, int lanes);
  ir::Node param(int64_t slot, DType dtype);
  ir::Node special(const std::string& name);
  ir::Node range(const ir::Node& end);
  void end(const ir::Node& range);
  ir::Node reg(DType dtype, int lanes);
  ir::Node load_reg(const ir::Node& reg);
  ir::Node index(const ir::Node& param, const ir::Node& offset);
  ir::Node index(const ir::Node& param, int64_t offset) {
    return index(param, constant(DType::Int64, offset));
  }
  ir::Node load(const ir::Node& index, int lanes = 1);
  ir::Node load(const ir::Node& index, const ir::Node& alternative, const ir::Node& gate);
  void store(const ir::Node& target, const ir::Node& value);
  void store(const ir::Node& target, const ir::Node& value, const ir::Node& gate);

  ir::Graph& graph() { return *program_.graph; }
  Program& program() { return program_; }

 private:
  ir::Node append(const ir::Node& node);

  Program program_;
  std::vector<std::vector<ir::Node>> scopes_{1};  // what is visible, by open loop
  int64_t next_id_ = 0;
};

struct TileShape {
  int64_t rows, columns, depth;
  int unroll;  // steps of the sum in the loop's body; divides depth
  int lanes;   // divides columns
};
/// C[rows,columns] = A[rows,depth] * B[depth,columns], buffers 0 to 2, as the emitter writes a register tile: one loop
/// over the depth, one register for each vector of the tile.
Program tile_program(const TileShape& shape);

/// A program image linked into a shared library by the system's linker and opened. For tests only.
class LoadedImage {
 public:
  static Result<LoadedImage> load(const ProgramImage& image);
  void run(std::vector<void*> buffers, int64_t part = 0, int64_t parts = 1) const {
    entry_(buffers.data(), part, parts);
  }

 private:
  using Entry = void (*)(void* const*, int64_t, int64_t);
  explicit LoadedImage(std::shared_ptr<void> library, Entry entry)
      : library_(std::move(library)), entry_(entry) {}
  std::shared_ptr<void> library_;
  Entry entry_;
};

/// Widest instruction set this machine runs, for tests that execute what they compile.
bool machine_has(Isa isa);

}  // namespace ignis::codegen::testing
