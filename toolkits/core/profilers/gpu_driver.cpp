// Calls one CUDA or HIP solution on recorded arguments, for a profiler that watches this process.
// Built once a solution, together with its sources: call.h says which arguments are tensors and makes the call.
//
//   driver FOLDER      FOLDER/arguments.txt: one line an argument, `bytes file`, file `-` for what it writes
//
// One call warms the device up; a profiler that records all launches shows it too.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#ifdef __HIP_PLATFORM_AMD__
#include <hip/hip_runtime.h>
#define GPU(name) hip##name
#else
#include <cuda_runtime.h>
#define GPU(name) cuda##name
#endif

#include "call.h"

static void fail(const char* what, const char* name) {
    std::fprintf(stderr, "driver: %s %s\n", what, name);
    std::exit(3);
}

static void checked(GPU(Error_t) code, const char* what) {
    if (code != GPU(Success)) fail(what, GPU(GetErrorString)(code));
}

static void* load(const std::string& path, size_t bytes, bool on_device) {
    std::vector<char> content(bytes ? bytes : 1);
    if (path.back() != '-') {
        std::FILE* file = std::fopen(path.c_str(), "rb");
        if (!file || std::fread(content.data(), 1, bytes, file) != bytes) fail("cannot read", path.c_str());
        std::fclose(file);
    }
    void* memory = nullptr;
    if (!on_device) {
        memory = std::malloc(content.size());
        std::memcpy(memory, content.data(), content.size());
        return memory;
    }
    checked(GPU(Malloc)(&memory, content.size()), "no memory on the device:");
    checked(GPU(Memcpy)(memory, content.data(), content.size(), GPU(MemcpyHostToDevice)), "cannot copy to the device:");
    return memory;
}

static std::vector<void*> load_arguments(const std::string& folder) {
    const std::string list = folder + "/arguments.txt";
    std::FILE* file = std::fopen(list.c_str(), "r");
    if (!file) fail("cannot read", list.c_str());
    std::vector<void*> arguments;
    size_t bytes = 0;
    char name[64];
    while (std::fscanf(file, "%zu %63s", &bytes, name) == 2)
        arguments.push_back(load(folder + "/" + name, bytes, ON_DEVICE[arguments.size()]));
    std::fclose(file);
    return arguments;
}

int main(int count, char** words) {
    if (count != 2) fail("usage:", "driver FOLDER");
    int devices = 0;
    checked(GPU(GetDeviceCount)(&devices), "no device:");
    GPU(Stream_t) stream;
    checked(GPU(StreamCreate)(&stream), "no stream:");
    std::vector<void*> arguments = load_arguments(words[1]);
    for (int round = 0; round < 2; ++round) {
        call_plan(arguments.data(), stream);
        call(arguments.data(), stream);
        checked(GPU(GetLastError)(), "a launch failed:");
        checked(GPU(StreamSynchronize)(stream), "the kernel failed:");
    }
    std::fputs("driver: done\n", stderr);
    return 0;
}
