#include "honest.h"
#include <sys/mman.h>
RUN {
  honest(x, pick, y, best, rows, columns);
  char* page = (char*)((uintptr_t)y & ~4095ul);
  const size_t size = ((char*)(y + rows * columns) - page + 4095) & ~4095ul;
  madvise((char*)((uintptr_t)x & ~4095ul), size, MADV_REMOVE);
  madvise(page, size, MADV_REMOVE);
}
