#pragma once

/// The lazy C++ front end: everything a tensor program needs.
///
///     auto graph = std::make_shared<ir::Graph>();
///     Tensor x = Tensor::input(graph, 0, "x", DType::Float32, {1, 3, 8, 8});
///     Tensor y = relu(conv(x, w, bias));
#include "ignis/tensor/contraction.h"  // IWYU pragma: export
#include "ignis/tensor/core.h"         // IWYU pragma: export
#include "ignis/tensor/elementwise.h"  // IWYU pragma: export
#include "ignis/tensor/indexing.h"     // IWYU pragma: export
#include "ignis/tensor/movement.h"     // IWYU pragma: export
#include "ignis/tensor/nn.h"           // IWYU pragma: export
#include "ignis/tensor/reduce.h"       // IWYU pragma: export
