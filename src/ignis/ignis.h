#pragma once

/// Everything a program that compiles and runs models needs. A program that only runs compiled artifacts includes
/// the headers of `ignis/exec/` and `ignis/runtime/` and links the library `ignis` alone.
#include "ignis/base/dtype.h"             // IWYU pragma: export
#include "ignis/base/host_tensor.h"       // IWYU pragma: export
#include "ignis/base/log.h"               // IWYU pragma: export
#include "ignis/base/result.h"            // IWYU pragma: export
#include "ignis/base/target.h"            // IWYU pragma: export
#include "ignis/engine/evaluate.h"        // IWYU pragma: export
#include "ignis/engine/session.h"         // IWYU pragma: export
#include "ignis/engine/shaped_session.h"  // IWYU pragma: export
#include "ignis/onnx/import.h"            // IWYU pragma: export
#include "ignis/runtime/device.h"         // IWYU pragma: export
#include "ignis/tensor/tensor.h"          // IWYU pragma: export
