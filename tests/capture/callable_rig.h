#pragma once

// Captured functions on the host and on simulated devices.

#include "ignis/engine/callable/typed.h"
#include "ignis/engine/eager/test_places.h"

#include "tests/support/seed.h"
#include <gtest/gtest.h>

#include <string>

namespace ignis::engine {

using tensor::Tensor;
using Floats = std::vector<float>;

class CallableTest : public ::testing::TestWithParam<PlaceKind> {
 protected:
  std::unique_ptr<Place> place = make_place(GetParam());
  Workspace& ws = place->ws();

  Array make(const Floats& values, const Shape& shape) {
    return take(ws.from_host(floats(shape, values)));
  }
  Array make(const Floats& values) { return make(values, {static_cast<int64_t>(values.size())}); }
  Array scalar(float value) { return make({value}); }
  /// Every element has the value.
  Array filled(const Shape& shape, float value) {
    return make(Floats(static_cast<size_t>(element_count(shape)), value), shape);
  }
  Floats read(const Array& array) { return engine::read(ws, array); }
  float first(const Array& array) {
    const Floats values = read(array);
    return values.empty() ? -1e30F : values.front();
  }
  int recorded(const Capture& capture) { return take(capture.report()).calls; }
};

inline auto all_places() {
  return ::testing::Values(PlaceKind::Cpu, PlaceKind::CopyQueue, PlaceKind::NoCopyQueue,
                           PlaceKind::Hidden);
}
inline std::string place_name(const ::testing::TestParamInfo<PlaceKind>& each) {
  switch (each.param) {
    case PlaceKind::Cpu: return "Cpu";
    case PlaceKind::CopyQueue: return "CopyQueue";
    case PlaceKind::NoCopyQueue: return "NoCopyQueue";
    case PlaceKind::Hidden: return "Hidden";
    default: return "Other";
  }
}

}  // namespace ignis::engine
