#include "ignis/exec/patch.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace ignis::exec
