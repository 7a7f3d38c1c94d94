// Queue spec, sections 3.1 step 6, 7, LK-8 and W-5: generated code that fills the words of a run, held against the loop that does
// the same and against bytes that are worked out one by one.

#include "ignis/engine/queues/submit_program.h"

#include "ignis/codegen/codegen.h"
#include "ignis/drivers/cpu/test_object.h"
#include "ignis/exec/submit_program.h"

#include "tests/queues/test_rig.h"
#include "tests/support/count_allocations.h"
#include "tests/support/seed.h"
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <random>
#include <set>

namespace ignis::testing {
namespace {

using exec::PatchRecord;
using exec::RunTimeWords;

std::shared_ptr<runtime::Device> cpu() {
  static const std::shared_ptr<runtime::Device> device = runtime::open_device("cpu").value();
  return device;
}

/// The code generator, and how often it was asked.
struct CountingCompiler : engine::SubmitCompiler {
  int compiled = 0;
  explicit CountingCompiler(size_t most = 64) {
    identity = "test";
    most_in_code = most;
    compile = [this](const SubmitCode& code, const std::string& name) {
      ++compiled;
      return codegen::compile_submit_program(code, detect_host_target(), name);
    };
  }
};

/// Every random schedule of end_to_end_test, which this program runs too, has submit programs of both forms.
class Defaults final : public ::testing::Environment {
 public:
  Defaults() {
    compiler_.identity = "test";
    compiler_.most_in_code = 3;
    compiler_.compile = [this](const SubmitCode& code,
                               const std::string& name) -> Result<ProgramImage> {
      const std::lock_guard lock(mutex_);
      const auto found = known_.find(name);  // made of the code's hash
      if (found != known_.end()) return found->second;
      ++(code.stores.empty() ? loops_ : lists_);
      IGNIS_TRY_ASSIGN(ProgramImage image,
                       codegen::compile_submit_program(code, detect_host_target(), name));
      return known_.emplace(name, std::move(image)).first->second;
    };
  }
  void SetUp() override { rig_defaults = {&compiler_, cpu()}; }
  void TearDown() override {
    rig_defaults = {};
    if (::testing::UnitTest::GetInstance()->total_test_count() ==
        ::testing::UnitTest::GetInstance()->test_to_run_count()) {
      EXPECT_GT(loops_, 0);
      EXPECT_GT(lists_, 0);
    }
  }

 private:
  engine::SubmitCompiler compiler_;
  std::mutex mutex_;
  std::map<std::string, ProgramImage> known_;
  int loops_ = 0, lists_ = 0;
};
const auto* const defaults = ::testing::AddGlobalTestEnvironment(new Defaults);

/// Blocks of words, some of them behind the window of a simulated device, with their own record of what they must hold.
class Words {
 public:
  explicit Words(vdev::World& world) : window_(*world.find("USB")) {}

  void add(std::vector<PatchRecord> patches, size_t size_bytes, bool is_remote) {
    Block block;
    block.patches = std::move(patches);
    block.is_remote = is_remote;
    if (is_remote) {
      block.memory =
          window_.allocate(size_bytes + kBeforeBytes, runtime::Purpose::Arguments).value();
      EXPECT_EQ(block.memory->host(), nullptr);
    } else {
      block.bytes.resize(size_bytes);
    }
    block.expected.resize(size_bytes);
    blocks_.push_back(std::move(block));
  }

  /// Every byte is `filler` again.
  void reset(std::byte filler) {
    for (Block& block : blocks_) {
      std::fill(block.expected.begin(), block.expected.end(), filler);
      std::fill_n(bytes_of(block), block.expected.size(), filler);
    }
  }
  void expect_stores(std::span<const uint64_t> values) {
    for (Block& block : blocks_) {
      for (const PatchRecord& patch : block.patches) {
        uint64_t value = values[patch.value] + static_cast<uint64_t>(patch.addend);
        for (uint32_t i = 0; i < patch.width_bytes; ++i, value /= 256) {
          block.expected[patch.offset_bytes + i] = static_cast<std::byte>(value % 256);
        }
      }
    }
  }
  bool are_as_expected() {
    return std::all_of(blocks_.begin(), blocks_.end(), [&](Block& block) {
      return std::equal(block.expected.begin(), block.expected.end(), bytes_of(block));
    });
  }

  void link(RunTimeWords& to) {
    for (Block& block : blocks_) {
      exec::LinkedWords words;
      words.patches = block.patches;
      if (block.is_remote) {
        words.window = &window_;
        words.memory = block.memory;
        words.offset_bytes = kBeforeBytes;
      } else {
        words.words = block.bytes;
      }
      to.add(std::move(words));
    }
  }
  std::vector<WordStore> stores() const {
    std::vector<WordStore> made;
    for (size_t i = 0; i < blocks_.size(); ++i) {
      for (const PatchRecord& patch : blocks_[i].patches) {
        made.push_back({static_cast<uint32_t>(i), patch.offset_bytes, patch.value,
                        static_cast<uint8_t>(patch.width_bytes), blocks_[i].is_remote,
                        patch.addend});
      }
    }
    return made;
  }
  uint64_t remote_stores() const {
    uint64_t count = 0;
    for (const Block& block : blocks_) count += block.is_remote ? block.patches.size() : 0;
    return count;
  }

 private:
  static constexpr uint64_t kBeforeBytes = 24;
  struct Block {
    std::vector<PatchRecord> patches;
    std::vector<std::byte> bytes, expected;
    bool is_remote = false;
    runtime::MemoryRef memory;
  };
  std::byte* bytes_of(Block& block) {
    if (!block.is_remote) return block.bytes.data();
    return dynamic_cast<vdev::SimulatedMemory&>(*block.memory).bytes() + kBeforeBytes;
  }
  runtime::QueuedDevice& window_;
  std::vector<Block> blocks_;
};

vdev::DeviceSpec behind_a_window() {
  vdev::DeviceSpec spec;
  spec.name = "USB";
  spec.capabilities.crosses_host_memory = true;
  return spec;
}

/// Programs of shapes that were met already.
class Programs {
 public:
  exec::SubmitProgram of(std::vector<WordStore> stores, bool is_rolled) {
    const SubmitCode code = exec::make_submit_code(std::move(stores), is_rolled);
    const exec::ContentHash hash = exec::hash_submit_code(code);
    const auto found = known_.find(hash);
    if (found != known_.end()) return found->second;
    auto image = codegen::compile_submit_program(code, detect_host_target(), "submit");
    EXPECT_TRUE(image) << (image ? "" : image.error().to_string());
    const exec::SubmitProgram made{*std::move(image), hash, is_rolled};
    known_.emplace(hash, made);
    return made;
  }
  size_t count() const { return known_.size(); }

 private:
  std::map<exec::ContentHash, exec::SubmitProgram> known_;
};

std::vector<PatchRecord> random_patches(std::mt19937_64& rng, size_t values, size_t* size_bytes) {
  std::vector<PatchRecord> patches;
  uint32_t at = static_cast<uint32_t>(rng() % 5);
  for (size_t count = rng() % 7; count > 0; --count) {
    const uint32_t width = 1U << rng() % 4;
    PatchRecord patch;
    patch.offset_bytes = at;
    patch.width_bytes = width;
    patch.value = static_cast<uint32_t>(rng() % values);
    // None, small of both signs, and ones that overflow.
    patch.addend = rng() % 3 == 0   ? 0
                   : rng() % 2 == 0 ? static_cast<int64_t>(rng() % 100) - 50
                                    : static_cast<int64_t>(rng());
    patches.push_back(patch);
    at += width + static_cast<uint32_t>(rng() % 4);
  }
  *size_bytes = at + rng() % 4;
  return patches;
}

/// One random set of blocks: filled by the program twice with other values, and by the loop.
void check_random_set(vdev::World& world, std::mt19937_64& rng, Programs& programs,
                      bool is_rolled) {
  std::vector<uint64_t> values(1 + rng() % 6);
  Words words(world);
  for (size_t blocks = 1 + rng() % 4; blocks > 0; --blocks) {
    size_t size_bytes = 0;
    std::vector<PatchRecord> patches = random_patches(rng, values.size(), &size_bytes);
    if (!patches.empty()) words.add(std::move(patches), size_bytes, rng() % 4 == 0);
  }
  if (words.stores().empty()) return;
  RunTimeWords linked;
  words.link(linked);
  const exec::SubmitProgram made = programs.of(words.stores(), is_rolled);
  const auto loaded = cpu()->load(made.image);
  ASSERT_TRUE(loaded) << loaded.error().to_string();
  const Status used = linked.use(made, *loaded);
  ASSERT_TRUE(used) << used.error().to_string();
  for (int run = 0; run < 3; ++run) {
    for (uint64_t& value : values) value = rng();
    words.reset(std::byte{0xA5});
    words.expect_stores(values);
    const uint64_t before = world.window_stores("USB");
    ASSERT_TRUE(run < 2 ? linked.fill(values) : linked.fill_by_loop(values));
    ASSERT_TRUE(words.are_as_expected()) << (run < 2 ? "program" : "loop") << " of " << run;
    ASSERT_EQ(world.window_stores("USB") - before, words.remote_stores());
  }
}

TEST(SubmitProgram, WritesTheBytesThatTheLoopWrites) {
  const uint64_t seed = test_seed();
  SCOPED_TRACE(seed);
  std::mt19937_64 rng(seed);
  vdev::World world;
  world.add(behind_a_window());
  Programs programs;
  // A program is compiled for each short set, and for all long ones together at most one for each set of kinds.
  for (int i = 0; i < 10'000 && !HasFatalFailure(); ++i) {
    check_random_set(world, rng, programs, /*is_rolled=*/i % 8 != 0);
  }
  EXPECT_LE(programs.count(), 10'000u / 8 + 255);
}

TEST(SubmitProgram, FN7_APatchTouchesItsOwnBytesOnly) {
  for (const bool is_rolled : {false, true}) {
    const std::vector<PatchRecord> patches = {{1, 2, 0, 0}};
    std::vector<std::byte> bytes(6, std::byte{0xA5});
    RunTimeWords words;
    words.add({.words = bytes, .patches = patches});
    Programs programs;
    const exec::SubmitProgram made = programs.of({{0, 1, 0, 2, false, 0}}, is_rolled);
    ASSERT_TRUE(words.use(made, cpu()->load(made.image).value()));
    const std::vector<uint64_t> values = {0xBEEF};
    ASSERT_TRUE(words.fill(values));
    const std::vector<int> expected = {0xA5, 0xEF, 0xBE, 0xA5, 0xA5, 0xA5};
    for (size_t i = 0; i < expected.size(); ++i) {
      EXPECT_EQ(std::to_integer<int>(bytes[i]), expected[i]) << i;
    }
  }
}

TEST(SubmitProgram, FN6_OnlyTheHoleIsFilled) {
  // u32 1, addr64, u32 2: an address at byte 4, which no natural alignment allows for.
  for (const bool is_rolled : {false, true}) {
    std::vector<std::byte> bytes(16);
    bytes[0] = std::byte{1};
    bytes[12] = std::byte{2};
    RunTimeWords words;
    words.add({.words = bytes, .patches = {{4, 8, 1, 16}}});
    Programs programs;
    const exec::SubmitProgram made = programs.of({{0, 4, 1, 8, false, 16}}, is_rolled);
    ASSERT_TRUE(words.use(made, cpu()->load(made.image).value()));
    const std::vector<uint64_t> values = {0, 0x0807060504030200};
    ASSERT_TRUE(words.fill(values));
    const std::vector<int> expected = {1, 0, 0, 0, 0x10, 2, 3, 4, 5, 6, 7, 8, 2, 0, 0, 0};
    for (size_t i = 0; i < expected.size(); ++i) {
      EXPECT_EQ(std::to_integer<int>(bytes[i]), expected[i]) << i;
    }
  }
}

/// The size of a program of `count` stores.
uint64_t object_bytes(size_t count, bool is_rolled) {
  std::vector<WordStore> stores;
  for (size_t i = 0; i < count; ++i) {
    stores.push_back({0, static_cast<uint32_t>(12 * i), static_cast<uint32_t>(i % 10), 8, false,
                      static_cast<int64_t>(i)});
  }
  Programs programs;
  return programs.of(std::move(stores), is_rolled).image.object.size();
}

TEST(SubmitProgram, W5_ALongOneIsNoLargerThanAShortOne) {
  EXPECT_EQ(object_bytes(1'000, true), object_bytes(100, true));
  EXPECT_EQ(object_bytes(100'000, true), object_bytes(100, true));
  EXPECT_LT(object_bytes(100'000, true), 2'000u);
}

TEST(SubmitProgram, CallsNothingThatItIsNotHanded) {
  // A remote store is a call through a pointer: the loader takes it, for it refuses every outside symbol.
  Programs programs;
  for (const bool is_rolled : {false, true}) {
    const exec::SubmitProgram made =
        programs.of({{0, 0, 0, 8, true, 0}, {1, 3, 0, 1, false, 7}}, is_rolled);
    EXPECT_TRUE(cpu()->load(made.image));
    EXPECT_EQ(made.image.buffer_count, kSubmitBuffers);
  }
}

TEST(SubmitProgram, AnotherArchitecturesIsCompiledAndRefusedHere) {
  const SubmitCode code = exec::make_submit_code({{0, 0, 0, 8, true, 0}, {1, 3, 0, 1}}, false);
  const Target other =
      make_target(detect_host_target().arch == Arch::X86_64 ? Isa::Neon : Isa::Sse2);
  const auto image = codegen::compile_submit_program(code, other, "submit");
  ASSERT_TRUE(image) << image.error().to_string();
  EXPECT_EQ(cpu()->load(*image).error().code(), ErrorCode::Unsupported);
}

TEST(SubmitProgram, AStoreOfThreeBytesIsRefused) {
  const SubmitCode code = exec::make_submit_code({{0, 0, 0, 3, false, 0}}, false);
  const auto image = codegen::compile_submit_program(code, detect_host_target(), "submit");
  ASSERT_FALSE(image);
  EXPECT_EQ(image.error().code(), ErrorCode::InvalidArgument);
}

// ---- in a template, linked and run ------------------------------------------------------------------------------

/// `calls` kernels on one device that add 1 to input 0 … and write placeholders, then input 1.
struct SubmitRig : Rig {
  runtime::QueuedDevice& device;
  CountingCompiler compiler;
  int add_one;

  explicit SubmitRig(size_t most_in_code = 64, vdev::DeviceSpec spec = {})
      : device(add_device("G", 1, std::move(spec))),
        compiler(most_in_code),
        add_one(add_program("add_one", 2, float_map(4, [](float x) { return x + 1; }))) {
    submit_compiler = &compiler;
    host->native = cpu();
  }

  void chain(int calls) {
    const exec::BufferView from = input(0, "G"), to = input(1, "G");
    exec::BufferView last = from;
    for (int i = 0; i < calls; ++i) {
      const exec::BufferView next = i + 1 == calls ? to : buffer("b" + std::to_string(i), {"G"});
      kernel({next}, {last}).program = add_one;
      last = next;
    }
  }
  std::vector<exec::BoundInput> inputs(float value) {
    std::vector<exec::BoundInput> made;
    for (int i = 0; i < 2; ++i) made.push_back(exec::bind(memory("G", 16)));
    write_floats(made[0].lanes[0], std::vector<float>(4, value));
    return made;
  }
  static const exec::LinkedBatch& batch(const exec::LinkedSchedule& linked) {
    for (const exec::LinkedStep& step : linked.steps()) {
      if (step.batch != nullptr) return *step.batch;
    }
    throw std::logic_error("no batch");
  }
};

void expect_chain(SubmitRig& rig, exec::LinkedSchedule& linked, int calls) {
  for (int run = 0; run < 3; ++run) {
    const auto value = static_cast<float>(10 * run);
    const std::vector<exec::BoundInput> inputs = rig.inputs(value);
    const Status status = exec::run(linked, inputs);
    ASSERT_TRUE(status) << status.error().to_string();
    EXPECT_EQ(read_floats(inputs[1].lanes[0], 4),
              std::vector<float>(4, value + static_cast<float>(calls)));
  }
}

TEST(SubmitProgram, ARunUsesIt) {
  for (const size_t most_in_code : {size_t{64}, size_t{0}}) {
    SubmitRig rig(most_in_code);
    rig.chain(3);
    const auto linked = rig.link();
    ASSERT_TRUE(linked) << linked.error().to_string();
    EXPECT_TRUE(rig.batch(**linked).words.has_program());
    EXPECT_EQ((*linked)->queues().submit_programs.at(0).is_rolled, most_in_code == 0);
    expect_chain(rig, **linked, 3);
  }
}

TEST(SubmitProgram, WithoutACompilerTheLoopRuns) {
  SubmitRig rig;
  rig.submit_compiler = nullptr;
  rig.chain(3);
  const auto linked = rig.link();
  ASSERT_TRUE(linked) << linked.error().to_string();
  EXPECT_FALSE(rig.batch(**linked).words.has_program());
  expect_chain(rig, **linked, 3);
}

TEST(SubmitProgram, TakenOutItCanBeMadeAgain) {
  SubmitRig rig;
  rig.chain(2);
  exec::QueueTemplate made = rig.compile_shared().value()->queues();
  const std::string name = made.submit_programs.at(0).image.name;
  exec::remove_submit_programs(made);
  EXPECT_TRUE(made.submit_programs.empty());
  ASSERT_TRUE(engine::add_submit_programs(made, rig.find, rig.compiler));
  EXPECT_EQ(made.submit_programs.at(0).image.name, name);
}

TEST(SubmitProgram, EqualShapesShareOne) {
  // A call on the host cuts the schedule into two batches of the same shape.
  SubmitRig rig;
  const exec::BufferView on_host = rig.buffer("h", {"CPU"}), also = rig.buffer("h2", {"CPU"});
  rig.kernel({rig.buffer("x", {"G"})}, {rig.input(0, "G")}).program = rig.add_one;
  rig.kernel({on_host}, {also}).program = rig.add_one;
  rig.kernel({rig.buffer("y", {"G"})}, {rig.input(0, "G")}).program = rig.add_one;
  const exec::TemplateRef shared = rig.compile_shared().value();
  const exec::QueueTemplate& made = shared->queues();
  std::vector<int> programs;
  for (const exec::TemplateStep& step : made.steps) {
    if (!step.is_host) programs.push_back(step.batch.submit_program);
  }
  ASSERT_EQ(programs.size(), 2u);
  EXPECT_GE(programs[0], 0);
  EXPECT_EQ(programs[0], programs[1]);
  EXPECT_EQ(static_cast<size_t>(rig.compiler.compiled), made.submit_programs.size());
}

TEST(SubmitProgram, LK8_MoreProgramsMakeNoMoreArguments) {
  std::set<int> arguments;
  for (const int programs : {2, 12}) {
    SubmitRig rig;
    exec::BufferView last = rig.input(0, "G");
    for (int i = 0; i < programs; ++i) {
      const int program =
          rig.add_program("p" + std::to_string(i), 2, float_map(4, [](float x) { return x; }));
      const exec::BufferView next = rig.buffer("b" + std::to_string(i), {"G"});
      rig.kernel({next}, {last}).program = program;
      last = next;
    }
    const exec::TemplateRef shared = rig.compile_shared().value();
    const exec::QueueTemplate& made = shared->queues();
    ASSERT_EQ(made.submit_programs.size(), 1u);
    arguments.insert(made.submit_programs[0].image.buffer_count);
  }
  EXPECT_EQ(arguments, std::set<int>{kSubmitBuffers});
}

TEST(SubmitProgram, OneForOtherWordsIsRefused) {
  SubmitRig rig;
  rig.chain(3);
  exec::QueueTemplate made = rig.compile_shared().value()->queues();
  SubmitRig other;
  other.chain(2);
  made.submit_programs = other.compile_shared().value()->queues().submit_programs;
  const auto linked =
      exec::link(rig.machine, std::make_shared<const exec::SharedTemplate>(std::move(made)), {});
  ASSERT_FALSE(linked);
  EXPECT_EQ(linked.error().reason(), "BadSubmitProgram");
}

TEST(SubmitProgram, OneWithAnOutsideSymbolIsRefused) {
  SubmitRig rig;
  rig.chain(1);
  exec::QueueTemplate made = rig.compile_shared().value()->queues();
  cpu::test::ObjectWriter writer;
  const uint16_t text = writer.text(std::vector<uint8_t>(16, 0x90));
  writer.symbol(made.submit_programs[0].image.name, text, 0);
  writer.relocation(text, 8, R_X86_64_PLT32, writer.symbol("system", 0, 0, STT_NOTYPE), -4);
  made.submit_programs[0].image.object = writer.write();
  const auto linked =
      exec::link(rig.machine, std::make_shared<const exec::SharedTemplate>(std::move(made)), {});
  ASSERT_FALSE(linked);
  EXPECT_EQ(linked.error().reason(), "UndefinedSymbol") << linked.error().to_string();
  EXPECT_NE(linked.error().message().find("'system'"), std::string::npos);
}

TEST(SubmitProgram, TheTemplateCacheTellsThemApart) {
  SubmitRig rig;
  rig.chain(2);
  std::vector<exec::BoundInput> inputs = rig.inputs(0);
  const auto compile = [&] {
    std::vector<exec::BoundInput> bound = inputs;
    return rig.compile_shared(true, &bound).value();
  };
  const exec::TemplateRef with = compile();
  const uint64_t with_bytes = rig.cache.counts().size_bytes;
  EXPECT_EQ(compile(), with);
  EXPECT_EQ(rig.compiler.compiled, 1);
  rig.submit_compiler = nullptr;
  const exec::TemplateRef without = compile();
  EXPECT_NE(without, with);
  const uint64_t without_bytes = rig.cache.counts().size_bytes - with_bytes;
  EXPECT_GT(with_bytes, without_bytes + 500) << "The program's object counts.";
}

/// Words behind a window are stored through it, in as many stores as there are holes, and never by an address.
TEST(SubmitProgram, WordsBehindAWindowAreStoredThroughIt) {
  for (const bool has_program : {true, false}) {
    vdev::DeviceSpec spec;
    spec.capabilities.crosses_host_memory = true;
    SubmitRig rig(64, spec);
    if (!has_program) rig.submit_compiler = nullptr;
    rig.chain(3);
    const auto linked = rig.link();
    ASSERT_TRUE(linked) << linked.error().to_string();
    EXPECT_EQ(rig.batch(**linked).words.has_program(), has_program);
    EXPECT_EQ(rig.world.window_stores("G"), 0u);
    expect_chain(rig, **linked, 3);
    // The first call reads input 0 and the last writes input 1: two words a run. What waits and stores is in the stream.
    EXPECT_EQ(rig.world.window_stores("G"), 3u * 2);
  }
}

TEST(SubmitProgram, AStoreThatFailsEndsTheSubmitBeforeItIsAnnounced) {
  for (const bool has_program : {true, false}) {
    vdev::DeviceSpec spec;
    spec.capabilities.crosses_host_memory = true;
    SubmitRig rig(64, spec);
    if (!has_program) rig.submit_compiler = nullptr;
    rig.chain(3);
    const auto linked = rig.link();
    ASSERT_TRUE(linked) << linked.error().to_string();
    const std::vector<exec::BoundInput> inputs = rig.inputs(1);
    rig.world.inject("G", {.kind = vdev::FaultKind::HalfUpload});
    const Status failed = exec::run(**linked, inputs);
    ASSERT_FALSE(failed);
    EXPECT_EQ(failed.error().reason(), "UploadFailed");
    EXPECT_EQ(rig.device.timeline().announced.load(), 0u);
    EXPECT_EQ(rig.world.window_stores("G"), 1u) << "Nothing is stored behind it.";
    expect_chain(rig, **linked, 3);
  }
}

TEST(SubmitProgram, ARunAllocatesNothing) {
  SubmitRig rig;
  rig.chain(3);
  const auto linked = rig.link();
  ASSERT_TRUE(linked);
  auto& words = const_cast<RunTimeWords&>(rig.batch(**linked).words);
  const std::vector<uint64_t> values = rig.batch(**linked).values;
  const int64_t before = allocation_count();
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(words.fill(values));
  EXPECT_EQ(allocation_count() - before, 0);
}

}  // namespace
}  // namespace ignis::testing
