#include "honest.h"
#include <sys/mman.h>
RUN {
  const size_t size = 4ul << 20;
  float* mine = (float*)mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  madvise(mine, size, MADV_HUGEPAGE);
  honest(x, pick, mine, best, rows, columns);
  memcpy(y, mine, rows * columns * 4);
  munmap(mine, size);
}
