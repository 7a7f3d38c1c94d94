#include "ignis/exec/replay_tokens.h"

#include "ignis/exec/run_linked.h"
#include "ignis/exec/synchronize.h"

#include <utility>

namespace ignis::exec {

void ReplayTokens::expect(size_t count) {
  const std::lock_guard lock(mutex_);
  for (Entry& entry : entries_) entry.tokens.reserve(count);
}

void ReplayTokens::note(uint64_t sequence, const LinkedSchedule& linked) {
  const std::lock_guard lock(mutex_);
  Entry& entry = entries_[sequence % entries_.size()];
  entry.sequence = sequence;
  entry.tokens.clear();
  for (const LinkedStep& step : linked.steps()) {
    if (step.batch == nullptr) continue;
    const auto submitted = step.batch->fence->submitted();
    entry.tokens.insert(entry.tokens.end(), submitted.begin(), submitted.end());
  }
}

void ReplayTokens::note_complete(uint64_t sequence) {
  uint64_t seen = complete_.load();
  while (seen < sequence && !complete_.compare_exchange_weak(seen, sequence)) {
  }
}

Result<runtime::DataReadable> ReplayTokens::prove(uint64_t sequence, const Placement& at,
                                                  const runtime::WaitLimits& limits) {
  // Waited for without the lock: the next replay notes its own meanwhile.
  thread_local std::vector<runtime::Submitted> tokens;
  bool is_known = false;
  {
    const std::lock_guard lock(mutex_);
    const Entry& entry = entries_[sequence % entries_.size()];
    is_known = entry.sequence == sequence;
    if (is_known) tokens.assign(entry.tokens.begin(), entry.tokens.end());
  }
  if (is_known) {
    if (!tokens.empty()) IGNIS_TRY(wait_for(tokens, limits));
    note_complete(sequence);
    IGNIS_TRY(make_visible(*machine_, at));
  } else {
    IGNIS_TRY(make_readable(*machine_, at, limits));
  }
  const runtime::MemoryBytes bytes{at.memory.get(), at.offset_bytes,
                                   at.offset_bytes + at.size_bytes};
  std::optional<runtime::DataReadable> proof = runtime::DataReadable::prove(bytes, {}, {});
  IGNIS_CHECK(proof.has_value());
  return *std::move(proof);
}

}  // namespace ignis::exec
