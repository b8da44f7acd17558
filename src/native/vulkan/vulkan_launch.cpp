// Recording a launch: descriptors, uniform bytes, dispatch.
#include "vulkan/vulkan_backend.h"

#include "core/error.h"
#include "device/resource.h"

#include <algorithm>
#include <cstring>

namespace spy {

namespace {

uint64_t round_up(uint64_t value, uint64_t alignment) { return (value + alignment - 1) / alignment * alignment; }

uint64_t uniform_alignment(const VulkanDevice& device)
{
    return std::max<uint64_t>(device.adapter().properties.limits.minUniformBufferOffsetAlignment, 16);
}

void copy_scope(uint8_t* target, uint64_t size, const ArgumentView& arguments, size_t scope)
{
    const std::span<const uint8_t> bytes =
        scope < arguments.scopes.size() ? arguments.scopes[scope] : std::span<const uint8_t>();
    const uint64_t given = std::min<uint64_t>(bytes.size(), size);
    if (given)
        std::memcpy(target, bytes.data(), given);
    std::memset(target + given, 0, size - given);
}

[[noreturn]] void fail_unknown_format(const std::string& kernel, const std::string& path, const std::string& device,
                                      Format format)
{
    fail_runtime("kernel '", kernel, "': the Vulkan device ", device,
                 " reads writable textures only in a format known when the kernel is compiled: '", path,
                 "' expects 32 bits per channel, what is bound is ", format_name(format),
                 "; add [format(\"...\")] to the parameter, or read it as a Texture");
}

} // namespace

// --- descriptors

VkDescriptorPool VulkanDevice::create_descriptor_pool()
{
    constexpr VkDescriptorPoolSize sizes[] = {
        {VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1024},       {VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER, 256},
        {VK_DESCRIPTOR_TYPE_SAMPLED_IMAGE, 512},         {VK_DESCRIPTOR_TYPE_STORAGE_IMAGE, 256},
        {VK_DESCRIPTOR_TYPE_SAMPLER, 256},               {VK_DESCRIPTOR_TYPE_COMBINED_IMAGE_SAMPLER, 256},
        {VK_DESCRIPTOR_TYPE_UNIFORM_TEXEL_BUFFER, 64},   {VK_DESCRIPTOR_TYPE_STORAGE_TEXEL_BUFFER, 64},
    };
    VkDescriptorPoolCreateInfo info{VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO};
    info.maxSets = 256;
    info.poolSizeCount = uint32_t(std::size(sizes));
    info.pPoolSizes = sizes;
    VkDescriptorPool pool = VK_NULL_HANDLE;
    vk_check(m_vk.CreateDescriptorPool(m_device, &info, nullptr, &pool), "vkCreateDescriptorPool");
    return pool;
}

VkDescriptorSet VulkanDevice::allocate_set(VkDescriptorSetLayout layout)
{
    CommandList& list = open_list();
    VkDescriptorSetAllocateInfo info{VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO};
    info.descriptorSetCount = 1;
    info.pSetLayouts = &layout;
    for (bool fresh = false;; ++list.descriptor_pool) {
        if (list.descriptor_pool == list.descriptor_pools.size()) {
            if (fresh)
                fail_runtime("a kernel has more resources than fit one descriptor pool (1024 buffers, 512 textures)");
            list.descriptor_pools.push_back(create_descriptor_pool());
            fresh = true;
        }
        info.descriptorPool = list.descriptor_pools[list.descriptor_pool];
        VkDescriptorSet set = VK_NULL_HANDLE;
        const VkResult code = m_vk.AllocateDescriptorSets(m_device, &info, &set);
        if (code >= 0)
            return set;
        if (code != VK_ERROR_OUT_OF_POOL_MEMORY && code != VK_ERROR_FRAGMENTED_POOL)
            vk_fail(code, "vkAllocateDescriptorSets");
    }
}

void VulkanDevice::fill_image(VulkanKernel& kernel, const DescriptorSource& source, Object* object,
                              DescriptorData& data)
{
    const SlotLayout& slot = kernel.layout().slots[source.index];
    data.image = {VK_NULL_HANDLE, VK_NULL_HANDLE, VK_IMAGE_LAYOUT_GENERAL};
    if (source.type == VK_DESCRIPTOR_TYPE_COMBINED_IMAGE_SAMPLER) {
        auto* sampler = static_cast<VulkanSampler*>(sampler_of(object));
        data.image.sampler = sampler ? sampler->handle() : default_sampler();
    }
    if (!object) {
        if (!m_features.robustness2.nullDescriptor)
            fail_runtime("kernel '", kernel.label(), "': texture '", slot.path, "' was never set");
        return;
    }
    VulkanTexture* texture = dynamic_cast<VulkanTexture*>(object);
    TextureViewDesc view;
    if (texture)
        view = texture->whole();
    else if (auto* given = dynamic_cast<VulkanTextureView*>(object)) {
        texture = static_cast<VulkanTexture*>(given->texture());
        view = given->desc();
    } else
        fail(ErrorKind::type, "kernel '", kernel.label(), "': '", slot.path, "' takes a texture or a texture view");
    if (source.type == VK_DESCRIPTOR_TYPE_STORAGE_IMAGE)
        view.range.mip_count = 1;
    const Format format = view.format == Format::undefined ? texture->desc().format : view.format;
    if (source.fixed_format != VK_FORMAT_UNDEFINED && source.fixed_format != VkFormat(format_info(format).vk_format))
        fail_unknown_format(kernel.label(), slot.path, m_info.adapter_name, format);
    data.image.imageView = texture->view(view, slot.shape);
}

void VulkanDevice::fill_slot(VulkanKernel& kernel, const DescriptorSource& source, Object* object,
                             DescriptorData& data)
{
    const SlotLayout& slot = kernel.layout().slots[source.index];
    switch (source.type) {
    case VK_DESCRIPTOR_TYPE_STORAGE_BUFFER: {
        if (!object) {
            const bool null = m_features.robustness2.nullDescriptor;
            data.buffer = {null ? VkBuffer(VK_NULL_HANDLE) : m_null_buffer->buffer, 0, VK_WHOLE_SIZE};
            return;
        }
        auto* buffer = dynamic_cast<VulkanBuffer*>(object);
        if (!buffer)
            fail(ErrorKind::type, "kernel '", kernel.label(), "': '", slot.path, "' takes a buffer");
        const uint64_t size = buffer->desc().size;
        if (size > m_adapter->properties.limits.maxStorageBufferRange)
            fail_value("kernel '", kernel.label(), "': the buffer for '", slot.path, "' has ", size, " bytes; ",
                       m_info.adapter_name, " binds ", m_adapter->properties.limits.maxStorageBufferRange,
                       " bytes at most: pass it as a pointer");
        data.buffer = {buffer->handle(), 0, size ? size : VK_WHOLE_SIZE};
        return;
    }
    case VK_DESCRIPTOR_TYPE_UNIFORM_TEXEL_BUFFER:
    case VK_DESCRIPTOR_TYPE_STORAGE_TEXEL_BUFFER: {
        auto* buffer = dynamic_cast<VulkanBuffer*>(object);
        if (object && !buffer)
            fail(ErrorKind::type, "kernel '", kernel.label(), "': '", slot.path, "' takes a buffer");
        if (!buffer && !m_features.robustness2.nullDescriptor)
            fail_runtime("kernel '", kernel.label(), "': buffer '", slot.path, "' was never set");
        if (buffer && source.fixed_format != VK_FORMAT_UNDEFINED
            && source.fixed_format != VkFormat(format_info(buffer->desc().format).vk_format))
            fail_unknown_format(kernel.label(), slot.path, m_info.adapter_name, buffer->desc().format);
        data.view = buffer ? buffer->texel_view() : VkBufferView(VK_NULL_HANDLE);
        return;
    }
    case VK_DESCRIPTOR_TYPE_SAMPLER: {
        auto* sampler = dynamic_cast<VulkanSampler*>(object);
        if (object && !sampler)
            fail(ErrorKind::type, "kernel '", kernel.label(), "': '", slot.path, "' takes a sampler");
        data.image = {sampler ? sampler->handle() : default_sampler(), VK_NULL_HANDLE, VK_IMAGE_LAYOUT_UNDEFINED};
        return;
    }
    default:
        fill_image(kernel, source, object, data);
    }
}

// --- launches

void VulkanDevice::record_push_constants(VkCommandBuffer commands, VulkanKernel& kernel, const ArgumentView& arguments)
{
    alignas(16) uint8_t bytes[1024];
    std::vector<uint8_t> large(kernel.push_size() > sizeof(bytes) ? kernel.push_size() : 0);
    uint8_t* target = large.empty() ? bytes : large.data();
    copy_scope(target, kernel.push_size(), arguments, size_t(kernel.push_scope()));
    m_vk.CmdPushConstants(commands, kernel.pipeline_layout(), VK_SHADER_STAGE_COMPUTE_BIT, 0, kernel.push_size(), target);
}

VkCommandBuffer VulkanDevice::record_bindings(VulkanKernel& kernel, const ArgumentView& arguments)
{
    const std::vector<ScopeLayout>& scopes = kernel.layout().scopes;
    const uint64_t alignment = uniform_alignment(*this);
    uint64_t needed = kernel.spill_set() >= 0 ? round_up(kernel.push_size(), alignment) : 0;
    for (const DescriptorSetPlan& plan : kernel.sets())
        for (const DescriptorSource& source : plan.sources)
            if (source.is_scope)
                needed += round_up(scopes[source.index].size, alignment);
    // One slice for all: a second one could find the list flushed by then.
    UploadSlice slice = needed ? upload_slice(needed, alignment) : UploadSlice{};
    auto store = [&](uint64_t size, size_t scope) {
        const uint64_t offset = slice.offset;
        copy_scope(slice.data, round_up(size, 16), arguments, scope);
        slice.offset += round_up(size, alignment);
        slice.data += round_up(size, alignment);
        return offset;
    };

    static thread_local std::vector<DescriptorData> data;
    static thread_local std::vector<VkDescriptorSet> sets;
    sets.assign(kernel.sets().size(), VK_NULL_HANDLE);
    for (size_t i = 0; i < sets.size(); ++i) {
        const DescriptorSetPlan& plan = kernel.sets()[i];
        if (plan.sources.empty())
            continue;
        data.resize(plan.sources.size());
        for (size_t k = 0; k < plan.sources.size(); ++k) {
            const DescriptorSource& source = plan.sources[k];
            if (source.is_scope) {
                const uint64_t size = scopes[source.index].size;
                data[k].buffer = {slice.page->buffer, store(size, source.index), round_up(size, 16)};
            } else {
                Object* object =
                    source.index < arguments.slots.size() ? arguments.slots[source.index].get() : nullptr;
                fill_slot(kernel, source, object, data[k]);
            }
        }
        sets[i] = allocate_set(plan.layout);
        m_vk.UpdateDescriptorSetWithTemplate(m_device, sets[i], plan.update, data.data());
    }

    VkCommandBuffer commands = begin_command();
    if (m_open->bound != kernel.pipeline()) {
        m_vk.CmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, kernel.pipeline());
        m_open->bound = kernel.pipeline();
    }
    for (size_t i = 0; i < sets.size(); ++i)
        if (sets[i])
            m_vk.CmdBindDescriptorSets(commands, VK_PIPELINE_BIND_POINT_COMPUTE, kernel.pipeline_layout(), uint32_t(i),
                                       1, &sets[i], 0, nullptr);
    if (kernel.push_scope() < 0)
        return commands;
    if (kernel.spill_set() >= 0) {
        const uint32_t offset = uint32_t(store(kernel.push_size(), size_t(kernel.push_scope())));
        const VkDescriptorSet set = spill_set(*slice.page);
        m_vk.CmdBindDescriptorSets(commands, VK_PIPELINE_BIND_POINT_COMPUTE, kernel.pipeline_layout(),
                                   uint32_t(kernel.spill_set()), 1, &set, 1, &offset);
    } else
        record_push_constants(commands, kernel, arguments);
    return commands;
}

void VulkanDevice::record_launch(VulkanKernel& kernel, const std::array<uint32_t, 3>& groups,
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
    m_vk.CmdDispatch(commands, groups[0], groups[1], groups[2]);
    m_last_label = kernel.label();
}

void VulkanDevice::record_indirect(VulkanKernel& kernel, VulkanBuffer& buffer, uint64_t offset,
                                   const ArgumentView& arguments)
{
    VkCommandBuffer commands = record_bindings(kernel, arguments);
    m_vk.CmdDispatchIndirect(commands, buffer.handle(), offset);
    m_last_label = kernel.label();
}

} // namespace spy
