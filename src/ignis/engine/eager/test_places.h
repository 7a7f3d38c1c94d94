#pragma once

// Workspaces on the host and on simulated devices, for the tests of this folder.

#include "ignis/engine/eager/workspace.h"
#include "ignis/tensor/tensor.h"
#include "ignis/vdev/queue/world.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

namespace ignis::engine {

/// Programs that were compiled, for all tests of the process.
inline std::shared_ptr<ProgramCache> test_programs() {
  static const std::shared_ptr<ProgramCache> cache = ProgramCache::open();
  return cache;
}

inline std::shared_ptr<runtime::Device> test_host() {
  static const std::shared_ptr<runtime::Device> host =
      runtime::open_device("cpu", {.threads = 2}).value();
  return host;
}

/// A simulated world and a workspace on it.
struct Place {
  vdev::World world{{.cpu = test_host()}};
  std::string device;
  std::unique_ptr<Workspace> workspace;

  Workspace& ws() { return *workspace; }
};

enum class PlaceKind { Cpu, CopyQueue, NoCopyQueue, Unified, Hidden, TwoDevices };

inline std::unique_ptr<Place> make_place(PlaceKind kind, WorkspaceOptions options = {}) {
  auto made = std::make_unique<Place>();
  made->device = kind == PlaceKind::Cpu ? "CPU" : "CUDA";
  vdev::DeviceSpec spec;
  if (kind == PlaceKind::NoCopyQueue) spec.capabilities.copy_queues = 0;
  if (kind == PlaceKind::Unified) spec.capabilities.has_unified_memory = true;
  if (kind == PlaceKind::Hidden) {
    spec.hides_memory = true;
    spec.capabilities.is_host_coherent = false;
  }
  if (kind != PlaceKind::Cpu) made->world.add(spec);
  if (kind == PlaceKind::TwoDevices) {
    spec.name = "AMD";
    made->world.add(spec);
  }
  options.host = test_host();
  options.program_cache = test_programs();
  options.devices = made->world.devices();
  options.default_device = made->device;
  options.clock = &made->world.clock();
  Result<Workspace> workspace = Workspace::create(std::move(options));
  EXPECT_TRUE(workspace) << (workspace ? "" : workspace.error().to_string());
  made->workspace = std::make_unique<Workspace>(*std::move(workspace));
  return made;
}

inline HostTensor floats(const Shape& shape, const std::vector<float>& values) {
  return HostTensor::from(DType::Float32, shape, values);
}

inline std::vector<float> read(Workspace& workspace, const Array& array) {
  const Result<HostTensor> value = workspace.to_host(array);
  EXPECT_TRUE(value) << (value ? "" : value.error().to_string());
  if (!value) return {};
  return {value->data<float>(), value->data<float>() + value->count()};
}

/// What is in a result; a failure is the test's.
template <typename T>
T take(Result<T> result) {
  EXPECT_TRUE(result) << (result ? "" : result.error().to_string());
  return result ? *std::move(result) : T();
}

inline ::testing::AssertionResult ok(const Status& status) {
  if (status) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << status.error().to_string();
}

inline std::string reason(const Status& status) { return status ? "ok" : status.error().reason(); }
template <typename T>
std::string reason(const Result<T>& result) {
  return result ? "ok" : result.error().reason();
}

}  // namespace ignis::engine
