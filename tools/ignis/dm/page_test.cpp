// The page in a real browser, fed by hand: what is shown is what was fed, and stops when that stops.
#include "ignis/pipeline/frames/frame.h"

#include "tools/ignis/dm/live_feed.h"
#include "tools/ignis/dm/page_server.h"
#include "tools/ignis/dm/test_chromium.h"
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <thread>
#include <vector>

namespace ignis::tools {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

struct OwnedBytes : pipeline::FrameMemory {
  std::vector<std::byte> bytes;
};

/// A grey NV12 frame with a brighter disc, 640x400.
pipeline::Frame make_frame(uint32_t id) {
  pipeline::Frame frame;
  pipeline::FrameLayout& l = frame.layout;
  l.width_px = 640;
  l.height_px = 400;
  l.y_stride = l.uv_stride = 640;
  l.u_offset = 640 * 400;
  l.v_offset = l.u_offset + 1;
  l.size_bytes = 640 * 400 * 3 / 2;
  auto memory = std::make_shared<OwnedBytes>();
  memory->bytes.assign(static_cast<size_t>(l.size_bytes), std::byte{128});
  for (int y = 0; y < 400; ++y) {
    for (int x = 0; x < 640; ++x) {
      const bool is_disc = std::hypot(x - 320, y - 180) < 90;
      memory->bytes[static_cast<size_t>(y * 640 + x)] =
          std::byte{is_disc ? uint8_t{200} : uint8_t{60}};
    }
  }
  frame.bytes = memory->bytes;
  frame.memory = memory;
  frame.info.frame_id = id;
  return frame;
}

Snapshot make_snapshot(uint32_t id) {
  Snapshot s;
  s.time_ns = pipeline::monotonic_ns();
  s.has_frame = true;
  s.layout = make_frame(0).layout;
  s.state.frame_id = s.quality.frame_id = id;
  s.quality.valid = true;
  s.quality.frame_age_ns = 14'000'000;
  s.quality.reasons = pipeline::Reason::CalibMissing;
  s.quality.known_left = pipeline::kAllDriverFields & ~bit(pipeline::DriverField::PhoneProb);
  s.state.left.has_lists = true;
  s.state.left.face_orientation = {0.1f, 0.3f, 0.05f};
  s.state.left.face_orientation_std = {0.05f, 0.06f, 0.04f};
  s.state.left.face_position = {0.1f, -0.05f};
  s.state.left.face_prob = 0.93f + 0.05f * std::sin(static_cast<float>(id) * 0.3f);
  s.state.left.left_eye_prob = s.state.left.right_eye_prob = 0.97f;
  s.state.left.left_blink_prob = id % 40 < 6 ? 0.9f : 0.04f;
  s.state.left.right_blink_prob = id % 40 < 6 ? 0.88f : 0.05f;
  s.state.left.sunglasses_prob = 0.02f;
  s.prediction.has_face_box = true;
  s.prediction.face = {250, 90,    390,
                       270, 0.98f, {{{290, 155}, {350, 156}, {320, 190}, {296, 225}, {344, 226}}},
                       true};
  s.times.ns = {300'000, 200'000, 900'000, 9'000'000 + (id % 7) * 400'000ull,
                40'000,  20'000,  150'000, 0};
  for (size_t i = 0; i + 1 < s.times.ns.size(); ++i) s.times.ns[7] += s.times.ns[i];
  s.dropped_frames = id / 100;
  return s;
}

/// Pushes 50 frames per second, or the watchdog's words, on a thread of its own.
class Pump {
 public:
  explicit Pump(LiveFeed& feed) : feed_(feed), thread_([this] { run(); }) {}
  ~Pump() {
    is_stopping_.store(true);
    thread_.join();
  }
  std::atomic<bool> has_frames{true};

 private:
  void run() {
    for (uint32_t id = 1; !is_stopping_.load(); ++id) {
      if (has_frames.load()) {
        const pipeline::Frame frame = make_frame(id);
        feed_.push(make_snapshot(id), &frame);
        last_ = id;
      } else {
        Snapshot s;
        s.time_ns = pipeline::monotonic_ns();
        s.quality.frame_id = last_;
        s.quality.reasons = pipeline::Reason::FrameTimeout;
        feed_.push(s, nullptr);
        std::this_thread::sleep_for(milliseconds(480));
      }
      std::this_thread::sleep_for(milliseconds(20));
    }
  }
  LiveFeed& feed_;
  uint32_t last_ = 0;
  std::atomic<bool> is_stopping_{false};
  std::thread thread_;
};

PageInfo test_info() {
  return {"test", "synthetic:test",       "stub.onnx", "comma-38", "cpu",
          "left", "tcp://127.0.0.1:7100", "",          "",         "0123456789ab"};
}

TEST(Page, ShowsLiveValuesAndWhenTheyStop) {
  const auto program = testing::Chromium::find();
  if (!program)
    GTEST_SKIP() << "No Chromium here (chromium-headless-shell): the page is NOT tested.";
  LiveFeed feed;
  auto server = PageServer::start(0, feed, test_info());
  ASSERT_TRUE(server) << server.error().to_string();
  auto pump = std::make_unique<Pump>(feed);
  testing::Chromium browser(*program);
  ASSERT_TRUE(browser.is_running()) << *program << " does not start";
  browser.set_size(1280, 800);
  browser.open((*server)->url());
  EXPECT_TRUE(
      browser.wait_until("document.body.dataset.frame > 20 && "
                         "document.body.dataset.picture === '640x400' && "
                         "document.body.dataset.face === 'box'",
                         seconds(20)))
      << browser.evaluate("JSON.stringify(document.body.dataset)");
  EXPECT_EQ(browser.evaluate("document.body.dataset.valid"), "yes");
  EXPECT_EQ(browser.evaluate("document.getElementById('validity').textContent"), "valid");
  // Known values are numbers, what the model cannot know is said to be unknown.
  EXPECT_EQ(browser.evaluate("document.querySelectorAll('.signal')[1].children[2].textContent"),
            "0.970");
  EXPECT_EQ(browser.evaluate("document.querySelectorAll('.signal')[6].children[3].textContent"),
            "unknown");
  EXPECT_EQ(browser.evaluate("document.querySelector('#reasons b').textContent"), "CalibMissing");
  // The box is drawn where it was fed: its left edge lies in the picture's coordinates at x = 250 of 640.
  EXPECT_EQ(browser.evaluate("(() => { const c = document.getElementById('picture');"
                             "const s = Math.min(c.width / 640, c.height / 400);"
                             "const x = Math.round((c.width - 640 * s) / 2 + 250 * s);"
                             "const y = Math.round((c.height - 400 * s) / 2 + 100 * s);"
                             "const p = c.getContext('2d').getImageData(x - 2, y, 5, 1).data;"
                             "let green = false;"
                             "for (let i = 0; i < 5; ++i) green ||= p[4*i+1] > p[4*i] + 20 && "
                             "p[4*i+1] > p[4*i+2] + 20;"
                             "return green; })()"),
            true);
  // Nothing moves when values do: the layout stays within the window.
  EXPECT_EQ(browser.evaluate("document.documentElement.scrollWidth <= 1280"), true);
  if (const char* folder = std::getenv("IGNIS_TEST_SCREENSHOTS")) {
    std::this_thread::sleep_for(seconds(4));
    std::ofstream(std::string(folder) + "/wide.png") << browser.screenshot();
    browser.set_size(480, 900);
    std::this_thread::sleep_for(milliseconds(500));
    std::ofstream(std::string(folder) + "/narrow.png") << browser.screenshot();
    browser.set_size(1280, 800);
  }

  pump->has_frames.store(false);
  EXPECT_TRUE(
      browser.wait_until("document.body.dataset.message === 'No frames' && "
                         "document.body.dataset.face === 'none'",
                         seconds(10)));
  EXPECT_EQ(browser.evaluate("document.querySelector('#reasons b').textContent"), "FrameTimeout");
  if (const char* folder = std::getenv("IGNIS_TEST_SCREENSHOTS"))
    std::ofstream(std::string(folder) + "/stopped.png") << browser.screenshot();
  pump->has_frames.store(true);
  EXPECT_TRUE(
      browser.wait_until("document.body.dataset.message === '' && "
                         "document.body.dataset.face === 'box'",
                         seconds(10)));

  // The process ends: said clearly. Another one comes on the same port: the page finds it by itself.
  const int port = (*server)->port();
  pump.reset();
  feed.close();
  server->reset();
  EXPECT_TRUE(
      browser.wait_until("document.body.dataset.message !== '' && "
                         "document.body.dataset.connection !== 'live'",
                         seconds(10)));
  LiveFeed second;
  auto again = PageServer::start(port, second, test_info());
  ASSERT_TRUE(again) << again.error().to_string();
  Pump more(second);
  EXPECT_TRUE(
      browser.wait_until("document.body.dataset.connection === 'live' && "
                         "document.body.dataset.face === 'box'",
                         seconds(20)))
      << browser.evaluate("JSON.stringify(document.body.dataset)");
  for (const std::string& complaint : browser.complaints()) {
    // A lost connection is reported as an error; anything else is one.
    EXPECT_NE(complaint.find("ERR_"), std::string::npos) << complaint;
  }
  second.close();
}

}  // namespace
}  // namespace ignis::tools
