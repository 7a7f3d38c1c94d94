#pragma once

#include "ignis/base/result.h"
#include "ignis/exec/aliases.h"
#include "ignis/exec/machine.h"
#include "ignis/exec/queue_template.h"

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace ignis::exec {

class LinkedSchedule;
struct LinkOptions;

/// A template that links and callers share, and the links of it that are used again. It is encoded.
class SharedTemplate {
 public:
  explicit SharedTemplate(QueueTemplate made);
  ~SharedTemplate();
  SharedTemplate(const SharedTemplate&) = delete;
  SharedTemplate& operator=(const SharedTemplate&) = delete;

  const QueueTemplate& queues() const { return queues_; }

 private:
  friend Result<std::shared_ptr<LinkedSchedule>> link(const std::shared_ptr<Machine>& machine,
                                                      const std::shared_ptr<const SharedTemplate>&,
                                                      std::span<const BoundInput> inputs,
                                                      const LinkOptions& options);
  static Result<std::shared_ptr<LinkedSchedule>> link_cached(
      const std::shared_ptr<const SharedTemplate>& self, const std::shared_ptr<Machine>& machine);

  QueueTemplate queues_;
  mutable std::mutex mutex_;
  /// One for each machine and generation; the newest that fits is used.
  mutable std::vector<std::unique_ptr<LinkedSchedule>> links_;
};
using TemplateRef = std::shared_ptr<const SharedTemplate>;

/// Whose memory the placeholders of a link are (queue spec 9).
enum class LinkMode : uint8_t {
  Own,   ///< its own; kept with the template and used again
  Ring,  ///< slots of the run-time ring; for one run
  Jit,   ///< its own; held by whoever asked
};

/// Where a buffer lies that the template knows no memory of and that the link is not to place: one place for each lane.
struct HeldMemory {
  int buffer = 0;
  std::vector<Placement> lanes;
};

struct LinkOptions {
  /// An eager run: the link is kept with its template, or lives for one run when input addresses are baked. Else: the
  /// caller's.
  bool allow_cache = false;
  /// By buffer number. Only without `allow_cache`: a link that others share has no memory of one of them.
  std::span<const HeldMemory> held{};
};

/// Links a template: places what has no memory yet, uploads programs, bakes addresses, keeps alive what they name. `inputs` are
/// looked at only when the template has link-time inputs.
///
/// Placeholders of equal purpose and device are 128-byte aligned parts of one block. No link-time patch is left.
/// Errors: InvalidArgument with the reason UnresolvedPatch naming the buffer, or naming an input that is missing or too
/// small; OutOfMemory (RingExhausted, RingTooSmall); what devices return.
Result<std::shared_ptr<LinkedSchedule>> link(const std::shared_ptr<Machine>& machine,
                                             const TemplateRef& made,
                                             std::span<const BoundInput> inputs,
                                             const LinkOptions& options = {});
/// A linked schedule is linked.
inline std::shared_ptr<LinkedSchedule> link(std::shared_ptr<LinkedSchedule> linked) {
  return linked;
}

}  // namespace ignis::exec
