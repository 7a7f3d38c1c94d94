// Whatever happens to the folder, a program that comes out of it is the one that was put in under its key.
#include "ignis/engine/program_store.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <thread>

namespace ignis::engine {
namespace {

namespace fs = std::filesystem;

// Program `number`: a key of its own and bytes that follow from it.
ProgramRecord record_of(int number, size_t object_bytes = 1000) {
  ProgramRecord record;
  Digest kernel{};
  std::memcpy(kernel.data(), &number, sizeof number);
  record.key = make_program_key(kernel, {"isa=avx2 threads=1", "float=finite", "0.1.0 a", "llvm"});
  record.name = "k" + std::to_string(number);
  record.kernel.image.name = "ignis_k" + std::to_string(number);
  record.kernel.image.object.resize(object_bytes);
  std::minstd_rand rng(static_cast<unsigned>(number) + 1);
  for (std::byte& byte : record.kernel.image.object) byte = static_cast<std::byte>(rng());
  record.kernel.parallel_units = number + 1;
  record.kernel.flops = number;
  return record;
}

class ProgramStoreTest : public ::testing::Test {
 protected:
  void SetUp() override {
    base_ = (fs::temp_directory_path() / "ignis-store-XXXXXX").string();
    ASSERT_NE(mkdtemp(base_.data()), nullptr);
    options_.folder = base_ + "/cache";
    options_.touch_every_ns = 0;
    options_.now_ns = [this] { return ++clock_ns_; };
  }
  void TearDown() override { fs::remove_all(base_); }

  std::unique_ptr<ProgramStore> open() {
    auto store = ProgramStore::open(options_);
    EXPECT_TRUE(store) << store.error().to_string();
    return store ? *std::move(store) : nullptr;
  }
  std::string root() const { return options_.folder + "/v" + std::to_string(kProgramFormat); }
  std::string file_of(int number) const {
    const std::string hex = to_hex(record_of(number).key.digest);
    return root() + "/programs/" + hex.substr(0, 2) + "/" + hex;
  }
  // What the store says about program `number`: "whole", "other" (which must not be), "damaged" or "none".
  static std::string look(ProgramStore& store, int number, size_t object_bytes = 1000) {
    const ProgramRecord want = record_of(number, object_bytes);
    const auto found = store.find(want.key);
    if (!found) return found.error().to_string();
    if (!found->record) return found->was_damaged ? "damaged" : "none";
    const CompiledKernel& kernel = found->record->kernel;
    const bool is_same = kernel.image.object == want.kernel.image.object &&
                         kernel.image.name == want.kernel.image.name &&
                         kernel.parallel_units == want.kernel.parallel_units &&
                         kernel.flops == want.kernel.flops;
    return is_same ? "whole" : "other";
  }
  static void put(ProgramStore& store, int number) {
    const Status status = store.put(record_of(number));
    ASSERT_TRUE(status) << status.error().to_string();
  }

  std::string base_;
  std::atomic<int64_t> clock_ns_{0};
  StoreOptions options_;
};

TEST_F(ProgramStoreTest, KeepsProgramsFromOneProcessToTheNext) {
  {
    const auto store = open();
    EXPECT_EQ(look(*store, 1), "none");
    put(*store, 1);
    put(*store, 2);
    EXPECT_EQ(look(*store, 1), "whole");
  }
  const auto store = open();
  EXPECT_EQ(look(*store, 1), "whole");
  EXPECT_EQ(look(*store, 2), "whole");
  EXPECT_EQ(look(*store, 3), "none");
  const auto rows = store->list();
  ASSERT_TRUE(rows);
  ASSERT_EQ(rows->size(), 2u);
  EXPECT_EQ(rows->front().name, "k2");
  EXPECT_EQ(rows->front().size_bytes, fs::file_size(file_of(2)));
}

TEST_F(ProgramStoreTest, TheLeastRecentlyUsedGoesFirst) {
  const uint64_t record_bytes = write_record(record_of(1)).size();
  options_.max_bytes = 3 * record_bytes + 50;
  const auto store = open();
  for (const int number : {1, 2, 3}) put(*store, number);
  EXPECT_EQ(*store->settle(), 0);
  EXPECT_EQ(look(*store, 1), "whole");  // now 2 is the oldest
  EXPECT_EQ(*store->settle(), 0);
  put(*store, 4);
  EXPECT_EQ(*store->settle(), 1);
  EXPECT_EQ(look(*store, 2), "none");
  EXPECT_FALSE(fs::exists(file_of(2)));
  for (const int number : {1, 3, 4}) EXPECT_EQ(look(*store, number), "whole") << number;
  EXPECT_EQ(*store->prune(record_bytes), 2);
  EXPECT_EQ(store->list()->size(), 1u);
  EXPECT_EQ(*store->prune(0), 1);
  EXPECT_TRUE(store->list()->empty());
}

TEST_F(ProgramStoreTest, ARecordAboveTheLimitIsNotKept) {
  options_.max_bytes = 500;
  const auto store = open();
  put(*store, 1);
  EXPECT_EQ(look(*store, 1), "none");
  EXPECT_EQ(*store->settle(), 0);
}

TEST_F(ProgramStoreTest, ADamagedFileIsAMissAndGoes) {
  const auto store = open();
  const size_t size_bytes = write_record(record_of(1)).size();
  for (const size_t at : {size_t{0}, size_t{9}, size_t{300}, size_bytes - 1}) {
    put(*store, 1);
    std::fstream file(file_of(1), std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(static_cast<std::streamoff>(at));
    const char was = static_cast<char>(file.get());
    file.seekp(static_cast<std::streamoff>(at));
    file.put(static_cast<char>(was ^ 1));
    file.close();
    EXPECT_EQ(look(*store, 1), "damaged") << at;
    EXPECT_FALSE(fs::exists(file_of(1)));
    EXPECT_EQ(look(*store, 1), "none") << at;
  }
  put(*store, 1);
  fs::resize_file(file_of(1), 100);
  EXPECT_EQ(look(*store, 1), "damaged");
  put(*store, 1);
  fs::resize_file(file_of(1), 0);
  EXPECT_EQ(look(*store, 1), "damaged");
}

TEST_F(ProgramStoreTest, AWholeRecordUnderAnothersNameIsDamage) {
  const auto store = open();
  put(*store, 1);
  put(*store, 2);
  fs::copy_file(file_of(2), file_of(1), fs::copy_options::overwrite_existing);
  EXPECT_EQ(look(*store, 1), "damaged");
  EXPECT_EQ(look(*store, 2), "whole");
}

TEST_F(ProgramStoreTest, ALinkOrAFolderInAFilesPlaceIsNotFollowed) {
  const auto store = open();
  put(*store, 1);
  fs::rename(file_of(1), base_ + "/elsewhere");
  fs::create_symlink(base_ + "/elsewhere", file_of(1));
  EXPECT_EQ(look(*store, 1), "damaged");
  EXPECT_TRUE(fs::exists(base_ + "/elsewhere"));
  put(*store, 1);
  fs::remove(file_of(1));
  ASSERT_EQ(::mkfifo(file_of(1).c_str(), 0600),
            0);  // opening one waits for ever, unless told not to
  EXPECT_EQ(look(*store, 1), "damaged");
}

TEST_F(ProgramStoreTest, ARowWithoutAFileIsAMiss) {
  const auto store = open();
  put(*store, 1);
  fs::remove(file_of(1));
  EXPECT_EQ(look(*store, 1), "none");
  EXPECT_TRUE(store->list()->empty());
}

TEST_F(ProgramStoreTest, VerifyReadsEverything) {
  const auto store = open();
  for (const int number : {1, 2, 3, 4}) put(*store, number);
  fs::resize_file(file_of(2), 10);
  fs::remove(file_of(3));
  const std::string stray = file_of(1) + ".new-77";
  std::ofstream(stray) << "half";
  const auto old = fs::file_time_type::clock::now() - std::chrono::hours(1);
  fs::last_write_time(stray, old);
  fs::last_write_time(file_of(1), old);  // has a row, so it stays
  const std::string fresh = file_of(4) + ".new-78";
  std::ofstream(fresh) << "half";
  const auto check = store->verify();
  ASSERT_TRUE(check) << check.error().to_string();
  EXPECT_EQ(check->whole, 2);
  EXPECT_EQ(check->damaged, 1);
  EXPECT_EQ(check->missing, 1);
  EXPECT_EQ(check->strays, 1);
  EXPECT_FALSE(fs::exists(stray));
  EXPECT_TRUE(fs::exists(fresh)) << "it may be another process' work of this moment";
  EXPECT_EQ(store->list()->size(), 2u);
}

TEST_F(ProgramStoreTest, NamesTheNearestRecordOfAKernel) {
  const auto store = open();
  ProgramRecord far = record_of(1), near = far;
  far.key = make_program_key(far.key.kernel, {"isa=sse2 threads=1", "float=fast", "0.1.0 a", "x"});
  near.key =
      make_program_key(near.key.kernel, {"isa=avx2 threads=2", "float=finite", "0.1.0 a", "llvm"});
  ASSERT_TRUE(store->put(near));
  ASSERT_TRUE(store->put(far));
  const auto nearest = store->nearest(record_of(1).key);
  ASSERT_TRUE(nearest);
  ASSERT_TRUE(*nearest);
  EXPECT_EQ((*nearest)->key.code.target, "isa=avx2 threads=2");
  EXPECT_FALSE(*store->nearest(record_of(2).key));
}

std::string open_reason(const StoreOptions& options) {
  const auto store = ProgramStore::open(options);
  return store ? "opened" : store.error().reason();
}

TEST_F(ProgramStoreTest, RefusesFoldersThatOthersMayChange) {
  EXPECT_EQ(open_reason(options_), "opened");
  struct stat info{};
  ASSERT_EQ(::stat(options_.folder.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777u, 0700u);
  fs::permissions(options_.folder, fs::perms::others_write, fs::perm_options::add);
  EXPECT_EQ(open_reason(options_), "BadFolder");
  fs::permissions(options_.folder, fs::perms::others_write, fs::perm_options::remove);
  fs::permissions(root() + "/programs", fs::perms::group_write, fs::perm_options::add);
  EXPECT_EQ(open_reason(options_), "BadFolder");
  if (::geteuid() == 0) {
    fs::permissions(root() + "/programs", fs::perms::group_write, fs::perm_options::remove);
    ASSERT_EQ(::chown(options_.folder.c_str(), 12345, static_cast<gid_t>(-1)), 0);
    EXPECT_EQ(open_reason(options_), "BadFolder");
  }
}

TEST_F(ProgramStoreTest, RefusesWhatIsNoFolder) {
  options_.folder = "/dev/null/cache";
  EXPECT_EQ(open_reason(options_), "BadFolder");
  options_.folder = base_ + "/file";
  std::ofstream(options_.folder) << "x";
  EXPECT_EQ(open_reason(options_), "BadFolder");
  options_.folder = base_ + "/deep/er/cache";
  EXPECT_EQ(open_reason(options_), "opened");
}

TEST_F(ProgramStoreTest, ADamagedIndexIsSaidSo) {
  {
    put(*open(), 1);
  }
  fs::remove(root() + "/index.sqlite-wal");
  std::ofstream(root() + "/index.sqlite", std::ios::trunc) << std::string(20000, 'x');
  EXPECT_EQ(open_reason(options_), "Corrupt");
  fs::remove(root() + "/index.sqlite");
  const auto store = open();
  EXPECT_EQ(look(*store, 1), "none");
  // Damage of a file that is open shows itself on the way.
  for (int number = 0; number < 200; ++number) put(*store, number);
  (void)store->prune(uint64_t{1} << 40);  // writes the log back
  std::fstream file(root() + "/index.sqlite", std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(4096);
  file << std::string(200000, 'y');
  file.close();
  const auto again = ProgramStore::open(options_);
  if (!again) {
    EXPECT_EQ(again.error().reason(), "Corrupt");
    return;
  }
  const auto check = (*again)->verify();
  ASSERT_FALSE(check);
  EXPECT_EQ(check.error().reason(), "Corrupt");
}

TEST_F(ProgramStoreTest, AnIndexOfAnotherSchemaIsCorrupt) {
  {
    open();
  }
  for (const char* sql : {"DROP TABLE program; CREATE TABLE program(key, kernel)",
                          "DROP TABLE program; CREATE VIEW program AS SELECT 1 AS key"}) {
    auto database = Database::open(root() + "/index.sqlite", 100);
    ASSERT_TRUE(database);
    ASSERT_TRUE(database->run(sql)) << sql;
    EXPECT_EQ(open_reason(options_), "Corrupt") << sql;
    if (std::strstr(sql, "VIEW") == nullptr) {
      ASSERT_TRUE(database->run("DROP TABLE program; CREATE TABLE program(x)"));
    }
  }
}

TEST_F(ProgramStoreTest, AHeldIndexIsBusyAndPasses) {
  const auto store = open();
  options_.busy_ms = 20;
  const auto hasty = open();
  auto holder = Database::open(root() + "/index.sqlite", 100);
  ASSERT_TRUE(holder);
  ASSERT_TRUE(holder->run("BEGIN EXCLUSIVE"));
  const Status status = hasty->put(record_of(1));
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().reason(), "Busy");
  EXPECT_EQ(look(*hasty, 1), "none");
  ASSERT_TRUE(holder->run("COMMIT"));
  put(*hasty, 1);
  EXPECT_EQ(look(*store, 1), "whole");
}

// Waits for a child, killing it when it takes a minute.
int wait_for(pid_t child) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  int status = 0;
  while (::waitpid(child, &status, WNOHANG) == 0) {
    if (std::chrono::steady_clock::now() > deadline) ::kill(child, SIGKILL);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return status;
}

TEST_F(ProgramStoreTest, NoRoomIsTypedAndLeavesNothing) {
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    auto store = ProgramStore::open(options_);
    if (!store) ::_exit(1);
    // Stands for a full disk: the kernel writes up to a size and no further.
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{5000, 5000};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    const Status status = (*store)->put(record_of(1, 100'000));
    if (status || status.error().reason() != "Full") ::_exit(2);
    ::_exit(0);
  }
  EXPECT_EQ(wait_for(child), 0);
  const auto store = open();
  EXPECT_EQ(look(*store, 1, 100'000), "none");
  int files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(root() + "/programs"))
    files += entry.is_regular_file() ? 1 : 0;
  EXPECT_EQ(files, 0);
}

TEST_F(ProgramStoreTest, NoRoomForTheIndexIsTypedAndLeavesItWhole) {
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    auto store = ProgramStore::open(options_);
    if (!store) ::_exit(1);
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{100'000, 100'000};  // each record fits, the index' log does not for long
    ::setrlimit(RLIMIT_FSIZE, &limit);
    for (int number = 0; number < 1000; ++number) {
      const Status status = (*store)->put(record_of(number));
      if (status) continue;
      ::_exit(number > 3 && status.error().reason() == "Full" ? 0 : 2);
    }
    ::_exit(3);
  }
  EXPECT_EQ(wait_for(child), 0);
  const auto store = open();
  const auto check = store->verify();
  ASSERT_TRUE(check) << check.error().to_string();
  EXPECT_GT(check->whole, 3);
  EXPECT_EQ(check->damaged + check->missing, 0);
}

TEST_F(ProgramStoreTest, AFolderThatMayNotBeWrittenIsRefused) {
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    // Root may write everywhere: be somebody else.
    const uid_t user = ::geteuid() == 0 ? 12345 : ::geteuid();
    ::chmod(base_.c_str(), 0755);
    ::mkdir(options_.folder.c_str(), 0700);
    ::chmod(options_.folder.c_str(), 0500);
    if (::geteuid() == 0 &&
        (::chown(options_.folder.c_str(), user, user) != 0 || ::setresuid(user, user, user) != 0)) {
      ::_exit(3);
    }
    ::_exit(open_reason(options_) == "BadFolder" ? 0 : 1);
  }
  EXPECT_EQ(wait_for(child), 0);
}

// Four processes put and look without an end and are killed at any moment; new ones take their place.
TEST_F(ProgramStoreTest, NothingHalfWrittenIsUsedWhoeverIsKilled) {
  options_.max_bytes = 20 * write_record(record_of(1, 60'000)).size();  // so they evict as well
  options_.busy_ms = 20'000;
  options_.now_ns = nullptr;
  {
    open();
  }
  std::mt19937 rng(20261129);
  constexpr int kProcesses = 4, kKills = 60;
  const auto work = [&](unsigned seed) {
    auto store = ProgramStore::open(options_);
    if (!store) ::_exit(store.error().reason() == "Busy" ? 0 : 10);
    std::minstd_rand random(seed);
    while (true) {
      const int number = static_cast<int>(random() % 40);
      const std::string seen = look(**store, number, 60'000);
      // A file may be taken away while it is read; one that is there is whole.
      if (seen != "whole" && seen != "none") ::_exit(seen == "damaged" ? 11 : 12);
      if (seen == "none" && !(*store)->put(record_of(number, 60'000))) ::_exit(13);
      if (random() % 4 == 0 && !(*store)->settle()) ::_exit(14);
    }
  };
  std::vector<pid_t> children(kProcesses, 0);
  const auto start = [&](pid_t& child) {
    const auto seed = static_cast<unsigned>(rng());
    child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) work(seed);
  };
  for (pid_t& child : children) start(child);
  for (int i = 0; i < kKills; ++i) {
    std::this_thread::sleep_for(std::chrono::microseconds(rng() % 20'000));
    pid_t& child = children[rng() % kProcesses];
    ::kill(child, SIGKILL);
    const int status = wait_for(child);
    ASSERT_TRUE(WIFSIGNALED(status)) << "ended by itself with " << WEXITSTATUS(status);
    start(child);
  }
  for (const pid_t child : children) {
    ::kill(child, SIGKILL);
    const int status = wait_for(child);
    EXPECT_TRUE(WIFSIGNALED(status)) << "ended by itself with " << WEXITSTATUS(status);
  }
  const auto store = open();
  const auto check = store->verify();
  ASSERT_TRUE(check) << check.error().to_string();
  EXPECT_EQ(check->damaged, 0);
  EXPECT_GT(check->whole, 0);
  for (int number = 0; number < 40; ++number) {
    const std::string seen = look(*store, number, 60'000);
    EXPECT_TRUE(seen == "whole" || seen == "none") << seen;
  }
}

TEST_F(ProgramStoreTest, ManyThreadsShareOne) {
  options_.max_bytes = 10 * write_record(record_of(1)).size();
  const auto store = open();
  std::vector<std::thread> threads;
  std::atomic<int> others{0};
  for (unsigned t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      std::minstd_rand random(t + 1);
      for (int i = 0; i < 200; ++i) {
        const int number = static_cast<int>(random() % 20);
        const std::string seen = look(*store, number);
        if (seen != "whole" && seen != "none") ++others;
        if (seen == "none" && !store->put(record_of(number))) ++others;
        if (i % 8 == 0 && !store->settle()) ++others;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(others, 0);
}

}  // namespace
}  // namespace ignis::engine
