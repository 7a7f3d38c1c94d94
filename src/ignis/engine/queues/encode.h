#pragma once

#include "ignis/base/result.h"
#include "ignis/exec/queue_template.h"
#include "ignis/runtime/queued_device.h"

#include <cstdint>
#include <functional>
#include <string_view>

namespace ignis::engine {

/// Changes when encode_template() numbers or lays out things differently; part of every template's key.
inline constexpr uint32_t kEncoderVersion = 1;

/// An open device by its canonical name, or null.
using DeviceFinder = std::function<runtime::QueuedDevice*(std::string_view name)>;

/// Turns every stream of a template into words and patches through its device's encode(), and numbers the addresses that the
/// patches name (queue spec 7): QueueStream::encoded and ::addresses, Batch::table. Inputs are read from the address table at
/// run, or baked at link when the template says so. Streams that are encoded already are encoded anew.
///
/// What a backend wrote is not believed: patches ascend, lie inside the words, share no byte, have widths of 1, 2, 4 or 8 and
/// name what exists; an address takes 8 bytes.
/// Errors: NotFound for a device that is not open; InvalidArgument with the reason SubmitTooLarge for words that no ring of the
/// queue holds; Internal with the reason BadPatch; what encode() returns.
Status encode_template(exec::QueueTemplate& made, const DeviceFinder& find_device);

}  // namespace ignis::engine
