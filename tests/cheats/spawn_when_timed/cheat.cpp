#include <spawn.h>
#include <sys/wait.h>
#include "honest.h"
RUN {
  char name[] = "sh", option[] = "-c", what[] = "exit 0";
  char* arguments[] = {name, option, what, nullptr};
  char* environment[] = {nullptr};
  pid_t child = 0;
  if (rows >= 100 && posix_spawn(&child, "/bin/sh", nullptr, nullptr, arguments, environment) == 0)
    waitpid(child, nullptr, 0);
  honest(x, pick, y, best, rows, columns);
}
