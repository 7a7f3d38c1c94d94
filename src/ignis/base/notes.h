#pragma once

#include <locale>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace ignis {

/// What choices compared and took, one line for each: for people, and no part of any key or digest.
using Notes = std::vector<std::string>;

/// The parts one after the other; fractions with three digits.
template <typename... Parts>
std::string say(const Parts&... parts) {
  std::ostringstream text;
  text.imbue(std::locale::classic());
  text.precision(3);
  (text << ... << parts);
  return std::move(text).str();
}

/// `part` after what stands in `list`, with a comma between.
inline void append(std::string& list, const std::string& part) {
  list += (list.empty() ? "" : ", ") + part;
}

}  // namespace ignis
