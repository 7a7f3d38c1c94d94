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

bool is_free(const Lifetime& life, int64_t at, const std::vector<const Lifetime*>& placed) {
  return std::none_of(placed.begin(), placed.end(), [&](const Lifetime* other) {
    return overlap(life, *other) && at < other->offset + other->size_bytes &&
           other->offset < at + life.size_bytes;
  });
}

/// Descending size within one group, starting at `base`; returns the end. A buffer lies in the middle of an earlier one if
/// it can: threads that cut every buffer in equal parts then find in their caches what they write over, and not each in
/// the other's. Else first fit.
int64_t place(std::vector<Lifetime*> group, int64_t base) {
  std::stable_sort(group.begin(), group.end(), [](const Lifetime* a, const Lifetime* b) {
    return a->size_bytes > b->size_bytes;
  });
  std::vector<const Lifetime*> placed;  // by offset
  int64_t end = base;
  for (Lifetime* life : group) {
    int64_t at = -1;
    for (const Lifetime* other : placed) {
      const int64_t middle = other->offset + align((other->size_bytes - life->size_bytes) / 2);
      if (at < 0 && is_free(*life, middle, placed)) at = middle;
    }
    if (at < 0) {
      at = base;
      for (const Lifetime* other : placed) {
        if (!overlap(*life, *other)) continue;
        if (at + life->size_bytes <= other->offset) break;
        at = std::max(at, align(other->offset + other->size_bytes));
      }
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
