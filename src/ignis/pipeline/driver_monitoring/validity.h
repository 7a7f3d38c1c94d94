#pragma once

#include "ignis/pipeline/driver_monitoring/model.h"
#include "ignis/pipeline/messages/driver_state.h"

namespace ignis::pipeline {

/// Below this a face is not surely a face, above this a pose is not surely one (section 8.3 of the contract).
inline constexpr float kSureFaceProb = 0.7F;
inline constexpr float kSureFaceStd = 0.3F;

/// Holds what a model says it knows against what such values can be: NonFinite, RangeViolation (a probability outside
/// [0, 1], a std that is not positive, a list that is known but absent). The second look after the decode's own.
Reasons check_values(const Prediction& prediction);

/// LowConfidence when the side with the higher face probability has one below 0.7 or an orientation std (pitch, yaw) above
/// 0.3. A side whose face probability the model cannot know does not count.
Reasons check_confidence(const Prediction& prediction);

/// Sets to zero what the masks do not name: an unknown value must not look like a measured one.
void clear_unknown(Prediction& prediction);

}  // namespace ignis::pipeline
