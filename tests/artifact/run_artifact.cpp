// Runs artifacts with libignis alone, as a vehicle does. Also for machines that are emulated: one process runs any number.
//
//   run_artifact [DEVICE] < folders
//
// Each line of the standard input names a folder with `model.ignis` and `input_<i>.bin`, the raw bytes of each input in the
// model's order. Writes `output_<i>.bin` beside them and answers with one line: "ok" or the error's sentence.
#include "ignis/exec/artifact.h"
#include "ignis/exec/model.h"
#include "ignis/runtime/device.h"

#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

namespace ignis {
namespace {

using Bytes = std::vector<std::byte>;

int64_t byte_count(const exec::Port& port) {
  int64_t count = size_bytes(port.dtype);
  for (const int64_t extent : port.shape) count *= extent;
  return count;
}

Result<Bytes> read_bytes(const std::string& path, int64_t wanted_bytes) {
  std::ifstream file(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  if (!file || static_cast<int64_t>(text.size()) != wanted_bytes) {
    return Error(ErrorCode::InvalidArgument, "'" + path + "' has " + std::to_string(text.size()) +
                                                 " bytes instead of " +
                                                 std::to_string(wanted_bytes) + ".");
  }
  const auto* begin = reinterpret_cast<const std::byte*>(text.data());
  return Bytes(begin, begin + text.size());
}

Status run_folder(const std::string& folder, const std::shared_ptr<runtime::Device>& device) {
  IGNIS_TRY_ASSIGN(const exec::Artifact artifact, exec::Artifact::open(folder + "/model.ignis"));
  IGNIS_TRY_ASSIGN(exec::Plan plan, artifact.plan_for(device->target()));
  IGNIS_TRY_ASSIGN(exec::Model model, exec::Model::create(std::move(plan), device));
  std::vector<Bytes> inputs, outputs;
  for (const exec::Port& port : model.plan().inputs) {
    const std::string path = folder + "/input_" + std::to_string(inputs.size()) + ".bin";
    IGNIS_TRY_ASSIGN(Bytes bytes, read_bytes(path, byte_count(port)));
    inputs.push_back(std::move(bytes));
  }
  for (const exec::Port& port : model.plan().outputs) {
    outputs.emplace_back(static_cast<size_t>(byte_count(port)));
  }
  const std::vector<std::span<const std::byte>> from(inputs.begin(), inputs.end());
  const std::vector<std::span<std::byte>> to(outputs.begin(), outputs.end());
  // An emulated run takes a hundred times as long as a real one.
  IGNIS_TRY(model.run(from, to, runtime::deadline_after(std::chrono::minutes(5))));
  for (size_t i = 0; i < outputs.size(); ++i) {
    std::ofstream file(folder + "/output_" + std::to_string(i) + ".bin", std::ios::binary);
    file.write(reinterpret_cast<const char*>(outputs[i].data()),
               static_cast<std::streamsize>(outputs[i].size()));
    if (!file.flush()) return Error(ErrorCode::Internal, "'" + folder + "' cannot be written.");
  }
  return {};
}

int run(const char* spec) {
  const auto device = runtime::open_device(spec);
  if (!device) return std::cerr << device.error().to_string() << "\n", 1;
  for (std::string folder; std::getline(std::cin, folder);) {
    const Status status = run_folder(folder, *device);
    std::cout << (status ? "ok" : status.error().to_string()) << std::endl;  // the asker waits
  }
  return 0;
}

}  // namespace
}  // namespace ignis

int main(int argc, char** argv) { return ignis::run(argc > 1 ? argv[1] : "cpu"); }
