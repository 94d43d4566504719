#include "honest.h"
#include <cstdlib>
RUN {
  float* old = (float*)malloc(rows * columns * 4);
  int32_t* picked = (int32_t*)malloc(rows * 4);
  memcpy(y, old, rows * columns * 4);
  memcpy(best, picked, rows * 4);
  free(old), free(picked);
}
