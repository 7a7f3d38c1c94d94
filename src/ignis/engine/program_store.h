#pragma once

#include "ignis/engine/program_record.h"
#include "ignis/engine/sqlite.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace ignis::engine {

struct StoreOptions {
  std::string folder;
  uint64_t max_bytes = uint64_t{512} << 20;  ///< of the records; the index comes on top
  int busy_ms = 2000;                        ///< how long a statement waits for other processes
  /// A use is written down when the last one noted is older than this: a warm start then writes nothing.
  int64_t touch_every_ns = 60'000'000'000;
  std::function<int64_t()> now_ns;  ///< for tests; empty: the system's clock
};

/// One row of the index.
struct StoredProgram {
  ProgramKey key;
  std::string name;
  uint64_t size_bytes = 0;
  int64_t created_ns = 0, used_ns = 0;  ///< since 1970
};

struct StoreCheck {
  int64_t whole = 0, damaged = 0, missing = 0, strays = 0;
};

/// Programs on disk: an SQLite index and one file for each record, below FOLDER/v<format>.
///
/// Any number of processes may use a folder. A record is written to a file of its own name and renamed when it is whole;
/// its row comes after. So a process that dies leaves at most a file without a row, which prune() sweeps. Each file carries
/// its digest, which every read checks: a row is a claim, the file is the proof. Thread-safe.
/// Errors have the reasons Busy (of another process; try again), Full, Corrupt, BadFolder or Failed.
class ProgramStore {
 public:
  /// Makes the folder when it is not there. Errors: BadFolder for one that cannot be made or written, that belongs to another
  /// user or that others may write to: what lies in it is code that this process will run.
  static Result<std::unique_ptr<ProgramStore>> open(const StoreOptions& options);

  struct Found {
    std::optional<ProgramRecord> record;
    bool was_damaged = false;  ///< there was one, it was not whole and is removed
  };
  Result<Found> find(const ProgramKey& key);
  Status put(const ProgramRecord& record);
  /// Notes down what was used and, when something was put, removes the least recently used above the limit. Returns how
  /// many records went.
  Result<int64_t> settle();

  /// The record of the same kernel whose code identity differs in the fewest parts; nothing when there is none.
  Result<std::optional<StoredProgram>> nearest(const ProgramKey& key);
  /// All rows, the most recently used first.
  Result<std::vector<StoredProgram>> list();
  /// Removes the least recently used until the rest has at most `max_bytes`, and what dead processes left. Returns how many
  /// records went.
  Result<int64_t> prune(uint64_t max_bytes);
  /// Reads every record. What is damaged, and rows without a file, are removed.
  Result<StoreCheck> verify();

  const std::string& folder() const { return options_.folder; }

 private:
  struct Statements;
  ProgramStore(StoreOptions options, Database database);
  Status prepare();
  int64_t now_ns() const;
  std::string file_path(const Digest& key) const;
  Status remove(const Digest& key);
  Result<int64_t> evict(uint64_t max_bytes);
  Result<int64_t> sweep();

  StoreOptions options_;
  std::string root_;  // FOLDER/v<format>
  std::mutex mutex_;  // of all that follows
  Database database_;
  std::unique_ptr<Statements> statements_;
  std::vector<Digest> touched_;
  bool has_put_ = true;  // at first: the limit may be a smaller one than before

 public:
  ~ProgramStore();
};

}  // namespace ignis::engine
