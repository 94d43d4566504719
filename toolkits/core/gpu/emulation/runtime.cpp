// The scheduler: fibers with a hand-written switch take turns at barriers and warp operations. Knows no CUDA names.
#include "runtime.h"

#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;

namespace simt {

Launch launched;
Thread threads[MOST_THREADS];
Warp warps[MOST_WARPS];
Thread* current;
alignas(1024) static char dynamic_space[REDZONE + MOST_SHARED + REDZONE];
char* dynamic_memory = dynamic_space + REDZONE;
size_t shared_allowed = MOST_SHARED_UNASKED;

extern "C" __attribute__((visibility("hidden"))) void simt_switch(void** from, void* to);
asm(R"(
.text
.globl simt_switch
.hidden simt_switch
.type simt_switch, @function
simt_switch:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
.size simt_switch, .-simt_switch
)");

void* main_stack;
static void (*body)(void*);
static void* closure;
static Thread *first_ready, *last_ready;
static char* stacks;
static char* free_stacks[MOST_THREADS];
static unsigned made, idle;
static struct {
    unsigned arrived;
    Where at;
    Count what;
    int count;
} gate;
static int gate_result;
struct Pending {
    Operation operation;
    uint64_t mask, arrived;
};
static Pending pending[MOST_WARPS][SIMT_WARP];
static unsigned waiting_groups[MOST_WARPS];

unsigned rank() { return current->rank; }
unsigned lane() { return current->rank % SIMT_WARP; }
void* dynamic_shared() { return dynamic_memory; }

// --- stacks and turns ------------------------------------------------------------------------------------------------

static char* take_stack() {
    if (idle) return free_stacks[--idle];
    if (!stacks) {
        constexpr int how = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
        void* memory = mmap(nullptr, MOST_THREADS * STACK, PROT_READ | PROT_WRITE, how, -1, 0);
        if (memory == MAP_FAILED) refuse("no memory for the threads' stacks", launched.at);
        stacks = static_cast<char*>(memory);
    }
    char* const stack = stacks + made++ * STACK;
    mprotect(stack, PAGE, PROT_NONE);  // a stack that is too small for a kernel ends here
    return stack;
}

bool on_a_stack(const void* address) {
    return stacks && static_cast<size_t>(static_cast<const char*>(address) - stacks) < MOST_THREADS * STACK;
}

static void push(Thread& thread) {
    thread.next = nullptr;
    (last_ready ? last_ready->next : first_ready) = &thread;
    last_ready = &thread;
}

static Thread* pop() {
    Thread* thread = first_ready;
    if (thread) first_ready = thread->next;
    if (!first_ready) last_ready = nullptr;
    return thread;
}

static void wake(Thread& thread) {
    warps[thread.rank / SIMT_WARP].running++;
    thread.state = State::READY;
    push(thread);
}

static void enter(Thread& thread) {
    current = &thread;
    threadIdx = thread.index;
}

static void leave();

static void fiber() {
    for (;;) {
        body(closure);
        leave();
        Thread* next = pop();
        if (next && next->state == State::FRESH) {  // goes on here, where the cache is warm
            next->stack = current->stack;
            next->state = State::READY;
            enter(*next);
            continue;
        }
        free_stacks[idle++] = current->stack;
        void* nowhere;
        if (next) enter(*next);
        simt_switch(&nowhere, next ? next->stack_pointer : main_stack);
    }
}

static void prepare(Thread& thread) {
    thread.stack = take_stack();
    thread.state = State::READY;
    // Tops of stacks that lie a power of two apart would share their cache lines.
    const size_t shift = (thread.rank * 9 % 64 + 1) * 64;
    void** top = reinterpret_cast<void**>(thread.stack + STACK - shift);
    *--top = nullptr;
    *--top = reinterpret_cast<void*>(fiber);
    for (int i = 0; i < 6; i++) *--top = nullptr;
    thread.stack_pointer = top;
}

static void resume_next() {
    Thread *self = current, *next = pop();
    if (next == self) return;
    if (next && next->state == State::FRESH) prepare(*next);
    if (next) enter(*next);
    simt_switch(&self->stack_pointer, next ? next->stack_pointer : main_stack);
}

// Switch away until somebody wakes this thread. Nobody's turn: the launch is stuck, and the caller of all says so.
static void wait() { resume_next(); }

void turn() {
    if (!current) return;
#if SIMT_CHECK
    check_yield();
#endif
    push(*current);
    resume_next();
}

// --- what goes wrong -------------------------------------------------------------------------------------------------

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

// --- the block's barrier ---------------------------------------------------------------------------------------------

template <class F>
static void in_order(F each) {
    const unsigned count = launched.threads;
    for (unsigned i = 0; i < count; i++) each(threads[launched.block % 2 ? i : count - 1 - i]);
}

static void open_gate() {
#if SIMT_CHECK
    check_barrier(gate.at);
#endif
    const int live = static_cast<int>(launched.live);
    gate_result = gate.what == Count::COUNT ? gate.count
                  : gate.what == Count::AND ? gate.count == live
                                            : gate.count > 0;
    gate.arrived = 0;
    gate.count = 0;
    launched.barriers++;
    in_order([](Thread& thread) {
        if (thread.state == State::AT_BARRIER) wake(thread);
    });
}

static void resolve_those_here(unsigned warp);

static void stop(State state, Where at) {
#if SIMT_CHECK
    check_yield();
#endif
    current->state = state;
    current->at = at;
    const unsigned warp = current->rank / SIMT_WARP;
    if (--warps[warp].running == 0) resolve_those_here(warp);
}

int barrier(Count what, int predicate, Where at) {
    if (!current) refuse("a barrier outside of a kernel", at);
    const bool first = gate.arrived++ == 0;
    stop(State::AT_BARRIER, at);
    if (first) gate.at = at, gate.what = what;
    if (!same_place(gate.at, at)) stuck("divergent __syncthreads: threads of one block wait at different barriers");
    gate.count += predicate != 0;
    if (gate.arrived == launched.live) open_gate();
    wait();
    return gate_result;
}

// --- the warp --------------------------------------------------------------------------------------------------------

static Thread& of_lane(unsigned warp, unsigned lane) { return threads[warp * SIMT_WARP + lane]; }

static uint64_t lanes_equal(unsigned warp, uint64_t among, const Thread& thread) {
    uint64_t equal = 0;
    for (uint64_t left = among; left; left &= left - 1) {
        const unsigned other = static_cast<unsigned>(__builtin_ctzll(left));
        if (!memcmp(of_lane(warp, other).value, thread.value, thread.size)) equal |= 1ull << other;
    }
    return equal;
}

static void resolve(unsigned warp, Operation what, uint64_t among) {
    uint64_t votes = 0;
    for (uint64_t left = among; left; left &= left - 1) {
        const unsigned lane = static_cast<unsigned>(__builtin_ctzll(left));
        Thread& thread = of_lane(warp, lane);
        if (thread.source && what == Operation::VOTE) votes |= 1ull << lane;
        if (what == Operation::MATCH) thread.answer = lanes_equal(warp, among, thread);
        if (what != Operation::SHUFFLE) continue;
        const bool there = among >> thread.source & 1;
        if (there) memcpy(thread.result, of_lane(warp, thread.source).value, 16);
        else memset(thread.result, 0xff, 16);  // the hardware gives anything
    }
    warps[warp].syncs++;
    const bool upwards = launched.block % 2;
    for (uint64_t left = among; left;) {
        const unsigned lane = upwards ? static_cast<unsigned>(__builtin_ctzll(left)) : 63u - __builtin_clzll(left);
        left &= ~(1ull << lane);
        Thread& thread = of_lane(warp, lane);
        if (what == Operation::VOTE) thread.answer = votes;
        wake(thread);
    }
}

static void resolve_complete(unsigned warp) {
    for (unsigned i = 0; i < waiting_groups[warp]; i++) {
        const Pending group = pending[warp][i];
        const uint64_t wanted = group.mask & warps[warp].live;
        if (!group.arrived || group.arrived != wanted) continue;
        pending[warp][i] = pending[warp][--waiting_groups[warp]];
        resolve(warp, group.operation, group.arrived);
        i = ~0u;
    }
}

// All lanes of a warp wait at operations that name no lanes: those that came to the first one in the text go on
// together. Hardware joins the lanes of a branch behind it, and what is behind mostly stands below.
static void resolve_those_here(unsigned warp) {
    const Thread* first = nullptr;
    for (uint64_t left = warps[warp].live; left; left &= left - 1) {
        const Thread& thread = of_lane(warp, static_cast<unsigned>(__builtin_ctzll(left)));
        if (thread.state != State::AT_WARP || thread.mask != WHO_IS_HERE) continue;
        if (!first || thread.at.line() < first->at.line()) first = &thread;
    }
    if (!first) return;
    uint64_t among = 0;
    for (uint64_t left = warps[warp].live; left; left &= left - 1) {
        const unsigned lane = static_cast<unsigned>(__builtin_ctzll(left));
        const Thread& thread = of_lane(warp, lane);
        const bool here = thread.state == State::AT_WARP && thread.mask == WHO_IS_HERE;
        if (here && thread.operation == first->operation && same_place(thread.at, first->at)) among |= 1ull << lane;
    }
    resolve(warp, first->operation, among);
}

static void arrive(unsigned warp, unsigned lane, const Thread& self) {
    unsigned i = 0;
    while (i < waiting_groups[warp] &&
           (pending[warp][i].mask != self.mask || pending[warp][i].operation != self.operation))
        i++;
    if (i == waiting_groups[warp]) pending[warp][waiting_groups[warp]++] = {self.operation, self.mask, 0};
    pending[warp][i].arrived |= 1ull << lane;
    if (pending[warp][i].arrived == (self.mask & warps[warp].live)) resolve_complete(warp);
}

uint64_t together(
    Operation what, uint64_t mask, const void* value, unsigned size, unsigned source, void* result, Where at
) {
    if (!current) refuse("a warp operation outside of a kernel", at);
    Thread& self = *current;
    const unsigned warp = self.rank / SIMT_WARP, lane = self.rank % SIMT_WARP;
    if (mask != WHO_IS_HERE && !(mask >> lane & 1)) refuse("this lane is not in the mask of its warp operation", at);
    self.operation = what;
    self.mask = mask;
    self.source = source;
    self.size = size;
    if (value) memcpy(self.value, value, size);
    stop(State::AT_WARP, at);
    if (mask != WHO_IS_HERE) arrive(warp, lane, self);
    wait();
    if (result) memcpy(result, self.result, size);
    return self.answer;
}

// --- blocks and launches ---------------------------------------------------------------------------------------------

static void leave() {
#if SIMT_CHECK
    check_yield();
#endif
    const unsigned warp = current->rank / SIMT_WARP;
    current->state = State::DONE;
    launched.live--;
    warps[warp].live &= ~(1ull << current->rank % SIMT_WARP);
    warps[warp].running--;
    if (waiting_groups[warp]) resolve_complete(warp);
    if (warps[warp].running == 0 && warps[warp].live) resolve_those_here(warp);
    if (gate.arrived && gate.arrived == launched.live) open_gate();
}

struct Module {
    const void* inside;
    Extent shared;
};

static int in_module(dl_phdr_info* info, size_t, void* wanted) {
    Module& module = *static_cast<Module*>(wanted);
    const Elf64_Phdr* thread_local_ = nullptr;
    bool here = false;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const Elf64_Phdr& part = info->dlpi_phdr[i];
        const size_t offset = static_cast<size_t>(static_cast<const char*>(module.inside) - (char*)info->dlpi_addr);
        here = here || (part.p_type == PT_LOAD && offset - part.p_vaddr < part.p_memsz);
        if (part.p_type == PT_TLS) thread_local_ = &part;
    }
    if (here && thread_local_) {
        struct {
            size_t module, offset;
        } index{info->dlpi_tls_modid, 0};
        extern void* address_of_thread_local(void*) asm("__tls_get_addr");
        module.shared = {static_cast<char*>(address_of_thread_local(&index)), thread_local_->p_memsz};
    }
    return here;
}

// `__shared__` variables are thread-local ones of this library, and it has no others.
Extent static_shared() {
    static const Extent found = [] {
        Module module{reinterpret_cast<const void*>(&static_shared), {nullptr, 0}};
        dl_iterate_phdr(in_module, &module);
        return module.shared;
    }();
    return found;
}

static void start_block() {
    const unsigned width = blockDim.x, height = blockDim.y;
    launched.live = launched.threads;
    launched.barriers = 0;
    gate.arrived = 0;
    gate.count = 0;
    // What no thread has written is no number; block by block, as nothing survives in hardware either.
    memset(static_shared().begin, 0xff, static_shared().size);
    memset(dynamic_memory, 0xff, launched.shared);
    for (unsigned warp = 0; warp * SIMT_WARP < launched.threads; warp++) {
        const unsigned lanes = launched.threads - warp * SIMT_WARP;
        warps[warp] = {lanes >= SIMT_WARP ? ALL_LANES : (1ull << lanes) - 1, lanes > SIMT_WARP ? SIMT_WARP : lanes, 0};
        waiting_groups[warp] = 0;
    }
    for (unsigned i = 0; i < launched.threads; i++) {
        threads[i].rank = i;
        threads[i].index = {i % width, i / width % height, i / (width * height)};
        threads[i].state = State::FRESH;
    }
    in_order([](Thread& thread) { push(thread); });
}

static void run_block() {
    start_block();
#if SIMT_CHECK
    check_block();
#endif
    Thread* thread = pop();
    prepare(*thread);
    enter(*thread);
    simt_switch(&main_stack, thread->stack_pointer);
    current = nullptr;
    if (launched.live) stuck("threads wait for others that never come");
}

static const char* impossible(const Configuration& how) {
    const dim3 &grid = how.grid, &block = how.block;
    if (!grid.x || !grid.y || !grid.z || !block.x || !block.y || !block.z) return "a grid or block without any thread";
    if (1ull * block.x * block.y * block.z > MOST_THREADS || block.z > 64) return "more than 1024 threads a block";
    if (grid.y > 65535 || grid.z > 65535) return "more than 65535 blocks along y or z";
    if (how.shared > shared_allowed)
        return how.shared > MOST_SHARED ? "more dynamic shared memory than any device has"
                                        : "more than 48 KB of dynamic shared memory: ask for it by FuncSetAttribute";
    return nullptr;
}

int last_error;

void run(const Configuration& how, const char* kernel, void (*body_)(void*), void* closure_, Where at) {
    if (current) refuse("a launch from a kernel", at);
    if (const char* why = impossible(how)) {
        fprintf(stderr, "emulation: %s:%u: %s is not launched: %s\n", file_of(at), unsigned(at.line()), kernel, why);
        last_error = 9;
        return;
    }
    launched = {kernel, at, launched.number + 1, 0, how.shared, how.block.x * how.block.y * how.block.z, 0, 0};
    gridDim = how.grid;
    blockDim = how.block;
    body = body_;
    closure = closure_;
#if SIMT_CHECK
    check_launch();
#endif
    for (unsigned z = 0; z < how.grid.z; z++)
        for (unsigned y = 0; y < how.grid.y; y++)
            for (unsigned x = 0; x < how.grid.x; x++) {
                blockIdx = {x, y, z};
                run_block();
                launched.block++;
            }
}

}  // namespace simt
