#pragma once

#include "ignis/base/result.h"
#include "ignis/codegen/codegen.h"
#include "ignis/exec/artifact_sections.h"

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ignis::engine {

/// What a tuner's choices hold for, in one line: the processor, every field of the target, the float level and the
/// compiler. Errors: as codegen::compiler_id().
Result<std::string> tuning_machine(const Target& target, FloatLevel level);

/// The choices of a record that apply.
struct TuningChoices {
  std::optional<Choice> winograd, chain;  ///< for graphs whose options leave it open
  std::map<std::string, std::vector<std::string>> actions_of;  ///< by kernel_digest() in hex
};

/// Choices that a record may hold: "winograd" or "chain" with "auto", "off" or "on", and a kernel's digest with its
/// actions, "; " between them. Whatever else stands in it is skipped.
/// Errors: InvalidArgument with the reason "ForeignTuning" for a record of another machine or version, naming both.
Result<TuningChoices> read_choices(const exec::TuningRecord& record, const Target& target,
                                   FloatLevel level);

/// "VECTOR(1,16,2); REORDER(0,1)".
std::string join_actions(const std::vector<std::string>& actions);
std::vector<std::string> split_actions(std::string_view text);

/// A record as a text file, a line each: a head, the machine, the version, the choices.
std::string format_tuning(const exec::TuningRecord& record);
/// Errors: InvalidArgument "BadTuning" naming the line.
Result<exec::TuningRecord> parse_tuning(std::string_view text);

}  // namespace ignis::engine
