// Stands in for NVIDIA's driver library: a throttled H200 with a user on it, and a GPU that has fallen off the bus.
// With -DREFUSES=N the driver refuses everything by that error; with -DDIES it kills the process that asks.
#include <stdlib.h>
#include <string.h>

enum { OK = 0, NOT_SUPPORTED = 3, INSUFFICIENT_SIZE = 7, LOST = 15 };
typedef void* device;
typedef struct { unsigned long long total, free, used; } memory;
typedef struct { unsigned pid; unsigned long long used; unsigned instance, compute; } process;

int nvmlInitWithFlags(unsigned flags) {
    (void)flags;
#ifdef DIES
    abort();
#endif
#ifdef REFUSES
    return REFUSES;
#endif
    return OK;
}

const char* nvmlErrorString(int error) {
    return error == LOST ? "GPU is lost" : error == 18 ? "Driver/library version mismatch" : "Not Supported";
}

int nvmlDeviceGetCount_v2(unsigned* count) {
    *count = 2;
    return OK;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, device* found) {
    *found = (device)1;
    return index ? LOST : OK;
}

int nvmlDeviceGetName(device d, char* name, unsigned room) {
    (void)d;
    strncpy(name, "NVIDIA H200", room);
    return OK;
}

int nvmlDeviceGetUUID(device d, char* uuid, unsigned room) {
    (void)d;
    strncpy(uuid, "GPU-stand-in-0", room);
    return OK;
}

int nvmlDeviceGetCudaComputeCapability(device d, int* major, int* minor) {
    (void)d;
    *major = 9, *minor = 0;
    return OK;
}

int nvmlDeviceGetClockInfo(device d, int kind, unsigned* mhz) {
    (void)d;
    *mhz = kind == 1 ? 1230 : 3201;
    return OK;
}

int nvmlDeviceGetMaxClockInfo(device d, int kind, unsigned* mhz) {
    (void)d;
    *mhz = kind == 1 ? 1980 : 3201;
    return OK;
}

int nvmlDeviceGetCurrentClocksThrottleReasons(device d, unsigned long long* reasons) {
    (void)d;
    *reasons = 0x1 | 0x4 | 0x40;
    return OK;
}

int nvmlDeviceGetTemperature(device d, int sensor, unsigned* celsius) {
    (void)d, (void)sensor;
    *celsius = 87;
    return OK;
}

int nvmlDeviceGetPowerUsage(device d, unsigned* milliwatts) {
    (void)d;
    *milliwatts = 698500;
    return OK;
}

int nvmlDeviceGetEnforcedPowerLimit(device d, unsigned* milliwatts) {
    (void)d, (void)milliwatts;
    return NOT_SUPPORTED;
}

int nvmlDeviceGetMemoryInfo(device d, memory* seen) {
    (void)d;
    seen->total = 150754820096ull, seen->used = 12000000000ull, seen->free = seen->total - seen->used;
    return OK;
}

int nvmlDeviceGetComputeRunningProcesses_v3(device d, unsigned* count, process* seen) {
    (void)d;
    if (!seen || *count < 1) return *count = 1, INSUFFICIENT_SIZE;
    *count = 1;
    seen[0] = (process){1, 11500000000ull, ~0u, ~0u};
    return OK;
}
