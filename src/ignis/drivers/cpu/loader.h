#pragma once

#include "ignis/base/result.h"
#include "ignis/base/target.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>

namespace ignis::cpu {

/// The C entry of a compiled program; see ProgramImage.
using Entry = void (*)(void* const* buffers, int64_t part, int64_t parts);

/// The architecture this process runs on.
Arch host_arch();

/// Code and constants of one relocatable object, mapped and relocated. Never writable and executable at once.
/// Move-only; unmaps in its destructor.
class LoadedObject {
 public:
  /// Maps `object`, which may hold anything, and finds the function `entry`. Code of another architecture than the
  /// host's is mapped and relocated as well, for inspection, but not made executable.
  /// Errors: InvalidArgument for a malformed object or one without `entry`, Unsupported for a relocation, section
  /// or machine the loader does not handle and for undefined symbols (all of them named), OutOfMemory.
  static Result<LoadedObject> load(std::span<const std::byte> object, std::string_view entry);

  LoadedObject(LoadedObject&& other) noexcept
      : base_(std::exchange(other.base_, nullptr)),
        text_bytes_(other.text_bytes_),
        total_bytes_(other.total_bytes_),
        entry_(other.entry_),
        arch_(other.arch_) {}
  LoadedObject& operator=(LoadedObject other) noexcept;
  ~LoadedObject();

  Arch arch() const { return arch_; }
  bool is_executable() const { return arch_ == host_arch(); }
  /// The entry; a check fails when the object is not executable here.
  Entry entry() const;
  /// Code (rounded up to pages), then constants, as relocated.
  std::span<const std::byte> image() const { return {base_, total_bytes_}; }
  uint64_t text_bytes() const { return text_bytes_; }
  uint64_t entry_offset() const { return entry_; }

 private:
  LoadedObject() = default;

  std::byte* base_ = nullptr;
  uint64_t text_bytes_ = 0;   // whole pages, from base_
  uint64_t total_bytes_ = 0;  // whole pages
  uint64_t entry_ = 0;        // from base_
  Arch arch_ = Arch::X86_64;
};

}  // namespace ignis::cpu
