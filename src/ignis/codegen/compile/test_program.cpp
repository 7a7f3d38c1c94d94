#include "ignis/codegen/compile/test_program.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <utility>

namespace ignis::codegen::testing {

using ir::Node;
using ir::Op;

ProgramBuilder::ProgramBuilder(std::string name) {
  program_.name = std::move(name);
  program_.graph = std::make_shared<ir::Graph>();
}

Node ProgramBuilder::append(const Node& node) {
  for (const std::vector<Node>& scope : scopes_) {
    if (!node.is(Op::Store) && std::find(scope.begin(), scope.end(), node) != scope.end())
      return node;
  }
  if (node.is(Op::Range)) scopes_.emplace_back();
  if (node.is(Op::End)) scopes_.pop_back();
  scopes_.back().push_back(node);
  program_.list.push_back(node);
  return node;
}

Node ProgramBuilder::add(Op op, DType dtype, std::vector<Node> sources, ir::Arg arg, int lanes) {
  return append(graph().make(op, dtype, sources, std::move(arg), lanes));
}
Node ProgramBuilder::alu(Op op, std::vector<Node> sources) {
  DType dtype = sources[0].dtype();
  if (ir::is_comparison(op)) dtype = DType::Bool;
  if (op == Op::Where) dtype = sources[1].dtype();
  const int lanes = sources[0].lanes();
  return add(op, dtype, std::move(sources), {}, lanes);
}
Node ProgramBuilder::constant(DType dtype, int64_t value) {
  return append(graph().constant(dtype, value));
}
Node ProgramBuilder::constant_float(DType dtype, double value) {
  return append(graph().constant_float(dtype, value));
}
Node ProgramBuilder::broadcast(const Node& scalar, int lanes) {
  return lanes == 1 ? scalar : add(Op::Broadcast, scalar.dtype(), {scalar}, {}, lanes);
}
Node ProgramBuilder::param(int64_t slot, DType dtype) {
  program_.buffer_count = std::max(program_.buffer_count, static_cast<int>(slot) + 1);
  ir::ParamArg arg;
  arg.slot = slot;
  return append(graph().param(dtype, arg));
}
Node ProgramBuilder::special(const std::string& name) {
  return add(Op::Special, DType::Int64, {}, ir::Arg{{}, name});
}
Node ProgramBuilder::range(const Node& end) {
  return add(Op::Range, DType::Int64, {end},
             ir::Arg{{next_id_++, static_cast<int64_t>(ir::AxisKind::Loop)}, {}});
}
void ProgramBuilder::end(const Node& range) { add(Op::End, DType::Void, {range}); }
Node ProgramBuilder::reg(DType dtype, int lanes) {
  return add(Op::Reg, dtype, {}, ir::Arg{{next_id_++}, {}}, lanes);
}
Node ProgramBuilder::load_reg(const Node& reg) {
  return add(Op::Load, reg.dtype(), {reg}, ir::Arg{{next_id_++}, {}}, reg.lanes());
}
Node ProgramBuilder::index(const Node& param, const Node& offset) {
  return add(Op::Index, param.dtype(), {param, offset});
}
Node ProgramBuilder::load(const Node& index, int lanes) {
  return add(Op::Load, index.dtype(), {index}, ir::Arg{{next_id_++}, {}}, lanes);
}
Node ProgramBuilder::load(const Node& index, const Node& alternative, const Node& gate) {
  return add(Op::Load, index.dtype(), {index, alternative, gate}, ir::Arg{{next_id_++}, {}},
             alternative.lanes());
}
void ProgramBuilder::store(const Node& target, const Node& value) {
  add(Op::Store, DType::Void, {target, value});
}
void ProgramBuilder::store(const Node& target, const Node& value, const Node& gate) {
  add(Op::Store, DType::Void, {target, value, gate});
}

Program tile_program(const TileShape& shape) {
  const auto [rows, columns, depth, unroll, lanes] = shape;
  ProgramBuilder b("tile_" + std::to_string(rows) + "x" + std::to_string(columns));
  const Node c = b.param(0, DType::Float32), left = b.param(1, DType::Float32),
             right = b.param(2, DType::Float32);
  const int64_t vectors = columns / lanes;
  const Node zero = b.broadcast(b.constant_float(DType::Float32, 0), lanes);
  std::vector<Node> tile;
  for (int64_t i = 0; i < rows * vectors; ++i) {
    tile.push_back(b.reg(DType::Float32, lanes));
    b.store(tile.back(), zero);
  }
  const auto plus = [&](const Node& x, int64_t y) {
    return b.alu(Op::Add, {x, b.constant(DType::Int64, y)});
  };
  const auto times = [&](const Node& x, int64_t y) {
    return b.alu(Op::Mul, {x, b.constant(DType::Int64, y)});
  };
  const Node k = b.range(b.constant(DType::Int64, depth / unroll));
  for (int u = 0; u < unroll; ++u) {
    const Node step = plus(times(k, unroll), u);
    std::vector<Node> row;
    for (int64_t v = 0; v < vectors; ++v) {
      row.push_back(b.load(b.index(right, plus(times(step, columns), v * lanes)), lanes));
    }
    for (int64_t r = 0; r < rows; ++r) {
      const Node x = b.broadcast(b.load(b.index(left, plus(step, r * depth))), lanes);
      for (int64_t v = 0; v < vectors; ++v) {
        const Node& reg = tile[static_cast<size_t>(r * vectors + v)];
        b.store(reg, b.alu(Op::Mulacc, {x, row[static_cast<size_t>(v)], b.load_reg(reg)}));
      }
    }
  }
  b.end(k);
  for (int64_t i = 0; i < rows * vectors; ++i) {
    b.store(b.index(c, i * lanes), b.load_reg(tile[static_cast<size_t>(i)]));
  }
  return b.program();
}

Result<LoadedImage> LoadedImage::load(const ProgramImage& image) {
  namespace fs = std::filesystem;
  std::string pattern = (fs::temp_directory_path() / "ignis-test-XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr)
    return Error(ErrorCode::Internal, "no temporary directory");
  const fs::path folder = pattern;
  std::ofstream(folder / "k.o", std::ios::binary)
      .write(reinterpret_cast<const char*>(image.object.data()),
             static_cast<std::streamsize>(image.object.size()));
  // -z defs: a reference to any outside symbol is an error here too.
  const std::string command = "ld -shared -z defs -z noexecstack -o " + (folder / "k.so").string() +
                              " " + (folder / "k.o").string() + " 2>&1";
  const int code = std::system(command.c_str());
  void* library = code == 0 ? dlopen((folder / "k.so").c_str(), RTLD_NOW | RTLD_LOCAL) : nullptr;
  fs::remove_all(folder);
  if (library == nullptr) return Error(ErrorCode::Internal, "The test's linker or loader fails.");
  auto* const entry = reinterpret_cast<Entry>(dlsym(library, image.name.c_str()));
  if (entry == nullptr) return Error(ErrorCode::Internal, "no symbol " + image.name);
  return LoadedImage(std::shared_ptr<void>(library, dlclose), entry);
}

bool machine_has(Isa isa) {
#if defined(__x86_64__)
  switch (isa) {
    case Isa::Sse2: return true;
    case Isa::Avx2: return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    case Isa::Avx512:
      return __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
    case Isa::Neon: return false;
  }
  return false;
#else
  return isa == Isa::Neon;
#endif
}

}  // namespace ignis::codegen::testing
