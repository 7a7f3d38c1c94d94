// Checks, runs and times a compiled model with libignis alone, as a vehicle does, and looks that no compiler came with it.
#include <dlfcn.h>
#include <ignis/exec/artifact.h>
#include <ignis/exec/golden.h>
#include <ignis/exec/model.h>
#include <ignis/runtime/device.h>

#include <chrono>
#include <fstream>
#include <iostream>
#include <string>

namespace {

// Neither a file of the compiler is mapped nor one of its symbols is there, whatever file it came in.
bool holds_compiler() {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    for (const char* name : {"LLVM", "ignis-compiler", "protobuf", "onnx"}) {
      if (line.find(name) != std::string::npos) return true;
    }
  }
  for (const char* symbol : {"LLVMContextCreate", "LLVMInitializeX86Target"}) {
    if (dlsym(RTLD_DEFAULT, symbol) != nullptr) return true;
  }
  return false;
}

int fail(const ignis::Error& error) { return std::cerr << error.to_string() << "\n", 1; }

}  // namespace

int main(int argc, char** argv) {
  const auto artifact = ignis::exec::Artifact::open(argv[1]);
  if (!artifact) return fail(artifact.error());
  const auto device = ignis::runtime::open_device("cpu");
  if (!device) return fail(device.error());
  auto plan = artifact->plan_for((*device)->target());
  if (!plan) return fail(plan.error());
  auto model = ignis::exec::Model::create(*std::move(plan), *device);
  if (!model) return fail(model.error());
  // Verify: the answers that the file carries.
  const auto golden = artifact->golden();
  if (!golden) return fail(golden.error());
  if (golden->empty()) return std::cerr << "no golden data\n", 1;
  for (const ignis::exec::GoldenCase& one : *golden) {
    const auto outcomes = ignis::exec::check_golden(*model, one, std::chrono::seconds(1));
    if (!outcomes) return fail(outcomes.error());
    if (!ignis::exec::has_passed(*outcomes)) return std::cerr << "other answers\n", 1;
  }
  // Run, and time some runs.
  const float x[2] = {};
  float y[2] = {};
  const std::span<const std::byte> inputs[] = {std::as_bytes(std::span(x))};
  const std::span<std::byte> outputs[] = {std::as_writable_bytes(std::span(y))};
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < 100; ++i) {
    const ignis::Status ran =
        model->run(inputs, outputs, ignis::runtime::deadline_after(std::chrono::seconds(1)));
    if (!ran) return fail(ran.error());
  }
  const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - begin;
  if (argc > 2) std::cerr << took.count() / 100 << " us a run\n";
  std::cout << ignis::to_string(model->plan().outputs[0].shape) << " begins with " << y[0] << "\n";
  if (holds_compiler()) return std::cerr << "a compiler is loaded\n", 1;
}
