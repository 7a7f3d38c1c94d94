#pragma once

#include "tools/ignis/dm/loop.h"
#include "tools/ignis/dm/replay.h"
#include <nlohmann/json.hpp>

#include <string>

namespace ignis::tools {

/// What runs on what.
struct RunIdentity {
  std::string source, model_name, checkpoint, profile;
  std::string model_hash;  ///< 64 hex digits
  uint32_t profile_version = 0, warp_id = 0;
};
/// All but the source.
RunIdentity describe(const pipeline::Model& model);
/// "synthetic:drive → centerface.onnx (face, 77f2c4a1b3d5)".
std::string heading(const RunIdentity& identity);

/// Tables of a run's end for people.
std::string summary_text(const LoopSummary& summary);
/// The same, schema "ignis.dm/1".
nlohmann::ordered_json summary_json(const RunIdentity& identity, const LoopSummary& summary,
                                    const pipeline::HostCounters& counters);
/// An error when the run did nothing: no frame came, or none was valid; with the reason that decides the exit code.
Status check_summary(const LoopSummary& summary, const RunIdentity& identity);

std::string replay_text(const ReplayResult& result, const ReplayLog& log, double tolerance);
/// Schema "ignis.dm-replay/1".
nlohmann::ordered_json replay_json(const RunIdentity& identity, const ReplayResult& result,
                                   const ReplayLog& log, double tolerance);

}  // namespace ignis::tools
