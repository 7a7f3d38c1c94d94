#include "ignis/base/byte_io.h"

#include <gtest/gtest.h>

namespace ignis {
namespace {

TEST(ByteIo, ReadsBackWhatItWrote) {
  ByteWriter writer;
  writer.put(uint32_t{0x01020304});
  writer.put(-2.5);
  writer.put_text("weights");
  writer.align(8);
  EXPECT_EQ(writer.size(), 24u);
  EXPECT_EQ(writer.bytes()[0], std::byte{4});  // little end first
  writer.put_blob(std::as_bytes(std::span("ab", 2)));
  ByteReader reader(writer.bytes());
  EXPECT_EQ(reader.take<uint32_t>(), 0x01020304u);
  EXPECT_EQ(reader.take<double>(), -2.5);
  EXPECT_EQ(reader.take_text(), "weights");
  EXPECT_EQ(reader.take_raw(1).size(), 1u);
  EXPECT_EQ(reader.take_blob().size(), 2u);
  EXPECT_TRUE(reader.check("record"));
}

TEST(ByteIo, AReadPastTheEndSticks) {
  ByteWriter writer;
  writer.put(uint32_t{5});
  writer.put(uint16_t{7});
  ByteReader reader(writer.bytes());
  EXPECT_EQ(reader.take_text(), "");  // says 5 bytes, has 2
  EXPECT_EQ(reader.take<uint16_t>(), 0);
  EXPECT_FALSE(reader.is_whole());
  EXPECT_EQ(reader.check("record").error().reason(), "Truncated");
}

TEST(ByteIo, ACountIsHeldAgainstWhatIsThere) {
  ByteWriter writer;
  writer.put(uint32_t{3});
  writer.put(uint64_t{1});
  writer.put(uint64_t{2});
  ByteReader fits(writer.bytes());
  EXPECT_EQ(fits.take_count(5), 3u);
  EXPECT_EQ(fits.check("record").error().reason(), "TrailingBytes");
  ByteReader too_many(writer.bytes());
  EXPECT_EQ(too_many.take_count(8), 0u);
  EXPECT_EQ(too_many.check("record").error().reason(), "Truncated");
  ByteWriter huge;
  huge.put(~uint64_t{0});
  ByteReader reader(huge.bytes());
  EXPECT_TRUE(reader.take_blob().empty());
  EXPECT_FALSE(reader.is_whole());
}

}  // namespace
}  // namespace ignis
