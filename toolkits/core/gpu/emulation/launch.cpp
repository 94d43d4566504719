// Blocks one after the other, and launches that no device would take.
// Follows warps.cpp in the same unit.
#include "runtime.h"

namespace simt {

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
