#pragma once

// What the tests of this folder share: a scratch folder, small pictures, means.

#include "ignis/pipeline/frames/frame.h"
#include "ignis/pipeline/frames/synthetic.h"

#include "tools/video/open_source.h"
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

namespace ignis::tools {

/// A folder that is gone after the test.
class ScratchFolder {
 public:
  ScratchFolder() {
    std::string name = testing::TempDir() + "ignis-video-XXXXXX";
    path_ = ::mkdtemp(name.data());
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  ~ScratchFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  std::string file(const std::string& name) const { return path_ + "/" + name; }
  std::string write(const std::string& name, const std::string& bytes) const {
    std::ofstream(file(name), std::ios::binary) << bytes;
    return file(name);
  }

 private:
  std::string path_;
};

inline std::string read_text(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

/// Mean of the visible luma.
inline double mean_luma(const pipeline::Frame& frame) {
  double sum = 0;
  for (int y = 0; y < frame.layout.height_px; ++y) {
    for (int x = 0; x < frame.layout.width_px; ++x) {
      sum += static_cast<double>(frame.bytes[static_cast<size_t>(y * frame.layout.y_stride + x)]);
    }
  }
  return sum / frame.layout.width_px / frame.layout.height_px;
}

/// Mean of one of an NV12 frame's chroma planes: 0 is U, 1 is V.
inline double mean_chroma(const pipeline::Frame& frame, int plane) {
  double sum = 0;
  for (int y = 0; y < frame.layout.height_px / 2; ++y) {
    for (int x = 0; x < frame.layout.width_px / 2; ++x) {
      const int64_t at = frame.layout.u_offset + y * frame.layout.uv_stride + 2 * x + plane;
      sum += static_cast<double>(frame.bytes[static_cast<size_t>(at)]);
    }
  }
  return sum / (frame.layout.width_px / 2) / (frame.layout.height_px / 2);
}

/// All that a source gives until its end; errors on the way are counted.
inline std::vector<pipeline::Frame> receive_all(pipeline::FrameSource& source,
                                                int* errors = nullptr) {
  std::vector<pipeline::Frame> frames;
  for (int i = 0; i < 1000; ++i) {
    auto frame = source.receive(std::chrono::seconds(5));
    if (frame) {
      frames.push_back(*std::move(frame));
      continue;
    }
    if (frame.error().reason() == "EndOfStream") return frames;
    if (errors != nullptr) {
      ++*errors;
    } else {
      ADD_FAILURE() << frame.error().to_string();
    }
  }
  ADD_FAILURE() << "The source does not end.";
  return frames;
}

}  // namespace ignis::tools
