#include "ignis/exec/outputs.h"

#include "ignis/exec/host_memory.h"
#include "ignis/runtime/device.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <string_view>
#include <utility>

namespace ignis::exec {
namespace detail {

/// Storage for all outputs of one replay.
struct OutputSet {
  std::vector<Placement> places;
  uint64_t sequence = 0;  ///< of the replay that wrote it last or writes it now; 0: none
  bool is_written = false;
  int pins = 0;
  int handles = 0;
  std::vector<uint8_t> is_readable;  ///< by output
};

class OutputSets : public std::enable_shared_from_this<OutputSets> {
 public:
  OutputSets(std::vector<OutputSpec> outputs, OutputOptions options)
      : outputs_(std::move(outputs)), options_(std::move(options)) {
    next_ = options_.first_sequence;
    if (options_.clock == nullptr) options_.clock = &runtime::Clock::real();
  }

  /// Errors: OutOfMemory.
  Status prepare() {
    const size_t count =
        is_pool() ? static_cast<size_t>(options_.max_sets) : static_cast<size_t>(ring_size());
    sets_.reserve(count);  // pointers into it are handed out
    if (is_pool()) return Status::ok();
    for (size_t i = 0; i < count; ++i) {
      OutputSet& set = add_set();
      if (options_.mode == OutputMode::Borrow) {
        set.places = options_.borrowed;
      } else {
        IGNIS_TRY(allocate(set));
      }
    }
    return Status::ok();
  }

  Result<OutputTurn> begin(const runtime::WaitLimits& limits, std::span<const Placement> callers) {
    if (options_.mode == OutputMode::Caller) IGNIS_TRY(check_callers(callers));
    struct Attempt {
      OutputSets* sets;
      OutputSet* set = nullptr;
      uint64_t sequence = 0;
    } attempt{this};
    if (is_pool()) {
      IGNIS_TRY_ASSIGN(attempt.set, take_from_pool(&attempt.sequence));
    } else {
      const runtime::WaitEnd end = runtime::wait_at_least(
          *options_.clock,
          [&attempt]() -> uint64_t {
            attempt.set = attempt.sets->try_take_in_turn(&attempt.sequence);
            return attempt.set != nullptr ? 1 : 0;
          },
          1, limits);
      if (end != runtime::WaitEnd::Reached) return pinned();
    }
    // The set is this turn's alone from here on.
    OutputTurn turn(shared_from_this(), attempt.set, attempt.sequence);
    if (options_.mode == OutputMode::Caller) {
      attempt.set->places.assign(callers.begin(), callers.end());
    } else if (attempt.set->places.size() != outputs_.size()) {
      IGNIS_TRY(allocate(*attempt.set));
    }
    return turn;
  }

  void finish(OutputSet& set) {
    const std::lock_guard lock(mutex_);
    set.is_written = false;
    set.handles = 1;
  }

  /// The replay failed: what it left is nobody's result. Returns storage that may still be written.
  std::vector<Placement> fail(OutputSet& set, bool may_still_be_written) {
    std::vector<Placement> kept;
    const std::lock_guard lock(mutex_);
    set.is_written = false;
    set.sequence = 0;
    if (may_still_be_written && options_.mode != OutputMode::Borrow) kept.swap(set.places);
    if (options_.mode == OutputMode::Caller) set.places.clear();
    return kept;
  }

  void add_handle(OutputSet& set, uint64_t sequence) {
    const std::lock_guard lock(mutex_);
    if (set.sequence == sequence) ++set.handles;
  }
  void drop_handle(OutputSet& set, uint64_t sequence) {
    const std::lock_guard lock(mutex_);
    if (set.sequence != sequence) return;  // the set has gone on to another replay
    --set.handles;
    release_caller(set);
  }
  bool is_stale(const OutputSet& set, uint64_t sequence) const {
    const std::lock_guard lock(mutex_);
    return set.sequence != sequence;
  }
  Status add_pin(OutputSet& set, uint64_t sequence) {
    const std::lock_guard lock(mutex_);
    if (set.sequence != sequence) return stale(sequence);
    ++set.pins;
    return Status::ok();
  }
  void drop_pin(OutputSet& set) {
    const std::lock_guard lock(mutex_);
    --set.pins;
    release_caller(set);
  }

  Result<Placement> place(const OutputSet& set, uint64_t sequence, int output) const {
    IGNIS_TRY(check_output(output));
    const std::lock_guard lock(mutex_);
    if (set.sequence != sequence) return stale(sequence);
    return set.places[static_cast<size_t>(output)];
  }

  /// Of a set that is pinned, and so stays as it is.
  Result<std::span<const std::byte>> bytes(OutputSet& set, uint64_t sequence, int output,
                                           const runtime::WaitLimits& limits) {
    IGNIS_TRY(check_output(output));
    const auto index = static_cast<size_t>(output);
    const Placement& at = set.places[index];
    if (at.memory->host() == nullptr) {
      return Error(ErrorCode::Unsupported,
                   "Output '" + outputs_[index].name + "' lies in memory of '" +
                       at.memory->owner() + "' that the host cannot reach; copy it there first.",
                   "NotHostVisible");
    }
    if (options_.make_readable && !is_readable(set, index)) {
      IGNIS_TRY_ASSIGN(const runtime::DataReadable proof,
                       options_.make_readable(sequence, output, at, limits));
      const runtime::MemoryBytes& proved = proof.bytes();
      IGNIS_CHECK(proved.memory == at.memory.get() && proved.begin_bytes <= at.offset_bytes &&
                  at.offset_bytes + outputs_[index].size_bytes <= proved.end_bytes)
          << "Other bytes than those of output '" << outputs_[index].name << "' were proved.";
      const std::lock_guard lock(mutex_);
      set.is_readable[index] = 1;
    }
    return std::span<const std::byte>(at.memory->host() + at.offset_bytes,
                                      outputs_[index].size_bytes);
  }

  uint64_t release_idle() {
    std::vector<std::vector<Placement>> dropped;
    const std::lock_guard lock(mutex_);
    if (options_.mode != OutputMode::Copy) return 0;
    uint64_t bytes = 0;
    for (OutputSet& set : sets_) {
      if (!is_free(set)) continue;
      for (const Placement& at : set.places) bytes += at.size_bytes;
      dropped.push_back(std::move(set.places));
      set.places.clear();
    }
    return bytes;
  }
  uint64_t invalidate() {
    std::vector<std::vector<Placement>> dropped;
    const std::lock_guard lock(mutex_);
    uint64_t bytes = 0;
    for (OutputSet& set : sets_) {
      set.sequence = 0;
      set.handles = 0;
      if (set.is_written || set.pins > 0) continue;
      for (const Placement& at : set.places) bytes += at.size_bytes;
      dropped.push_back(std::move(set.places));
      set.places.clear();
    }
    return bytes;
  }
  size_t set_count() const {
    const std::lock_guard lock(mutex_);
    return static_cast<size_t>(std::count_if(sets_.begin(), sets_.end(), [](const OutputSet& set) {
      return set.is_written || !set.places.empty();
    }));
  }
  uint64_t next_sequence() const {
    const std::lock_guard lock(mutex_);
    return next_;
  }

 private:
  /// Sets are taken wherever one is free, and not in turn.
  bool is_pool() const {
    return options_.mode == OutputMode::Copy || options_.mode == OutputMode::Caller;
  }
  int ring_size() const { return options_.mode == OutputMode::Ring ? options_.ring_size : 1; }
  static bool is_free(const OutputSet& set) {
    return !set.is_written && set.pins == 0 && set.handles == 0;
  }

  OutputSet& add_set() {
    OutputSet& set = sets_.emplace_back();
    set.is_readable.resize(outputs_.size());
    set.places.reserve(outputs_.size());
    return set;
  }

  Status allocate(OutputSet& set) {
    set.places.clear();
    set.places.reserve(outputs_.size());
    std::vector<Placement> places;
    for (size_t i = 0; i < outputs_.size(); ++i) {
      const uint64_t size_bytes = outputs_[i].size_bytes;
      IGNIS_TRY_ASSIGN(runtime::MemoryRef memory,
                       options_.allocate ? options_.allocate(static_cast<int>(i), size_bytes)
                                         : allocate_host_memory("CPU", size_bytes));
      if (memory == nullptr || memory->size_bytes() < size_bytes) {
        return Error(ErrorCode::InvalidArgument,
                     "Output '" + outputs_[i].name + "' has " + std::to_string(size_bytes) +
                         " bytes; its storage was made with " +
                         std::to_string(memory == nullptr ? 0 : memory->size_bytes()) + ".",
                     "OutputMismatch");
      }
      places.push_back({std::move(memory), 0, size_bytes});
    }
    set.places = std::move(places);  // all or none
    return Status::ok();
  }

  /// Ring, Borrow: the next replay's set, unless it is in use.
  OutputSet* try_take_in_turn(uint64_t* sequence) {
    const std::lock_guard lock(mutex_);
    OutputSet& set = sets_[next_ % sets_.size()];
    if (set.is_written || set.pins > 0) return nullptr;
    take(set, sequence);
    return &set;
  }

  Result<OutputSet*> take_from_pool(uint64_t* sequence) {
    const std::lock_guard lock(mutex_);
    // One that has storage before one that has none.
    OutputSet* found = nullptr;
    for (OutputSet& set : sets_) {
      if (is_free(set) && (found == nullptr || (found->places.empty() && !set.places.empty()))) {
        found = &set;
      }
    }
    if (found == nullptr && sets_.size() < static_cast<size_t>(options_.max_sets)) {
      found = &add_set();
    }
    if (found == nullptr) {
      return Error(ErrorCode::OutOfMemory,
                   "All " + std::to_string(options_.max_sets) +
                       " results that may be alive have a handle; drop one or allow more.",
                   "OutputPoolFull");
    }
    take(*found, sequence);
    return found;
  }

  void take(OutputSet& set, uint64_t* sequence) {
    set.sequence = *sequence = next_++;
    set.is_written = true;
    set.handles = 0;
    std::fill(set.is_readable.begin(), set.is_readable.end(), uint8_t{0});
  }

  /// Mode Caller: nobody looks at it any more.
  void release_caller(OutputSet& set) {
    if (options_.mode == OutputMode::Caller && is_free(set)) set.places.clear();
  }

  Status check_callers(std::span<const Placement> callers) const {
    if (callers.size() != outputs_.size()) {
      return Error(ErrorCode::InvalidArgument,
                   "The capture has " + std::to_string(outputs_.size()) +
                       " outputs; the caller passes storage for " + std::to_string(callers.size()) +
                       ".",
                   "OutputMismatch");
    }
    for (size_t i = 0; i < callers.size(); ++i) {
      const Placement& at = callers[i];
      const uint64_t total = at.memory == nullptr ? 0 : at.memory->size_bytes();
      const uint64_t room = total - std::min(at.offset_bytes, total);
      if (std::min(room, at.size_bytes) == outputs_[i].size_bytes && at.size_bytes <= room &&
          at.memory != nullptr) {
        continue;
      }
      return Error(ErrorCode::InvalidArgument,
                   "Output '" + outputs_[i].name + "' has " +
                       std::to_string(outputs_[i].size_bytes) + " bytes; the caller passes " +
                       std::to_string(at.size_bytes) + " at byte " +
                       std::to_string(at.offset_bytes) + " of " + std::to_string(total) + ".",
                   "OutputMismatch");
    }
    return Status::ok();
  }
  Status check_output(int output) const {
    if (output >= 0 && static_cast<size_t>(output) < outputs_.size()) return Status::ok();
    return Error(ErrorCode::InvalidArgument, "Output " + std::to_string(output) +
                                                 " is asked for; there are " +
                                                 std::to_string(outputs_.size()) + ".");
  }
  bool is_readable(const OutputSet& set, size_t output) const {
    const std::lock_guard lock(mutex_);
    return set.is_readable[output] != 0;
  }

  Error stale(uint64_t sequence) const {
    const std::string_view until = options_.mode == OutputMode::Ring
                                       ? "a later replay wrote over its set"
                                       : "a later replay wrote over it";
    return Error(
        ErrorCode::InvalidArgument,
        "The result of replay " + std::to_string(sequence) + " is gone: " + std::string(until) +
            " (mode " + std::string(to_string(options_.mode)) + "; the next is " +
            std::to_string(next_) + "). Read it earlier or choose a mode that keeps it longer.",
        "StaleOutput");
  }
  Error pinned() const {
    return Error(ErrorCode::Timeout,
                 "Replay " + std::to_string(next_sequence()) +
                     " cannot start: the storage that it writes is pinned by a reader or still "
                     "written. Drop the pin or use a longer ring.",
                 "OutputPinned");
  }

  std::vector<OutputSpec> outputs_;
  OutputOptions options_;
  mutable std::mutex mutex_;  ///< guards what follows, but not `places` of a set that is taken
  uint64_t next_ = 1;
  std::vector<OutputSet> sets_;
};

}  // namespace detail

namespace {
constexpr int kMaxSets = 4096;  // far more than memory allows: against a wrong number
}

std::string_view to_string(OutputMode mode) {
  switch (mode) {
    case OutputMode::Borrow: return "borrow";
    case OutputMode::Copy: return "copy";
    case OutputMode::Ring: return "ring";
    case OutputMode::Caller: return "caller";
  }
  return "?";
}

Result<Outputs> Outputs::create(std::vector<OutputSpec> outputs, OutputOptions options) {
  const auto refuse = [](std::string what) {
    return Error(ErrorCode::InvalidArgument, std::move(what), "BadOutputOptions");
  };
  const auto is_count = [](int count) { return count >= 1 && count <= kMaxSets; };
  if (options.first_sequence == 0) return refuse("Sequence numbers begin at 1; 0 is given.");
  if (options.mode == OutputMode::Ring && !is_count(options.ring_size)) {
    return refuse("A ring has 1 to " + std::to_string(kMaxSets) + " sets; " +
                  std::to_string(options.ring_size) + " are given.");
  }
  if ((options.mode == OutputMode::Copy || options.mode == OutputMode::Caller) &&
      !is_count(options.max_sets)) {
    return refuse("1 to " + std::to_string(kMaxSets) + " results may be alive; " +
                  std::to_string(options.max_sets) + " are given.");
  }
  const size_t borrowed = options.mode == OutputMode::Borrow ? outputs.size() : 0;
  if (options.borrowed.size() != borrowed) {
    return refuse("Mode " + std::string(to_string(options.mode)) + " takes " +
                  std::to_string(borrowed) + " places of captured storage; " +
                  std::to_string(options.borrowed.size()) + " are given.");
  }
  for (size_t i = 0; i < borrowed; ++i) {
    const Placement& at = options.borrowed[i];
    const uint64_t total = at.memory == nullptr ? 0 : at.memory->size_bytes();
    if (at.memory == nullptr || at.offset_bytes > total ||
        outputs[i].size_bytes > total - at.offset_bytes) {
      return refuse("Output '" + outputs[i].name + "' has " +
                    std::to_string(outputs[i].size_bytes) + " bytes at byte " +
                    std::to_string(at.offset_bytes) + "; its storage has " + std::to_string(total) +
                    ".");
    }
  }
  auto sets = std::make_shared<detail::OutputSets>(std::move(outputs), std::move(options));
  IGNIS_TRY(sets->prepare());
  return Outputs(std::move(sets));
}

Result<OutputTurn> Outputs::begin(const runtime::WaitLimits& limits,
                                  std::span<const Placement> callers) {
  return sets_->begin(limits, callers);
}
uint64_t Outputs::release_idle() { return sets_->release_idle(); }
uint64_t Outputs::invalidate() { return sets_->invalidate(); }
size_t Outputs::set_count() const { return sets_->set_count(); }
uint64_t Outputs::next_sequence() const { return sets_->next_sequence(); }

OutputTurn::OutputTurn(OutputTurn&& other) noexcept
    : sets_(std::move(other.sets_)), set_(other.set_), sequence_(other.sequence_) {}
OutputTurn& OutputTurn::operator=(OutputTurn&& other) noexcept {
  std::swap(sets_, other.sets_);
  std::swap(set_, other.set_);
  std::swap(sequence_, other.sequence_);
  return *this;
}
OutputTurn::~OutputTurn() {
  if (sets_ != nullptr) sets_->fail(*set_, false);
}
std::span<const Placement> OutputTurn::places() const { return set_->places; }
OutputHandle OutputTurn::finish() && {
  sets_->finish(*set_);
  return OutputHandle(std::exchange(sets_, nullptr), set_, sequence_);
}
void OutputTurn::abandon() && {
  std::vector<Placement> kept = std::move(*this).withdraw();
  if (kept.empty()) return;
  runtime::abandon(std::make_shared<const std::vector<Placement>>(std::move(kept)));
}
std::vector<Placement> OutputTurn::withdraw() && {
  return std::exchange(sets_, nullptr)->fail(*set_, true);
}

OutputHandle::OutputHandle(const OutputHandle& other)
    : sets_(other.sets_), set_(other.set_), sequence_(other.sequence_) {
  if (sets_ != nullptr) sets_->add_handle(*set_, sequence_);
}
OutputHandle::OutputHandle(OutputHandle&& other) noexcept
    : sets_(std::move(other.sets_)), set_(other.set_), sequence_(other.sequence_) {}
OutputHandle& OutputHandle::operator=(OutputHandle other) noexcept {
  std::swap(sets_, other.sets_);
  std::swap(set_, other.set_);
  std::swap(sequence_, other.sequence_);
  return *this;
}
OutputHandle::~OutputHandle() {
  if (sets_ != nullptr) sets_->drop_handle(*set_, sequence_);
}
bool OutputHandle::is_stale() const { return sets_->is_stale(*set_, sequence_); }
Result<Placement> OutputHandle::place(int output) const {
  return sets_->place(*set_, sequence_, output);
}
Result<OutputPin> OutputHandle::pin() const {
  IGNIS_TRY(sets_->add_pin(*set_, sequence_));
  return OutputPin(sets_, set_, sequence_);
}
Status OutputHandle::read(int output, std::span<std::byte> to,
                          const runtime::WaitLimits& limits) const {
  IGNIS_TRY_ASSIGN(const OutputPin pinned, pin());
  IGNIS_TRY_ASSIGN(const std::span<const std::byte> from, pinned.bytes(output, limits));
  if (from.size() != to.size()) {
    return Error(ErrorCode::InvalidArgument,
                 "Output " + std::to_string(output) + " has " + std::to_string(from.size()) +
                     " bytes; it is read into " + std::to_string(to.size()) + ".");
  }
  if (!from.empty()) std::memcpy(to.data(), from.data(), from.size());
  return Status::ok();
}

OutputPin::OutputPin(OutputPin&& other) noexcept
    : sets_(std::move(other.sets_)), set_(other.set_), sequence_(other.sequence_) {}
OutputPin& OutputPin::operator=(OutputPin&& other) noexcept {
  std::swap(sets_, other.sets_);
  std::swap(set_, other.set_);
  std::swap(sequence_, other.sequence_);
  return *this;
}
OutputPin::~OutputPin() {
  if (sets_ != nullptr) sets_->drop_pin(*set_);
}
Result<std::span<const std::byte>> OutputPin::bytes(int output,
                                                    const runtime::WaitLimits& limits) const {
  return sets_->bytes(*set_, sequence_, output, limits);
}

}  // namespace ignis::exec
