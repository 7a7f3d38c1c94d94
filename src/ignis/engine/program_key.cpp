#include "ignis/engine/program_key.h"

#include "ignis/base/byte_io.h"

#include <unordered_map>

namespace ignis::engine {
namespace {

// The bindings name every field: one that is added to Target or Config does not compile here until it is part of the
// key. The test changes each field and sees another key.
std::string target_text(const Target& target) {
  const auto& [arch, isa, renderer, vector_bytes, vector_registers, has_fma, l1_bytes, l2_bytes,
               l3_bytes, threads] = target;
  std::string text = "arch=";
  text += arch == Arch::X86_64 ? "x86_64" : "aarch64";
  text += " isa=" + std::string(to_string(isa)) + " renderer=" + renderer;
  text += " vector_bytes=" + std::to_string(vector_bytes);
  text += " vector_registers=" + std::to_string(vector_registers);
  text += " fma=" + std::to_string(has_fma);
  text += " l1=" + std::to_string(l1_bytes) + " l2=" + std::to_string(l2_bytes);
  text += " l3=" + std::to_string(l3_bytes) + " threads=" + std::to_string(threads);
  return text;
}

}  // namespace

Result<CodeIdentity> code_identity(const codegen::Config& config) {
  const auto& [target, float_level, optimize, actions] = config;
  CodeIdentity code;
  code.target = target_text(target);
  code.options = "float=" + std::string(to_string(float_level)) +
                 " optimize=" + std::to_string(optimize) + " actions=";
  // With their lengths: a list is not the same as one longer word.
  for (const std::string& action : actions)
    code.options += std::to_string(action.size()) + ":" + action + ";";
  code.generator = generator_id();
  IGNIS_TRY_ASSIGN(code.compiler, codegen::compiler_id(target));
  return code;
}

Digest kernel_digest(const ir::Node& sink) {
  ByteWriter to;
  std::unordered_map<uint32_t, uint32_t> position;
  for (const ir::Node& node : ir::toposort(sink)) {
    to.put(static_cast<uint32_t>(node.op()));
    to.put(static_cast<uint32_t>(node.dtype()));
    to.put(static_cast<uint32_t>(node.lanes()));
    to.put(static_cast<uint32_t>(node.source_count()));
    for (int i = 0; i < node.source_count(); ++i) to.put(position.at(node.src(i).id()));
    to.put(static_cast<uint32_t>(node.arg().ints.size()));
    for (const int64_t value : node.arg().ints) to.put(value);
    to.put_text(node.arg().text);
    position.emplace(node.id(), static_cast<uint32_t>(position.size()));
  }
  return digest_of(to.bytes());
}

ProgramKey make_program_key(const Digest& kernel, CodeIdentity code) {
  const auto& [target, options, generator, compiler] = code;
  ByteWriter to;
  to.put(kProgramFormat);
  to.put_raw(kernel);
  for (const std::string* part : {&target, &options, &generator, &compiler}) to.put_text(*part);
  return {digest_of(to.bytes()), kernel, std::move(code)};
}

std::string program_symbol(const Digest& kernel) { return "k" + to_hex(kernel).substr(0, 16); }

}  // namespace ignis::engine
