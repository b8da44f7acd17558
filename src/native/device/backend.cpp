#include "device/backend.h"

#include "core/error.h"

#include <algorithm>

namespace spy {

namespace {

constexpr const char* type_names[] = {"automatic", "d3d12", "vulkan", "metal", "cpu", "cuda", "wgpu", "null"};

/// What is tried where the caller has no wish; the null device runs nothing, so it is never chosen.
#ifdef _WIN32
constexpr DeviceType automatic_order[] = {DeviceType::cuda, DeviceType::d3d12, DeviceType::vulkan, DeviceType::cpu};
#else // Direct3D 12 stands on Vulkan here
constexpr DeviceType automatic_order[] = {DeviceType::cuda, DeviceType::vulkan, DeviceType::cpu};
#endif

std::string openable_types()
{
    std::string text;
    for (const Backend& backend : backends())
        if (!backend.enumerate().empty())
            text += (text.empty() ? "" : ", ") + std::string(backend.name);
    return text;
}

std::string luid_text(const std::array<uint8_t, 16>& luid)
{
    static const char digits[] = "0123456789abcdef";
    std::string text;
    for (uint8_t byte : luid) {
        text += digits[byte >> 4];
        text += digits[byte & 15];
    }
    return text;
}

int adapter_of_luid(const Backend& backend, const DeviceDesc& desc)
{
    const std::vector<AdapterInfo> adapters = backend.enumerate();
    std::string known;
    for (size_t i = 0; i < adapters.size(); ++i) {
        if (adapters[i].luid == desc.adapter_luid)
            return int(i);
        known += cat("\n  ", luid_text(adapters[i].luid), "  ", adapters[i].name);
    }
    fail_runtime("no ", backend.name, " adapter has the LUID ", luid_text(desc.adapter_luid),
                 "; adapters:", known.empty() ? " none" : known);
}

ref<Device> open(const Backend& backend, DeviceDesc desc)
{
    desc.type = backend.type;
    if (desc.has_adapter_luid)
        desc.adapter_index = adapter_of_luid(backend, desc);
    ref<Device> device = backend.create(desc);
    return desc.enable_rhi_validation || desc.enable_print ? create_validation_device(std::move(device)) : device;
}

/// Null when the type cannot be had here; `reasons` then says why.
ref<Device> try_open(DeviceType type, DeviceDesc desc, std::string& reasons)
{
    const Backend* backend = find_backend(type);
    if (!backend)
        return {};
    const std::vector<AdapterInfo> adapters = backend->enumerate();
    if (adapters.empty())
        return {};
    if ((type == DeviceType::vulkan || type == DeviceType::d3d12) && !desc.has_adapter_luid && desc.adapter_index < 0) {
        // A software driver is slower than the CPU device: taken only when asked for by type.
        auto hardware = std::find_if(adapters.begin(), adapters.end(), [](auto& a) { return !a.is_software; });
        if (hardware == adapters.end())
            return {};
        desc.adapter_index = int(hardware - adapters.begin());
    }
    try {
        return open(*backend, desc);
    } catch (const Error& error) {
        reasons += cat("\n  ", backend->name, ": ", error.what());
        return {};
    }
}

} // namespace

std::span<const Backend> backends()
{
    static const Backend rows[] = {
        cpu_backend(),    null_backend(),
#if SPY_HAS_CUDA
        cuda_backend(),
#endif
#if SPY_HAS_VULKAN
        vulkan_backend(),
#endif
#if SPY_HAS_D3D12
        d3d12_backend(),
#endif
    };
    return rows;
}

const Backend* find_backend(DeviceType type)
{
    for (const Backend& backend : backends())
        if (backend.type == type)
            return &backend;
    return nullptr;
}

const char* device_type_name(DeviceType type) { return type_names[size_t(type)]; }

ref<Device> create_device(const DeviceDesc& desc)
{
    if (desc.type == DeviceType::automatic) {
        std::string reasons;
        for (DeviceType type : automatic_order)
            if (ref<Device> device = try_open(type, desc, reasons))
                return device;
        fail_runtime("no device could be opened:", reasons.empty() ? " this build has no backend for it" : reasons);
    }
    if (desc.type == DeviceType::metal || desc.type == DeviceType::wgpu)
        fail(ErrorKind::not_implemented, "DeviceType.", device_type_name(desc.type),
             " is not implemented; use one of: ", openable_types());
    const Backend* backend = find_backend(desc.type);
    if (!backend)
        fail_runtime("cannot open a ", device_type_name(desc.type), " device: this build of slangpy has no ",
                     device_type_name(desc.type), " backend; device types that can be opened here: ", openable_types());
    try {
        return open(*backend, desc);
    } catch (const Error& error) {
        throw Error(error.kind(),
                    cat("cannot open a ", backend->name, " device: ", error.what(),
                        "; device types that can be opened here: ", openable_types()));
    }
}

std::string unsupported_feature_message(std::string_view function, std::string_view feature, DeviceType type,
                                        std::string_view devices_that_can)
{
    return cat("function '", function, "' uses ", feature, ", which the ", device_type_name(type),
               " device cannot run; devices that can: ", devices_that_can);
}

} // namespace spy
