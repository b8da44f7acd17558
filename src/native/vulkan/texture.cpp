// Textures, views, samplers.
#include "vulkan/device.h"

#include "core/error.h"
#include "device/texture_shape.h"

#include <algorithm>

namespace spy {

namespace {

VulkanDevice& device_of(const DeviceObject& object) { return *static_cast<VulkanDevice*>(object.device()); }

/// Records the change from "undefined" to the layout all images have from then on.
void record_initial_layout(VulkanDevice& device, VulkanTexture& texture)
{
    VkImageMemoryBarrier image{VK_STRUCTURE_TYPE_IMAGE_MEMORY_BARRIER};
    image.dstAccessMask = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_READ_BIT |
        VK_ACCESS_TRANSFER_WRITE_BIT;
    image.oldLayout = VK_IMAGE_LAYOUT_UNDEFINED;
    image.newLayout = VK_IMAGE_LAYOUT_GENERAL;
    image.srcQueueFamilyIndex = image.dstQueueFamilyIndex = VK_QUEUE_FAMILY_IGNORED;
    image.image = texture.handle();
    image.subresourceRange = {texture.aspects(), 0, VK_REMAINING_MIP_LEVELS, 0, VK_REMAINING_ARRAY_LAYERS};
    // The memory may have been another resource's: wait for what used it.
    constexpr VkPipelineStageFlags stages = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT;
    device.context().vk.CmdPipelineBarrier(device.queue().begin_command(), stages, stages, 0, 0, nullptr, 0, nullptr, 1,
                                           &image);
}

VkImageType image_type(TextureType type)
{
    switch (type) {
    case TextureType::texture_1d:
    case TextureType::texture_1d_array: return VK_IMAGE_TYPE_1D;
    case TextureType::texture_3d: return VK_IMAGE_TYPE_3D;
    default: return VK_IMAGE_TYPE_2D;
    }
}

/// View type and the layers it needs at most (0 = all).
std::pair<VkImageViewType, uint32_t> view_type(ResourceShape shape)
{
    switch (shape) {
    case ResourceShape::texture_1d: return {VK_IMAGE_VIEW_TYPE_1D, 1};
    case ResourceShape::texture_1d_array: return {VK_IMAGE_VIEW_TYPE_1D_ARRAY, 0};
    case ResourceShape::texture_3d: return {VK_IMAGE_VIEW_TYPE_3D, 1};
    case ResourceShape::texture_cube: return {VK_IMAGE_VIEW_TYPE_CUBE, 6};
    case ResourceShape::texture_cube_array: return {VK_IMAGE_VIEW_TYPE_CUBE_ARRAY, 0};
    case ResourceShape::texture_2d_array:
    case ResourceShape::texture_2d_multisample_array: return {VK_IMAGE_VIEW_TYPE_2D_ARRAY, 0};
    default: return {VK_IMAGE_VIEW_TYPE_2D, 1};
    }
}

VkImageUsageFlags image_usage(TextureUsage usage, VkFormatFeatureFlags features)
{
    VkImageUsageFlags flags = 0;
    if (features & VK_FORMAT_FEATURE_TRANSFER_SRC_BIT)
        flags |= VK_IMAGE_USAGE_TRANSFER_SRC_BIT;
    if (features & VK_FORMAT_FEATURE_TRANSFER_DST_BIT)
        flags |= VK_IMAGE_USAGE_TRANSFER_DST_BIT;
    if (has_flag(usage, TextureUsage::shader_resource))
        flags |= VK_IMAGE_USAGE_SAMPLED_BIT;
    if (has_flag(usage, TextureUsage::unordered_access))
        flags |= VK_IMAGE_USAGE_STORAGE_BIT;
    if (has_flag(usage, TextureUsage::render_target) || has_flag(usage, TextureUsage::resolve_destination))
        flags |= VK_IMAGE_USAGE_COLOR_ATTACHMENT_BIT;
    if (has_flag(usage, TextureUsage::depth_stencil))
        flags |= VK_IMAGE_USAGE_DEPTH_STENCIL_ATTACHMENT_BIT;
    return flags;
}

void check_format(const TextureDesc& desc, VkFormatFeatureFlags features, const std::string& device)
{
    auto need = [&](TextureUsage flag, VkFormatFeatureFlags feature, const char* name) {
        if (has_flag(desc.usage, flag) && !(features & feature))
            fail_value("format ", format_name(desc.format), " does not support TextureUsage.", name, " on ", device,
                       "; Device.get_format_support tells what a format supports");
    };
    if (!features)
        fail_value("format ", format_name(desc.format), " is not supported on ", device,
                   "; Device.get_format_support tells what a format supports");
    need(TextureUsage::shader_resource, VK_FORMAT_FEATURE_SAMPLED_IMAGE_BIT, "shader_resource");
    need(TextureUsage::unordered_access, VK_FORMAT_FEATURE_STORAGE_IMAGE_BIT, "unordered_access");
    need(TextureUsage::render_target, VK_FORMAT_FEATURE_COLOR_ATTACHMENT_BIT, "render_target");
    need(TextureUsage::resolve_destination, VK_FORMAT_FEATURE_COLOR_ATTACHMENT_BIT, "resolve_destination");
    need(TextureUsage::depth_stencil, VK_FORMAT_FEATURE_DEPTH_STENCIL_ATTACHMENT_BIT, "depth_stencil");
}

void check_image_limits(VulkanDevice& device, const VkImageCreateInfo& info, VkPhysicalDevice adapter,
                        const VulkanFunctions& vk, const TextureDesc& desc)
{
    VkImageFormatProperties limits{};
    const VkResult code = vk.GetPhysicalDeviceImageFormatProperties(adapter, info.format, info.imageType, info.tiling,
                                                                    info.usage, info.flags, &limits);
    const std::string text = cat("a texture of ", info.extent.width, " x ", info.extent.height, " x ",
                                 info.extent.depth, " texels, ", info.arrayLayers, " layers, ", info.mipLevels,
                                 " mips, ", uint32_t(info.samples), " samples, format ", format_name(desc.format));
    if (code == VK_ERROR_FORMAT_NOT_SUPPORTED)
        fail_value(text, " is not supported on ", device.info().adapter_name,
                   "; Device.get_format_support tells what a format supports");
    vk_check(code, "vkGetPhysicalDeviceImageFormatProperties");
    if (info.extent.width > limits.maxExtent.width || info.extent.height > limits.maxExtent.height ||
        info.extent.depth > limits.maxExtent.depth || info.arrayLayers > limits.maxArrayLayers ||
        info.mipLevels > limits.maxMipLevels || !(info.samples & limits.sampleCounts))
        fail_value(text, " is beyond the limits of ", device.info().adapter_name, ": ", limits.maxExtent.width, " x ",
                   limits.maxExtent.height, " x ", limits.maxExtent.depth, " texels, ", limits.maxArrayLayers,
                   " layers, ", limits.maxMipLevels, " mips, samples ", limits.sampleCounts);
    uint64_t bytes = 0;
    for (uint32_t mip = 0; mip < desc.mip_count; ++mip)
        bytes += subresource_layout(desc, mip).size_in_bytes * desc.layer_count() * desc.sample_count;
    if (bytes > limits.maxResourceSize)
        fail(ErrorKind::memory, text, " takes ", bytes, " bytes; one texture has at most ", limits.maxResourceSize,
             " bytes on ", device.info().adapter_name);
}

VkFilter filter(TextureFilteringMode mode)
{
    return mode == TextureFilteringMode::point ? VK_FILTER_NEAREST : VK_FILTER_LINEAR;
}

VkSamplerAddressMode address_mode(TextureAddressingMode mode, VulkanDevice& device)
{
    switch (mode) {
    case TextureAddressingMode::wrap: return VK_SAMPLER_ADDRESS_MODE_REPEAT;
    case TextureAddressingMode::clamp_to_edge: return VK_SAMPLER_ADDRESS_MODE_CLAMP_TO_EDGE;
    case TextureAddressingMode::clamp_to_border: return VK_SAMPLER_ADDRESS_MODE_CLAMP_TO_BORDER;
    case TextureAddressingMode::mirror_repeat: return VK_SAMPLER_ADDRESS_MODE_MIRRORED_REPEAT;
    case TextureAddressingMode::mirror_once: break;
    }
    if (!device.context().features.v12.samplerMirrorClampToEdge)
        fail_value("TextureAddressingMode.mirror_once is not supported on ", device.info().adapter_name);
    return VK_SAMPLER_ADDRESS_MODE_MIRROR_CLAMP_TO_EDGE;
}

} // namespace

// --- VulkanTexture

VulkanTexture::VulkanTexture(ref<Device> device, TextureDesc desc) : Texture(std::move(device), std::move(desc))
{
    VulkanDevice& owner = device_of(*this);
    const VulkanFunctions& vk = owner.context().vk;
    const FormatInfo& format = format_info(m_desc.format);
    const VkFormatFeatureFlags features = owner.context().format_properties(m_desc.format).optimalTilingFeatures;
    check_format(m_desc, features, owner.info().adapter_name);
    const bool shared = has_flag(m_desc.usage, TextureUsage::shared);
    if (shared && !owner.context().has_extension(VK_KHR_EXTERNAL_MEMORY_FD_EXTENSION_NAME))
        fail_runtime("TextureUsage.shared needs the Vulkan extension VK_KHR_external_memory_fd, which ",
                     owner.info().adapter_name, " does not offer");
    VkExternalMemoryImageCreateInfo external{VK_STRUCTURE_TYPE_EXTERNAL_MEMORY_IMAGE_CREATE_INFO};
    external.handleTypes = VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT;
    VkImageCreateInfo info{VK_STRUCTURE_TYPE_IMAGE_CREATE_INFO};
    info.pNext = shared ? &external : nullptr;
    // Views may have another format of the same size; depth and block formats have none.
    if (!format.is_depth_stencil() && !format.is_compressed())
        info.flags |= VK_IMAGE_CREATE_MUTABLE_FORMAT_BIT;
    if (m_desc.is_cube())
        info.flags |= VK_IMAGE_CREATE_CUBE_COMPATIBLE_BIT;
    info.imageType = image_type(m_desc.type);
    info.format = VkFormat(format.vk_format);
    info.extent = {m_desc.width, m_desc.height, m_desc.depth};
    info.mipLevels = m_desc.mip_count;
    info.arrayLayers = m_desc.layer_count();
    info.samples = VkSampleCountFlagBits(m_desc.sample_count);
    info.tiling = VK_IMAGE_TILING_OPTIMAL;
    info.usage = m_usage = image_usage(m_desc.usage, features);
    check_image_limits(owner, info, owner.context().adapter->handle, vk, m_desc);

    std::lock_guard lock(owner.queue().mutex());
    owner.queue().throttle_garbage();
    vk_check(vk.CreateImage(owner.context().device, &info, nullptr, &m_image), "vkCreateImage");
    try {
        AllocationRequest request;
        vk.GetImageMemoryRequirements(owner.context().device, m_image, &request.requirements);
        request.image = m_image;
        request.exported = shared;
        m_allocation = owner.memory().allocate(request);
        vk_check(vk.BindImageMemory(owner.context().device, m_image, m_allocation.memory, m_allocation.offset),
                 "vkBindImageMemory");
        record_initial_layout(owner, *this);
    } catch (...) {
        release();
        throw;
    }
    owner.context().set_name(VK_OBJECT_TYPE_IMAGE, uint64_t(m_image), m_desc.label);
}

VulkanTexture::VulkanTexture(ref<Device> device, TextureDesc desc, VkImage image, VkImageUsageFlags usage,
                             std::shared_ptr<void> owner)
    : Texture(std::move(device), std::move(desc)),
      m_image(image),
      m_usage(usage),
      m_owner(std::move(owner)),
      m_is_borrowed(true)
{
}

void VulkanTexture::release() noexcept
{
    VulkanDevice& owner = device_of(*this);
    for (const auto& [key, view] : m_views)
        owner.queue().discard(VK_OBJECT_TYPE_IMAGE_VIEW, uint64_t(view));
    m_views.clear();
    if (std::exchange(m_is_borrowed, false)) {
        m_image = VK_NULL_HANDLE;
        m_owner = nullptr;
        return;
    }
    owner.queue().discard(VK_OBJECT_TYPE_IMAGE, uint64_t(std::exchange(m_image, VK_NULL_HANDLE)),
                          std::exchange(m_allocation, {}));
    m_shared_handle.close();
}

NativeHandle VulkanTexture::shared_handle()
{
    VulkanDevice& owner = device_of(*this);
    owner.require_open("shared_handle");
    if (!m_allocation.exported)
        fail_runtime("shared_handle: the texture was not created with TextureUsage.shared");
    return m_shared_handle.get([&] { return owner.context().export_memory(m_allocation.memory); });
}

VkImageAspectFlags VulkanTexture::aspects() const
{
    const FormatInfo& format = format_info(m_desc.format);
    VkImageAspectFlags flags = 0;
    if (format.is_depth())
        flags |= VK_IMAGE_ASPECT_DEPTH_BIT;
    if (format.is_stencil())
        flags |= VK_IMAGE_ASPECT_STENCIL_BIT;
    return flags ? flags : VkImageAspectFlags(VK_IMAGE_ASPECT_COLOR_BIT);
}

TextureViewDesc VulkanTexture::whole() const
{
    TextureViewDesc view;
    view.range = {0, m_desc.layer_count(), 0, m_desc.mip_count};
    return view;
}

VkImageView VulkanTexture::view(const TextureViewDesc& desc, ResourceShape shape)
{
    VulkanDevice& owner = device_of(*this);
    owner.require_open("texture view");
    if (shape == ResourceShape::none || shape == ResourceShape::unknown)
        shape = shape_of(m_desc.type);
    const auto [type, max_layers] = view_type(shape);
    VkImageAspectFlags aspect = aspects();
    if (aspect & VK_IMAGE_ASPECT_DEPTH_BIT) // kernels see one of the two
        aspect = desc.aspect == TextureAspect::stencil_only ? VK_IMAGE_ASPECT_STENCIL_BIT : VK_IMAGE_ASPECT_DEPTH_BIT;
    const Format format = desc.format == Format::undefined ? m_desc.format : desc.format;
    VkImageViewCreateInfo info{VK_STRUCTURE_TYPE_IMAGE_VIEW_CREATE_INFO};
    info.image = m_image;
    info.viewType = type;
    info.format = VkFormat(format_info(format).vk_format);
    info.subresourceRange = {aspect, desc.range.mip, desc.range.mip_count, desc.range.layer, desc.range.layer_count};
    if (max_layers)
        info.subresourceRange.layerCount = std::min(max_layers, desc.range.layer_count);
    const ViewKey key = key_of(info, false);
    std::lock_guard lock(owner.queue().mutex());
    if (auto found = m_views.find(key); found != m_views.end())
        return found->second;
    const bool is_3d = m_desc.type == TextureType::texture_3d, is_1d = image_type(m_desc.type) == VK_IMAGE_TYPE_1D;
    const bool wants_3d = shape == ResourceShape::texture_3d;
    const bool wants_1d = shape == ResourceShape::texture_1d || shape == ResourceShape::texture_1d_array;
    const bool wants_cube = shape == ResourceShape::texture_cube || shape == ResourceShape::texture_cube_array;
    if (is_3d != wants_3d || is_1d != wants_1d || (wants_cube && info.subresourceRange.layerCount % 6) ||
        (wants_cube && !m_desc.is_cube()))
        fail_value("a texture of type ", type_name(m_desc.type), " cannot be bound to a ", slang_name(shape),
                   " parameter");
    const VkFormatFeatureFlags features = owner.context().format_properties(format).optimalTilingFeatures;
    VkImageUsageFlags usage = m_usage & image_usage(m_desc.usage, features);
    if (!(features & VK_FORMAT_FEATURE_STORAGE_IMAGE_BIT))
        usage &= ~VkImageUsageFlags(VK_IMAGE_USAGE_STORAGE_BIT);
    if (!(features & VK_FORMAT_FEATURE_COLOR_ATTACHMENT_BIT))
        usage &= ~VkImageUsageFlags(VK_IMAGE_USAGE_COLOR_ATTACHMENT_BIT);
    return create_view(key, info, usage);
}

VkImageView VulkanTexture::attachment_view(const TextureViewDesc& desc)
{
    VulkanDevice& owner = device_of(*this);
    const Format format = desc.format == Format::undefined ? m_desc.format : desc.format;
    VkImageViewCreateInfo info{VK_STRUCTURE_TYPE_IMAGE_VIEW_CREATE_INFO};
    info.image = m_image;
    info.viewType = desc.range.layer_count > 1 ? VK_IMAGE_VIEW_TYPE_2D_ARRAY : VK_IMAGE_VIEW_TYPE_2D;
    info.format = VkFormat(format_info(format).vk_format);
    info.subresourceRange = {aspects(), desc.range.mip, 1, desc.range.layer, desc.range.layer_count};
    const ViewKey key = key_of(info, true);
    std::lock_guard lock(owner.queue().mutex());
    if (auto found = m_views.find(key); found != m_views.end())
        return found->second;
    return create_view(key, info,
                       aspects() & VK_IMAGE_ASPECT_COLOR_BIT ? VK_IMAGE_USAGE_COLOR_ATTACHMENT_BIT
                                                             : VK_IMAGE_USAGE_DEPTH_STENCIL_ATTACHMENT_BIT);
}

VulkanTexture::ViewKey VulkanTexture::key_of(const VkImageViewCreateInfo& info, bool is_attachment)
{
    const VkImageSubresourceRange& range = info.subresourceRange;
    return {uint32_t(info.format), range.aspectMask, range.baseArrayLayer,    range.layerCount,
            range.baseMipLevel,    range.levelCount, uint32_t(info.viewType), uint32_t(is_attachment)};
}

VkImageView VulkanTexture::create_view(const ViewKey& key, VkImageViewCreateInfo info, VkImageUsageFlags usage)
{
    VulkanDevice& owner = device_of(*this);
    VkImageViewUsageCreateInfo uses{VK_STRUCTURE_TYPE_IMAGE_VIEW_USAGE_CREATE_INFO};
    uses.usage = usage;
    info.pNext = &uses;
    VkImageView view = VK_NULL_HANDLE;
    vk_check(owner.context().vk.CreateImageView(owner.context().device, &info, nullptr, &view), "vkCreateImageView");
    m_views.emplace(key, view);
    return view;
}

NativeHandle VulkanTextureView::native_handle() const
{
    auto* texture = static_cast<VulkanTexture*>(m_texture.get());
    return {NativeHandleType::VkImageView, uint64_t(texture->view(m_desc, ResourceShape::none))};
}

ref<Texture> VulkanDevice::create_texture(const TextureDesc& desc)
{
    require_open("create_texture");
    if (desc.memory_type != MemoryType::device_local)
        fail_value("create_texture: memory_type must be MemoryType.device_local on Vulkan");
    return ref<Texture>(new VulkanTexture(ref<Device>(this), desc));
}

ref<TextureView> VulkanDevice::create_texture_view(Texture* texture, const TextureViewDesc& desc)
{
    require_open("create_view");
    const FormatInfo& own = format_info(texture->desc().format);
    if (desc.format != Format::undefined && desc.format != own.format) {
        const FormatInfo& other = format_info(desc.format);
        if (static_cast<VulkanTexture*>(texture)->is_borrowed())
            fail_value("create_view: images of a surface are viewed in their own format, ", own.name,
                       "; configure the surface with format=Format.", other.name);
        if (own.is_depth_stencil() || own.is_compressed() || other.is_compressed() ||
            other.bytes_per_block != own.bytes_per_block ||
            !m_context.format_properties(desc.format).optimalTilingFeatures)
            fail_value("create_view: a texture of format ", own.name, " cannot be viewed as ", other.name,
                       "; the formats must have texels of the same size");
    }
    return ref<TextureView>(new VulkanTextureView(ref<Device>(this), ref<Texture>(texture), desc));
}

// --- VulkanSampler

VulkanSampler::VulkanSampler(ref<Device> device, SamplerDesc desc) : Sampler(std::move(device), std::move(desc))
{
    VulkanDevice& owner = device_of(*this);
    VkSamplerCreateInfo info{VK_STRUCTURE_TYPE_SAMPLER_CREATE_INFO};
    info.magFilter = filter(m_desc.mag_filter);
    info.minFilter = filter(m_desc.min_filter);
    info.mipmapMode = m_desc.mip_filter == TextureFilteringMode::point ? VK_SAMPLER_MIPMAP_MODE_NEAREST
                                                                       : VK_SAMPLER_MIPMAP_MODE_LINEAR;
    info.addressModeU = address_mode(m_desc.address_u, owner);
    info.addressModeV = address_mode(m_desc.address_v, owner);
    info.addressModeW = address_mode(m_desc.address_w, owner);
    const float max_bias = owner.context().adapter->properties.limits.maxSamplerLodBias;
    info.mipLodBias = std::clamp(m_desc.mip_lod_bias, -max_bias, max_bias);
    info.anisotropyEnable = m_desc.max_anisotropy > 1 && owner.context().features.core.features.samplerAnisotropy;
    info.maxAnisotropy = std::min(float(m_desc.max_anisotropy),
                                  owner.context().adapter->properties.limits.maxSamplerAnisotropy);
    info.compareEnable = m_desc.reduction_op == TextureReductionOp::comparison;
    info.compareOp = VkCompareOp(m_desc.comparison_func); // same order
    info.minLod = std::max(m_desc.min_lod, -1000.f);
    info.maxLod = std::max(m_desc.max_lod, info.minLod);

    VkSamplerReductionModeCreateInfo reduction{VK_STRUCTURE_TYPE_SAMPLER_REDUCTION_MODE_CREATE_INFO};
    if (m_desc.reduction_op == TextureReductionOp::minimum || m_desc.reduction_op == TextureReductionOp::maximum) {
        if (!owner.context().features.v12.samplerFilterMinmax)
            fail_value("create_sampler: reduction_op minimum and maximum are not supported on ",
                       owner.info().adapter_name);
        reduction.reductionMode = m_desc.reduction_op == TextureReductionOp::minimum ? VK_SAMPLER_REDUCTION_MODE_MIN
                                                                                     : VK_SAMPLER_REDUCTION_MODE_MAX;
        reduction.pNext = info.pNext;
        info.pNext = &reduction;
    }
    VkSamplerCustomBorderColorCreateInfoEXT custom{VK_STRUCTURE_TYPE_SAMPLER_CUSTOM_BORDER_COLOR_CREATE_INFO_EXT};
    const auto& border = m_desc.border_color;
    using Color = std::array<float, 4>;
    const bool uses_border = m_desc.address_u == TextureAddressingMode::clamp_to_border ||
        m_desc.address_v == TextureAddressingMode::clamp_to_border ||
        m_desc.address_w == TextureAddressingMode::clamp_to_border;
    if (border == Color{0, 0, 0, 0} || !uses_border)
        info.borderColor = VK_BORDER_COLOR_FLOAT_TRANSPARENT_BLACK;
    else if (border == Color{0, 0, 0, 1})
        info.borderColor = VK_BORDER_COLOR_FLOAT_OPAQUE_BLACK;
    else if (border == Color{1, 1, 1, 1})
        info.borderColor = VK_BORDER_COLOR_FLOAT_OPAQUE_WHITE;
    else if (owner.context().features.border.customBorderColors &&
             owner.context().features.border.customBorderColorWithoutFormat) {
        std::copy(border.begin(), border.end(), custom.customBorderColor.float32);
        custom.pNext = info.pNext;
        info.pNext = &custom;
        info.borderColor = VK_BORDER_COLOR_FLOAT_CUSTOM_EXT;
    } else
        fail_value("create_sampler: ", owner.info().adapter_name,
                   " takes the border colors (0, 0, 0, 0), (0, 0, 0, 1) and (1, 1, 1, 1) only");
    vk_check(owner.context().vk.CreateSampler(owner.context().device, &info, nullptr, &m_sampler), "vkCreateSampler");
    owner.context().set_name(VK_OBJECT_TYPE_SAMPLER, uint64_t(m_sampler), m_desc.label);
}

void VulkanSampler::release() noexcept
{
    device_of(*this).queue().discard(VK_OBJECT_TYPE_SAMPLER, uint64_t(std::exchange(m_sampler, VK_NULL_HANDLE)));
}

ref<Sampler> VulkanDevice::create_sampler(const SamplerDesc& desc)
{
    require_open("create_sampler");
    return ref<Sampler>(new VulkanSampler(ref<Device>(this), desc));
}

} // namespace spy
