#include "tools/ignis/dm/intrinsics.h"

#include "tools/ignis/exit_code.h"

#include <charconv>
#include <cmath>
#include <optional>
#include <vector>

namespace ignis::tools {
namespace {

std::optional<double> read_number(std::string_view& rest) {
  double value = 0;
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), value);
  if (error != std::errc() || !std::isfinite(value)) return std::nullopt;
  rest.remove_prefix(static_cast<size_t>(end - rest.data()));
  return value;
}

bool skip(std::string_view& rest, char expected) {
  if (rest.empty() || rest.front() != expected) return false;
  rest.remove_prefix(1);
  return true;
}

/// Width, height, focal, and perhaps two more.
std::optional<std::vector<double>> read_numbers(std::string_view rest) {
  std::vector<double> numbers;
  for (const char separator : {'x', ':', ',', ',', '\0'}) {
    const auto number = read_number(rest);
    if (!number) return std::nullopt;
    numbers.push_back(*number);
    if (rest.empty()) break;
    if (!skip(rest, separator)) return std::nullopt;
  }
  if (!rest.empty() || (numbers.size() != 3 && numbers.size() != 5)) return std::nullopt;
  return numbers;
}

}  // namespace

Result<pipeline::Camera> parse_intrinsics(const std::string& text) {
  const auto numbers = read_numbers(text);
  const auto is_extent = [](double v, double most) {
    return v == std::floor(v) && v >= 64 && v <= most && static_cast<int>(v) % 2 == 0;
  };
  if (!numbers || !is_extent((*numbers)[0], 4096) || !is_extent((*numbers)[1], 3072) ||
      !((*numbers)[2] >= 10 && (*numbers)[2] <= 100000)) {
    return usage_error(
        "--intrinsics takes WIDTHxHEIGHT:FOCAL or WIDTHxHEIGHT:FOCAL,CX,CY in px, with an "
        "even size up to 4096x3072 and a focal length from 10 to 100000, not '" +
        text + "'.");
  }
  pipeline::Camera camera;
  camera.name = "user";
  camera.width_px = static_cast<int>((*numbers)[0]);
  camera.height_px = static_cast<int>((*numbers)[1]);
  camera.focal_px = (*numbers)[2];
  camera.center_x_px = numbers->size() == 5 ? (*numbers)[3] : camera.width_px / 2.0;
  camera.center_y_px = numbers->size() == 5 ? (*numbers)[4] : camera.height_px / 2.0;
  return camera;
}

}  // namespace ignis::tools
