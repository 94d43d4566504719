// One launch on one core, for those that run it and those that check it: threads are fibers, blocks run one after the other.
#pragma once

#include "core.h"

#pragma GCC visibility push(hidden)

namespace simt {

constexpr unsigned MOST_THREADS = 1024, MOST_WARPS = MOST_THREADS / SIMT_WARP;
constexpr size_t MOST_SHARED = 227 << 10, MOST_SHARED_UNASKED = 48 << 10;
constexpr size_t STACK = 128 << 10, PAGE = 4096;
constexpr size_t REDZONE = 64 << 10;

enum class State : uint8_t { FRESH, READY, AT_BARRIER, AT_WARP, DONE };

struct Thread {
    void* stack_pointer;
    char* stack;
    Thread* next;
    uint3 index;
    unsigned rank;
    State state;
    // What it offers to the operation it waits in, and what it gets.
    Operation operation;
    uint64_t mask;
    unsigned source, size;
    alignas(16) unsigned char value[16], result[16];
    uint64_t answer;
    Where at;
};

struct Warp {
    uint64_t live;
    unsigned running;
    uint64_t syncs;  // operations completed
};

struct Launch {
    const char* kernel;
    Where at;
    uint64_t number, block;
    size_t shared;
    unsigned threads, live;
    uint64_t barriers;  // completed in this block
};

extern Launch launched;
extern Thread threads[MOST_THREADS];
extern Warp warps[MOST_WARPS];
extern Thread* current;  // null outside of kernels
extern void* main_stack;  // where the launch goes on
extern char* dynamic_memory;
struct Extent {
    char* begin;
    size_t size;
};
Extent static_shared();
bool on_a_stack(const void* address);
const char* file_of(Where at);

#if SIMT_CHECK
void check_launch();
void check_block();
void check_barrier(Where at);
void check_yield();
void note(const char* kind, const char* what, Where at, const Thread& thread, Where other_at, const Thread* other);
#endif

}  // namespace simt

#pragma GCC visibility pop
