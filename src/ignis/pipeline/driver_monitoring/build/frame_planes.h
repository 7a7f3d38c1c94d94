#pragma once

#include "ignis/pipeline/frames/frame.h"
#include "ignis/tensor/core.h"

#include <memory>
#include <span>
#include <vector>

namespace ignis::pipeline {

/// The planes of a frame as views of one input; nothing is copied.
struct FramePlanes {
  tensor::Tensor y;       ///< uint8 [height, y_stride]
  tensor::Tensor chroma;  ///< Nv12: uint8 [height / 2, uv_stride], U and V interleaved; else empty
  tensor::Tensor u, v;    ///< I420: uint8 [height / 2, uv_stride]; else empty
};

/// Splits `frame`, uint8 [layout.size_bytes], whose layout is a checked one (check_layout).
/// May throw GraphError.
FramePlanes split_planes(const tensor::Tensor& frame, const FrameLayout& layout);

/// Where samples lie on a plane, in plane pixels with pixel centres at integers; one value for each column or row.
using Positions = std::vector<double>;

/// `count` positions that cut [begin_px, begin_px + extent_px) into equal parts and take the middle of each, in the
/// coordinates of a plane that has one pixel for `pixel_px` of the picture: 1 for luma, 2 for chroma.
Positions middles(double begin_px, double extent_px, int count, double pixel_px, bool is_mirrored);

/// The sub-list first, first + step, …
Positions every(const Positions& positions, int first, int step);

/// Samples a plane bilinearly; beyond the edge the edge is repeated.
///
/// \param plane        uint8 [rows, row bytes]; a pixel is `pixel_bytes` wide and its sample at byte `channel` of it.
/// \param column_count  pixels of a row that are visible.
/// \return              float32 [ys.size(), xs.size()] in [0, 255], not rounded.
/// May throw GraphError.
tensor::Tensor sample_plane(const tensor::Tensor& plane, int column_count, int pixel_bytes,
                            int channel, const Positions& xs, const Positions& ys);

/// The same on the planes of a frame; `plane` 0 is Y, 1 U, 2 V.
tensor::Tensor sample_plane(const FramePlanes& planes, const FrameLayout& layout, int plane,
                            const Positions& xs, const Positions& ys);

}  // namespace ignis::pipeline
