#include "cuda/api.h"

#include <algorithm>
#include <filesystem>
#include <mutex>

#ifdef _WIN32
#define WIN32_LEAN_AND_MEAN
#ifndef NOMINMAX
#define NOMINMAX
#endif
#include <windows.h>
#else
#include <dlfcn.h>
#include <link.h>
#endif

namespace spy {

namespace fs = std::filesystem;

namespace {

// Libraries stay open until the process ends: drivers and NVRTC do not survive being unloaded.
#ifdef _WIN32
void* open_library(const std::string& path, bool)
{
    return reinterpret_cast<void*>(
        LoadLibraryExA(path.c_str(), nullptr, fs::path(path).is_absolute() ? LOAD_WITH_ALTERED_SEARCH_PATH : 0));
}
void* find_symbol(void* library, const char* name)
{
    return reinterpret_cast<void*>(GetProcAddress(reinterpret_cast<HMODULE>(library), name));
}
std::string open_error() { return cat("Windows error ", GetLastError()); }
constexpr const char* driver_names[] = {"nvcuda.dll"};
#else
void* open_library(const std::string& path, bool global)
{
    return dlopen(path.c_str(), RTLD_NOW | (global ? RTLD_GLOBAL : RTLD_LOCAL));
}
void* find_symbol(void* library, const char* name) { return dlsym(library, name); }
std::string open_error()
{
    const char* text = dlerror();
    return text ? text : "unknown error";
}
constexpr const char* driver_names[] = {"libcuda.so.1", "/usr/lib/wsl/lib/libcuda.so.1",
                                        "/usr/local/nvidia/lib64/libcuda.so.1"};
#endif

struct DriverState {
    CudaApi api;
    bool ok = false;
    std::string why;
};

void load_driver(DriverState& state)
{
    void* library = nullptr;
    for (const char* name : driver_names)
        if (!library)
            library = open_library(name, false);
    if (!library) {
        state.why = cat("the NVIDIA driver library ", driver_names[0], " was not found (", open_error(),
                        "): install the NVIDIA driver");
        return;
    }
    const char* missing = nullptr;
#define X(name, symbol, required, args)                                                                                \
    state.api.name = reinterpret_cast<decltype(state.api.name)>(find_symbol(library, symbol));                         \
    if (required && !state.api.name)                                                                                   \
        missing = symbol;
    SPY_CUDA_FUNCTIONS(X)
#undef X
    if (missing) {
        state.why = cat("the NVIDIA driver is too old: it lacks ", missing,
                        "; version 11.2 (driver 460) or later is needed");
        return;
    }
    if (CUresult result = state.api.cuInit(0)) {
        state.why = cat("cuInit failed: ", state.api.text(result));
        return;
    }
    state.api.cuDriverGetVersion(&state.api.driver_version);
    state.ok = true;
}

const DriverState& driver_state()
{
    static const DriverState state = [] {
        DriverState loaded;
        load_driver(loaded);
        return loaded;
    }();
    return state;
}

// ---------------------------------------------------------------------------------------------------------- NVRTC

std::mutex nvrtc_mutex;
std::vector<std::string> nvrtc_paths;

bool starts_with(const std::string& text, std::string_view prefix)
{
    return text.compare(0, prefix.size(), prefix) == 0;
}

#ifdef _WIN32
bool is_nvrtc_name(const std::string& name)
{
    return starts_with(name, "nvrtc64_") && name.find("alt") == std::string::npos && name.ends_with(".dll");
}
bool is_builtins_name(const std::string& name)
{
    return starts_with(name, "nvrtc-builtins64_") && name.find("alt") == std::string::npos;
}
#else
bool is_nvrtc_name(const std::string& name) { return starts_with(name, "libnvrtc.so"); }
bool is_builtins_name(const std::string& name) { return starts_with(name, "libnvrtc-builtins.so"); }
#endif

/// Files of a folder that `matches` accepts, newest version first.
std::vector<std::string> list_libraries(const fs::path& folder, bool (*matches)(const std::string&))
{
    std::vector<std::string> found;
    std::error_code error;
    for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error))
        if (matches(it->path().filename().string()))
            found.push_back(it->path().string());
    std::sort(found.begin(), found.end(), std::greater<>());
    return found;
}

#ifndef _WIN32
int collect_loaded(dl_phdr_info* info, size_t, void* data)
{
    if (info->dlpi_name && is_nvrtc_name(fs::path(info->dlpi_name).filename().string()))
        static_cast<std::vector<std::string>*>(data)->push_back(info->dlpi_name);
    return 0;
}
#endif

std::vector<std::string> loaded_nvrtcs()
{
    std::vector<std::string> found;
#ifdef _WIN32
    for (const char* name : {"nvrtc64_130_0.dll", "nvrtc64_120_0.dll", "nvrtc64_112_0.dll"})
        if (HMODULE module = GetModuleHandleA(name)) {
            char path[MAX_PATH] = {};
            GetModuleFileNameA(module, path, MAX_PATH);
            found.push_back(path);
        }
#else
    dl_iterate_phdr(collect_loaded, &found);
#endif
    return found;
}

std::vector<std::string> nvrtc_candidates()
{
    std::vector<std::string> files = loaded_nvrtcs();
    std::vector<std::string> folders = nvrtc_paths;
#ifndef _WIN32
    folders.push_back("/usr/local/cuda");
#endif
    for (const std::string& folder : folders)
        for (const char* sub : {"", "lib", "lib64", "bin", "bin/x64", "targets/x86_64-linux/lib"})
            for (std::string& file : list_libraries(fs::path(folder) / sub, is_nvrtc_name))
                files.push_back(std::move(file));
#ifdef _WIN32
    for (const char* name : {"nvrtc64_130_0.dll", "nvrtc64_120_0.dll", "nvrtc64_112_0.dll"})
#else
    for (const char* name : {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2", "libnvrtc.so"})
#endif
        files.push_back(name);
    return files;
}

bool load_nvrtc(const std::string& path, Nvrtc& nvrtc, std::string& tried)
{
    fs::path folder = fs::path(path).parent_path();
    // NVRTC looks for its builtins by bare name, which only works when they are loaded already.
    if (!folder.empty())
        for (const std::string& builtins : list_libraries(folder, is_builtins_name))
            open_library(builtins, true);
    void* library = open_library(path, false);
    if (!library) {
        tried += cat("\n  ", path, ": ", open_error());
        return false;
    }
    const char* missing = nullptr;
#define X(name, required, result, args)                                                                                \
    nvrtc.name = reinterpret_cast<decltype(nvrtc.name)>(find_symbol(library, #name));                                  \
    if (required && !nvrtc.name)                                                                                       \
        missing = #name;
    SPY_NVRTC_FUNCTIONS(X)
#undef X
    if (missing) {
        tried += cat("\n  ", path, ": too old, it lacks ", missing);
        return false;
    }
#ifndef _WIN32
    if (folder.empty())
        if (Dl_info info; dladdr(reinterpret_cast<void*>(nvrtc.nvrtcVersion), &info) && info.dli_fname)
            folder = fs::path(info.dli_fname).parent_path();
#endif
    nvrtc.path = path;
    nvrtc.folder = folder.string();
    nvrtc.nvrtcVersion(&nvrtc.major, &nvrtc.minor);
    int count = 0;
    if (nvrtc.nvrtcGetNumSupportedArchs && nvrtc.nvrtcGetSupportedArchs && !nvrtc.nvrtcGetNumSupportedArchs(&count)) {
        nvrtc.architectures.resize(size_t(count));
        nvrtc.nvrtcGetSupportedArchs(nvrtc.architectures.data());
    }
    return true;
}

Nvrtc open_nvrtc()
{
    const CudaApi* driver = CudaApi::find();
    int driver_major = driver ? driver->driver_version / 1000 : 0;
    std::string tried;
    Nvrtc newer;
    for (const std::string& path : nvrtc_candidates()) {
        Nvrtc nvrtc;
        if (!load_nvrtc(path, nvrtc, tried))
            continue;
        // A driver runs code of its own major version and older ones only.
        if (!driver_major || nvrtc.major <= driver_major)
            return nvrtc;
        if (newer.path.empty())
            newer = nvrtc;
    }
    if (!newer.path.empty())
        return newer;
    fail_runtime("NVRTC, the run-time compiler of CUDA, was not found. Install it with 'pip install nvidia-cuda-nvrtc' "
                 "(CUDA 12: nvidia-cuda-nvrtc-cu12), or set CUDA_HOME to a CUDA toolkit. Tried:",
                 tried);
}

} // namespace

const CudaApi* CudaApi::find(std::string* why)
{
    const DriverState& state = driver_state();
    if (!state.ok && why)
        *why = state.why;
    return state.ok ? &state.api : nullptr;
}

const CudaApi& CudaApi::get()
{
    std::string why;
    if (const CudaApi* api = find(&why))
        return *api;
    fail_runtime("CUDA is not available: ", why);
}

std::string CudaApi::text(CUresult result) const
{
    const char* name = nullptr;
    const char* description = nullptr;
    cuGetErrorName(result, &name);
    cuGetErrorString(result, &description);
    return cat(name ? name : "unknown CUDA error", " (", result, "): ", description ? description : "no description");
}

const Nvrtc& Nvrtc::get()
{
    static std::unique_ptr<Nvrtc> nvrtc;
    std::lock_guard lock(nvrtc_mutex);
    if (!nvrtc)
        nvrtc = std::make_unique<Nvrtc>(open_nvrtc());
    return *nvrtc;
}

std::string Nvrtc::find_include(const std::string& header) const
{
    std::vector<fs::path> roots;
    if (!folder.empty()) {
        fs::path package = fs::path(folder).parent_path();
        roots.insert(roots.end(), {package, package / ".." / "cuda_runtime", package / ".." / ".." / ".."});
    }
    {
        std::lock_guard lock(nvrtc_mutex);
        for (const std::string& path : nvrtc_paths)
            roots.insert(roots.end(),
                         {fs::path(path), fs::path(path) / "..", fs::path(path) / ".." / ".." / "cuda_runtime"});
    }
#ifndef _WIN32
    roots.push_back("/usr/local/cuda");
#endif
    std::error_code error;
    for (const fs::path& root : roots)
        for (const char* sub : {"include", "targets/x86_64-linux/include", ""})
            if (fs::exists(root / sub / header, error))
                return fs::weakly_canonical(root / sub, error).string();
    return {};
}

void set_nvrtc_search_paths(std::vector<std::string> folders)
{
    std::lock_guard lock(nvrtc_mutex);
    nvrtc_paths = std::move(folders);
}

} // namespace spy
