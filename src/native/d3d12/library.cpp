#include "d3d12/library.h"

namespace spy {

namespace {

constexpr const char* folder_variable = "SLANGPY_D3D12_PATH";

void* load(const std::string& path, std::string& reasons)
{
#ifdef _WIN32
    if (HMODULE library = LoadLibraryA(path.c_str()))
        return reinterpret_cast<void*>(library);
    reasons += cat("\n  ", path, ": error ", uint32_t(GetLastError()));
#else
    // The libraries of vkd3d look for each other by name, and find what is loaded already.
    if (void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL))
        return library;
    reasons += cat("\n  ", dlerror());
#endif
    return nullptr;
}

} // namespace

SharedLibrary SharedLibrary::open(std::initializer_list<const char*> names, const char* what, const char* hint)
{
    SharedLibrary library;
    std::string reasons;
    const char* folder = std::getenv(folder_variable);
    for (const char* name : names) {
        library.m_name = name;
        if (folder && *folder && (library.m_handle = load(cat(folder, "/", name), reasons)))
            return library;
        if ((library.m_handle = load(name, reasons)))
            return library;
    }
    fail_runtime(what, " is not available: ", hint, "; tried:", reasons);
}

void* SharedLibrary::symbol(const char* name) const
{
#ifdef _WIN32
    return reinterpret_cast<void*>(GetProcAddress(reinterpret_cast<HMODULE>(m_handle), name));
#else
    return dlsym(m_handle, name);
#endif
}

} // namespace spy
