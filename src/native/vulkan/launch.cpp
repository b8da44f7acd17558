// Recording a launch: bindings, uniform bytes, dispatch.
#include "vulkan/recorder.h"

#include "core/error.h"
#include "device/resource.h"

#include <algorithm>
#include <cstring>

namespace spy {

namespace {

void record_push_constants(const VulkanFunctions& vk, VkCommandBuffer commands, const VulkanKernel& kernel,
                           const ArgumentView& arguments)
{
    alignas(16) uint8_t bytes[1024];
    std::vector<uint8_t> large(kernel.push_size() > sizeof(bytes) ? kernel.push_size() : 0);
    uint8_t* target = large.empty() ? bytes : large.data();
    copy_scope(target, kernel.push_size(), arguments, size_t(kernel.push_scope()));
    vk.CmdPushConstants(commands, kernel.pipeline_layout(), VK_SHADER_STAGE_COMPUTE_BIT, 0, kernel.push_size(), target);
}

} // namespace

VkCommandBuffer VulkanRecorder::record_bindings(VulkanKernel& kernel, const ArgumentView& arguments)
{
    UniformBytes bytes(m_context, m_uploads, kernel, arguments);
    static thread_local std::vector<VkDescriptorSet> sets;
    sets.assign(kernel.sets().size(), VK_NULL_HANDLE);
    for (size_t i = 0; i < sets.size(); ++i)
        if (!kernel.sets()[i].sources.empty())
            sets[i] = m_descriptors.write(kernel, kernel.sets()[i], arguments, bytes);

    const VulkanFunctions& vk = m_context.vk;
    VkCommandBuffer commands = m_queue.begin_command();
    CommandList& list = *m_queue.current_list();
    if (list.bound != kernel.pipeline()) {
        vk.CmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, kernel.pipeline());
        list.bound = kernel.pipeline();
    }
    for (size_t i = 0; i < sets.size(); ++i)
        if (sets[i])
            vk.CmdBindDescriptorSets(commands, VK_PIPELINE_BIND_POINT_COMPUTE, kernel.pipeline_layout(), uint32_t(i), 1,
                                     &sets[i], 0, nullptr);
    if (kernel.push_scope() < 0)
        return commands;
    if (kernel.spill_set() >= 0) {
        const uint32_t offset = uint32_t(bytes.store(kernel.push_size(), size_t(kernel.push_scope())));
        const VkDescriptorSet set = m_uploads.spill_set(*bytes.page());
        vk.CmdBindDescriptorSets(commands, VK_PIPELINE_BIND_POINT_COMPUTE, kernel.pipeline_layout(),
                                 uint32_t(kernel.spill_set()), 1, &set, 1, &offset);
    } else
        record_push_constants(vk, commands, kernel, arguments);
    return commands;
}

void VulkanRecorder::record_launch(VulkanKernel& kernel, const std::array<uint32_t, 3>& groups,
                                   const ArgumentView& arguments)
{
    if (!groups[0] || !groups[1] || !groups[2])
        return;
    const auto& limit = m_info.limits.max_compute_dispatch_thread_groups;
    if (groups[0] > limit[0] || groups[1] > limit[1] || groups[2] > limit[2])
        fail_value("kernel '", kernel.label(), "': ", groups[0], " x ", groups[1], " x ", groups[2],
                   " thread groups are more than ", m_info.adapter_name, " allows (", limit[0], " x ", limit[1], " x ",
                   limit[2], ")");
    VkCommandBuffer commands = record_bindings(kernel, arguments);
    m_context.vk.CmdDispatch(commands, groups[0], groups[1], groups[2]);
    m_queue.timeline.note_label(kernel.label());
}

} // namespace spy
