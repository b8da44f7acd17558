// Opening an adapter.
#include "d3d12/context.h"

#include "core/error.h"

#include <atomic>

namespace spy {

namespace {

std::atomic<bool> layer_missing{false};

void enable_debug_layer()
{
    Com<ID3D12Debug> debug;
    layer_missing = FAILED(d3d12_loader().get_debug_interface(iid_of<ID3D12Debug>(), debug.put_void()));
    if (!layer_missing)
        debug->EnableDebugLayer();
}

template <typename T>
void query(ID3D12Device* device, D3D12_FEATURE feature, T& data)
{
    if (FAILED(device->CheckFeatureSupport(feature, &data, sizeof(data))))
        data = {}; // an older runtime, which does not have it
}

D3D12Features features_of(ID3D12Device* device)
{
    D3D12Features features;
    query(device, D3D12_FEATURE_D3D12_OPTIONS, features.options);
    query(device, D3D12_FEATURE_D3D12_OPTIONS1, features.options1);
    query(device, D3D12_FEATURE_D3D12_OPTIONS4, features.options4);
    // A runtime refuses models that it does not know: ask from the newest on.
    for (int model : {0x66, 0x65, 0x64, 0x63, 0x62, 0x61, 0x60}) {
        D3D12_FEATURE_DATA_SHADER_MODEL data{D3D_SHADER_MODEL(model)};
        if (FAILED(device->CheckFeatureSupport(D3D12_FEATURE_SHADER_MODEL, &data, sizeof(data))))
            continue;
        features.shader_model = (int(data.HighestShaderModel) >> 4) * 10 + (int(data.HighestShaderModel) & 15);
        break;
    }
    features.native_16bit = features.shader_model >= 62 && features.options4.Native16BitShaderOpsSupported;
    return features;
}

} // namespace

bool d3d12_layer_missing() { return layer_missing; }

void D3D12Context::open(const DeviceDesc& desc)
{
    if (desc.enable_debug_layers)
        enable_debug_layer();
    std::vector<D3D12Adapter> adapters = d3d12_adapters();
    if (adapters.empty())
        fail_runtime("no adapter with Direct3D 12 was found; install a graphics driver (docs/d3d12.md)");
    const int index = std::max(desc.adapter_index, 0);
    if (size_t(index) >= adapters.size())
        fail_value("adapter_index is ", index, ", but there are ", adapters.size(), " Direct3D 12 adapters");
    adapter = std::move(adapters[size_t(index)]);
    const NativeHandle& given = desc.existing_device_handles[0];
    if (given.value && given.type != NativeHandleType::D3D12Device)
        fail_value("existing_device_handles of a Direct3D 12 device must be an ID3D12Device");
    if (given.value) { // `adapter_index` says whose it is
        device = Com<ID3D12Device>(reinterpret_cast<ID3D12Device*>(given.value));
        device->AddRef();
    } else
        d3d12_check(d3d12_loader().create_device(adapter.handle.get(), D3D_FEATURE_LEVEL_11_0, iid_of<ID3D12Device>(),
                                                 device.put_void()),
                    "D3D12CreateDevice");
    features = features_of(device.get());
    if (features.shader_model < 60)
        fail_runtime(name(), " has no shader model 6.0: install a newer driver");
    // Tensors are reached through a table of all memory that kernels index.
    if (features.options.ResourceBindingTier < D3D12_RESOURCE_BINDING_TIER_3 || !adapter.indexes_descriptors)
        fail_runtime(
            name(), " cannot index descriptors in kernels; ",
            "with vkd3d this takes a Vulkan driver with VK_EXT_descriptor_indexing (of Mesa's llvmpipe: 23.1 or ",
            "later), which VK_DRIVER_FILES can name (docs/d3d12.md)");
    if (!features.options1.Int64ShaderOps)
        fail_runtime(name(),
                     " has no 64-bit integers in shaders; install a newer driver, or choose another adapter with "
                     "'adapter_index'");
    D3D12_COMMAND_QUEUE_DESC queue_desc{};
    queue_desc.Type = D3D12_COMMAND_LIST_TYPE_DIRECT;
    d3d12_check(device->CreateCommandQueue(&queue_desc, iid_of<ID3D12CommandQueue>(), queue.put_void()),
                "CreateCommandQueue");
    UINT64 frequency = 0;
    if (SUCCEEDED(queue->GetTimestampFrequency(&frequency)))
        timestamp_frequency = frequency;
}

void D3D12Context::close() noexcept
{
    queue.reset();
    device.reset();
}

D3D12_FEATURE_DATA_FORMAT_SUPPORT D3D12Context::format_support(Format format) const
{
    D3D12_FEATURE_DATA_FORMAT_SUPPORT data{};
    data.Format = DXGI_FORMAT(format_info(format).dxgi_format);
    if (data.Format == DXGI_FORMAT_UNKNOWN ||
        FAILED(device->CheckFeatureSupport(D3D12_FEATURE_FORMAT_SUPPORT, &data, sizeof(data)))) {
        data.Support1 = D3D12_FORMAT_SUPPORT1_NONE;
        data.Support2 = D3D12_FORMAT_SUPPORT2_NONE;
    }
    return data;
}

uint32_t D3D12Context::sample_counts(Format format) const
{
    uint32_t counts = 1;
    for (uint32_t count = 2; count <= 16; count *= 2) {
        D3D12_FEATURE_DATA_MULTISAMPLE_QUALITY_LEVELS data{};
        data.Format = DXGI_FORMAT(format_info(format).dxgi_format);
        data.SampleCount = count;
        if (SUCCEEDED(device->CheckFeatureSupport(D3D12_FEATURE_MULTISAMPLE_QUALITY_LEVELS, &data, sizeof(data))) &&
            data.NumQualityLevels)
            counts |= count;
    }
    return counts;
}

void D3D12Context::set_name(ID3D12Object* object, const std::string& label) const
{
    if (object && !label.empty())
        object->SetName(wide(label).c_str());
}

} // namespace spy
