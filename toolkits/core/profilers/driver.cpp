// Calls one kernel on recorded arguments, for a profiler that watches this process.
// Built once a task: call.h declares the function and says how argument n of the list becomes its parameter.
//
//   driver LIBRARY FOLDER      FOLDER/arguments.txt: one line an argument, `bytes file`, file `-` for what it writes
//
// The profiler counts inside kernel_lab_measured_call only. A timed call finds its arguments as warm as the caches hold
// them, so each is touched before; a whole call more would double the time, which is long under a simulator.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <string>
#include <sys/mman.h>
#include <vector>

#include "call.h"

static void fail(const char* what, const char* name) {
    std::fprintf(stderr, "driver: %s %s\n", what, name);
    std::exit(3);
}

// As the judge maps them: a kernel that writes to its input dies here too.
static void* inputs_are_read_only(void* memory, [[maybe_unused]] size_t bytes) {
#ifdef KERNEL_LAB_READ_ONLY
    void* copy = mmap(nullptr, bytes ? bytes : 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (copy == MAP_FAILED) fail("no memory for", "an input");
    std::memcpy(copy, memory, bytes);
    std::free(memory);
    mprotect(copy, bytes ? bytes : 1, PROT_READ);
    return copy;
#else
    return memory;
#endif
}

static void* load(const std::string& path, size_t bytes) {
    void* memory = nullptr;  // not a byte more than asked for: a sanitizer watches what lies behind it
    if (posix_memalign(&memory, 64, bytes ? bytes : 1)) fail("no memory for", path.c_str());
    std::memset(memory, 0, bytes);  // also what touches the cache lines: a read of the file is invisible to a simulator
    if (path.back() == '-') return memory;
    std::FILE* file = std::fopen(path.c_str(), "rb");
    if (!file || std::fread(memory, 1, bytes, file) != bytes) fail("cannot read", path.c_str());
    std::fclose(file);
    return inputs_are_read_only(memory, bytes);
}

static std::vector<void*> load_arguments(const std::string& folder) {
    const std::string list = folder + "/arguments.txt";
    std::FILE* file = std::fopen(list.c_str(), "r");
    if (!file) fail("cannot read", list.c_str());
    std::vector<void*> arguments;
    size_t bytes = 0;
    char name[64];
    while (std::fscanf(file, "%zu %63s", &bytes, name) == 2) arguments.push_back(load(folder + "/" + name, bytes));
    std::fclose(file);
    return arguments;
}

extern "C" __attribute__((noinline, noipa)) void kernel_lab_measured_call(Kernel* kernel, void** arguments) {
    call(kernel, arguments);
    asm volatile("" ::: "memory");  // no tail call: the profiler must see this function return
}

int main(int count, char** words) {
    if (count != 3) fail("usage:", "driver LIBRARY FOLDER");
    void* library = dlopen(words[1], RTLD_NOW | RTLD_LOCAL);
    if (!library) fail("cannot load the kernel:", dlerror());
    Kernel* kernel = reinterpret_cast<Kernel*>(dlsym(library, KERNEL_NAME));
    if (!kernel) fail("the library does not define", KERNEL_NAME);
    std::vector<void*> arguments = load_arguments(words[2]);
    if (*PLAN_NAME) {
        void* plan = dlsym(library, PLAN_NAME);
        if (!plan) fail("the library does not define", PLAN_NAME);
        call_plan(plan, arguments.data());
    }
    kernel_lab_measured_call(kernel, arguments.data());
    std::fputs("driver: done\n", stderr);
    return 0;
}
