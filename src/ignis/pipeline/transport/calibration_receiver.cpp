#include "ignis/pipeline/transport/calibration_receiver.h"

#include "ignis/pipeline/messages/log.h"
#include "ignis/pipeline/messages/wire.h"
#include "ignis/pipeline/transport/endpoints.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <utility>

namespace ignis::pipeline {
namespace {

// A text file with three numbers is not longer.
constexpr size_t kMaxTextBytes = 4096;
// Angles beyond it are no mounting of a camera but another unit or another order.
constexpr float kMaxAngleRad = 0.5f;

uint64_t now_ns() {
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                   std::chrono::steady_clock::now().time_since_epoch())
                                   .count());
}

Error refuse(const std::string& sentence) {
  return Error(ErrorCode::InvalidArgument, sentence, "Calibration");
}

std::string_view trim(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  const size_t first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

/// Takes `open` off the front and `close` off the end; false when they are not there.
bool unwrap(std::string_view& text, char open, char close) {
  if (text.size() < 2 || text.front() != open || text.back() != close) return false;
  text = trim(text.substr(1, text.size() - 2));
  return true;
}

/// `r,p,y`, `[r, p, y]` or `{"rpy_rad": [r, p, y]}`. `name` is for people.
Result<Calibration> parse_angles(std::string_view text, const std::string& name) {
  const Error error = refuse(name +
                             " is not 'r,p,y' (three angles in rad), '[r, p, y]' or "
                             "'{\"rpy_rad\": [r, p, y]}'.");
  std::string_view rest = trim(text);
  if (unwrap(rest, '{', '}')) {
    constexpr std::string_view kKey = "\"rpy_rad\"";
    if (!rest.starts_with(kKey)) return error;
    rest = trim(rest.substr(kKey.size()));
    if (!rest.starts_with(':')) return error;
    rest = trim(rest.substr(1));
    if (!unwrap(rest, '[', ']')) return error;
  } else if (rest.starts_with('[') && !unwrap(rest, '[', ']')) {
    return error;
  }
  Calibration calibration;
  calibration.status = CalibrationStatus::Calibrated;
  calibration.valid = true;
  for (int i = 0; i < 3; ++i) {
    const size_t comma = i < 2 ? rest.find(',') : rest.size();
    if (comma == std::string_view::npos) return error;
    std::string_view number = trim(rest.substr(0, comma));
    if (number.starts_with('+')) number.remove_prefix(1);
    float value = 0;
    const auto [end, code] = std::from_chars(number.data(), number.data() + number.size(), value);
    if (code != std::errc() || end != number.data() + number.size()) return error;
    if (!std::isfinite(value) || std::abs(value) > kMaxAngleRad) {
      return refuse(name + " has the angle " + std::string(number) + "; angles are in rad, from -" +
                    std::to_string(kMaxAngleRad) + " to " + std::to_string(kMaxAngleRad) + ".");
    }
    calibration.rpy_rad.push_back(value);
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
  return calibration;
}

/// The last event of the log that a host would take.
Result<Calibration> last_of_log(const std::string& path) {
  IGNIS_TRY_ASSIGN(LogReader reader, LogReader::open(path));
  std::optional<Calibration> last;
  while (true) {
    const auto message = reader.next();
    if (!message) {
      // A log that was cut off is good up to there.
      const std::string& reason = message.error().reason();
      if (reason == "EndOfLog" || reason == "TruncatedMessage") break;
      return message.error();
    }
    const auto kind = kind_of_event(*message);
    if (!kind || *kind != EventKind::Calibration) continue;
    auto calibration = decode_calibration(*message);
    if (!calibration || !calibration->valid ||
        calibration->status != CalibrationStatus::Calibrated || calibration->rpy_rad.size() != 3) {
      continue;
    }
    const bool is_sane =
        std::all_of(calibration->rpy_rad.begin(), calibration->rpy_rad.end(), [](float angle_rad) {
          return std::isfinite(angle_rad) && std::abs(angle_rad) <= kMaxAngleRad;
        });
    if (is_sane) last = *std::move(calibration);
  }
  if (!last) {
    return refuse("The log '" + path + "' holds no valid calibration of three angles within " +
                  std::to_string(kMaxAngleRad) + " rad.");
  }
  return *std::move(last);
}

Result<Calibration> read_file(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::exists(path, error)) {
    return Error(ErrorCode::NotFound, "The calibration '" + path +
                                          "' is neither 'r,p,y' in rad, nor a file that there is, "
                                          "nor tcp://HOST:PORT.");
  }
  if (!std::filesystem::is_regular_file(path, error)) {
    return refuse("The calibration '" + path + "' is no plain file.");
  }
  std::array<char, kMaxTextBytes> text{};
  std::ifstream file(path, std::ios::binary);
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  const auto size = static_cast<size_t>(file.gcount());
  // A log begins with the upper bytes of a small segment count, which no text has.
  const std::string_view head(text.data(), std::min(size, size_t{4}));
  if (head.find('\0') != std::string_view::npos) return last_of_log(path);
  return parse_angles(std::string_view(text.data(), size), "The calibration file '" + path + "'");
}

}  // namespace

Result<CalibrationSetting> parse_calibration(std::string_view text) {
  CalibrationSetting setting;
  if (text.find("://") != std::string_view::npos) {
    IGNIS_TRY(check_endpoint(text));
    setting.endpoint = text;
    return setting;
  }
  const bool looks_like_angles =
      text.find(',') != std::string_view::npos &&
      text.find_first_not_of("0123456789+-.eEinfa, \t") == std::string_view::npos;
  if (looks_like_angles) {
    IGNIS_TRY_ASSIGN(setting.fixed,
                     parse_angles(text, "The calibration '" + std::string(text) + "'"));
  } else {
    IGNIS_TRY_ASSIGN(setting.fixed, read_file(std::string(text)));
  }
  return setting;
}

Result<CalibrationReceiver> CalibrationReceiver::open(const CalibrationSetting& setting) {
  CalibrationReceiver receiver;
  if (setting.fixed) {
    receiver.fixed_ = setting.fixed;
  } else {
    IGNIS_TRY_ASSIGN(receiver.subscriber_,
                     Subscriber::open(setting.endpoint, Topic::ExtrinsicsCalibration));
  }
  return receiver;
}

std::optional<Calibration> CalibrationReceiver::poll() {
  if (fixed_) {
    const uint64_t now = now_ns();
    if (now < fixed_due_ns_) return std::nullopt;
    fixed_due_ns_ = now + static_cast<uint64_t>(1e9 / info(Topic::ExtrinsicsCalibration).rate_hz);
    fixed_->log_mono_time_ns = now;
    return fixed_;
  }
  if (!subscriber_ || !subscriber_->try_receive(message_)) return std::nullopt;
  auto calibration = decode_calibration(message_);
  if (!calibration) {
    ++refused_;
    return std::nullopt;
  }
  return *std::move(calibration);
}

}  // namespace ignis::pipeline
