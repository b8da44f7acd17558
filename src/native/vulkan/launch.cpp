// Recording a launch: bindings, uniform bytes, dispatch.
#include "vulkan/recorder.h"

#include "core/error.h"
#include "device/ray_tracing_pass.h"
#include "device/resource.h"

#include <algorithm>

namespace spy {

VkCommandBuffer VulkanRecorder::record_bindings(VulkanKernel& kernel, const ArgumentView& arguments)
{
    const VulkanBindings& bindings = kernel.bindings();
    UniformBytes bytes(m_context, m_uploads, uniform_bytes(m_context, bindings));
    static thread_local std::vector<VkDescriptorSet> sets;
    m_descriptors.write_sets(bindings, arguments, bytes, sets);
    VkCommandBuffer commands = m_queue.begin_command();
    CommandList& list = *m_queue.current_list();
    if (list.bound != kernel.pipeline()) {
        m_context.vk.CmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, kernel.pipeline());
        list.bound = kernel.pipeline();
    }
    m_descriptors.bind(commands, VK_PIPELINE_BIND_POINT_COMPUTE, bindings, sets, arguments, bytes);
    return commands;
}

void VulkanRecorder::record_launch(VulkanKernel& kernel, const std::array<uint32_t, 3>& groups,
                                   const ArgumentView& arguments)
{
    if (!groups[0] || !groups[1] || !groups[2])
        return;
    check_group_counts(m_info, kernel.label(), groups);
    if (kernel.rays()) [[unlikely]] {
        const uint32_t* size = kernel.layout().group_size;
        const std::array<uint32_t, 3> dimensions{groups[0] * size[0], groups[1] * size[1], groups[2] * size[2]};
        check_rays(kernel.device(), kernel.table(), 0, dimensions, kernel.label().c_str());
        check_hit_records(kernel.layout(), kernel.table(), arguments.slots, kernel.label().c_str());
        return record_rays(*kernel.rays(), kernel.table(), 0, dimensions, arguments);
    }
    VkCommandBuffer commands = record_bindings(kernel, arguments);
    m_context.vk.CmdDispatch(commands, groups[0], groups[1], groups[2]);
    m_queue.timeline.note_label(kernel.label());
}

} // namespace spy
