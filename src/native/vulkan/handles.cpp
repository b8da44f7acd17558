// The descriptor set of handles: created once, written while kernels that do not use what is written run.
#include "vulkan/handles.h"

#include "core/error.h"
#include "device/resource.h"
#include "vulkan/acceleration.h"
#include "vulkan/device.h"

#include <algorithm>

namespace spy {

namespace {

constexpr HandleBinding handle_bindings[] = {HandleBinding::sampler, HandleBinding::combined, HandleBinding::texture,
                                             HandleBinding::rw_texture, HandleBinding::buffer};

VkDescriptorType descriptor_type(HandleBinding binding)
{
    switch (binding) {
    case HandleBinding::sampler: return VK_DESCRIPTOR_TYPE_SAMPLER;
    case HandleBinding::combined: return VK_DESCRIPTOR_TYPE_COMBINED_IMAGE_SAMPLER;
    case HandleBinding::texture: return VK_DESCRIPTOR_TYPE_SAMPLED_IMAGE;
    case HandleBinding::rw_texture: return VK_DESCRIPTOR_TYPE_STORAGE_IMAGE;
    default: return VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
    }
}

HandleBinding binding_of(DescriptorHandleType type)
{
    switch (type) {
    case DescriptorHandleType::sampler: return HandleBinding::sampler;
    case DescriptorHandleType::combined_texture_sampler: return HandleBinding::combined;
    case DescriptorHandleType::texture: return HandleBinding::texture;
    case DescriptorHandleType::rw_texture: return HandleBinding::rw_texture;
    default: return HandleBinding::buffer;
    }
}

/// Of a texture or a view, in the shape that the texture has.
VkImageView image_view(DeviceObject* object, bool writes)
{
    const auto* view = dynamic_cast<VulkanTextureView*>(object);
    auto* texture = static_cast<VulkanTexture*>(view ? view->texture() : object);
    TextureViewDesc desc = view ? view->desc() : texture->whole();
    if (writes)
        desc.range.mip_count = 1;
    const bool faces = texture->desc().is_cube() && (writes || desc.range.layer_count % 6);
    return texture->view(desc, faces ? ResourceShape::texture_2d_array : ResourceShape::none);
}

} // namespace

bool has_handles(const VulkanFeatures& features)
{
    const VkPhysicalDeviceVulkan12Features& v12 = features.v12;
    return v12.runtimeDescriptorArray && v12.descriptorBindingPartiallyBound &&
        v12.descriptorBindingUpdateUnusedWhilePending && v12.descriptorBindingSampledImageUpdateAfterBind &&
        v12.descriptorBindingStorageImageUpdateAfterBind && v12.descriptorBindingStorageBufferUpdateAfterBind;
}

uint32_t VulkanHandles::count(HandleBinding binding) const
{
    switch (binding) {
    case HandleBinding::sampler: return m_sizes.sampler_count;
    case HandleBinding::buffer: return m_sizes.buffer_count;
    default: return m_sizes.texture_count;
    }
}

void VulkanHandles::check_limits() const
{
    const VkPhysicalDeviceVulkan12Properties& limits = m_context.adapter->v12;
    const auto check = [&](uint64_t wanted, uint32_t a, uint32_t b, const char* option) {
        if (const uint32_t most = std::min(a, b); wanted > most)
            fail_value("bindless_options.", option, " asks for ", wanted, " descriptors in all; ", m_context.name(),
                       " allows ", most);
    };
    check(m_sizes.buffer_count, limits.maxPerStageDescriptorUpdateAfterBindStorageBuffers,
          limits.maxDescriptorSetUpdateAfterBindStorageBuffers, "buffer_count");
    check(2ull * m_sizes.texture_count, limits.maxPerStageDescriptorUpdateAfterBindSampledImages,
          limits.maxDescriptorSetUpdateAfterBindSampledImages, "texture_count");
    check(m_sizes.texture_count, limits.maxPerStageDescriptorUpdateAfterBindStorageImages,
          limits.maxDescriptorSetUpdateAfterBindStorageImages, "texture_count");
    check(uint64_t(m_sizes.sampler_count) + m_sizes.texture_count, limits.maxPerStageDescriptorUpdateAfterBindSamplers,
          limits.maxDescriptorSetUpdateAfterBindSamplers, "sampler_count (and texture_count)");
    check(uint64_t(m_sizes.buffer_count) + 3ull * m_sizes.texture_count, limits.maxPerStageUpdateAfterBindResources,
          limits.maxUpdateAfterBindDescriptorsInAllPools, "buffer_count (and texture_count)");
}

void VulkanHandles::create_layout()
{
    constexpr size_t count_of = std::size(handle_bindings);
    VkDescriptorSetLayoutBinding bindings[count_of]{};
    VkDescriptorBindingFlags flags[count_of];
    for (size_t i = 0; i < count_of; ++i) {
        bindings[i].binding = uint32_t(handle_bindings[i]);
        bindings[i].descriptorType = descriptor_type(handle_bindings[i]);
        bindings[i].descriptorCount = count(handle_bindings[i]);
        bindings[i].stageFlags = VK_SHADER_STAGE_ALL;
        flags[i] = VK_DESCRIPTOR_BINDING_UPDATE_AFTER_BIND_BIT | VK_DESCRIPTOR_BINDING_PARTIALLY_BOUND_BIT |
            VK_DESCRIPTOR_BINDING_UPDATE_UNUSED_WHILE_PENDING_BIT;
    }
    VkDescriptorSetLayoutBindingFlagsCreateInfo with_flags{
        VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_BINDING_FLAGS_CREATE_INFO};
    with_flags.bindingCount = uint32_t(count_of);
    with_flags.pBindingFlags = flags;
    VkDescriptorSetLayoutCreateInfo info{VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO, &with_flags};
    info.flags = VK_DESCRIPTOR_SET_LAYOUT_CREATE_UPDATE_AFTER_BIND_POOL_BIT;
    info.bindingCount = uint32_t(count_of);
    info.pBindings = bindings;
    vk_check(m_context.vk.CreateDescriptorSetLayout(m_context.device, &info, nullptr, &m_layout),
             "vkCreateDescriptorSetLayout");
}

void VulkanHandles::create_set()
{
    std::vector<VkDescriptorPoolSize> sizes;
    for (const HandleBinding binding : handle_bindings)
        if (count(binding))
            sizes.push_back({descriptor_type(binding), count(binding)});
    VkDescriptorPoolCreateInfo pool{VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO};
    pool.flags = VK_DESCRIPTOR_POOL_CREATE_UPDATE_AFTER_BIND_BIT;
    pool.maxSets = 1;
    pool.poolSizeCount = uint32_t(sizes.size());
    pool.pPoolSizes = sizes.data();
    vk_check(m_context.vk.CreateDescriptorPool(m_context.device, &pool, nullptr, &m_pool), "vkCreateDescriptorPool");
    VkDescriptorSetAllocateInfo info{VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO};
    info.descriptorPool = m_pool;
    info.descriptorSetCount = 1;
    info.pSetLayouts = &m_layout;
    VkDescriptorSet set = VK_NULL_HANDLE;
    vk_check(m_context.vk.AllocateDescriptorSets(m_context.device, &info, &set), "vkAllocateDescriptorSets");
    VkSamplerCreateInfo sampler{VK_STRUCTURE_TYPE_SAMPLER_CREATE_INFO};
    sampler.magFilter = sampler.minFilter = VK_FILTER_LINEAR;
    vk_check(m_context.vk.CreateSampler(m_context.device, &sampler, nullptr, &m_sampler), "vkCreateSampler");
    m_set = set;
}

/// What no handle names reads as null, where the device has null descriptors.
void VulkanHandles::clear()
{
    for (uint32_t i = 0; i < m_sizes.sampler_count; ++i)
        write(DescriptorHandleType::sampler, i, nullptr);
    if (!m_context.features.robustness2.nullDescriptor)
        return;
    for (uint32_t i = 0; i < m_sizes.buffer_count; ++i)
        write(DescriptorHandleType::buffer, i, nullptr);
    for (uint32_t i = 0; i < m_sizes.texture_count; ++i)
        for (const auto type : {DescriptorHandleType::texture, DescriptorHandleType::rw_texture,
                                DescriptorHandleType::combined_texture_sampler})
            write(type, i, nullptr);
}

void VulkanHandles::open()
{
    if (m_set)
        return;
    check_limits();
    try {
        create_layout();
        create_set();
        clear();
    } catch (...) {
        close();
        throw;
    }
}

void VulkanHandles::close() noexcept
{
    const VulkanFunctions& vk = m_context.vk;
    vk.DestroySampler(m_context.device, std::exchange(m_sampler, VK_NULL_HANDLE), nullptr);
    vk.DestroyDescriptorPool(m_context.device, std::exchange(m_pool, VK_NULL_HANDLE), nullptr);
    vk.DestroyDescriptorSetLayout(m_context.device, std::exchange(m_layout, VK_NULL_HANDLE), nullptr);
    m_set = VK_NULL_HANDLE;
}

VkDescriptorSetLayout VulkanHandles::layout()
{
    std::lock_guard lock(m_queue.mutex());
    open();
    return m_layout;
}

VkDescriptorSet VulkanHandles::set()
{
    std::lock_guard lock(m_queue.mutex());
    open();
    return m_set;
}

void VulkanHandles::update(HandleBinding binding, uint32_t index, const VkDescriptorImageInfo* image,
                           const VkDescriptorBufferInfo* buffer) const
{
    VkWriteDescriptorSet write{VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET};
    write.dstSet = m_set;
    write.dstBinding = uint32_t(binding);
    write.dstArrayElement = index;
    write.descriptorCount = 1;
    write.descriptorType = descriptor_type(binding);
    write.pImageInfo = image;
    write.pBufferInfo = buffer;
    m_context.vk.UpdateDescriptorSets(m_context.device, 1, &write, 0, nullptr);
}

void VulkanHandles::write(DescriptorHandleType type, uint32_t index, DeviceObject* object)
{
    const HandleBinding binding = binding_of(type);
    if (binding == HandleBinding::buffer) {
        const auto* buffer = static_cast<VulkanBuffer*>(object);
        const VkDescriptorBufferInfo info{buffer ? buffer->handle() : VK_NULL_HANDLE, 0, VK_WHOLE_SIZE};
        return update(binding, index, nullptr, &info);
    }
    VkDescriptorImageInfo info{m_sampler, VK_NULL_HANDLE, VK_IMAGE_LAYOUT_GENERAL};
    if (type == DescriptorHandleType::sampler) {
        if (object)
            info.sampler = static_cast<VulkanSampler*>(object)->handle();
    } else if (object) {
        info.imageView = image_view(object, type == DescriptorHandleType::rw_texture);
        if (type == DescriptorHandleType::combined_texture_sampler)
            info.sampler = static_cast<VulkanSampler*>(sampler_of(object))->handle();
    }
    update(binding, index, &info, nullptr);
}

namespace {

/// A view may have a format that is read but not stored (sRGB).
void check_stored(const VulkanContext& context, DeviceObject* object)
{
    const auto* view = dynamic_cast<const TextureView*>(object);
    if (!view || view->desc().format == Format::undefined)
        return;
    const Format format = view->desc().format;
    if (!(context.format_properties(format).optimalTilingFeatures & VK_FORMAT_FEATURE_STORAGE_IMAGE_BIT))
        fail_value("TextureView.descriptor_handle_rw: kernels do not store ", format_name(format), " on ",
                   context.name(), "; view the texture in another format");
}

} // namespace

DescriptorHandle VulkanHandles::make(DeviceObject* object, DescriptorHandleType type)
{
    if (type == DescriptorHandleType::acceleration_structure) // Slang converts its address
        return {type, static_cast<VulkanAccelerationStructure*>(object)->device_address()};
    if (const auto* buffer = dynamic_cast<const Buffer*>(object)) {
        const uint64_t most = m_context.adapter->properties.limits.maxStorageBufferRange;
        if (buffer->desc().size > most)
            fail_value("a descriptor handle covers ", most, " bytes at most on ", m_context.name(), "; ",
                       summary(buffer), " is larger: pass it as a pointer");
    }
    if (type == DescriptorHandleType::rw_texture)
        check_stored(m_context, object);
    std::lock_guard lock(m_queue.mutex());
    open();
    const uint64_t index = m_tables.take(m_sizes, type);
    try {
        write(type, uint32_t(index), object);
    } catch (...) {
        m_tables.give_back(type, index);
        throw;
    }
    return {type, index};
}

void VulkanHandles::drop(const DescriptorHandle& handle) noexcept
{
    if (handle.type == DescriptorHandleType::acceleration_structure)
        return;
    m_queue.discard(VK_OBJECT_TYPE_DESCRIPTOR_SET, uint64_t(handle.type) << 32 | handle.value);
}

void VulkanHandles::recycle(uint64_t place) noexcept
{
    if (!m_set)
        return;
    const auto type = DescriptorHandleType(place >> 32);
    if (m_context.features.robustness2.nullDescriptor || type == DescriptorHandleType::sampler)
        write(type, uint32_t(place), nullptr); // of nothing: makes no view, so does not throw
    m_tables.give_back(type, uint32_t(place));
}

DescriptorHandle VulkanDevice::make_handle(DeviceObject* object, DescriptorHandleType type)
{
    require_open("a descriptor handle");
    return m_handles.make(object, type);
}

void VulkanDevice::drop_handle(const DescriptorHandle& handle) noexcept { m_handles.drop(handle); }

} // namespace spy
