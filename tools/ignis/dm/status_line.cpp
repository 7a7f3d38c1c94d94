#include "tools/ignis/dm/status_line.h"

#include "tools/ignis/dm/reason_text.h"
#include "tools/ignis/terminal.h"
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>

namespace ignis::tools {
namespace {

using pipeline::DriverField;
using std::chrono::milliseconds;

std::string probability(const pipeline::DriverData& d, uint32_t known, DriverField field,
                        float pipeline::DriverData::* value) {
  if ((known & bit(field)) == 0) return "?";
  char text[16];
  std::snprintf(text, sizeof text, "%.2f", static_cast<double>(d.*value));
  return text;
}

/// "face 0.98 eyes 0.99/0.97 blink 0.02/0.03 glasses 0.01" of the side with the likelier face; "?" is unknown.
std::string driver_text(const Snapshot& s) {
  using D = pipeline::DriverData;
  const bool is_right =
      s.quality.known_left == 0 ||
      (s.quality.known_right != 0 && s.state.right.face_prob > s.state.left.face_prob);
  const D& d = is_right ? s.state.right : s.state.left;
  const uint32_t known = is_right ? s.quality.known_right : s.quality.known_left;
  const auto p = [&](DriverField f, float D::* v) { return probability(d, known, f, v); };
  return "face " + p(DriverField::FaceProb, &D::face_prob) + "  eyes " +
         p(DriverField::LeftEyeProb, &D::left_eye_prob) + "/" +
         p(DriverField::RightEyeProb, &D::right_eye_prob) + "  blink " +
         p(DriverField::LeftBlinkProb, &D::left_blink_prob) + "/" +
         p(DriverField::RightBlinkProb, &D::right_blink_prob) + "  glasses " +
         p(DriverField::SunglassesProb, &D::sunglasses_prob);
}

size_t columns_of_terminal() {
  winsize size{};
  return ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

/// Writes when it can be done at once.
void write_now(const std::string& text) {
  pollfd out{STDOUT_FILENO, POLLOUT, 0};
  if (::poll(&out, 1, 0) == 1 && (out.revents & POLLOUT) != 0)
    (void)!::write(STDOUT_FILENO, text.data(), text.size());
}

}  // namespace

std::string status_text(const Snapshot& s, const LiveFeed& feed, size_t columns) {
  const StageSummary times = summarize(feed.recent_times());
  const auto ms = [](uint64_t ns) { return static_cast<double>(ns) * 1e-6; };
  const bool has_age = s.quality.frame_age_ns != pipeline::kUnknownAge;
  char head[64], age[32], rate[128];
  if (has_age) std::snprintf(head, sizeof head, "frame %-6u ", s.quality.frame_id);
  else std::snprintf(head, sizeof head, "no frame yet ");
  std::snprintf(age, sizeof age, "%.0f ms", has_age ? ms(s.quality.frame_age_ns) : 0.0);
  const size_t total = static_cast<size_t>(Stage::Total);
  std::snprintf(rate, sizeof rate, "%4.1f/s  p50 %.1f p99 %.1f ms  age %s  dropped %llu",
                feed.frames_per_s(), ms(times.p50_ns[total]), ms(times.p99_ns[total]),
                has_age ? age : "unknown", static_cast<unsigned long long>(s.dropped_frames));
  std::string text = head;
  text += s.quality.valid ? "valid      " : "NOT VALID  ";
  // What matters most comes first: a narrow terminal cuts the rest.
  text += (s.quality.valid ? driver_text(s) : list_reasons(s.quality.reasons)) + "  | " + rate;
  if (s.quality.valid && !s.quality.reasons.is_empty())
    text += "  | " + list_reasons(s.quality.reasons);
  if (columns > 0 && text.size() > columns) text.resize(columns);
  return text;
}

StatusLine::StatusLine(LiveFeed& feed)
    : feed_(feed), is_terminal_(::isatty(STDOUT_FILENO) == 1), thread_([this] { run(); }) {}

StatusLine::~StatusLine() {
  is_stopping_.store(true);
  thread_.join();
  if (is_terminal_) write_now("\r\x1b[K");
}

void StatusLine::run() {
  const milliseconds period(is_terminal_ ? 200 : 1000);
  auto due = std::chrono::steady_clock::now();
  uint64_t sequence = 0;
  std::vector<Snapshot> newest;
  while (!is_stopping_.load()) {
    newest.clear();
    feed_.read_after(sequence, milliseconds(100), 1, newest);
    if (feed_.is_closed()) std::this_thread::sleep_for(milliseconds(20));
    const auto now = std::chrono::steady_clock::now();
    if (newest.empty() || now < due) {
      // read_after returns at once while there is something new; the line is not to be written that often.
      if (!newest.empty())
        std::this_thread::sleep_for(
            std::min<std::chrono::nanoseconds>(due - now, milliseconds(50)));
      continue;
    }
    due = now + period;
    sequence = newest.back().sequence;
    const bool is_valid = newest.back().quality.valid;
    std::string text =
        status_text(newest.back(), feed_, is_terminal_ ? columns_of_terminal() - 1 : 0);
    text = styled(text, is_valid ? Style::Good : Style::Bad);
    write_now(is_terminal_ ? "\r" + text + "\x1b[K" : text + "\n");
  }
}

}  // namespace ignis::tools
