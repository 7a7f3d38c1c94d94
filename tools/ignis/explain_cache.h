#pragma once

#include "tools/ignis/common.h"

#include <vector>

namespace ignis::tools {

/// How each kernel came by its program, and the counters of the cache: {"folder", "off", "memory_hits", …, "kernels"}.
Json cache_json(const ProgramCache* cache, const std::vector<ProgramLookup>& lookups);
/// The same as a table on standard output.
void print_cache(const ProgramCache* cache, const std::vector<ProgramLookup>& lookups);

}  // namespace ignis::tools
