#include "ignis/engine/sqlite.h"

#include <sqlite3.h>

namespace ignis::engine {
namespace {

Error error_of(int code, const char* words) {
  std::string reason = "Failed";
  switch (code & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED: reason = "Busy"; break;
    case SQLITE_FULL:
    case SQLITE_READONLY:
    case SQLITE_CANTOPEN:
    case SQLITE_IOERR:
    case SQLITE_PERM: reason = "Full"; break;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
    case SQLITE_SCHEMA: reason = "Corrupt"; break;
    default: break;
  }
  return Error(ErrorCode::InvalidArgument, "SQLite says: " + std::string(words) + ".",
               std::move(reason));
}

}  // namespace

void Statement::Finalize::operator()(sqlite3_stmt* raw) const { sqlite3_finalize(raw); }
void Database::Close::operator()(sqlite3* raw) const { sqlite3_close_v2(raw); }

Statement& Statement::reset() {
  sqlite3_reset(raw_.get());
  sqlite3_clear_bindings(raw_.get());
  next_ = 1;
  return *this;
}

Statement& Statement::bind(int64_t value) {
  IGNIS_CHECK(sqlite3_bind_int64(raw_.get(), next_++, value) == SQLITE_OK);
  return *this;
}

Statement& Statement::bind(std::string_view text) {
  IGNIS_CHECK(sqlite3_bind_text64(raw_.get(), next_++, text.data(), text.size(), SQLITE_TRANSIENT,
                                  SQLITE_UTF8) == SQLITE_OK);
  return *this;
}

Statement& Statement::bind(std::span<const std::byte> blob) {
  IGNIS_CHECK(sqlite3_bind_blob64(raw_.get(), next_++, blob.data(), blob.size(),
                                  SQLITE_TRANSIENT) == SQLITE_OK);
  return *this;
}

Result<bool> Statement::step() {
  const int code = sqlite3_step(raw_.get());
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) return false;
  Error error = error_of(code, sqlite3_errmsg(sqlite3_db_handle(raw_.get())));
  sqlite3_reset(raw_.get());  // a statement in the middle would keep its lock
  return error;
}

Status Statement::run() {
  while (true) {
    IGNIS_TRY_ASSIGN(const bool has_row, step());
    if (!has_row) break;
  }
  sqlite3_reset(raw_.get());
  return {};
}

int64_t Statement::integer(int column) const { return sqlite3_column_int64(raw_.get(), column); }

std::string Statement::text(int column) const {
  const std::span<const std::byte> bytes = blob(column);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::span<const std::byte> Statement::blob(int column) const {
  const void* bytes = sqlite3_column_blob(raw_.get(), column);
  const int size_bytes = sqlite3_column_bytes(raw_.get(), column);
  if (bytes == nullptr || size_bytes <= 0) return {};
  return {static_cast<const std::byte*>(bytes), static_cast<size_t>(size_bytes)};
}

Result<Database> Database::open(const std::string& path, int busy_ms) {
  sqlite3* raw = nullptr;
  // One thread at a time uses it, so it needs no lock of its own.
  const int code =
      sqlite3_open_v2(path.c_str(), &raw,
                      SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, nullptr);
  Database database(raw);  // has to be closed even when opening failed
  if (code != SQLITE_OK) {
    return error_of(code, raw != nullptr ? sqlite3_errmsg(raw) : "out of memory");
  }
  sqlite3_extended_result_codes(raw, 1);
  sqlite3_busy_timeout(raw, busy_ms);
  // The file may be anybody's work: nothing that stands in its schema runs.
  sqlite3_db_config(raw, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(raw, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  sqlite3_db_config(raw, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, nullptr);
  sqlite3_db_config(raw, SQLITE_DBCONFIG_ENABLE_VIEW, 0, nullptr);
  return database;
}

Status Database::run(const char* sql) {
  const int code = sqlite3_exec(raw_.get(), sql, nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) return error_of(code, sqlite3_errmsg(raw_.get()));
  return {};
}

Result<Statement> Database::prepare(const char* sql) {
  sqlite3_stmt* raw = nullptr;
  const int code =
      sqlite3_prepare_v3(raw_.get(), sql, -1, SQLITE_PREPARE_PERSISTENT, &raw, nullptr);
  if (code != SQLITE_OK) {
    // Our own statements are sound: what does not fit is the file's schema.
    Error error = error_of(code, sqlite3_errmsg(raw_.get()));
    if (error.reason() != "Failed") return error;
    return Error(error.code(), error.message(), "Corrupt");
  }
  return Statement(raw);
}

int64_t Database::changes() const { return sqlite3_changes64(raw_.get()); }

}  // namespace ignis::engine
