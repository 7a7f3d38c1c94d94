#include "ignis/engine/cache_archive.h"

#include "ignis/base/byte_io.h"
#include "ignis/runtime/device.h"

#include <algorithm>

namespace ignis::engine {
namespace {

using Bytes = std::span<const std::byte>;

constexpr char kMagic[8] = {'I', 'G', 'N', 'I', 'S', 'P', 'C', 'A'};
constexpr size_t kDigestBytes = sizeof(Digest);

Error refuse(std::string sentence, std::string reason) {
  return Error(ErrorCode::InvalidArgument, std::move(sentence), std::move(reason));
}

Result<Bytes> checked_body(Bytes bytes) {
  const Bytes magic = std::as_bytes(std::span(kMagic));
  if (bytes.size() < magic.size() || !std::equal(magic.begin(), magic.end(), bytes.begin())) {
    return refuse("The file does not begin with IGNISPCA.", "NotAnExport");
  }
  ByteReader from(bytes.subspan(magic.size()));
  const auto format = from.take<uint32_t>();
  if (from.is_whole() && format != kProgramFormat) {
    return refuse("The file has format " + std::to_string(format) + "; this Ignis reads " +
                      std::to_string(kProgramFormat) + ".",
                  "VersionMismatch");
  }
  const size_t head_bytes = magic.size() + 2 * sizeof(uint32_t);
  if (bytes.size() < head_bytes + kDigestBytes) {
    return refuse("The file has " + std::to_string(bytes.size()) + " bytes only.", "Truncated");
  }
  const Bytes body = bytes.first(bytes.size() - kDigestBytes);
  const Digest digest = digest_of(body);
  if (!std::equal(digest.begin(), digest.end(), bytes.last(kDigestBytes).begin())) {
    return refuse("The file's bytes do not have its digest: it is damaged or cut.", "HashMismatch");
  }
  return body.subspan(magic.size() + sizeof format);
}

// The loader looks at every offset, size, name and relocation of an object; nothing of it runs.
Status check_object(const ProgramRecord& record, runtime::Device& device) {
  const auto loaded = device.load(record.kernel.image);
  if (loaded) return {};
  return refuse("The program of kernel '" + record.name + "' is none: " + loaded.error().message(),
                "BadRecord");
}

}  // namespace

Result<std::vector<std::byte>> export_programs(ProgramStore& store) {
  IGNIS_TRY_ASSIGN(std::vector<StoredProgram> programs, store.list());
  std::sort(programs.begin(), programs.end(), [](const StoredProgram& a, const StoredProgram& b) {
    return a.key.digest < b.key.digest;
  });
  std::vector<std::vector<std::byte>> records;
  for (const StoredProgram& program : programs) {
    IGNIS_TRY_ASSIGN(const ProgramStore::Found found, store.find(program.key));
    if (found.record) records.push_back(write_record(*found.record));
  }
  ByteWriter to;
  to.put_raw(std::as_bytes(std::span(kMagic)));
  to.put(kProgramFormat);
  to.put(static_cast<uint32_t>(records.size()));
  for (const std::vector<std::byte>& record : records) to.put_blob(record);
  to.put_raw(digest_of(to.bytes()));
  return to.take();
}

Result<ImportCounts> import_programs(ProgramStore& store, Bytes bytes) {
  IGNIS_TRY_ASSIGN(const Bytes body, checked_body(bytes));
  IGNIS_TRY_ASSIGN(const std::shared_ptr<runtime::Device> device, runtime::open_device("cpu", {}));
  const std::string here = device->target().arch == Arch::X86_64 ? "arch=x86_64 " : "arch=aarch64 ";
  ImportCounts counts;
  std::vector<ProgramRecord> records;
  ByteReader from(body);
  const uint64_t count = from.take_count(sizeof(uint64_t));
  for (uint64_t i = 0; i < count; ++i) {
    const Bytes blob = from.take_blob();
    if (!from.is_whole()) break;
    Result<ProgramRecord> record = read_record(blob);
    if (!record) return std::move(record).error().with_context("record " + std::to_string(i));
    if (!record->key.code.target.starts_with(here)) {
      ++counts.foreign;
      continue;
    }
    IGNIS_TRY(check_object(*record, *device));
    records.push_back(*std::move(record));
  }
  IGNIS_TRY(from.check("file"));
  for (const ProgramRecord& record : records) {
    IGNIS_TRY_ASSIGN(const ProgramStore::Found found, store.find(record.key));
    if (found.record) {
      ++counts.known;
      continue;
    }
    IGNIS_TRY(store.put(record));
    ++counts.added;
  }
  IGNIS_TRY_ASSIGN([[maybe_unused]] const int64_t evicted, store.settle());
  return counts;
}

}  // namespace ignis::engine
