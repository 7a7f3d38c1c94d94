#pragma once

#include "ignis/interp/interp.h"
#include "ignis/tensor/tensor.h"

#include "tests/support/seed.h"
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <random>
#include <string>
#include <vector>

// What the tests of this folder share: graphs with input values, run by the reference interpreter.
namespace ignis::tensor {

using ignis::testing::test_seed;

using Values = std::vector<double>;

/// The message of the GraphError that `build` throws, or "".
inline std::string error_of(const std::function<void()>& build) {
  try {
    build();
  } catch (const GraphError& error) {
    return error.what();
  }
  return {};
}

class TensorTest : public ::testing::Test {
 protected:
  Tensor input(DType dtype, const Shape& shape, const Values& values,
               const std::string& name = {}) {
    HostTensor host = HostTensor::zeros(dtype, shape);
    for (size_t i = 0; i < values.size(); ++i)
      store_element(host, static_cast<int64_t>(i), values[i]);
    const auto slot = static_cast<int64_t>(inputs_.size());
    inputs_.push_back(std::move(host));
    return Tensor::input(graph_, slot, name.empty() ? "x" + std::to_string(slot) : name, dtype,
                         shape);
  }
  /// float32 0, 1, 2, …
  Tensor iota(const Shape& shape) {
    Values values(static_cast<size_t>(element_count(shape)));
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i);
    return input(DType::Float32, shape, values);
  }
  /// float32 values in [-1, 1), multiples of 2^-10 so that short sums are exact.
  Tensor random(const Shape& shape, Values* values) {
    std::uniform_int_distribution<int> pick(-1024, 1023);
    values->resize(static_cast<size_t>(element_count(shape)));
    for (double& v : *values) v = pick(rng_) / 1024.0;
    return input(DType::Float32, shape, *values);
  }
  HostTensor run(const Tensor& x) {
    const ir::Node roots[] = {x.node()};
    auto result = interp::evaluate(roots, inputs_);
    EXPECT_TRUE(result.has_value()) << (result ? "" : result.error().to_string());
    if (!result) return {};
    return (*result)[0];
  }
  Values values(const Tensor& x) {
    const HostTensor host = run(x);
    EXPECT_EQ(host.shape, x.shape());
    Values out;
    for (int64_t i = 0; i < host.count(); ++i) out.push_back(element_as_double(host, i));
    return out;
  }
  void expect_near(const Tensor& x, const Values& expected, double tolerance) {
    const Values actual = values(x);
    ASSERT_EQ(actual.size(), expected.size());
    for (size_t i = 0; i < actual.size(); ++i) {
      if (std::isnan(expected[i])) {
        EXPECT_TRUE(std::isnan(actual[i])) << i;
      } else if (std::isinf(expected[i])) {
        EXPECT_EQ(actual[i], expected[i]) << i;
      } else {
        EXPECT_NEAR(actual[i], expected[i], tolerance * std::max(1.0, std::abs(expected[i]))) << i;
      }
    }
  }

  std::shared_ptr<ir::Graph> graph_ = std::make_shared<ir::Graph>();
  std::vector<HostTensor> inputs_;
  std::mt19937_64 rng_{test_seed()};
};

}  // namespace ignis::tensor
