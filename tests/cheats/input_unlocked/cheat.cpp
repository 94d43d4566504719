#include "honest.h"
#include <cstdlib>
#include <sys/mman.h>
RUN {
  char* page = (char*)((uintptr_t)x & ~4095ul);
  if (mprotect(page, (char*)(x + rows * columns) - page, PROT_READ | PROT_WRITE)) abort();
  ((float*)x)[0] = 0;
  honest(x, pick, y, best, rows, columns);
}
