#include "ignis/pipeline/frames/ring_protocol.h"

#include "ignis/pipeline/frames/layout.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>
#include <string>
#include <vector>

namespace ignis::pipeline::ring {
namespace {

Ring some_ring() {
  Ring ring;
  ring.server_id = 0x1122334455667788;
  ring.epoch = 3;
  ring.stream_id = 1;
  ring.slot_count = 4;
  ring.layout = nv12_layout(640, 480).value();
  ring.layout.sensor_id = 9;
  ring.memory_bytes =
      4096 + 4 * 1007616;  // a page of slot headers, slots that are whole pages already
  return ring;
}

std::vector<Record> one_of_each() {
  return {Hello{7},
          some_ring(),
          FrameRecord{3, 2, 100, 8, 55, 1000, 2000, 1, 0},
          Pin{3, 8, 2, 0},
          PinReply{3, 8, 2, PinAnswer::Limit},
          Release{3, 8, 2, 0},
          Quiet{},
          Refusal{RefusalCode::Stream, 2}};
}

TEST(RingProtocol, HasTheBytesThatItsHeaderDescribes) {
  const Packet packet = encode(Pin{0x0102030405060708, 0x10, 0x20, 0});
  const unsigned char expected[] = {'I', 'G', 'F', 'R', 1,    0, 4, 0, 40, 0, 0,    0, 0, 0,
                                    0,   0,   8,   7,   6,    5, 4, 3, 2,  1, 0x10, 0, 0, 0,
                                    0,   0,   0,   0,   0x20, 0, 0, 0, 0,  0, 0,    0};
  ASSERT_EQ(packet.size_bytes, sizeof(expected));
  for (size_t i = 0; i < sizeof(expected); ++i)
    EXPECT_EQ(std::to_integer<unsigned>(packet.bytes[i]), expected[i]) << "byte " << i;
}

TEST(RingProtocol, ReadsWhatItWrote) {
  for (const Record& record : one_of_each()) {
    const Packet packet = encode(record);
    SCOPED_TRACE(record.index());
    EXPECT_EQ(decode(packet.span()).value(), record);
  }
}

TEST(RingProtocol, RefusesOtherLengthsVersionsAndTypes) {
  for (const Record& record : one_of_each()) {
    SCOPED_TRACE(record.index());
    const Packet packet = encode(record);
    for (size_t size = 0; size < packet.size_bytes; ++size)
      EXPECT_EQ(decode(packet.span().first(size)).error().reason(), "RingProtocol");
    Packet longer = packet;
    longer.size_bytes += 4;
    EXPECT_EQ(decode(longer.span()).error().reason(), "RingProtocol");
    longer.bytes[8] = static_cast<std::byte>(longer.size_bytes);  // says so, too
    EXPECT_EQ(decode(longer.span()).error().reason(), "RingProtocol");
    Packet newer = packet;
    newer.bytes[4] = std::byte{2};
    EXPECT_EQ(decode(newer.span()).error().reason(), "RingVersion");
    EXPECT_EQ(decode(newer.span()).error().code(), ErrorCode::Unsupported);
    Packet other = packet;
    other.bytes[6] = std::byte{99};
    EXPECT_EQ(decode(other.span()).error().reason(), "RingProtocol");
    Packet foreign = packet;
    foreign.bytes[0] = std::byte{0};
    EXPECT_EQ(decode(foreign.span()).error().reason(), "RingProtocol");
  }
  FrameRecord odd{1, 0, 1, 7, 1, 0, 0, 1, 0};
  EXPECT_FALSE(decode(encode(odd).span()));
  FrameRecord flag{1, 0, 1, 8, 1, 0, 0, 2, 0};
  EXPECT_FALSE(decode(encode(flag).span()));
}

TEST(RingProtocol, TakesRandomBytesWithoutHarm) {
  std::mt19937_64 rng(1);
  const std::vector<Record> records = one_of_each();
  int good = 0;
  for (int i = 0; i < 100000; ++i) {
    Packet packet = encode(records[rng() % records.size()]);
    for (uint64_t change = rng() % 4; change > 0; --change)
      packet.bytes[rng() % packet.size_bytes] = static_cast<std::byte>(rng());
    const Result<Record> record = decode(packet.span());
    if (!record) continue;
    ++good;
    if (const auto* ring = std::get_if<Ring>(&*record)) static_cast<void>(check_ring(*ring));
  }
  EXPECT_GT(good, 1000);
}

TEST(RingProtocol, ChecksARing) {
  EXPECT_TRUE(check_ring(some_ring()));
  const auto is_refused = [](auto change) {
    Ring ring = some_ring();
    change(ring);
    const Status status = check_ring(ring);
    return !status && status.error().reason() == "RingProtocol";
  };
  EXPECT_TRUE(is_refused([](Ring& r) { r.slot_count = 0; }));
  EXPECT_TRUE(is_refused([](Ring& r) { r.slot_count = 65; }));
  EXPECT_TRUE(is_refused([](Ring& r) { r.slot_count = 0xffffffff; }));
  EXPECT_TRUE(is_refused([](Ring& r) { r.server_id = 0; }));
  EXPECT_TRUE(is_refused([](Ring& r) { r.memory_bytes -= 1; }));
  EXPECT_TRUE(is_refused([](Ring& r) { r.memory_bytes = std::numeric_limits<uint64_t>::max(); }));
  EXPECT_TRUE(
      is_refused([](Ring& r) { r.layout.size_bytes = std::numeric_limits<int64_t>::max(); }));
  EXPECT_TRUE(is_refused([](Ring& r) { r.layout.width_px = 5000; }));
  EXPECT_TRUE(is_refused([](Ring& r) { r.layout.u_offset = 1 << 30; }));
}

TEST(RingProtocol, BoundsNames) {
  EXPECT_TRUE(check_name("cabin"));
  EXPECT_TRUE(check_name(std::string(64, 'a')));
  for (const std::string& name :
       {std::string(), std::string(65, 'a'), std::string("a/b"), std::string("a b"),
        std::string("a\0b", 3), std::string("\xc3\xa9")}) {
    EXPECT_EQ(check_name(name).error().reason(), "RingName");
  }
}

}  // namespace
}  // namespace ignis::pipeline::ring
