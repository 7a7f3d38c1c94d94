#pragma once

#include "ignis/tensor/core.h"

/// Reductions. `axes` empty means all axes; negative axes count from the end; `keep` leaves extents of 1.
/// A reduction over no elements gives the operation's identity (0, 1, the lowest or the highest value).
namespace ignis::tensor {

using Axes = std::vector<int64_t>;

/// Integers: at least int32/uint32, and so is the result. Floats narrower than float32 accumulate in float32 and
/// return to their own dtype.
Tensor sum(const Tensor& x, const Axes& axes = {}, bool keep = false);
Tensor prod(const Tensor& x, const Axes& axes = {}, bool keep = false);
/// Own dtype; NaN wins.
Tensor max(const Tensor& x, const Axes& axes = {}, bool keep = false);
Tensor min(const Tensor& x, const Axes& axes = {}, bool keep = false);
/// Floats: own dtype; integers and bool: float32.
Tensor mean(const Tensor& x, const Axes& axes = {}, bool keep = false);
/// Mean squared deviation from the mean, divided by (count - correction).
Tensor var(const Tensor& x, const Axes& axes = {}, bool keep = false, int64_t correction = 0);
/// Bool: whether any or all elements differ from 0.
Tensor any(const Tensor& x, const Axes& axes = {}, bool keep = false);
Tensor all(const Tensor& x, const Axes& axes = {}, bool keep = false);
enum class Pick : uint8_t { First, Last };
/// int32 position of the extreme value along one axis; NaN counts as the extreme.
Tensor argmax(const Tensor& x, int64_t axis, bool keep = false, Pick pick = Pick::First);
Tensor argmin(const Tensor& x, int64_t axis, bool keep = false, Pick pick = Pick::First);
/// log(sum(exp(x))), shifted by the maximum.
Tensor logsumexp(const Tensor& x, const Axes& axes = {}, bool keep = false);
Tensor norm_l1(const Tensor& x, const Axes& axes = {}, bool keep = false);
Tensor norm_l2(const Tensor& x, const Axes& axes = {}, bool keep = false);
Tensor sum_square(const Tensor& x, const Axes& axes = {}, bool keep = false);

enum class ScanStart : uint8_t { Inclusive, Exclusive };
enum class ScanOrder : uint8_t { Forward, Reverse };
/// Running sum along one axis, as a window sum: quadratic in the extent. Dtype as sum().
Tensor cumsum(const Tensor& x, int64_t axis, ScanStart start = ScanStart::Inclusive,
              ScanOrder order = ScanOrder::Forward);
Tensor cumprod(const Tensor& x, int64_t axis, ScanStart start = ScanStart::Inclusive,
               ScanOrder order = ScanOrder::Forward);

}  // namespace ignis::tensor
