#pragma once
// An opened VkDevice: what the adapter has, what of it is turned on, and the queue.
#include "device/texel_format.h"
#include "vulkan/api.h"

#include <map>
#include <mutex>
#include <set>

namespace spy {

/// All feature structures the backend looks at, as one chain: first what the device can do, then what is enabled.
struct VulkanFeatures {
    VkPhysicalDeviceFeatures2 core{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2};
    VkPhysicalDeviceVulkan11Features v11{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES};
    VkPhysicalDeviceVulkan12Features v12{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES};
    VkPhysicalDeviceShaderAtomicFloatFeaturesEXT atomic_float{
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_ATOMIC_FLOAT_FEATURES_EXT};
    VkPhysicalDeviceShaderAtomicFloat2FeaturesEXT atomic_float2{
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_ATOMIC_FLOAT_2_FEATURES_EXT};
    VkPhysicalDeviceShaderImageAtomicInt64FeaturesEXT image_atomic_int64{
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_IMAGE_ATOMIC_INT64_FEATURES_EXT};
    VkPhysicalDeviceRobustness2FeaturesEXT robustness2{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ROBUSTNESS_2_FEATURES_EXT};
    VkPhysicalDeviceShaderClockFeaturesKHR clock{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_CLOCK_FEATURES_KHR};
    VkPhysicalDeviceCustomBorderColorFeaturesEXT border{
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_CUSTOM_BORDER_COLOR_FEATURES_EXT};
    VkPhysicalDevice4444FormatsFeaturesEXT formats_4444{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_4444_FORMATS_FEATURES_EXT};
    VkPhysicalDeviceDynamicRenderingFeaturesKHR rendering{
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DYNAMIC_RENDERING_FEATURES_KHR};
    VkPhysicalDeviceExtendedDynamicStateFeaturesEXT dynamic_state{
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTENDED_DYNAMIC_STATE_FEATURES_EXT};
    VkPhysicalDeviceVertexAttributeDivisorFeaturesEXT divisor{
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VERTEX_ATTRIBUTE_DIVISOR_FEATURES_EXT};
    VkPhysicalDeviceLineRasterizationFeaturesEXT lines{
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_LINE_RASTERIZATION_FEATURES_EXT};
    VkPhysicalDeviceMeshShaderFeaturesEXT mesh{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MESH_SHADER_FEATURES_EXT};
    VkPhysicalDeviceFragmentShaderBarycentricFeaturesKHR barycentrics{
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FRAGMENT_SHADER_BARYCENTRIC_FEATURES_KHR};

    VkPhysicalDeviceAccelerationStructureFeaturesKHR acceleration{
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ACCELERATION_STRUCTURE_FEATURES_KHR};
    VkPhysicalDeviceRayQueryFeaturesKHR ray_query{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_RAY_QUERY_FEATURES_KHR};
    VkPhysicalDeviceRayTracingPipelineFeaturesKHR ray_tracing{
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_RAY_TRACING_PIPELINE_FEATURES_KHR};
    VkPhysicalDeviceRayTracingMaintenance1FeaturesKHR ray_maintenance{
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_RAY_TRACING_MAINTENANCE_1_FEATURES_KHR};
    VkPhysicalDeviceCooperativeVectorFeaturesNV coop_vec{
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_VECTOR_FEATURES_NV};
    VkPhysicalDeviceShaderReplicatedCompositesFeaturesEXT replicated_composites{
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_REPLICATED_COMPOSITES_FEATURES_EXT};

    VkPhysicalDeviceCooperativeMatrixFeaturesKHR coop_matrix{
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_KHR};

    VulkanFeatures() = default;
    VulkanFeatures(const VulkanFeatures&) = delete; // the chain points into itself
    VulkanFeatures& operator=(const VulkanFeatures&) = delete;
    /// Chains the structures of the extensions given; `core` is the head.
    void link(const std::set<std::string>& extensions);
};

/// What is known of a physical device before it is opened.
struct VulkanAdapter {
    VkPhysicalDevice handle = VK_NULL_HANDLE;
    VkPhysicalDeviceProperties properties{};
    VkPhysicalDeviceVulkan11Properties v11{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_PROPERTIES};
    VkPhysicalDeviceVulkan12Properties v12{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_PROPERTIES};
    VkPhysicalDeviceMemoryProperties memory{};
    VkPhysicalDeviceAccelerationStructurePropertiesKHR acceleration{
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ACCELERATION_STRUCTURE_PROPERTIES_KHR};
    VkPhysicalDeviceRayTracingPipelinePropertiesKHR ray_tracing{
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_RAY_TRACING_PIPELINE_PROPERTIES_KHR};
    uint64_t max_buffer_size = ~0ull;
    std::set<std::string> extensions;

    VulkanAdapter(const VulkanInstance& instance, VkPhysicalDevice device);
    AdapterInfo info() const;
    bool is_software() const { return properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU; }
};

/// A VkDevice with what was asked of it. Devices opened on one VkDevice share it, and so do the handles that Python has
/// of it: where we made it, the last one to go destroys it, in whatever order they are closed.
struct VulkanHandle {
    std::shared_ptr<VulkanInstance> instance;
    VkDevice device = VK_NULL_HANDLE;
    std::set<std::string> extensions; ///< empty when it is the caller's: what that was made with is unknown
    bool is_ours = false;
    std::mutex queue_mutex; ///< the driver leaves it to us that calls on one queue do not overlap

    VulkanHandle(std::shared_ptr<VulkanInstance> instance, VkDevice device, std::set<std::string> extensions,
                 bool ours);
    ~VulkanHandle();
    /// The one that stands for this VkDevice, null where we know of none.
    static std::shared_ptr<VulkanHandle> find(VkDevice device);
    static std::shared_ptr<VulkanHandle> make(std::shared_ptr<VulkanInstance> instance, VkDevice device,
                                              std::set<std::string> extensions, bool ours);
};

/// What every part of a Vulkan device uses, complete once open() is through.
class VulkanContext {
public:
    void open(const DeviceDesc& desc);
    void close() noexcept;
    bool is_open() const { return device != VK_NULL_HANDLE; }
    bool can_draw() const { return draws && features.rendering.dynamicRendering; }
    bool has_acceleration() const { return features.acceleration.accelerationStructure; }
    bool can_query_rays() const { return has_acceleration() && features.ray_query.rayQuery; }
    bool can_trace_rays() const { return has_acceleration() && features.ray_tracing.rayTracingPipeline; }
    bool has_coop_vec() const
    {
        return features.coop_vec.cooperativeVector && features.replicated_composites.shaderReplicatedComposites;
    }
    bool can_show() const { return instance->has_surfaces() && has_extension(VK_KHR_SWAPCHAIN_EXTENSION_NAME); }
    bool has_extension(const char* name) const { return extensions.count(name) != 0; }
    const char* name() const { return adapter->properties.deviceName; }
    void set_name(VkObjectType type, uint64_t object, const std::string& name) const;
    VkFormatProperties format_properties(Format format) const;
    /// Of 2-D textures that are drawn into; 0 where they are not.
    VkSampleCountFlags sample_counts(Format format) const;
    VkSemaphore create_timeline(uint64_t initial_value, bool exported) const;
    /// A new file descriptor, the caller's.
    int export_semaphore(VkSemaphore semaphore) const;
    int export_memory(VkDeviceMemory memory) const;
    /// Also for work of other devices on the same VkDevice, which must not submit meanwhile.
    void wait_idle() const noexcept;

    std::shared_ptr<VulkanInstance> instance;
    std::unique_ptr<VulkanAdapter> adapter;
    VulkanFunctions vk;
    VulkanFeatures features;
    std::set<std::string> extensions;
    std::shared_ptr<VulkanHandle> handle;
    VkDevice device = VK_NULL_HANDLE; ///< of `handle`
    VkQueue queue = VK_NULL_HANDLE;
    uint32_t queue_family = 0, timestamp_bits = 0;
    bool draws = false; ///< the queue does
    VkPipelineCache pipeline_cache = VK_NULL_HANDLE;

private:
    void open_instance(const DeviceDesc& desc);
    void choose_adapter(const DeviceDesc& desc);
    void choose_extensions(const DeviceDesc& desc);
    void choose_ray_extensions();
    void choose_features();
    void choose_queue();
    void create_handle();
};

} // namespace spy
