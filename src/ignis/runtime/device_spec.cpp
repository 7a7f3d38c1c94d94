#include "ignis/runtime/device_spec.h"

#include <algorithm>
#include <charconv>

namespace ignis::runtime {
namespace {

constexpr std::string_view kForm = "[interface+]kind[:index][:renderer[:features]]";

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return c >= 'a' && c <= 'z'; }

// Kinds, renderers and features: letters, digits and what instruction sets are spelt with.
bool is_word(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return is_letter(c) || is_digit(c) || c == '-' || c == '_' || c == '.' || c == '+';
  });
}

std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

Error refuse(std::string_view text, const std::string& why) {
  return Error(
      ErrorCode::InvalidArgument,
      "Device '" + std::string(text) + "' " + why + "; the form is " + std::string(kForm) + ".",
      "DeviceSpec");
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const size_t at = text.find(separator);
    parts.push_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

}  // namespace

std::string DeviceSpec::to_string() const {
  std::string text = interface.empty() ? kind : interface + "+" + kind;
  if (index != 0) text += ":" + std::to_string(index);
  if (!renderer.empty()) text += ":" + renderer;
  if (!features.empty()) text += ":" + features;
  return text;
}

Result<DeviceSpec> parse_device_spec(std::string_view text) {
  const std::string lower = lower_case(text);
  std::vector<std::string_view> parts = split(lower, ':');
  DeviceSpec spec;
  std::string_view kind = parts[0];
  const size_t plus = kind.find('+');
  if (plus != std::string_view::npos) {
    spec.interface = kind.substr(0, plus);
    kind.remove_prefix(plus + 1);
    if (!is_word(spec.interface)) return refuse(text, "has no interface before '+'");
  }
  if (kind.empty()) return refuse(text, "names no kind");
  if (!is_word(kind) || !is_letter(kind[0]) || kind.find('+') != std::string_view::npos) {
    return refuse(text, "has the kind '" + std::string(kind) + "', which is no name");
  }
  spec.kind = kind;
  size_t next = 1;
  if (next < parts.size() && !parts[next].empty() &&
      std::all_of(parts[next].begin(), parts[next].end(), is_digit)) {
    const std::string_view digits = parts[next];
    const auto [end, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), spec.index);
    if (error != std::errc()) {
      return refuse(text, "has the index " + std::string(digits) + ", which is too large");
    }
    ++next;
  }
  for (std::string* field : {&spec.renderer, &spec.features}) {
    if (next == parts.size()) break;
    if (!is_word(parts[next])) {
      return refuse(text, "has the part '" + std::string(parts[next]) + "', which is no name");
    }
    *field = parts[next++];
  }
  if (next != parts.size()) {
    return refuse(text, "has the part '" + std::string(parts[next]) + "' too many");
  }
  return spec;
}

Result<std::vector<DeviceSpec>> parse_device_list(std::string_view text) {
  std::vector<DeviceSpec> specs;
  for (const std::string_view part : split(text, ',')) {
    IGNIS_TRY_ASSIGN(DeviceSpec spec, parse_device_spec(part));
    specs.push_back(std::move(spec));
  }
  return specs;
}

}  // namespace ignis::runtime
