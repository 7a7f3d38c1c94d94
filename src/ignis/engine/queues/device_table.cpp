#include "ignis/engine/queues/device_table.h"

#include <algorithm>

namespace ignis::engine {

const runtime::Capabilities* DeviceTable::find(std::string_view name) const {
  const auto found = devices.find(std::string(name));
  return found == devices.end() ? nullptr : &found->second;
}

bool DeviceTable::knows(std::string_view name) const {
  return name == host || find(name) != nullptr;
}

bool DeviceTable::is_enqueued(std::string_view name) const {
  if (name == host) return false;
  const runtime::Capabilities* device = find(name);
  return device != nullptr && device->is_queued &&
         !switched_off.contains(runtime::device_kind(name));
}

std::string DeviceTable::peer_group(std::string_view name) const {
  const runtime::Capabilities* device = find(name);
  if (device != nullptr && !device->peer_group.empty()) return device->peer_group;
  return runtime::device_kind(name);
}

int DeviceTable::copy_queues(std::string_view name) const {
  return is_enqueued(name) ? std::max(0, find(name)->copy_queues) : 0;
}

uint64_t DeviceTable::fingerprint() const {
  // FNV-1a over names and capabilities in the order of the map; a 0 byte ends each name.
  uint64_t hash = 0xcbf29ce484222325u;
  const auto add_byte = [&](uint8_t byte) { hash = (hash ^ byte) * 0x100000001b3u; };
  const auto add_text = [&](const std::string& text) {
    for (const char c : text) add_byte(static_cast<uint8_t>(c));
    add_byte(0);
  };
  const auto add_word = [&](uint64_t word) {
    for (int i = 0; i < 8; ++i) add_byte(static_cast<uint8_t>(word >> (8 * i)));
  };
  add_text(host);
  for (const auto& [name, capabilities] : devices) {
    add_text(name);
    add_word(capabilities.fingerprint());
  }
  add_word(devices.size());
  for (const std::string& kind : switched_off) add_text(kind);
  return hash;
}

}  // namespace ignis::engine
