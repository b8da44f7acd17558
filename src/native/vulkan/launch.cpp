// Recording a launch: bindings, uniform bytes, dispatch.
#include "vulkan/recorder.h"

#include "core/error.h"
#include "device/resource.h"

#include <algorithm>
#include <cstring>

namespace spy {

namespace {

void record_push_constants(const VulkanFunctions& vk, VkCommandBuffer commands, const VulkanBindings& bindings,
                           const PushBlock& block, const ArgumentView& arguments)
{
    alignas(16) uint8_t bytes[1024];
    std::vector<uint8_t> large(block.size > sizeof(bytes) ? block.size : 0);
    uint8_t* target = large.empty() ? bytes : large.data();
    copy_scope(target, block.size, arguments, block.scope);
    vk.CmdPushConstants(commands, bindings.pipeline_layout(), block.stages, 0, block.size, target);
}

} // namespace

void VulkanRecorder::write_sets(const VulkanBindings& bindings, const ArgumentView& arguments, UniformBytes& bytes,
                                std::vector<VkDescriptorSet>& sets)
{
    sets.assign(bindings.sets().size(), VK_NULL_HANDLE);
    for (size_t i = 0; i < sets.size(); ++i)
        if (!bindings.sets()[i].sources.empty())
            sets[i] = m_descriptors.write(bindings, bindings.sets()[i], arguments, bytes);
}

void VulkanRecorder::bind_arguments(VkCommandBuffer commands, VkPipelineBindPoint point, const VulkanBindings& bindings,
                                    const std::vector<VkDescriptorSet>& sets, const ArgumentView& arguments,
                                    UniformBytes& bytes)
{
    const VulkanFunctions& vk = m_context.vk;
    static thread_local std::vector<uint32_t> offsets;
    for (size_t i = 0; i < sets.size(); ++i) {
        if (!sets[i])
            continue;
        offsets.clear();
        for (const uint32_t scope : bindings.sets()[i].dynamic_scopes)
            offsets.push_back(uint32_t(bytes.store(arguments, bindings.layout().scopes[scope].size, scope)));
        vk.CmdBindDescriptorSets(commands, point, bindings.pipeline_layout(), uint32_t(i), 1, &sets[i],
                                 uint32_t(offsets.size()), offsets.data());
    }
    for (const PushBlock& block : bindings.pushes()) {
        if (block.spill_set < 0) {
            record_push_constants(vk, commands, bindings, block, arguments);
            continue;
        }
        const uint32_t offset = uint32_t(bytes.store(arguments, block.size, block.scope));
        const VkDescriptorSet set = m_uploads.spill_set(*bytes.page());
        vk.CmdBindDescriptorSets(commands, point, bindings.pipeline_layout(), uint32_t(block.spill_set), 1, &set, 1,
                                 &offset);
    }
}

VkCommandBuffer VulkanRecorder::record_bindings(VulkanKernel& kernel, const ArgumentView& arguments)
{
    const VulkanBindings& bindings = kernel.bindings();
    UniformBytes bytes(m_context, m_uploads, uniform_bytes(m_context, bindings));
    static thread_local std::vector<VkDescriptorSet> sets;
    write_sets(bindings, arguments, bytes, sets);
    VkCommandBuffer commands = m_queue.begin_command();
    CommandList& list = *m_queue.current_list();
    if (list.bound != kernel.pipeline()) {
        m_context.vk.CmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, kernel.pipeline());
        list.bound = kernel.pipeline();
    }
    bind_arguments(commands, VK_PIPELINE_BIND_POINT_COMPUTE, bindings, sets, arguments, bytes);
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
