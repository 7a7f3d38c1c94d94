#pragma once

#include "ignis/base/hex.h"
#include "ignis/base/result.h"

#include <array>
#include <cstddef>
#include <span>

namespace ignis::engine {

/// BLAKE2b-256.
using Digest = std::array<std::byte, 32>;

Digest digest_of(std::span<const std::byte> bytes);

}  // namespace ignis::engine
