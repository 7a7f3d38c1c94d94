#pragma once

#include "ignis/base/result.h"

namespace ignis::tools {

/// What the process returns; documented in README.md and docs/tool.md.
enum class Exit : int {
  Ok = 0,
  Different = 1,  ///< compared and different, or slower than allowed
  Usage = 2,
  Model = 3,   ///< malformed, over a limit, or with an operator that is not there
  Device = 4,  ///< missing, lost or timed out
  Memory = 5,
  File = 6,  ///< an input or output file
  Internal = 7,
};

/// The same error with the reason "Usage", "Model", "Device" or "File", which decides the exit code: an error's code
/// alone does not say whose fault it is.
Error as_usage(Error error);
Error as_model(Error error);
Error as_device(Error error);
Error as_file(Error error);
Error usage_error(std::string message);

/// The exit code for an error that ends a command.
Exit exit_code(const Error& error);

}  // namespace ignis::tools
