// Windows of the system: VkSurfaceKHR and its swapchains.
#include "vulkan/surface.h"

#include "core/error.h"
#include "core/interrupt.h"
#include "device/resource.h"

#include <algorithm>

namespace spy {

namespace {

VulkanDevice& device_of_surface(const DeviceObject& object) { return *static_cast<VulkanDevice*>(object.device()); }

/// As vulkan_xlib.h and vulkan_win32.h have them, which need the system's own headers.
struct XlibSurfaceInfo {
    VkStructureType type = VK_STRUCTURE_TYPE_XLIB_SURFACE_CREATE_INFO_KHR;
    const void* next = nullptr;
    VkFlags flags = 0;
    void* display = nullptr;
    unsigned long window = 0;
};
struct Win32SurfaceInfo {
    VkStructureType type = VK_STRUCTURE_TYPE_WIN32_SURFACE_CREATE_INFO_KHR;
    const void* next = nullptr;
    VkFlags flags = 0;
    void* instance = nullptr;
    void* window = nullptr;
};

template <typename Info>
VkSurfaceKHR make_surface(const VulkanInstance& instance, const char* function, const char* extension, const Info& info)
{
    using Create = VkResult(VKAPI_PTR*)(VkInstance, const Info*, const VkAllocationCallbacks*, VkSurfaceKHR*);
    const auto create = reinterpret_cast<Create>(instance.functions().GetInstanceProcAddr(instance.handle(), function));
    if (!create)
        fail_runtime("create_surface: the Vulkan loader does not offer ", extension, "; install a driver with it");
    VkSurfaceKHR surface = VK_NULL_HANDLE;
    vk_check(create(instance.handle(), &info, nullptr, &surface), function);
    return surface;
}

VkSurfaceKHR surface_from(const VulkanInstance& instance, const SurfaceDesc& desc)
{
    switch (desc.kind) {
    case SurfaceDesc::Kind::vulkan: break;
    case SurfaceDesc::Kind::xlib: {
        XlibSurfaceInfo info;
        info.display = reinterpret_cast<void*>(desc.display);
        info.window = static_cast<unsigned long>(desc.handle);
        return make_surface(instance, "vkCreateXlibSurfaceKHR", "VK_KHR_xlib_surface", info);
    }
    case SurfaceDesc::Kind::win32: {
        Win32SurfaceInfo info;
        info.window = reinterpret_cast<void*>(desc.handle);
        return make_surface(instance, "vkCreateWin32SurfaceKHR", "VK_KHR_win32_surface", info);
    }
    }
    return VkSurfaceKHR(desc.handle);
}

/// The format of ours that Vulkan calls so; undefined where there is none.
Format format_of(VkFormat wanted)
{
    for (uint32_t i = 1; i < uint32_t(Format::count_); ++i)
        if (format_info(Format(i)).vk_format == uint32_t(wanted))
            return Format(i);
    return Format::undefined;
}

constexpr std::pair<TextureUsage, VkImageUsageFlagBits> image_uses[] = {
    {TextureUsage::render_target, VK_IMAGE_USAGE_COLOR_ATTACHMENT_BIT},
    {TextureUsage::copy_destination, VK_IMAGE_USAGE_TRANSFER_DST_BIT},
    {TextureUsage::copy_source, VK_IMAGE_USAGE_TRANSFER_SRC_BIT},
    {TextureUsage::shader_resource, VK_IMAGE_USAGE_SAMPLED_BIT},
    {TextureUsage::unordered_access, VK_IMAGE_USAGE_STORAGE_BIT},
};
/// The first of them are what images have where nobody asks for more.
constexpr size_t default_uses = 2;

} // namespace

// --- VulkanSwapchain

VulkanSwapchain::VulkanSwapchain(VulkanDevice& device, std::shared_ptr<VulkanWindow> window,
                                 const VkSwapchainCreateInfoKHR& given, VkSwapchainKHR old)
    : m_device(device),
      m_window(std::move(window))
{
    VkSwapchainCreateInfoKHR info = given;
    info.oldSwapchain = old;
    const VulkanContext& context = device.context();
    vk_check(context.vk.CreateSwapchainKHR(context.device, &info, nullptr, &handle), "vkCreateSwapchainKHR");
    try {
        uint32_t count = 0;
        vk_check(context.vk.GetSwapchainImagesKHR(context.device, handle, &count, nullptr), "vkGetSwapchainImagesKHR");
        images.resize(count);
        vk_check(context.vk.GetSwapchainImagesKHR(context.device, handle, &count, images.data()),
                 "vkGetSwapchainImagesKHR");
        for (uint32_t i = 0; i < count; ++i)
            drawn.push_back(create_semaphore());
        for (uint32_t i = 0; i <= count; ++i)
            m_ready.push_back(create_semaphore());
        m_waiting.resize(m_ready.size());
    } catch (...) {
        destroy();
        throw;
    }
}

VkSemaphore VulkanSwapchain::create_semaphore()
{
    const VkSemaphoreCreateInfo info{VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO};
    VkSemaphore semaphore = VK_NULL_HANDLE;
    const VulkanContext& context = m_device.context();
    vk_check(context.vk.CreateSemaphore(context.device, &info, nullptr, &semaphore), "vkCreateSemaphore");
    return semaphore;
}

void VulkanSwapchain::destroy() noexcept
{
    const VulkanContext& context = m_device.context();
    if (!handle || !context.is_open())
        return;
    m_device.queue().finish_all(); // presenting is part of no timeline
    for (std::vector<VkSemaphore>* list : {&drawn, &m_ready}) {
        for (VkSemaphore semaphore : *list)
            context.vk.DestroySemaphore(context.device, semaphore, nullptr);
        list->clear();
    }
    context.vk.DestroySwapchainKHR(context.device, std::exchange(handle, VK_NULL_HANDLE), nullptr);
}

VkSemaphore& VulkanSwapchain::free_semaphore()
{
    m_next = (m_next + 1) % m_ready.size();
    while (!m_device.queue().wait(m_waiting[m_next], 50'000'000))
        poll_interrupt();
    return m_ready[m_next];
}

// --- VulkanSurface

VulkanSurface::VulkanSurface(ref<Device> device, std::shared_ptr<VulkanWindow> window)
    : Surface(std::move(device)),
      m_window(std::move(window))
{
    const VulkanContext& context = device_of_surface(*this).context();
    const VulkanFunctions& vk = context.vk;
    const VkPhysicalDevice adapter = context.adapter->handle;
    VkBool32 shows = VK_FALSE;
    vk_check(vk.GetPhysicalDeviceSurfaceSupportKHR(adapter, context.queue_family, m_window->handle(), &shows),
             "vkGetPhysicalDeviceSurfaceSupportKHR");
    if (!shows)
        fail_runtime("create_surface: ", context.name(),
                     " cannot show images in this window; open the device that drives the display, with "
                     "'adapter_index' (Device.enumerate_adapters lists them)");
    uint32_t count = 0;
    vk_check(vk.GetPhysicalDeviceSurfaceFormatsKHR(adapter, m_window->handle(), &count, nullptr),
             "vkGetPhysicalDeviceSurfaceFormatsKHR");
    std::vector<VkSurfaceFormatKHR> formats(count);
    vk_check(vk.GetPhysicalDeviceSurfaceFormatsKHR(adapter, m_window->handle(), &count, formats.data()),
             "vkGetPhysicalDeviceSurfaceFormatsKHR");
    for (const VkSurfaceFormatKHR& one : formats)
        if (const Format format = format_of(one.format);
            format != Format::undefined && one.colorSpace == VK_COLOR_SPACE_SRGB_NONLINEAR_KHR)
            m_info.formats.push_back(format);
    if (m_info.formats.empty())
        fail_runtime("create_surface: ", context.name(), " offers no format that this package knows for the window");
    // What is light goes first: then clear colours, blending and blit mean what they mean in textures.
    std::stable_partition(m_info.formats.begin(), m_info.formats.end(),
                          [](Format format) { return format_info(format).type == FormatType::unorm_srgb; });
    m_info.preferred_format = m_info.formats.front();
    const VkSurfaceCapabilitiesKHR can = capabilities();
    m_info.supported_usage = TextureUsage::present;
    for (size_t i = 0; i < default_uses; ++i)
        if (can.supportedUsageFlags & image_uses[i].second)
            m_info.supported_usage = m_info.supported_usage | image_uses[i].first;
}

void VulkanSurface::release() noexcept
{
    if (m_swapchain)
        m_swapchain->destroy();
    m_swapchain = nullptr;
    m_window = nullptr;
}

void VulkanSurface::destroy_images()
{
    if (m_swapchain)
        device_of_surface(*this).queue().finish_all();
    m_previous = m_swapchain;
    m_swapchain = nullptr; // textures of its images may hold it for a while
}

VkSurfaceCapabilitiesKHR VulkanSurface::capabilities() const
{
    const VulkanContext& context = device_of_surface(*this).context();
    VkSurfaceCapabilitiesKHR can{};
    const VkResult code = context.vk.GetPhysicalDeviceSurfaceCapabilitiesKHR(context.adapter->handle,
                                                                             m_window->handle(), &can);
    if (code == VK_ERROR_SURFACE_LOST_KHR)
        fail_runtime("the window of the surface is gone; create another window and surface");
    vk_check(code, "vkGetPhysicalDeviceSurfaceCapabilitiesKHR");
    return can;
}

VkPresentModeKHR VulkanSurface::present_mode(bool vsync) const
{
    if (vsync)
        return VK_PRESENT_MODE_FIFO_KHR; // the one that all have
    const VulkanContext& context = device_of_surface(*this).context();
    uint32_t count = 0;
    vk_check(context.vk.GetPhysicalDeviceSurfacePresentModesKHR(context.adapter->handle, m_window->handle(), &count,
                                                                nullptr),
             "vkGetPhysicalDeviceSurfacePresentModesKHR");
    std::vector<VkPresentModeKHR> modes(count);
    vk_check(context.vk.GetPhysicalDeviceSurfacePresentModesKHR(context.adapter->handle, m_window->handle(), &count,
                                                                modes.data()),
             "vkGetPhysicalDeviceSurfacePresentModesKHR");
    for (VkPresentModeKHR mode : {VK_PRESENT_MODE_IMMEDIATE_KHR, VK_PRESENT_MODE_MAILBOX_KHR})
        if (std::find(modes.begin(), modes.end(), mode) != modes.end())
            return mode;
    return VK_PRESENT_MODE_FIFO_KHR;
}

VkSwapchainCreateInfoKHR VulkanSurface::swapchain_info(const SurfaceConfig& config,
                                                       const VkSurfaceCapabilitiesKHR& can) const
{
    VkSwapchainCreateInfoKHR info{VK_STRUCTURE_TYPE_SWAPCHAIN_CREATE_INFO_KHR};
    info.surface = m_window->handle();
    info.minImageCount = std::max(config.desired_image_count, can.minImageCount);
    if (can.maxImageCount)
        info.minImageCount = std::min(info.minImageCount, can.maxImageCount);
    info.imageFormat = VkFormat(format_info(config.format).vk_format);
    info.imageColorSpace = VK_COLOR_SPACE_SRGB_NONLINEAR_KHR;
    info.imageExtent.width = std::clamp(config.width, can.minImageExtent.width, can.maxImageExtent.width);
    info.imageExtent.height = std::clamp(config.height, can.minImageExtent.height, can.maxImageExtent.height);
    info.imageArrayLayers = 1;
    const VkFormatFeatureFlags features =
        device_of_surface(*this).context().format_properties(config.format).optimalTilingFeatures;
    for (const auto& [usage, flag] : image_uses) {
        if (!has_flag(config.usage, usage))
            continue;
        const bool is_storage = flag == VK_IMAGE_USAGE_STORAGE_BIT;
        if (!(can.supportedUsageFlags & flag) || (is_storage && !(features & VK_FORMAT_FEATURE_STORAGE_IMAGE_BIT)))
            fail_value("Surface.configure 'usage': images of this window cannot be made for ", names_of(usage),
                       " in the format ", format_name(config.format), "; render into a texture and blit it");
        info.imageUsage |= flag;
    }
    // Reading back and uploading need no flag of ours.
    info.imageUsage |= can.supportedUsageFlags & (VK_IMAGE_USAGE_TRANSFER_SRC_BIT | VK_IMAGE_USAGE_TRANSFER_DST_BIT);
    info.imageSharingMode = VK_SHARING_MODE_EXCLUSIVE;
    info.preTransform = can.currentTransform;
    const VkCompositeAlphaFlagsKHR alphas = can.supportedCompositeAlpha; // opaque, else the first that there is
    info.compositeAlpha = alphas & VK_COMPOSITE_ALPHA_OPAQUE_BIT_KHR
        ? VK_COMPOSITE_ALPHA_OPAQUE_BIT_KHR
        : VkCompositeAlphaFlagBitsKHR(alphas & ~(alphas - 1));
    info.presentMode = present_mode(config.vsync);
    info.clipped = VK_TRUE;
    return info;
}

SurfaceConfig VulkanSurface::create_images(const SurfaceConfig& config)
{
    VulkanDevice& owner = device_of_surface(*this);
    owner.require_open("Surface.configure");
    const VkSurfaceCapabilitiesKHR can = capabilities();
    m_out_of_date = false;
    SurfaceConfig made = config;
    const VkSwapchainCreateInfoKHR info = swapchain_info(config, can);
    const std::shared_ptr<VulkanSwapchain> current = m_swapchain;
    destroy_images();
    if (!info.imageExtent.width || !info.imageExtent.height) // minimised: there is nothing to acquire
        return made;
    const std::shared_ptr<VulkanSwapchain> old = m_previous.lock();
    m_swapchain = std::make_shared<VulkanSwapchain>(owner, m_window, info, old ? old->handle : VK_NULL_HANDLE);
    m_usage = info.imageUsage;
    made.width = info.imageExtent.width;
    made.height = info.imageExtent.height;
    made.desired_image_count = uint32_t(m_swapchain->images.size());
    m_desc = TextureDesc();
    m_desc.format = config.format;
    m_desc.width = made.width;
    m_desc.height = made.height;
    m_desc.usage = config.usage;
    m_desc.label = "image of a surface";
    return made;
}

namespace {

void change_layout(VulkanDevice& device, VkImage image, VkImageLayout from, VkImageLayout to)
{
    VkImageMemoryBarrier barrier{VK_STRUCTURE_TYPE_IMAGE_MEMORY_BARRIER};
    const bool shows = to == VK_IMAGE_LAYOUT_PRESENT_SRC_KHR;
    barrier.srcAccessMask = shows ? VkAccessFlags(VK_ACCESS_MEMORY_WRITE_BIT) : 0;
    barrier.dstAccessMask = shows ? 0 : VK_ACCESS_MEMORY_READ_BIT | VK_ACCESS_MEMORY_WRITE_BIT;
    barrier.oldLayout = from;
    barrier.newLayout = to;
    barrier.srcQueueFamilyIndex = barrier.dstQueueFamilyIndex = VK_QUEUE_FAMILY_IGNORED;
    barrier.image = image;
    barrier.subresourceRange = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 1, 0, 1};
    device.context().vk.CmdPipelineBarrier(device.queue().begin_command(true), VK_PIPELINE_STAGE_ALL_COMMANDS_BIT,
                                           VK_PIPELINE_STAGE_ALL_COMMANDS_BIT, 0, 0, nullptr, 0, nullptr, 1, &barrier);
}

} // namespace

ref<Texture> VulkanSurface::acquire()
{
    VulkanDevice& owner = device_of_surface(*this);
    if (!m_swapchain || m_out_of_date)
        return nullptr;
    const VkExtent2D now = capabilities().currentExtent;
    const bool is_known = now.width != ~0u; // elsewhere the window takes the size of the images
    if (is_known && (now.width != m_desc.width || now.height != m_desc.height))
        return nullptr;
    const VulkanContext& context = owner.context();
    const VkSemaphore ready = m_swapchain->free_semaphore();
    VkResult code = VK_TIMEOUT;
    while ((code = context.vk.AcquireNextImageKHR(context.device, m_swapchain->handle, 50'000'000, ready,
                                                  VK_NULL_HANDLE, &m_index)) == VK_TIMEOUT)
        poll_interrupt();
    if (code == VK_ERROR_OUT_OF_DATE_KHR) {
        m_out_of_date = true;
        return nullptr;
    }
    vk_check(code, "vkAcquireNextImageKHR");
    std::lock_guard lock(owner.queue().mutex());
    owner.queue().flush(); // what came before does not wait for the image
    owner.queue().images_to_wait_for.push_back(ready);
    change_layout(owner, m_swapchain->images[m_index], VK_IMAGE_LAYOUT_UNDEFINED, VK_IMAGE_LAYOUT_GENERAL);
    m_swapchain->note_waiting(owner.queue().newest_id());
    return wrap_image();
}

ref<Texture> VulkanSurface::wrap_image()
{
    return ref<Texture>(new VulkanTexture(m_device, m_desc, m_swapchain->images[m_index], m_usage, m_swapchain));
}

void VulkanSurface::present_image(Texture*)
{
    VulkanDevice& owner = device_of_surface(*this);
    const VulkanContext& context = owner.context();
    const VkSemaphore drawn = m_swapchain->drawn[m_index];
    VkPresentInfoKHR info{VK_STRUCTURE_TYPE_PRESENT_INFO_KHR};
    info.waitSemaphoreCount = 1;
    info.pWaitSemaphores = &drawn;
    info.swapchainCount = 1;
    info.pSwapchains = &m_swapchain->handle;
    info.pImageIndices = &m_index;
    std::lock_guard lock(owner.queue().mutex());
    change_layout(owner, m_swapchain->images[m_index], VK_IMAGE_LAYOUT_GENERAL, VK_IMAGE_LAYOUT_PRESENT_SRC_KHR);
    owner.queue().image_to_signal = drawn;
    owner.queue().flush();
    VkResult code;
    {
        const std::lock_guard queue_lock(context.handle->queue_mutex);
        code = context.vk.QueuePresentKHR(context.queue, &info);
    }
    if (code == VK_ERROR_OUT_OF_DATE_KHR)
        m_out_of_date = true;
    else
        vk_check(code, "vkQueuePresentKHR");
}

ref<Surface> VulkanDevice::create_surface(const SurfaceDesc& desc)
{
    require_open("create_surface");
    if (!has_feature("surface"))
        fail(ErrorKind::not_implemented, "create_surface: the Vulkan device ", m_context.name(),
             " cannot show images: its driver or the loader lacks VK_KHR_surface or VK_KHR_swapchain, or the device "
             "was opened on handles of others");
    auto window = std::make_shared<VulkanWindow>(m_context.instance, surface_from(*m_context.instance, desc));
    return ref<Surface>(new VulkanSurface(ref<Device>(this), std::move(window)));
}

} // namespace spy
