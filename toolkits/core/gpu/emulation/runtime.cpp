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

}  // namespace simt
