#pragma once

#include <cstdint>

namespace ignis::cpu {

/// Makes the calling thread treat denormal floats as zero, in operands and results, while it lives; restores the
/// thread's former floating-point mode afterwards. Denormals cost some CPUs a hundred cycles an operation, and a
/// decaying recurrent state is full of them.
class FlushDenormals {
 public:
  FlushDenormals() : former_(read()) { write(former_ | kFlush); }
  FlushDenormals(const FlushDenormals&) = delete;
  FlushDenormals& operator=(const FlushDenormals&) = delete;
  ~FlushDenormals() { write(former_); }

 private:
#if defined(__x86_64__)
  // MXCSR bits FTZ (15) and DAZ (6). Source: Intel SDM volume 1, section 10.2.3.
  static constexpr uint64_t kFlush = 0x8040;
  static uint64_t read() { return __builtin_ia32_stmxcsr(); }
  static void write(uint64_t mode) { __builtin_ia32_ldmxcsr(static_cast<unsigned>(mode)); }
#elif defined(__aarch64__)
  // FPCR bit FZ (24). Source: Arm ARM, C5.2.8.
  static constexpr uint64_t kFlush = uint64_t{1} << 24;
  static uint64_t read() {
    uint64_t mode;
    __asm__ volatile("mrs %0, fpcr" : "=r"(mode));
    return mode;
  }
  static void write(uint64_t mode) { __asm__ volatile("msr fpcr, %0" : : "r"(mode)); }
#else
  static constexpr uint64_t kFlush = 0;
  static uint64_t read() { return 0; }
  static void write(uint64_t) {}
#endif

  uint64_t former_;
};

}  // namespace ignis::cpu
