#pragma once

#include "ignis/exec/linked_schedule.h"

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace ignis::exec {

/// Makes one link, in the order of its functions. link() chooses the mode and keeps what is kept.
class Linker {
 public:
  Linker(std::shared_ptr<Machine> machine, const QueueTemplate& queues,
         std::span<const BoundInput> inputs, LinkMode mode, std::span<const HeldMemory> held = {});

  Result<std::unique_ptr<LinkedSchedule>> link();

 private:
  /// A placeholder that waits for its place.
  struct Request {
    std::string owner;
    runtime::Purpose purpose = runtime::Purpose::Data;
    uint64_t size_bytes = 0;
    Placement* to = nullptr;
  };

  Status collect_devices();
  Status place_buffers();
  Status place_buffer(size_t index, size_t lane);
  const HeldMemory* find_held(size_t buffer) const;
  Status open_wires();
  void request_slots_and_parts();
  Status pack();
  Status link_batch(LinkedBatch& batch);
  Status load_submit_program(LinkedBatch& batch);
  Status link_words(LinkedBatch& batch, const QueueStream& stream,
                    std::span<const runtime::Patch> patches, std::span<const uint64_t> parts,
                    std::span<std::byte> bytes, std::vector<PatchRecord>& run_time);
  Result<uint64_t> address_of(const LinkedBatch& batch, runtime::QueuedDevice& accessor,
                              const LinkAddress& address);
  Status check_host_calls(const Batch& batch) const;
  Status link_other(LinkedOther& run);
  Status link_other_call(LinkedOther& run, const BatchCall& call);
  void collect_owners();

  std::shared_ptr<Machine> machine_;
  const QueueTemplate& queues_;
  std::span<const BoundInput> inputs_;
  std::span<const HeldMemory> held_;
  LinkMode mode_;
  std::unique_ptr<LinkedSchedule> made_;
  std::vector<std::vector<bool>> is_used_;  ///< by buffer, by lane
  std::vector<Request> requests_;
};

}  // namespace ignis::exec
