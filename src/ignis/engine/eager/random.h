#pragma once

#include "ignis/tensor/core.h"

#include <utility>

namespace ignis::engine {

/// Threefry-2x32 with 20 rounds (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3", 2011), elementwise
/// on uint32: the two words that a key gives for a counter.
std::pair<tensor::Tensor, tensor::Tensor> threefry2x32(
    const std::pair<tensor::Tensor, tensor::Tensor>& key,
    const std::pair<tensor::Tensor, tensor::Tensor>& counter);

}  // namespace ignis::engine
