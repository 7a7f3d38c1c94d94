#include "ignis/exec/submit_program.h"

#include "ignis/base/byte_io.h"
#include "ignis/base/check.h"

#include <algorithm>
#include <tuple>

namespace ignis::exec {

uint32_t value_number(const Batch& batch, const runtime::Patch& patch) {
  auto number = static_cast<size_t>(patch.index);
  switch (patch.source) {
    case runtime::Patch::Source::Input: break;
    case runtime::Patch::Source::Variable: number += batch.devices.size(); [[fallthrough]];
    case runtime::Patch::Source::Timeline: number += batch.table.size(); break;
    case runtime::Patch::Source::Address:
    case runtime::Patch::Source::Part: IGNIS_CHECK(false) << "a link-time patch has no value";
  }
  return static_cast<uint32_t>(number);
}

std::vector<WordStore> collect_stores(const Batch& batch, const IsBehindWindow& is_behind_window) {
  std::vector<WordStore> stores;
  uint32_t words = 0;
  const auto add = [&](std::span<const runtime::Patch> patches, bool is_remote) {
    const size_t before = stores.size();
    for (const runtime::Patch& patch : patches) {
      if (!patch.is_run_time()) continue;
      stores.push_back({words, patch.offset_bytes, value_number(batch, patch), patch.width_bytes,
                        is_remote, patch.addend});
    }
    if (stores.size() > before) ++words;
  };
  for (const QueueStream& stream : batch.streams) {
    const bool is_remote = is_behind_window(stream.device);
    for (const runtime::EncodedPart& part : stream.encoded.parts) add(part.patches, is_remote);
    add(stream.encoded.patches, false);  // the host's own copy, which a submit hands over
  }
  return stores;
}

SubmitCode make_submit_code(std::vector<WordStore> stores, bool is_rolled) {
  SubmitCode code;
  if (is_rolled) {
    for (const WordStore& store : stores) {
      code.kinds |= static_cast<uint8_t>(1U << store_kind(store.width_bytes, store.is_remote));
    }
    return code;
  }
  // Each block's place and each value in it are loaded once; no two stores share a byte, so any order will do. Remote ones come
  // last: a call forgets what registers hold.
  std::sort(stores.begin(), stores.end(), [](const WordStore& a, const WordStore& b) {
    return std::tie(a.is_remote, a.words, a.value, a.addend, a.offset_bytes) <
           std::tie(b.is_remote, b.words, b.value, b.addend, b.offset_bytes);
  });
  code.stores = std::move(stores);
  return code;
}

ContentHash hash_submit_code(const SubmitCode& code) {
  ByteWriter to;
  to.put(code.kinds);
  to.put(uint64_t{code.stores.size()});
  for (const WordStore& store : code.stores) {
    to.put(store.words);
    to.put(store.offset_bytes);
    to.put(store.value);
    to.put(store.width_bytes);
    to.put(static_cast<uint8_t>(store.is_remote));
    to.put(store.addend);
  }
  return hash_content(to.bytes());
}

void remove_submit_programs(QueueTemplate& queues) {
  queues.submit_programs.clear();
  for (TemplateStep& step : queues.steps) step.batch.submit_program = -1;
}

}  // namespace ignis::exec
