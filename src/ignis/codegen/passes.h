#pragma once

#include "ignis/codegen/codegen.h"
#include "ignis/ir/simplify.h"

#include <span>

namespace ignis::codegen {

/// One rewrite of a kernel, from Sink to Sink.
struct KernelPass {
  const char* name;
  ir::Node (*run)(ir::Graph& graph, const ir::Node& sink, const Config& config,
                  ir::SimplifyStats* stats);
};

/// Passes on addresses, in order: logical indices become offsets, adjacent loops join, offsets are simplified.
std::span<const KernelPass> address_passes();
/// Passes on values, in order, after the addresses were set aside: every number gets a width and every operation
/// becomes one that programs have.
std::span<const KernelPass> value_passes();

}  // namespace ignis::codegen
