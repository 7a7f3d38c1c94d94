#include "tools/io/npy.h"

#include <charconv>
#include <cstring>
#include <optional>
#include <string_view>

namespace ignis::tools {
namespace {

constexpr size_t kMaxHeaderBytes = size_t{1} << 16;  // NumPy itself writes a few hundred at most
constexpr size_t kMaxRank = 32;

Error malformed(const std::string& what) {
  return Error(ErrorCode::InvalidArgument, what, "MalformedFile");
}

struct Header {
  std::string descr;
  std::optional<bool> fortran_order;
  std::optional<Shape> shape;
};

/// Reads the Python dictionary of a header; only the three known keys with their literal kinds are taken.
class HeaderReader {
 public:
  explicit HeaderReader(std::string_view text) : text_(text) {}

  Result<Header> read() {
    Header header;
    IGNIS_TRY(expect('{'));
    while (!accept('}')) {
      IGNIS_TRY_ASSIGN(const std::string key, read_string());
      IGNIS_TRY(expect(':'));
      if (key == "descr") {
        if (peek() == '[')
          return malformed("The npy file holds a structured type; Ignis reads plain numbers.");
        IGNIS_TRY_ASSIGN(header.descr, read_string());
      } else if (key == "fortran_order") {
        IGNIS_TRY_ASSIGN(header.fortran_order, read_bool());
      } else if (key == "shape") {
        IGNIS_TRY_ASSIGN(header.shape, read_tuple());
      } else {
        return malformed("The npy header has the unknown key '" + key.substr(0, 40) + "'.");
      }
      if (!accept(',') && peek() != '}') return malformed("The npy header is not a dictionary.");
    }
    if (header.descr.empty() || !header.fortran_order || !header.shape) {
      return malformed("The npy header lacks 'descr', 'fortran_order' or 'shape'.");
    }
    return header;
  }

 private:
  char peek() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool accept(char c) {
    if (peek() != c) return false;
    ++at_;
    return true;
  }
  Status expect(char c) {
    if (accept(c)) return Status::ok();
    return malformed(std::string("The npy header lacks a '") + c + "' at byte " +
                     std::to_string(at_) + ".");
  }
  Result<std::string> read_string() {
    const char quote = peek();
    if (quote != '\'' && quote != '"')
      return malformed("The npy header lacks a text at byte " + std::to_string(at_) + ".");
    const size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos)
      return malformed("The npy header has a text without an end.");
    std::string value(text_.substr(at_ + 1, end - at_ - 1));
    at_ = end + 1;
    return value;
  }
  Result<std::optional<bool>> read_bool() {
    peek();
    for (const auto& [word, value] :
         {std::pair<std::string_view, bool>{"True", true}, {"False", false}}) {
      if (text_.substr(at_, word.size()) == word) {
        at_ += word.size();
        return std::optional<bool>(value);
      }
    }
    return malformed("The npy header's 'fortran_order' is neither True nor False.");
  }
  Result<std::optional<Shape>> read_tuple() {
    Shape shape;
    IGNIS_TRY(expect('('));
    while (!accept(')')) {
      peek();
      int64_t extent = 0;
      const auto [end, error] =
          std::from_chars(text_.data() + at_, text_.data() + text_.size(), extent);
      if (error != std::errc() || extent < 0)
        return malformed("The npy header's shape is not a tuple of extents.");
      at_ = static_cast<size_t>(end - text_.data());
      if (at_ < text_.size() && text_[at_] == 'L') ++at_;  // long integers of Python 2
      shape.push_back(extent);
      if (shape.size() > kMaxRank)
        return malformed("The npy array has more than " + std::to_string(kMaxRank) + " axes.");
      if (!accept(',') && peek() != ')')
        return malformed("The npy header's shape is not a tuple of extents.");
    }
    return std::optional<Shape>(std::move(shape));
  }

  std::string_view text_;
  size_t at_ = 0;
};

struct TypeName {
  std::string_view name;  // without the byte order
  DType dtype;
};
constexpr TypeName kTypes[] = {
    {"b1", DType::Bool},     {"i1", DType::Int8},    {"u1", DType::UInt8},   {"i2", DType::Int16},
    {"u2", DType::UInt16},   {"i4", DType::Int32},   {"u4", DType::UInt32},  {"i8", DType::Int64},
    {"u8", DType::UInt64},   {"f2", DType::Float16}, {"f4", DType::Float32}, {"f8", DType::Float64},
    {"V2", DType::BFloat16},
};

Result<DType> parse_descr(const std::string& descr) {
  const std::string_view name = std::string_view(descr).substr(1);
  for (const TypeName& type : kTypes) {
    if (type.name != name) continue;
    if (descr[0] == '>' && size_bytes(type.dtype) > 1) {
      return malformed("The npy file is big-endian ('" + descr +
                       "'); save it with little-endian numbers.");
    }
    if (descr[0] == '<' || descr[0] == '|' || descr[0] == '=' || descr[0] == '>') return type.dtype;
  }
  return malformed("The npy file holds '" + descr.substr(0, 40) +
                   "'; Ignis reads b1, i1 … i8, u1 … u8, f2, f4, f8 and V2 (bfloat16).");
}

/// Row-major bytes of an array stored with the first axis fastest.
std::vector<std::byte> from_fortran(std::span<const std::byte> data, const Shape& shape,
                                    size_t item) {
  std::vector<std::byte> out(data.size());
  std::vector<int64_t> index(shape.size(), 0);
  for (size_t to = 0; to < out.size(); to += item) {
    int64_t from = 0;
    for (size_t axis = shape.size(); axis-- > 0;) from = from * shape[axis] + index[axis];
    std::memcpy(out.data() + to, data.data() + static_cast<size_t>(from) * item, item);
    for (size_t axis = shape.size(); axis-- > 0;) {
      if (++index[axis] < shape[axis]) break;
      index[axis] = 0;
    }
  }
  return out;
}

}  // namespace

Result<HostTensor> parse_npy(std::span<const std::byte> bytes) {
  constexpr unsigned char kMagic[6] = {0x93, 'N', 'U', 'M', 'P', 'Y'};
  if (bytes.size() < 10 || std::memcmp(bytes.data(), kMagic, 6) != 0) {
    return malformed("The file does not begin as an npy file does.");
  }
  const int version = std::to_integer<int>(bytes[6]);
  if (version < 1 || version > 3)
    return malformed("The npy file has version " + std::to_string(version) +
                     "; versions 1 to 3 exist.");
  const size_t length_bytes = version == 1 ? 2 : 4;
  if (bytes.size() < 8 + length_bytes) return malformed("The npy file ends in its header.");
  size_t header_bytes = 0;
  for (size_t i = 0; i < length_bytes; ++i)
    header_bytes |= std::to_integer<size_t>(bytes[8 + i]) << (8 * i);
  const size_t header_start = 8 + length_bytes;
  if (header_bytes > kMaxHeaderBytes || header_bytes > bytes.size() - header_start) {
    return malformed("The npy header claims " + std::to_string(header_bytes) +
                     " bytes; the file has " + std::to_string(bytes.size() - header_start) +
                     " and the limit is " + std::to_string(kMaxHeaderBytes) + ".");
  }
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()) + header_start,
                              header_bytes);
  IGNIS_TRY_ASSIGN(const Header header, HeaderReader(text).read());
  IGNIS_TRY_ASSIGN(const DType dtype, parse_descr(header.descr));
  IGNIS_TRY_ASSIGN(const int64_t count, checked_element_count(*header.shape));
  const std::span<const std::byte> data = bytes.subspan(header_start + header_bytes);
  const auto item = static_cast<size_t>(size_bytes(dtype));
  if (static_cast<uint64_t>(count) != data.size() / item || data.size() % item != 0) {
    return malformed("The npy array of shape " + to_string(*header.shape) + " needs " +
                     std::to_string(count) + " elements of " + std::to_string(item) +
                     " bytes; the file holds " + std::to_string(data.size()) + " bytes of them.");
  }
  HostTensor tensor;
  tensor.dtype = dtype;
  tensor.shape = *header.shape;
  if (*header.fortran_order && count > 0) tensor.bytes = from_fortran(data, tensor.shape, item);
  else tensor.bytes.assign(data.begin(), data.end());
  if (dtype == DType::Bool) {
    for (std::byte& b : tensor.bytes) b = std::byte{b != std::byte{0}};
  }
  return tensor;
}

std::vector<std::byte> format_npy(const HostTensor& tensor) {
  std::string descr = "|u1";  // fp8
  for (const TypeName& type : kTypes) {
    if (type.dtype == tensor.dtype)
      descr = (size_bytes(type.dtype) == 1 ? "|" : "<") + std::string(type.name);
  }
  std::string text = "{'descr': '" + descr + "', 'fortran_order': False, 'shape': (";
  for (const int64_t extent : tensor.shape) text += std::to_string(extent) + ", ";
  if (tensor.shape.size() > 1) text.resize(text.size() - 2);
  text += "), }";
  while ((10 + text.size() + 1) % 64 != 0)
    text += ' ';  // the data begin at a multiple of 64, as NumPy's do
  text += '\n';
  std::vector<std::byte> out(10 + text.size() + tensor.bytes.size());
  const unsigned char start[10] = {0x93,
                                   'N',
                                   'U',
                                   'M',
                                   'P',
                                   'Y',
                                   1,
                                   0,
                                   static_cast<unsigned char>(text.size() & 0xff),
                                   static_cast<unsigned char>(text.size() >> 8)};
  std::memcpy(out.data(), start, sizeof start);
  std::memcpy(out.data() + sizeof start, text.data(), text.size());
  if (!tensor.bytes.empty())
    std::memcpy(out.data() + sizeof start + text.size(), tensor.bytes.data(), tensor.bytes.size());
  return out;
}

}  // namespace ignis::tools
