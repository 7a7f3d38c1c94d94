#include "ignis/ir/layout.h"

#include <algorithm>

namespace ignis::ir {
namespace {

int64_t padded_extent(const Shape& shape, const Layout& layout, int dim) {
  const auto d = static_cast<size_t>(dim);
  return shape[d] + (layout.halo_lo.empty() ? 0 : layout.halo_lo[d]) +
         (layout.halo_hi.empty() ? 0 : layout.halo_hi[d]);
}

}  // namespace

Layout Layout::planar(const Shape& shape) {
  std::vector<int> perm(shape.size());
  for (size_t i = 0; i < perm.size(); ++i) perm[i] = static_cast<int>(i);
  return permuted(shape, perm);
}

Layout Layout::permuted(const Shape& shape, const std::vector<int>& perm,
                        std::vector<int64_t> halo_lo, std::vector<int64_t> halo_hi) {
  IGNIS_CHECK(perm.size() == shape.size());
  Layout layout;
  const auto all_zero = [](const std::vector<int64_t>& v) {
    return std::all_of(v.begin(), v.end(), [](int64_t h) { return h == 0; });
  };
  if (!all_zero(halo_lo) || !all_zero(halo_hi)) {
    layout.halo_lo = std::move(halo_lo);
    layout.halo_hi = std::move(halo_hi);
    layout.halo_lo.resize(shape.size());
    layout.halo_hi.resize(shape.size());
  }
  for (const int dim : perm) layout.digits.push_back({dim, 1, padded_extent(shape, layout, dim)});
  return layout;
}

Layout Layout::blocked(const Shape& shape, const std::vector<int>& perm, int dim, int64_t block,
                       std::vector<int64_t> halo_lo, std::vector<int64_t> halo_hi) {
  Layout layout = permuted(shape, perm, std::move(halo_lo), std::move(halo_hi));
  for (LayoutDigit& digit : layout.digits) {
    if (digit.dim != dim) continue;
    digit.extent = (digit.extent + block - 1) / block;
    digit.divisor = block;
  }
  layout.digits.push_back({dim, 1, block});
  return layout;
}

int64_t Layout::storage_count() const {
  int64_t count = 1;
  for (const LayoutDigit& digit : digits) count *= digit.extent;
  return count;
}

int64_t Layout::digit_stride(size_t i) const {
  int64_t stride = 1;
  for (size_t j = i + 1; j < digits.size(); ++j) stride *= digits[j].extent;
  return stride;
}

int64_t Layout::offset(const std::vector<int64_t>& index) const {
  int64_t at = 0;
  for (const LayoutDigit& digit : digits) {
    const auto d = static_cast<size_t>(digit.dim);
    const int64_t i = index[d] + (halo_lo.empty() ? 0 : halo_lo[d]);
    at = at * digit.extent + i / digit.divisor % digit.extent;
  }
  return at;
}

bool Layout::has_halo() const { return !halo_lo.empty(); }

std::string Layout::to_string() const {
  std::string text;
  for (const LayoutDigit& digit : digits) {
    if (!text.empty()) text += ",";
    text += std::to_string(digit.dim) + ":" + std::to_string(digit.divisor) + "x" +
            std::to_string(digit.extent);
  }
  for (size_t d = 0; d < halo_lo.size(); ++d) {
    if (halo_lo[d] == 0 && halo_hi[d] == 0) continue;
    text += ";" + std::to_string(d) + "+" + std::to_string(halo_lo[d]) + "+" +
            std::to_string(halo_hi[d]);
  }
  return text;
}

}  // namespace ignis::ir
