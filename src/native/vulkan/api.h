#pragma once
// Vulkan entry points, opened at run time: nothing links the loader, so the package imports where there is no Vulkan.
#ifndef VK_NO_PROTOTYPES
#define VK_NO_PROTOTYPES
#endif
#include <vulkan/vulkan_core.h>

#include "device/types.h"
#include "vulkan/cooperative_matrix.h"
#include "vulkan/cooperative_vector.h"

#include <memory>
#include <string>
#include <vector>

#if defined(__GNUC__)
// Vulkan's structures start with their type; the other fields are set by name where they matter.
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"
#endif

namespace spy {

// Resolved with the loader alone.
// clang-format off
#define SPY_VK_GLOBAL(X) \
    X(CreateInstance) X(EnumerateInstanceVersion) X(EnumerateInstanceExtensionProperties) \
    X(EnumerateInstanceLayerProperties)
#define SPY_VK_INSTANCE(X) \
    X(DestroyInstance) X(EnumeratePhysicalDevices) X(GetPhysicalDeviceProperties) X(GetPhysicalDeviceProperties2) \
    X(GetPhysicalDeviceFeatures2) X(GetPhysicalDeviceMemoryProperties) X(GetPhysicalDeviceQueueFamilyProperties) \
    X(GetPhysicalDeviceFormatProperties) X(GetPhysicalDeviceImageFormatProperties) \
    X(EnumerateDeviceExtensionProperties) X(CreateDevice) X(GetDeviceProcAddr)
#define SPY_VK_DEVICE(X) \
    X(DestroyDevice) X(DeviceWaitIdle) X(GetDeviceQueue) X(QueueSubmit) X(AllocateMemory) X(FreeMemory) \
    X(MapMemory) X(CreateBuffer) X(DestroyBuffer) X(BindBufferMemory) X(GetBufferMemoryRequirements) \
    X(GetBufferDeviceAddress) X(CreateBufferView) X(DestroyBufferView) X(CreateImage) X(DestroyImage) \
    X(BindImageMemory) X(GetImageMemoryRequirements) X(CreateImageView) X(DestroyImageView) X(CreateSampler) \
    X(DestroySampler) X(CreateSemaphore) X(DestroySemaphore) X(GetSemaphoreCounterValue) X(WaitSemaphores) \
    X(SignalSemaphore) X(CreateQueryPool) X(DestroyQueryPool) X(GetQueryPoolResults) X(CreateCommandPool) \
    X(DestroyCommandPool) X(ResetCommandPool) X(AllocateCommandBuffers) X(BeginCommandBuffer) X(EndCommandBuffer) \
    X(CreateShaderModule) X(DestroyShaderModule) X(CreatePipelineCache) X(DestroyPipelineCache) \
    X(CreateComputePipelines) X(DestroyPipeline) X(CreatePipelineLayout) X(DestroyPipelineLayout) \
    X(CreateDescriptorSetLayout) X(DestroyDescriptorSetLayout) X(CreateDescriptorPool) X(DestroyDescriptorPool) \
    X(ResetDescriptorPool) X(AllocateDescriptorSets) X(UpdateDescriptorSets) X(CreateDescriptorUpdateTemplate) \
    X(DestroyDescriptorUpdateTemplate) X(UpdateDescriptorSetWithTemplate) X(CmdPipelineBarrier) X(CmdBindPipeline) \
    X(CmdBindDescriptorSets) X(CmdPushConstants) X(CmdDispatch) X(CmdDispatchIndirect) X(CmdCopyBuffer) \
    X(CmdFillBuffer) X(CmdCopyImage) X(CmdCopyBufferToImage) X(CmdCopyImageToBuffer) X(CmdClearColorImage) \
    X(CmdClearDepthStencilImage) X(CmdResetQueryPool) X(CmdWriteTimestamp) X(CmdCopyQueryPoolResults) \
    X(CreateGraphicsPipelines) X(CmdSetViewport) X(CmdSetScissor) X(CmdSetStencilReference) X(CmdBindVertexBuffers) \
    X(CmdBindIndexBuffer) X(CmdDraw) X(CmdDrawIndexed) X(CmdDrawIndirect) X(CmdDrawIndexedIndirect) \
    X(CmdDrawIndirectCount) X(CmdDrawIndexedIndirectCount)
// Of extensions: null where the extension is not enabled.
#define SPY_VK_INSTANCE_OPTIONAL(X) \
    X(CreateDebugUtilsMessengerEXT) X(DestroyDebugUtilsMessengerEXT) X(DestroySurfaceKHR) \
    X(GetPhysicalDeviceSurfaceSupportKHR) X(GetPhysicalDeviceSurfaceCapabilitiesKHR) \
    X(GetPhysicalDeviceSurfaceFormatsKHR) X(GetPhysicalDeviceSurfacePresentModesKHR) \
    X(GetPhysicalDeviceCooperativeMatrixPropertiesKHR)
#define SPY_VK_DEVICE_OPTIONAL(X) \
    X(GetMemoryFdKHR) X(GetSemaphoreFdKHR) X(SetDebugUtilsObjectNameEXT) X(CmdBeginDebugUtilsLabelEXT) \
    X(CmdEndDebugUtilsLabelEXT) X(CmdInsertDebugUtilsLabelEXT) X(CmdBeginRenderingKHR) X(CmdEndRenderingKHR) \
    X(CmdSetViewportWithCountEXT) X(CmdSetScissorWithCountEXT) X(CmdDrawMeshTasksEXT) \
    X(CreateAccelerationStructureKHR) X(DestroyAccelerationStructureKHR) X(GetAccelerationStructureBuildSizesKHR) \
    X(GetAccelerationStructureDeviceAddressKHR) X(CmdBuildAccelerationStructuresKHR) \
    X(CmdCopyAccelerationStructureKHR) X(CmdWriteAccelerationStructuresPropertiesKHR) \
    X(CreateRayTracingPipelinesKHR) X(GetRayTracingShaderGroupHandlesKHR) X(CmdTraceRaysKHR) \
    X(ConvertCooperativeVectorMatrixNV) X(CmdConvertCooperativeVectorMatrixNV) \
    X(CreateSwapchainKHR) X(DestroySwapchainKHR) X(GetSwapchainImagesKHR) X(AcquireNextImageKHR) X(QueuePresentKHR)
// clang-format on

struct VulkanFunctions {
    PFN_vkGetInstanceProcAddr GetInstanceProcAddr = nullptr;
#define X(name) PFN_vk##name name = nullptr;
    SPY_VK_GLOBAL(X)
    SPY_VK_INSTANCE(X)
    SPY_VK_DEVICE(X)
    SPY_VK_INSTANCE_OPTIONAL(X)
    SPY_VK_DEVICE_OPTIONAL(X)
#undef X
    void load_instance(VkInstance instance);
    void load_device(VkDevice device);
};

/// The loader's functions; throws spy::Error saying what is missing when there is no Vulkan loader.
const VulkanFunctions& vulkan_loader();

const char* vk_result_name(VkResult result);
[[noreturn]] void vk_fail(VkResult result, const char* what, std::string_view advice = {});
/// Throws for every error code: ErrorKind::memory when out of memory, else runtime.
inline void vk_check(VkResult result, const char* what)
{
    if (result < 0)
        vk_fail(result, what);
}

/// Owns a VkInstance (or borrows the caller's) together with its debug messenger.
class VulkanInstance {
public:
    /// `debug` turns on VK_LAYER_KHRONOS_validation and the messenger; throws when the layer is not installed.
    VulkanInstance(bool debug, const std::vector<std::string>& extra_extensions);
    explicit VulkanInstance(VkInstance borrowed);
    /// The process's instance of this kind. It is never destroyed: that would unload every driver, and some drivers
    /// cannot be loaded any number of times.
    static std::shared_ptr<VulkanInstance> shared(bool debug, const std::vector<std::string>& extra_extensions);
    ~VulkanInstance();
    VulkanInstance(const VulkanInstance&) = delete;
    VulkanInstance& operator=(const VulkanInstance&) = delete;

    VkInstance handle() const { return m_instance; }
    const VulkanFunctions& functions() const { return m_functions; }
    bool has_debug_utils() const { return m_debug_utils; }
    bool has_surfaces() const { return m_surfaces; }
    /// Hardware first, software last; otherwise in the driver's order. Only devices with Vulkan 1.2.
    std::vector<VkPhysicalDevice> physical_devices() const;

private:
    void create_messenger();

    VulkanFunctions m_functions;
    VkInstance m_instance = VK_NULL_HANDLE;
    VkDebugUtilsMessengerEXT m_messenger = VK_NULL_HANDLE;
    bool m_owned = false, m_debug_utils = false, m_surfaces = false;
};

/// Takes the messages (warnings and errors) of the validation layers since the last call, oldest first; of all devices
/// of the process. At most 1024 are kept.
std::vector<std::string> take_vulkan_debug_messages();

} // namespace spy
