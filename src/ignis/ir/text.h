#pragma once

#include "ignis/ir/node.h"

#include <string>

namespace ignis::ir {

/// One readable line: `(L0*4 + R1)//3`, `where(L0 < 3, L0, Invalid)`. For messages and debugging; does not parse
/// back. Parts deeper or longer than a line can hold are printed as `…`.
std::string print_expr(const Node& node);

}  // namespace ignis::ir
