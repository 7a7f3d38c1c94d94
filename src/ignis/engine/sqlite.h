#pragma once

#include "ignis/base/result.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

struct sqlite3;
struct sqlite3_stmt;

namespace ignis::engine {

/// A prepared statement; values are bound from the left, 1 first. One row at a time.
class Statement {
 public:
  explicit Statement(sqlite3_stmt* raw) : raw_(raw) {}
  /// Ready for another use: unbound and not stepped.
  Statement& reset();
  Statement& bind(int64_t value);
  Statement& bind(std::string_view text);
  Statement& bind(std::span<const std::byte> blob);
  /// True when there is a row, false at the end. Errors: as Database.
  Result<bool> step();
  /// Runs to the end. Errors: as Database.
  Status run();

  int64_t integer(int column) const;
  std::string text(int column) const;
  /// Valid until the next step.
  std::span<const std::byte> blob(int column) const;

 private:
  struct Finalize {
    void operator()(sqlite3_stmt* raw) const;
  };
  std::unique_ptr<sqlite3_stmt, Finalize> raw_;
  int next_ = 1;
};

/// An open SQLite file. One thread at a time.
/// Errors of all calls have the reason Busy (another process holds it for longer than the wait), Full (no room, or not
/// writable), Corrupt or Failed.
class Database {
 public:
  /// Opens or makes the file; a statement waits `busy_ms` for other processes.
  static Result<Database> open(const std::string& path, int busy_ms);
  /// Statements without values, one after the other.
  Status run(const char* sql);
  Result<Statement> prepare(const char* sql);
  int64_t changes() const;

 private:
  struct Close {
    void operator()(sqlite3* raw) const;
  };
  explicit Database(sqlite3* raw) : raw_(raw) {}
  std::unique_ptr<sqlite3, Close> raw_;
};

}  // namespace ignis::engine
