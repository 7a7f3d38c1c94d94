#include "ignis/exec/synchronize.h"

#include "ignis/runtime/reasons.h"

#include <algorithm>

namespace ignis::exec {

using runtime::QueuedDevice;
using runtime::Submitted;
using runtime::WaitEnd;
using runtime::WaitLimits;

namespace {

constexpr int64_t kNsPerMs = 1'000'000;

std::string in_ms(int64_t ns) { return std::to_string(ns / kNsPerMs) + " ms"; }

/// One deadline over several waits.
class Remaining {
 public:
  Remaining(runtime::Clock& clock, const WaitLimits& limits)
      : clock_(clock),
        limits_(limits),
        end_ns_(runtime::add_ns(clock.now_ns(), std::max<int64_t>(limits.deadline_ns, 0))) {}
  WaitLimits limits() const {
    return {std::max<int64_t>(end_ns_ - clock_.now_ns(), 0), limits_.stall_ns};
  }

 private:
  runtime::Clock& clock_;
  const WaitLimits& limits_;
  int64_t end_ns_;
};

std::string what_is_missing(const Submitted& token) {
  return "reached " + std::to_string(token.device().timeline().reached->load()) + " of " +
         std::to_string(token.value());
}

Error hang_error(const QueuedDevice& device, const std::string& cause, const std::string& missing,
                 const WaitLimits& limits) {
  return Error(ErrorCode::DeviceLost,
               "Device '" + device.name() + "' hangs: it " + missing + " and nothing changed for " +
                   in_ms(limits.stall_ns) + " (" + cause + ").",
               std::string(runtime::reason::kDeviceHang));
}

Error deadline_error(const QueuedDevice& device, const std::string& missing,
                     const WaitLimits& limits) {
  return Error(ErrorCode::Timeout,
               "The limit of " + in_ms(limits.deadline_ns) + " for device '" + device.name() +
                   "' has passed: it " + missing + ".",
               std::string(runtime::reason::kDeadlineExceeded));
}

/// A batch whose devices wait for each other, found by number: an array of tokens, or what a device shares.
template <typename TokenAt>
std::optional<Submitted> find_dead(const TokenAt& at) {
  for (size_t i = 0;; ++i) {
    const std::optional<Submitted> token = at(i);
    if (!token) return std::nullopt;
    if (!token->is_reached() && !token->is_alive()) return token;
  }
}

/// Whom to blame when nothing moves: the first that is held up and does more than wait for the others.
template <typename TokenAt>
Submitted find_culprit(const TokenAt& at, const Submitted& otherwise) {
  for (size_t i = 0;; ++i) {
    const std::optional<Submitted> token = at(i);
    if (!token) return otherwise;
    if (token->is_alive() && !token->is_reached() && !token->device().only_waits()) return *token;
  }
}

/// Every device that is still held up by `lost` is out of order as well.
template <typename TokenAt>
void lose_sharers(const TokenAt& at, const QueuedDevice& lost) {
  for (size_t i = 0;; ++i) {
    const std::optional<Submitted> token = at(i);
    if (!token) return;
    if (&token->device() == &lost || token->is_reached() || !token->is_alive()) continue;
    token->device().report_hang("it shares a batch with device '" + lost.name() +
                                "', which is not available");
  }
}

/// Waits for `tokens` as one; `others` may not be lost meanwhile.
template <typename TokenAt, typename OtherAt>
Status wait_jointly(const TokenAt& at, const OtherAt& other_at, const Submitted& first,
                    const WaitLimits& limits) {
  const auto is_dead = [&] { return find_dead(at) || find_dead(other_at); };
  const auto progress = [&] {
    uint64_t sum = 0;
    bool all = true;
    for (size_t i = 0;; ++i) {
      const std::optional<Submitted> token = at(i);
      if (!token) break;
      all = all && token->is_reached();
      sum += token->device().timeline().reached->load();
    }
    return all ? UINT64_MAX : sum % UINT64_MAX;
  };
  const auto fail_because_of = [&](const Submitted& dead) -> Status {
    lose_sharers(at, dead.device());
    return device_unavailable(dead.device().name(), dead.device().state());
  };
  if (const std::optional<Submitted> dead = find_dead(at)) return fail_because_of(*dead);
  const WaitEnd end = wait_at_least(first.device().clock(), progress, UINT64_MAX, limits, is_dead);
  switch (end) {
    case WaitEnd::Reached: return {};  // also when the device was lost since: what was done is done
    case WaitEnd::Abandoned: {
      std::optional<Submitted> dead = find_dead(at);
      if (!dead) dead = find_dead(other_at);
      return fail_because_of(dead ? *dead : first);
    }
    case WaitEnd::Stalled:
    case WaitEnd::DeadlineExceeded: break;
  }
  std::optional<Submitted> late;
  for (size_t i = 0; !late; ++i) {
    const std::optional<Submitted> token = at(i);
    if (!token) return {};  // it came at the last moment
    if (!token->is_reached()) late = token;
  }
  if (end == WaitEnd::DeadlineExceeded) {
    return deadline_error(late->device(), what_is_missing(*late), limits);
  }
  Submitted culprit = *late;
  if (late->device().only_waits()) {
    culprit = find_culprit(at, find_culprit(other_at, *late));
  }
  const std::string missing = what_is_missing(culprit);
  const std::string cause = culprit.device().report_hang(missing);
  lose_sharers(at, culprit.device());
  return hang_error(culprit.device(), cause, missing, limits);
}

auto list_of(std::span<const Submitted> tokens) {
  return [tokens](size_t i) {
    return i < tokens.size() ? std::optional<Submitted>(tokens[i]) : std::nullopt;
  };
}

/// The token of everything that was announced on a device.
Submitted announced_on(QueuedDevice& device) {
  for (;;) {
    // A restart empties `announced` before it counts itself, so a pair read across one is one that was drained.
    const uint64_t restarts = device.timeline().restarts.load();
    const uint64_t announced = device.timeline().announced.load();
    const Submitted token = Submitted::after_submit(device, announced);
    if (device.timeline().restarts.load() == restarts) return token;
  }
}

}  // namespace

WaitLimits default_limits(const runtime::Capabilities& capabilities) {
  const int64_t limit_ns = (capabilities.crosses_host_memory ? 3'000 : 30'000) * kNsPerMs;
  return {.deadline_ns = limit_ns, .stall_ns = limit_ns};
}

void PendingOwners::note(std::string_view owner, const Submitted& batch) {
  const std::lock_guard lock(mutex_);
  auto found = touching_.find(owner);
  if (found == touching_.end()) found = touching_.try_emplace(std::string(owner)).first;
  for (Submitted& token : found->second) {
    if (&token.device() != &batch.device()) continue;
    token = batch;
    return;
  }
  found->second.push_back(batch);
}

void PendingOwners::note_batch(std::span<const Submitted> batch) {
  if (batch.size() < 2) return;
  const std::lock_guard lock(mutex_);
  for (const Submitted& own : batch) {
    const std::string& name = own.device().name();
    auto found = sharing_.find(name);
    if (found == sharing_.end()) found = sharing_.try_emplace(name).first;
    for (const Submitted& other : batch) {
      if (&other.device() == &own.device()) continue;
      const auto same =
          std::find_if(found->second.begin(), found->second.end(),
                       [&](const Shared& s) { return &s.other.device() == &other.device(); });
      if (same != found->second.end()) {
        *same = {own, other};
      } else {
        found->second.push_back({own, other});
      }
    }
  }
}

std::optional<Submitted> PendingOwners::at(std::string_view owner, size_t index) const {
  const std::lock_guard lock(mutex_);
  const auto found = touching_.find(owner);
  if (found == touching_.end() || index >= found->second.size()) return std::nullopt;
  return found->second[index];
}

std::optional<Submitted> PendingOwners::sharer(std::string_view device, size_t index) const {
  const std::lock_guard lock(mutex_);
  const auto found = sharing_.find(device);
  if (found == sharing_.end()) return std::nullopt;
  for (const Shared& shared : found->second) {
    // What this device has passed, or lost with an earlier generation, holds it up no more.
    if (shared.own.is_reached() || !shared.own.is_alive()) continue;
    if (index-- == 0) return shared.other;
  }
  return std::nullopt;
}

Status synchronize(QueuedDevice& device, const PendingOwners& pending, const WaitLimits& limits) {
  if (!device.is_online()) return device_unavailable(device.name(), device.state());
  const Remaining remaining(device.clock(), limits);
  const Submitted own = announced_on(device);
  const auto only_own = [&](size_t i) -> std::optional<Submitted> {
    if (i > 0) return std::nullopt;
    if (own.is_reached()) return own;
    // A submit that failed took its announcement back: nobody will store that value before the next one.
    const Submitted now = announced_on(device);
    return now.generation() == own.generation() && now.value() < own.value() ? now : own;
  };
  const auto sharers = [&](size_t i) -> std::optional<Submitted> {
    return pending.sharer(device.name(), i);
  };
  IGNIS_TRY(wait_jointly(only_own, sharers, own, remaining.limits()));
  return synchronize_owner(device.name(), pending, remaining.limits());
}

Status synchronize_owner(std::string_view owner, const PendingOwners& pending,
                         const WaitLimits& limits) {
  std::optional<Remaining> remaining;
  for (size_t i = 0;; ++i) {
    const std::optional<Submitted> token = pending.at(owner, i);
    if (!token) return {};
    if (token->device().generation() != token->generation()) continue;
    if (!remaining) remaining.emplace(token->device().clock(), limits);
    const auto sharers = [&](size_t k) { return pending.sharer(token->device().name(), k); };
    IGNIS_TRY(wait_jointly(list_of({&*token, 1}), sharers, *token, remaining->limits()));
  }
}

Status wait_for(std::span<const Submitted> tokens, const WaitLimits& limits) {
  const auto nobody = [](size_t) -> std::optional<Submitted> { return std::nullopt; };
  WaitLimits left = limits;
  // Devices that wait for each other have one clock; the host's worker has its own, and shares a batch with nobody.
  for (size_t first = 0; first < tokens.size(); ++first) {
    runtime::Clock& clock = tokens[first].device().clock();
    const auto has_clock = [&](const Submitted& token) {
      return &token.device().clock() == &clock;
    };
    if (std::any_of(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(first),
                    has_clock)) {
      continue;
    }
    const auto of_clock = [&](size_t i) -> std::optional<Submitted> {
      for (size_t k = first; k < tokens.size(); ++k) {
        if (has_clock(tokens[k]) && i-- == 0) return tokens[k];
      }
      return std::nullopt;
    };
    const int64_t begin_ns = clock.now_ns();
    IGNIS_TRY(wait_jointly(of_clock, nobody, tokens[first], left));
    left.deadline_ns = std::max<int64_t>(0, left.deadline_ns - (clock.now_ns() - begin_ns));
  }
  return {};
}

}  // namespace ignis::exec
