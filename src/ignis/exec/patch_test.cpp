#include "ignis/exec/patch.h"

#include "ignis/exec/submit_program.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

namespace ignis::exec {
namespace {

std::vector<int> numbers(const std::vector<std::byte>& bytes) {
  std::vector<int> values;
  for (const std::byte byte : bytes) values.push_back(std::to_integer<int>(byte));
  return values;
}

TEST(HostFence, FN7_APatchTouchesItsOwnBytesOnly) {
  std::vector<std::byte> words(6, std::byte{0xA5});
  const std::vector<PatchRecord> records = {{1, 2, 0, 0}};
  const std::vector<uint64_t> values = {0xBEEF};
  apply_patches(records, values, words);
  EXPECT_EQ(numbers(words), (std::vector<int>{0xA5, 0xEF, 0xBE, 0xA5, 0xA5, 0xA5}));
}

TEST(Patches, AddAndStoreTheLowBytes) {
  std::vector<std::byte> words(17, std::byte{0xFF});
  const std::vector<PatchRecord> records = {{0, 8, 1, 4}, {8, 4, 0, 1}, {16, 1, 0, -1}};
  const std::vector<uint64_t> values = {0x1'0000'00FF, 0x0102030405060700};
  apply_patches(records, values, words);
  EXPECT_EQ(numbers(words),
            (std::vector<int>{4, 7, 6, 5, 4, 3, 2, 1, 0, 1, 0, 0, 0xFF, 0xFF, 0xFF, 0xFF, 0xFE}));
}

/// A program that is a C++ function.
class HostFunction final : public runtime::Program {
 public:
  explicit HostFunction(HostEntry entry, int buffer_count = kSubmitBuffers)
      : Program("submit", buffer_count), entry_(entry) {}
  HostEntry host_entry() const override { return entry_; }

 private:
  HostEntry entry_;
};

SubmitProgram made_for(std::vector<WordStore> stores, bool is_rolled) {
  SubmitProgram made;
  made.image.name = "submit";
  made.code = hash_submit_code(make_submit_code(std::move(stores), is_rolled));
  made.is_rolled = is_rolled;
  return made;
}

/// What a rolled program does with local stores.
void run_rows(void* const* buffers, int64_t /*part*/, int64_t /*parts*/) {
  const auto* values = static_cast<const uint64_t*>(buffers[0]);
  const auto* table = static_cast<const StoreTable*>(buffers[3]);
  uint64_t row = 0;
  for (uint32_t kind = 0; kind < 4; ++kind) {
    for (; row < table->end[kind]; ++row) {
      const StoreRow& to = table->rows[row];
      store_word(reinterpret_cast<std::byte*>(to.place), 1U << kind,
                 values[to.value] + static_cast<uint64_t>(to.addend));
    }
  }
}

TEST(RunTimeWords, ATablesRowsAreSortedByKind) {
  std::vector<std::byte> first(12), second(4);
  RunTimeWords words;
  words.add({.words = first, .patches = {{0, 8, 1, 2}, {9, 1, 0, 0}}});
  words.add({.words = second, .patches = {{1, 2, 0, -1}}});
  const SubmitProgram made =
      made_for({{1, 1, 0, 2, false, -1}, {0, 0, 1, 8, false, 2}, {0, 9, 0, 1, false, 0}},
               /*is_rolled=*/true);
  ASSERT_TRUE(words.use(made, std::make_shared<HostFunction>(run_rows)));
  EXPECT_TRUE(words.has_program());
  const std::vector<uint64_t> values = {0x0102, 0x1112131415161718};
  ASSERT_TRUE(words.fill(values));
  EXPECT_EQ(numbers(first),
            (std::vector<int>{0x1A, 0x17, 0x16, 0x15, 0x14, 0x13, 0x12, 0x11, 0, 2, 0, 0}));
  EXPECT_EQ(numbers(second), (std::vector<int>{0, 1, 1, 0}));
  // The loop does the same.
  std::fill(first.begin(), first.end(), std::byte{0});
  ASSERT_TRUE(words.fill_by_loop(values));
  EXPECT_EQ(first[9], std::byte{2});
  EXPECT_EQ(first[7], std::byte{0x11});
}

TEST(RunTimeWords, AProgramForOtherHolesIsRefused) {
  const std::vector<WordStore> right = {{0, 4, 1, 8, false, 16}};
  const auto status_of = [](std::vector<WordStore> stores,
                            std::shared_ptr<const runtime::Program> program) {
    std::vector<std::byte> bytes(16);
    RunTimeWords words;
    words.add({.words = bytes, .patches = {{4, 8, 1, 16}}});
    const Status status = words.use(made_for(std::move(stores), false), std::move(program));
    EXPECT_EQ(words.has_program(), static_cast<bool>(status));
    return status ? "ok" : status.error().reason();
  };
  const auto program = std::make_shared<HostFunction>(run_rows);
  EXPECT_EQ(status_of(right, program), "ok");
  EXPECT_EQ(status_of({{0, 5, 1, 8, false, 16}}, program), "BadSubmitProgram");
  EXPECT_EQ(status_of({{0, 4, 0, 8, false, 16}}, program), "BadSubmitProgram");
  EXPECT_EQ(status_of({{0, 4, 1, 4, false, 16}}, program), "BadSubmitProgram");
  EXPECT_EQ(status_of({{0, 4, 1, 8, true, 16}}, program), "BadSubmitProgram");
  EXPECT_EQ(status_of({{0, 4, 1, 8, false, 17}}, program), "BadSubmitProgram");
  EXPECT_EQ(status_of({{1, 4, 1, 8, false, 16}}, program), "BadSubmitProgram");
  EXPECT_EQ(status_of({{0, 4, 1, 8, false, 16}, {0, 12, 1, 4}}, program), "BadSubmitProgram");
  EXPECT_EQ(status_of({}, program), "BadSubmitProgram");
  EXPECT_EQ(status_of(right, nullptr), "BadSubmitProgram");
  EXPECT_EQ(status_of(right, std::make_shared<HostFunction>(nullptr)), "BadSubmitProgram");
  EXPECT_EQ(status_of(right, std::make_shared<HostFunction>(run_rows, 3)), "BadSubmitProgram");
}

TEST(SubmitCode, StoresAreNumberedAsTheLinkNumbersTheirBlocks) {
  using Source = runtime::Patch::Source;
  Batch batch;
  batch.devices = {"A", "B"};
  batch.table.resize(3);
  batch.streams.resize(2);
  batch.streams[1].device = 1;
  // Of the first stream only the second part changes, of the other one a part and its words.
  batch.streams[0].encoded.parts.resize(2);
  batch.streams[0].encoded.parts[0].patches = {{.source = Source::Address}};
  batch.streams[0].encoded.parts[1].patches = {
      {.offset_bytes = 8, .source = Source::Input, .index = 2, .addend = 5}};
  batch.streams[0].encoded.patches = {{.source = Source::Part, .index = 1}};
  batch.streams[1].encoded.parts.resize(1);
  batch.streams[1].encoded.parts[0].patches = {
      {.offset_bytes = 3, .width_bytes = 4, .source = Source::Variable, .index = 1}};
  batch.streams[1].encoded.patches = {
      {.offset_bytes = 16, .source = Source::Timeline, .index = 1, .addend = 1}};
  const std::vector<WordStore> stores =
      collect_stores(batch, [](int device) { return device == 1; });
  const std::vector<WordStore> expected = {
      {0, 8, 2, 8, false, 5},   // the table comes first
      {1, 3, 6, 4, true, 0},    // 3 entries, 2 devices, variable 1
      {2, 16, 4, 8, false, 1},  // a stream's own words are the host's
  };
  EXPECT_EQ(stores, expected);
  EXPECT_EQ(make_submit_code(stores, true).kinds, 1U << 3 | 1U << 6);
}

}  // namespace
}  // namespace ignis::exec
