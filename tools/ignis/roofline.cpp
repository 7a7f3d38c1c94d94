#include "tools/ignis/roofline.h"

#include "tools/ignis/terminal.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <thread>

namespace ignis::tools {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kMeasureS = 0.015;                 // for each number
constexpr int64_t kPieceFloats = int64_t{1} << 18;  // 1 MiB
// Two units with a latency of four or five cycles need ten chains.
constexpr int kChains = 12;

template <int Lanes>
struct FloatVector {
  typedef float Type __attribute__((vector_size(4 * Lanes)));
};
template <int Lanes>
using Floats = typename FloatVector<Lanes>::Type;

// Sums that depend on nothing but themselves. Inlined into a function for one instruction set.
template <int Lanes>
[[gnu::always_inline]] inline float multiply_add(int64_t rounds, float factor, float term) {
  Floats<Lanes> sums[kChains];
  for (int i = 0; i < kChains; ++i) sums[i] = Floats<Lanes>{} + static_cast<float>(i + 1);
  for (int64_t round = 0; round < rounds; ++round) {
#pragma GCC unroll 12
    for (int i = 0; i < kChains; ++i) sums[i] = sums[i] * factor + term;
  }
  float total = 0;
  for (int i = 0; i < kChains; ++i) total += sums[i][0];
  return total;
}

template <int Lanes>
[[gnu::always_inline]] inline float read_all(const float* values, int64_t count) {
  Floats<Lanes> sums[8] = {};
  for (int64_t at = 0; at + 8 * Lanes <= count; at += 8 * Lanes) {
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) {
      sums[i] += *reinterpret_cast<const Floats<Lanes>*>(values + at + i * Lanes);
    }
  }
  float total = 0;
  for (int i = 0; i < 8; ++i) total += sums[i][0];
  return total;
}

struct Loops {
  int lanes;
  float (*multiply_add)(int64_t rounds, float factor, float term);
  float (*read_all)(const float* values, int64_t count);
};

#if defined(__x86_64__)
[[gnu::target("avx512f,prefer-vector-width=512")]] float fma_avx512(int64_t n, float f, float t) {
  return multiply_add<16>(n, f, t);
}
[[gnu::target("avx512f,prefer-vector-width=512")]] float read_avx512(const float* v, int64_t n) {
  return read_all<16>(v, n);
}
[[gnu::target("avx2,fma")]] float fma_avx2(int64_t n, float f, float t) {
  return multiply_add<8>(n, f, t);
}
[[gnu::target("avx2,fma")]] float read_avx2(const float* v, int64_t n) { return read_all<8>(v, n); }
#endif
float fma_plain(int64_t n, float f, float t) { return multiply_add<4>(n, f, t); }
float read_plain(const float* v, int64_t n) { return read_all<4>(v, n); }

Loops loops_for(Isa isa) {
#if defined(__x86_64__)
  if (isa == Isa::Avx512) return {16, fma_avx512, read_avx512};
  if (isa == Isa::Avx2) return {8, fma_avx2, read_avx2};
#endif
  (void)isa;
  return {4, fma_plain, read_plain};
}

std::atomic<float> sink;  // so that nothing is left out

/// Calls of `work` a second, of all threads together: the lower quartile of a thread's calls in kMeasureS, so that what else
/// the machine does counts little.
template <typename Work>
double rate(int threads, const Work& work) {
  std::atomic<int> waiting{threads};
  std::atomic<double> sum{0};
  const auto measure = [&](int thread) {
    sink = work(thread);  // pages and caches
    waiting.fetch_sub(1);
    while (waiting.load() > 0) std::this_thread::yield();
    const auto seconds_since = [](Clock::time_point begin) {
      return std::chrono::duration<double>(Clock::now() - begin).count();
    };
    std::vector<double> calls_s;
    for (const Clock::time_point begin = Clock::now(); seconds_since(begin) < kMeasureS;) {
      const Clock::time_point call_begin = Clock::now();
      sink = work(thread);
      calls_s.push_back(seconds_since(call_begin));
    }
    const auto quartile = calls_s.begin() + static_cast<ptrdiff_t>(calls_s.size() / 4);
    std::nth_element(calls_s.begin(), quartile, calls_s.end());
    sum.fetch_add(1 / *quartile);
  };
  std::vector<std::thread> helpers;
  for (int t = 1; t < threads; ++t) helpers.emplace_back(measure, t);
  measure(0);
  for (std::thread& helper : helpers) helper.join();
  return sum.load();
}

}  // namespace

Roofline measure_roofline(const Target& target) {
  const Loops loops = loops_for(target.isa);
  Roofline roofline;
  roofline.threads = std::max(1, target.threads);
  constexpr int64_t kRounds = 20'000;
  volatile float factor = 0.999f, term = 0.001f;
  roofline.flops_per_s = 2.0 * loops.lanes * kChains * kRounds * rate(roofline.threads, [&](int) {
                           return loops.multiply_add(kRounds, factor, term);
                         });

  // Each level is read where the one below is too small: half of its size, and well beyond the last cache.
  const auto threads = static_cast<int64_t>(roofline.threads);
  const int64_t memory_bytes = std::max<int64_t>(int64_t{64} << 20, 2 * target.l3_bytes);
  for (const auto& [name, size_bytes, read_bytes] :
       {std::tuple("L2", target.l2_bytes * threads, target.l2_bytes * threads / 2),
        std::tuple("L3", target.l3_bytes, target.l3_bytes / 2),
        std::tuple("memory", INT64_MAX, std::min<int64_t>(memory_bytes, int64_t{256} << 20))}) {
    const int64_t floats = read_bytes / threads / 512 * 128;  // of a thread, in whole steps
    if (floats < 1024) continue;                              // the target has no such level
    // Aligned to the widest vector.
    std::vector<float> memory(static_cast<size_t>(floats * threads + 16), 1.0f);
    float* begin = memory.data();
    while (reinterpret_cast<uintptr_t>(begin) % 64 != 0) ++begin;
    // A call reads the next piece, so that one is short whatever the level.
    const int64_t piece = std::min(floats, kPieceFloats);
    std::vector<int64_t> next(static_cast<size_t>(threads));
    const double calls = rate(roofline.threads, [&](int thread) {
      int64_t& at = next[static_cast<size_t>(thread)];
      const float total = loops.read_all(begin + thread * floats + at, piece);
      at = at + 2 * piece <= floats ? at + piece : 0;
      return total;
    });
    roofline.levels.push_back({name, size_bytes, calls * 4.0 * static_cast<double>(piece)});
  }
  return roofline;
}

void print_roofline(const Roofline& roofline) {
  std::printf("%d threads reach %s GFLOP/s", roofline.threads,
              format_number(roofline.flops_per_s * 1e-9, 3).c_str());
  for (const Roofline::Level& level : roofline.levels) {
    std::printf(", %s GB/s from %s", format_number(level.bytes_per_s * 1e-9, 3).c_str(),
                level.name.c_str());
  }
  std::printf("\n");
}

Json to_json(const Roofline& roofline) {
  Json json{{"threads", roofline.threads}, {"flops_per_s", roofline.flops_per_s}};
  for (const Roofline::Level& level : roofline.levels)
    json["bytes_per_s"][level.name] = level.bytes_per_s;
  return json;
}

LeastTime least_time(const Roofline& roofline, double flops, double bytes) {
  const auto level = std::find_if(
      roofline.levels.begin(), roofline.levels.end() - 1,
      [&](const Roofline::Level& l) { return bytes <= static_cast<double>(l.size_bytes); });
  const double compute_s = flops / roofline.flops_per_s, move_s = bytes / level->bytes_per_s;
  if (compute_s >= move_s) return {compute_s, "fma"};
  return {move_s, level->name};
}

}  // namespace ignis::tools
