#pragma once

#include "ignis/base/target.h"

#include "tools/ignis/common.h"

#include <cstdint>
#include <string>
#include <vector>

namespace ignis::tools {

/// What a machine does at most, measured.
struct Roofline {
  struct Level {
    std::string name;        ///< "L2", "L3", "memory"
    int64_t size_bytes = 0;  ///< of all threads together; the last level holds everything
    double bytes_per_s = 0;  ///< reading, all threads
  };
  int threads = 1;
  double flops_per_s = 0;     ///< float32 multiply-adds count as two, all threads
  std::vector<Level> levels;  ///< the smallest first, at least one
};

/// Measures for a fraction of a second with as many threads as `target` has, on up to 256 MiB. The machine should have
/// nothing else to do.
Roofline measure_roofline(const Target& target);
void print_roofline(const Roofline& roofline);
Json to_json(const Roofline& roofline);

/// The least time that work can take, and what bounds it: "fma" or the name of the level that holds `bytes`.
struct LeastTime {
  double seconds = 0;
  std::string bound;
};
/// `bytes`: of everything that is read and written, each once.
LeastTime least_time(const Roofline& roofline, double flops, double bytes);

}  // namespace ignis::tools
