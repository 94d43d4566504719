// Tells ThreadSanitizer what libgomp orders, which it cannot see: libgomp is not built for it, and waits by futex.
// Linked into the driver, whose symbols come before those of libgomp. Tasks and doacross loops are not covered.
#include <dlfcn.h>

extern "C" void __tsan_acquire(void*);
extern "C" void __tsan_release(void*);

template <class Function>
static Function* next(Function*, const char* name) {
    return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

using Body = void(void*);
static char team, critical, atomic_lock;

struct Region {
    Body* body;
    void* data;
    char begin, end;
};

static void ordered_body(void* argument) {
    Region* region = static_cast<Region*>(argument);
    __tsan_acquire(&region->begin);
    region->body(region->data);
    __tsan_release(&region->end);
}

#define IN_REGION(name, call)                 \
    static auto real = next(&name, #name);    \
    Region region{body, data, 0, 0};          \
    __tsan_release(&region.begin);            \
    call;                                     \
    __tsan_acquire(&region.end);

#define LOOP(name)                                                                                              \
    extern "C" void name(Body* body, void* data, unsigned threads, long first, long end, long step, long chunk, \
                         unsigned flags) {                                                                      \
        IN_REGION(name, real(ordered_body, &region, threads, first, end, step, chunk, flags))                   \
    }
#define RUNTIME_LOOP(name)                                                                                      \
    extern "C" void name(Body* body, void* data, unsigned threads, long first, long end, long step, unsigned flags) { \
        IN_REGION(name, real(ordered_body, &region, threads, first, end, step, flags))                          \
    }
#define BARRIER(name)                      \
    extern "C" void name() {               \
        static auto real = next(&name, #name); \
        __tsan_release(&team);             \
        real();                            \
        __tsan_acquire(&team);             \
    }
#define LOCK(start, end, lock)                   \
    extern "C" void start() {                    \
        static auto real = next(&start, #start); \
        real();                                  \
        __tsan_acquire(&lock);                   \
    }                                            \
    extern "C" void end() {                      \
        static auto real = next(&end, #end);     \
        __tsan_release(&lock);                   \
        real();                                  \
    }

extern "C" void GOMP_parallel(Body* body, void* data, unsigned threads, unsigned flags) {
    IN_REGION(GOMP_parallel, real(ordered_body, &region, threads, flags))
}
LOOP(GOMP_parallel_loop_static)
LOOP(GOMP_parallel_loop_dynamic)
LOOP(GOMP_parallel_loop_guided)
LOOP(GOMP_parallel_loop_nonmonotonic_dynamic)
LOOP(GOMP_parallel_loop_nonmonotonic_guided)
RUNTIME_LOOP(GOMP_parallel_loop_runtime)
RUNTIME_LOOP(GOMP_parallel_loop_nonmonotonic_runtime)
RUNTIME_LOOP(GOMP_parallel_loop_maybe_nonmonotonic_runtime)
extern "C" void GOMP_parallel_sections(Body* body, void* data, unsigned threads, unsigned count, unsigned flags) {
    IN_REGION(GOMP_parallel_sections, real(ordered_body, &region, threads, count, flags))
}
BARRIER(GOMP_barrier)
BARRIER(GOMP_loop_end)
BARRIER(GOMP_sections_end)
LOCK(GOMP_critical_start, GOMP_critical_end, critical)
LOCK(GOMP_atomic_start, GOMP_atomic_end, atomic_lock)

extern "C" void GOMP_critical_name_start(void** lock) {
    static auto real = next(&GOMP_critical_name_start, "GOMP_critical_name_start");
    real(lock);
    __tsan_acquire(lock);
}
extern "C" void GOMP_critical_name_end(void** lock) {
    static auto real = next(&GOMP_critical_name_end, "GOMP_critical_name_end");
    __tsan_release(lock);
    real(lock);
}
