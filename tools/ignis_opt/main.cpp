// ignis-opt: textual IR through named passes. For golden tests and for looking at one pass alone.

#include "ignis/ir/text.h"

#include "tools/ignis_opt/passes.h"

#include <fstream>
#include <iostream>
#include <iterator>
#include <sstream>
#include <string>

namespace {

using namespace ignis;

// The exit codes all Ignis tools share.
constexpr int kUsage = 2, kRefused = 3, kFileTrouble = 6, kPassFailed = 7;

struct Options {
  std::string file = "-";
  std::vector<const opt::Pass*> passes;
  opt::PassOptions pass_options;
  bool as_expressions = false;
  bool stats = false;
};

void print_help(std::ostream& out) {
  out << "ignis-opt [FILE] --pass NAME[,NAME…] [--level strict|finite|fast] [--expr] [--stats]\n"
         "Reads textual IR (stdin without FILE or with -), runs the passes in order, prints the "
         "result.\n"
         "  --expr   one readable line for each root instead of the text that reads back\n"
         "  --stats  rule attempts and hits, to stderr\n"
         "Passes:\n";
  for (const opt::Pass& pass : opt::passes()) {
    out << "  " << pass.name << std::string(16 - pass.name.size(), ' ') << pass.help << "\n";
  }
}

int usage(const std::string& what) {
  std::cerr << "ignis-opt: " << what << " Try --help.\n";
  return kUsage;
}

// 0 when the options are read, else the exit code.
int parse_command_line(const std::vector<std::string>& args, Options& options) {
  for (size_t i = 0; i < args.size(); ++i) {
    std::string name = args[i], value;
    bool has_value = false;
    if (const size_t equals = name.find('=');
        name.starts_with("--") && equals != std::string::npos) {
      value = name.substr(equals + 1);
      name.resize(equals);
      has_value = true;
    }
    if (name == "--pass" || name == "--level") {
      if (!has_value && ++i < args.size()) {
        value = args[i];
        has_value = true;
      }
      if (!has_value) return usage(name + " needs a value.");
    }
    if (name == "--pass") {
      std::istringstream list(value);
      for (std::string pass; std::getline(list, pass, ',');) {
        options.passes.push_back(opt::find_pass(pass));
        if (options.passes.back() == nullptr) return usage("There is no pass '" + pass + "'.");
      }
    } else if (name == "--level") {
      const auto level = parse_float_level(value);
      if (!level) return usage(level.error().message());
      options.pass_options.level = *level;
    } else if (name == "--expr") {
      options.as_expressions = true;
    } else if (name == "--stats") {
      options.stats = true;
    } else if (name.starts_with("--")) {
      return usage("There is no option '" + name + "'.");
    } else {
      options.file = name;
    }
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> args(argv + 1, argv + argc);
  for (const std::string& arg : args) {
    if (arg != "--help" && arg != "-h") continue;
    print_help(std::cout);
    return 0;
  }
  Options options;
  if (const int code = parse_command_line(args, options); code != 0) return code;

  std::string text;
  if (options.file == "-") {
    text.assign(std::istreambuf_iterator<char>(std::cin), {});
  } else {
    std::ifstream file(options.file, std::ios::binary);
    if (!file) {
      std::cerr << "ignis-opt: '" << options.file << "' cannot be read.\n";
      return kFileTrouble;
    }
    text.assign(std::istreambuf_iterator<char>(file), {});
  }
  ir::Graph graph;
  auto roots = ir::parse_text(graph, text);
  if (!roots) {
    std::cerr << "ignis-opt: " << options.file << ": " << roots.error().message() << "\n";
    return kRefused;
  }
  for (const opt::Pass* pass : options.passes) {
    auto next = pass->run(graph, *roots, options.pass_options);
    if (!next) {
      std::cerr << "ignis-opt: pass '" << pass->name << "': " << next.error().to_string() << "\n";
      return kPassFailed;
    }
    roots = std::move(next);
  }
  if (options.as_expressions) {
    for (const ir::Node& root : *roots) std::cout << ir::print_expr(root) << "\n";
  } else {
    std::cout << ir::print_text(*roots);
  }
  if (options.stats) {
    std::cerr << options.pass_options.stats.attempts << " rule attempts, "
              << options.pass_options.stats.hits << " hits\n";
  }
  return 0;
}
