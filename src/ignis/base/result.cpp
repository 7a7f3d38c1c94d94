#include "ignis/base/result.h"

namespace ignis {

struct Error::Body {
  ErrorCode code;
  std::string message;
  std::string reason;
  std::vector<std::string> context;
};

std::string_view to_string(ErrorCode code) {
  switch (code) {
    case ErrorCode::InvalidArgument: return "InvalidArgument";
    case ErrorCode::Unsupported: return "Unsupported";
    case ErrorCode::NotFound: return "NotFound";
    case ErrorCode::OutOfMemory: return "OutOfMemory";
    case ErrorCode::DeviceLost: return "DeviceLost";
    case ErrorCode::Timeout: return "Timeout";
    case ErrorCode::Internal: return "Internal";
  }
  return "Unknown";
}

Error::Error(ErrorCode code, std::string message, std::string reason)
    : body_(std::make_shared<Body>(Body{code, std::move(message), std::move(reason), {}})) {}

Error::Error(const Error& other) : body_(std::make_shared<Body>(*other.body_)) {}

Error& Error::operator=(const Error& other) {
  if (this != &other) body_ = std::make_shared<Body>(*other.body_);
  return *this;
}

ErrorCode Error::code() const { return body_->code; }
const std::string& Error::message() const { return body_->message; }
const std::string& Error::reason() const { return body_->reason; }
const std::vector<std::string>& Error::context() const { return body_->context; }

Error&& Error::with_context(std::string where) && {
  body_->context.push_back(std::move(where));
  return std::move(*this);
}

std::string Error::to_string() const {
  std::string text(ignis::to_string(body_->code));
  if (!body_->reason.empty()) text += "/" + body_->reason;
  text += ": " + body_->message;
  if (!body_->context.empty()) {
    text += " (";
    for (size_t i = 0; i < body_->context.size(); ++i) {
      if (i != 0) text += ", ";
      text += "in " + body_->context[i];
    }
    text += ")";
  }
  return text;
}

}  // namespace ignis
