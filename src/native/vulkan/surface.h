#pragma once
// Windows of the system: VkSurfaceKHR and its swapchains.
#include "vulkan/device.h"

#include "device/surface.h"

namespace spy {

/// A VkSurfaceKHR, which outlives every swapchain that was made of it.
class VulkanWindow {
public:
    VulkanWindow(std::shared_ptr<VulkanInstance> instance, VkSurfaceKHR handle)
        : m_instance(std::move(instance)),
          m_handle(handle)
    {
    }
    ~VulkanWindow() { m_instance->functions().DestroySurfaceKHR(m_instance->handle(), m_handle, nullptr); }
    VulkanWindow(const VulkanWindow&) = delete;
    VulkanWindow& operator=(const VulkanWindow&) = delete;
    VkSurfaceKHR handle() const { return m_handle; }

private:
    std::shared_ptr<VulkanInstance> m_instance;
    VkSurfaceKHR m_handle;
};

/// The images of one configuration. Textures made of them hold it.
class VulkanSwapchain {
public:
    /// `old`: the one that it takes the window from; may be null.
    VulkanSwapchain(VulkanDevice& device, std::shared_ptr<VulkanWindow> window, const VkSwapchainCreateInfoKHR& info,
                    VkSwapchainKHR old);
    ~VulkanSwapchain() { destroy(); }
    VulkanSwapchain(const VulkanSwapchain&) = delete;
    VulkanSwapchain& operator=(const VulkanSwapchain&) = delete;
    /// Waits until nothing uses the images. May be called twice.
    void destroy() noexcept;

    /// A semaphore that nothing waits for any more; waits until there is one.
    VkSemaphore& free_semaphore();
    /// The submission that waits for the semaphore given out last.
    void note_waiting(uint64_t submit_id) { m_waiting[m_next] = submit_id; }

    VkSwapchainKHR handle = VK_NULL_HANDLE;
    std::vector<VkImage> images;
    std::vector<VkSemaphore> drawn; ///< by image: what presenting it waits for

private:
    VkSemaphore create_semaphore();

    VulkanDevice& m_device; ///< textures hold it, and so does the surface
    std::shared_ptr<VulkanWindow> m_window;
    std::vector<VkSemaphore> m_ready; ///< one more than images
    std::vector<uint64_t> m_waiting;
    size_t m_next = 0;
};

class VulkanSurface final : public Surface {
public:
    VulkanSurface(ref<Device> device, std::shared_ptr<VulkanWindow> window);
    ~VulkanSurface() override { retire(); }
    void release() noexcept override;

protected:
    SurfaceConfig create_images(const SurfaceConfig& config) override;
    void destroy_images() override;
    ref<Texture> acquire() override;
    void present_image(Texture* image) override;

private:
    VkSurfaceCapabilitiesKHR capabilities() const;
    VkPresentModeKHR present_mode(bool vsync) const;
    VkSwapchainCreateInfoKHR swapchain_info(const SurfaceConfig& config, const VkSurfaceCapabilitiesKHR& can) const;
    ref<Texture> wrap_image();

    std::shared_ptr<VulkanWindow> m_window;
    std::shared_ptr<VulkanSwapchain> m_swapchain;
    std::weak_ptr<VulkanSwapchain> m_previous; ///< the window is its own as long as it lives
    TextureDesc m_desc;                        ///< of the images
    VkImageUsageFlags m_usage = 0;             ///< what the driver made them for
    uint32_t m_index = 0;                      ///< of the acquired image
    bool m_out_of_date = false;
};

} // namespace spy
