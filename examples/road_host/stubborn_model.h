#pragma once

#include "ignis/pipeline/road/runner.h"

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>

namespace ignis::examples {

/// When a model is to hang, and until when. Shared between the program and the model's thread.
class Hang {
 public:
  /// The next run hangs.
  void arm();
  /// Every hang ends, now and later.
  void release();
  /// Hangs if it is armed, as a driver would that waits for a device.
  void pass();

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_armed_ = false, is_released_ = false;
  int hanging_ = 0;
};

/// A model that does as another one, but hangs when told to.
std::unique_ptr<pipeline::RoadModel> make_stubborn(std::unique_ptr<pipeline::RoadModel> inner,
                                                   std::shared_ptr<Hang> hang);

}  // namespace ignis::examples
