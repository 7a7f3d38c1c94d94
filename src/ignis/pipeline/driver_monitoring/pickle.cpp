#include "ignis/pipeline/driver_monitoring/pickle.h"

#include "ignis/base/math.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <set>
#include <utility>
#include <variant>

namespace ignis::pipeline {
namespace {

// A slice map of a real model has some tens of entries; these bounds only keep a hostile one cheap.
constexpr size_t kMaxBase64Bytes = size_t{1} << 20;
constexpr size_t kMaxStack = 8192;
constexpr size_t kMaxEntries = 2048;
constexpr size_t kMaxNameBytes = 128;

Error refuse(size_t offset, const std::string& why) {
  return Error(ErrorCode::InvalidArgument,
               "The slice map's pickle " + why + " at byte " + std::to_string(offset) +
                   "; only a map from text to slice objects is read.",
               "SliceMap");
}

// What may lie on the stack. Flat on purpose: a tuple holds scalars only and a map slices only, so that no input makes
// anything nested, shared or recursive.
struct Mark {};
struct SliceType {};  // the callable `slice`
struct Text {
  std::string_view bytes;  // of the input
};
struct Scalar {
  std::optional<int64_t> value;  // an integer or None
};
struct Tuple {
  std::array<std::optional<int64_t>, 3> items;
  size_t size = 0;
};
struct SliceObject {
  std::optional<int64_t> start, stop;
};
struct Map {};  // the one map; its entries are Reader::entries_
using Value = std::variant<Scalar, Mark, SliceType, Text, Tuple, SliceObject, Map>;

/// Runs the subset of the pickle machine that a slice map needs.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}
  Result<std::vector<NamedSlice>> read();

 private:
  Status step(unsigned char opcode);
  Status read_scalar(unsigned char opcode);
  Status read_text(unsigned char opcode);
  Status memoize(unsigned char opcode);
  Status recall(unsigned char opcode);
  Status make_tuple(size_t count);
  Status make_tuple_from_mark();
  Status make_map_from_mark();
  Status push_global(std::string_view module, std::string_view name);
  Status call();
  Status add_pairs(size_t first);

  Status push(Value value) {
    if (stack_.size() >= kMaxStack) return fail("fills its stack of 8192 values");
    stack_.push_back(value);
    return {};
  }
  template <typename T>
  const T* top(size_t from_top = 0) const {
    return stack_.size() > from_top ? std::get_if<T>(&stack_[stack_.size() - 1 - from_top])
                                    : nullptr;
  }
  Error fail(const std::string& why) const { return refuse(opcode_at_, why); }
  Result<std::string_view> take(uint64_t count) {
    if (!is_range_inside(at_, count, bytes_.size())) return fail("ends too early");
    const std::string_view part = bytes_.substr(at_, static_cast<size_t>(count));
    at_ += static_cast<size_t>(count);
    return part;
  }
  // Little-endian, unsigned.
  Result<uint64_t> take_number(int size_bytes) {
    IGNIS_TRY_ASSIGN(const std::string_view part, take(static_cast<uint64_t>(size_bytes)));
    uint64_t value = 0;
    for (size_t i = part.size(); i-- > 0;) value = value << 8 | static_cast<uint8_t>(part[i]);
    return value;
  }
  // Without the line feed.
  Result<std::string_view> take_line() {
    const size_t end = bytes_.find('\n', at_);
    if (end == std::string_view::npos) return fail("has a line without an end");
    const std::string_view line = bytes_.substr(at_, end - at_);
    at_ = end + 1;
    return line;
  }
  // Position of the topmost mark.
  Result<size_t> find_mark() const {
    for (size_t i = stack_.size(); i-- > 0;) {
      if (std::holds_alternative<Mark>(stack_[i])) return i;
    }
    return fail("has no mark on its stack");
  }

  std::string_view bytes_;
  size_t at_ = 0, opcode_at_ = 0;
  std::vector<Value> stack_;
  std::vector<std::optional<Value>> memo_;
  std::vector<NamedSlice> entries_;
  std::set<std::string, std::less<>> names_;
  bool has_map_ = false;
};

// A text in a decimal line: "12" or "-3".
std::optional<int64_t> parse_int(std::string_view digits) {
  int64_t value = 0;
  const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (digits.empty() || code != std::errc() || end != digits.data() + digits.size()) return {};
  return value;
}

Status Reader::read_scalar(unsigned char opcode) {
  switch (opcode) {
    case 'N': return push(Scalar{});
    case 'K':
    case 'M': {  // BININT1, BININT2
      IGNIS_TRY_ASSIGN(const uint64_t value, take_number(opcode == 'K' ? 1 : 2));
      return push(Scalar{static_cast<int64_t>(value)});
    }
    case 'J': {  // BININT, signed
      IGNIS_TRY_ASSIGN(const uint64_t value, take_number(4));
      return push(Scalar{static_cast<int32_t>(static_cast<uint32_t>(value))});
    }
    case 0x8a: {  // LONG1: two's complement of a stated number of bytes
      IGNIS_TRY_ASSIGN(const uint64_t count, take_number(1));
      if (count > 8) return fail("has an integer of " + std::to_string(count) + " bytes");
      if (count == 0) return push(Scalar{0});
      IGNIS_TRY_ASSIGN(const uint64_t value, take_number(static_cast<int>(count)));
      const int unused_bits = 64 - 8 * static_cast<int>(count);
      return push(Scalar{static_cast<int64_t>(value << unused_bits) >> unused_bits});
    }
    case 'I':
    case 'L': {  // INT and LONG of protocol 0; I00 and I01 are booleans
      IGNIS_TRY_ASSIGN(std::string_view line, take_line());
      if (opcode == 'I' && (line == "00" || line == "01")) return fail("holds a boolean");
      if (opcode == 'L' && line.ends_with('L')) line.remove_suffix(1);
      const std::optional<int64_t> value = parse_int(line);
      if (!value) return fail("has a malformed integer");
      return push(Scalar{*value});
    }
    default: return fail("has an unknown number");
  }
}

Status Reader::read_text(unsigned char opcode) {
  std::string_view text;
  switch (opcode) {
    case 0x8c:
    case 'U': {  // SHORT_BINUNICODE, SHORT_BINSTRING
      IGNIS_TRY_ASSIGN(const uint64_t count, take_number(1));
      IGNIS_TRY_ASSIGN(text, take(count));
      break;
    }
    case 'X':
    case 'T': {  // BINUNICODE, BINSTRING
      IGNIS_TRY_ASSIGN(const uint64_t count, take_number(4));
      IGNIS_TRY_ASSIGN(text, take(count));
      break;
    }
    case 0x8d: {  // BINUNICODE8
      IGNIS_TRY_ASSIGN(const uint64_t count, take_number(8));
      IGNIS_TRY_ASSIGN(text, take(count));
      break;
    }
    default: {  // 'V' UNICODE and 'S' STRING: a line; quotes around the latter
      IGNIS_TRY_ASSIGN(text, take_line());
      if (opcode == 'S') {
        const bool is_quoted =
            text.size() >= 2 && text.front() == text.back() && (text[0] == '\'' || text[0] == '"');
        if (!is_quoted) return fail("has a text without quotes");
        text = text.substr(1, text.size() - 2);
      }
      if (text.find('\\') != std::string_view::npos) return fail("has a text with escapes");
    }
  }
  return push(Text{text});
}

Status Reader::memoize(unsigned char opcode) {
  if (stack_.empty()) return fail("memoizes nothing");
  uint64_t index = memo_.size();
  if (opcode == 'q' || opcode == 'r') {
    IGNIS_TRY_ASSIGN(index, take_number(opcode == 'q' ? 1 : 4));
  } else if (opcode == 'p') {
    IGNIS_TRY_ASSIGN(const std::string_view line, take_line());
    const std::optional<int64_t> value = parse_int(line);
    if (!value || *value < 0) return fail("has a malformed memo index");
    index = static_cast<uint64_t>(*value);
  }
  // Writers number without gaps; an index beyond that would only be a way to ask for memory.
  if (index > memo_.size() || index > bytes_.size()) return fail("has a memo index out of order");
  if (std::holds_alternative<Mark>(stack_.back())) return fail("memoizes a mark");
  if (index == memo_.size()) memo_.emplace_back();
  memo_[static_cast<size_t>(index)] = stack_.back();
  return {};
}

Status Reader::recall(unsigned char opcode) {
  uint64_t index = 0;
  if (opcode == 'g') {
    IGNIS_TRY_ASSIGN(const std::string_view line, take_line());
    const std::optional<int64_t> value = parse_int(line);
    if (!value || *value < 0) return fail("has a malformed memo index");
    index = static_cast<uint64_t>(*value);
  } else {
    IGNIS_TRY_ASSIGN(index, take_number(opcode == 'h' ? 1 : 4));
  }
  if (index >= memo_.size() || !memo_[static_cast<size_t>(index)]) {
    return fail("recalls what it has not stored");
  }
  return push(*memo_[static_cast<size_t>(index)]);
}

Status Reader::make_tuple(size_t count) {
  if (count > 3) return fail("has a tuple of " + std::to_string(count) + " values");
  if (stack_.size() < count) return fail("has a tuple of missing values");
  Tuple tuple;
  tuple.size = count;
  for (size_t i = 0; i < count; ++i) {
    const auto* item = std::get_if<Scalar>(&stack_[stack_.size() - count + i]);
    if (item == nullptr) return fail("has a tuple of something else than integers and None");
    tuple.items[i] = item->value;
  }
  stack_.resize(stack_.size() - count);
  return push(tuple);
}

Status Reader::make_tuple_from_mark() {
  IGNIS_TRY_ASSIGN(const size_t mark, find_mark());
  const size_t count = stack_.size() - mark - 1;
  if (count > 3) return fail("has a tuple of " + std::to_string(count) + " values");
  stack_.erase(stack_.begin() + static_cast<ptrdiff_t>(mark));
  return make_tuple(count);
}

Status Reader::push_global(std::string_view module, std::string_view name) {
  const bool is_slice = name == "slice" && (module == "builtins" || module == "__builtin__");
  if (!is_slice) {
    // The names come from the file: not worth repeating at any length.
    return fail("names a Python object other than slice");
  }
  return push(SliceType{});
}

// REDUCE: slice(start, stop, step).
Status Reader::call() {
  const Tuple* arguments = top<Tuple>();
  if (arguments == nullptr || top<SliceType>(1) == nullptr) return fail("calls something");
  if (arguments->size != 3) {
    return fail("makes a slice of " + std::to_string(arguments->size) + " values");
  }
  if (arguments->items[2] && *arguments->items[2] != 1) return fail("has a slice with a step");
  const SliceObject slice{arguments->items[0], arguments->items[1]};
  stack_.resize(stack_.size() - 2);
  return push(slice);
}

// Takes name, slice, name, slice, … from `first` to the top into the map below them.
Status Reader::add_pairs(size_t first) {
  if (first == 0 || first > stack_.size() || !std::holds_alternative<Map>(stack_[first - 1])) {
    return fail("sets an item of something that is no map");
  }
  if ((stack_.size() - first) % 2 != 0) return fail("has a name without a value");
  for (size_t i = first; i < stack_.size(); i += 2) {
    const auto* name = std::get_if<Text>(&stack_[i]);
    const auto* slice = std::get_if<SliceObject>(&stack_[i + 1]);
    if (name == nullptr) return fail("has a key that is no text");
    if (slice == nullptr) return fail("has a value that is no slice");
    const bool is_name = !name->bytes.empty() && name->bytes.size() <= kMaxNameBytes &&
                         std::all_of(name->bytes.begin(), name->bytes.end(),
                                     [](char c) { return c > ' ' && c < 127; });
    if (!is_name) return fail("has a name that is not 1 to 128 printable ASCII signs");
    if (entries_.size() >= kMaxEntries) return fail("has more than 2048 entries");
    if (!names_.insert(std::string(name->bytes)).second) {
      return fail("has two slices named '" + std::string(name->bytes) + "'");
    }
    entries_.push_back({std::string(name->bytes), slice->start, slice->stop});
  }
  stack_.resize(first);
  return {};
}

Status Reader::make_map_from_mark() {
  IGNIS_TRY_ASSIGN(const size_t mark, find_mark());
  if (has_map_) return fail("has a second map");
  has_map_ = true;
  stack_[mark] = Map{};
  return add_pairs(mark + 1);
}

Status Reader::step(unsigned char opcode) {
  switch (opcode) {
    case 0x80: {  // PROTO
      IGNIS_TRY_ASSIGN(const uint64_t protocol, take_number(1));
      if (protocol > 5) return fail("is of protocol " + std::to_string(protocol));
      return {};
    }
    case 0x95: return take(8) ? Status() : Status(fail("ends too early"));  // FRAME: a hint only
    case '(': return push(Mark{});
    case '}':
      if (has_map_) return fail("has a second map");
      has_map_ = true;
      return push(Map{});
    case 'd': return make_map_from_mark();
    case 's':
      if (stack_.size() < 3) return fail("has an item of missing values");
      return add_pairs(stack_.size() - 2);
    case 'u': {
      IGNIS_TRY_ASSIGN(const size_t mark, find_mark());
      stack_.erase(stack_.begin() + static_cast<ptrdiff_t>(mark));
      return add_pairs(mark);
    }
    case ')': return make_tuple(0);
    case 0x85: return make_tuple(1);
    case 0x86: return make_tuple(2);
    case 0x87: return make_tuple(3);
    case 't': return make_tuple_from_mark();
    case 'N':
    case 'K':
    case 'M':
    case 'J':
    case 'I':
    case 'L':
    case 0x8a: return read_scalar(opcode);
    case 0x8c:
    case 0x8d:
    case 'U':
    case 'T':
    case 'X':
    case 'V':
    case 'S': return read_text(opcode);
    case 'p':
    case 'q':
    case 'r':
    case 0x94: return memoize(opcode);
    case 'g':
    case 'h':
    case 'j': return recall(opcode);
    case 'c': {
      IGNIS_TRY_ASSIGN(const std::string_view module, take_line());
      IGNIS_TRY_ASSIGN(const std::string_view name, take_line());
      return push_global(module, name);
    }
    case 0x93: {  // STACK_GLOBAL
      const Text* name = top<Text>();
      const Text* module = top<Text>(1);
      if (name == nullptr || module == nullptr) return fail("names an object by no text");
      const std::string_view module_text = module->bytes, name_text = name->bytes;
      stack_.resize(stack_.size() - 2);
      return push_global(module_text, name_text);
    }
    case 'R': return call();
    default: {
      const char* digits = "0123456789abcdef";
      return fail(std::string("has opcode 0x") + digits[opcode >> 4] + digits[opcode & 15]);
    }
  }
}

Result<std::vector<NamedSlice>> Reader::read() {
  while (true) {
    opcode_at_ = at_;
    IGNIS_TRY_ASSIGN(const uint64_t opcode, take_number(1));
    if (opcode == '.') break;
    IGNIS_TRY(step(static_cast<unsigned char>(opcode)));
  }
  if (stack_.size() != 1 || top<Map>() == nullptr) return fail("is no map");
  if (at_ != bytes_.size()) return fail("goes on after its end");
  return std::move(entries_);
}

}  // namespace

Result<std::string> decode_base64(std::string_view text) {
  const auto fail = [](const std::string& why) {
    return Error(ErrorCode::InvalidArgument, "The slice map is no base64 text: " + why + ".",
                 "SliceMap");
  };
  if (text.size() > kMaxBase64Bytes) {
    return fail(std::to_string(text.size()) + " bytes are more than the limit of " +
                std::to_string(kMaxBase64Bytes));
  }
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3);
  uint32_t bits = 0;
  int count = 0, padding = 0;  // signs of the current group of four
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    uint32_t value = 0;
    if (c >= 'A' && c <= 'Z') value = static_cast<uint32_t>(c - 'A');
    else if (c >= 'a' && c <= 'z') value = static_cast<uint32_t>(c - 'a') + 26;
    else if (c >= '0' && c <= '9') value = static_cast<uint32_t>(c - '0') + 52;
    else if (c == '+') value = 62;
    else if (c == '/') value = 63;
    else if (c == '\n' || c == '\r' || c == ' ' || c == '\t') continue;
    else if (c == '=' && count >= 2 && count + padding < 4) {
      ++padding;
      continue;
    } else {
      return fail("sign " + std::to_string(static_cast<unsigned char>(c)) + " at byte " +
                  std::to_string(i));
    }
    if (padding != 0) return fail("it goes on after its padding");
    bits = bits << 6 | value;
    if (++count < 4) continue;
    for (const int shift : {16, 8, 0}) bytes += static_cast<char>(bits >> shift & 0xff);
    bits = 0;
    count = 0;
  }
  if (count + padding != 0 && count + padding != 4) return fail("its last group is not whole");
  if (count == 2) bytes += static_cast<char>(bits >> 4 & 0xff);
  if (count == 3) {
    bytes += static_cast<char>(bits >> 10 & 0xff);
    bytes += static_cast<char>(bits >> 2 & 0xff);
  }
  return bytes;
}

Result<std::vector<NamedSlice>> read_slice_pickle(std::string_view bytes) {
  return Reader(bytes).read();
}

Result<std::vector<NamedSlice>> read_slice_map(std::string_view base64) {
  IGNIS_TRY_ASSIGN(const std::string bytes, decode_base64(base64));
  return read_slice_pickle(bytes);
}

}  // namespace ignis::pipeline
