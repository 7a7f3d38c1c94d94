// Every driver by hand: the one place that knows them all.
#include "ignis/drivers/cpu/cpu_count.h"
#include "ignis/drivers/cpu/device.h"
#include "ignis/runtime/device.h"

namespace ignis::runtime {
namespace {

struct Driver {
  const char* kind;
  Result<std::shared_ptr<Device>> (*open)(const DeviceSpec&, const DeviceOptions&);
  std::vector<DeviceInfo> (*list)();
};

constexpr Driver kDrivers[] = {
    {"cpu", cpu::open, cpu::list},
};

}  // namespace

Result<std::shared_ptr<Device>> open_device(const DeviceSpec& spec, const DeviceOptions& options) {
  for (const Driver& driver : kDrivers) {
    if (spec.kind == driver.kind) return driver.open(spec, options);
  }
  std::string known;
  for (const DeviceInfo& info : list_devices()) known += (known.empty() ? "" : ", ") + info.spec;
  return Error(ErrorCode::NotFound,
               "Device '" + spec.to_string() + "' is not known; there are " + known + ".",
               "UnknownDevice");
}

Result<std::shared_ptr<Device>> open_device(std::string_view spec, const DeviceOptions& options) {
  IGNIS_TRY_ASSIGN(const std::vector<DeviceSpec> specs, parse_device_list(spec));
  for (size_t i = 0;; ++i) {
    Result<std::shared_ptr<Device>> device = open_device(specs[i], options);
    if (device || i + 1 == specs.size()) return device;
  }
}

std::vector<DeviceInfo> list_devices() {
  std::vector<DeviceInfo> rows;
  for (const Driver& driver : kDrivers) {
    for (DeviceInfo& row : driver.list()) rows.push_back(std::move(row));
  }
  return rows;
}

int usable_threads() { return cpu::usable_cpus(); }

}  // namespace ignis::runtime
