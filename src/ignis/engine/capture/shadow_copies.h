#pragma once

#include "ignis/base/result.h"
#include "ignis/engine/queues/template_cache.h"
#include "ignis/exec/link.h"
#include "ignis/exec/schedule.h"

#include <cstddef>
#include <vector>

namespace ignis::engine {

/// For each of the first `input_count` inputs of a captured schedule the program that copies input 1 to input 0, lane by lane and
/// on its devices: how a replay brings an input that it would write over out of its own way. Null for an input that no buffer
/// is bound to. Errors: as TemplateCache::compile().
Result<std::vector<exec::TemplateRef>> make_shadow_copies(
    const exec::Schedule& captured, size_t input_count,
    const TemplateCache::Environment& environment);

}  // namespace ignis::engine
