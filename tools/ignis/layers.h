#pragma once

#include "tools/ignis/common.h"
#include "tools/ignis/compare.h"

namespace ignis::tools {

/// What outputs and layers are held to.
struct Tolerances {
  NamedValues rtol, atol, ulp;
  Stat stat = Stat::Max;
  Tolerance of(const std::string& name, DType dtype) const;
};

/// One layer's value in the tapped program beside the reference's.
struct LayerComparison {
  std::string layer, op, output;
  PortInfo port;
  Comparison comparison;
  Tolerance tolerance;
  std::string flags;  ///< of the compiled value
  std::string reference_flags;
};

struct LayerReport {
  std::vector<LayerComparison> layers;  ///< in the model's order
  int first_beyond = -1;                ///< index of the first layer beyond its tolerance
};

/// Compares every layer's value. The program is not changed: the layers' values come from programs compiled beside it
/// (as many as memory asks for), and the reference's are made and dropped one by one.
/// Errors: as load_session.
Result<LayerReport> compare_layers(const BoundModel& model, const std::vector<HostTensor>& inputs,
                                   const Tolerances& tolerances, const Context& context);

void print_layers(const LayerReport& report);
Json to_json(const LayerReport& report);

}  // namespace ignis::tools
