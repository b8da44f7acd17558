#pragma once
// Render pipelines: the fixed functions in Vulkan's terms.
#include "vulkan/pipeline.h"

namespace spy {

class VulkanRenderPipeline final : public RenderPipeline {
public:
    VulkanRenderPipeline(ref<Device> device, const RenderPipelineDesc& desc);
    ~VulkanRenderPipeline() override { retire(); }
    void release() noexcept override;
    NativeHandle native_handle() const override { return {NativeHandleType::VkPipeline, uint64_t(m_pipeline)}; }

    VkPipeline pipeline() const { return m_pipeline; }
    const VulkanBindings& bindings() const { return m_bindings; }

private:
    void check_support() const;
    void create_pipeline(const std::vector<SpirvResult>& code);

    VkPipeline m_pipeline = VK_NULL_HANDLE;
    VulkanBindings m_bindings;
};

} // namespace spy
