#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace ignis::tools {

enum class ColorMode : uint8_t { Auto, Always, Never };
enum class Style : uint8_t { Good, Bad, Warning, Strong, Dim };

/// Decides once whether standard output gets colours: `mode`, then NO_COLOR, then whether it is a terminal.
void choose_color(ColorMode mode);
/// `text` in a style, or as it is.
std::string styled(const std::string& text, Style style);

/// Rows of cells, printed with aligned columns: numbers to the right, the rest to the left.
class Table {
 public:
  explicit Table(std::vector<std::string> header) { rows_.push_back(std::move(header)); }
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  size_t size() const { return rows_.size() - 1; }
  std::string to_string() const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

/// A line on standard error that is written over and disappears at the end; silent when that is no terminal.
class Progress {
 public:
  explicit Progress(bool is_wanted);
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress() { clear(); }
  void show(const std::string& text);
  void clear();
  /// For SessionOptions::progress.
  std::function<void(const std::string& stage, int done, int total)> callback();

 private:
  bool is_shown_ = false, is_wanted_;
};

/// "1.234 ms", "12.3 µs", "2.05 s".
std::string format_seconds(double seconds);
/// "4.0 MiB".
std::string format_bytes(double bytes);
/// Up to `digits` significant digits.
std::string format_number(double value, int digits = 6);

}  // namespace ignis::tools
