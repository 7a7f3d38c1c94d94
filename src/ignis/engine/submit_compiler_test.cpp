#include "ignis/engine/submit_compiler.h"

#include "ignis/exec/patch.h"
#include "ignis/exec/submit_program.h"
#include "ignis/runtime/device.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

namespace ignis::engine {
namespace {

SubmitCode code_of(std::vector<WordStore> stores, bool is_rolled) {
  return exec::make_submit_code(std::move(stores), is_rolled);
}

TEST(SubmitCompiler, MakesProgramsThatThisMachineRuns) {
  const SubmitCompiler compiler = submit_compiler(detect_host_target());
  for (const bool is_rolled : {false, true}) {
    const SubmitCode code = code_of({{0, 2, 1, 4, false, 5}}, is_rolled);
    const exec::SubmitProgram made{compiler.compile(code, "submit").value(),
                                   exec::hash_submit_code(code), is_rolled};
    std::vector<std::byte> bytes(8, std::byte{0xFF});
    exec::RunTimeWords words;
    words.add({.words = bytes, .patches = {{2, 4, 1, 5}}});
    ASSERT_TRUE(words.use(made, runtime::open_device("cpu").value()->load(made.image).value()));
    ASSERT_TRUE(words.fill(std::vector<uint64_t>{0, 0x01020304}));
    const std::vector<int> expected = {0xFF, 0xFF, 9, 3, 2, 1, 0xFF, 0xFF};
    for (size_t i = 0; i < expected.size(); ++i) {
      EXPECT_EQ(std::to_integer<int>(bytes[i]), expected[i]) << i;
    }
  }
}

TEST(SubmitCompiler, TheCacheKeepsWhatStandsInCode) {
  const auto cache = ProgramCache::open();
  const SubmitCode code = code_of({{0, 0, 0, 8}, {0, 8, 1, 8}}, false);
  const ProgramImage first =
      submit_compiler(detect_host_target(), cache).compile(code, "submit").value();
  EXPECT_EQ(cache->counters().misses, 1);
  const ProgramImage second =
      submit_compiler(detect_host_target(), cache).compile(code, "submit").value();
  EXPECT_EQ(cache->counters().memory_hits, 1);
  EXPECT_EQ(second.object, first.object);
  EXPECT_EQ(second.name, first.name);
  // Another shape is another program.
  const SubmitCode other = code_of({{0, 0, 0, 8}, {0, 8, 1, 8, false, 1}}, false);
  ASSERT_TRUE(submit_compiler(detect_host_target(), cache).compile(other, "other"));
  EXPECT_EQ(cache->counters().misses, 2);
}

TEST(SubmitCompiler, LoopsAreRememberedWithoutAsking) {
  const auto cache = ProgramCache::open();
  const SubmitCompiler compiler = submit_compiler(detect_host_target(), cache);
  for (uint32_t count = 100; count < 103; ++count) {
    std::vector<WordStore> stores;
    for (uint32_t i = 0; i < count; ++i) stores.push_back({0, 8 * i, i, 8});
    ASSERT_TRUE(compiler.compile(code_of(std::move(stores), true), "submit"));
  }
  const ProgramCacheCounters counters = cache->counters();
  EXPECT_EQ(counters.misses, 1);
  EXPECT_EQ(counters.memory_hits, 0);
}

TEST(SubmitCompiler, ItsIdentityIsTheTargets) {
  EXPECT_NE(submit_compiler(make_target(Isa::Neon)).identity,
            submit_compiler(make_target(Isa::Avx2)).identity);
  Target more_threads = make_target(Isa::Avx2);
  more_threads.threads = 7;
  EXPECT_EQ(submit_compiler(more_threads).identity,
            submit_compiler(make_target(Isa::Avx2)).identity);
}

}  // namespace
}  // namespace ignis::engine
