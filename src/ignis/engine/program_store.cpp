#include "ignis/engine/program_store.h"

#include "ignis/engine/cache_files.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <system_error>
#include <thread>
#include <utility>

namespace ignis::engine {
namespace {

namespace fs = std::filesystem;
using Bytes = std::span<const std::byte>;

constexpr char kColumns[] =
    "key, kernel, target, options, generator, compiler, name, size_bytes, created_ns, used_ns";
// A file that is not whole, or has no row yet, may be another process' work of this moment.
constexpr int64_t kStrayAge_s = 600;

std::string select(const std::string& rest) {
  return std::string("SELECT ") + kColumns + " FROM program " + rest;
}

Digest to_digest(Bytes bytes) {
  Digest digest{};
  std::copy_n(bytes.begin(), std::min(bytes.size(), digest.size()), digest.begin());
  return digest;
}

StoredProgram read_row(const Statement& row) {
  StoredProgram program;
  program.key.digest = to_digest(row.blob(0));
  program.key.kernel = to_digest(row.blob(1));
  program.key.code = {row.text(2), row.text(3), row.text(4), row.text(5)};
  program.name = row.text(6);
  program.size_bytes = static_cast<uint64_t>(std::max<int64_t>(row.integer(7), 0));
  program.created_ns = row.integer(8);
  program.used_ns = row.integer(9);
  return program;
}

int differing_parts(const CodeIdentity& a, const CodeIdentity& b) {
  return (a.target != b.target) + (a.options != b.options) + (a.generator != b.generator) +
         (a.compiler != b.compiler);
}

Error where(Error error, const std::string& folder) {
  if (error.reason() == "Corrupt") {
    return Error(error.code(),
                 "The index in '" + folder + "' is damaged: " + error.message() +
                     " Delete the folder; it holds nothing that cannot be made again.",
                 "Corrupt");
  }
  return Error(error.code(), "The index in '" + folder + "' cannot be used: " + error.message(),
               error.reason());
}

// Only a new file needs more than the first line. Switching to the write-ahead log does not wait for other processes by
// itself.
Status make_tables(Database& database, int busy_ms) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(busy_ms);
  while (true) {
    Status status = database.run("PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL");
    if (status) break;
    if (status.error().reason() != "Busy" || std::chrono::steady_clock::now() > deadline)
      return status;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  {
    IGNIS_TRY_ASSIGN(Statement version, database.prepare("PRAGMA user_version"));
    IGNIS_TRY_ASSIGN(const bool has_row, version.step());
    if (has_row && version.integer(0) == static_cast<int64_t>(kProgramFormat)) return {};
  }
  const std::string sql =
      "BEGIN IMMEDIATE;"
      "CREATE TABLE IF NOT EXISTS program(key BLOB PRIMARY KEY, kernel BLOB NOT NULL,"
      " target TEXT NOT NULL, options TEXT NOT NULL, generator TEXT NOT NULL,"
      " compiler TEXT NOT NULL, name TEXT NOT NULL, size_bytes INTEGER NOT NULL,"
      " created_ns INTEGER NOT NULL, used_ns INTEGER NOT NULL) WITHOUT ROWID;"
      "CREATE INDEX IF NOT EXISTS program_kernel ON program(kernel);"
      "CREATE INDEX IF NOT EXISTS program_used ON program(used_ns, size_bytes);"
      "PRAGMA user_version=" +
      std::to_string(kProgramFormat) + ";COMMIT";
  return database.run(sql.c_str());
}

/// Rolls back at the end of its scope unless committed.
class Transaction {
 public:
  static Result<Transaction> begin(Database& database) {
    IGNIS_TRY(database.run("BEGIN IMMEDIATE"));
    return Transaction(database);
  }
  Transaction(Transaction&& other) noexcept : database_(std::exchange(other.database_, nullptr)) {}
  Transaction& operator=(Transaction&&) = delete;
  ~Transaction() {
    if (database_ != nullptr) (void)database_->run("ROLLBACK");
  }
  Status commit() {
    IGNIS_TRY(database_->run("COMMIT"));
    database_ = nullptr;
    return {};
  }

 private:
  explicit Transaction(Database& database) : database_(&database) {}
  Database* database_;
};

}  // namespace

struct ProgramStore::Statements {
  Statement find, insert, touch, remove, total, oldest, nearest, list, has;
};

ProgramStore::ProgramStore(StoreOptions options, Database database)
    : options_(std::move(options)),
      root_(options_.folder + "/v" + std::to_string(kProgramFormat)),
      database_(std::move(database)) {}

ProgramStore::~ProgramStore() = default;

Result<std::unique_ptr<ProgramStore>> ProgramStore::open(const StoreOptions& options) {
  const std::string root = options.folder + "/v" + std::to_string(kProgramFormat);
  IGNIS_TRY(make_private_folder(options.folder));
  IGNIS_TRY(make_private_folder(root));
  IGNIS_TRY(make_private_folder(root + "/programs"));
  auto database = Database::open(root + "/index.sqlite", options.busy_ms);
  if (!database) return where(std::move(database).error(), root);
  auto store = std::unique_ptr<ProgramStore>(new ProgramStore(options, *std::move(database)));
  Status ready = make_tables(store->database_, options.busy_ms);
  if (ready) ready = store->prepare();
  if (!ready) return where(std::move(ready).error(), root);
  return store;
}

Status ProgramStore::prepare() {
  IGNIS_TRY_ASSIGN(Statement find, database_.prepare("SELECT used_ns FROM program WHERE key=?"));
  IGNIS_TRY_ASSIGN(Statement insert,
                   database_.prepare("INSERT OR REPLACE INTO program VALUES(?,?,?,?,?,?,?,?,?,?)"));
  IGNIS_TRY_ASSIGN(Statement touch,
                   database_.prepare("UPDATE program SET used_ns=max(used_ns,?) WHERE key=?"));
  IGNIS_TRY_ASSIGN(Statement remove, database_.prepare("DELETE FROM program WHERE key=?"));
  IGNIS_TRY_ASSIGN(Statement total, database_.prepare("SELECT sum(size_bytes) FROM program"));
  IGNIS_TRY_ASSIGN(Statement oldest,
                   database_.prepare("SELECT key, size_bytes FROM program ORDER BY used_ns, key"));
  IGNIS_TRY_ASSIGN(
      Statement nearest,
      database_.prepare(select("WHERE kernel=? ORDER BY used_ns DESC LIMIT 32").c_str()));
  IGNIS_TRY_ASSIGN(Statement list, database_.prepare(select("ORDER BY used_ns DESC, key").c_str()));
  IGNIS_TRY_ASSIGN(Statement has, database_.prepare("SELECT 1 FROM program WHERE key=?"));
  statements_ = std::make_unique<Statements>(Statements{
      std::move(find), std::move(insert), std::move(touch), std::move(remove), std::move(total),
      std::move(oldest), std::move(nearest), std::move(list), std::move(has)});
  return {};
}

int64_t ProgramStore::now_ns() const {
  if (options_.now_ns) return options_.now_ns();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

std::string ProgramStore::file_path(const Digest& key) const {
  const std::string hex = to_hex(key);
  return root_ + "/programs/" + hex.substr(0, 2) + "/" + hex;
}

Status ProgramStore::remove(const Digest& key) {
  return statements_->remove.reset().bind(key).run();
}

Result<ProgramStore::Found> ProgramStore::find(const ProgramKey& key) {
  Found found;
  int64_t used_ns = 0;
  {
    const std::lock_guard lock(mutex_);
    Statement& row = statements_->find.reset().bind(key.digest);
    IGNIS_TRY_ASSIGN(const bool is_there, row.step());
    if (!is_there) return found;
    used_ns = row.integer(0);
    row.reset();
  }
  // Outside of the lock: several threads read at the same time.
  const std::string path = file_path(key.digest);
  const auto bytes = read_whole_file(path, kMaxRecordBytes);
  if (bytes) {
    Result<ProgramRecord> record = read_record(*bytes);
    if (record && record->key.digest == key.digest) found.record = *std::move(record);
  }
  const std::lock_guard lock(mutex_);
  if (found.record) {
    if (now_ns() - used_ns >= options_.touch_every_ns) touched_.push_back(key.digest);
    return found;
  }
  // A file that is gone was evicted at this moment or its writer died: no damage.
  found.was_damaged = bytes || bytes.error().code() != ErrorCode::NotFound;
  IGNIS_TRY(remove(key.digest));
  if (found.was_damaged) ::unlink(path.c_str());
  return found;
}

Status ProgramStore::put(const ProgramRecord& record) {
  const std::vector<std::byte> bytes = write_record(record);
  if (bytes.size() > std::min(options_.max_bytes, kMaxRecordBytes)) return {};
  const std::string path = file_path(record.key.digest);
  const std::string folder = path.substr(0, path.rfind('/'));
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) {
    return Error(
        ErrorCode::InvalidArgument,
        "Folder '" + folder + "' cannot be made: " + std::generic_category().message(errno) + ".",
        "Full");
  }
  IGNIS_TRY(write_whole_file(path, bytes));
  const std::lock_guard lock(mutex_);
  const CodeIdentity& code = record.key.code;
  const int64_t now = now_ns();
  has_put_ = true;
  return statements_->insert.reset()
      .bind(record.key.digest)
      .bind(record.key.kernel)
      .bind(code.target)
      .bind(code.options)
      .bind(code.generator)
      .bind(code.compiler)
      .bind(record.name)
      .bind(static_cast<int64_t>(bytes.size()))
      .bind(now)
      .bind(now)
      .run();
}

Result<int64_t> ProgramStore::settle() {
  const std::lock_guard lock(mutex_);
  if (!touched_.empty()) {
    const std::vector<Digest> touched = std::exchange(touched_, {});
    IGNIS_TRY_ASSIGN(Transaction transaction, Transaction::begin(database_));
    for (const Digest& key : touched)
      IGNIS_TRY(statements_->touch.reset().bind(now_ns()).bind(key).run());
    IGNIS_TRY(transaction.commit());
  }
  if (!std::exchange(has_put_, false)) return int64_t{0};
  return evict(options_.max_bytes);
}

Result<int64_t> ProgramStore::evict(uint64_t max_bytes) {
  const auto limit = static_cast<int64_t>(std::min<uint64_t>(max_bytes, INT64_MAX));
  std::vector<Digest> doomed;
  {
    IGNIS_TRY_ASSIGN(Transaction transaction, Transaction::begin(database_));
    IGNIS_TRY_ASSIGN(const bool has_total, statements_->total.reset().step());
    int64_t total_bytes = has_total ? statements_->total.integer(0) : 0;
    statements_->total.reset();
    if (total_bytes > limit) {
      Statement& row = statements_->oldest.reset();
      while (total_bytes > limit) {
        IGNIS_TRY_ASSIGN(const bool has_row, row.step());
        if (!has_row) break;
        doomed.push_back(to_digest(row.blob(0)));
        total_bytes -= row.integer(1);
      }
      row.reset();
    }
    for (const Digest& key : doomed) IGNIS_TRY(remove(key));
    IGNIS_TRY(transaction.commit());
  }
  // After the rows: a reader that comes in between finds no file and compiles.
  for (const Digest& key : doomed) ::unlink(file_path(key).c_str());
  return static_cast<int64_t>(doomed.size());
}

Result<int64_t> ProgramStore::sweep() {
  int64_t strays = 0;
  std::error_code failed;
  const int64_t now_s = static_cast<int64_t>(::time(nullptr));
  for (fs::recursive_directory_iterator at(root_ + "/programs", failed), end; !failed && at != end;
       at.increment(failed)) {
    struct stat info{};
    const std::string path = at->path().string(), name = at->path().filename().string();
    if (::lstat(path.c_str(), &info) != 0 || S_ISDIR(info.st_mode) ||
        now_s - static_cast<int64_t>(info.st_mtime) < kStrayAge_s) {
      continue;
    }
    Digest key{};
    bool is_key = name.size() == 2 * key.size();
    for (size_t i = 0; is_key && i < name.size(); ++i) {
      const char c = name[i];
      const bool is_digit = c >= '0' && c <= '9', is_letter = c >= 'a' && c <= 'f';
      is_key = is_digit || is_letter;
      const int value = is_digit ? c - '0' : c - 'a' + 10;
      key[i / 2] |= static_cast<std::byte>(i % 2 == 0 ? value << 4 : value);
    }
    if (is_key) {
      IGNIS_TRY_ASSIGN(const bool has_row, statements_->has.reset().bind(key).step());
      statements_->has.reset();
      if (has_row) continue;
    }
    if (::unlink(path.c_str()) == 0) ++strays;
  }
  return strays;
}

Result<std::optional<StoredProgram>> ProgramStore::nearest(const ProgramKey& key) {
  const std::lock_guard lock(mutex_);
  std::optional<StoredProgram> best;
  Statement& row = statements_->nearest.reset().bind(key.kernel);
  while (true) {
    IGNIS_TRY_ASSIGN(const bool has_row, row.step());
    if (!has_row) break;
    StoredProgram program = read_row(row);
    if (!best ||
        differing_parts(program.key.code, key.code) < differing_parts(best->key.code, key.code))
      best = std::move(program);
  }
  row.reset();
  return best;
}

Result<std::vector<StoredProgram>> ProgramStore::list() {
  const std::lock_guard lock(mutex_);
  std::vector<StoredProgram> programs;
  Statement& row = statements_->list.reset();
  while (true) {
    IGNIS_TRY_ASSIGN(const bool has_row, row.step());
    if (!has_row) break;
    programs.push_back(read_row(row));
  }
  row.reset();
  return programs;
}

Result<int64_t> ProgramStore::prune(uint64_t max_bytes) {
  const std::lock_guard lock(mutex_);
  IGNIS_TRY_ASSIGN(const int64_t evicted, evict(max_bytes));
  IGNIS_TRY_ASSIGN([[maybe_unused]] const int64_t strays, sweep());
  // Gives the index' own room back; not while another process is at it.
  (void)database_.run("VACUUM; PRAGMA wal_checkpoint(TRUNCATE)");
  return evicted;
}

Result<StoreCheck> ProgramStore::verify() {
  StoreCheck check;
  {
    const std::lock_guard lock(mutex_);
    IGNIS_TRY_ASSIGN(Statement whole, database_.prepare("PRAGMA quick_check(1)"));
    IGNIS_TRY_ASSIGN(const bool has_row, whole.step());
    if (!has_row || whole.text(0) != "ok") {
      return where(Error(ErrorCode::InvalidArgument,
                         "SQLite says: " + (has_row ? whole.text(0) : "nothing") + ".", "Corrupt"),
                   root_);
    }
  }
  IGNIS_TRY_ASSIGN(const std::vector<StoredProgram> programs, list());
  for (const StoredProgram& program : programs) {
    IGNIS_TRY_ASSIGN(const Found found, find(program.key));
    if (found.record) ++check.whole;
    else if (found.was_damaged) ++check.damaged;
    else ++check.missing;
  }
  const std::lock_guard lock(mutex_);
  touched_.clear();  // looking is no use
  IGNIS_TRY_ASSIGN(check.strays, sweep());
  return check;
}

}  // namespace ignis::engine
