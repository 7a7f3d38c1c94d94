#pragma once

#include "ignis/base/result.h"
#include "ignis/exec/run_time_ring.h"
#include "ignis/runtime/clock.h"
#include "ignis/runtime/completion.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace ignis::exec {

/// Who owns what a replay wrote, and for how long (capture spec 5).
enum class OutputMode : uint8_t {
  Borrow,  ///< the captured storage: until the next replay starts
  Copy,    ///< storage of its own for each replay: until its last handle is dropped
  Ring,    ///< replay k writes set k mod N: until replay k + N starts
  Caller,  ///< the caller's storage: the caller decides
};
std::string_view to_string(OutputMode mode);

struct OutputSpec {
  std::string name;
  uint64_t size_bytes = 0;
};

struct OutputOptions {
  OutputMode mode = OutputMode::Borrow;
  int ring_size = 3;                ///< Ring
  int max_sets = 16;                ///< Copy, Caller: results that may have a handle at one time
  uint64_t first_sequence = 1;      ///< goes on after a rebind
  std::vector<Placement> borrowed;  ///< Borrow: the captured storage, one place for each output
  /// Copy, Ring: makes storage. Empty: the host's. Not asked again once there are as many sets as are alive at one time.
  std::function<Result<runtime::MemoryRef>(int output, uint64_t size_bytes)> allocate;
  /// Proves, within its limits, that the host may read an output of a replay; asked once for each before its first read. Empty:
  /// a replay is complete and visible when finish() is called.
  std::function<Result<runtime::DataReadable>(uint64_t sequence, int output, const Placement& at,
                                              const runtime::WaitLimits& limits)>
      make_readable;
  runtime::Clock* clock = nullptr;  ///< null: the real one
};

class OutputTurn;
class OutputPin;
class OutputHandle;

namespace detail {
class OutputSets;
struct OutputSet;
}  // namespace detail

/// The output storage of one capture. All functions of it and of what it hands out may be called from any thread, and what it
/// handed out may outlive it. In the steady state nothing allocates.
class Outputs {
 public:
  /// Errors: InvalidArgument for options that do not fit the mode; OutOfMemory (Ring allocates here).
  static Result<Outputs> create(std::vector<OutputSpec> outputs, OutputOptions options);

  /// Starts a replay: results whose time is over are stale from here on. Waits for pins on the storage that it will write, and
  /// for a replay that still writes it. `callers` is the caller's storage in mode Caller, else empty.
  ///
  /// Errors, after which every result is what it was: Timeout with the reason OutputPinned; OutOfMemory with the reason OutputPoolFull when
  /// max_sets results have handles; InvalidArgument with the reason OutputMismatch for storage that does not fit; as
  /// OutputOptions::allocate.
  Result<OutputTurn> begin(const runtime::WaitLimits& limits,
                           std::span<const Placement> callers = {});

  /// Gives back storage of mode Copy that no result uses. Returns its bytes.
  uint64_t release_idle();
  /// Every result is stale from here on, and its storage let go unless a reader pins it. Returns the bytes let go. Nothing may
  /// be under way; what comes next needs a new object.
  uint64_t invalidate();
  /// Sets of storage that there are, for tests and reports.
  size_t set_count() const;
  /// Of the next replay.
  uint64_t next_sequence() const;

 private:
  explicit Outputs(std::shared_ptr<detail::OutputSets> sets) : sets_(std::move(sets)) {}
  std::shared_ptr<detail::OutputSets> sets_;
};

/// A replay under way: where it writes. Dropped without finish(), the replay failed and nobody gets a handle.
class OutputTurn {
 public:
  OutputTurn(OutputTurn&& other) noexcept;
  OutputTurn& operator=(OutputTurn&& other) noexcept;
  ~OutputTurn();

  uint64_t sequence() const { return sequence_; }
  /// One place for each output.
  std::span<const Placement> places() const;
  OutputHandle finish() &&;
  /// The replay failed and its device may still write: its storage is never handed out again but kept for the process. Borrowed
  /// storage stays, because commands hold its address.
  void abandon() &&;
  /// As abandon(), for a device that will come to an end: the caller keeps the storage until then.
  std::vector<Placement> withdraw() &&;

 private:
  friend class detail::OutputSets;
  OutputTurn(std::shared_ptr<detail::OutputSets> sets, detail::OutputSet* set, uint64_t sequence)
      : sets_(std::move(sets)), set_(set), sequence_(sequence) {}
  std::shared_ptr<detail::OutputSets> sets_;  ///< null after a move
  detail::OutputSet* set_ = nullptr;
  uint64_t sequence_ = 0;
};

/// The result of one replay. Copies are handles of the same result.
class OutputHandle {
 public:
  OutputHandle(const OutputHandle& other);
  OutputHandle(OutputHandle&& other) noexcept;
  OutputHandle& operator=(OutputHandle other) noexcept;
  ~OutputHandle();

  uint64_t sequence() const { return sequence_; }
  bool is_stale() const;
  /// Where an output lies, to hand it on as an input. Errors: InvalidArgument with the reason StaleOutput, or for no such output.
  Result<Placement> place(int output) const;
  /// Keeps the result from being written over while it is read. Errors: InvalidArgument with the reason StaleOutput.
  Result<OutputPin> pin() const;
  /// Copies an output to `to`, which has its size.
  /// Errors: as pin() and OutputPin::bytes(); InvalidArgument for another size.
  Status read(int output, std::span<std::byte> to, const runtime::WaitLimits& limits) const;

 private:
  friend class OutputTurn;
  OutputHandle(std::shared_ptr<detail::OutputSets> sets, detail::OutputSet* set, uint64_t sequence)
      : sets_(std::move(sets)), set_(set), sequence_(sequence) {}
  std::shared_ptr<detail::OutputSets> sets_;  ///< null after a move
  detail::OutputSet* set_ = nullptr;
  uint64_t sequence_ = 0;
};

/// While it lives no replay writes over the result. A replay that wants to waits, so hold it shortly.
class OutputPin {
 public:
  OutputPin(OutputPin&& other) noexcept;
  OutputPin& operator=(OutputPin&& other) noexcept;
  ~OutputPin();

  /// The bytes of an output as the host reads them; valid while the pin lives.
  /// Errors: InvalidArgument for no such output; Unsupported with the reason NotHostVisible; as make_readable.
  Result<std::span<const std::byte>> bytes(int output, const runtime::WaitLimits& limits) const;

 private:
  friend class OutputHandle;
  OutputPin(std::shared_ptr<detail::OutputSets> sets, detail::OutputSet* set, uint64_t sequence)
      : sets_(std::move(sets)), set_(set), sequence_(sequence) {}
  std::shared_ptr<detail::OutputSets> sets_;  ///< null after a move
  detail::OutputSet* set_ = nullptr;
  uint64_t sequence_ = 0;
};

}  // namespace ignis::exec
