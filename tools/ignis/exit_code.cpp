#include "tools/ignis/exit_code.h"

namespace ignis::tools {
namespace {

Error with_reason(const Error& error, std::string reason) {
  Error out(error.code(), error.message(), std::move(reason));
  for (const std::string& where : error.context()) out = std::move(out).with_context(where);
  return out;
}

}  // namespace

Error as_usage(Error error) { return with_reason(error, "Usage"); }
Error as_model(Error error) { return with_reason(error, "Model"); }
Error as_device(Error error) { return with_reason(error, "Device"); }
Error as_file(Error error) { return with_reason(error, "File"); }
Error usage_error(std::string message) {
  return Error(ErrorCode::InvalidArgument, std::move(message), "Usage");
}

Exit exit_code(const Error& error) {
  switch (error.code()) {  // these say it all by themselves
    case ErrorCode::OutOfMemory: return Exit::Memory;
    case ErrorCode::Timeout:
    case ErrorCode::DeviceLost: return Exit::Device;
    case ErrorCode::Internal: return Exit::Internal;
    default: break;
  }
  const std::string& reason = error.reason();
  if (reason == "Usage") return Exit::Usage;
  if (reason == "Model") return Exit::Model;
  if (reason == "Device") return Exit::Device;
  if (reason == "File" || reason == "MalformedFile" || error.code() == ErrorCode::NotFound)
    return Exit::File;
  return Exit::Model;
}

}  // namespace ignis::tools
