#pragma once

#include "ignis/base/program_image.h"
#include "ignis/base/result.h"
#include "ignis/runtime/queued_device.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace ignis::vdev {

/// Appends the words of one command (opcodes.h). `signal_bits` is 32 or 64.
/// Errors: InvalidArgument for numbers that the encoding does not have, or a call with too many arguments.
Status encode_command(const runtime::Command& command,
                      const runtime::QueuedDevice::Encoding& encoding, int signal_bits,
                      runtime::EncodedQueue& to);

/// Puts one encoded command into a part, memory that the device reads, and an indirect in its place.
void encode_indirect(runtime::EncodedQueue command, runtime::EncodedQueue& to);

/// A program image as it lies in device memory.
std::vector<std::byte> encode_image(const ProgramImage& image);

/// An image that stands for the C++ function `number` of a world, and the number that one stands for (-1: none).
ProgramImage function_image(std::string name, int buffer_count, uint64_t number);
int64_t function_number(const ProgramImage& image);

}  // namespace ignis::vdev
