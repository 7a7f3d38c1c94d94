#include "ignis/base/math.h"

#include "tools/io/npy.h"
#include <zlib.h>

#include <cstring>
#include <limits>
#include <set>
#include <string_view>

// The zip format: PKWARE's APPNOTE 6.3.10, sections 4.3.7 (local header), 4.3.12 (central directory), 4.3.14 to 4.3.16
// (ends of it) and 4.5.3 (zip64 extra field). Sizes come from the central directory only.
namespace ignis::tools {
namespace {

constexpr uint32_t kLocalHeader = 0x04034b50, kCentralHeader = 0x02014b50, kEnd = 0x06054b50;
constexpr uint32_t kEnd64 = 0x06064b50, kEnd64Locator = 0x07064b50;
constexpr uint64_t kMax32 = 0xffffffff;

Error malformed(const std::string& what) {
  return Error(ErrorCode::InvalidArgument, what, "MalformedFile");
}
Error truncated() { return malformed("The npz archive is truncated."); }

/// Little-endian numbers at checked places.
class Bytes {
 public:
  explicit Bytes(std::span<const std::byte> bytes) : bytes_(bytes) {}
  uint64_t size() const { return bytes_.size(); }
  bool has(uint64_t offset, uint64_t count) const { return is_range_inside(offset, count, size()); }
  template <typename T>
  T number(uint64_t offset) const {  // the caller has asked has()
    uint64_t value = 0;
    for (size_t i = 0; i < sizeof(T); ++i)
      value |= std::to_integer<uint64_t>(bytes_[offset + i]) << (8 * i);
    return static_cast<T>(value);
  }
  std::span<const std::byte> part(uint64_t offset, uint64_t count) const {
    return bytes_.subspan(offset, count);
  }
  std::string text(uint64_t offset, uint64_t count) const {
    return {reinterpret_cast<const char*>(bytes_.data()) + offset, count};
  }

 private:
  std::span<const std::byte> bytes_;
};

struct Directory {
  uint64_t offset = 0, size = 0, members = 0;
};

struct Member {
  std::string name;
  uint16_t flags = 0, method = 0;
  uint32_t crc = 0;
  uint64_t packed_bytes = 0, bytes = 0, header_offset = 0;
};

Result<Directory> find_directory(const Bytes& file) {
  constexpr uint64_t kEndBytes = 22, kMaxComment = 65535;
  if (file.size() < kEndBytes)
    return malformed("The file is not a zip archive, which an npz file is.");
  const uint64_t lowest = file.size() - std::min(file.size(), kEndBytes + kMaxComment);
  for (uint64_t at = file.size() - kEndBytes + 1; at-- > lowest;) {
    if (file.number<uint32_t>(at) != kEnd) continue;
    Directory directory{file.number<uint32_t>(at + 16), file.number<uint32_t>(at + 12),
                        file.number<uint16_t>(at + 10)};
    if (at >= 20 && file.number<uint32_t>(at - 20) == kEnd64Locator) {
      const auto end64 = file.number<uint64_t>(at - 12);
      if (!file.has(end64, 56) || file.number<uint32_t>(end64) != kEnd64) return truncated();
      directory = {file.number<uint64_t>(end64 + 48), file.number<uint64_t>(end64 + 40),
                   file.number<uint64_t>(end64 + 32)};
    }
    if (!file.has(directory.offset, directory.size)) return truncated();
    return directory;
  }
  return malformed("The file is not a zip archive, which an npz file is.");
}

/// Replaces the sizes that are 2^32 - 1 by those of the zip64 extra field.
Status read_zip64(const Bytes& file, uint64_t at, uint64_t size, Member& member) {
  const uint64_t end = at + size;
  while (at + 4 <= end) {
    const uint64_t id = file.number<uint16_t>(at), length = file.number<uint16_t>(at + 2);
    at += 4;
    if (length > end - at) return truncated();
    if (id == 1) {
      uint64_t from = at;
      for (uint64_t* field : {&member.bytes, &member.packed_bytes, &member.header_offset}) {
        if (*field != kMax32) continue;
        if (from + 8 > at + length) return truncated();
        *field = file.number<uint64_t>(from);
        from += 8;
      }
      return Status::ok();
    }
    at += length;
  }
  return Status::ok();
}

Result<std::vector<Member>> read_directory(const Bytes& file, const Directory& directory) {
  std::vector<Member> members;
  uint64_t at = directory.offset;
  const uint64_t end = directory.offset + directory.size;
  for (uint64_t i = 0; i < directory.members; ++i) {
    if (end - at < 46 || file.number<uint32_t>(at) != kCentralHeader) return truncated();
    const uint64_t name = file.number<uint16_t>(at + 28), extra = file.number<uint16_t>(at + 30),
                   comment = file.number<uint16_t>(at + 32);
    if (name + extra + comment > end - at - 46) return truncated();
    Member member;
    member.flags = file.number<uint16_t>(at + 8);
    member.method = file.number<uint16_t>(at + 10);
    member.crc = file.number<uint32_t>(at + 16);
    member.packed_bytes = file.number<uint32_t>(at + 20);
    member.bytes = file.number<uint32_t>(at + 24);
    member.header_offset = file.number<uint32_t>(at + 42);
    member.name = file.text(at + 46, name);
    IGNIS_TRY(read_zip64(file, at + 46 + name, extra, member));
    members.push_back(std::move(member));
    at += 46 + name + extra + comment;
  }
  return members;
}

Result<std::vector<std::byte>> inflate_member(std::span<const std::byte> packed, uint64_t size) {
  // Deflate cannot pack more than 1032 to 1: a larger claim is refused before memory is taken.
  if (size / 1032 > packed.size() + 1 || packed.size() > std::numeric_limits<uInt>::max()) {
    return malformed("A member of the npz archive claims " + std::to_string(size) + " bytes.");
  }
  std::vector<std::byte> out(size);
  z_stream stream{};
  if (inflateInit2(&stream, -MAX_WBITS) != Z_OK)
    return Error(ErrorCode::OutOfMemory, "zlib has no memory.");
  stream.next_in =
      reinterpret_cast<Bytef*>(const_cast<std::byte*>(packed.data()));  // zlib does not write to it
  stream.avail_in = static_cast<uInt>(packed.size());
  int state = Z_OK;
  uint64_t done = 0;
  std::byte nothing{};
  do {
    const uint64_t piece = std::min<uint64_t>(size - done, 1u << 30);
    stream.next_out = reinterpret_cast<Bytef*>(piece > 0 ? out.data() + done : &nothing);
    stream.avail_out = static_cast<uInt>(piece);
    state = inflate(&stream, Z_NO_FLUSH);
    done += piece - stream.avail_out;
  } while (state == Z_OK && done < size);
  if (state == Z_OK) {  // everything came out, the end mark may be still to be read
    stream.next_out = reinterpret_cast<Bytef*>(&nothing);
    stream.avail_out = 1;
    state = inflate(&stream, Z_FINISH);
    if (stream.avail_out == 0) state = Z_DATA_ERROR;
  }
  inflateEnd(&stream);
  if (state != Z_STREAM_END || done != size)
    return malformed("A member of the npz archive does not unpack to its size.");
  return out;
}

Result<HostTensor> read_member(const Bytes& file, const Member& member) {
  if (!file.has(member.header_offset, 30) ||
      file.number<uint32_t>(member.header_offset) != kLocalHeader)
    return truncated();
  const uint64_t name = file.number<uint16_t>(member.header_offset + 26),
                 extra = file.number<uint16_t>(member.header_offset + 28);
  const uint64_t data = member.header_offset + 30 + name + extra;
  if (!file.has(data, member.packed_bytes)) return truncated();
  if ((member.flags & 1) != 0) return malformed("The npz archive is encrypted.");
  std::span<const std::byte> bytes = file.part(data, member.packed_bytes);
  std::vector<std::byte> unpacked;
  if (member.method == 8) {
    IGNIS_TRY_ASSIGN(unpacked, inflate_member(bytes, member.bytes));
    bytes = unpacked;
  } else if (member.method != 0 || member.bytes != member.packed_bytes) {
    return malformed("The npz archive packs with method " + std::to_string(member.method) +
                     "; only 0 (stored) and 8 (deflated) are read.");
  }
  uLong crc = crc32(0, nullptr, 0);
  for (size_t at = 0; at < bytes.size(); at += 1u << 30) {
    const size_t piece = std::min<size_t>(bytes.size() - at, 1u << 30);
    crc = crc32(crc, reinterpret_cast<const Bytef*>(bytes.data() + at), static_cast<uInt>(piece));
  }
  if (crc != member.crc) return malformed("The checksum of the member is wrong.");
  return parse_npy(bytes);
}

template <typename T>
void put(std::vector<std::byte>& out, T value) {
  for (size_t i = 0; i < sizeof(T); ++i)
    out.push_back(static_cast<std::byte>(static_cast<uint64_t>(value) >> (8 * i)));
}

void put_text(std::vector<std::byte>& out, std::string_view text) {
  for (const char c : text) out.push_back(static_cast<std::byte>(c));
}

/// The fields that local and central headers share: version … sizes. The date is 1980-01-01, so that equal contents
/// give equal archives.
void put_common(std::vector<std::byte>& out, uint32_t crc, size_t size, const std::string& name) {
  put<uint16_t>(out, 20);      // version needed
  put<uint16_t>(out, 0x0800);  // names are UTF-8
  put<uint16_t>(out, 0);       // stored
  put<uint16_t>(out, 0);       // time
  put<uint16_t>(out, 0x21);    // date
  put<uint32_t>(out, crc);
  put<uint32_t>(out, static_cast<uint32_t>(size));
  put<uint32_t>(out, static_cast<uint32_t>(size));
  put<uint16_t>(out, static_cast<uint16_t>(name.size()));
  put<uint16_t>(out, 0);  // extra field
}

}  // namespace

Result<std::vector<NamedTensor>> parse_npz(std::span<const std::byte> bytes) {
  const Bytes file(bytes);
  IGNIS_TRY_ASSIGN(const Directory directory, find_directory(file));
  IGNIS_TRY_ASSIGN(const std::vector<Member> members, read_directory(file, directory));
  std::vector<NamedTensor> tensors;
  std::set<std::string> names;
  uint64_t total = 0;
  for (const Member& member : members) {
    std::string name = member.name;
    if (name.ends_with(".npy")) name.resize(name.size() - 4);
    if (!names.insert(name).second) return malformed("The npz archive holds '" + name + "' twice.");
    // Members may overlap in a hostile file: together they may not unpack to more than the file could hold.
    total += std::min(member.bytes, kMax32 * 1024);
    if (total / 1032 > bytes.size())
      return malformed("The npz archive claims more bytes than it can hold.");
    auto tensor = read_member(file, member);
    if (!tensor) return std::move(tensor).error().with_context("'" + name + "'");
    tensors.emplace_back(std::move(name), *std::move(tensor));
  }
  return tensors;
}

Result<std::vector<std::byte>> format_npz(const std::vector<NamedTensor>& tensors) {
  if (tensors.size() > 65535)
    return Error(ErrorCode::InvalidArgument, "An npz archive holds at most 65,535 arrays.");
  std::vector<std::byte> out, central;
  for (const auto& [name, tensor] : tensors) {
    const std::string file_name = name + ".npy";
    const std::vector<std::byte> npy = format_npy(tensor);
    if (file_name.size() > 65535 || out.size() + npy.size() + 65536 > kMax32) {
      return Error(ErrorCode::InvalidArgument,
                   "The arrays are larger than the 4 GiB of an npz archive; write them as single "
                   "npy files.");
    }
    const auto crc = static_cast<uint32_t>(
        crc32(0, reinterpret_cast<const Bytef*>(npy.data()), static_cast<uInt>(npy.size())));
    const size_t offset = out.size();
    put<uint32_t>(out, kLocalHeader);
    put_common(out, crc, npy.size(), file_name);
    put_text(out, file_name);
    out.insert(out.end(), npy.begin(), npy.end());
    put<uint32_t>(central, kCentralHeader);
    put<uint16_t>(central, 20);  // version made by
    put_common(central, crc, npy.size(), file_name);
    put<uint16_t>(central, 0);  // comment
    put<uint16_t>(central, 0);  // disk
    put<uint16_t>(central, 0);  // internal attributes
    put<uint32_t>(central, 0);  // external attributes
    put<uint32_t>(central, static_cast<uint32_t>(offset));
    put_text(central, file_name);
  }
  const size_t start = out.size();
  out.insert(out.end(), central.begin(), central.end());
  put<uint32_t>(out, kEnd);
  put<uint32_t>(out, 0);  // disks
  put<uint16_t>(out, static_cast<uint16_t>(tensors.size()));
  put<uint16_t>(out, static_cast<uint16_t>(tensors.size()));
  put<uint32_t>(out, static_cast<uint32_t>(central.size()));
  put<uint32_t>(out, static_cast<uint32_t>(start));
  put<uint16_t>(out, 0);  // comment
  return out;
}

}  // namespace ignis::tools
