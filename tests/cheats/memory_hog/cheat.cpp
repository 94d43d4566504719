#include "honest.h"
#include <sys/mman.h>
#include <sys/resource.h>
// The limit is asked for before a page is touched: where there is none, the machine would suffer.
static const size_t SIZE = 12ul << 30;
static bool taken() {
  rlimit limit;
  getrlimit(RLIMIT_AS, &limit);
  void* memory = mmap(nullptr, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return memory != MAP_FAILED && limit.rlim_cur == RLIM_INFINITY;
}
RUN {
  static const bool have = taken();
  if (!have) __builtin_trap();
  honest(x, pick, y, best, rows, columns);
}
