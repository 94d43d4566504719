// A stand-in for a CUDA or HIP driver on a machine without a GPU: memory is the host's, each stream is a thread, and
// events read the host's clock. It lets everything that asks a driver run for real; no figure of it is a GPU's.
#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace {

using Work = std::function<void()>;
enum Status {
    SUCCESS = 0,
    INVALID_VALUE = 1,
    OUT_OF_MEMORY = 2,
    INVALID_DEVICE = 101,
    INVALID_IMAGE = 200,
    INVALID_CONTEXT = 201,
    INVALID_HANDLE = 400,
    NOT_FOUND = 500,
    CAPTURE_UNSUPPORTED = 900,
    CAPTURE_UNJOINED = 904,
    ILLEGAL_STATE = 401,
};
constexpr size_t TOTAL = size_t{2} << 30, L2 = size_t{8} << 20;

std::mutex memory_lock;
std::map<char*, size_t> blocks;
size_t taken = 0;

struct Graph {
    std::vector<Work> nodes;
};

// Idle, it does what it is asked at once; a host function, and all that comes behind one, is done by its thread.
class Stream {
public:
    explicit Stream(bool waits_for_default) : blocking(waits_for_default), thread([this] { serve(); }) {}
    ~Stream() {
        {
            std::lock_guard guard(lock);
            ended = true;
        }
        changed.notify_all();
        thread.join();
    }
    void put(Work work, bool later = false) {
        std::unique_lock guard(lock);
        if (capture) {
            capture->nodes.push_back(std::move(work));
            return;
        }
        if (!later && queue.empty() && !busy) {
            work();
            return;
        }
        queue.push_back(std::move(work));
        guard.unlock();
        changed.notify_all();
    }
    void wait() {
        std::unique_lock guard(lock);
        changed.wait(guard, [this] { return queue.empty() && !busy; });
    }
    std::shared_ptr<Graph> capture;
    bool joined_again = false;
    const bool blocking;

private:
    void serve() {
        std::unique_lock guard(lock);
        while (true) {
            changed.wait(guard, [this] { return ended || !queue.empty(); });
            if (queue.empty()) return;
            Work work = std::move(queue.front());
            queue.pop_front();
            busy = true;
            guard.unlock();
            work();
            guard.lock();
            busy = false;
            changed.notify_all();
        }
    }
    std::mutex lock;
    std::condition_variable changed;
    std::deque<Work> queue;
    bool busy = false, ended = false;
    std::thread thread;
};

struct Event {
    std::mutex lock;
    std::condition_variable changed;
    Stream* captured_on = nullptr;
    int64_t at_ns = 0;
    uint64_t asked = 0, passed = 0;
};

std::mutex streams_lock;
std::set<Stream*> streams;

Stream* made(bool blocking) {
    auto* stream = new Stream(blocking);
    std::lock_guard guard(streams_lock);
    streams.insert(stream);
    return stream;
}

std::vector<Stream*> living() {
    std::lock_guard guard(streams_lock);
    return {streams.begin(), streams.end()};
}

// The default stream waits for the streams that know it, and they for it: here by being done when it returns.
void by_default(const Work& work) {
    for (Stream* stream : living())
        if (stream->blocking) stream->wait();
    work();
}

int put(void* stream, Work work, bool later = false) {
    if (stream)
        static_cast<Stream*>(stream)->put(std::move(work), later);
    else
        by_default(work);
    return SUCCESS;
}

int64_t now_ns() {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

bool known(const void* address, size_t count) {
    std::lock_guard guard(memory_lock);
    auto block = blocks.upper_bound(static_cast<char*>(const_cast<void*>(address)));
    if (block == blocks.begin()) return false;
    --block;
    return static_cast<const char*>(address) + count <= block->first + block->second;
}

thread_local void* current = nullptr;
int context = 0;

}  // namespace

#define API extern "C" __attribute__((visibility("default"))) int

API cuInit(unsigned) { return SUCCESS; }
API cuDeviceGetCount(int* count) { return *count = 1, SUCCESS; }
API cuDeviceGet(int* device, int index) { return *device = index, index ? INVALID_DEVICE : SUCCESS; }
API cuDeviceGetName(char* name, int size, int) {
    strncpy(name, "kernel-lab stand-in (no GPU)", static_cast<size_t>(size));
    return SUCCESS;
}
API cuDeviceTotalMem_v2(size_t* bytes, int) { return *bytes = TOTAL, SUCCESS; }
API cuDeviceGetAttribute(int* value, int which, int) {
    const std::map<int, int> figures = {{13, 1000000}, {16, 4}, {38, static_cast<int>(L2)}, {75, 9}, {76, 0}};
    const auto found = figures.find(which);
    if (found == figures.end()) return INVALID_VALUE;
    return *value = found->second, SUCCESS;
}
API cuDevicePrimaryCtxRetain(void** made, int device) { return *made = &context, device ? INVALID_DEVICE : SUCCESS; }
API cuCtxSetCurrent(void* wanted) { return current = wanted, SUCCESS; }
API cuCtxSynchronize() {
    if (!current) return INVALID_CONTEXT;
    for (Stream* stream : living()) stream->wait();
    return SUCCESS;
}
API cuCtxResetPersistingL2Cache() { return current ? SUCCESS : INVALID_CONTEXT; }

API cuMemGetInfo_v2(size_t* free, size_t* total) {
    std::lock_guard guard(memory_lock);
    return *free = TOTAL - taken, *total = TOTAL, SUCCESS;
}
API cuMemAlloc_v2(void** address, size_t count) {
    std::lock_guard guard(memory_lock);
    if (taken + count > TOTAL) return OUT_OF_MEMORY;
    void* memory = mmap(nullptr, count, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return OUT_OF_MEMORY;
    blocks[static_cast<char*>(memory)] = count;
    taken += count;
    return *address = memory, SUCCESS;
}
API cuMemFree_v2(void* address) {
    cuCtxSynchronize();
    std::lock_guard guard(memory_lock);
    const auto found = blocks.find(static_cast<char*>(address));
    if (found == blocks.end()) return INVALID_VALUE;
    munmap(address, found->second);
    taken -= found->second;
    blocks.erase(found);
    return SUCCESS;
}
API cuMemcpyHtoD_v2(void* to, const void* from, size_t count) {
    if (!known(to, count)) return INVALID_VALUE;
    return put(nullptr, [=] { memcpy(to, from, count); });
}
API cuMemcpyDtoH_v2(void* to, const void* from, size_t count) {
    if (!known(from, count)) return INVALID_VALUE;
    return put(nullptr, [=] { memcpy(to, from, count); });
}
API cuMemcpyDtoDAsync_v2(void* to, const void* from, size_t count, void* stream) {
    if (!known(to, count) || !known(from, count)) return INVALID_VALUE;
    return put(stream, [=] { memcpy(to, from, count); });
}
API cuMemsetD8Async(void* to, unsigned char byte, size_t count, void* stream) {
    if (!known(to, count)) return INVALID_VALUE;
    return put(stream, [=] { memset(to, byte, count); });
}

API cuStreamCreate(void** stream, unsigned flags) { return *stream = made(!(flags & 1)), SUCCESS; }
API cuStreamDestroy_v2(void* stream) {
    {
        std::lock_guard guard(streams_lock);
        if (!streams.erase(static_cast<Stream*>(stream))) return INVALID_HANDLE;
    }
    delete static_cast<Stream*>(stream);
    return SUCCESS;
}
API cuStreamSynchronize(void* stream) {
    if (stream)
        static_cast<Stream*>(stream)->wait();
    else
        by_default([] {});
    return SUCCESS;
}
API cuStreamWaitEvent(void* stream, void* event, unsigned) {
    auto *waited = static_cast<Event*>(event);
    auto* waiting = static_cast<Stream*>(stream);
    if (Stream* there = waited->captured_on; there && waiting) {
        // An event of a capture draws the stream that waits for it into the capture, or brings one back.
        if (!waiting->capture) waiting->joined_again = false;
        waiting->capture = there->capture;
        there->joined_again = true;
        return SUCCESS;
    }
    uint64_t which;
    {
        std::lock_guard guard(waited->lock);
        which = waited->asked;
    }
    const Work wait = [=] {
        std::unique_lock guard(waited->lock);
        waited->changed.wait(guard, [=] { return waited->passed >= which; });
    };
    return put(stream, wait, true);
}
API cuLaunchHostFunc(void* stream, void (*function)(void*), void* data) {
    return put(stream, [=] { function(data); }, true);
}

API cuEventCreate(void** event, unsigned) { return *event = new Event, SUCCESS; }
API cuEventDestroy_v2(void* event) { return delete static_cast<Event*>(event), SUCCESS; }
API cuEventRecord(void* event, void* stream) {
    auto *recorded = static_cast<Event*>(event);
    auto* on = static_cast<Stream*>(stream);
    if (on && on->capture) return recorded->captured_on = on, SUCCESS;
    recorded->captured_on = nullptr;
    uint64_t which;
    {
        std::lock_guard guard(recorded->lock);
        which = ++recorded->asked;
    }
    return put(stream, [=] {
        {
            std::lock_guard guard(recorded->lock);
            recorded->at_ns = now_ns();
            recorded->passed = which;
        }
        recorded->changed.notify_all();
    });
}
API cuEventSynchronize(void* event) {
    auto* waited = static_cast<Event*>(event);
    std::unique_lock guard(waited->lock);
    waited->changed.wait(guard, [=] { return waited->passed >= waited->asked; });
    return SUCCESS;
}
API cuEventElapsedTime(float* ms, void* start, void* stop) {
    auto *first = static_cast<Event*>(start), *last = static_cast<Event*>(stop);
    if (!first->passed || !last->passed) return INVALID_HANDLE;
    return *ms = static_cast<float>(static_cast<double>(last->at_ns - first->at_ns) / 1e6), SUCCESS;
}

API cuStreamBeginCapture_v2(void* stream, int) {
    if (!stream) return CAPTURE_UNSUPPORTED;
    static_cast<Stream*>(stream)->capture = std::make_shared<Graph>();
    return SUCCESS;
}
API cuStreamEndCapture(void* stream, void** graph) {
    const std::shared_ptr<Graph> captured = static_cast<Stream*>(stream)->capture;
    if (!captured) return ILLEGAL_STATE;
    bool whole = true;
    for (Stream* other : living())
        if (other->capture == captured) {
            whole = whole && (other == stream || other->joined_again);
            other->capture.reset();
        }
    if (!whole) return CAPTURE_UNJOINED;
    return *graph = new Graph(*captured), SUCCESS;
}
API cuGraphInstantiateWithFlags(void** executable, void* graph, unsigned long long) {
    return *executable = new Graph(*static_cast<Graph*>(graph)), SUCCESS;
}
API cuGraphLaunch(void* executable, void* stream) {
    auto* graph = static_cast<Graph*>(executable);
    return put(stream, [=] {
        for (const Work& node : graph->nodes) node();
    }, true);
}
API cuGraphDestroy(void* graph) { return delete static_cast<Graph*>(graph), SUCCESS; }
API cuGraphExecDestroy(void* graph) { return cuGraphDestroy(graph); }

// A module is a shared library for the host; a kernel is a function of it that takes the arguments' addresses, once.
API cuModuleLoadData(void** module, const void* image) {
    const auto* header = static_cast<const unsigned char*>(image);
    if (memcmp(header, "\177ELF\2", 5)) return INVALID_IMAGE;
    uint64_t sections;
    uint16_t size, count;
    memcpy(&sections, header + 40, 8);
    memcpy(&size, header + 58, 2);
    memcpy(&count, header + 60, 2);
    const int file = memfd_create("module", 0);
    const size_t whole = sections + size_t{size} * count;
    if (file < 0 || write(file, image, whole) != static_cast<ssize_t>(whole)) return OUT_OF_MEMORY;
    *module = dlopen(("/proc/self/fd/" + std::to_string(file)).c_str(), RTLD_NOW | RTLD_LOCAL);
    close(file);
    return *module ? SUCCESS : INVALID_IMAGE;
}
API cuModuleUnload(void* module) { return dlclose(module) ? INVALID_HANDLE : SUCCESS; }
API cuModuleGetFunction(void** function, void* module, const char* name) {
    return (*function = dlsym(module, name)) ? SUCCESS : NOT_FOUND;
}
API cuLaunchKernel(
    void* function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void* stream, void** arguments, void**
) {
    return put(stream, [=] { reinterpret_cast<void (*)(void**)>(function)(arguments); });
}

API cuGetErrorName(int status, const char** name) {
    switch (status) {
        case INVALID_VALUE: return *name = "CUDA_ERROR_INVALID_VALUE", SUCCESS;
        case OUT_OF_MEMORY: return *name = "CUDA_ERROR_OUT_OF_MEMORY", SUCCESS;
        case INVALID_CONTEXT: return *name = "CUDA_ERROR_INVALID_CONTEXT", SUCCESS;
        case INVALID_IMAGE: return *name = "CUDA_ERROR_INVALID_IMAGE", SUCCESS;
        case CAPTURE_UNJOINED: return *name = "CUDA_ERROR_STREAM_CAPTURE_UNJOINED", SUCCESS;
        case NOT_FOUND: return *name = "CUDA_ERROR_NOT_FOUND", SUCCESS;
        default: return *name = "CUDA_ERROR_OF_THE_STAND_IN", SUCCESS;
    }
}

// HIP's names for the same, so that the other half of the driver layer runs too.
API hipInit(unsigned flags) { return cuInit(flags); }
API hipGetDeviceCount(int* count) { return cuDeviceGetCount(count); }
API hipDeviceGetName(char* name, int size, int device) { return cuDeviceGetName(name, size, device); }
API hipDeviceTotalMem(size_t* bytes, int device) { return cuDeviceTotalMem_v2(bytes, device); }
API hipDeviceGetAttribute(int* value, int which, int) {
    const std::map<int, int> figures = {{5, 1000000}, {63, 4}, {19, static_cast<int>(L2)}, {23, 9}, {61, 4}};
    const auto found = figures.find(which);
    if (found == figures.end()) return INVALID_VALUE;
    return *value = found->second, SUCCESS;
}
API hipGetDevicePropertiesR0600(char* properties, int) {
    memset(properties, 0, 2048);
    return strcpy(properties + 1160, "gfx942:sramecc+:xnack-"), SUCCESS;
}
API hipSetDevice(int device) { return current = &context, device ? INVALID_DEVICE : SUCCESS; }
API hipDeviceSynchronize() { return cuCtxSynchronize(); }
API hipMemGetInfo(size_t* free, size_t* total) { return cuMemGetInfo_v2(free, total); }
API hipMalloc(void** address, size_t count) { return cuMemAlloc_v2(address, count); }
API hipFree(void* address) { return cuMemFree_v2(address); }
API hipMemcpyHtoD(void* to, const void* from, size_t count) { return cuMemcpyHtoD_v2(to, from, count); }
API hipMemcpyDtoH(void* to, const void* from, size_t count) { return cuMemcpyDtoH_v2(to, from, count); }
API hipMemcpyDtoDAsync(void* to, const void* from, size_t n, void* s) { return cuMemcpyDtoDAsync_v2(to, from, n, s); }
API hipMemsetD8Async(void* to, unsigned char byte, size_t n, void* s) { return cuMemsetD8Async(to, byte, n, s); }
API hipStreamCreateWithFlags(void** stream, unsigned flags) { return cuStreamCreate(stream, flags); }
API hipStreamDestroy(void* stream) { return cuStreamDestroy_v2(stream); }
API hipEventCreateWithFlags(void** event, unsigned flags) { return cuEventCreate(event, flags); }
API hipEventDestroy(void* event) { return cuEventDestroy_v2(event); }
API hipEventRecord(void* event, void* stream) { return cuEventRecord(event, stream); }
API hipEventElapsedTime(float* ms, void* start, void* stop) { return cuEventElapsedTime(ms, start, stop); }
API hipStreamBeginCapture(void* stream, int mode) { return cuStreamBeginCapture_v2(stream, mode); }
API hipStreamEndCapture(void* stream, void** graph) { return cuStreamEndCapture(stream, graph); }
API hipGraphInstantiateWithFlags(void** e, void* g, unsigned long long f) { return cuGraphInstantiateWithFlags(e, g, f); }
API hipGraphLaunch(void* executable, void* stream) { return cuGraphLaunch(executable, stream); }
API hipGraphDestroy(void* graph) { return cuGraphDestroy(graph); }
API hipGraphExecDestroy(void* graph) { return cuGraphExecDestroy(graph); }
API hipModuleLoadData(void** module, const void* image) { return cuModuleLoadData(module, image); }
API hipModuleUnload(void* module) { return cuModuleUnload(module); }
API hipModuleGetFunction(void** f, void* module, const char* name) { return cuModuleGetFunction(f, module, name); }
API hipModuleLaunchKernel(
    void* f, unsigned a, unsigned b, unsigned c, unsigned x, unsigned y, unsigned z, unsigned shared, void* s, void** p, void** e
) {
    return cuLaunchKernel(f, a, b, c, x, y, z, shared, s, p, e);
}
extern "C" __attribute__((visibility("default"))) const char* hipGetErrorName(int status) {
    const char* name = nullptr;
    cuGetErrorName(status, &name);
    return name;
}
