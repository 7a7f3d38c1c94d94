#pragma once

#include "ignis/schedule/schedule.h"

#include <cstddef>
#include <span>

namespace ignis::engine {

/// Runs one Pack step: copies `source` into the layout of `dest`, whose memory is zero. The spans are the buffers'
/// whole storage.
/// Errors: Internal when the step reads or writes outside them; the schedule promised otherwise.
Status run_pack(const schedule::Pack& pack, const schedule::Buffer& source,
                std::span<const std::byte> source_bytes, const schedule::Buffer& dest,
                std::span<std::byte> dest_bytes);

/// The values of a buffer in row-major order. `bytes` is the whole storage of `layout`.
HostTensor read_layout(const std::byte* bytes, DType dtype, const Shape& shape,
                       const ir::Layout& layout);

}  // namespace ignis::engine
