#pragma once

#include <cstdint>
#include <optional>

namespace ignis::pipeline {

/// Tells two writers on one topic from one that was started anew, by the writer ids of the companions: a new id that stays
/// is a restart, an old id that comes back is a second writer.
class WriterWatch {
 public:
  /// True when this message shows that there are two writers.
  bool observe(uint64_t writer_id) {
    if (writer_id == current_) return false;
    const bool is_second = writer_id == previous_;
    previous_ = current_;
    current_ = writer_id;
    return is_second;
  }

 private:
  std::optional<uint64_t> current_, previous_;
};

}  // namespace ignis::pipeline
