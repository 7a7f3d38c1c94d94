#include "tools/ignis/dm/dm_report.h"

#include "ignis/base/hex.h"

#include "tools/ignis/dm/reason_text.h"
#include "tools/ignis/exit_code.h"
#include "tools/ignis/terminal.h"

#include <cstdio>

namespace ignis::tools {
namespace {

using Json = nlohmann::ordered_json;
using pipeline::Reason;
using pipeline::Reasons;

std::string text_of(EndCause end) {
  switch (end) {
    case EndCause::EndOfStream: return "end of the source";
    case EndCause::TimeOver: return "time over";
    case EndCause::Stopped: return "interrupted";
  }
  return "";
}

double seconds(uint64_t ns) { return static_cast<double>(ns) * 1e-9; }

std::string sink_text(const char* name, const SinkState& sink) {
  if (!sink.is_on) return "";
  std::string text = std::string(name) + ": " + std::to_string(sink.done);
  if (sink.lost + sink.errors > 0) {
    text += ", " + styled(std::to_string(sink.lost) + " lost", Style::Warning);
    if (sink.last_error[0] != '\0') text += std::string(" (") + sink.last_error.data() + ")";
  }
  return text + "\n";
}

Json sink_json(const SinkState& sink) {
  if (!sink.is_on) return nullptr;
  Json json{{"done", sink.done}, {"lost", sink.lost}, {"errors", sink.errors}};
  json["last_error"] =
      sink.last_error[0] == '\0' ? Json(nullptr) : Json(std::string(sink.last_error.data()));
  return json;
}

Json identity_json(const RunIdentity& identity) {
  return {{"name", identity.model_name},
          {"checkpoint", identity.checkpoint},
          {"hash", identity.model_hash},
          {"profile", identity.profile},
          {"profile_version", identity.profile_version},
          {"warp_id", identity.warp_id}};
}

}  // namespace

RunIdentity describe(const pipeline::Model& model) {
  const pipeline::ModelIdentity& i = model.identity();
  RunIdentity identity;
  identity.model_name = i.name;
  identity.checkpoint = i.checkpoint;
  identity.profile = i.profile;
  identity.model_hash = to_hex(i.hash);
  identity.profile_version = i.profile_version;
  identity.warp_id = i.warp_id;
  return identity;
}

std::string heading(const RunIdentity& identity) {
  return identity.source + " → " + identity.model_name + " (" + identity.profile + ", " +
         identity.model_hash.substr(0, 12) + ")";
}

std::string summary_text(const LoopSummary& s) {
  char text[160];
  std::snprintf(text, sizeof text, "%llu frames in %.1f s (%.1f/s), %llu valid, %llu dropped; %s\n",
                static_cast<unsigned long long>(s.frames), s.seconds,
                s.seconds > 0 ? static_cast<double>(s.frames) / s.seconds : 0.0,
                static_cast<unsigned long long>(s.valid),
                static_cast<unsigned long long>(s.dropped), text_of(s.end).c_str());
  std::string out = text;
  if (s.frames > 0) {
    Table table({"stage", "p50", "p99", "max"});
    for (int i = 0; i < kStageCount; ++i) {
      const TimeHistogram& h = s.times.stages[static_cast<size_t>(i)];
      table.add({std::string(to_string(static_cast<Stage>(i))),
                 format_seconds(seconds(h.percentile_ns(0.5))),
                 format_seconds(seconds(h.percentile_ns(0.99))),
                 format_seconds(seconds(h.max_ns()))});
    }
    out += "\n" + table.to_string();
  }
  Table reasons({"reason", "count", "meaning"});
  for (size_t i = 0; i < s.reasons.size(); ++i) {
    if (s.reasons[i] == 0) continue;
    const auto reason = static_cast<Reason>(i);
    reasons.add({std::string(to_string(reason)), std::to_string(s.reasons[i]),
                 std::string(explain(reason))});
  }
  if (reasons.size() > 0) out += "\n" + reasons.to_string();
  std::string sinks = sink_text("published", s.sinks.publish) + sink_text("logged", s.sinks.log) +
                      sink_text("recorded", s.sinks.record) +
                      sink_text("pictures shown", s.sinks.view);
  for (const auto& [reason, count] : s.source_errors)
    sinks += "source: " + std::to_string(count) + " times " + reason + " (" + s.last_source_error +
             ")\n";
  if (!sinks.empty()) out += "\n" + sinks;
  return out;
}

Json summary_json(const RunIdentity& identity, const LoopSummary& s,
                  const pipeline::HostCounters& counters) {
  Json json{{"schema", "ignis.dm/1"},
            {"source", identity.source},
            {"model", identity_json(identity)},
            {"end", text_of(s.end)},
            {"seconds", s.seconds},
            {"frames", s.frames},
            {"valid", s.valid},
            {"dropped", s.dropped},
            {"timeouts", s.timeouts},
            {"calibrations", s.calibrations},
            {"rebinds", counters.rebinds},
            {"run_failures", counters.run_failures},
            {"restarts", counters.restarts},
            {"unused_non_finite", counters.unused_non_finite}};
  json["reasons"] = Json::object();
  for (size_t i = 0; i < s.reasons.size(); ++i) {
    if (s.reasons[i] > 0)
      json["reasons"][std::string(to_string(static_cast<Reason>(i)))] = s.reasons[i];
  }
  json["stages"] = Json::object();
  for (size_t i = 0; i < s.times.stages.size() && s.frames > 0; ++i) {
    const TimeHistogram& h = s.times.stages[i];
    json["stages"][std::string(to_string(static_cast<Stage>(i)))] = {
        {"p50_s", seconds(h.percentile_ns(0.5))},
        {"p99_s", seconds(h.percentile_ns(0.99))},
        {"max_s", seconds(h.max_ns())}};
  }
  json["publish"] = sink_json(s.sinks.publish);
  json["log"] = sink_json(s.sinks.log);
  json["record"] = sink_json(s.sinks.record);
  json["view"] = sink_json(s.sinks.view);
  json["source_errors"] = Json::object();
  for (const auto& [reason, count] : s.source_errors) json["source_errors"][reason] = count;
  return json;
}

Status check_summary(const LoopSummary& s, const RunIdentity& identity) {
  if (s.end == EndCause::Stopped) return Status::ok();  // the user wanted it to end
  if (s.frames == 0) {
    const std::string why = s.last_source_error.empty() ? "" : " " + s.last_source_error;
    if (s.end == EndCause::TimeOver) {
      return Error(ErrorCode::Timeout, "No frame came from '" + identity.source + "' in " +
                                           format_number(s.seconds, 3) + " s." + why);
    }
    return Error(ErrorCode::InvalidArgument,
                 "The source '" + identity.source + "' holds no frame." + why, "File");
  }
  if (s.valid > 0) return Status::ok();
  size_t most = 0;
  Reasons blocking;
  for (size_t i = 0; i < s.reasons.size(); ++i) {
    const auto reason = static_cast<Reason>(i);
    if (s.reasons[i] == 0) continue;
    if (pipeline::kBlockingReasons.has(reason) &&
        (!blocking.has(static_cast<Reason>(most)) || s.reasons[i] > s.reasons[most])) {
      most = i;
    }
    blocking |= reason;
  }
  const auto reason = static_cast<Reason>(most);
  const std::string message = "None of the " + std::to_string(s.frames) +
                              " frames was valid; reasons: " + list_reasons(blocking) + ".";
  switch (reason) {
    case Reason::UnknownGeometry: return usage_error(message);
    case Reason::OutputSize:
    case Reason::NonFinite:
    case Reason::RangeViolation:
    case Reason::DegenerateOutput:
    case Reason::ModelUnavailable: return as_model(Error(ErrorCode::InvalidArgument, message));
    case Reason::RunFailed:
    case Reason::RunTimeout: return as_device(Error(ErrorCode::DeviceLost, message));
    case Reason::FrameStale: return Error(ErrorCode::Timeout, message);
    default: return as_file(Error(ErrorCode::InvalidArgument, message));
  }
}

std::string replay_text(const ReplayResult& r, const ReplayLog& log, double tolerance) {
  std::string out;
  for (const Difference& difference : r.differences) out += difference.to_string() + "\n";
  const uint64_t shown = r.differences.size();
  if (r.different > 0 && shown > 0) out += "\n";
  out += std::to_string(r.compared) + " of " + std::to_string(log.turns.size()) +
         " logged frames compared (tolerance " + format_number(tolerance) + "), " +
         std::to_string(r.different) + " different";
  if (r.missing > 0) out += ", " + std::to_string(r.missing) + " not in the source";
  if (r.not_comparable > 0)
    out += ", " + std::to_string(r.not_comparable) + " with a fault of the moment left out";
  if (r.unlogged > 0) out += ", " + std::to_string(r.unlogged) + " frames never logged";
  out += "\n";
  if (!log.note.empty()) out += "the log ends early: " + log.note + "\n";
  if (!log.has_companions)
    out += "no companions beside the log: times and reasons are not those of the run\n";
  if (r.compared == 0) out += "nothing was compared, so nothing has passed\n";
  return out + "replay: " +
         (r.has_passed() ? styled("same", Style::Good) : styled("different", Style::Bad)) + "\n";
}

Json replay_json(const RunIdentity& identity, const ReplayResult& r, const ReplayLog& log,
                 double tolerance) {
  Json json{{"schema", "ignis.dm-replay/1"},      {"source", identity.source},
            {"model", identity_json(identity)},   {"tolerance", tolerance},
            {"logged", log.turns.size()},         {"compared", r.compared},
            {"different", r.different},           {"missing", r.missing},
            {"not_comparable", r.not_comparable}, {"unlogged", r.unlogged},
            {"source_errors", r.source_errors},   {"passed", r.has_passed()}};
  json["differences"] = Json::array();
  for (const Difference& d : r.differences) {
    json["differences"].push_back({{"frame_id", d.frame_id},
                                   {"field", d.field},
                                   {"logged", d.logged},
                                   {"computed", d.computed}});
  }
  return json;
}

}  // namespace ignis::tools
