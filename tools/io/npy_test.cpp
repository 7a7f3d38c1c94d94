#include "tools/io/npy.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <cstring>
#include <string>

namespace ignis::tools {
namespace {

using Bytes = std::vector<std::byte>;

Bytes to_bytes(const std::string& text) {
  Bytes out(text.size());
  if (!text.empty()) std::memcpy(out.data(), text.data(), text.size());
  return out;
}

/// A version 1 file with the given dictionary and data.
Bytes npy(const std::string& header, const std::string& data) {
  std::string text("\x93NUMPY\x01\x00", 8);
  text += static_cast<char>(header.size() & 0xff);
  text += static_cast<char>(header.size() >> 8);
  return to_bytes(text + header + data);
}

std::string message(const Bytes& file) {
  const auto result = parse_npy(file);
  return result ? "accepted" : result.error().message();
}

TEST(Npy, ReadsWhatNumpyWrites) {
  // numpy.save of array([[1, -2, 3]], dtype=int16)
  std::string header = "{'descr': '<i2', 'fortran_order': False, 'shape': (1, 3), }";
  header += std::string(117 - header.size(), ' ') + "\n";
  const HostTensor t = parse_npy(npy(header, std::string("\x01\x00\xfe\xff\x03\x00", 6))).value();
  EXPECT_EQ(t.dtype, DType::Int16);
  EXPECT_EQ(t.shape, (Shape{1, 3}));
  EXPECT_EQ(element_as_int(t, 1), -2);
}

TEST(Npy, FortranOrderBecomesRowMajor) {
  // [[1, 2, 3], [4, 5, 6]] stored by columns.
  const HostTensor t = parse_npy(npy("{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3), }\n",
                                     "\x01\x04\x02\x05\x03\x06"))
                           .value();
  for (int64_t i = 0; i < 6; ++i) EXPECT_EQ(element_as_int(t, i), i + 1);
}

TEST(Npy, EveryDtypeComesBack) {
  for (int d = 0; d < kDTypeCount; ++d) {
    const auto dtype = static_cast<DType>(d);
    if (size_bytes(dtype) == 0) continue;
    for (const Shape& shape : {Shape{}, Shape{3}, Shape{2, 0}, Shape{2, 3, 4}}) {
      HostTensor t = HostTensor::zeros(dtype, shape);
      for (int64_t i = 0; i < t.count(); ++i) store_element(t, i, static_cast<double>(i % 5) - 1);
      const auto back = parse_npy(format_npy(t));
      ASSERT_TRUE(back) << back.error().to_string();
      EXPECT_EQ(back->dtype, is_fp8(dtype) ? DType::UInt8 : dtype);
      EXPECT_EQ(back->shape, shape);
      EXPECT_EQ(back->bytes, t.bytes);
    }
  }
}

TEST(Npy, RefusesWithASentence) {
  EXPECT_EQ(message({}), "The file does not begin as an npy file does.");
  EXPECT_EQ(message(npy("{'descr': '>f4', 'fortran_order': False, 'shape': (1,), }", "1234")),
            "The npy file is big-endian ('>f4'); save it with little-endian numbers.");
  EXPECT_NE(message(npy("{'descr': '<c8', 'fortran_order': False, 'shape': (1,), }", "12345678"))
                .find("holds '<c8'"),
            std::string::npos);
  EXPECT_NE(
      message(npy("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }", "1234"))
          .find("structured"),
      std::string::npos);
  EXPECT_NE(message(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", "1234"))
                .find("needs 2 elements"),
            std::string::npos);
  EXPECT_NE(message(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }", "1234"))
                .find("extents"),
            std::string::npos);
  EXPECT_NE(message(npy("{'descr': '<f4', 'shape': (1,), }", "1234")).find("lacks"),
            std::string::npos);
  EXPECT_NE(
      message(
          npy("{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296), }", ""))
          .find("2^62"),
      std::string::npos);
  EXPECT_NE(
      message(
          npy("{'descr': '|u1', 'fortran_order': False, 'shape': (4611686018427387904,), }", ""))
          .find("needs"),
      std::string::npos);
  Bytes long_header = npy("{}", "");
  long_header[8] = std::byte{0xff};
  EXPECT_NE(message(long_header).find("claims 255 bytes"), std::string::npos);
  Bytes version = npy("{}", "");
  version[6] = std::byte{9};
  EXPECT_NE(message(version).find("version 9"), std::string::npos);
}

HostTensor numbers(const std::vector<float>& v) {
  return HostTensor::from(DType::Float32, {static_cast<int64_t>(v.size())}, v);
}

TEST(Npz, StoredMembersComeBackInOrder) {
  const Bytes file =
      format_npz({{"b", numbers({1, 2})}, {"a/x", numbers({})}, {"", numbers({3})}}).value();
  const auto back = parse_npz(file).value();
  ASSERT_EQ(back.size(), 3u);
  EXPECT_EQ(back[0].first, "b");
  EXPECT_EQ(back[0].second.data<float>()[1], 2);
  EXPECT_EQ(back[1].first, "a/x");
  EXPECT_EQ(back[1].second.shape, (Shape{0}));
  EXPECT_EQ(back[2].first, "");
}

/// An archive of one deflated member, as numpy.savez_compressed writes it, with a claimed size.
Bytes deflated_npz(const HostTensor& tensor, uint32_t claimed_extra = 0) {
  const Bytes data = format_npy(tensor);
  Bytes packed(compressBound(data.size()));
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, 9, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(data.data()));
  stream.avail_in = static_cast<uInt>(data.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  std::string out;
  const auto u16 = [&](uint64_t v) {
    for (int i = 0; i < 2; ++i) out += static_cast<char>(v >> (8 * i));
  };
  const auto u32 = [&](uint64_t v) {
    for (int i = 0; i < 4; ++i) out += static_cast<char>(v >> (8 * i));
  };
  const auto crc =
      crc32(0, reinterpret_cast<const Bytef*>(data.data()), static_cast<uInt>(data.size()));
  const auto common = [&] {
    u16(20), u16(0), u16(8), u16(0), u16(0), u32(crc), u32(packed.size()),
        u32(data.size() + claimed_extra), u16(5), u16(0);
  };
  u32(0x04034b50), common();
  out += "x.npy" + std::string(reinterpret_cast<const char*>(packed.data()), packed.size());
  const size_t central = out.size();
  u32(0x02014b50), u16(20), common(), u16(0), u16(0), u16(0), u32(0), u32(0);
  out += "x.npy";
  const size_t end = out.size();
  u32(0x06054b50), u16(0), u16(0), u16(1), u16(1), u32(end - central), u32(central), u16(0);
  return to_bytes(out);
}

TEST(Npz, DeflatedMember) {
  const HostTensor zeros = HostTensor::zeros(DType::Float32, {10000});
  const auto back = parse_npz(deflated_npz(zeros)).value();
  EXPECT_EQ(back[0].first, "x");
  EXPECT_EQ(back[0].second.bytes, zeros.bytes);
}

TEST(Npz, RefusesFalseSizesAndDamage) {
  const HostTensor zeros = HostTensor::zeros(DType::Float32, {100});
  EXPECT_FALSE(parse_npz(deflated_npz(zeros, 1)));
  EXPECT_NE(parse_npz(deflated_npz(zeros, 0xf0000000)).error().message().find("claims"),
            std::string::npos);
  EXPECT_FALSE(parse_npz({}));
  const Bytes good = format_npz({{"a", numbers({1, 2, 3})}}).value();
  for (size_t size = 0; size < good.size(); ++size)
    EXPECT_FALSE(parse_npz(std::span(good).first(size))) << size;
  Bytes flipped = good;
  flipped[good.size() / 2] ^= std::byte{1};
  EXPECT_FALSE(parse_npz(flipped));
  EXPECT_FALSE(parse_npz(format_npz({{"a", numbers({1})}, {"a", numbers({2})}}).value()));
}

}  // namespace
}  // namespace ignis::tools
