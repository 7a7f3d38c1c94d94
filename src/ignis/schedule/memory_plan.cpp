#include "ignis/schedule/memory_plan.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace ignis::schedule {
namespace {

constexpr int64_t kAlignment = 64;

int64_t align(int64_t v) { return (v + kAlignment - 1) / kAlignment * kAlignment; }
bool overlap(const Lifetime& a, const Lifetime& b) {
  return a.first <= b.last && b.first <= a.last;
}

/// First fit by descending size within one group, starting at `base`; returns the end.
int64_t place(std::vector<Lifetime*> group, int64_t base) {
  std::stable_sort(group.begin(), group.end(), [](const Lifetime* a, const Lifetime* b) {
    return a->size_bytes > b->size_bytes;
  });
  std::vector<const Lifetime*> placed;  // by offset
  int64_t end = base;
  for (Lifetime* life : group) {
    int64_t at = base;
    for (const Lifetime* other : placed) {
      if (!overlap(*life, *other)) continue;
      if (at + life->size_bytes <= other->offset) break;
      at = std::max(at, align(other->offset + other->size_bytes));
    }
    life->offset = at;
    placed.insert(std::upper_bound(
                      placed.begin(), placed.end(), life,
                      [](const Lifetime* a, const Lifetime* b) { return a->offset < b->offset; }),
                  life);
    end = std::max(end, align(at + life->size_bytes));
  }
  return end;
}

}  // namespace

int64_t plan_memory(std::vector<Lifetime>& lifetimes) {
  std::map<std::string, std::vector<Lifetime*>> groups;
  for (Lifetime& life : lifetimes) groups[life.exclusive_class].push_back(&life);
  int64_t end = 0;
  for (auto& [name, group] : groups) end = place(std::move(group), end);
  return end;
}

}  // namespace ignis::schedule
