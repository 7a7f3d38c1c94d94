#pragma once

#include "ignis/ir/node.h"

#include <string>
#include <vector>

namespace ignis::tools {

/// Every node below the roots, sources first, one a line: "%12 = Mul f32 [2, 3] %4 %7". For people.
std::string list_nodes(const std::vector<ir::Node>& roots);

}  // namespace ignis::tools
