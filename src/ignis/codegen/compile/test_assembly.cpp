#include "ignis/codegen/compile/test_assembly.h"

#include <iterator>
#include <map>
#include <regex>
#include <sstream>

namespace ignis::codegen::testing {

std::string inner_loop(const std::string& assembly) {
  std::smatch jump;
  std::istringstream lines(assembly);
  std::string line, longest;
  std::map<std::string, std::string> open;  // text since each label with no loop since
  static const std::regex label_line("^(\\.LBB[0-9_]+):.*"),
      jump_line("^\\s+(j[a-z]+|b\\.[a-z]+|cbnz)\\s+(?:x[0-9]+, )?(\\.LBB[0-9_]+).*");
  while (std::getline(lines, line)) {
    if (std::regex_match(line, jump, label_line)) open[jump[1]] = "";
    for (auto& [name, text] : open) text += line + "\n";
    if (!std::regex_match(line, jump, jump_line) || !open.contains(jump[2])) continue;
    const std::string body = open[jump[2]];
    if (body.size() > longest.size()) longest = body;
    open.clear();  // what began before this loop holds a loop
  }
  return longest;
}

int count_matches(const std::string& text, const std::string& pattern) {
  const std::regex expression(pattern);
  return static_cast<int>(std::distance(std::sregex_iterator(text.begin(), text.end(), expression),
                                        std::sregex_iterator()));
}

}  // namespace ignis::codegen::testing
