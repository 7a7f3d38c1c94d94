#pragma once

#include "ignis/engine/program_store.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace ignis::engine {

/// All records of a store in one file's bytes, in the order of their keys: equal contents give equal bytes.
/// Damaged records are left out and removed. Errors: as ProgramStore.
Result<std::vector<std::byte>> export_programs(ProgramStore& store);

struct ImportCounts {
  int64_t added = 0;
  int64_t known = 0;  ///< there already
  int64_t foreign =
      0;  ///< for another architecture: nothing here can look into it, so it is left out
};

/// Adds the programs of an exported file, all or none. The file may be anybody's work: its digest, each record's digest and
/// values, and each object as the device's loader sees it are checked before the first is added. What a program computes
/// cannot be checked: import from where you would take a program to run.
/// Errors: InvalidArgument with the reason NotAnExport, VersionMismatch, Truncated, HashMismatch or BadRecord; as
/// ProgramStore.
Result<ImportCounts> import_programs(ProgramStore& store, std::span<const std::byte> bytes);

/// More is not read.
inline constexpr uint64_t kMaxExportBytes = uint64_t{2} << 30;

}  // namespace ignis::engine
