#include "ignis/engine/callable/value.h"

#include <charconv>

namespace ignis::engine {
namespace {

void visit(Value& value, std::string& path,
           const std::function<void(const std::string&, Value&)>& each) {
  const size_t length = path.size();
  if (auto* sequence = std::get_if<Sequence>(&value.data())) {
    for (size_t i = 0; i < sequence->size(); ++i) {
      path += "[" + std::to_string(i) + "]";
      visit((*sequence)[i], path, each);
      path.resize(length);
    }
    return;
  }
  if (auto* map = std::get_if<ValueMap>(&value.data())) {
    for (auto& [key, element] : *map) {
      path += ".";
      for (const char sign : key) {
        if (sign == '.' || sign == '[' || sign == '\\') path += '\\';
        path += sign;
      }
      visit(element, path, each);
      path.resize(length);
    }
    return;
  }
  each(path, value);
}

Error bad_path(std::string_view path) {
  return Error(ErrorCode::InvalidArgument,
               "'" + std::string(path) + "' is no place in a result, or contradicts another one.",
               "BadPath");
}

// The container element that the first step of `rest` names; `rest` loses that step. Null: no such step.
Value* take_step(Value& at, std::string_view& rest) {
  if (rest.front() == '[') {
    size_t index = 0;
    const char* const end = rest.data() + rest.size();
    const auto [next, error] = std::from_chars(rest.data() + 1, end, index);
    if (error != std::errc() || next == end || *next != ']') return nullptr;
    rest.remove_prefix(static_cast<size_t>(next - rest.data()) + 1);
    if (at.is_none()) at = Sequence();
    auto* sequence = std::get_if<Sequence>(&at.data());
    // Leaves come in order, so a hole is a path that is wrong.
    if (sequence == nullptr || index > sequence->size()) return nullptr;
    if (index == sequence->size()) sequence->emplace_back();
    return &(*sequence)[index];
  }
  if (rest.front() != '.') return nullptr;
  std::string key;
  size_t i = 1;
  for (; i < rest.size() && rest[i] != '.' && rest[i] != '['; ++i) {
    if (rest[i] == '\\' && ++i == rest.size()) return nullptr;
    key += rest[i];
  }
  rest.remove_prefix(i);
  if (at.is_none()) at = ValueMap();
  auto* map = std::get_if<ValueMap>(&at.data());
  return map == nullptr ? nullptr : &(*map)[key];
}

}  // namespace

const Value& Value::operator[](size_t index) const {
  IGNIS_CHECK(index < sequence().size());
  return sequence()[index];
}

const Value& Value::operator[](std::string_view key) const {
  const auto at = map().find(key);
  IGNIS_CHECK(at != map().end());
  return at->second;
}

const Value& Arguments::operator[](std::string_view name) const {
  for (const auto& [key, value] : keyword) {
    if (key == name) return value;
  }
  IGNIS_CHECK(false && "no such argument");
  return keyword.front().second;
}

void visit_leaves(Value& value, const std::function<void(const std::string&, Value&)>& each) {
  std::string path;
  visit(value, path, each);
}

std::string_view kind_of(const Value& leaf) {
  static constexpr std::string_view kNames[] = {
      "nothing",        "a tensor", "a tensor", "a variable", "a bool",
      "a whole number", "a number", "a text",   "a sequence", "a map"};
  static_assert(std::size(kNames) == std::variant_size_v<Value::Data>);
  return kNames[leaf.data().index()];
}

Result<Value> make_value(const std::vector<std::pair<std::string, Value>>& leaves) {
  Value made;
  for (const auto& [path, leaf] : leaves) {
    Value* at = &made;
    for (std::string_view rest = path; !rest.empty();) {
      at = take_step(*at, rest);
      if (at == nullptr) return bad_path(path);
    }
    if (!at->is_none()) return bad_path(path);
    *at = leaf;
  }
  return made;
}

}  // namespace ignis::engine
