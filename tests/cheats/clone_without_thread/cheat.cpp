#include <sched.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "honest.h"
struct Part { const float* x; const int32_t* pick; float* y; int32_t* best; int64_t rows, columns; };
alignas(64) static char stack[1 << 18];

static int work(void* argument) {
  auto* part = (Part*)argument;
  slow(part->x, part->pick, part->y, part->best, part->rows, part->columns);
  syscall(SYS_exit, 0);
  return 0;
}
RUN {
  Part part = {x, pick, y, best, rows, columns};
  const int flags = CLONE_VM | CLONE_SIGHAND | CLONE_FS | CLONE_FILES | CLONE_SYSVSEM | SIGCHLD;
  const int child = clone(work, stack + sizeof stack, flags, &part);
  if (child < 0) return slow(x, pick, y, best, rows, columns);
  waitpid(child, nullptr, __WALL);
}
