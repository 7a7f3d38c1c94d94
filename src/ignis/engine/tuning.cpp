#include "ignis/engine/tuning.h"

#include "ignis/engine/program_key.h"

#include <fstream>

namespace ignis::engine {
namespace {

constexpr std::string_view kHead = "ignis tuning 1";
constexpr size_t kDigestDigits = 2 * std::tuple_size_v<Digest>;

std::string processor() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown processor";
}

Error bad_line(size_t number, const std::string& what) {
  return Error(ErrorCode::InvalidArgument,
               "Line " + std::to_string(number) + " of the tuning record " + what + ".",
               "BadTuning");
}

}  // namespace

Result<std::string> tuning_machine(const Target& target, FloatLevel level) {
  codegen::Config config;
  config.target = target;
  config.float_level = level;
  IGNIS_TRY_ASSIGN(const CodeIdentity code, code_identity(config));
  return processor() + "; " + code.target + "; " + code.options + "; " + code.compiler;
}

Result<TuningChoices> read_choices(const exec::TuningRecord& record, const Target& target,
                                   FloatLevel level) {
  IGNIS_TRY_ASSIGN(const std::string machine, tuning_machine(target, level));
  const auto foreign = [](const char* what, const std::string& theirs, const std::string& ours) {
    return Error(ErrorCode::InvalidArgument,
                 "The tuning record is of another " + std::string(what) + ", '" + theirs +
                     "' where this is '" + ours + "': it is ignored. Tune again here.",
                 "ForeignTuning");
  };
  if (record.machine != machine) return foreign("machine", record.machine, machine);
  if (record.version != generator_id()) return foreign("version", record.version, generator_id());
  TuningChoices choices;
  for (const auto& [what, choice] : record.choices) {
    if (what == "winograd") {
      IGNIS_TRY_ASSIGN(choices.winograd, parse_choice(choice));
    } else if (what == "chain") {
      IGNIS_TRY_ASSIGN(choices.chain, parse_choice(choice));
    } else if (what.size() == kDigestDigits) {
      choices.actions_of[what] = split_actions(choice);
    }
  }
  return choices;
}

std::string join_actions(const std::vector<std::string>& actions) {
  std::string text;
  for (const std::string& action : actions) text += (text.empty() ? "" : "; ") + action;
  return text;
}

std::vector<std::string> split_actions(std::string_view text) {
  std::vector<std::string> actions;
  while (!text.empty()) {
    const size_t end = std::min(text.find("; "), text.size());
    if (end > 0) actions.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(text.size(), end + 2));
  }
  return actions;
}

std::string format_tuning(const exec::TuningRecord& record) {
  std::string text =
      std::string(kHead) + "\nmachine " + record.machine + "\nversion " + record.version + "\n";
  for (const auto& [what, choice] : record.choices) text += what + " " + choice + "\n";
  return text;
}

Result<exec::TuningRecord> parse_tuning(std::string_view text) {
  exec::TuningRecord record;
  size_t number = 0;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(text.size(), end + 1));
    ++number;
    if (number == 1) {
      if (line != kHead) return bad_line(number, "is no '" + std::string(kHead) + "'");
      continue;
    }
    if (line.empty()) continue;
    const size_t space = line.find(' ');
    if (space == std::string_view::npos || space == 0)
      return bad_line(number, "is no name and a choice with a space between them");
    const std::string_view what = line.substr(0, space), choice = line.substr(space + 1);
    if (what == "machine") {
      record.machine = choice;
    } else if (what == "version") {
      record.version = choice;
    } else if (what == "winograd" || what == "chain") {
      if (!parse_choice(choice))
        return bad_line(number, "has '" + std::string(choice) + "' for '" + std::string(what) +
                                    "', which is auto, off or on");
      record.choices.emplace_back(what, choice);
    } else if (what.size() == kDigestDigits &&
               what.find_first_not_of("0123456789abcdef") == std::string_view::npos) {
      record.choices.emplace_back(what, choice);
    } else {
      return bad_line(number, "names neither a kernel nor an option");
    }
  }
  if (record.machine.empty() || record.version.empty())
    return Error(ErrorCode::InvalidArgument,
                 "The tuning record does not say which machine and version it is of.", "BadTuning");
  return record;
}

}  // namespace ignis::engine
