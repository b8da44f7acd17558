// A libcuda.so.1 for tests of the CUDA backend's host side: device memory is host memory, kernels do nothing, and the
// test decides how the device behaves (stand_in_set) and looks at what was asked of it (stand_in_get, stand_in_log).
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace {

using Result = int;
using Pointer = unsigned long long;
using Handle = void*;

std::mutex mutex;
std::map<std::string, long long> settings; // devices, busy, fault, memory, capturing (a stream)
std::map<std::string, std::set<Handle>> live;
std::map<Handle, size_t> sizes;
std::string text;
char contexts[8];

long long setting(const char* name)
{
    std::lock_guard lock(mutex);
    return settings[name];
}
void note(const std::string& what)
{
    std::lock_guard lock(mutex);
    text += what + "\n";
}
std::string name_of(Handle stream) { return std::to_string(reinterpret_cast<uintptr_t>(stream)); }
Result fault() { return Result(setting("fault")); }

std::vector<Handle>& current()
{
    thread_local std::vector<Handle> stack;
    return stack;
}

Result make(const char* kind, Handle* out, size_t size = 8)
{
    std::lock_guard lock(mutex);
    *out = nullptr;
    size_t used = 0;
    for (Handle handle : live["memory"])
        used += sizes[handle];
    if (std::string(kind) == "memory" && settings["memory"] && used + size > size_t(settings["memory"]))
        return 2; // out of memory
    if (posix_memalign(out, 512, size ? size : 1))
        return 2;
    std::memset(*out, 0, size);
    live[kind].insert(*out);
    sizes[*out] = size;
    return 0;
}
Result drop(const char* kind, Handle handle)
{
    std::lock_guard lock(mutex);
    if (!live[kind].erase(handle))
        return 400; // invalid handle: freed twice, or never made
    sizes.erase(handle);
    std::free(handle);
    return 0;
}

std::string last_launch;

} // namespace

#define API extern "C" __attribute__((visibility("default")))

API void stand_in_set(const char* name, long long value)
{
    std::lock_guard lock(mutex);
    settings[name] = value;
}
API long long stand_in_live(const char* kind)
{
    std::lock_guard lock(mutex);
    return (long long)live[kind].size();
}
API const char* stand_in_log()
{
    std::lock_guard lock(mutex);
    static std::string taken;
    taken = std::exchange(text, {});
    return taken.c_str();
}

API Result cuGetExportTable(const void** table, const void*) { *table = nullptr; return 500; } // NVRTC asks
API Result cuInit(unsigned) { return 0; }
API Result cuDriverGetVersion(int* version) { *version = 13000; return 0; }
API Result cuGetErrorName(Result, const char** name) { *name = "STAND_IN_ERROR"; return 0; }
API Result cuGetErrorString(Result, const char** what) { *what = "as the test wished"; return 0; }
API Result cuDeviceGetCount(int* count) { *count = setting("devices") ? int(setting("devices")) : 1; return 0; }
API Result cuDeviceGet(int* device, int index) { *device = index; return 0; }
API Result cuDeviceGetName(char* name, int size, int device) { std::strncpy(name, ("Stand-in " + std::to_string(device)).c_str(), size_t(size)); return 0; }
API Result cuDeviceGetUuid(void* uuid, int device) { std::memset(uuid, 0x70 + device, 16); return 0; }
API Result cuDeviceTotalMem_v2(size_t* size, int) { *size = size_t(1) << 37; return 0; }
API Result cuDeviceGetAttribute(int* value, int which, int)
{
    const std::map<int, int> values = {{1, 1024}, {2, 1024}, {3, 1024}, {4, 64}, {5, 2147483647}, {6, 65535}, {7, 65535}, {10, 32},
                                       {21, 131072}, {22, 131072}, {24, 16384}, {29, 2048}, {52, 32768}, {75, 9}, {115, 1}, {122, 1}};
    const auto found = values.find(which);
    *value = found == values.end() ? 0 : found->second;
    return 0;
}
API Result cuDevicePrimaryCtxRetain(Handle* context, int device) { *context = contexts + device; return 0; }
API Result cuDevicePrimaryCtxRelease_v2(int) { return 0; }
API Result cuCtxGetCurrent(Handle* context) { *context = current().empty() ? nullptr : current().back(); return 0; }
API Result cuCtxSetCurrent(Handle context)
{
    current().empty() ? current().push_back(context) : void(current().back() = context);
    return 0;
}
API Result cuCtxPushCurrent_v2(Handle context) { current().push_back(context); return 0; }
API Result cuCtxPopCurrent_v2(Handle* context)
{
    if (current().empty())
        return 201;
    *context = current().back();
    current().pop_back();
    return 0;
}
API Result cuCtxGetDevice(int* device) { *device = current().empty() ? 0 : int(static_cast<char*>(current().back()) - contexts); return 0; }
API Result cuCtxSynchronize() { return fault(); }
API Result cuMemGetInfo_v2(size_t* available, size_t* total) { *available = 12345; *total = size_t(1) << 37; return 0; }
API Result cuMemAlloc_v2(Pointer* address, size_t size) { return make("memory", reinterpret_cast<Handle*>(address), size); }
API Result cuMemFree_v2(Pointer address) { return drop("memory", Handle(address)); }
API Result cuMemHostAlloc(Handle* address, size_t size, unsigned) { return make("host", address, size); }
API Result cuMemFreeHost(Handle address) { return drop("host", address); }
API Result cuMemHostGetDevicePointer_v2(Pointer* address, Handle host, unsigned) { *address = Pointer(host); return 0; }
API Result cuMemPoolCreate(Handle* pool, const void*) { return make("pool", pool); }
API Result cuMemPoolDestroy(Handle pool) { return drop("pool", pool); }
API Result cuMemPoolSetAttribute(Handle, int, void*) { return 0; }
API Result cuMemPoolGetAttribute(Handle, int, void* value) { *static_cast<uint64_t*>(value) = 0; return 0; }
API Result cuMemPoolTrimTo(Handle, size_t) { note("trim"); return 0; }
API Result cuMemAllocFromPoolAsync(Pointer* address, size_t size, Handle, Handle) { return make("memory", reinterpret_cast<Handle*>(address), size); }
API Result cuMemFreeAsync(Pointer address, Handle) { return drop("memory", Handle(address)); }
API Result cuMemcpyAsync(Pointer to, Pointer from, size_t size, Handle) { std::memmove(Handle(to), Handle(from), size); return fault(); }
API Result cuMemcpyHtoDAsync_v2(Pointer to, const void* from, size_t size, Handle) { std::memcpy(Handle(to), from, size); return fault(); }
API Result cuMemcpyDtoHAsync_v2(Handle to, Pointer from, size_t size, Handle) { std::memcpy(to, Handle(from), size); return fault(); }
API Result cuMemcpy3DAsync_v2(const void*, Handle) { return fault(); }
API Result cuMemsetD8Async(Pointer to, unsigned char value, size_t count, Handle) { std::memset(Handle(to), value, count); return 0; }
API Result cuMemsetD16Async(Pointer, unsigned short, size_t, Handle) { return 0; }
API Result cuMemsetD32Async(Pointer to, unsigned value, size_t count, Handle)
{
    for (size_t i = 0; i < count; ++i)
        reinterpret_cast<uint32_t*>(to)[i] = value;
    return 0;
}
API Result cuMemsetD2D32Async(Pointer, size_t, unsigned, size_t, size_t, Handle) { return 0; }
API Result cuMipmappedArrayCreate(Handle* array, const void*, unsigned) { return make("array", array); }
API Result cuMipmappedArrayGetLevel(Handle* level, Handle array, unsigned) { *level = array; return 0; }
API Result cuMipmappedArrayDestroy(Handle array) { return drop("array", array); }
API Result cuTexObjectCreate(Pointer* object, const void*, const void*, const void*) { return make("texture", reinterpret_cast<Handle*>(object)); }
API Result cuTexObjectDestroy(Pointer object) { return drop("texture", Handle(object)); }
API Result cuSurfObjectCreate(Pointer* object, const void*) { return make("surface", reinterpret_cast<Handle*>(object)); }
API Result cuSurfObjectDestroy(Pointer object) { return drop("surface", Handle(object)); }
API Result cuModuleLoadDataEx(Handle* module, const void*, unsigned, void*, Handle*) { return make("module", module); }
API Result cuModuleUnload(Handle module) { return drop("module", module); }
API Result cuModuleGetFunction(Handle* function, Handle module, const char*) { *function = module; return 0; }
API Result cuModuleGetGlobal_v2(Pointer*, size_t*, Handle, const char*) { return 500; }
API Result cuFuncGetAttribute(int* value, int which, Handle)
{
    *value = which ? 1 : setting("threads") ? int(setting("threads")) : 1024;
    return 0;
}
API Result cuFuncSetAttribute(Handle, int, int) { return 0; }
API Result cuLaunchKernel(Handle, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                          unsigned shared, Handle stream, Handle*, Handle* extra)
{
    note("launch " + name_of(stream));
    std::lock_guard lock(mutex);
    last_launch.clear();
    for (unsigned number : {gx, gy, gz, bx, by, bz, shared})
        last_launch += std::to_string(number) + " ";
    if (extra) // CU_LAUNCH_PARAM_BUFFER_POINTER, bytes, CU_LAUNCH_PARAM_BUFFER_SIZE, size
        last_launch.append(static_cast<const char*>(extra[1]), *static_cast<size_t*>(extra[3]));
    return 0;
}
/// Blocks, threads, shared memory and the parameters' bytes (text, in the tests) of the last launch.
API const char* stand_in_launch() { return last_launch.c_str(); }
API Result cuLaunchHostFunc(Handle, void (*function)(Handle), Handle data) { function(data); return 0; }
API Result cuStreamCreate(Handle* stream, unsigned) { return make("stream", stream); }
API Result cuStreamDestroy_v2(Handle stream) { return drop("stream", stream); }
API Result cuStreamSynchronize(Handle) { return fault(); }
API Result cuStreamWaitEvent(Handle stream, Handle, unsigned) { note("wait " + name_of(stream)); return fault(); }
API Result cuStreamIsCapturing(Handle stream, int* status) { *status = (long long)(stream) == setting("capturing") ? 1 : 0; return 0; }
API Result cuThreadExchangeStreamCaptureMode(int*) { return 0; }
API Result cuStreamWriteValue64_v2(Handle, Pointer address, uint64_t value, unsigned) { *reinterpret_cast<volatile uint64_t*>(address) = value; return 0; }
API Result cuStreamWaitValue64_v2(Handle, Pointer, uint64_t, unsigned) { return 0; }
API Result cuEventCreate(Handle* event, unsigned) { return make("event", event); }
API Result cuEventDestroy_v2(Handle event) { return drop("event", event); }
API Result cuEventRecord(Handle, Handle stream) { note("record " + name_of(stream)); return fault(); }
API Result cuEventQuery(Handle) { return fault() ? fault() : setting("busy") ? 600 : 0; }
API Result cuEventSynchronize(Handle) { return fault(); }
API Result cuEventElapsedTime(float* time, Handle, Handle) { *time = 1; return 0; }
