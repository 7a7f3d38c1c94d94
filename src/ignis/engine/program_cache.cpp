#include "ignis/engine/program_cache.h"

#include "ignis/base/log.h"
#include "ignis/engine/program_store.h"

#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <sstream>

namespace ignis {
namespace {

using engine::CodeIdentity;
using engine::CompiledKernel;
using engine::Digest;
using engine::ProgramKey;
using engine::ProgramRecord;
using engine::ProgramStore;

uint64_t size_in_memory(const CompiledKernel& kernel) {
  return kernel.image.object.size() + kernel.schedule.size() + sizeof(CompiledKernel) + 256;
}

// The words of `text` ("isa=avx2 l2=…") that `other` does not have.
std::string words_not_in(const std::string& text, const std::string& other) {
  std::set<std::string> known;
  std::istringstream others(other), words(text);
  for (std::string word; others >> word;) known.insert(word);
  std::string found;
  for (std::string word; words >> word;) {
    if (!known.contains(word)) found += (found.empty() ? "" : " ") + word;
  }
  return found.empty() ? "nothing" : found;
}

// Which parts of the identity keep `there` from being used for `wanted`.
std::string difference(const CodeIdentity& there, const CodeIdentity& wanted) {
  std::string text;
  const auto compare = [&](const char* what, const std::string& a, const std::string& b) {
    if (a == b) return;
    text += (text.empty() ? "other " : "; other ") + std::string(what) + ": " + words_not_in(a, b) +
            " there, " + words_not_in(b, a) + " wanted";
  };
  compare("target", there.target, wanted.target);
  compare("options", there.options, wanted.options);
  compare("Ignis", there.generator, wanted.generator);
  compare("compiler", there.compiler, wanted.compiler);
  return text.empty() ? "not there" : text;
}

}  // namespace

std::string_view to_string(CacheOutcome outcome) {
  switch (outcome) {
    case CacheOutcome::Unused: return "unused";
    case CacheOutcome::MemoryHit: return "memory hit";
    case CacheOutcome::DiskHit: return "disk hit";
    case CacheOutcome::Miss: return "miss";
    case CacheOutcome::Bypassed: return "bypassed";
  }
  return "unknown";
}

struct ProgramCache::State {
  struct Entry {
    Digest key;
    std::shared_ptr<const CompiledKernel> kernel;
  };
  ProgramCacheOptions options;
  pid_t process = ::getpid();

  mutable std::mutex mutex;  // of all that follows
  std::list<Entry> entries;  // the most recently used first
  std::map<Digest, std::list<Entry>::iterator> at;
  uint64_t memory_bytes = 0;
  ProgramCacheCounters counters;
  std::shared_ptr<ProgramStore> store;  // null: off
  std::optional<Error> why_off;

  std::shared_ptr<const CompiledKernel> recall(const Digest& key);
  void remember(const Digest& key, std::shared_ptr<const CompiledKernel> kernel);
  std::shared_ptr<ProgramStore> usable_store();
  void turn_off(Error error);
  void note(Error error);
};

std::shared_ptr<const CompiledKernel> ProgramCache::State::recall(const Digest& key) {
  const std::lock_guard lock(mutex);
  const auto found = at.find(key);
  if (found == at.end()) return nullptr;
  entries.splice(entries.begin(), entries, found->second);
  ++counters.memory_hits;
  return entries.front().kernel;
}

void ProgramCache::State::remember(const Digest& key,
                                   std::shared_ptr<const CompiledKernel> kernel) {
  const uint64_t size_bytes = size_in_memory(*kernel);
  if (size_bytes > options.max_memory_bytes) return;
  const std::lock_guard lock(mutex);
  if (at.contains(key)) return;  // another thread compiled the same meanwhile
  entries.push_front({key, std::move(kernel)});
  at.emplace(key, entries.begin());
  memory_bytes += size_bytes;
  while (memory_bytes > options.max_memory_bytes) {
    memory_bytes -= size_in_memory(*entries.back().kernel);
    at.erase(entries.back().key);
    entries.pop_back();
    ++counters.memory_evictions;
  }
}

std::shared_ptr<ProgramStore> ProgramCache::State::usable_store() {
  if (process != ::getpid()) {
    turn_off(Error(ErrorCode::Unsupported,
                   "This process was forked from the one that opened the cache; open another one.",
                   "Forked"));
    return nullptr;
  }
  const std::lock_guard lock(mutex);
  return store;
}

void ProgramCache::State::turn_off(Error error) {
  const std::lock_guard lock(mutex);
  if (store == nullptr && why_off) return;
  IGNIS_LOG(Warning, "cache") << "The program cache is off and kernels are compiled anew: "
                              << error.message()
                              << " --cache DIR or IGNIS_CACHE names another folder, off none.";
  // SQLite's handle may not even be closed in a forked process: its locks are the parent's.
  if (error.reason() == "Forked" && store != nullptr) {
    [[maybe_unused]] static auto* const kept = new std::vector<std::shared_ptr<ProgramStore>>();
    kept->push_back(store);
  }
  store = nullptr;
  why_off = std::move(error);
}

// Busy passes: this kernel is compiled, the next one may be found.
void ProgramCache::State::note(Error error) {
  if (error.reason() == "Busy") {
    IGNIS_LOG(Info, "cache") << error.message();
    return;
  }
  turn_off(std::move(error));
}

ProgramCache::ProgramCache(std::unique_ptr<State> state) : state_(std::move(state)) {}

ProgramCache::~ProgramCache() {
  if (state_->process != ::getpid() && state_->store != nullptr) (void)state_->usable_store();
}

std::shared_ptr<ProgramCache> ProgramCache::open(const ProgramCacheOptions& options) {
  auto state = std::make_unique<State>();
  state->options = options;
  if (options.folder.empty()) {
    state->why_off.emplace(ErrorCode::NotFound, "No folder is named.", "NoFolder");
  } else {
    engine::StoreOptions store_options;
    store_options.folder = options.folder;
    store_options.max_bytes = options.max_disk_bytes;
    Result<std::unique_ptr<ProgramStore>> store = ProgramStore::open(store_options);
    if (store) state->store = *std::move(store);
    else state->turn_off(std::move(store).error());
  }
  return std::shared_ptr<ProgramCache>(new ProgramCache(std::move(state)));
}

const std::string& ProgramCache::folder() const { return state_->options.folder; }

Status ProgramCache::disk() const {
  const std::lock_guard lock(state_->mutex);
  if (state_->why_off) return *state_->why_off;
  return {};
}

ProgramCacheCounters ProgramCache::counters() const {
  const std::lock_guard lock(state_->mutex);
  return state_->counters;
}

void ProgramCache::forget() {
  const std::lock_guard lock(state_->mutex);
  state_->at.clear();
  state_->entries.clear();
  state_->memory_bytes = 0;
}

ProgramLookup ProgramCache::find(const ProgramKey& key, CompiledKernel* kernel) {
  State& state = *state_;
  ProgramLookup lookup;
  if (const std::shared_ptr<const CompiledKernel> known = state.recall(key.digest)) {
    *kernel = *known;
    lookup.outcome = CacheOutcome::MemoryHit;
    return lookup;
  }
  lookup.outcome = CacheOutcome::Miss;
  lookup.why = "not there";
  const std::shared_ptr<ProgramStore> store = state.usable_store();
  if (store != nullptr) {
    Result<ProgramStore::Found> found = store->find(key);
    if (!found) {
      lookup.why = "the cache does not answer";
      state.note(std::move(found).error());
    } else if (found->record) {
      *kernel = std::move(found->record->kernel);
      state.remember(key.digest, std::make_shared<const CompiledKernel>(*kernel));
      lookup.outcome = CacheOutcome::DiskHit;
      lookup.why.clear();
    } else if (found->was_damaged) {
      lookup.why = "damaged; removed";
      IGNIS_LOG(Info, "cache") << "A record in '" << state.options.folder
                               << "' was damaged and is removed.";
    } else if (auto nearest = store->nearest(key); nearest && *nearest) {
      lookup.why = difference((*nearest)->key.code, key.code);
    }
    const std::lock_guard lock(state.mutex);
    state.counters.disk_hits += lookup.outcome == CacheOutcome::DiskHit;
    state.counters.damaged += found && found->was_damaged;
  }
  if (lookup.outcome == CacheOutcome::Miss) {
    const std::lock_guard lock(state.mutex);
    ++state.counters.misses;
  }
  return lookup;
}

void ProgramCache::put(const ProgramRecord& record) {
  State& state = *state_;
  state.remember(record.key.digest, std::make_shared<const CompiledKernel>(record.kernel));
  const std::shared_ptr<ProgramStore> store = state.usable_store();
  if (store == nullptr) return;
  Status status = store->put(record);
  if (!status) return state.note(std::move(status).error());
  const std::lock_guard lock(state.mutex);
  ++state.counters.stored;
}

void ProgramCache::settle() {
  State& state = *state_;
  const std::shared_ptr<ProgramStore> store = state.usable_store();
  if (store == nullptr) return;
  Result<int64_t> evicted = store->settle();
  if (!evicted) return state.note(std::move(evicted).error());
  const std::lock_guard lock(state.mutex);
  state.counters.disk_evictions += *evicted;
}

std::string default_cache_folder() {
  // An empty variable counts as none, and a relative one may not be used (XDG Base Directory Specification).
  if (const char* folder = std::getenv("XDG_CACHE_HOME"); folder != nullptr && folder[0] == '/')
    return std::string(folder) + "/ignis";
  if (const char* home = std::getenv("HOME"); home != nullptr && home[0] == '/')
    return std::string(home) + "/.cache/ignis";
  return "";
}

}  // namespace ignis
