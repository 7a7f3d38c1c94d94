#include "examples/road_host/stubborn_model.h"

#include <utility>

namespace ignis::examples {
namespace {

class StubbornModel : public pipeline::RoadModel {
 public:
  StubbornModel(std::unique_ptr<pipeline::RoadModel> inner, std::shared_ptr<Hang> hang)
      : inner_(std::move(inner)), hang_(std::move(hang)) {}
  Status load(const pipeline::FrameLayout& layout) override { return inner_->load(layout); }
  const pipeline::RoadContract& contract() const override { return inner_->contract(); }
  Status run(const pipeline::PackedInput& input, std::span<float> output,
             runtime::Deadline deadline) override {
    hang_->pass();
    return inner_->run(input, output, deadline);
  }
  void reset_state() override { inner_->reset_state(); }

 private:
  std::unique_ptr<pipeline::RoadModel> inner_;
  std::shared_ptr<Hang> hang_;
};

}  // namespace

void Hang::arm() {
  const std::lock_guard lock(mutex_);
  is_armed_ = true;
}

void Hang::release() {
  std::unique_lock lock(mutex_);
  is_released_ = true;
  changed_.notify_all();
  changed_.wait_for(lock, std::chrono::seconds(5), [this] { return hanging_ == 0; });
}

void Hang::pass() {
  std::unique_lock lock(mutex_);
  if (!is_armed_) return;
  is_armed_ = false;
  ++hanging_;
  changed_.wait(lock, [this] { return is_released_; });
  --hanging_;
  changed_.notify_all();
}

std::unique_ptr<pipeline::RoadModel> make_stubborn(std::unique_ptr<pipeline::RoadModel> inner,
                                                   std::shared_ptr<Hang> hang) {
  return std::make_unique<StubbornModel>(std::move(inner), std::move(hang));
}

}  // namespace ignis::examples
