#pragma once

#include "ignis/base/result.h"

#include <string>
#include <string_view>

namespace ignis::runtime {

struct DeviceState;

/// Reasons of errors of the queue chain (queue spec 7, 9, 11.3). The code says what a caller does about one.
namespace reason {
inline constexpr std::string_view kDeviceHang = "DeviceHang";                // DeviceLost
inline constexpr std::string_view kDeviceUnavailable = "DeviceUnavailable";  // DeviceLost
inline constexpr std::string_view kStaleLink = "StaleLink";                  // DeviceLost
inline constexpr std::string_view kUploadFailed = "UploadFailed";            // DeviceLost
inline constexpr std::string_view kDeadlineExceeded = "DeadlineExceeded";    // Timeout
inline constexpr std::string_view kFenceTimeout = "FenceTimeout";            // Timeout
inline constexpr std::string_view kQueueFull = "QueueFull";                  // OutOfMemory
inline constexpr std::string_view kSubmitTooLarge = "SubmitTooLarge";        // InvalidArgument
inline constexpr std::string_view kNotMappable = "NotMappable";              // Unsupported
inline constexpr std::string_view kCannotReset = "CannotReset";              // Unsupported
}  // namespace reason

/// The error of asking something of a device that is not online.
Error device_unavailable(const std::string& device, const DeviceState& state);

/// The error of using what was made for generation `linked` of a device.
Error stale_link(const std::string& device, uint64_t linked, uint64_t generation);

}  // namespace ignis::runtime
