#pragma once
// What goes on a command list: launches with their descriptors (launch.cpp), render passes (render_pass.cpp),
// copies, fills, clears, queries and markers (transfer.cpp). The caller holds the device's lock.
#include "vulkan/descriptors.h"

namespace spy {

/// The copy between a texture and memory that its format allows; `what` names the operation in messages.
/// `row_pitch` 0 = tightly packed.
VkBufferImageCopy image_copy(const VulkanTexture& texture, uint32_t layer, uint32_t mip, Offset3 offset, Extent3 extent,
                             uint64_t buffer_offset, uint64_t row_pitch, const char* what);

class VulkanRecorder {
public:
    VulkanRecorder(VulkanContext& context, VulkanQueue& queue, VulkanUploads& uploads, const DeviceInfo& info)
        : m_context(context),
          m_queue(queue),
          m_uploads(uploads),
          m_info(info),
          m_descriptors(context, queue, uploads, info)
    {
    }
    void open() { m_descriptors.open(); }
    void close() noexcept { m_descriptors.close(); }

    void record(const command::Dispatch& command);
    void record(const command::DispatchIndirect& command);
    void record(const command::CopyBuffer& command);
    void record(const command::FillBuffer& command);
    void record(const command::UploadBuffer& command);
    void record(const command::CopyTexture& command);
    void record(const command::CopyTextureToBuffer& command);
    void record(const command::CopyBufferToTexture& command);
    void record(const command::UploadTexture& command);
    void record(const command::ClearTexture& command);
    void record(const command::WriteTimestamp& command);
    void record(const command::ResolveQuery& command);
    void record(const command::Barrier& command);
    void record(const command::DebugMarker& command);
    void record(const command::Callback&) { } // the queue runs it
    void record(const command::ClearDepthStencil& command);
    void record(const command::RenderPass& command);
    void record(const command::BuildAccelerationStructure& command);
    void record(const command::CopyAccelerationStructure& command);
    void record(const command::QueryAccelerationStructures& command);
    void record(const command::DispatchRays& command);
    void record(const command::ConvertCoopVecMatrices& command);
    /// While somebody measures, between two timestamps.
    void record_timed(Device& device, const Command& command);
    void record_launch(VulkanKernel& kernel, const std::array<uint32_t, 3>& groups, const ArgumentView& arguments);
    void record_texture_upload(VulkanTexture& texture, uint32_t layer, uint32_t mip, Offset3 offset, Extent3 extent,
                               const void* data, uint64_t size);

private:
    void record_rays(const RayTracingPipeline& pipeline, const ShaderTable& table, uint32_t ray_gen_index,
                     const std::array<uint32_t, 3>& dimensions, const ArgumentView& arguments);
    VkCommandBuffer record_bindings(VulkanKernel& kernel, const ArgumentView& arguments);

    VulkanContext& m_context;
    VulkanQueue& m_queue;
    VulkanUploads& m_uploads;
    const DeviceInfo& m_info;
    VulkanDescriptors m_descriptors;
};

} // namespace spy
