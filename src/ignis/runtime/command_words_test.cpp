#include "ignis/runtime/command_words.h"

#include <gtest/gtest.h>

namespace ignis::runtime {
namespace {

TEST(CommandWords, FN6_AnUnknownAddressLeavesZerosAndAPatch) {
  EncodedQueue queue;
  CommandWords words(queue);
  words.u32(1);
  words.address(9);
  words.u32(2);
  const std::vector<std::byte> expected = {std::byte{1}, {}, {}, {}, {},           {}, {}, {},
                                           {},           {}, {}, {}, std::byte{2}, {}, {}, {}};
  EXPECT_EQ(queue.bytes, expected);
  ASSERT_EQ(queue.patches.size(), 1u);
  EXPECT_EQ(queue.patches[0], (Patch{.offset_bytes = 4,
                                     .width_bytes = 8,
                                     .source = Patch::Source::Address,
                                     .index = 9,
                                     .addend = 0}));
}

TEST(CommandWords, ConstantsAreLittleEndianOfTheirWidth) {
  EncodedQueue queue;
  CommandWords words(queue);
  words.constant(0x1122334455667788, 4);
  words.constant(0x1122334455667788, 8);
  const std::vector<std::byte> expected = {std::byte{0x88}, std::byte{0x77}, std::byte{0x66},
                                           std::byte{0x55}, std::byte{0x88}, std::byte{0x77},
                                           std::byte{0x66}, std::byte{0x55}, std::byte{0x44},
                                           std::byte{0x33}, std::byte{0x22}, std::byte{0x11}};
  EXPECT_EQ(queue.bytes, expected);
}

}  // namespace
}  // namespace ignis::runtime
