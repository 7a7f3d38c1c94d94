// Runs a compiled model with libignis alone, as a vehicle does, and looks that no compiler came with it.
#include <ignis/exec/artifact.h>
#include <ignis/exec/executable.h>
#include <ignis/runtime/device.h>

#include <fstream>
#include <iostream>
#include <string>

namespace {

bool holds_compiler() {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    for (const char* name : {"LLVM", "ignis-compiler", "protobuf", "onnx"}) {
      if (line.find(name) != std::string::npos) return true;
    }
  }
  return false;
}

int fail(const ignis::Error& error) { return std::cerr << error.to_string() << "\n", 1; }

}  // namespace

int main(int, char** argv) {
  const auto artifact = ignis::exec::Artifact::open(argv[1]);
  if (!artifact) return fail(artifact.error());
  const auto device = ignis::runtime::open_device("cpu");
  if (!device) return fail(device.error());
  auto plan = artifact->plan_for((*device)->target());
  if (!plan) return fail(plan.error());
  auto model = ignis::exec::Executable::create(*std::move(plan), *device);
  if (!model) return fail(model.error());
  const float x[2] = {};
  float y[2] = {};
  const std::span<const std::byte> inputs[] = {std::as_bytes(std::span(x))};
  const std::span<std::byte> outputs[] = {std::as_writable_bytes(std::span(y))};
  const ignis::Status ran =
      model->run(inputs, outputs, ignis::runtime::deadline_after(std::chrono::seconds(1)));
  if (!ran) return fail(ran.error());
  std::cout << ignis::to_string(model->plan().outputs[0].shape) << " begins with " << y[0] << "\n";
  if (holds_compiler()) return std::cerr << "a compiler is loaded\n", 1;
}
