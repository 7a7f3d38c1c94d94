#include "ignis/exec/link.h"

#include "ignis/exec/linked_schedule.h"
#include "ignis/exec/linker.h"
#include "ignis/runtime/reasons.h"

#include <algorithm>
#include <utility>

namespace ignis::exec {

bool RunToken::is_complete() const {
  const std::lock_guard lock(mutex_);
  if (!is_sealed_) return false;
  for (const runtime::Submitted& submitted : submitted_) {
    if (submitted.is_reached()) continue;
    // Losing a device resolves its tokens; a thread of the CPU's that hangs may still be at work.
    if (submitted.is_alive() || !submitted.device().is_quiet(submitted.generation())) return false;
  }
  return true;
}

bool RunToken::is_stuck() const {
  const std::lock_guard lock(mutex_);
  return std::any_of(submitted_.begin(), submitted_.end(), [](const runtime::Submitted& submitted) {
    return !submitted.is_reached() && !submitted.is_alive() &&
           !submitted.device().is_quiet(submitted.generation());
  });
}

void RunToken::add(std::span<const runtime::Submitted> submitted) {
  const std::lock_guard lock(mutex_);
  submitted_.insert(submitted_.end(), submitted.begin(), submitted.end());
}

void RunToken::seal() {
  const std::lock_guard lock(mutex_);
  is_sealed_ = true;
}

LinkedSchedule::~LinkedSchedule() {
  if (ring_token_ != nullptr) ring_token_->seal();
  auto token = std::make_shared<RunToken>();
  for (const LinkedStep& step : steps_) {
    if (step.batch != nullptr && step.batch->fence) token->add(step.batch->fence->submitted());
  }
  token->seal();
  if (machine_ == nullptr || token->is_complete()) return;
  struct Kept {
    std::vector<std::vector<Placement>> buffers;
    std::vector<runtime::MemoryRef> kept, bound, bound_before;
    std::vector<LinkedStep> steps;
  };
  machine_->retire(std::move(token), std::make_shared<Kept>(Kept{
                                         std::move(buffers_), std::move(kept_), std::move(bound_),
                                         std::move(bound_before_), std::move(steps_)}));
}

Status LinkedSchedule::check_devices() const {
  for (const UsedDevice& used : devices_) {
    const uint64_t generation = used.device->generation();
    if (generation != used.generation) {
      return runtime::stale_link(used.device->name(), used.generation, generation);
    }
    if (!used.device->is_online()) {
      return runtime::device_unavailable(used.device->name(), used.device->state());
    }
  }
  return Status::ok();
}

SharedTemplate::SharedTemplate(QueueTemplate made) : queues_(std::move(made)) {}
SharedTemplate::~SharedTemplate() = default;

Result<std::shared_ptr<LinkedSchedule>> SharedTemplate::link_cached(
    const TemplateRef& self, const std::shared_ptr<Machine>& machine) {
  const std::lock_guard lock(self->mutex_);
  for (const std::unique_ptr<LinkedSchedule>& held : self->links_) {
    if (held->machine_ == machine && held->check_devices()) {
      // Whoever holds the link holds the template, and with it the link.
      return std::shared_ptr<LinkedSchedule>(self, held.get());
    }
  }
  IGNIS_TRY_ASSIGN(std::unique_ptr<LinkedSchedule> made,
                   Linker(machine, self->queues_, {}, LinkMode::Own).link());
  LinkedSchedule* const linked = made.get();
  self->links_.push_back(std::move(made));
  return std::shared_ptr<LinkedSchedule>(self, linked);
}

Result<std::shared_ptr<LinkedSchedule>> link(const std::shared_ptr<Machine>& machine,
                                             const TemplateRef& made,
                                             std::span<const BoundInput> inputs,
                                             const LinkOptions& options) {
  machine->collect();
  const bool bakes = made->queues().has_link_time_inputs;
  if (options.allow_cache && !bakes) return SharedTemplate::link_cached(made, machine);
  const LinkMode mode = options.allow_cache ? LinkMode::Ring : LinkMode::Jit;
  IGNIS_TRY_ASSIGN(std::unique_ptr<LinkedSchedule> linked,
                   Linker(machine, made->queues(), inputs, mode, options.held).link());
  linked->keep(made);
  return std::shared_ptr<LinkedSchedule>(std::move(linked));
}

}  // namespace ignis::exec
