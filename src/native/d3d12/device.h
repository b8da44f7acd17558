#pragma once
// The Direct3D 12 device, put together from its parts.
#include "d3d12/host.h"
#include "d3d12/memory.h"
#include "d3d12/recorder.h"

#include "device/backend.h"
#include "device/list_device.h"

namespace spy {

class D3D12Device final : public ListDevice<D3D12Device, D3D12Kernel> {
public:
    explicit D3D12Device(const DeviceDesc& desc);
    ~D3D12Device() override;

    ref<Buffer> create_buffer(const BufferDesc& desc) override;
    ref<Texture> create_texture(const TextureDesc& desc) override;
    ref<TextureView> create_texture_view(Texture* texture, const TextureViewDesc& desc) override;
    ref<Sampler> create_sampler(const SamplerDesc& desc) override;
    ref<Fence> create_fence(uint64_t initial_value, bool shared) override;
    ref<QueryPool> create_query_pool(QueryType type, uint32_t count) override;
    uint32_t format_support(Format format) override;
    std::string compile(const CompileDesc& desc) override;
    std::string compiler_fingerprint() override;
    ref<Kernel> create_kernel(const KernelDesc& desc) override;
    ref<RenderPipeline> create_render_pipeline(const RenderPipelineDesc& desc) override;

    void launch(const LaunchDesc& desc) override;
    uint64_t submit(const SubmitDesc& desc) override;
    std::array<NativeHandle, 3> native_handles() override;
    std::shared_ptr<void> native_owner() override { return std::make_shared<Com<ID3D12Device>>(m_context.device); }

    // --- for the classes of this backend
    D3D12Context& context() { return m_context; }
    D3D12Memory& memory() { return m_memory; }
    D3D12Descriptors& descriptors() { return m_descriptors; }
    D3D12Queue& queue() { return m_queue; }
    void read_queries(D3D12QueryPool& pool, uint32_t index, uint32_t count, uint64_t* ticks)
    {
        m_host.read_queries(pool, index, count, ticks);
    }

protected:
    void close_backend() noexcept override;

private:
    friend class ListDevice<D3D12Device, D3D12Kernel>;

    D3D12Context m_context;
    D3D12Descriptors m_descriptors{m_context};
    D3D12Memory m_memory{*this};
    D3D12Uploads m_uploads{m_memory, m_queue};
    D3D12Queue m_queue{m_context, m_memory, m_uploads, m_descriptors};
    D3D12Recorder m_recorder{m_context, m_queue, m_uploads, m_descriptors, m_memory, m_info};
    D3D12HostAccess m_host{m_memory, m_queue, m_uploads, m_recorder};
};

/// What a device reports of itself (info.cpp).
DeviceInfo d3d12_info(const D3D12Context& context);
CompileTarget d3d12_target(const D3D12Context& context);

inline D3D12Device& device_of(const DeviceObject& object) { return *static_cast<D3D12Device*>(object.device()); }

} // namespace spy
