// Stands in for AMD's driver library: an MI300X at its power cap. What is not here is answered `not supported` by the
// functions that the test adds for every other name that the package binds.
#include <stdint.h>
#include <string.h>

typedef void* handle;
typedef struct {
    char market_name[256];
    uint32_t vendor_id;
    char vendor_name[256];
    uint32_t subvendor_id;
    uint64_t device_id;
    uint32_t rev_id;
    char serial[256];
    uint32_t oam, compute_units;
    uint64_t graphics_version;
    uint32_t subsystem, reserved[21];
} chip;
typedef struct { uint32_t now, least, most; uint8_t locked, asleep; uint32_t reserved[4]; } clock_;
typedef struct { uint32_t total, used, reserved[2]; } memory;
typedef struct { uint64_t socket; uint32_t current, average; uint64_t volts[3]; uint32_t limit; uint64_t rest[18]; } power;

int amdsmi_init(uint64_t flags) { return (void)flags, 0; }

int amdsmi_get_socket_handles(uint32_t* count, handle* found) {
    *count = 1;
    if (found) found[0] = (handle)1;
    return 0;
}

int amdsmi_get_processor_handles(handle socket, uint32_t* count, handle* found) {
    (void)socket;
    *count = 1;
    if (found) found[0] = (handle)2;
    return 0;
}

int amdsmi_get_gpu_asic_info(handle h, chip* seen) {
    (void)h;
    memset(seen, 0, sizeof *seen);
    strcpy(seen->market_name, "AMD Instinct MI300X");
    strcpy(seen->vendor_name, "Advanced Micro Devices");
    seen->compute_units = 304, seen->graphics_version = 0x942;
    return 0;
}

int amdsmi_get_gpu_vram_usage(handle h, memory* seen) {
    (void)h;
    seen->total = 196592, seen->used = 1024;  // MiB
    return 0;
}

int amdsmi_get_clock_info(handle h, int kind, clock_* seen) {
    (void)h;
    *seen = kind == 0 ? (clock_){.now = 1400, .most = 2100} : (clock_){.now = 1300, .most = 1300};
    return 0;
}

int amdsmi_get_power_info(handle h, power* seen) {
    (void)h;
    memset(seen, 0, sizeof *seen);
    seen->socket = 0xFFFF, seen->current = 745, seen->average = 0xFFFF;  // what a chip does not know
    return 0;
}

int amdsmi_get_power_cap_info(handle h, uint32_t sensor, uint64_t* cap) {
    (void)h, (void)sensor;
    cap[0] = 750000000;  // microwatts
    return 0;
}

int amdsmi_get_temp_metric(handle h, int sensor, int metric, int64_t* celsius) {
    (void)h, (void)sensor, (void)metric;
    *celsius = 61;
    return 0;
}

int amdsmi_get_gpu_device_uuid(handle h, uint32_t* room, char* uuid) {
    (void)h, (void)room;
    strcpy(uuid, "c4ff74a1-0000-1000-8000-stand-in-0000");
    return 0;
}

int amdsmi_get_violation_status(handle h, uint8_t* seen) {
    (void)h;
    memset(seen, 0, 15 * 8 + 8);
    seen[15 * 8 + 1] = 1;  // at the power cap
    return 0;
}

int amdsmi_get_gpu_process_list(handle h, uint32_t* count, void* seen) {
    (void)h, (void)seen;
    return *count = 0, 10;  // no permission
}
