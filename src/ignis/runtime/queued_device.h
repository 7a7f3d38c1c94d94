#pragma once

#include "ignis/base/program_image.h"
#include "ignis/base/result.h"
#include "ignis/runtime/capabilities.h"
#include "ignis/runtime/clock.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace ignis::runtime {

/// Memory that a device or the host owns. Released when its last owner lets go.
class Memory {
 public:
  virtual ~Memory() = default;
  virtual const std::string& owner() const = 0;  ///< canonical device name; "CPU" for the host
  virtual uint64_t size_bytes() const = 0;
  /// Host address, or null when the host cannot reach it.
  virtual std::byte* host() const = 0;
};
using MemoryRef = std::shared_ptr<Memory>;

/// For which purpose memory is asked; a device may place each elsewhere.
enum class Purpose : uint8_t {
  Data,
  Arguments,
  Commands,
  Signals,
  AddressTable,
  Image,
  Stage,
  Wire
};

enum class DeviceCondition : uint8_t { Online, Stalled, Unavailable };

/// Why a device is not online, and which opening of it is meant.
struct DeviceState {
  DeviceCondition condition = DeviceCondition::Online;
  std::string reason;       ///< empty while online
  uint64_t generation = 1;  ///< rises with each reopen
};

/// The pair of 64-bit words that orders batches on a device: what it has reached and what was announced last. A value is
/// meant within one generation and one count of restarts: a token holds all three (completion.h).
struct Timeline {
  std::atomic<uint64_t>* reached = nullptr;  ///< written by the device's closing queue
  MemoryRef memory;                          ///< where `reached` lies, to be mapped by peers
  uint64_t offset_bytes = 0;                 ///< of `reached` in it
  std::atomic<uint64_t> announced{0};  ///< written under the device's submission lock, read by all
  /// How often the drained pair was set back to 0 because the words are narrow (queue spec W-13).
  std::atomic<uint64_t> restarts{0};
};

/// One step of a queue's stream, before a backend turns it into words. Which fields count depends on the kind.
struct Command {
  enum class Kind : uint8_t {
    Barrier,
    WaitReached,  ///< until the timeline of `device` is at least N[device] (what was announced before this batch)
    WaitSignal,    ///< until signal `signal` is at least `value`
    Exec,          ///< call `tag` of the batch
    Copy,          ///< call `tag` of the batch
    StoreSignal,   ///< signal `signal` = `value`
    StoreReached,  ///< the timeline of `device` = N[device] + 1
    Timestamp,     ///< the device's clock into time slot `slot`
  };
  Kind kind = Kind::Barrier;
  int device = -1;  ///< index into the batch's devices
  int signal = -1;  ///< index into the batch's signals: one for each (device, queue)
  uint64_t value = 0;
  int tag = -1;
  int slot = -1;
  bool operator==(const Command&) const = default;
};

/// A place in command words whose value is not known when they are encoded (queue spec 7).
struct Patch {
  enum class Source : uint8_t {
    Address,   ///< `index`: an address the linker knows by that number, plus `addend`
    Input,     ///< `index`: an input's address from the address table, plus `addend`
    Timeline,  ///< `index`: N of that device of the batch, plus `addend`
    Variable,  ///< `index`: a bound variable's value, plus `addend`
    Part,      ///< `index`: the address of that part of the same EncodedQueue, plus `addend`
  };
  uint32_t offset_bytes = 0;
  uint8_t width_bytes = 8;  ///< 1, 2, 4 or 8; narrow ones store the low bytes
  Source source = Source::Address;
  int index = 0;
  int64_t addend = 0;
  bool is_run_time() const { return source != Source::Address && source != Source::Part; }
  bool operator==(const Patch&) const = default;
};

/// Words that lie in memory beside a queue's commands, which point at them: a call's arguments, an indirect buffer.
struct EncodedPart {
  Purpose purpose = Purpose::Arguments;
  std::vector<std::byte> bytes;
  std::vector<Patch> patches;  ///< as those of the queue
  bool operator==(const EncodedPart&) const = default;
};

/// A queue's command words with their holes.
struct EncodedQueue {
  std::vector<std::byte> bytes;
  std::vector<Patch> patches;  ///< ascending offsets, none overlapping
  std::vector<EncodedPart> parts;
  bool operator==(const EncodedQueue&) const = default;
};

/// What a backend is told of a call when it encodes it: numbers of addresses, not addresses.
struct EncodedCall {
  int program = -1;             ///< Exec: number of the address of the program's image
  int64_t parts = 1;            ///< Exec: at most
  double flops = 0, bytes = 0;  ///< Exec: estimates; 0: not known
  std::vector<Patch>
      arguments;            ///< Exec: one for each buffer, in slot order; Copy: destination, source
  uint64_t size_bytes = 0;  ///< Copy
  /// A bound variable: `value`, or with an index variable number `index` of the run plus `value`.
  struct Variable {
    int index = -1;
    int64_t value = 0;
  };
  std::vector<Variable> variables;  ///< Exec: in order
};

/// A device with command queues: the backend contract of the queue spec, section 14. Functions may be called from any thread;
/// submission_lock() is held around space checks, announcing and submitting.
class QueuedDevice {
 public:
  virtual ~QueuedDevice() = default;
  virtual const std::string& name() const = 0;  ///< canonical
  virtual const Capabilities& capabilities() const = 0;
  virtual DeviceState state() const = 0;
  /// Parts of state() that are asked for often; a driver answers without a lock.
  virtual bool is_online() const { return state().condition == DeviceCondition::Online; }
  virtual uint64_t generation() const { return state().generation; }
  virtual Clock& clock() = 0;
  virtual Timeline& timeline() = 0;
  /// A timed lock: taken in the order of device names with one deadline.
  virtual bool try_lock_submission(int64_t deadline_ns) = 0;
  virtual void unlock_submission() = 0;

  /// Of the device that is the host: zeroed memory.
  virtual Result<MemoryRef> allocate(uint64_t size_bytes, Purpose purpose) = 0;
  /// The address at which this device reaches `memory`; maps it when it has not yet. A success is kept.
  /// Errors: Unsupported with the reason NotMappable; DeviceLost.
  virtual Result<uint64_t> map(const MemoryRef& memory) = 0;

  /// Memory of the backend's own choice for what a link needs, asked before the linker allocates; null: no rule.
  virtual Result<MemoryRef> place(Purpose /*purpose*/, uint64_t /*size_bytes*/,
                                  bool /*is_volatile*/) {
    return MemoryRef();
  }
  /// Changes when encode() makes other words of the same commands; part of every template's key.
  virtual uint32_t encoder_version() const { return 1; }

  /// Whether `memory` of this device still holds what was written to it before the last reopen. Only memory that can be proven
  /// whole counts; what commands that were under way wrote is undefined all the same.
  virtual bool is_whole(const Memory& /*memory*/) const { return generation() == 1; }

  /// Whether nothing that was submitted in `generation`, which was lost, can touch memory any more. A device that is reset
  /// touches none; a thread that hangs in a program does.
  virtual bool is_quiet(uint64_t /*generation*/) const { return true; }

  /// `image` made ready by the backend itself, as memory whose address is what an exec names; null: it is made by the two
  /// functions below. Errors: InvalidArgument, Unsupported, OutOfMemory.
  virtual Result<MemoryRef> load_image(const ProgramImage& /*image*/) { return MemoryRef(); }
  /// The bytes that make `image` a program of this device where they lie, in memory for Purpose::Image.
  /// Errors: InvalidArgument, Unsupported.
  virtual Result<std::vector<std::byte>> make_image(const ProgramImage& image) const {
    return image.object;
  }
  /// Writes into memory of this device. After an error a part may have been written.
  /// Errors: InvalidArgument for bytes outside, DeviceLost with the reason UploadFailed or DeviceUnavailable.
  virtual Status upload(const MemoryRef& to, uint64_t offset_bytes,
                        std::span<const std::byte> bytes);
  /// Stores a word of 1, 2, 4 or 8 bytes, little-endian, into memory of this device: how a run changes words that the host
  /// reaches only through a window (Capabilities::crosses_host_memory). Allocates nothing. Errors: as upload().
  virtual Status store_word(const MemoryRef& to, uint64_t offset_bytes, uint64_t value,
                            uint32_t width_bytes);
  /// Makes what the device wrote to these bytes visible to a reader on the host; nothing to do where memory is coherent.
  virtual Status make_visible(const MemoryRef& /*memory*/, uint64_t /*begin_bytes*/,
                              uint64_t /*end_bytes*/) {
    return {};
  }
  /// One end of a wire through this device's network card, to copy to (a send) or from (a receive). `other_end` is the end
  /// that the far device opened, or null for the first of the two. A transfer needs both: a send waits for its receive.
  /// Errors: Unsupported with the reason NoNetworkCard.
  virtual Result<MemoryRef> open_wire(uint64_t /*size_bytes*/, const MemoryRef& /*other_end*/) {
    return Error(ErrorCode::Unsupported, "Device '" + name() + "' has no network card.",
                 "NoNetworkCard");
  }

  /// Turns one command into words. Words that are not known become patches. `calls` are the batch's, by tag.
  /// `signal_address` numbers the address of each signal, `slot_address` of each time slot (16 bytes; the stamp is its
  /// second word), `timeline_address` of each device's reached word. An address must be known when it is asked for.
  struct Encoding {
    std::span<const EncodedCall> calls;
    std::span<const int> signal_address, slot_address, timeline_address;
  };
  virtual Status encode(const Command& command, const Encoding& encoding,
                        EncodedQueue& to) const = 0;

  /// Bytes of commands that `queue` can take now, and at most.
  virtual uint64_t free_bytes(QueueId queue) const = 0;
  virtual uint64_t ring_bytes(QueueId queue) const = 0;
  /// Hands a queue its words. Returns when the device has been told, not when anything ran. Errors: DeviceLost with the reason
  /// DeviceUnavailable, OutOfMemory (QueueFull), InvalidArgument (SubmitTooLarge); then nothing was taken.
  virtual Status submit(QueueId queue, std::span<const std::byte> commands) = 0;

  /// Whether every queue that has work stands at a wait for a word: the device itself is not what holds a batch up.
  virtual bool only_waits() const { return false; }
  /// Called when a wait on this device ended without its value: reads the fault, marks the device Unavailable and returns
  /// the cause in words. `what` says what was waited for. On a device that is Unavailable already it returns the first cause.
  virtual std::string report_hang(const std::string& what) = 0;
  /// Opens the device anew: state Online, generation + 1, memory kept where it can be proven whole.
  /// Errors: Unsupported when it cannot reset.
  virtual Status reopen() = 0;
};

}  // namespace ignis::runtime
