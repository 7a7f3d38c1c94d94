#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace ignis::tools {

/// The bytes of portrait.jpg, held in the program. See PORTRAIT.md.
std::span<const std::byte> portrait_jpeg();

}  // namespace ignis::tools
