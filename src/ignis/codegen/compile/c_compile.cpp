#include "ignis/codegen/compile/c_compile.h"

#include "ignis/codegen/codegen.h"
#include "ignis/codegen/compile/llvm_compile.h"
#include "ignis/codegen/render/semantics.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

extern char** environ;

namespace ignis::codegen {

namespace fs = std::filesystem;

namespace {

constexpr Arch kHostArch =
#if defined(__aarch64__)
    Arch::AArch64;
#else
    Arch::X86_64;
#endif

/// A directory that is removed with its contents.
class TemporaryDirectory {
 public:
  static Result<TemporaryDirectory> create() {
    std::error_code failed;
    const fs::path root = fs::temp_directory_path(failed);
    if (failed) return Error(ErrorCode::NotFound, "There is no directory for temporary files.");
    std::string pattern = (root / "ignis-c-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) {
      return Error(ErrorCode::Internal,
                   "Directory '" + pattern + "' cannot be made: " + std::strerror(errno));
    }
    return TemporaryDirectory(pattern);
  }
  TemporaryDirectory(TemporaryDirectory&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  TemporaryDirectory& operator=(TemporaryDirectory&&) = delete;
  ~TemporaryDirectory() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove_all(path_, ignored);
  }
  const fs::path& path() const { return path_; }

 private:
  explicit TemporaryDirectory(fs::path path) : path_(std::move(path)) {}
  fs::path path_;
};

bool is_on_path(const std::string& program) {
  const char* const path = std::getenv("PATH");
  std::string all = path != nullptr ? path : "/usr/bin:/bin";
  for (size_t begin = 0; begin <= all.size();) {
    const size_t end = std::min(all.find(':', begin), all.size());
    if (access((all.substr(begin, end - begin) + "/" + program).c_str(), X_OK) == 0) return true;
    begin = end + 1;
  }
  return false;
}

bool is_clang(const std::string& compiler) { return compiler.find("clang") != std::string::npos; }

std::vector<std::string> arguments(const Target& target, const std::string& compiler) {
  // No library, no fused operations but ours, wrapping integers, no idioms that turn into calls.
  std::vector<std::string> args = {compiler,
                                   "-std=gnu11",
                                   "-O2",
                                   "-c",
                                   "-fPIC",
                                   "-ffreestanding",
                                   "-fno-builtin",
                                   "-fno-math-errno",
                                   "-ffp-contract=off",
                                   "-fwrapv",
                                   "-fno-strict-aliasing",
                                   "-fno-stack-protector",
                                   "-fno-asynchronous-unwind-tables",
                                   "-w"};
  if (is_clang(compiler)) {
    if (target.arch != kHostArch) {
      args.push_back(target.arch == Arch::AArch64 ? "--target=aarch64-linux-gnu"
                                                  : "--target=x86_64-linux-gnu");
    }
  } else {
    args.push_back("-fno-tree-loop-distribute-patterns");
  }
  switch (target.isa) {
    case Isa::Sse2: args.push_back("-march=x86-64"); break;
    case Isa::Avx2: args.push_back("-march=x86-64-v3"); break;
    case Isa::Avx512: args.push_back("-march=x86-64-v4"); break;
    case Isa::Neon: break;
  }
  if (target.arch == Arch::X86_64) {
    args.push_back("-fcf-protection=none");
    if (target.isa != Isa::Sse2 && !target.has_fma) args.push_back("-mno-fma");
  }
  return args;
}

/// Runs a program with its output in a file. Returns its exit status.
Result<int> run_with_deadline(const std::vector<std::string>& args, const fs::path& log,
                              std::chrono::milliseconds deadline) {
  std::vector<char*> argv;
  for (const std::string& a : args) argv.push_back(const_cast<char*>(a.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, log.c_str(),
                                   O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
  pid_t pid = 0;
  const int failed = posix_spawnp(&pid, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) {
    return Error(ErrorCode::NotFound, "'" + args[0] + "' does not start: " + std::strerror(failed));
  }
  const auto give_up = std::chrono::steady_clock::now() + deadline;
  int status = 0;
  while (true) {
    const pid_t done = waitpid(pid, &status, WNOHANG);
    if (done == pid) break;
    if (done < 0 && errno != EINTR)
      return Error(ErrorCode::Internal, "'" + args[0] + "' got lost.");
    if (std::chrono::steady_clock::now() > give_up) {
      kill(pid, SIGKILL);
      waitpid(pid, &status, 0);
      return Error(ErrorCode::Timeout, "'" + args[0] + "' runs for more than " +
                                           std::to_string(deadline.count()) + " ms.");
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

std::string read_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

}  // namespace

Result<std::string> find_c_compiler(const Target& target) {
  for (const char* const name : {"clang-19", "clang", "gcc", "cc"}) {
    if (!is_clang(name) && target.arch != kHostArch) continue;
    if (is_on_path(name)) return std::string(name);
  }
  return Error(ErrorCode::NotFound,
               "There is no C compiler for " + target.name() + "; install clang-19.");
}

Result<std::string> run_c_compiler(const std::string& text, const Target& target,
                                   const std::string& compiler,
                                   std::chrono::milliseconds deadline) {
  IGNIS_TRY_ASSIGN(const TemporaryDirectory directory, TemporaryDirectory::create());
  const fs::path source = directory.path() / "kernel.c", object = directory.path() / "kernel.o",
                 log = directory.path() / "log";
  std::ofstream out(source, std::ios::binary);
  out << text;
  out.close();
  if (!out) return Error(ErrorCode::Internal, "'" + source.string() + "' cannot be written.");
  std::vector<std::string> args = arguments(target, compiler);
  args.insert(args.end(), {"-o", object.string(), source.string()});
  IGNIS_TRY_ASSIGN(const int status, run_with_deadline(args, log, deadline));
  if (status != 0) {
    return Error(ErrorCode::Internal, "'" + compiler + "' fails with status " +
                                          std::to_string(status) + ": " +
                                          read_file(log).substr(0, 1000));
  }
  std::string bytes = read_file(object);
  if (bytes.empty()) return Error(ErrorCode::Internal, "'" + compiler + "' writes no object.");
  return bytes;
}

Result<std::string> compiler_id(const Target& target) {
  if (target.renderer != "c") return compiler_id();
  IGNIS_TRY_ASSIGN(const std::string compiler, find_c_compiler(target));
  static std::mutex mutex;
  static auto* const known = new std::map<std::string, std::string>();
  const std::lock_guard lock(mutex);
  std::string& id = (*known)[compiler];
  if (!id.empty()) return id;
  IGNIS_TRY_ASSIGN(const TemporaryDirectory directory, TemporaryDirectory::create());
  const fs::path log = directory.path() / "log";
  IGNIS_TRY_ASSIGN(const int status,
                   run_with_deadline({compiler, "--version"}, log, std::chrono::seconds(20)));
  const std::string text = read_file(log);
  if (status != 0 || text.empty()) {
    return Error(ErrorCode::Internal, "'" + compiler + "' does not say its version.");
  }
  id = compiler + ", " + text.substr(0, text.find('\n'));
  return id;
}

Result<ProgramImage> compile_c(const Program& program, const Target& target) {
  IGNIS_TRY_ASSIGN(const std::string compiler, find_c_compiler(target));
  ProgramImage image;
  image.name = entry_symbol(program);
  image.buffer_count = program.buffer_count;
  IGNIS_TRY_ASSIGN(image.source, render_c(program, target));
  IGNIS_TRY_ASSIGN(const std::string object, run_c_compiler(image.source, target, compiler));
  IGNIS_TRY(check_self_contained(object, program.name));
  image.object.resize(object.size());
  std::memcpy(image.object.data(), object.data(), object.size());
  return image;
}

}  // namespace ignis::codegen
