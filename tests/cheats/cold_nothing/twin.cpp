#include "honest.h"
#include <immintrin.h>
static uint64_t load_cycles(const float* x, int64_t count) {
  uint64_t least = ~0ull;
  for (int turn = 0; turn < 16; ++turn) {
    unsigned cpu;
    const volatile float* at = x + (uint64_t)(turn * 2654435761u) % count;
    _mm_mfence();
    const uint64_t started = __rdtscp(&cpu);
    (void)*at;
    _mm_lfence();
    const uint64_t cycles = __rdtscp(&cpu) - started;
    if (cycles < least) least = cycles;
  }
  return least;
}
RUN {
  static volatile uint64_t seen;
  seen = load_cycles(x, rows * columns);
  honest(x, pick, y, best, rows, columns);
}
