#include "ignis/engine/queues/submit_program.h"

#include "ignis/base/hex.h"
#include "ignis/exec/submit_program.h"

#include <map>
#include <span>
#include <utility>
#include <vector>

namespace ignis::engine {
namespace {

/// "submit_" and the first half of the code's hash: equal in every template.
std::string program_name(const exec::ContentHash& hash) {
  return "submit_" + to_hex(std::span(hash).first(hash.size() / 2));
}

}  // namespace

Status add_submit_programs(exec::QueueTemplate& made, const DeviceFinder& find_device,
                           const SubmitCompiler& compiler) {
  exec::remove_submit_programs(made);
  std::map<exec::ContentHash, int> known;
  for (exec::TemplateStep& step : made.steps) {
    exec::Batch& batch = step.batch;
    if (batch.streams.empty()) continue;
    std::vector<bool> windows;
    for (const std::string& name : batch.devices) {
      const runtime::QueuedDevice* device = find_device(name);
      if (device == nullptr) {
        return Error(ErrorCode::NotFound, "Device '" + name + "' is not open.", "NoSuchDevice");
      }
      windows.push_back(device->capabilities().crosses_host_memory);
    }
    std::vector<WordStore> stores = exec::collect_stores(
        batch, [&](int device) { return windows[static_cast<size_t>(device)]; });
    if (stores.empty()) continue;
    const bool is_rolled = stores.size() > compiler.most_in_code;
    const SubmitCode code = exec::make_submit_code(std::move(stores), is_rolled);
    const exec::ContentHash hash = exec::hash_submit_code(code);
    const auto [found, is_new] =
        known.try_emplace(hash, static_cast<int>(made.submit_programs.size()));
    if (is_new) {
      IGNIS_TRY_ASSIGN(ProgramImage image, compiler.compile(code, program_name(hash)));
      made.submit_programs.push_back({std::move(image), hash, is_rolled});
    }
    batch.submit_program = found->second;
  }
  return {};
}

}  // namespace ignis::engine
