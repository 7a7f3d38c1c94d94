#pragma once

#include "ignis/base/host_tensor.h"

namespace ignis {

enum class Stat : uint8_t { Max, Mean, Median, P99, Cosine, Nmse };

/// How far a value may be from its reference: |got - want| <= atol + rtol * |want|, or `ulp` units in the last place
/// of the dtype when that is set.
struct Tolerance {
  double atol = 0, rtol = 0;
  double ulp = -1;  ///< below 0: not asked
};
/// What a float dtype is held to when nothing is said; integers and bool are exact.
Tolerance default_tolerance(DType dtype);

/// What two tensors of one dtype and shape differ by.
struct Comparison {
  int64_t count = 0, beyond = 0;  ///< elements, and how many of them are beyond the tolerance
  double max_abs = 0, max_rel = 0, max_ulp = 0;
  double mean_abs = 0;
  double cosine = 1, nmse = 0;
  double stat = 0;     ///< of |got - want| / allowed; cosine and nmse: their distance from the best
  int64_t worst = -1;  ///< index of the largest |got - want| / allowed
  double worst_got = 0, worst_want = 0;
  bool passed = true;
};

/// Compares element by element; NaN equals NaN, infinities equal themselves. With Max every element has to be within
/// the tolerance; with Mean, Median or P99 that statistic of |got - want| / allowed has to be at most 1; Cosine:
/// 1 - cosine <= rtol; Nmse: sum of squared errors / sum of squares <= rtol.
Comparison compare(const HostTensor& got, const HostTensor& want, const Tolerance& tolerance,
                   Stat stat = Stat::Max);

}  // namespace ignis
