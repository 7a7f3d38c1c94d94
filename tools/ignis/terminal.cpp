#include "tools/ignis/terminal.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>

namespace ignis::tools {
namespace {

bool g_color = false;

/// Columns of a UTF-8 text.
size_t width_of(const std::string& text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

bool is_number(const std::string& text) {
  return !text.empty() && (std::isdigit(static_cast<unsigned char>(text[0])) ||
                           (text.size() > 1 && (text[0] == '-' || text[0] == '+') &&
                            std::isdigit(static_cast<unsigned char>(text[1]))) ||
                           text == "nan" || text == "inf" || text == "-inf" || text == "-nan");
}

}  // namespace

void choose_color(ColorMode mode) {
  const char* no_color = std::getenv("NO_COLOR");
  g_color = mode == ColorMode::Always ||
            (mode == ColorMode::Auto && (no_color == nullptr || *no_color == '\0') &&
             ::isatty(STDOUT_FILENO) == 1);
}

std::string styled(const std::string& text, Style style) {
  if (!g_color) return text;
  constexpr const char* kCodes[] = {"\x1b[32m", "\x1b[31m", "\x1b[33m", "\x1b[1m", "\x1b[2m"};
  return kCodes[static_cast<size_t>(style)] + text + "\x1b[0m";
}

std::string Table::to_string() const {
  std::vector<size_t> widths;
  std::vector<bool> is_right;
  for (size_t r = 0; r < rows_.size(); ++r) {
    for (size_t c = 0; c < rows_[r].size(); ++c) {
      if (c >= widths.size()) {
        widths.push_back(0);
        is_right.push_back(rows_.size() > 1);
      }
      widths[c] = std::max(widths[c], width_of(rows_[r][c]));
      if (r > 0 && !rows_[r][c].empty() && !is_number(rows_[r][c])) is_right[c] = false;
    }
  }
  std::string out;
  for (size_t r = 0; r < rows_.size(); ++r) {
    std::string line;
    for (size_t c = 0; c < rows_[r].size(); ++c) {
      if (c > 0) line += "  ";
      const std::string padding(widths[c] - width_of(rows_[r][c]), ' ');
      line += is_right[c] ? padding + rows_[r][c] : rows_[r][c] + padding;
    }
    line.resize(line.find_last_not_of(' ') + 1);
    out += (r == 0 ? styled(line, Style::Strong) : line) + "\n";
  }
  return out;
}

Progress::Progress(bool is_wanted) : is_wanted_(is_wanted && ::isatty(STDERR_FILENO) == 1) {}

void Progress::show(const std::string& text) {
  if (!is_wanted_) return;
  std::fprintf(stderr, "\r\x1b[K%s", text.c_str());
  std::fflush(stderr);
  is_shown_ = true;
}

void Progress::clear() {
  if (!is_shown_) return;
  std::fprintf(stderr, "\r\x1b[K");
  std::fflush(stderr);
  is_shown_ = false;
}

std::function<void(const std::string&, int, int)> Progress::callback() {
  if (!is_wanted_) return {};
  return [this](const std::string& stage, int done, int total) {
    show(stage + " " + std::to_string(done) + "/" + std::to_string(total));
  };
}

std::string format_number(double value, int digits) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*g", digits, value);
  return text;
}

std::string format_seconds(double seconds) {
  const double size = std::fabs(seconds);
  char text[64];
  if (size >= 1) std::snprintf(text, sizeof text, "%.3f s", seconds);
  else if (size >= 1e-3) std::snprintf(text, sizeof text, "%.3f ms", seconds * 1e3);
  else std::snprintf(text, sizeof text, "%.1f µs", seconds * 1e6);
  return text;
}

std::string format_bytes(double bytes) {
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  size_t unit = 0;
  while (bytes >= 1024 && unit < 4) {
    bytes /= 1024;
    ++unit;
  }
  char text[64];
  std::snprintf(text, sizeof text, unit == 0 ? "%.0f %s" : "%.1f %s", bytes, kUnits[unit]);
  return text;
}

}  // namespace ignis::tools
