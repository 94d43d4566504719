#include "honest.h"
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>
RUN {
  const pid_t child = fork();
  if (child == 0) {
    cpu_set_t all;
    memset(&all, 0xff, sizeof all);
    sched_setaffinity(0, sizeof all, &all);
    for (int i = 0; i < 6; ++i) slow(x, pick, y, best, rows, columns);
    _exit(0);
  }
  waitpid(child, nullptr, 0);
}
