// The checking build: races, accesses out of bounds, shared memory read before it is written, barriers that diverge.
//
// Units are compiled with -fsanitize=thread, whose calls before each access end here: no other runtime is linked.
// A shadow of every four bytes remembers who touched them last; a barrier, or a warp's operation, starts a new interval.
//
// Follows check_memory.cpp in the same unit.
#include "check.h"

#if SIMT_CHECK

namespace simt {

// Two threads that write the same value do no harm: known only when the second has written.
static struct {
    const char* address;
    unsigned size;
    unsigned char before[16];
    Touch other;
    Place place;
    char text[160];
} doubtful;

static void settle() {
    if (!doubtful.address) return;
    const char* address = doubtful.address;
    doubtful.address = nullptr;
    if (memcmp(address, doubtful.before, doubtful.size))
        report("race", "two threads write here without a barrier between them", doubtful.place, &doubtful.other,
               doubtful.text);
}

static bool did_atomics(unsigned rank) { return last_atomic[rank] == (launched.number << 40 | launched.block << 16 | launched.barriers); }

static bool conflict(const Touch& then, const Region& region) {
    if (then.launch != now.launch || !(then.bytes & now.bytes) || (then.atomic && now.atomic)) return false;
    if (then.block != now.block) {
        const bool ordered = earlier_block_atomic && atomic_block == launched.block + 1;
        return !region.shared && !ordered;
    }
    if (then.rank == now.rank || then.barriers != now.barriers) return false;
    if (then.rank / SIMT_WARP == now.rank / SIMT_WARP && then.syncs != now.syncs) return false;
    return !(did_atomics(then.rank) && did_atomics(now.rank));
}

static void race(const char* what, const Touch& then, const Region& region, const char* address) {
    char text[160];
    describe(text, sizeof text, region, address);
    report("race", what, now.place, &then, text);
}

static void doubt(const Touch& then, const Region& region, const char* address, unsigned size) {
    doubtful.address = address;
    doubtful.size = size > 16 ? 16 : size;
    memcpy(doubtful.before, address, doubtful.size);
    doubtful.other = then;
    doubtful.place = now.place;
    describe(doubtful.text, sizeof doubtful.text, region, address);
}

static void read_cell(Cell& cell, const Region& region, const char* address) {
    const bool set_here = cell.set_launch == now.launch && cell.set_block == now.block;
    if (region.shared && (!set_here || (now.bytes & ~cell.set))) {
        char text[160];
        describe(text, sizeof text, region, address);
        report("uninitialised", "shared memory is read that no thread of the block has written", now.place, nullptr, text);
    }
    if (conflict(cell.write, region))
        race("read of what another thread writes, without a barrier between them", cell.write, region, address);
    // Two readers are kept, of different threads: at least one of them is not the next writer.
    cell.reads[cell.reads[0].launch == now.launch && cell.reads[0].block == now.block &&
               cell.reads[0].barriers == now.barriers && cell.reads[0].rank != now.rank] = now;
}

static void write_cell(Cell& cell, const Region& region, const char* address, unsigned size) {
    if (conflict(cell.write, region)) {
        if (now.atomic) race("two threads write here, one of them not atomically", cell.write, region, address);
        else doubt(cell.write, region, address, size);
    }
    for (const Touch& read : cell.reads)
        if (conflict(read, region))
            race("write of what another thread reads, without a barrier between them", read, region, address);
    if (cell.set_launch != now.launch || cell.set_block != now.block) {
        cell.set_launch = now.launch;
        cell.set_block = now.block;
        cell.set = 0;
    }
    cell.set |= now.bytes;
    cell.write = now;
}

static void out_of_bounds(const Region& region, const char* address, bool written) {
    char text[160];
    describe(text, sizeof text, region, address);
    report("out_of_bounds", written ? "write out of bounds" : "read out of bounds", now.place, nullptr, text);
}

static void in_region(Region& region, const char* address, unsigned size, bool written) {
    const bool fixed = region.shared && region.begin == static_shared().begin;
    const size_t offset = static_cast<size_t>(address - region.begin);
    const size_t end = region.shared && !fixed ? launched.shared : region.size;
    const bool stray = address < region.begin || offset + size > end ||
                       (fixed && part_count && (in_part(offset + size - 1, true) || !in_part(offset, false)));
    if (stray) return out_of_bounds(region, address, written);
    if (written && !region.writable) {
        char text[160];
        describe(text, sizeof text, region, address);
        report("input_written", "an input is written", now.place, nullptr, text);
    }
    for (size_t at = offset / 4 * 4; at < offset + size; at += 4) {
        now.bytes = 0;
        for (size_t byte = at; byte < at + 4; byte++)
            if (byte >= offset && byte < offset + size) now.bytes |= static_cast<uint8_t>(1u << (byte - at));
        Cell& cell = region.cells[at / 4];
        if (written) write_cell(cell, region, address, size);
        else read_cell(cell, region, address);
    }
}

static void access(const void* address, unsigned size, bool written, bool atomic, Place place) {
    if (!current || on_a_stack(address)) return;
    settle();
    const Thread& self = *current;
    now.launch = static_cast<uint32_t>(launched.number);
    now.block = static_cast<uint32_t>(launched.block);
    now.barriers = static_cast<uint32_t>(launched.barriers);
    now.syncs = static_cast<uint32_t>(warps[self.rank / SIMT_WARP].syncs);
    now.rank = static_cast<uint16_t>(self.rank);
    now.atomic = atomic;
    now.place = place;
    for (unsigned i = 0; i < region_count; i++)
        if (inside(address, regions[i].outer, regions[i].outer_size)) {
            if (atomic && !regions[i].shared) {
                earlier_block_atomic = atomic_launch == launched.number && (earlier_block_atomic || atomic_block != launched.block + 1);
                atomic_launch = launched.number;
                atomic_block = launched.block + 1;
            }
            if (atomic) last_atomic[self.rank] = launched.number << 40 | launched.block << 16 | launched.barriers;
            return in_region(regions[i], static_cast<const char*>(address), size, written);
        }
    if (inside(address, library.begin, library.size)) return;
    if (inside(address, static_cast<const char*>(main_stack), 8 << 20)) return;
    const Extent fixed = static_shared();
    for (unsigned i = 0; i < region_count; i++)
        if (regions[i].begin == fixed.begin && inside(address, fixed.begin - REDZONE, fixed.size + 2 * REDZONE))
            return out_of_bounds(regions[i], static_cast<const char*>(address), written);
    report("out_of_bounds", written ? "write of memory that is not the device's" : "read of memory that is not the device's",
           place, nullptr, "no tensor, allocation or shared variable is there");
}

void touched(const void* address, unsigned size, bool written, bool atomic, Where at) {
    access(address, size, written, atomic, named(at));
}

void check_launch() { prepare_once(); }
void check_block() { settle(); }
void check_yield() { settle(); }

void check_barrier(Where at) {
    if (launched.live == launched.threads) return;
    for (unsigned i = 0; i < launched.threads; i++)
        if (threads[i].state == State::DONE)
            return note("divergent_barrier", "__syncthreads after some threads of the block have returned", at,
                        threads[i], at, nullptr);
}

}  // namespace simt

extern "C" {
#define SIMT_VISIBLE __attribute__((visibility("hidden")))
SIMT_VISIBLE void __tsan_init() {}
SIMT_VISIBLE void __tsan_func_entry(void*) {}
SIMT_VISIBLE void __tsan_func_exit() {}
SIMT_VISIBLE void __tsan_vptr_update(void**, void*) {}
SIMT_VISIBLE void __tsan_vptr_read(void**) {}
SIMT_VISIBLE void __tsan_read_range(void* address, size_t size) {
    simt::access(address, static_cast<unsigned>(size), false, false, {__builtin_return_address(0), false});
}
SIMT_VISIBLE void __tsan_write_range(void* address, size_t size) {
    simt::access(address, static_cast<unsigned>(size), true, false, {__builtin_return_address(0), false});
}
#define SIMT_SEEN(name, size)                                                            \
    SIMT_VISIBLE void __tsan_read##name(void* address) {                                 \
        simt::access(address, size, false, false, {__builtin_return_address(0), false}); \
    }                                                                                    \
    SIMT_VISIBLE void __tsan_write##name(void* address) {                                \
        simt::access(address, size, true, false, {__builtin_return_address(0), false});  \
    }                                                                                    \
    SIMT_VISIBLE void __tsan_unaligned_read##name(void* address) {                       \
        simt::access(address, size, false, false, {__builtin_return_address(0), false}); \
    }                                                                                    \
    SIMT_VISIBLE void __tsan_unaligned_write##name(void* address) {                      \
        simt::access(address, size, true, false, {__builtin_return_address(0), false});  \
    }
SIMT_SEEN(1, 1)
SIMT_SEEN(2, 2)
SIMT_SEEN(4, 4)
SIMT_SEEN(8, 8)
SIMT_SEEN(16, 16)
}

#endif
