#pragma once
// Direct3D 12 and DXC, opened at run time. On Windows these are the system's; elsewhere libvkd3d gives the same API
// over Vulkan. The headers come from the Windows SDK or from vkd3d; both are read as one dialect here.
#ifdef __GNUC__
#define WIDL_EXPLICIT_AGGREGATE_RETURNS // else methods that return a struct are called by another convention
#endif
#ifdef _WIN32
#ifndef NOMINMAX
#define NOMINMAX
#endif
#include <d3d12.h>
#include <d3d12sdklayers.h>
#include <dxgi1_4.h>
#else
#define VKD3D_NO_VULKAN_H
#include <vkd3d_windows.h> // first: the other would ask for windows.h
#include <vkd3d_d3d12.h>
#endif
#undef min
#undef max
#undef interface

#include "device/types.h"

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace spy {

/// The identity of an interface: headers and compilers name it in three ways.
template <typename T>
const GUID& iid_of()
{
#ifdef _WIN32
    return __uuidof(T);
#else
    return __vkd3d_uuidof<T>();
#endif
}

/// Owns one reference of a COM object. A forked child leaves those of its parent alone: vkd3d would wait for threads
/// that the child lacks.
template <typename T>
class Com {
public:
    Com() = default;
    explicit Com(T* object) : m_object(object) { }
    Com(const Com& other) : m_object(other.m_object), m_forks(other.m_forks)
    {
        if (m_object && m_forks == fork_count())
            m_object->AddRef();
    }
    Com(Com&& other) noexcept : m_object(std::exchange(other.m_object, nullptr)), m_forks(other.m_forks) { }
    Com& operator=(Com other) noexcept
    {
        std::swap(m_object, other.m_object);
        std::swap(m_forks, other.m_forks);
        return *this;
    }
    ~Com() { reset(); }
    void reset() noexcept
    {
        T* object = std::exchange(m_object, nullptr);
        if (object && m_forks == fork_count())
            object->Release();
        m_forks = fork_count();
    }
    T* detach() { return std::exchange(m_object, nullptr); }
    T* get() const { return m_object; }
    T* operator->() const { return m_object; }
    explicit operator bool() const { return m_object != nullptr; }
    T** put()
    {
        reset();
        return &m_object;
    }
    void** put_void() { return reinterpret_cast<void**>(put()); }

private:
    T* m_object = nullptr;
    uint32_t m_forks = fork_count(); ///< when the object came
};

struct D3D12Functions {
    HRESULT(WINAPI* create_device)(IUnknown* adapter, D3D_FEATURE_LEVEL level, REFIID iid, void** device) = nullptr;
    HRESULT(WINAPI* serialize_root_signature)(const D3D12_ROOT_SIGNATURE_DESC* desc, D3D_ROOT_SIGNATURE_VERSION version,
                                              ID3DBlob** blob, ID3DBlob** error) = nullptr;
    HRESULT(WINAPI* get_debug_interface)(REFIID iid, void** debug) = nullptr; ///< null where there is none
};

/// The entry points; throws spy::Error saying what is missing and where it was looked for.
const D3D12Functions& d3d12_loader();

std::string hresult_text(HRESULT result);
[[noreturn]] void d3d12_fail(HRESULT result, std::string_view what);
/// Throws for every error code: ErrorKind::memory when out of memory, else runtime.
inline void d3d12_check(HRESULT result, const char* what)
{
    if (FAILED(result))
        d3d12_fail(result, what);
}

/// One graphics adapter. `handle` is what create_device takes; null: the only one there is.
struct D3D12Adapter {
    AdapterInfo info;
    Com<IUnknown> handle;
    bool indexes_descriptors = true; ///< kernels may index arrays of descriptors
};
/// Hardware first, software last; throws when Direct3D 12 is missing.
std::vector<D3D12Adapter> d3d12_adapters();

/// Wide text as the API takes it.
std::wstring wide(std::string_view text);

/// What vkd3d has said since the last call (warnings and errors), oldest first; of all devices of the process.
std::vector<std::string> take_d3d12_messages();

// --- DXC

/// HLSL to a signed DXIL container. Throws ErrorKind::slang_compile with the compiler's text when it refuses.
std::string compile_hlsl(std::string_view source, const std::vector<std::string>& arguments, const std::string& label);
/// The same container with its code changed as text, signed. Not on Windows.
std::string changed_dxil(std::string_view code, const std::string& label,
                         const std::function<std::string(std::string_view)>& change);
/// Text of DXIL in which no phi is read by another of its block; each edge must have a block of its own.
std::string with_copies_of_phis(std::string_view code);
/// Version of the compiler; throws when it is missing.
const std::string& dxc_version();

} // namespace spy
