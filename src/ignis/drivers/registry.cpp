// Every driver by hand: the one place that knows them all.
#include "ignis/drivers/cpu/cpu_count.h"
#include "ignis/drivers/cpu/device.h"
#include "ignis/runtime/device.h"

namespace ignis::runtime {
namespace {

struct Driver {
  const char* kind;
  Result<std::shared_ptr<Device>> (*open)(const DeviceSpec&, const DeviceOptions&);
  Result<Target> (*find_target)(const DeviceSpec&);
  std::vector<DeviceInfo> (*list)();
};

constexpr Driver kDrivers[] = {
    {"cpu", cpu::open, cpu::find_target, cpu::list},
};

Result<const Driver*> find_driver(const DeviceSpec& spec) {
  for (const Driver& driver : kDrivers) {
    if (spec.kind == driver.kind) return &driver;
  }
  std::string known;
  for (const DeviceInfo& info : list_devices()) known += (known.empty() ? "" : ", ") + info.spec;
  return Error(ErrorCode::NotFound,
               "Device '" + spec.to_string() + "' is not known; there are " + known + ".",
               "UnknownDevice");
}

// What `look_up` says about the first SPEC of a comma list for which it has an answer, or about the last.
template <typename LookUp>
auto first_of(std::string_view list, LookUp look_up) -> decltype(look_up(DeviceSpec())) {
  IGNIS_TRY_ASSIGN(const std::vector<DeviceSpec> specs, parse_device_list(list));
  for (size_t i = 0;; ++i) {
    auto found = look_up(specs[i]);
    if (found || i + 1 == specs.size()) return found;
  }
}

}  // namespace

Result<std::shared_ptr<Device>> open_device(const DeviceSpec& spec, const DeviceOptions& options) {
  IGNIS_TRY_ASSIGN(const Driver* driver, find_driver(spec));
  return driver->open(spec, options);
}

Result<std::shared_ptr<Device>> open_device(std::string_view spec, const DeviceOptions& options) {
  return first_of(spec, [&](const DeviceSpec& one) { return open_device(one, options); });
}

Result<Target> find_target(std::string_view spec) {
  return first_of(spec, [](const DeviceSpec& one) -> Result<Target> {
    IGNIS_TRY_ASSIGN(const Driver* driver, find_driver(one));
    return driver->find_target(one);
  });
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
