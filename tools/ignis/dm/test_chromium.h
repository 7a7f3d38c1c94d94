#pragma once

#include <nlohmann/json.hpp>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace ignis::testing {

/// A headless Chromium with one page, driven over its debugging pipe. Every wait is bounded.
class Chromium {
 public:
  /// The browser's program, or nothing when this machine has none.
  static std::optional<std::string> find();
  explicit Chromium(const std::string& program);
  ~Chromium();
  Chromium(const Chromium&) = delete;
  Chromium& operator=(const Chromium&) = delete;

  bool is_running() const { return !session_.empty(); }
  void set_size(int width_px, int height_px);
  void open(const std::string& url);
  /// The value of a JavaScript expression; null when it throws.
  nlohmann::json evaluate(const std::string& expression);
  /// Evaluates again and again until the answer is true; false after `limit`.
  bool wait_until(const std::string& expression, std::chrono::milliseconds limit);
  /// A PNG's bytes.
  std::string screenshot();
  /// What the page's scripts threw and logged as errors so far.
  const std::vector<std::string>& complaints() const { return complaints_; }

 private:
  nlohmann::json call(const std::string& method, const nlohmann::json& params,
                      std::chrono::milliseconds limit = std::chrono::seconds(20));
  std::optional<nlohmann::json> read(std::chrono::steady_clock::time_point deadline);

  int to_ = -1, from_ = -1, process_ = -1, next_id_ = 1;
  std::string buffer_, session_, folder_;
  std::vector<std::string> complaints_;
};

}  // namespace ignis::testing
