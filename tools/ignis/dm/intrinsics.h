#pragma once

#include "ignis/base/result.h"
#include "ignis/pipeline/driver_monitoring/camera.h"

#include <string>

namespace ignis::tools {

/// "1280x720:900" or "1280x720:900,640,360": size, focal length and centre in px; without a centre, the middle.
/// Errors: InvalidArgument with reason "Usage".
Result<pipeline::Camera> parse_intrinsics(const std::string& text);

}  // namespace ignis::tools
