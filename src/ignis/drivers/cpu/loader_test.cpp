#include "ignis/drivers/cpu/loader.h"

#include "ignis/drivers/cpu/relocate.h"
#include "ignis/drivers/cpu/test_object.h"

#include "tests/support/seed.h"
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <random>

namespace ignis::cpu {
namespace {

using ignis::testing::test_seed;

using test::ObjectWriter;
using Bytes = std::vector<std::byte>;

void expect_error(const Result<LoadedObject>& result, ErrorCode code, const std::string& part) {
  ASSERT_FALSE(result) << "expected: " << part;
  EXPECT_EQ(result.error().code(), code) << result.error().to_string();
  EXPECT_NE(result.error().message().find(part), std::string::npos) << result.error().message();
}

TEST(Loader, RunsCodeThatReadsARelocatedConstant) {
  const auto object = LoadedObject::load(test::host_add_constant().write(), "kernel");
  ASSERT_TRUE(object) << object.error().to_string();
  int64_t out[3] = {};
  void* buffers[] = {out};
  for (int64_t part = 0; part < 3; ++part) object->entry()(buffers, part, 3);
  EXPECT_EQ(out[0], 7);
  EXPECT_EQ(out[1], 8);
  EXPECT_EQ(out[2], 9);
}

TEST(Loader, NeverMapsPagesWritableAndExecutable) {
  const auto object = LoadedObject::load(test::host_add_constant().write(), "kernel");
  ASSERT_TRUE(object);
  const auto begin = reinterpret_cast<uint64_t>(object->image().data());
  const uint64_t end = begin + object->image().size();
  std::ifstream maps("/proc/self/maps");
  int seen = 0;
  for (std::string line; std::getline(maps, line);) {
    uint64_t from = 0, to = 0;
    char rights[5] = {};
    ASSERT_EQ(std::sscanf(line.c_str(), "%lx-%lx %4s", &from, &to, rights), 3);
    if (to <= begin || from >= end) continue;
    ++seen;
    EXPECT_EQ(rights[1], '-') << line;
  }
  EXPECT_GE(seen, 1);
}

TEST(Loader, NamesAllUndefinedSymbols) {
  ObjectWriter writer;
  const uint16_t text = writer.text(std::vector<uint8_t>(16, 0x90));
  writer.symbol("kernel", text, 0);
  writer.relocation(text, 0, R_X86_64_PLT32, writer.symbol("memset", 0, 0, STT_NOTYPE), -4);
  writer.relocation(text, 8, R_X86_64_PLT32, writer.symbol("expf", 0, 0, STT_NOTYPE), -4);
  const auto result = LoadedObject::load(writer.write(), "kernel");
  expect_error(result, ErrorCode::Unsupported, "'expf', 'memset'");
  EXPECT_EQ(result.error().reason(), "UndefinedSymbol");
}

TEST(Loader, RefusesWhatAProgramHasNot) {
  const auto with = [](auto&& change) {
    ObjectWriter writer = test::x86_64_add_constant();
    change(writer);
    return LoadedObject::load(writer.write(), "kernel");
  };
  expect_error(LoadedObject::load(test::x86_64_add_constant("other").write(), "kernel"),
               ErrorCode::InvalidArgument, "'kernel'");
  expect_error(with([](ObjectWriter& w) {
                 w.section(".data", SHT_PROGBITS, SHF_ALLOC | SHF_WRITE, {1, 2, 3, 4});
               }),
               ErrorCode::Unsupported, ".data");
  expect_error(with([](ObjectWriter& w) {
                 w.section(".tdata", SHT_PROGBITS, SHF_ALLOC | SHF_TLS, {1, 2, 3, 4});
               }),
               ErrorCode::Unsupported, ".tdata");
  expect_error(with([](ObjectWriter& w) {
                 w.section(".init_array", SHT_INIT_ARRAY, SHF_ALLOC, std::vector<uint8_t>(8));
               }),
               ErrorCode::Unsupported, ".init_array");
  expect_error(with([](ObjectWriter& w) { w.relocation(1, 6, R_X86_64_GOTPCREL, 1, -4); }),
               ErrorCode::Unsupported, "kind 9 of x86-64");
  expect_error(with([](ObjectWriter& w) { w.relocation(1, 15, R_X86_64_PC32, 1, -4); }),
               ErrorCode::InvalidArgument, "outside its section of 18 bytes");
  expect_error(with([](ObjectWriter& w) { w.relocation(1, ~uint64_t{0}, R_X86_64_PC32, 1, -4); }),
               ErrorCode::InvalidArgument, "outside its section");
  expect_error(
      with([](ObjectWriter& w) { w.relocation(1, 6, R_X86_64_PC32, 1, int64_t{1} << 40); }),
      ErrorCode::InvalidArgument, "does not fit");
  expect_error(with([](ObjectWriter& w) { w.relocation(1, 6, R_X86_64_PC32, 99, 0); }),
               ErrorCode::InvalidArgument, "symbol 99");
  expect_error(with([](ObjectWriter& w) { w.symbol("far", 2, 17); }), ErrorCode::InvalidArgument,
               "'far' at 17");
  expect_error(with([](ObjectWriter& w) { w.symbol("lost", 77, 0); }), ErrorCode::InvalidArgument,
               "section 77");
  expect_error(with([](ObjectWriter& w) { w.section(".odd", SHT_PROGBITS, SHF_ALLOC, {1}, 24); }),
               ErrorCode::InvalidArgument, "alignment of 24");
  expect_error(
      with([](ObjectWriter& w) { w.section(".wide", SHT_PROGBITS, SHF_ALLOC, {1}, 1 << 20); }),
      ErrorCode::InvalidArgument, "alignment");
  ObjectWriter no_code;
  no_code.constants({1});
  expect_error(LoadedObject::load(no_code.write(), "kernel"), ErrorCode::InvalidArgument,
               "no code");
  expect_error(LoadedObject::load({}, "kernel"), ErrorCode::InvalidArgument, "0 bytes");
  expect_error(LoadedObject::load(ObjectWriter(EM_RISCV).write(), "kernel"), ErrorCode::Unsupported,
               "machine");
}

// Objects of both architectures: the loader relocates either anywhere.
class HostileObject : public ::testing::TestWithParam<Arch> {
 protected:
  static Bytes original() {
    return GetParam() == Arch::X86_64 ? test::x86_64_add_constant().write()
                                      : test::aarch64_add_constant().write();
  }
};

TEST_P(HostileObject, EveryTruncationIsRefused) {
  const Bytes object = original();
  ASSERT_TRUE(LoadedObject::load(object, "kernel"));
  for (size_t size = 0; size < object.size(); ++size) {
    // A buffer of its own, so that a sanitizer sees a read past the end.
    const Bytes cut(object.begin(), object.begin() + static_cast<ptrdiff_t>(size));
    EXPECT_FALSE(LoadedObject::load(cut, "kernel")) << size;
  }
}

// Whatever the bytes say, the loader returns: an error, or an image inside its own mapping. Nothing is run.
TEST_P(HostileObject, MutationsNeverHarm) {
  const uint64_t seed = test_seed();
  SCOPED_TRACE("IGNIS_TEST_SEED=" + std::to_string(seed));
  std::mt19937_64 rng(seed);
  const Bytes unchanged = original();
  const uint64_t interesting[] = {0,
                                  1,
                                  0x7f,
                                  0xff,
                                  0xffff,
                                  0x7fffffff,
                                  0xffffffff,
                                  ~uint64_t{0},
                                  uint64_t{1} << 63,
                                  unchanged.size(),
                                  unchanged.size() - 1};
  int refused = 0;
  for (int i = 0; i < 20'000; ++i) {
    Bytes object = unchanged;
    const int changes = 1 + static_cast<int>(rng() % 4);
    for (int c = 0; c < changes; ++c) {
      const size_t at = rng() % object.size();
      const uint64_t value = rng() % 2 == 0 ? rng() : interesting[rng() % std::size(interesting)];
      const size_t width = std::min<size_t>(size_t{1} << (rng() % 4), object.size() - at);
      std::memcpy(object.data() + at, &value, width);
    }
    const auto result = LoadedObject::load(object, "kernel");
    if (!result) {
      ++refused;
      continue;
    }
    EXPECT_LT(result->entry_offset(), result->text_bytes());
    EXPECT_LE(result->text_bytes(), result->image().size());
  }
  EXPECT_GT(refused, 1000);
}

INSTANTIATE_TEST_SUITE_P(Loader, HostileObject, ::testing::Values(Arch::X86_64, Arch::AArch64),
                         [](const auto& test) {
                           return test.param == Arch::X86_64 ? "x86_64" : "aarch64";
                         });

// AArch64 instruction words, worked out by hand from the encodings in the Arm ARM.
TEST(Loader, RelocatesAArch64) {
  ObjectWriter writer(EM_AARCH64);
  std::vector<uint8_t> code;
  for (const uint32_t word : {0x90000000u,     // adrp x0, constant
                              0x91000000u,     // add x0, x0, :lo12:constant
                              0x3dc00000u,     // ldr q0, [x0, :lo12:constant]
                              0xbd400000u,     // ldr s0, [x0, :lo12:constant]
                              0x94000000u,     // bl helper
                              0xd65f03c0u}) {  // ret (the helper)
    for (int shift = 0; shift < 32; shift += 8) code.push_back(static_cast<uint8_t>(word >> shift));
  }
  const uint16_t text = writer.text(code);
  const uint16_t constants = writer.constants(std::vector<uint8_t>(64));
  const uint32_t table = writer.symbol("table", constants, 0, STT_OBJECT);
  const uint32_t kernel = writer.symbol("kernel", text, 0);
  writer.relocation(text, 0, R_AARCH64_ADR_PREL_PG_HI21, table, 48);
  writer.relocation(text, 4, R_AARCH64_ADD_ABS_LO12_NC, table, 48);
  writer.relocation(text, 8, R_AARCH64_LDST128_ABS_LO12_NC, table, 48);
  writer.relocation(text, 12, R_AARCH64_LDST32_ABS_LO12_NC, table, 4);
  writer.relocation(text, 16, R_AARCH64_CALL26, kernel, 20);
  const auto object = LoadedObject::load(writer.write(), "kernel");
  ASSERT_TRUE(object) << object.error().to_string();
  EXPECT_EQ(object->arch(), Arch::AArch64);
  const uint64_t text_pages = object->text_bytes() / 4096;  // more than one where pages are larger
  ASSERT_LT(text_pages, 32u);
  const auto word = [&](size_t i) {
    uint32_t value;
    std::memcpy(&value, object->image().data() + 4 * i, 4);
    return value;
  };
  // As many pages of 4096 bytes further, whatever the machine's are: bits 0 and 1 in immlo, the rest in immhi.
  EXPECT_EQ(word(0), 0x90000000u | (text_pages & 3) << 29 | text_pages >> 2 << 5);
  EXPECT_EQ(word(1), 0x91000000u | 48u << 10);
  EXPECT_EQ(word(2), 0x3dc00000u | 3u << 10);  // 48 / 16
  EXPECT_EQ(word(3), 0xbd400000u | 1u << 10);  // 4 / 4
  EXPECT_EQ(word(4), 0x94000001u);             // one instruction further
}

TEST(Relocate, ChecksRangeAndAlignment) {
  uint32_t words[2] = {0x94000000u, 0};
  const std::span<std::byte> section(reinterpret_cast<std::byte*>(words), sizeof(words));
  Patch patch;
  patch.section = section;
  patch.place_address = 0x10000000;
  patch.type = R_AARCH64_CALL26;
  patch.symbol_address = patch.place_address + (uint64_t{1} << 27) - 4;
  EXPECT_TRUE(apply(Arch::AArch64, patch));
  EXPECT_EQ(words[0], 0x95ffffffu);
  patch.symbol_address = patch.place_address + (uint64_t{1} << 27);
  EXPECT_FALSE(apply(Arch::AArch64, patch));
  patch.symbol_address = patch.place_address - (uint64_t{1} << 27);
  EXPECT_TRUE(apply(Arch::AArch64, patch));
  EXPECT_EQ(words[0], 0x96000000u);
  patch.symbol_address = patch.place_address + 2;
  EXPECT_FALSE(apply(Arch::AArch64, patch));
  patch.type = R_AARCH64_LDST64_ABS_LO12_NC;
  patch.symbol_address = 0x1004;
  EXPECT_FALSE(apply(Arch::AArch64, patch));
  patch.offset = 6;
  patch.symbol_address = 0x1008;
  EXPECT_FALSE(apply(Arch::AArch64, patch));
}

}  // namespace
}  // namespace ignis::cpu
