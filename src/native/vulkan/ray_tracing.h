#pragma once
// Ray-tracing pipelines of the Vulkan backend.
#include "device/ray_tracing.h"
#include "vulkan/pipeline.h"

namespace spy {

class VulkanRayTracingPipeline final : public RayTracingPipeline {
public:
    VulkanRayTracingPipeline(ref<Device> device, const RayTracingPipelineDesc& desc);
    ~VulkanRayTracingPipeline() override { retire(); }
    void release() noexcept override;
    NativeHandle native_handle() const override { return {NativeHandleType::VkPipeline, uint64_t(m_pipeline)}; }

    VkPipeline pipeline() const { return m_pipeline; }
    const VulkanBindings& bindings() const { return m_bindings; }
    /// What stands in a record for an entry point or a hit group; empty for none.
    std::span<const uint8_t> group_handle(const std::string& name) const;

private:
    void create_pipeline(const std::vector<SpirvResult>& code);
    void read_handles(uint32_t group_count);

    VkPipeline m_pipeline = VK_NULL_HANDLE;
    VulkanBindings m_bindings;
    std::map<std::string, uint32_t> m_groups; ///< by the name of the entry point or, with "group:" before, hit group
    std::vector<uint8_t> m_handles;
};

} // namespace spy
