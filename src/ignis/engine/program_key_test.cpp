#include "ignis/engine/program_key.h"

#include "ignis/engine/program_record.h"

#include <gtest/gtest.h>

#include <functional>
#include <random>
#include <set>

namespace ignis::engine {
namespace {

// Stands for a kernel: x[i] + value over 8 elements.
ir::Node add_kernel(ir::Graph& graph, double value) {
  ir::ParamArg x, y;
  x.shape = y.shape = {8};
  y.slot = 1;
  const ir::Node range = graph.range(8, 0, ir::AxisKind::Loop);
  const ir::Node from = graph.param(DType::Float32, x), to = graph.param(DType::Float32, y);
  const ir::Node loaded = graph.make(ir::Op::Load, DType::Float32,
                                     {graph.make(ir::Op::Index, DType::Float32, {from, range})});
  const ir::Node sum =
      graph.alu(ir::Op::Add, {loaded, graph.constant_float(DType::Float32, value)});
  return graph.make(ir::Op::Store, DType::Void,
                    {graph.make(ir::Op::Index, DType::Float32, {to, range}), sum});
}

Digest key_of(const codegen::Config& config) {
  const Result<CodeIdentity> code = code_identity(config);
  EXPECT_TRUE(code) << code.error().to_string();
  return make_program_key(Digest{}, *code).digest;
}

TEST(ProgramKey, EveryFieldOfConfigAndTargetChangesIt) {
  using Change = std::function<void(codegen::Config&)>;
  const std::vector<Change> target_changes = {
      [](codegen::Config& c) { c.target.arch = Arch::AArch64; },
      [](codegen::Config& c) { c.target.isa = Isa::Avx2; },
      [](codegen::Config& c) { c.target.renderer = "interp"; },
      [](codegen::Config& c) { c.target.vector_bytes += 1; },
      [](codegen::Config& c) { c.target.vector_registers += 1; },
      [](codegen::Config& c) { c.target.has_fma = !c.target.has_fma; },
      [](codegen::Config& c) { c.target.l1_bytes += 1; },
      [](codegen::Config& c) { c.target.l2_bytes += 1; },
      [](codegen::Config& c) { c.target.l3_bytes += 1; },
      [](codegen::Config& c) { c.target.threads += 1; },
  };
  const std::vector<Change> config_changes = {
      [](codegen::Config&) {},  // its target: above
      [](codegen::Config& c) { c.float_level = FloatLevel::Strict; },
      [](codegen::Config& c) { c.optimize = !c.optimize; },
      [](codegen::Config& c) { c.actions = {"tile 0 4"}; },
  };
  // A field more does not compile here: add its change above.
  const codegen::Config plain;
  const auto& [f1, f2, f3, f4, f5, f6, f7, f8, f9, f10] = plain.target;
  const auto& [g1, g2, g3, g4] = plain;
  ASSERT_EQ(target_changes.size(), 10u);
  ASSERT_EQ(config_changes.size(), 4u);
  (void)f1, (void)f2, (void)f3, (void)f4, (void)f5, (void)f6, (void)f7, (void)f8, (void)f9;
  (void)f10, (void)g1, (void)g2, (void)g3, (void)g4;

  std::set<Digest> keys = {key_of(plain)};
  size_t changed = 1;
  for (const auto* changes : {&target_changes, &config_changes}) {
    for (const Change& change : *changes) {
      codegen::Config config;
      change(config);
      if (config == plain) continue;
      ++changed;
      EXPECT_TRUE(keys.insert(key_of(config)).second) << "change " << changed;
    }
  }
  EXPECT_EQ(changed, 14u);
  EXPECT_EQ(key_of(plain), key_of(codegen::Config{}));
}

TEST(ProgramKey, AListOfActionsIsNotOneLongAction) {
  codegen::Config two, one;
  two.actions = {"a", "b"};
  one.actions = {"a;1:b"};
  EXPECT_NE(key_of(two), key_of(one));
}

TEST(ProgramKey, GeneratorCompilerAndKernelChangeIt) {
  const CodeIdentity code = {"t", "o", "g", "c"};
  std::set<Digest> keys = {make_program_key(Digest{}, code).digest};
  for (std::string CodeIdentity::* part : {&CodeIdentity::target, &CodeIdentity::options,
                                           &CodeIdentity::generator, &CodeIdentity::compiler}) {
    CodeIdentity other = code;
    other.*part += "x";
    EXPECT_TRUE(keys.insert(make_program_key(Digest{}, other).digest).second);
  }
  Digest kernel{};
  kernel[31] = std::byte{1};
  EXPECT_TRUE(keys.insert(make_program_key(kernel, code).digest).second);
  // What one part loses and the next one gains is a change as well.
  EXPECT_TRUE(keys.insert(make_program_key(Digest{}, {"", "to", "g", "c"}).digest).second);
}

TEST(ProgramKey, IsTheKernelsContentWhateverItsGraph) {
  ir::Graph a, b;
  b.constant_float(DType::Float32, 7);  // other ids
  const ir::Node first = add_kernel(a, 1), second = add_kernel(b, 1);
  EXPECT_NE(first.id(), second.id());
  EXPECT_EQ(kernel_digest(first), kernel_digest(second));
  EXPECT_NE(kernel_digest(first), kernel_digest(add_kernel(a, 2)));
  EXPECT_EQ(program_symbol(kernel_digest(first)), program_symbol(kernel_digest(second)));
  EXPECT_NE(program_symbol(kernel_digest(first)), program_symbol(kernel_digest(add_kernel(a, 2))));
}

TEST(ProgramKey, SaysWhatMadeTheCode) {
  codegen::Config config;
  auto code = code_identity(config);
  ASSERT_TRUE(code);
  EXPECT_EQ(code->generator.rfind(IGNIS_TEST_VERSION " ", 0), 0u) << code->generator;
  EXPECT_EQ(code->generator.size(), std::string(IGNIS_TEST_VERSION).size() + 17);
  EXPECT_EQ(code->compiler, codegen::compiler_id());
  config.target.renderer = "c";
  code = code_identity(config);
  if (!code) GTEST_SKIP() << code.error().to_string();
  EXPECT_NE(code->compiler, codegen::compiler_id());
  EXPECT_NE(code->compiler.find("version"), std::string::npos) << code->compiler;
}

ProgramRecord small_record() {
  ProgramRecord record;
  record.key = make_program_key(digest_of({}), {"isa=avx2", "float=finite", "0.1.0 x", "llvm 19"});
  record.name = "k00_conv_relu";
  record.kernel.image.name = "ignis_k0011";
  record.kernel.image.object = {std::byte{1}, std::byte{2}, std::byte{3}};
  record.kernel.image.buffer_count = 4;
  record.kernel.parallel_units = 7;
  record.kernel.flops = 1.5;
  return record;
}

TEST(ProgramRecord, ReadsBackWhatWasWritten) {
  const ProgramRecord record = small_record();
  const auto copy = read_record(write_record(record));
  ASSERT_TRUE(copy) << copy.error().to_string();
  EXPECT_EQ(copy->key.digest, record.key.digest);
  EXPECT_EQ(copy->key.kernel, record.key.kernel);
  EXPECT_EQ(copy->key.code, record.key.code);
  EXPECT_EQ(copy->name, record.name);
  EXPECT_EQ(copy->kernel.image.name, "ignis_k0011");
  EXPECT_EQ(copy->kernel.image.object, record.kernel.image.object);
  EXPECT_EQ(copy->kernel.image.buffer_count, 4);
  EXPECT_EQ(copy->kernel.parallel_units, 7);
  EXPECT_EQ(copy->kernel.flops, 1.5);
}

TEST(ProgramRecord, RefusesEveryChangedByteAndEveryCut) {
  const std::vector<std::byte> whole = write_record(small_record());
  for (size_t i = 0; i < whole.size(); ++i) {
    std::vector<std::byte> changed = whole;
    changed[i] ^= std::byte{0x10};
    EXPECT_FALSE(read_record(changed)) << "byte " << i;
    EXPECT_FALSE(read_record(std::span(whole).first(i))) << i << " bytes";
  }
  std::vector<std::byte> longer = whole;
  longer.push_back(std::byte{0});
  EXPECT_FALSE(read_record(longer));
}

TEST(ProgramRecord, RefusesValuesOfNoProgramUnderAFittingDigest) {
  const auto reason_of = [](const std::function<void(ProgramRecord&)>& change) {
    ProgramRecord record = small_record();
    change(record);
    const auto copy = read_record(write_record(record));
    return copy ? std::string("accepted") : copy.error().reason();
  };
  EXPECT_EQ(reason_of([](ProgramRecord&) {}), "accepted");
  EXPECT_EQ(reason_of([](ProgramRecord& r) { r.kernel.image.object.clear(); }), "BadRecord");
  EXPECT_EQ(reason_of([](ProgramRecord& r) { r.kernel.image.name = "../x"; }), "BadRecord");
  EXPECT_EQ(reason_of([](ProgramRecord& r) { r.kernel.image.name = ""; }), "BadRecord");
  EXPECT_EQ(reason_of([](ProgramRecord& r) { r.kernel.image.buffer_count = -1; }), "BadRecord");
  EXPECT_EQ(reason_of([](ProgramRecord& r) { r.kernel.image.buffer_count = 1 << 30; }),
            "BadRecord");
  EXPECT_EQ(reason_of([](ProgramRecord& r) { r.kernel.parallel_units = -1; }), "BadRecord");
  EXPECT_EQ(reason_of([](ProgramRecord& r) { r.kernel.flops = -1; }), "BadRecord");
  EXPECT_EQ(reason_of([](ProgramRecord& r) { r.kernel.flops = 1.0 / 0.0; }), "BadRecord");
}

// Whoever makes a file by hand can also make its digest, so what lies behind the digest has to stand alone.
TEST(ProgramRecord, SurvivesAnyBytesUnderAFittingDigest) {
  const std::vector<std::byte> whole = write_record(small_record());
  const std::vector<std::byte> body(whole.begin(), whole.end() - sizeof(Digest));
  std::mt19937 rng(20261129);
  int accepted = 0;
  for (int i = 0; i < 20'000; ++i) {
    std::vector<std::byte> changed = body;
    for (uint32_t change = 0, count = 1 + rng() % 4; change < count; ++change) {
      const size_t at = rng() % changed.size();
      switch (rng() % 4) {
        case 0: changed[at] = static_cast<std::byte>(rng()); break;
        case 1: changed[at] = std::byte{0xff}; break;
        case 2: changed.resize(std::max<size_t>(at, 1)); break;
        default: changed.insert(changed.begin() + static_cast<std::ptrdiff_t>(at), rng() % 9, {});
      }
    }
    const Digest digest = digest_of(changed);
    changed.insert(changed.end(), digest.begin(), digest.end());
    const auto record = read_record(changed);
    if (!record) continue;
    ++accepted;
    EXPECT_LE(record->kernel.image.object.size(), changed.size());
    EXPECT_FALSE(record->kernel.image.object.empty());
  }
  EXPECT_GT(accepted, 100) << "Nearly all are refused: what is behind the checks is untested.";
}

}  // namespace
}  // namespace ignis::engine
