// What is said when a launch cannot go on: who waits where, and for whom.
// Follows runtime.cpp in the same unit.
#include "runtime.h"

namespace simt {

const char* file_of(Where at) { return at.file_name() + (strncmp(at.file_name(), "./", 2) ? 0 : 2); }

static void say_place(FILE* to, Where at) { fprintf(to, "%s:%u", file_of(at), static_cast<unsigned>(at.line())); }

static void say_thread(FILE* to, const Thread& thread) {
    fprintf(to, "thread (%u,%u,%u) of block (%u,%u,%u)", thread.index.x, thread.index.y, thread.index.z, blockIdx.x,
            blockIdx.y, blockIdx.z);
}

void refuse(const char* what, Where at) {
    fputs("emulation: ", stderr);
    say_place(stderr, at);
    fprintf(stderr, ": %s", what);
    if (current) fputs(": ", stderr), say_thread(stderr, *current);
    fputs("\n", stderr);
    fflush(stderr);
    abort();
}

static void say_waiting(const Thread& thread) {
    fputs("\n  ", stderr);
    say_thread(stderr, thread);
    fputs(thread.state == State::AT_BARRIER ? " waits at the barrier of " : " waits at the warp operation of ", stderr);
    say_place(stderr, thread.at);
    if (thread.state == State::AT_WARP && thread.mask) fprintf(stderr, " for lanes 0x%llx", (long long)thread.mask);
}

static bool same_place(Where a, Where b) {
    return a.line() == b.line() && a.column() == b.column() && !strcmp(a.file_name(), b.file_name());
}

// No thread can go on: each place where some wait is named once.
[[noreturn]] static void stuck(const char* what) {
    fprintf(stderr, "emulation: %s in kernel %s", what, launched.kernel);
    const Thread* said[4];
    unsigned count = 0;
    for (unsigned i = 0; i < launched.threads && count < 4; i++) {
        const Thread& thread = threads[i];
        if (thread.state != State::AT_BARRIER && thread.state != State::AT_WARP) continue;
        bool known = false;
        for (unsigned k = 0; k < count; k++)
            known = known || (said[k]->state == thread.state && same_place(said[k]->at, thread.at));
        if (known) continue;
        say_waiting(thread);
        said[count++] = &thread;
    }
    if (launched.live < launched.threads)
        fprintf(stderr, "\n  %u of %u threads have returned", launched.threads - launched.live, launched.threads);
    fputs("\n", stderr);
    fflush(stderr);
#if SIMT_CHECK
    const Thread* one = said[0];
    note("divergent_barrier", what, one->at, *one, count > 1 ? said[1]->at : Where(), count > 1 ? said[1] : nullptr);
#endif
    abort();
}

}  // namespace simt
