// Descriptor sets of launches.
#include "vulkan/acceleration.h"
#include "vulkan/descriptors.h"

#include "core/align.h"
#include "core/error.h"
#include "device/resource.h"

#include <algorithm>
#include <cstring>

namespace spy {

namespace {

uint64_t uniform_alignment(const VulkanContext& context)
{
    return std::max<uint64_t>(context.adapter->properties.limits.minUniformBufferOffsetAlignment, 16);
}

[[noreturn]] void fail_unknown_format(const std::string& kernel, const std::string& path, const std::string& device,
                                      Format format)
{
    fail_runtime("kernel '", kernel, "': the Vulkan device ", device,
                 " reads writable textures only in a format known when the kernel is compiled: '", path,
                 "' expects 32 bits per channel, what is bound is ", format_name(format),
                 "; add [format(\"...\")] to the parameter, or read it as a Texture");
}

VkDescriptorPool create_descriptor_pool(const VulkanContext& context)
{
    std::vector<VkDescriptorPoolSize> sizes = {
        {VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1024},        {VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER, 256},
        {VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER_DYNAMIC, 256}, {VK_DESCRIPTOR_TYPE_SAMPLED_IMAGE, 512},
        {VK_DESCRIPTOR_TYPE_STORAGE_IMAGE, 256},          {VK_DESCRIPTOR_TYPE_SAMPLER, 256},
        {VK_DESCRIPTOR_TYPE_COMBINED_IMAGE_SAMPLER, 256}, {VK_DESCRIPTOR_TYPE_UNIFORM_TEXEL_BUFFER, 64},
        {VK_DESCRIPTOR_TYPE_STORAGE_TEXEL_BUFFER, 64},
    };
    if (context.has_acceleration())
        sizes.push_back({VK_DESCRIPTOR_TYPE_ACCELERATION_STRUCTURE_KHR, 64});
    VkDescriptorPoolCreateInfo info{VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO};
    info.maxSets = 256;
    info.poolSizeCount = uint32_t(sizes.size());
    info.pPoolSizes = sizes.data();
    VkDescriptorPool pool = VK_NULL_HANDLE;
    vk_check(context.vk.CreateDescriptorPool(context.device, &info, nullptr, &pool), "vkCreateDescriptorPool");
    return pool;
}

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

uint64_t uniform_bytes(const VulkanContext& context, const VulkanBindings& kernel)
{
    const uint64_t alignment = uniform_alignment(context);
    uint64_t needed = 0;
    for (const PushBlock& block : kernel.pushes())
        needed += block.spill_set >= 0 ? round_up(block.size, alignment) : 0;
    for (const DescriptorSetLayout& set : kernel.sets())
        for (const DescriptorSource& source : set.sources)
            if (source.is_scope)
                needed += round_up(kernel.layout().scopes[source.index].size, alignment);
    return needed;
}

UniformBytes::UniformBytes(const VulkanContext& context, VulkanUploads& uploads, uint64_t needed)
    : m_alignment(uniform_alignment(context))
{
    if (needed)
        m_slice = uploads.slice(needed, m_alignment);
}

uint64_t UniformBytes::store(const ArgumentView& arguments, uint64_t size, size_t scope)
{
    const uint64_t offset = m_slice.offset;
    copy_scope(m_slice.data, round_up(size, 16), arguments, scope);
    m_slice.offset += round_up(size, m_alignment);
    m_slice.data += round_up(size, m_alignment);
    return offset;
}

UploadSlice UniformBytes::take(uint64_t size, uint64_t alignment)
{
    const uint64_t begin = round_up(m_slice.offset, alignment), end = round_up(begin + size, m_alignment);
    const UploadSlice taken{m_slice.page, begin, m_slice.data + (begin - m_slice.offset)};
    m_slice.data += end - m_slice.offset;
    m_slice.offset = end;
    return taken;
}

void VulkanDescriptors::open()
{
    m_null_buffer = m_uploads.create_page(4096);
    std::memset(m_null_buffer->allocation.mapped, 0, 4096);
}

void VulkanDescriptors::close() noexcept
{
    if (m_null_buffer)
        m_uploads.destroy_page(m_null_buffer);
    m_null_buffer = nullptr;
    m_context.vk.DestroySampler(m_context.device, m_default_sampler, nullptr);
}

VkSampler VulkanDescriptors::default_sampler()
{
    std::lock_guard lock(m_queue.mutex());
    if (!m_default_sampler) {
        VkSamplerCreateInfo info{VK_STRUCTURE_TYPE_SAMPLER_CREATE_INFO};
        info.magFilter = info.minFilter = VK_FILTER_LINEAR;
        info.mipmapMode = VK_SAMPLER_MIPMAP_MODE_LINEAR;
        info.maxLod = VK_LOD_CLAMP_NONE;
        vk_check(m_context.vk.CreateSampler(m_context.device, &info, nullptr, &m_default_sampler), "vkCreateSampler");
    }
    return m_default_sampler;
}

VkDescriptorSet VulkanDescriptors::allocate_set(VkDescriptorSetLayout layout)
{
    CommandList& list = m_queue.open_list();
    VkDescriptorSetAllocateInfo info{VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO};
    info.descriptorSetCount = 1;
    info.pSetLayouts = &layout;
    for (bool fresh = false;; ++list.descriptor_pool) {
        if (list.descriptor_pool == list.descriptor_pools.size()) {
            if (fresh)
                fail_runtime("a kernel has more resources than fit one descriptor pool (1024 buffers, 512 textures); "
                             "pass fewer, or tensors and pointers, which take none");
            list.descriptor_pools.push_back(create_descriptor_pool(m_context));
            fresh = true;
        }
        info.descriptorPool = list.descriptor_pools[list.descriptor_pool];
        VkDescriptorSet set = VK_NULL_HANDLE;
        const VkResult code = m_context.vk.AllocateDescriptorSets(m_context.device, &info, &set);
        if (code >= 0)
            return set;
        if (code != VK_ERROR_OUT_OF_POOL_MEMORY && code != VK_ERROR_FRAGMENTED_POOL)
            vk_fail(code, "vkAllocateDescriptorSets");
    }
}

void VulkanDescriptors::fill_image(const VulkanBindings& kernel, const DescriptorSource& source, Object* object,
                                   DescriptorData& data)
{
    const SlotLayout& slot = kernel.layout().slots[source.index];
    data.image = {VK_NULL_HANDLE, VK_NULL_HANDLE, VK_IMAGE_LAYOUT_GENERAL};
    if (source.type == VK_DESCRIPTOR_TYPE_COMBINED_IMAGE_SAMPLER) {
        auto* sampler = static_cast<VulkanSampler*>(sampler_of(object));
        data.image.sampler = sampler ? sampler->handle() : default_sampler();
    }
    if (!object) {
        if (!m_context.features.robustness2.nullDescriptor)
            fail_runtime("kernel '", kernel.label(), "': texture '", slot.path,
                         "' was never set: assign a texture, or None for nothing");
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

void VulkanDescriptors::fill_slot(const VulkanBindings& kernel, const DescriptorSource& source, Object* object,
                                  DescriptorData& data)
{
    const SlotLayout& slot = kernel.layout().slots[source.index];
    switch (source.type) {
    case VK_DESCRIPTOR_TYPE_STORAGE_BUFFER: {
        if (!object) {
            const bool null = m_context.features.robustness2.nullDescriptor;
            data.buffer = {null ? VkBuffer(VK_NULL_HANDLE) : m_null_buffer->buffer, 0, VK_WHOLE_SIZE};
            return;
        }
        auto* buffer = dynamic_cast<VulkanBuffer*>(object);
        if (!buffer)
            fail(ErrorKind::type, "kernel '", kernel.label(), "': '", slot.path, "' takes a buffer");
        const uint64_t size = buffer->desc().size;
        if (size > m_context.adapter->properties.limits.maxStorageBufferRange)
            fail_value("kernel '", kernel.label(), "': the buffer for '", slot.path, "' has ", size, " bytes; ",
                       m_info.adapter_name, " binds ", m_context.adapter->properties.limits.maxStorageBufferRange,
                       " bytes at most: pass it as a pointer");
        data.buffer = {buffer->handle(), 0, size ? size : VK_WHOLE_SIZE};
        return;
    }
    case VK_DESCRIPTOR_TYPE_UNIFORM_TEXEL_BUFFER:
    case VK_DESCRIPTOR_TYPE_STORAGE_TEXEL_BUFFER: {
        auto* buffer = dynamic_cast<VulkanBuffer*>(object);
        if (object && !buffer)
            fail(ErrorKind::type, "kernel '", kernel.label(), "': '", slot.path, "' takes a buffer");
        if (!buffer && !m_context.features.robustness2.nullDescriptor)
            fail_runtime("kernel '", kernel.label(), "': buffer '", slot.path,
                         "' was never set: assign a buffer, or None for nothing");
        if (buffer && buffer->desc().format == Format::undefined)
            fail_value("parameter '", slot.path,
                       "' takes a buffer that was created with a format, and this one has none: give ",
                       "create_buffer a format, such as Format.r32_float");
        if (buffer && source.fixed_format != VK_FORMAT_UNDEFINED &&
            source.fixed_format != VkFormat(format_info(buffer->desc().format).vk_format))
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
    case VK_DESCRIPTOR_TYPE_ACCELERATION_STRUCTURE_KHR: {
        auto* structure = dynamic_cast<VulkanAccelerationStructure*>(object);
        if (object && !structure)
            fail(ErrorKind::type, "kernel '", kernel.label(), "': '", slot.path, "' takes an acceleration structure");
        if (!structure && !m_context.features.robustness2.nullDescriptor)
            fail_value("kernel '", kernel.label(), "': acceleration structure '", slot.path,
                       "' is None, which this device does not bind; assign one that was built");
        data.acceleration_structure = structure ? structure->handle() : VkAccelerationStructureKHR(VK_NULL_HANDLE);
        return;
    }
    default: fill_image(kernel, source, object, data);
    }
}

VkDescriptorSet VulkanDescriptors::write(const VulkanBindings& kernel, const DescriptorSetLayout& layout,
                                         const ArgumentView& arguments, UniformBytes& bytes)
{
    static thread_local std::vector<DescriptorData> data;
    data.resize(layout.sources.size());
    for (size_t k = 0; k < layout.sources.size(); ++k) {
        const DescriptorSource& source = layout.sources[k];
        if (source.is_scope) {
            const uint64_t size = kernel.layout().scopes[source.index].size;
            const bool dynamic = source.type == VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER_DYNAMIC;
            const uint64_t offset = dynamic ? 0 : bytes.store(arguments, size, source.index);
            data[k].buffer = {bytes.page()->buffer, offset, round_up(size, 16)};
        } else {
            Object* object = source.index < arguments.slots.size() ? arguments.slots[source.index].get() : nullptr;
            fill_slot(kernel, source, object, data[k]);
        }
    }
    const VkDescriptorSet set = allocate_set(layout.layout);
    m_context.vk.UpdateDescriptorSetWithTemplate(m_context.device, set, layout.update, data.data());
    return set;
}

void VulkanDescriptors::write_sets(const VulkanBindings& bindings, const ArgumentView& arguments, UniformBytes& bytes,
                                   std::vector<VkDescriptorSet>& sets)
{
    sets.assign(bindings.sets().size(), VK_NULL_HANDLE);
    for (size_t i = 0; i < sets.size(); ++i)
        sets[i] = bindings.sets()[i].sources.empty() ? bindings.sets()[i].whole
                                                     : write(bindings, bindings.sets()[i], arguments, bytes);
}

void VulkanDescriptors::bind(VkCommandBuffer commands, VkPipelineBindPoint point, const VulkanBindings& bindings,
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

} // namespace spy
