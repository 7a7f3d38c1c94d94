#include "ignis/engine/submit_compiler.h"

#include "ignis/codegen/codegen.h"
#include "ignis/engine/compile_kernels.h"
#include "ignis/engine/program_key.h"
#include "ignis/engine/program_record.h"
#include "ignis/exec/submit_program.h"

#include <map>
#include <mutex>
#include <utility>

namespace ignis::engine {
namespace {

/// The parts of a target that reach the code of a submit program: its cores and caches do not.
Target host_of(const Target& target) {
  Target host = target;
  const Target plain;
  host.renderer = plain.renderer;
  host.threads = plain.threads;
  host.l1_bytes = plain.l1_bytes;
  host.l2_bytes = plain.l2_bytes;
  host.l3_bytes = plain.l3_bytes;
  return host;
}

Result<ProgramImage> compile(const SubmitCode& code, const std::string& name, const Target& host,
                             ProgramCache* cache) {
  if (cache == nullptr) return codegen::compile_submit_program(code, host, name);
  codegen::Config config;
  config.target = host;
  config.actions = {"submit-program"};  // no kernel has such an action
  IGNIS_TRY_ASSIGN(CodeIdentity identity, code_identity(config));
  const ProgramKey key = make_program_key(exec::hash_submit_code(code), std::move(identity));
  CompiledKernel found;
  const ProgramLookup lookup = cache->find(key, &found);
  if (lookup.outcome == CacheOutcome::MemoryHit || lookup.outcome == CacheOutcome::DiskHit) {
    return std::move(found.image);
  }
  IGNIS_TRY_ASSIGN(ProgramImage image, codegen::compile_submit_program(code, host, name));
  CompiledKernel kernel;
  kernel.image = image;
  cache->put({key, name, std::move(kernel)});
  return image;
}

/// What a submit compiler and its copies share.
struct Shared {
  Target host;
  std::shared_ptr<ProgramCache> cache;
  std::mutex mutex;
  std::map<uint8_t, ProgramImage> rolled;  // by kinds
};

Result<ProgramImage> compile_or_recall(Shared& shared, const SubmitCode& code,
                                       const std::string& name) {
  const bool is_rolled = code.stores.empty();
  if (is_rolled) {
    const std::lock_guard lock(shared.mutex);
    const auto found = shared.rolled.find(code.kinds);
    if (found != shared.rolled.end()) return found->second;
  }
  IGNIS_TRY_ASSIGN(ProgramImage image, compile(code, name, shared.host, shared.cache.get()));
  if (is_rolled) {
    const std::lock_guard lock(shared.mutex);
    shared.rolled.emplace(code.kinds, image);
  }
  return image;
}

}  // namespace

SubmitCompiler submit_compiler(const Target& target, std::shared_ptr<ProgramCache> cache) {
  const auto shared = std::make_shared<Shared>();
  shared->host = host_of(target);
  shared->cache = std::move(cache);
  SubmitCompiler compiler;
  compiler.identity = shared->host.name() + (shared->host.has_fma ? "+fma " : " ") +
                      codegen::compiler_id() + " " + generator_id();
  compiler.compile = [shared](const SubmitCode& code, const std::string& name) {
    return compile_or_recall(*shared, code, name);
  };
  return compiler;
}

}  // namespace ignis::engine
