#pragma once

// Programs of tests that are C++ functions: objects whose code jumps to one.

#include "ignis/base/program_image.h"
#include "ignis/drivers/cpu/loader.h"
#include "ignis/drivers/cpu/test_object.h"

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace ignis::cpu::test {

/// What a program does with its buffers in one of its parts.
using PartFunction = std::function<void(void* const* buffers, int64_t part, int64_t parts)>;

inline void call_function(void* const* buffers, int64_t part, int64_t parts,
                          const PartFunction* function) {
  (*function)(buffers, part, parts);
}

/// Whether function_program() can be run here.
inline bool has_function_programs() {
  return host_arch() == Arch::X86_64 || host_arch() == Arch::AArch64;
}

/// A program that calls `function`, which is never freed.
inline ProgramImage function_program(const std::string& name, int buffer_count,
                                     PartFunction function) {
  std::vector<uint8_t> code;
  const auto put_address = [&](uint64_t address) {
    for (int i = 0; i < 8; ++i) code.push_back(static_cast<uint8_t>(address >> (8 * i)));
  };
  static auto& functions = *new std::vector<const PartFunction*>;  // leak checkers see an owner
  functions.push_back(new PartFunction(std::move(function)));
  const auto function_address = reinterpret_cast<uint64_t>(functions.back());
  const auto call_address = reinterpret_cast<uint64_t>(&call_function);
#if defined(__aarch64__)
  ObjectWriter object(EM_AARCH64);
  code = {0x83, 0x00, 0x00, 0x58,   // ldr x3, 16: the function is the fourth argument
          0xa4, 0x00, 0x00, 0x58,   // ldr x4, 24
          0x80, 0x00, 0x1f, 0xd6,   // br x4
          0x1f, 0x20, 0x03, 0xd5};  // nop
  put_address(function_address);    // 16
  put_address(call_address);        // 24
#else
  ObjectWriter object;
  code.insert(code.end(), {0x48, 0xb9});  // mov rcx, function: the fourth argument
  put_address(function_address);
  code.insert(code.end(), {0x48, 0xb8});  // mov rax, call_function
  put_address(call_address);
  code.insert(code.end(), {0xff, 0xe0});  // jmp rax
#endif
  const uint16_t text = object.text(code);
  object.symbol(name, text, 0);
  ProgramImage image;
  image.name = name;
  image.object = object.write();
  image.buffer_count = buffer_count;
  return image;
}

}  // namespace ignis::cpu::test
