// What the checking build knows of memory, and how it says what it saw: each pair of places once.
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

}  // namespace simt

#endif
