// ignis cache: what the program cache on disk holds, and how it is looked after.
#include "ignis/engine/cache_archive.h"
#include "ignis/engine/cache_files.h"

#include "tools/ignis/commands.h"
#include "tools/ignis/terminal.h"
#include "tools/io/files.h"

#include <charconv>
#include <chrono>
#include <cstdio>
#include <map>

namespace ignis::tools {
namespace {

using engine::ProgramStore;
using engine::StoredProgram;

constexpr char kActions[] = "ls, prune, verify, export and import";

std::string age_text(int64_t then_ns) {
  const int64_t now_ns = std::chrono::duration_cast<std::chrono::nanoseconds>(
                             std::chrono::system_clock::now().time_since_epoch())
                             .count();
  const int64_t minutes = (now_ns - then_ns) / 60'000'000'000;
  if (minutes < 1) return "now";
  if (minutes < 60) return std::to_string(minutes) + " min ago";
  if (minutes < 60 * 48) return std::to_string(minutes / 60) + " h ago";
  return std::to_string(minutes / (60 * 24)) + " days ago";
}

/// "x86_64-avx2 llvm" from "arch=x86_64 isa=avx2 renderer=llvm …".
std::string short_target(const std::string& target) {
  const auto value = [&](const std::string& name) {
    const size_t at = target.find(name + "=");
    if (at == std::string::npos) return std::string("?");
    const size_t from = at + name.size() + 1;
    return target.substr(from, target.find(' ', from) - from);
  };
  return value("arch") + "-" + value("isa") + " " + value("renderer");
}

Result<Json> list(ProgramStore& store, bool prints) {
  IGNIS_TRY_ASSIGN(const std::vector<StoredProgram> programs, store.list());
  Table table({"kernel", "size", "used", "target", "made by", "compiler", "key"});
  uint64_t total_bytes = 0;
  Json rows = Json::array();
  for (const StoredProgram& p : programs) {
    const std::string key = to_hex(p.key.digest);
    total_bytes += p.size_bytes;
    table.add({p.name, format_bytes(static_cast<double>(p.size_bytes)), age_text(p.used_ns),
               short_target(p.key.code.target), p.key.code.generator, p.key.code.compiler,
               key.substr(0, 12)});
    rows.push_back({{"key", key},
                    {"kernel", p.name},
                    {"bytes", p.size_bytes},
                    {"created_ns", p.created_ns},
                    {"used_ns", p.used_ns},
                    {"content", to_hex(p.key.kernel)},
                    {"target", p.key.code.target},
                    {"options", p.key.code.options},
                    {"generator", p.key.code.generator},
                    {"compiler", p.key.code.compiler}});
  }
  if (prints) {
    if (!programs.empty()) std::fputs(table.to_string().c_str(), stdout);
    std::printf("%s: %zu programs, %s\n", store.folder().c_str(), programs.size(),
                format_bytes(static_cast<double>(total_bytes)).c_str());
  }
  return Json{{"bytes", total_bytes}, {"programs", std::move(rows)}};
}

Result<Json> verify(ProgramStore& store, bool prints, Exit& exit) {
  IGNIS_TRY_ASSIGN(const engine::StoreCheck check, store.verify());
  if (check.damaged + check.missing > 0) exit = Exit::Different;
  if (prints) {
    std::printf(
        "%lld programs are whole; removed: %lld damaged, %lld without a file, %lld left by "
        "processes that died\n",
        static_cast<long long>(check.whole), static_cast<long long>(check.damaged),
        static_cast<long long>(check.missing), static_cast<long long>(check.strays));
  }
  return Json{{"whole", check.whole},
              {"damaged", check.damaged},
              {"missing", check.missing},
              {"strays", check.strays}};
}

Result<Json> export_to(ProgramStore& store, const std::string& path, bool prints) {
  IGNIS_TRY_ASSIGN(const std::vector<std::byte> bytes, engine::export_programs(store));
  Status written = write_file(path, bytes);
  if (!written) return as_file(std::move(written).error());
  if (prints && path != "-")
    std::printf("%s: %s\n", path.c_str(), format_bytes(static_cast<double>(bytes.size())).c_str());
  return Json{{"file", path}, {"bytes", bytes.size()}};
}

Result<Json> import_from(ProgramStore& store, const std::string& path, bool prints) {
  auto bytes = engine::read_whole_file(path, engine::kMaxExportBytes);
  if (!bytes) return as_file(std::move(bytes).error());
  auto counts = engine::import_programs(store, *bytes);
  if (!counts) return as_file(std::move(counts).error().with_context(path));
  if (prints) {
    std::printf("%lld programs added, %lld were there, %lld are for another architecture\n",
                static_cast<long long>(counts->added), static_cast<long long>(counts->known),
                static_cast<long long>(counts->foreign));
  }
  return Json{{"file", path},
              {"added", counts->added},
              {"known", counts->known},
              {"foreign", counts->foreign}};
}

}  // namespace

Result<Exit> cache_command(const Context& context, const CacheOptions& options) {
  const bool takes_file = options.action == "export" || options.action == "import";
  const bool is_known = takes_file || options.action == "ls" || options.action == "prune" ||
                        options.action == "verify";
  if (!is_known) {
    return usage_error("'" + options.action + "' is no command of ignis cache; there are " +
                       kActions + ".");
  }
  if (takes_file == options.file.empty()) {
    return usage_error("ignis cache " + options.action +
                       (takes_file ? " takes a FILE." : " takes no file."));
  }
  if (!options.max_size.empty() && options.action != "prune")
    return usage_error("--max-size belongs to ignis cache prune.");
  engine::StoreOptions store_options;
  store_options.folder = context.cache_folder();
  store_options.max_bytes = context.cache_bytes();
  uint64_t max_bytes = store_options.max_bytes;
  if (!options.max_size.empty()) {
    IGNIS_TRY_ASSIGN(max_bytes, parse_size(options.max_size, "--max-size"));
  }
  if (store_options.folder.empty()) {
    return usage_error(
        "The program cache is off, or there is neither HOME nor XDG_CACHE_HOME; name its folder "
        "with --cache DIR.");
  }
  auto store = ProgramStore::open(store_options);
  if (!store) return as_file(std::move(store).error());

  const bool prints = context.prints_text();
  Exit exit = Exit::Ok;
  Result<Json> result = Json();
  if (options.action == "ls") result = list(**store, prints);
  if (options.action == "verify") result = verify(**store, prints, exit);
  if (options.action == "export") result = export_to(**store, options.file, prints);
  if (options.action == "import") result = import_from(**store, options.file, prints);
  if (options.action == "prune") {
    const auto removed = (*store)->prune(max_bytes);
    if (!removed) return as_file(Error(removed.error()));
    if (prints) std::printf("%lld programs removed\n", static_cast<long long>(*removed));
    result = Json{{"removed", *removed}};
  }
  if (!result) return as_file(std::move(result).error());
  Json report{
      {"schema", "ignis.cache/1"}, {"action", options.action}, {"folder", (*store)->folder()}};
  report.update(*result);
  IGNIS_TRY(context.write_json(report));
  return exit;
}

}  // namespace ignis::tools
