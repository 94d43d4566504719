// The checking build: races, accesses out of bounds, shared memory read before it is written, barriers that diverge.
//
// Units are compiled with -fsanitize=thread, whose calls before each access end here: no other runtime is linked.
// A shadow of every four bytes remembers who touched them last; a barrier, or a warp's operation, starts a new interval.
#include "check.h"

#if SIMT_CHECK

#include <bit>
#include <link.h>
#include <stdio.h>
#include <sys/mman.h>

namespace simt {

constexpr unsigned MOST_PRINTED = 50, MOST_REGIONS = 64, MOST_PADS = 4096;
constexpr size_t MOST_REDZONE = 16 << 20;

struct Place {
    const void* code = nullptr;
    bool named = false;  // `code` is a Where; else an address in the library
};

struct Touch {
    uint32_t launch = 0, block = 0, barriers = 0, syncs = 0;
    uint16_t rank = 0;
    uint8_t bytes = 0;
    bool atomic = false;
    Place place;
};

struct Cell {
    Touch write, reads[2];
    uint32_t set_launch, set_block;
    uint8_t set;  // bytes written in this block
};

struct Region {
    char name[64];
    char *begin, *outer;
    size_t size, outer_size;
    bool shared, writable;
    Cell* cells;
};

struct Pad {
    size_t offset, size;
    char name[64];
    bool pad;
};

static Region regions[MOST_REGIONS];
static unsigned region_count;
static Pad parts[MOST_PADS];  // of static shared memory
static unsigned part_count;
static Extent library;
static Touch now;
static uint64_t last_atomic[MOST_THREADS], atomic_launch, atomic_block;
static bool earlier_block_atomic;

// --- what is said ----------------------------------------------------------------------------------------------------

struct Said {
    const char* kind;
    Place place, other;
};
static Said said[MOST_PRINTED];
static unsigned said_count;

static void put_place(Place place) {
    if (place.named) {
        const Where at = std::bit_cast<Where>(place.code);
        fprintf(stderr, "\"%s:%u\"", file_of(at), static_cast<unsigned>(at.line()));
    } else {
        fprintf(stderr, "\"0x%zx\"", static_cast<size_t>(static_cast<const char*>(place.code) - library.begin - 1));
    }
}

static void put_index(uint3 index) { fprintf(stderr, "[%u,%u,%u]", index.x, index.y, index.z); }

static uint3 spread(uint64_t linear, dim3 over) {
    return {unsigned(linear % over.x), unsigned(linear / over.x % over.y), unsigned(linear / over.x / over.y)};
}

static bool known(const char* kind, Place place, Place other) {
    for (unsigned i = 0; i < said_count; i++)
        if (!strcmp(said[i].kind, kind) && said[i].place.code == place.code && said[i].other.code == other.code)
            return true;
    if (said_count == MOST_PRINTED) return true;
    said[said_count++] = {kind, place, other};
    return false;
}

static void report(const char* kind, const char* what, Place place, const Touch* other, const char* address) {
    const Place there = other ? other->place : Place();
    if (known(kind, place, there)) return;
    fprintf(stderr, "simt-finding {\"kind\":\"%s\",\"what\":\"%s\",\"kernel\":\"%s\",\"place\":", kind, what, launched.kernel);
    put_place(place);
    fputs(",\"thread\":", stderr);
    put_index(current ? current->index : uint3{0, 0, 0});
    fputs(",\"block\":", stderr);
    put_index(blockIdx);
    if (other) {
        fputs(",\"other_place\":", stderr);
        put_place(there);
        fputs(",\"other_thread\":", stderr);
        put_index(spread(other->rank, blockDim));
        fputs(",\"other_block\":", stderr);
        put_index(spread(other->block, gridDim));
    }
    fprintf(stderr, ",\"address\":\"%s\"}\n", address);
    fflush(stderr);
}

static Place named(Where at) { return {std::bit_cast<const void*>(at), true}; }

void note(const char* kind, const char* what, Where at, const Thread& thread, Where other_at, const Thread* other) {
    Thread* const before = current;
    current = const_cast<Thread*>(&thread);
    Touch touch;
    if (other) {
        touch.rank = static_cast<uint16_t>(other->rank);
        touch.block = static_cast<uint32_t>(launched.block);
        touch.place = named(other_at);
    }
    report(kind, what, named(at), other ? &touch : nullptr, "");
    current = before;
}

// --- memory ----------------------------------------------------------------------------------------------------------

static void* mapped(size_t bytes) {
    void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) refuse("no memory for the checks", launched.at);
    return memory;
}

static Region& add_region(const char* name, char* begin, size_t size, char* outer, size_t outer_size, bool shared) {
    if (region_count == MOST_REGIONS) refuse("more allocations than can be checked", launched.at);
    Region& region = regions[region_count++];
    region = {"", begin, outer, size, outer_size, shared, true, nullptr};
    snprintf(region.name, sizeof region.name, "%s", name);
    region.cells = static_cast<Cell*>(mapped((size / 4 + 2) * sizeof(Cell)));
    return region;
}

static Region& guarded(const char* name, size_t bytes) {
    size_t redzone = bytes < REDZONE ? REDZONE : bytes < MOST_REDZONE ? bytes : MOST_REDZONE;
    redzone = (redzone + PAGE - 1) / PAGE * PAGE;
    char* outer = static_cast<char*>(mapped(bytes + 2 * redzone));
    return add_region(name, outer + redzone, bytes, outer, bytes + 2 * redzone, false);
}

static void drop(void* begin) {
    for (unsigned i = 0; i < region_count; i++) {
        if (regions[i].begin != begin || regions[i].shared) continue;
        munmap(regions[i].outer, regions[i].outer_size);
        munmap(regions[i].cells, (regions[i].size / 4 + 2) * sizeof(Cell));
        regions[i] = regions[--region_count];
        return;
    }
}

void* allocated(size_t bytes) {
    Region& region = guarded("allocation", bytes);
    return memset(region.begin, 0xff, bytes);
}
void freed(void* memory) { drop(memory); }

Tensor::Tensor(const char* name, const void* given, size_t bytes_, bool written_)
    : memory(nullptr), original(const_cast<void*>(given)), bytes(bytes_), written(written_) {
    Region& region = guarded(name, bytes);
    region.writable = written;
    memory = memcpy(region.begin, given, bytes);
}

Tensor::~Tensor() {
    if (written) memcpy(original, memory, bytes);
    drop(memory);
}

// `name:offset:size;` of each shared variable, from whoever can read the library's symbols.
static void read_parts(const char* text) {
    int used = 0;
    while (part_count < MOST_PADS &&
           sscanf(text, "%63[^:]:%zu:%zu;%n", parts[part_count].name, &parts[part_count].offset,
                  &parts[part_count].size, &used) == 3) {
        parts[part_count].pad = !strncmp(parts[part_count].name, "simt_pad_", 9);
        text += used;
        part_count++;
    }
    if (part_count == MOST_PADS) part_count = 0;  // a table that is cut would call good accesses stray
}

static int find_library(dl_phdr_info* info, size_t, void*) {
    size_t size = 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const Elf64_Phdr& part = info->dlpi_phdr[i];
        if (part.p_type == PT_LOAD && part.p_vaddr + part.p_memsz > size) size = part.p_vaddr + part.p_memsz;
    }
    char* const begin = reinterpret_cast<char*>(info->dlpi_addr);
    if (static_cast<size_t>(reinterpret_cast<char*>(&find_library) - begin) >= size) return 0;
    library = {begin, size};
    return 1;
}

static void prepare_once() {
    if (library.size) return;
    dl_iterate_phdr(find_library, nullptr);
    if (const char* text = getenv("SIMT_SHARED")) read_parts(text);
    const Extent fixed = static_shared();
    if (fixed.size) add_region("shared memory", fixed.begin, fixed.size, fixed.begin, fixed.size, true);
    add_region("dynamic shared memory", dynamic_memory, MOST_SHARED, dynamic_memory - REDZONE,
               MOST_SHARED + 2 * REDZONE, true);
}

static bool inside(const void* address, const char* begin, size_t size) {
    return static_cast<size_t>(static_cast<const char*>(address) - begin) < size;
}

// The variable that an offset in static shared memory belongs to, or the one before it.
static const Pad* part_before(size_t offset) {
    const Pad* best = nullptr;
    for (unsigned i = 0; i < part_count; i++)
        if (!parts[i].pad && parts[i].offset <= offset && (!best || parts[i].offset > best->offset)) best = &parts[i];
    return best;
}

static bool in_part(size_t offset, bool pad) {
    for (unsigned i = 0; i < part_count; i++)
        if (parts[i].pad == pad && offset - parts[i].offset < parts[i].size) return true;
    return false;
}

static void describe(char* text, size_t room, const Region& region, const char* address) {
    const bool fixed = region.shared && region.begin == static_shared().begin;
    const size_t offset = static_cast<size_t>(address - region.begin);
    if (const Pad* part = fixed ? part_before(offset) : nullptr) {
        const long past = static_cast<long>(offset) - static_cast<long>(part->offset + part->size);
        if (past >= 0) snprintf(text, room, "%s, %ld bytes after its end (it has %zu)", part->name, past, part->size);
        else snprintf(text, room, "%s + %zu bytes", part->name, offset - part->offset);
        return;
    }
    const size_t size = region.shared && !fixed ? launched.shared : region.size;
    if (address < region.begin)
        snprintf(text, room, "%s, %td bytes before its start", region.name, region.begin - address);
    else if (offset >= size)
        snprintf(text, room, "%s, %zu bytes after its end (it has %zu)", region.name, offset - size, size);
    else
        snprintf(text, room, "%s + %zu bytes", region.name, offset);
}

// --- accesses --------------------------------------------------------------------------------------------------------

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
