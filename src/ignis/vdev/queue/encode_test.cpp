#include "ignis/vdev/queue/encode.h"

#include "ignis/vdev/queue/decode.h"

#include <gtest/gtest.h>

namespace ignis::vdev {
namespace {

using runtime::Command;
using runtime::EncodedQueue;
using runtime::Patch;

std::vector<std::byte> bytes_of(const std::vector<uint32_t>& words) {
  std::vector<std::byte> bytes;
  for (const uint32_t word : words) {
    for (int i = 0; i < 4; ++i) bytes.push_back(static_cast<std::byte>(word >> (8 * i)));
  }
  return bytes;
}

const int kSignals[] = {10, 11};
const int kSlots[] = {20};
const int kTimelines[] = {30, 31};

TEST(Encode, WaitsAndStoresAreWrittenByHand) {
  const runtime::QueuedDevice::Encoding encoding{{}, kSignals, kSlots, kTimelines};
  EncodedQueue queue;
  ASSERT_TRUE(encode_command({.kind = Command::Kind::Barrier}, encoding, 64, queue));
  ASSERT_TRUE(
      encode_command({.kind = Command::Kind::WaitReached, .device = 1}, encoding, 64, queue));
  ASSERT_TRUE(encode_command({.kind = Command::Kind::StoreSignal, .signal = 1, .value = 7},
                             encoding, 64, queue));
  ASSERT_TRUE(encode_command({.kind = Command::Kind::Timestamp, .slot = 0}, encoding, 64, queue));
  EXPECT_EQ(queue.bytes, bytes_of({0xA501'0001, 0xA502'0005, 0, 0, 0, 0, 0xA503'0005, 0, 0, 7, 0,
                                   0xA504'0003, 0, 0}));
  const std::vector<Patch> expected = {
      {.offset_bytes = 8, .width_bytes = 8, .source = Patch::Source::Address, .index = 31},
      {.offset_bytes = 16, .width_bytes = 8, .source = Patch::Source::Timeline, .index = 1},
      {.offset_bytes = 28, .width_bytes = 8, .source = Patch::Source::Address, .index = 11},
      {.offset_bytes = 48, .width_bytes = 8, .source = Patch::Source::Address, .index = 20}};
  EXPECT_EQ(queue.patches, expected);
}

TEST(Encode, NarrowSignalsHaveNarrowValues) {
  const runtime::QueuedDevice::Encoding encoding{{}, kSignals, kSlots, kTimelines};
  EncodedQueue queue;
  ASSERT_TRUE(
      encode_command({.kind = Command::Kind::StoreReached, .device = 0}, encoding, 32, queue));
  EXPECT_EQ(queue.bytes, bytes_of({0xA503'0004, 0, 0, 0}));
  ASSERT_EQ(queue.patches.size(), 2u);
  EXPECT_EQ(queue.patches[1], (Patch{.offset_bytes = 12,
                                     .width_bytes = 4,
                                     .source = Patch::Source::Timeline,
                                     .index = 0,
                                     .addend = 1}));
}

TEST(Encode, CallsCarryTheirArgumentsAndVariables) {
  runtime::EncodedCall kernel;
  kernel.program = 5;
  kernel.parts = 3;
  kernel.arguments = {{.source = Patch::Source::Input, .index = 2, .addend = 64}};
  kernel.variables = {{.value = -1}, {.index = 6, .value = 4}};
  runtime::EncodedCall copy;
  copy.arguments = {{.index = 1}, {.index = 2}};
  copy.size_bytes = 100;
  const runtime::EncodedCall calls[] = {kernel, copy};
  const runtime::QueuedDevice::Encoding encoding{calls, kSignals, kSlots, kTimelines};
  EncodedQueue queue;
  ASSERT_TRUE(encode_command({.kind = Command::Kind::Exec, .tag = 0}, encoding, 64, queue));
  EXPECT_EQ(queue.bytes,
            bytes_of({0xA506'000D, 0, 0, 3, 0, 1, 2, 0, 0, 0xFFFF'FFFF, 0xFFFF'FFFF, 0, 0}));
  ASSERT_EQ(queue.patches.size(), 3u);
  EXPECT_EQ(queue.patches[1],
            (Patch{.offset_bytes = 28, .source = Patch::Source::Input, .index = 2, .addend = 64}));
  EXPECT_EQ(
      queue.patches[2],
      (Patch{.offset_bytes = 44, .source = Patch::Source::Variable, .index = 6, .addend = 4}));
  queue = {};
  ASSERT_TRUE(encode_command({.kind = Command::Kind::Copy, .tag = 1}, encoding, 64, queue));
  EXPECT_EQ(queue.bytes, bytes_of({0xA505'0007, 0, 0, 0, 0, 100, 0}));
  EXPECT_EQ(
      encode_command({.kind = Command::Kind::Copy, .tag = 2}, encoding, 64, queue).error().code(),
      ErrorCode::InvalidArgument);
  EXPECT_EQ(encode_command({.kind = Command::Kind::WaitSignal, .signal = 2}, encoding, 64, queue)
                .error()
                .code(),
            ErrorCode::InvalidArgument);
}

TEST(Decode, RefusesWhatIsNoCommand) {
  EXPECT_FALSE(command_bytes(0));
  EXPECT_FALSE(command_bytes(0xA501'0000));
  EXPECT_FALSE(command_bytes(0x1101'0001));
  EXPECT_FALSE(decode_command({}, 64));
  EXPECT_FALSE(decode_command(bytes_of({0xA501'0002, 0}), 64));  // a barrier with a body
  EXPECT_FALSE(decode_command(bytes_of({0xA507'0001}), 64));     // no such opcode
  EXPECT_FALSE(decode_command(bytes_of({0xA502'0004, 0, 0, 0}), 64));
  EXPECT_TRUE(decode_command(bytes_of({0xA502'0004, 0, 0, 0}), 32));
  // An exec that promises more arguments than it has, by far.
  EXPECT_FALSE(decode_command(bytes_of({0xA506'0007, 0, 0, 1, 0, 0xFFFF'FFFF, 0xFFFF'FFFF}), 64));
}

TEST(Decode, ReadsAnExec) {
  const auto exec = decode_command(
      bytes_of({0xA506'000B, 0x10, 1, 3, 0, 1, 1, 0x20, 2, 0xFFFF'FFFE, 0xFFFF'FFFF}), 64);
  ASSERT_TRUE(exec) << exec.error().to_string();
  EXPECT_EQ(exec->address, 0x1'0000'0010u);
  EXPECT_EQ(exec->parts, 3);
  EXPECT_EQ(exec->arguments, std::vector<uint64_t>{0x2'0000'0020});
  EXPECT_EQ(exec->variables, std::vector<int64_t>{-2});
}

TEST(Image, SaysWhatItIsAndNoticesDamage) {
  ProgramImage object;
  object.name = "kernel";
  object.buffer_count = 2;
  object.object = {std::byte{1}, std::byte{2}, std::byte{3}};
  std::vector<std::byte> bytes = encode_image(object);
  bytes.resize(bytes.size() + 10);  // memory goes on behind it
  const auto read = decode_image(bytes);
  ASSERT_TRUE(read) << read.error().to_string();
  EXPECT_EQ(read->kind, ImageKind::Object);
  EXPECT_EQ(read->name, "kernel");
  EXPECT_EQ(read->buffer_count, 2);
  EXPECT_EQ(std::vector<std::byte>(read->object.begin(), read->object.end()), object.object);

  const std::vector<std::byte> function = encode_image(function_image("f", 1, 77));
  ASSERT_TRUE(decode_image(function));
  EXPECT_EQ(decode_image(function)->kind, ImageKind::Function);
  EXPECT_EQ(decode_image(function)->function, 77u);
  // Every byte counts, and so does every length.
  for (size_t i = 0; i < function.size(); ++i) {
    std::vector<std::byte> damaged = function;
    damaged[i] ^= std::byte{0x20};
    const auto result = decode_image(damaged);
    // Bytes 4 to 7 are the kind, which the checksum does not cover.
    EXPECT_FALSE(result) << i;
    EXPECT_FALSE(decode_image(std::span(function).first(i))) << i;
  }
}

}  // namespace
}  // namespace ignis::vdev
