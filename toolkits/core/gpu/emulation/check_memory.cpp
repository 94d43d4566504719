// Where memory begins and ends in the checking build: tensors between guards, shared variables, their names.
// Follows check_said.cpp in the same unit.
#include "check.h"

#if SIMT_CHECK

namespace simt {

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

}  // namespace simt

#endif
