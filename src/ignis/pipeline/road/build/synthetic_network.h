#pragma once

#include "ignis/engine/session.h"
#include "ignis/pipeline/road/contract.h"

#include <vector>

namespace ignis::pipeline {

struct SyntheticNetworkOptions {
  int channels = 8;   ///< of the first convolution; the second has twice as many
  uint32_t seed = 1;  ///< of the weights
  std::string device = "cpu";
  int threads = 0;
};

/// A network with a road model's interfaces and made-up weights: it shows that everything is fed, in order, and in time;
/// it knows no roads.
///
/// Two 6-plane images, "desire_pulse", "traffic_convention", "action_t"; the state "features" holds the last 8 feature
/// vectors and "desire_history" the last 8 pulses. The network runs at 20 Hz and looks at every fourth entry (5 Hz).
/// Errors: as Session::from_graph.
Result<Session> make_synthetic_network(const SyntheticNetworkOptions& options);

/// How its 48 outputs are read: plan (raw), lane_prob (logit), desire_state (softmax).
std::vector<RoadSlice> synthetic_slices();

}  // namespace ignis::pipeline
