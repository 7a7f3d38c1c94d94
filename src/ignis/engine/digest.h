#pragma once

#include "ignis/base/result.h"

#include <array>
#include <cstddef>
#include <span>
#include <string>

namespace ignis::engine {

/// BLAKE2b-256.
using Digest = std::array<std::byte, 32>;

Digest digest_of(std::span<const std::byte> bytes);
/// 64 hexadecimal digits, lower case.
std::string to_hex(const Digest& digest);

}  // namespace ignis::engine
