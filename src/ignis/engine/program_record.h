#pragma once

#include "ignis/engine/compile_kernels.h"
#include "ignis/engine/program_key.h"

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace ignis::engine {

/// A compiled kernel as the cache keeps it.
struct ProgramRecord {
  ProgramKey key;
  std::string name;  ///< of whoever compiled it first; for people, no part of the key
  CompiledKernel kernel;
};

/// The bytes of one record: all of its fields and a BLAKE2b-256 over them.
std::vector<std::byte> write_record(const ProgramRecord& record);

/// Reads bytes of any origin. Errors: InvalidArgument with the reason NotARecord, VersionMismatch, Truncated,
/// HashMismatch or BadRecord.
Result<ProgramRecord> read_record(std::span<const std::byte> bytes);

/// More than any record that write_record makes.
inline constexpr uint64_t kMaxRecordBytes = uint64_t{64} << 20;

}  // namespace ignis::engine
