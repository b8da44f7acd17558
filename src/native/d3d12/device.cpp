// Opening and closing a device, and the way from the contract to its parts.
#include "d3d12/device.h"

#include "core/error.h"

namespace spy {

namespace {

std::vector<AdapterInfo> enumerate_adapters()
{
    // Kept for the life of the process: asking opens every driver of the machine.
    static const std::vector<AdapterInfo> adapters = [] {
        std::vector<AdapterInfo> result;
        try {
            for (const D3D12Adapter& adapter : d3d12_adapters())
                if (adapter.indexes_descriptors)
                    result.push_back(adapter.info);
        } catch (const Error&) {
            result.clear(); // no library or driver: the contract asks for an empty list
        }
        return result;
    }();
    return adapters;
}

ref<Device> open_d3d12_device(const DeviceDesc& desc) { return ref<Device>(new D3D12Device(desc)); }

} // namespace

Backend d3d12_backend() { return {DeviceType::d3d12, "d3d12", &enumerate_adapters, &open_d3d12_device}; }

D3D12Device::D3D12Device(const DeviceDesc& desc)
{
    m_desc = desc;
    m_desc.type = DeviceType::d3d12;
    if (desc.enable_cuda_interop)
        fail(ErrorKind::not_implemented,
             "enable_cuda_interop: the d3d12 device shares no memory with CUDA; devices that do: vulkan, cuda");
    try {
        m_context.open(m_desc);
        m_info = d3d12_info(m_context);
        m_target = d3d12_target(m_context);
        m_descriptors.open();
        m_queue.timeline.open();
        m_recorder.open();
    } catch (...) {
        close_backend();
        throw;
    }
    for (int minor = 0; minor <= m_context.features.shader_model - 60; ++minor)
        m_info.capabilities.push_back(cat("sm_6_", minor));
    m_info.capabilities.push_back("hlsl");
}

D3D12Device::~D3D12Device() { close_backend(); }

void D3D12Device::close_backend() noexcept
{
    if (!m_context.is_open())
        return;
    std::lock_guard lock(m_queue.mutex());
    m_queue.timeline.wait_idle();
    m_queue.close();
    m_recorder.close();
    m_uploads.close();
    m_memory.clear();
    m_descriptors.close();
    m_context.close();
}

// --- work

static void refuse_stream(const NativeHandle& stream)
{
    if (stream.type != NativeHandleType::undefined)
        fail(ErrorKind::not_implemented,
             "a CUDA stream was given to a d3d12 device; devices that take one: cuda, vulkan");
}

void D3D12Device::launch(const LaunchDesc& desc)
{
    refuse_stream(desc.stream);
    ListDevice::launch(desc);
}

uint64_t D3D12Device::submit(const SubmitDesc& desc)
{
    refuse_stream(desc.stream);
    return ListDevice::submit(desc);
}

// --- the rest

std::array<NativeHandle, 3> D3D12Device::native_handles()
{
    require_open("native_handles");
    return {NativeHandle{NativeHandleType::D3D12Device, uint64_t(m_context.device.get())}, NativeHandle{},
            NativeHandle{}};
}

} // namespace spy
