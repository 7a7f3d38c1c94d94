#pragma once

#include "ignis/base/dtype.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ignis {

enum class Arch : uint8_t { X86_64, AArch64 };
/// Vector instruction sets, each including the former of its architecture.
enum class Isa : uint8_t { Sse2, Avx2, Avx512, Neon };

/// Accuracy contract of float rewrites; see docs/ir.md.
enum class FloatLevel : uint8_t { Strict, Finite, Fast };

/// How a rewrite that costs nothing in meaning is used: where its cost model says so, never, or wherever it is legal.
enum class Choice : uint8_t { Auto, Off, On };

/// "strict", "finite", "fast"; "auto", "off", "on".
std::string_view to_string(FloatLevel level);
std::string_view to_string(Choice choice);
/// The same read. Errors: InvalidArgument.
Result<FloatLevel> parse_float_level(std::string_view text);
Result<Choice> parse_choice(std::string_view text);

/// A device's limits as plain data: everything about it that code generation may depend on.
struct Target {
  Arch arch = Arch::X86_64;
  Isa isa = Isa::Sse2;
  std::string renderer = "llvm";  ///< "llvm", "c" or "interp"
  int vector_bytes = 16;          ///< width of one vector register
  int vector_registers = 16;
  bool has_fma = false;
  int64_t l1_bytes = 32 * 1024;
  int64_t l2_bytes = 512 * 1024;
  int64_t l3_bytes = 8 * 1024 * 1024;
  int threads = 1;

  int lanes(DType d) const { return vector_bytes / size_bytes(d); }
  /// "x86_64-avx2"; part of every cache key.
  std::string name() const;
  /// Whether a machine described by this can run code for `other`: the same architecture, and an instruction set that
  /// includes the other one.
  bool can_run(const Target& other) const { return arch == other.arch && isa >= other.isa; }
  bool operator==(const Target&) const = default;
};

/// "sse2", "avx2", "avx512", "neon".
std::string_view to_string(Isa isa);
/// Reads an instruction set's name. Errors: InvalidArgument.
Result<Isa> parse_isa(std::string_view text);
/// The features of a device SPEC: an instruction set, with or without its architecture ("neon", "aarch64-neon").
/// Errors: InvalidArgument with the reason UnknownFeature for anything else, also for a set of another architecture.
Result<Isa> parse_features(std::string_view text);

/// A target for an instruction set, with typical cache sizes; what tests and cross compiles use.
Target make_target(Isa isa);

/// This machine: the highest instruction set that the processor has and the kernel saves, but none above `at_most`,
/// and the cache sizes of CPU 0. `threads` stays 1: how many may be used depends on the affinity mask and quota of
/// the process, which the CPU device reads.
/// Errors: Unsupported when `at_most` belongs to another architecture.
Result<Target> detect_host_target(Isa at_most);
/// This machine without a bound.
Target detect_host_target();

namespace detail {
/// Bytes of one CPU's caches below a folder laid out as /sys/devices/system/cpu/cpu0/cache; sizes that cannot be
/// read keep the value they have in `target`.
void read_cache_sizes(const std::string& folder, Target& target);
}  // namespace detail

}  // namespace ignis
