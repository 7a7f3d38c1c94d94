#pragma once

#include "ignis/base/host_tensor.h"

#include <cstdint>
#include <string>
#include <vector>

namespace ignis::ir {

/// One digit of a mixed-radix address: (index[dim] + halo_lo[dim]) / divisor % extent. The most significant digit
/// of a dim takes what is left, so its extent bounds it instead of wrapping.
struct LayoutDigit {
  int dim = 0;
  int64_t divisor = 1;
  int64_t extent = 1;
  bool operator==(const LayoutDigit&) const = default;
};

/// Where the elements of a buffer of a logical shape lie: digits from the slowest to the fastest, and a halo of
/// zeros around each dim. Covers planar, channels-last, blocked channels and packed weight panels.
///
/// Invariant: for each dim the digits' extents, by divisor, form a mixed radix number that holds
/// shape[dim] + halo_lo + halo_hi values; what is beyond is padding (zero).
struct Layout {
  std::vector<LayoutDigit> digits;
  std::vector<int64_t> halo_lo, halo_hi;  ///< per dim; empty: none

  /// Row-major in the logical order.
  static Layout planar(const Shape& shape);
  /// Row-major in the order `perm` (perm.back() is the fastest dim), with a halo.
  static Layout permuted(const Shape& shape, const std::vector<int>& perm,
                         std::vector<int64_t> halo_lo = {}, std::vector<int64_t> halo_hi = {});
  /// Splits `dim` into blocks of `block`, the inside of a block being the fastest digit; the rest as `perm`.
  static Layout blocked(const Shape& shape, const std::vector<int>& perm, int dim, int64_t block,
                        std::vector<int64_t> halo_lo = {}, std::vector<int64_t> halo_hi = {});

  /// Elements of storage, padding included.
  int64_t storage_count() const;
  /// Stride of digit `i` in elements.
  int64_t digit_stride(size_t i) const;
  /// Element offset of a logical index. For packing and tests, not for hot loops.
  int64_t offset(const std::vector<int64_t>& index) const;
  bool has_halo() const;
  bool is_planar(const Shape& shape) const { return *this == planar(shape); }
  /// "1:1x56,0:16x4" = digits dim:divisor x extent, then halos; parses back.
  std::string to_string() const;
  bool operator==(const Layout&) const = default;
};

}  // namespace ignis::ir
