#include "ignis/runtime/capabilities.h"

#include <cctype>

namespace ignis::runtime {
namespace {

/// FNV-1a over fields that are each written with a fixed width or with their length.
class Fingerprint {
 public:
  void add(uint64_t value) {
    for (int i = 0; i < 8; ++i) add_byte(static_cast<uint8_t>(value >> (8 * i)));
  }
  void add(std::string_view text) {
    add(uint64_t{text.size()});
    for (const char c : text) add_byte(static_cast<uint8_t>(c));
  }
  uint64_t value() const { return hash_; }

 private:
  void add_byte(uint8_t byte) { hash_ = (hash_ ^ byte) * 0x100000001b3U; }
  uint64_t hash_ = 0xcbf29ce484222325U;
};

bool is_zero(std::string_view digits) {
  return !digits.empty() && digits.find_first_not_of('0') == std::string_view::npos;
}

}  // namespace

std::string QueueId::to_string() const {
  return (kind == Kind::Compute ? "COMPUTE:" : "COPY:") + std::to_string(index);
}

uint64_t Capabilities::fingerprint() const {
  Fingerprint hash;
  for (const bool flag :
       {is_queued, has_unified_memory, has_network_card, is_in_order, chains_launches,
        has_device_graphs, crosses_host_memory, can_recover, is_host_coherent}) {
    hash.add(uint64_t{flag});
  }
  hash.add(static_cast<uint64_t>(copy_queues));
  hash.add(static_cast<uint64_t>(signal_bits));
  hash.add(uint64_t{ticks_per_us});
  hash.add(peer_group);
  return hash.value();
}

std::string describe_difference(const Capabilities& from, const Capabilities& to) {
  std::string text;
  const auto add = [&](std::string_view name, const std::string& a, const std::string& b) {
    if (a == b) return;
    if (!text.empty()) text += ", ";
    text += std::string(name) + " " + a + " -> " + b;
  };
  const auto add_flag = [&](std::string_view name, bool a, bool b) {
    add(name, a ? "yes" : "no", b ? "yes" : "no");
  };
  add_flag("queued", from.is_queued, to.is_queued);
  add_flag("unified memory", from.has_unified_memory, to.has_unified_memory);
  add("copy queues", std::to_string(from.copy_queues), std::to_string(to.copy_queues));
  add_flag("network card", from.has_network_card, to.has_network_card);
  add_flag("in order", from.is_in_order, to.is_in_order);
  add_flag("chains launches", from.chains_launches, to.chains_launches);
  add_flag("device graphs", from.has_device_graphs, to.has_device_graphs);
  add_flag("crosses host memory", from.crosses_host_memory, to.crosses_host_memory);
  add_flag("recovers", from.can_recover, to.can_recover);
  add_flag("coherent with the host", from.is_host_coherent, to.is_host_coherent);
  add("signal bits", std::to_string(from.signal_bits), std::to_string(to.signal_bits));
  add("ticks per us", std::to_string(from.ticks_per_us), std::to_string(to.ticks_per_us));
  add("peer group", "'" + from.peer_group + "'", "'" + to.peer_group + "'");
  return text;
}

std::string canonical_device_name(std::string_view name) {
  const size_t colon = name.rfind(':');
  if (colon != std::string_view::npos && is_zero(name.substr(colon + 1))) {
    name = name.substr(0, colon);
  }
  std::string result(name);
  for (char& c : result) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return result;
}

std::string device_kind(std::string_view canonical_name) {
  return std::string(canonical_name.substr(0, canonical_name.find(':')));
}

}  // namespace ignis::runtime
