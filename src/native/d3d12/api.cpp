// Opening Direct3D 12 (Windows) or libvkd3d (elsewhere), adapters, errors.
#include "d3d12/api.h"

#include "d3d12/library.h"

#include "core/error.h"

#include <algorithm>
#include <cstdarg>
#include <cstring>
#include <deque>
#include <mutex>

namespace spy {

namespace {

struct MessageList {
    std::mutex mutex;
    std::deque<std::string> messages;
};

MessageList& message_list()
{
    static MessageList* list = new MessageList; // never freed: threads of the driver may speak until the end
    return *list;
}

#ifdef _WIN32

D3D12Functions open_functions()
{
    const SharedLibrary d3d12 = SharedLibrary::open({"d3d12.dll"}, "Direct3D 12", "it is part of Windows 10 and later");
    D3D12Functions functions;
    d3d12.find("D3D12CreateDevice", functions.create_device);
    d3d12.find("D3D12SerializeRootSignature", functions.serialize_root_signature);
    d3d12.find("D3D12GetDebugInterface", functions.get_debug_interface);
    return functions;
}

#else

struct Vkd3d {
    HRESULT(WINAPI* create_device)(IUnknown*, D3D_FEATURE_LEVEL, REFIID, void**, int) = nullptr;
    void* (*physical_device)(ID3D12Device*) = nullptr;
};

Vkd3d& vkd3d()
{
    static Vkd3d functions;
    return functions;
}

HRESULT WINAPI create_vkd3d_device(IUnknown* adapter, D3D_FEATURE_LEVEL level, REFIID iid, void** device)
{
    constexpr int api_version = 20; // VKD3D_API_VERSION_2_0 counts on from there; later libraries take it, too
    return vkd3d().create_device(adapter, level, iid, device, api_version);
}

void on_message(const char* format, va_list arguments)
{
    char text[2048];
    std::vsnprintf(text, sizeof(text), format, arguments);
    std::string line = text;
    while (!line.empty() && line.back() == '\n')
        line.pop_back();
    MessageList& list = message_list();
    const std::lock_guard lock(list.mutex);
    list.messages.push_back(std::move(line));
    if (list.messages.size() > 1024)
        list.messages.pop_front();
}

D3D12Functions open_functions()
{
    const char* hint = "install libvkd3d 2.0 or later, or name its folder in SLANGPY_D3D12_PATH (docs/d3d12.md)";
    // In this order: each needs the one before, and finds it loaded.
    const SharedLibrary shader = SharedLibrary::open({"libvkd3d-shader.so.1"}, "Direct3D 12", hint);
    const SharedLibrary core = SharedLibrary::open({"libvkd3d.so.1"}, "Direct3D 12", hint);
    const SharedLibrary utils = SharedLibrary::open({"libvkd3d-utils.so.1"}, "Direct3D 12", hint);
    D3D12Functions functions;
    utils.find("D3D12CreateDeviceVKD3D", vkd3d().create_device);
    core.find("vkd3d_get_vk_physical_device", vkd3d().physical_device);
    utils.find("D3D12SerializeRootSignature", functions.serialize_root_signature);
    utils.find("D3D12GetDebugInterface", functions.get_debug_interface);
    functions.create_device = &create_vkd3d_device;
    for (auto& [library, name] :
         {std::pair{&shader, "vkd3d_shader_set_log_callback"}, std::pair{&core, "vkd3d_set_log_callback"},
          std::pair{&utils, "vkd3d_utils_set_log_callback"}}) {
        void (*set_callback)(void (*)(const char*, va_list)) = nullptr;
        library->find(name, set_callback);
        set_callback(&on_message);
    }
    return functions;
}

#endif

} // namespace

const D3D12Functions& d3d12_loader()
{
    static const D3D12Functions functions = open_functions();
    return functions;
}

std::vector<std::string> take_d3d12_messages()
{
    MessageList& list = message_list();
    const std::lock_guard lock(list.mutex);
    std::vector<std::string> messages(list.messages.begin(), list.messages.end());
    list.messages.clear();
    return messages;
}

std::wstring wide(std::string_view text)
{
    std::wstring result; // labels and flags: bytes beyond ASCII are replaced
    for (char c : text)
        result += static_cast<unsigned char>(c) < 128 ? wchar_t(c) : L'?';
    return result;
}

// --- errors

std::string hresult_text(HRESULT result)
{
    switch (uint32_t(result)) {
    case 0x80004001: return "E_NOTIMPL";
    case 0x80004002: return "E_NOINTERFACE";
    case 0x80004005: return "E_FAIL";
    case 0x8007000e: return "E_OUTOFMEMORY";
    case 0x80070057: return "E_INVALIDARG";
    case 0x887a0005: return "DXGI_ERROR_DEVICE_REMOVED";
    case 0x887a0006: return "DXGI_ERROR_DEVICE_HUNG";
    case 0x887a0007: return "DXGI_ERROR_DEVICE_RESET";
    }
    char text[16];
    std::snprintf(text, sizeof(text), "0x%08x", uint32_t(result));
    return text;
}

void d3d12_fail(HRESULT result, std::string_view what)
{
    std::string said;
    for (const std::string& message : take_d3d12_messages())
        said += "\n  " + message;
    const ErrorKind kind = uint32_t(result) == 0x8007000e ? ErrorKind::memory : ErrorKind::runtime;
    fail(kind, what, " failed: ", hresult_text(result), said);
}

// --- adapters

#ifdef _WIN32

std::vector<D3D12Adapter> d3d12_adapters()
{
    const D3D12Functions& d3d12 = d3d12_loader();
    const SharedLibrary dxgi = SharedLibrary::open({"dxgi.dll"}, "Direct3D 12", "it is part of Windows 10 and later");
    HRESULT(WINAPI * create_factory)(UINT flags, REFIID iid, void** factory) = nullptr;
    dxgi.find("CreateDXGIFactory2", create_factory);
    Com<IDXGIFactory4> factory;
    d3d12_check(create_factory(0, iid_of<IDXGIFactory4>(), factory.put_void()), "CreateDXGIFactory2");
    std::vector<D3D12Adapter> adapters;
    Com<IDXGIAdapter1> adapter;
    for (UINT i = 0; SUCCEEDED(factory->EnumAdapters1(i, adapter.put())); ++i) {
        DXGI_ADAPTER_DESC1 desc;
        if (FAILED(adapter->GetDesc1(&desc)))
            continue;
        if (FAILED(d3d12.create_device(adapter.get(), D3D_FEATURE_LEVEL_11_0, iid_of<ID3D12Device>(), nullptr)))
            continue;
        D3D12Adapter found;
        for (const wchar_t* c = desc.Description; *c; ++c)
            found.info.name += *c < 128 ? char(*c) : '?';
        found.info.vendor_id = desc.VendorId;
        found.info.device_id = desc.DeviceId;
        std::memcpy(found.info.luid.data(), &desc.AdapterLuid, sizeof(desc.AdapterLuid));
        found.info.is_software = (desc.Flags & DXGI_ADAPTER_FLAG_SOFTWARE) != 0;
        found.handle = Com<IUnknown>(adapter.get());
        adapter->AddRef();
        adapters.push_back(std::move(found));
    }
    std::stable_sort(adapters.begin(), adapters.end(),
                     [](const auto& a, const auto& b) { return a.info.is_software < b.info.is_software; });
    return adapters;
}

#else

namespace {

/// The head of VkPhysicalDeviceProperties, which is all that is read of it; the rest is room.
struct VulkanProperties {
    uint32_t api_version, driver_version, vendor_id, device_id, device_type;
    char name[256];
    uint8_t rest[4096];
};

/// VkPhysicalDeviceDescriptorIndexingFeatures, chained to VkPhysicalDeviceFeatures2.
struct IndexingFeatures {
    uint32_t type = 1000161001;
    void* next = nullptr;
    uint32_t flags[32] = {}; ///< 20 of them
};
struct VulkanFeatures2 {
    uint32_t type = 1000059000;
    void* next = nullptr;
    uint32_t flags[64] = {}; ///< 55 of them
};
constexpr size_t storage_texel_nonuniform = 9, storage_texel_update_after_bind = 15;

} // namespace

std::vector<D3D12Adapter> d3d12_adapters()
{
    // vkd3d opens the first Vulkan device, which VK_DRIVER_FILES may choose; only a device tells which one that is.
    Com<ID3D12Device> device;
    d3d12_check(
        d3d12_loader().create_device(nullptr, D3D_FEATURE_LEVEL_11_0, iid_of<ID3D12Device>(), device.put_void()),
        "opening vkd3d's device");
    const SharedLibrary vulkan = SharedLibrary::open({"libvulkan.so.1"}, "Vulkan", "vkd3d needs it");
    void (*get_properties)(void*, VulkanProperties*) = nullptr;
    vulkan.find("vkGetPhysicalDeviceProperties", get_properties);
    VulkanProperties properties{};
    get_properties(vkd3d().physical_device(device.get()), &properties);
    D3D12Adapter adapter;
    adapter.info.name = std::string(properties.name) + " (vkd3d)";
    adapter.info.vendor_id = properties.vendor_id;
    adapter.info.device_id = properties.device_id;
    const LUID luid = device->GetAdapterLuid();
    std::memcpy(adapter.info.luid.data(), &luid, sizeof(luid));
    void (*get_features)(void*, VulkanFeatures2*) = nullptr;
    vulkan.find("vkGetPhysicalDeviceFeatures2", get_features);
    IndexingFeatures indexing;
    VulkanFeatures2 features;
    features.next = &indexing;
    get_features(vkd3d().physical_device(device.get()), &features);
    adapter.indexes_descriptors = indexing.flags[storage_texel_nonuniform] &&
        indexing.flags[storage_texel_update_after_bind];
    constexpr uint32_t cpu_device = 4; // VK_PHYSICAL_DEVICE_TYPE_CPU
    adapter.info.is_software = properties.device_type == cpu_device;
    std::vector<D3D12Adapter> adapters;
    adapters.push_back(std::move(adapter));
    return adapters;
}

#endif

} // namespace spy
