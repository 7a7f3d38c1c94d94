// The answers are the same bits whether kernels were compiled or found, and no fault of the cache is a fault of the run.
#include "ignis/engine/program_cache.h"

#include "ignis/base/log.h"
#include "ignis/engine/artifact.h"
#include "ignis/engine/cache_archive.h"
#include "ignis/engine/program_record.h"
#include "ignis/engine/session.h"

#include "tests/support/onnx_builder.h"
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

namespace ignis {
namespace {

namespace fs = std::filesystem;
using testing::onnx_floats;
using testing::OnnxModel;
using testing::OnnxNode;
using testing::OnnxType;

class ProgramCacheTest : public ::testing::Test {
 protected:
  void SetUp() override {
    base_ = (fs::temp_directory_path() / "ignis-cache-XXXXXX").string();
    ASSERT_NE(mkdtemp(base_.data()), nullptr);
    write_model(model_path(), 3);
    set_log_sink([this](const LogRecord& record) {
      if (record.level == LogLevel::Warning) warnings_.emplace_back(record.text);
    });
  }
  void TearDown() override {
    set_log_sink({});
    fs::remove_all(base_);
  }

  // Two convolutions, a ReLU and a softmax: several kernels, and floats that show a change of the order of a sum.
  static void write_model(const std::string& path, int kernel) {
    const auto weights = [](int64_t count) {
      std::vector<float> values;
      for (int64_t i = 0; i < count; ++i)
        values.push_back(static_cast<float>((i * 7919) % 101 - 50) / 37.0f);
      return values;
    };
    const int64_t pad = kernel / 2;
    OnnxModel model(17);
    model.graph.input("x", OnnxType::Float, {1, 3, 12, 12})
        .output("y", OnnxType::Float, {1, 8, 12, 12})
        .initializer(onnx_floats("v", {8, 3, kernel, kernel}, weights(8 * 3 * kernel * kernel)))
        .initializer(onnx_floats("w", {8, 8, 1, 1}, weights(8 * 8)))
        .node(OnnxNode("Conv", {"x", "v"}, {"a"})
                  .attr("pads", std::vector<int64_t>{pad, pad, pad, pad}))
        .node(OnnxNode("Relu", {"a"}, {"b"}))
        .node(OnnxNode("Conv", {"b", "w"}, {"c"}))
        .node(OnnxNode("Softmax", {"c"}, {"y"}).attr("axis", int64_t{1}));
    std::ofstream(path, std::ios::binary) << model.bytes();
  }
  std::string model_path() const { return base_ + "/model.onnx"; }
  std::string folder() const { return base_ + "/cache"; }
  std::shared_ptr<ProgramCache> open() const {
    ProgramCacheOptions options;
    options.folder = folder();
    return ProgramCache::open(options);
  }
  static HostTensor input() {
    std::vector<float> values;
    for (int i = 0; i < 3 * 12 * 12; ++i) values.push_back(static_cast<float>(i % 29) / 7.0f);
    return HostTensor::from<float>(DType::Float32, {1, 3, 12, 12}, values);
  }
  Session load(const std::shared_ptr<ProgramCache>& cache, SessionOptions options = {}) const {
    options.program_cache = cache;
    auto session = Session::load(model_path(), options);
    EXPECT_TRUE(session) << session.error().to_string();
    return *std::move(session);
  }
  static std::vector<std::byte> answer(Session session) {
    auto values = session.run({input()});
    EXPECT_TRUE(values) << values.error().to_string();
    return values ? values->at(0).bytes : std::vector<std::byte>();
  }
  static int count(const Session& session, CacheOutcome outcome) {
    int found = 0;
    for (const ProgramLookup& lookup : session.program_lookups())
      found += lookup.outcome == outcome ? 1 : 0;
    return found;
  }
  std::vector<fs::path> record_files() const {
    std::vector<fs::path> files;
    for (const auto& entry : fs::recursive_directory_iterator(folder() + "/v2/programs"))
      if (entry.is_regular_file()) files.push_back(entry.path());
    return files;
  }

  std::string base_;
  std::vector<std::string> warnings_;
};

TEST_F(ProgramCacheTest, AnswersAreTheSameBitsHoweverAKernelCameByItsProgram) {
  for (const char* device : {"cpu", "cpu:llvm:sse2", "cpu:c"}) {
    SCOPED_TRACE(device);
    fs::remove_all(folder());
    SessionOptions options;
    options.device = device;
    Session without = load(nullptr, options);
    const int programs = static_cast<int>(without.program_lookups().size());
    ASSERT_GE(programs, 2);
    EXPECT_EQ(count(without, CacheOutcome::Unused), programs);
    EXPECT_EQ(without.times().cache_s, 0);
    const std::vector<std::byte> want = answer(std::move(without));

    const auto first = open();
    Session compiled = load(first, options);
    EXPECT_EQ(count(compiled, CacheOutcome::Miss), programs);
    EXPECT_EQ(compiled.program_lookups()[0].why, "not there");
    EXPECT_EQ(answer(std::move(compiled)), want);
    Session from_memory = load(first, options);
    EXPECT_EQ(count(from_memory, CacheOutcome::MemoryHit), programs);
    EXPECT_EQ(from_memory.times().compile_s, 0);
    EXPECT_GT(from_memory.times().cache_s, 0);
    EXPECT_TRUE(from_memory.pass_times().empty());
    EXPECT_EQ(answer(std::move(from_memory)), want);

    const auto second = open();
    Session from_disk = load(second, options);
    EXPECT_EQ(count(from_disk, CacheOutcome::DiskHit), programs);
    EXPECT_EQ(answer(std::move(from_disk)), want);
    second->forget();
    EXPECT_EQ(count(load(second, options), CacheOutcome::DiskHit), programs);

    const ProgramCacheCounters a = first->counters(), b = second->counters();
    const int all = programs + 1;  // the submit program is no kernel
    EXPECT_EQ(a.misses, all);
    EXPECT_EQ(a.stored, all);
    EXPECT_EQ(a.memory_hits, all);
    EXPECT_EQ(a.disk_hits, 0);
    EXPECT_EQ(b.disk_hits, 2 * all);
    EXPECT_EQ(b.misses + b.stored + b.damaged + b.disk_evictions, 0);
  }
  EXPECT_TRUE(warnings_.empty()) << warnings_[0];
}

TEST_F(ProgramCacheTest, EqualKernelsOfTwoModelsShareAProgram) {
  const auto cache = open();
  const Session first = load(cache);
  write_model(model_path(), 1);  // the first convolution differs, the rest does not
  const Session second = load(cache);
  EXPECT_EQ(count(second, CacheOutcome::Miss), 1);
  EXPECT_GE(count(second, CacheOutcome::MemoryHit), 1);
}

TEST_F(ProgramCacheTest, ArtifactsHaveTheSameBytesFromCompilerAndCache) {
  CompileOptions options;
  const auto plain = compile_artifact(model_path(), options);
  ASSERT_TRUE(plain);
  options.session.program_cache = open();
  const auto compiled = compile_artifact(model_path(), options);
  const auto found = compile_artifact(model_path(), options);
  ASSERT_TRUE(compiled && found);
  EXPECT_EQ(compiled->bytes, plain->bytes);
  EXPECT_EQ(found->bytes, plain->bytes);
  for (const ProgramLookup& lookup : found->targets[0].lookups)
    EXPECT_EQ(lookup.outcome, CacheOutcome::MemoryHit);
}

TEST_F(ProgramCacheTest, SaysWhyThereWasNoHit) {
  const auto cache = open();
  SessionOptions options;
  options.threads = 1;
  load(cache, options);
  options.float_level = FloatLevel::Strict;
  const Session strict = load(cache, options);
  EXPECT_EQ(strict.program_lookups()[0].why,
            "other options: float=finite there, float=strict wanted");
  options.float_level = FloatLevel::Finite;
  options.device = "cpu:llvm:sse2";
  const Session narrow = load(cache, options);
  EXPECT_EQ(narrow.program_lookups()[0].outcome, CacheOutcome::Miss);
}

TEST_F(ProgramCacheTest, ASeededFaultPassesTheCacheBy) {
  const auto cache = open();
  const std::vector<std::byte> want = answer(load(cache));
  SessionOptions options;
  options.seeded_fault = 0;
  Session faulty = load(cache, options);
  EXPECT_EQ(count(faulty, CacheOutcome::Bypassed), 1);
  EXPECT_EQ(faulty.program_lookups()[0].why, "holds a seeded fault");
  EXPECT_NE(answer(std::move(faulty)), want);
  EXPECT_EQ(cache->counters().stored, cache->counters().misses);
  EXPECT_EQ(answer(load(cache)), want);
}

TEST_F(ProgramCacheTest, DamagedRecordsAreCountedAndMadeAgain) {
  const std::vector<std::byte> want = answer(load(open()));
  for (const fs::path& path : record_files()) {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(fs::file_size(path) / 2));
    file.put('\x5a').put('\xa5').put('\x5a');
  }
  const auto cache = open();
  Session session = load(cache);
  const auto programs = static_cast<int>(session.program_lookups().size());
  EXPECT_EQ(count(session, CacheOutcome::Miss), programs);
  EXPECT_EQ(session.program_lookups()[0].why, "damaged; removed");
  EXPECT_EQ(cache->counters().damaged, programs + 1);  // the submit program is no kernel
  EXPECT_EQ(answer(std::move(session)), want);
  EXPECT_EQ(count(load(open()), CacheOutcome::DiskHit), programs);
}

TEST_F(ProgramCacheTest, ABadFolderIsOneWarningAndNoFault) {
  const std::vector<std::byte> want = answer(load(nullptr));
  ProgramCacheOptions options;
  options.folder = "/dev/null/cache";
  const auto cache = ProgramCache::open(options);
  ASSERT_EQ(warnings_.size(), 1u);
  EXPECT_NE(warnings_[0].find("/dev/null/cache"), std::string::npos) << warnings_[0];
  EXPECT_EQ(cache->disk().error().reason(), "BadFolder");
  EXPECT_EQ(answer(load(cache)), want);
  const Session again = load(cache);
  EXPECT_GT(count(again, CacheOutcome::MemoryHit), 0);  // memory goes on
  EXPECT_EQ(warnings_.size(), 1u);
}

TEST_F(ProgramCacheTest, AFolderThatGoesWhileItIsInUseTurnsItOff) {
  const auto cache = open();
  const std::vector<std::byte> want = answer(load(cache));
  fs::remove_all(folder());
  std::ofstream(folder()) << "a file in its place";
  write_model(model_path(), 5);
  const std::vector<std::byte> other = answer(load(nullptr));
  EXPECT_EQ(answer(load(cache)), other);
  EXPECT_FALSE(cache->disk());
  EXPECT_EQ(warnings_.size(), 1u);
  write_model(model_path(), 7);
  load(cache);
  EXPECT_EQ(warnings_.size(), 1u);
}

TEST_F(ProgramCacheTest, ADamagedIndexTurnsItOff) {
  load(open());
  std::ofstream(folder() + "/v2/index.sqlite", std::ios::trunc) << std::string(9000, 'z');
  fs::remove(folder() + "/v2/index.sqlite-wal");
  const auto cache = open();
  ASSERT_FALSE(cache->disk());
  EXPECT_EQ(cache->disk().error().reason(), "Corrupt");
  EXPECT_EQ(warnings_.size(), 1u);
  EXPECT_EQ(answer(load(cache)), answer(load(nullptr)));
}

TEST_F(ProgramCacheTest, MemoryIsBounded) {
  ProgramCacheOptions options;
  options.max_memory_bytes = 1;
  const auto none = ProgramCache::open(options);
  EXPECT_EQ(none->disk().error().reason(), "NoFolder");
  load(none);
  EXPECT_EQ(count(load(none), CacheOutcome::MemoryHit), 0);

  const auto plain = ProgramCache::open({});
  engine::ProgramRecord record;
  record.kernel.image.object.resize(10'000);
  options.max_memory_bytes = 35'000;  // three of them
  const auto few = ProgramCache::open(options);
  const auto put = [&](std::string compiler) {
    record.key = engine::make_program_key({}, {"", "", "", std::move(compiler)});
    few->put(record);
  };
  const auto has = [&](std::string compiler) {
    engine::CompiledKernel kernel;
    const auto key = engine::make_program_key({}, {"", "", "", std::move(compiler)});
    return few->find(key, &kernel).outcome == CacheOutcome::MemoryHit;
  };
  put("a"), put("b"), put("c");
  EXPECT_TRUE(has("a"));  // so that b is the oldest
  put("d");
  EXPECT_FALSE(has("b"));
  EXPECT_TRUE(has("a") && has("c") && has("d"));
  EXPECT_EQ(few->counters().memory_evictions, 1);
}

TEST_F(ProgramCacheTest, AForkedProcessLeavesTheParentsCacheAlone) {
  const auto cache = open();
  load(cache);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    engine::CompiledKernel kernel;
    const auto key = engine::make_program_key({}, {"", "", "", "nobody"});
    const bool is_miss = cache->find(key, &kernel).outcome == CacheOutcome::Miss;
    const Status disk = cache->disk();
    ::_exit(is_miss && !disk && disk.error().reason() == "Forked" ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(cache->disk());
  EXPECT_GT(count(load(open()), CacheOutcome::DiskHit), 0);
}

TEST_F(ProgramCacheTest, SessionsOfOneProcessCompileAtOnce) {
  const std::vector<std::byte> want = answer(load(nullptr));
  const auto cache = open();
  std::vector<std::vector<std::byte>> got(4);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < got.size(); ++i) {
    threads.emplace_back([&, i] {
      for (int round = 0; round < 2; ++round) got[i] = answer(load(cache));
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& bytes : got) EXPECT_EQ(bytes, want);
  EXPECT_TRUE(cache->disk());
  // Whoever came second waited for the first: no kernel was compiled twice.
  const auto kernels = static_cast<int64_t>(load(nullptr).program_lookups().size());
  // Nobody waits for submit programs, which take a millisecond: one for each session at most.
  EXPECT_GE(cache->counters().misses, kernels + 1);
  EXPECT_LE(cache->counters().misses, kernels + 4);
}

class CacheArchiveTest : public ProgramCacheTest {
 protected:
  static std::unique_ptr<engine::ProgramStore> store(const std::string& folder) {
    engine::StoreOptions options;
    options.folder = folder;
    auto store = engine::ProgramStore::open(options);
    EXPECT_TRUE(store) << store.error().to_string();
    return *std::move(store);
  }
  std::string import_reason(std::span<const std::byte> bytes) const {
    const auto into = store(base_ + "/imported");
    const auto counts = engine::import_programs(*into, bytes);
    if (counts) return "accepted";
    EXPECT_TRUE(into->list()->empty()) << "nothing of a refused file is taken";
    return counts.error().reason();
  }
  // The file with one record that a caller changed, under digests that fit.
  static std::vector<std::byte> export_of(const engine::ProgramRecord& record,
                                          const std::string& folder) {
    const auto from = store(folder);
    EXPECT_TRUE(from->put(record));
    return *engine::export_programs(*from);
  }
};

TEST_F(CacheArchiveTest, ProgramsMoveToAnotherFolder) {
  const std::vector<std::byte> want = answer(load(open()));
  const auto bytes = engine::export_programs(*store(folder()));
  ASSERT_TRUE(bytes);
  EXPECT_EQ(*engine::export_programs(*store(folder())), *bytes);
  {
    const auto into = store(base_ + "/other");
    auto counts = engine::import_programs(*into, *bytes);
    ASSERT_TRUE(counts) << counts.error().to_string();
    EXPECT_EQ(counts->added, static_cast<int64_t>(record_files().size()));
    counts = engine::import_programs(*into, *bytes);
    ASSERT_TRUE(counts);
    EXPECT_EQ(counts->added, 0);
    EXPECT_EQ(counts->known, static_cast<int64_t>(record_files().size()));
  }
  ProgramCacheOptions options;
  options.folder = base_ + "/other";
  Session session = load(ProgramCache::open(options));
  EXPECT_EQ(count(session, CacheOutcome::Miss), 0);
  EXPECT_EQ(answer(std::move(session)), want);
}

TEST_F(CacheArchiveTest, RefusesDamageAndCuts) {
  load(open());
  const std::vector<std::byte> whole = *engine::export_programs(*store(folder()));
  EXPECT_EQ(import_reason({}), "NotAnExport");
  EXPECT_EQ(import_reason(std::as_bytes(std::span("nonsense of some length, no export"))),
            "NotAnExport");
  for (size_t at = 0; at < whole.size(); at += 1 + whole.size() / 97) {
    std::vector<std::byte> changed = whole;
    changed[at] ^= std::byte{1};
    EXPECT_NE(import_reason(changed), "accepted") << at;
    EXPECT_NE(import_reason(std::span(whole).first(at)), "accepted") << at;
  }
  std::vector<std::byte> newer = whole;
  newer[8] = std::byte{99};
  EXPECT_EQ(import_reason(newer), "VersionMismatch");
}

TEST_F(CacheArchiveTest, RefusesObjectsThatTheLoaderRefusesUnderFittingDigests) {
  load(open());
  const auto from = store(folder());
  const auto rows = from->list();
  ASSERT_TRUE(rows && !rows->empty());
  engine::ProgramRecord record = *from->find(rows->front().key)->record;
  EXPECT_EQ(import_reason(export_of(record, base_ + "/good")), "accepted");
  fs::remove_all(base_ + "/imported");
  engine::ProgramRecord other = record;
  other.kernel.image.name = "absent";
  EXPECT_EQ(import_reason(export_of(other, base_ + "/absent")), "BadRecord");
  other = record;
  other.kernel.image.object.resize(other.kernel.image.object.size() / 2);
  EXPECT_EQ(import_reason(export_of(other, base_ + "/half")), "BadRecord");
  other = record;
  other.kernel.image.object.assign(500, std::byte{0xcc});
  EXPECT_EQ(import_reason(export_of(other, base_ + "/noise")), "BadRecord");
  // A machine of another kind cannot look into it, so it stays out.
  other = record;
  other.key.code.target = "arch=riscv isa=avx2";
  other.key = engine::make_program_key(other.key.kernel, other.key.code);
  const auto into = store(base_ + "/foreign-into");
  const auto counts = engine::import_programs(*into, export_of(other, base_ + "/foreign"));
  ASSERT_TRUE(counts);
  EXPECT_EQ(counts->foreign, 1);
  EXPECT_TRUE(into->list()->empty());
}

}  // namespace
}  // namespace ignis
