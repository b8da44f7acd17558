#pragma once
// The Vulkan device, put together from its parts.
#include "vulkan/handles.h"
#include "vulkan/host.h"
#include "vulkan/memory.h"
#include "vulkan/recorder.h"

#include "device/backend.h"
#include "device/cuda_interop.h"
#include "device/list_device.h"

namespace spy {

class VulkanDevice final : public ListDevice<VulkanDevice, VulkanKernel> {
public:
    explicit VulkanDevice(const DeviceDesc& desc);
    ~VulkanDevice() override;

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
    DescriptorHandle make_handle(DeviceObject* object, DescriptorHandleType type) override;
    void drop_handle(const DescriptorHandle& handle) noexcept override;
    ref<RayTracingPipeline> create_ray_tracing_pipeline(const RayTracingPipelineDesc& desc) override;
    AccelerationStructureSizes acceleration_structure_sizes(const AccelerationStructureBuildDesc& desc) override;
    ref<AccelerationStructure> create_acceleration_structure(const AccelerationStructureDesc& desc) override;
    uint64_t coop_vec_matrix_size(const CoopVecMatrixDesc& desc) override;
    void convert_coop_vec_matrix(const CoopVecConversion& conversion) override;
    ref<Surface> create_surface(const SurfaceDesc& desc) override; // surface.cpp

    std::array<NativeHandle, 3> native_handles() override;
    std::shared_ptr<void> native_owner() override { return m_context.handle; }
    int cuda_index() const override { return m_interop ? m_interop->device_index() : -1; }
    void sync_to_stream(NativeHandle stream) override;
    void sync_stream_to(NativeHandle stream) override;

    // --- for the classes of this backend
    VulkanContext& context() { return m_context; }
    VulkanMemory& memory() { return m_memory; }
    VulkanUploads& uploads() { return m_uploads; }
    VulkanQueue& queue() { return m_queue; }
    VulkanHandles& handles() { return m_handles; }
    const std::shared_ptr<CudaInterop>& interop() const { return m_interop; }

protected:
    void close_backend() noexcept override;

private:
    friend class ListDevice<VulkanDevice, VulkanKernel>;

    void open_interop();
    CudaInterop& require_interop(const char* what) const;

    VulkanContext m_context;
    VulkanMemory m_memory{*this};
    VulkanUploads m_uploads{m_context, m_memory, m_queue};
    VulkanQueue m_queue{m_context, m_memory, m_uploads};
    VulkanHandles m_handles{m_context, m_queue, m_desc};
    VulkanRecorder m_recorder{m_context, m_queue, m_uploads, m_info};
    VulkanHostAccess m_host{m_context, m_memory, m_queue, m_uploads, m_recorder};
    std::shared_ptr<CudaInterop> m_interop;
};

/// What a device reports of itself (info.cpp).
DeviceInfo vulkan_info(const VulkanContext& context);
CompileTarget vulkan_target(const VulkanContext& context);

} // namespace spy
