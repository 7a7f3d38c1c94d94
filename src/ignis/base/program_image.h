#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace ignis {

/// A compiled CPU program: a relocatable ELF object without external references.
///
/// Entry ABI (C): `void entry(void* const* buffers, int64_t part, int64_t parts)`. Call it once for each part in
/// [0, parts); parts may run at the same time. `buffers[slot]` is the base of the kernel's PARAM `slot`.
struct ProgramImage {
  std::string name;  ///< symbol of the entry in `object`
  std::vector<std::byte> object;
  std::string source;    ///< text of the renderer (LLVM IR or C); may be empty
  int buffer_count = 0;  ///< PARAM slots 0 … buffer_count - 1
};

}  // namespace ignis
