#pragma once

#include "ignis/base/program_image.h"

#include <array>
#include <cstddef>
#include <span>

namespace ignis::exec {

/// BLAKE2b-256.
using ContentHash = std::array<std::byte, 32>;

ContentHash hash_content(std::span<const std::byte> bytes);
/// Of what a device sees of a program: entry, object, number of buffers.
ContentHash hash_image(const ProgramImage& image);

}  // namespace ignis::exec
