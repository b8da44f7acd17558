#pragma once
// Kernels of the Vulkan backend: SPIR-V made fit for the device, and their pipelines.
#include "vulkan/bindings.h"
#include "vulkan/spirv/spirv.h"

#include "device/ray_tracing.h"

namespace spy {

/// How the code of an entry point is made fit for a device.
SpirvOptions spirv_options(VulkanDevice& owner, const VulkanBindings& bindings, const EntryPoint& entry);
/// The caller destroys it.
VkShaderModule create_shader_module(const VulkanContext& context, const std::vector<uint32_t>& code);

class VulkanKernel final : public Kernel {
public:
    VulkanKernel(ref<Device> device, const KernelDesc& desc);
    ~VulkanKernel() override { retire(); }
    void release() noexcept override;
    NativeHandle native_handle() const override { return {NativeHandleType::VkPipeline, uint64_t(m_pipeline)}; }

    VkPipeline pipeline() const { return m_pipeline; }
    const VulkanBindings& bindings() const { return m_bindings; }
    const RayTracingPipeline* rays() const { return m_rays.get(); } ///< null: it computes
    const ShaderTable& table() const { return *m_table; }           ///< of its rays

private:
    void create_pipeline(const SpirvResult& spirv);

    ref<RayTracingPipeline> m_rays;
    ref<ShaderTable> m_table;

    VkPipeline m_pipeline = VK_NULL_HANDLE;
    VulkanBindings m_bindings;
};

} // namespace spy
