// Measures what one core does at most: float32 multiply-adds a second, in registers.
// cc -O3 -march=native -o peak peak.c && ./peak [SECONDS]
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

// As many floats as a register has. Two units need ten or more chains to hide the latency of one multiply-add.
#ifdef __AVX512F__
enum { kLanes = 16 };
#else
enum { kLanes = 8 };
#endif
typedef float Vec __attribute__((vector_size(4 * kLanes)));
enum { kChains = 12, kRounds = 20000 };

static double now_s(void) {
  struct timespec at;
  clock_gettime(CLOCK_MONOTONIC, &at);
  return (double)at.tv_sec + 1e-9 * (double)at.tv_nsec;
}

int main(int argc, char** argv) {
  const double seconds = argc > 1 ? atof(argv[1]) : 0.5;
  Vec sum[kChains];
  for (int i = 0; i < kChains; ++i) sum[i] = (Vec){1, 2, 3, 4, 5, 6, 7, 8} + (float)(i + 1);
  volatile float factor_source = 0.999f, term_source = 0.001f;
  const float factor = factor_source, term = term_source;
  double best = 0;
  const double begin = now_s();
  do {
    const double from = now_s();
    for (int round = 0; round < kRounds; ++round) {
#pragma GCC unroll 12
      for (int i = 0; i < kChains; ++i) sum[i] = sum[i] * factor + term;
    }
    const double flops = 2.0 * kLanes * kChains * kRounds / (now_s() - from);
    if (flops > best) best = flops;
  } while (now_s() - begin < seconds);
  float total = 0;
  for (int i = 0; i < kChains; ++i) total += sum[i][i % kLanes];
  printf("%.1f %g\n", best * 1e-9, (double)total);
  return 0;
}
