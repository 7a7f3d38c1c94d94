#pragma once

#include "ignis/pipeline/messages/driver_state.h"

#include <string>
#include <string_view>

namespace ignis::tools {

/// What a reason means and what to do about it, in one line for people.
std::string_view explain(pipeline::Reason reason);

/// "FrameStale, LowConfidence"; "none" without one.
std::string list_reasons(pipeline::Reasons reasons);

}  // namespace ignis::tools
