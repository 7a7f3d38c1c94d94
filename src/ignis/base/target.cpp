#include "ignis/base/target.h"

#include <charconv>
#include <fstream>
#include <optional>

namespace ignis {
namespace {

const char* arch_name(Arch arch) { return arch == Arch::X86_64 ? "x86_64" : "aarch64"; }

bool host_has(Isa isa) {
#if defined(__x86_64__)
  // The compiler's run-time check reads CPUID and also XCR0: registers that the kernel does not save do not count.
  switch (isa) {
    case Isa::Sse2: return true;
    case Isa::Avx2:
      return __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0;
    case Isa::Avx512:
      return host_has(Isa::Avx2) && __builtin_cpu_supports("avx512f") != 0 &&
             __builtin_cpu_supports("avx512bw") != 0 && __builtin_cpu_supports("avx512dq") != 0 &&
             __builtin_cpu_supports("avx512vl") != 0;
    case Isa::Neon: return false;
  }
  return false;
#elif defined(__aarch64__)
  return isa == Isa::Neon;  // part of the base architecture
#else
#error "Ignis runs on x86-64 and AArch64."
#endif
}

/// First word of a small file, or "".
std::string read_word(const std::string& path) {
  std::ifstream file(path);
  std::string word;
  file >> word;
  return word;
}

/// "48K", "1024K", "32M" in bytes; nothing for anything else.
std::optional<int64_t> parse_cache_size(std::string_view text) {
  int64_t value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc() || value <= 0 || value > (int64_t{1} << 30)) return std::nullopt;
  const std::string_view unit = text.substr(static_cast<size_t>(end - text.data()));
  if (unit.empty()) return value;
  if (unit == "K") return value * 1024;
  if (unit == "M") return value * 1024 * 1024;
  return std::nullopt;
}

}  // namespace

std::string_view to_string(Isa isa) {
  switch (isa) {
    case Isa::Sse2: return "sse2";
    case Isa::Avx2: return "avx2";
    case Isa::Avx512: return "avx512";
    case Isa::Neon: return "neon";
  }
  return "unknown";
}

std::string_view to_string(FloatLevel level) {
  switch (level) {
    case FloatLevel::Strict: return "strict";
    case FloatLevel::Finite: return "finite";
    case FloatLevel::Fast: return "fast";
  }
  return "unknown";
}

std::string_view to_string(Choice choice) {
  switch (choice) {
    case Choice::Auto: return "auto";
    case Choice::Off: return "off";
    case Choice::On: return "on";
  }
  return "unknown";
}

Result<FloatLevel> parse_float_level(std::string_view text) {
  for (const FloatLevel level : {FloatLevel::Strict, FloatLevel::Finite, FloatLevel::Fast}) {
    if (to_string(level) == text) return level;
  }
  return Error(ErrorCode::InvalidArgument,
               "A float level is strict, finite or fast, not '" + std::string(text) + "'.");
}

Result<Choice> parse_choice(std::string_view text) {
  for (const Choice choice : {Choice::Auto, Choice::Off, Choice::On}) {
    if (to_string(choice) == text) return choice;
  }
  return Error(ErrorCode::InvalidArgument,
               "A choice is auto, off or on, not '" + std::string(text) + "'.");
}

Result<Isa> parse_isa(std::string_view text) {
  for (const Isa isa : {Isa::Sse2, Isa::Avx2, Isa::Avx512, Isa::Neon}) {
    if (to_string(isa) == text) return isa;
  }
  return Error(
      ErrorCode::InvalidArgument,
      "'" + std::string(text) + "' is no instruction set; there are sse2, avx2, avx512 and neon.");
}

Result<Isa> parse_features(std::string_view text) {
  constexpr Isa kSets[] = {Isa::Sse2, Isa::Avx2, Isa::Avx512, Isa::Neon};
  std::string known;
  for (const Isa isa : kSets) {
    const std::string name = make_target(isa).name();
    if (to_string(isa) == text || name == text) return isa;
    known += (known.empty() ? "" : isa == Isa::Neon ? " and " : ", ") + name;
  }
  return Error(ErrorCode::InvalidArgument,
               "'" + std::string(text) + "' is no instruction set of a CPU; there are " + known +
                   ", with or without the architecture.",
               "UnknownFeature");
}

std::string Target::name() const {
  return std::string(arch_name(arch)) + "-" + std::string(to_string(isa));
}

Target make_target(Isa isa) {
  Target t;
  t.isa = isa;
  switch (isa) {
    case Isa::Sse2: break;
    case Isa::Avx2:
      t.vector_bytes = 32;
      t.has_fma = true;
      break;
    case Isa::Avx512:
      t.vector_bytes = 64;
      t.vector_registers = 32;
      t.has_fma = true;
      break;
    case Isa::Neon:
      t.arch = Arch::AArch64;
      t.vector_registers = 32;
      t.has_fma = true;
      break;
  }
  return t;
}

namespace detail {

void read_cache_sizes(const std::string& folder, Target& target) {
  for (int index = 0; index < 8; ++index) {
    const std::string entry = folder + "/index" + std::to_string(index) + "/";
    const std::string level = read_word(entry + "level");
    if (level.empty()) break;
    if (read_word(entry + "type") == "Instruction") continue;
    const std::optional<int64_t> size_bytes = parse_cache_size(read_word(entry + "size"));
    if (!size_bytes) continue;
    if (level == "1") target.l1_bytes = *size_bytes;
    if (level == "2") target.l2_bytes = *size_bytes;
    if (level == "3") target.l3_bytes = *size_bytes;
  }
}

}  // namespace detail

Result<Target> detect_host_target(Isa at_most) {
  const Arch host = make_target(host_has(Isa::Neon) ? Isa::Neon : Isa::Sse2).arch;
  if (make_target(at_most).arch != host) {
    return Error(ErrorCode::Unsupported, "Instruction set '" + std::string(to_string(at_most)) +
                                             "' does not exist on this machine, which is " +
                                             arch_name(host) + ".");
  }
  Isa isa = at_most;
  // Each x86-64 set includes the one before it in the enum; Neon stands alone.
  while (!host_has(isa) && isa != Isa::Sse2) isa = static_cast<Isa>(static_cast<int>(isa) - 1);
  Target target = make_target(isa);
  detail::read_cache_sizes("/sys/devices/system/cpu/cpu0/cache", target);
  return target;
}

Target detect_host_target() {
  // Read once: it costs a dozen files.
  static const Target host =
      detect_host_target(host_has(Isa::Neon) ? Isa::Neon : Isa::Avx512).value();
  return host;
}

}  // namespace ignis
