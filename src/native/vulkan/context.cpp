// Opening a device: adapter, extensions, features, queue.
#include "vulkan/context.h"

#include "core/error.h"
#include "device/cuda_interop.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace spy {

namespace {

void append(void**& tail, void* structure)
{
    *tail = structure;
    tail = reinterpret_cast<void**>(&static_cast<VkBaseOutStructure*>(structure)->pNext);
}

std::set<std::string> device_extensions(const VulkanFunctions& vk, VkPhysicalDevice device)
{
    uint32_t count = 0;
    vk_check(vk.EnumerateDeviceExtensionProperties(device, nullptr, &count, nullptr),
             "vkEnumerateDeviceExtensionProperties");
    std::vector<VkExtensionProperties> list(count);
    vk_check(vk.EnumerateDeviceExtensionProperties(device, nullptr, &count, list.data()),
             "vkEnumerateDeviceExtensionProperties");
    std::set<std::string> names;
    for (uint32_t i = 0; i < count; ++i)
        names.insert(list[i].extensionName);
    return names;
}

/// Whether waves multiply the tiles of halves that Slang's module `neural` is written for, and add to floats.
bool multiplies_tiles(const VulkanInstance& instance, const VulkanAdapter& adapter)
{
    const auto ask = instance.functions().GetPhysicalDeviceCooperativeMatrixPropertiesKHR;
    if (!ask || !adapter.extensions.count(VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME))
        return false;
    uint32_t count = 0;
    vk_check(ask(adapter.handle, &count, nullptr), "vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR");
    std::vector<VkCooperativeMatrixPropertiesKHR> list(count, {VK_STRUCTURE_TYPE_COOPERATIVE_MATRIX_PROPERTIES_KHR});
    vk_check(ask(adapter.handle, &count, list.data()), "vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR");
    return std::any_of(list.begin(), list.end(), [](const VkCooperativeMatrixPropertiesKHR& tile) {
        return tile.MSize == 16 && tile.NSize == 16 && tile.KSize == 16 && tile.scope == VK_SCOPE_SUBGROUP_KHR &&
            tile.AType == VK_COMPONENT_TYPE_FLOAT16_KHR && tile.BType == VK_COMPONENT_TYPE_FLOAT16_KHR &&
            tile.CType == VK_COMPONENT_TYPE_FLOAT32_KHR && tile.ResultType == VK_COMPONENT_TYPE_FLOAT32_KHR;
    });
}

} // namespace

void VulkanFeatures::link(const std::set<std::string>& extensions)
{
    void** tail = &core.pNext;
    append(tail, &v11);
    append(tail, &v12);
    if (extensions.count(VK_EXT_SHADER_ATOMIC_FLOAT_EXTENSION_NAME))
        append(tail, &atomic_float);
    if (extensions.count(VK_EXT_SHADER_ATOMIC_FLOAT_2_EXTENSION_NAME))
        append(tail, &atomic_float2);
    if (extensions.count(VK_EXT_SHADER_IMAGE_ATOMIC_INT64_EXTENSION_NAME))
        append(tail, &image_atomic_int64);
    if (extensions.count(VK_EXT_ROBUSTNESS_2_EXTENSION_NAME))
        append(tail, &robustness2);
    if (extensions.count(VK_KHR_SHADER_CLOCK_EXTENSION_NAME))
        append(tail, &clock);
    if (extensions.count(VK_EXT_CUSTOM_BORDER_COLOR_EXTENSION_NAME))
        append(tail, &border);
    if (extensions.count(VK_EXT_4444_FORMATS_EXTENSION_NAME))
        append(tail, &formats_4444);
    if (extensions.count(VK_KHR_DYNAMIC_RENDERING_EXTENSION_NAME))
        append(tail, &rendering);
    if (extensions.count(VK_EXT_EXTENDED_DYNAMIC_STATE_EXTENSION_NAME))
        append(tail, &dynamic_state);
    if (extensions.count(VK_EXT_VERTEX_ATTRIBUTE_DIVISOR_EXTENSION_NAME))
        append(tail, &divisor);
    if (extensions.count(VK_EXT_LINE_RASTERIZATION_EXTENSION_NAME))
        append(tail, &lines);
    if (extensions.count(VK_EXT_MESH_SHADER_EXTENSION_NAME))
        append(tail, &mesh);
    if (extensions.count(VK_KHR_FRAGMENT_SHADER_BARYCENTRIC_EXTENSION_NAME))
        append(tail, &barycentrics);
    if (extensions.count(VK_KHR_ACCELERATION_STRUCTURE_EXTENSION_NAME))
        append(tail, &acceleration);
    if (extensions.count(VK_KHR_RAY_QUERY_EXTENSION_NAME))
        append(tail, &ray_query);
    if (extensions.count(VK_KHR_RAY_TRACING_PIPELINE_EXTENSION_NAME))
        append(tail, &ray_tracing);
    if (extensions.count(VK_KHR_RAY_TRACING_MAINTENANCE_1_EXTENSION_NAME))
        append(tail, &ray_maintenance);
    if (extensions.count(VK_NV_COOPERATIVE_VECTOR_EXTENSION_NAME))
        append(tail, &coop_vec);
    if (extensions.count(VK_EXT_SHADER_REPLICATED_COMPOSITES_EXTENSION_NAME))
        append(tail, &replicated_composites);
    if (extensions.count(VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME))
        append(tail, &coop_matrix);
}

VulkanAdapter::VulkanAdapter(const VulkanInstance& instance, VkPhysicalDevice device) : handle(device)
{
    const VulkanFunctions& vk = instance.functions();
    extensions = device_extensions(vk, device);
    vk.GetPhysicalDeviceProperties(device, &properties);
    VkPhysicalDeviceProperties2 chain{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2};
    VkPhysicalDeviceMaintenance4Properties maintenance4{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_4_PROPERTIES};
    chain.pNext = &v11;
    v11.pNext = &v12;
    const bool has_maintenance4 = properties.apiVersion >= VK_API_VERSION_1_3 ||
        extensions.count(VK_KHR_MAINTENANCE_4_EXTENSION_NAME);
    void** tail = &v12.pNext;
    if (has_maintenance4)
        append(tail, &maintenance4);
    if (extensions.count(VK_KHR_ACCELERATION_STRUCTURE_EXTENSION_NAME))
        append(tail, &acceleration);
    if (extensions.count(VK_KHR_RAY_TRACING_PIPELINE_EXTENSION_NAME))
        append(tail, &ray_tracing);
    vk.GetPhysicalDeviceProperties2(device, &chain);
    v11.pNext = v12.pNext = acceleration.pNext = ray_tracing.pNext = nullptr;
    if (has_maintenance4)
        max_buffer_size = maintenance4.maxBufferSize;
    vk.GetPhysicalDeviceMemoryProperties(device, &memory);
}

AdapterInfo VulkanAdapter::info() const
{
    AdapterInfo info;
    info.name = properties.deviceName;
    info.vendor_id = properties.vendorID;
    info.device_id = properties.deviceID;
    // Where the system has no LUIDs (Linux) the UUID identifies the adapter; CUDA reports the same one.
    if (v11.deviceLUIDValid)
        std::memcpy(info.luid.data(), v11.deviceLUID, VK_LUID_SIZE);
    else
        std::memcpy(info.luid.data(), v11.deviceUUID, VK_UUID_SIZE);
    info.is_software = is_software();
    return info;
}

namespace {

/// Never destroyed, as devices may outlive static objects.
struct KnownHandles {
    std::mutex mutex;
    std::map<VkDevice, std::weak_ptr<VulkanHandle>> handles;
};
KnownHandles& known_handles()
{
    static auto* known = new KnownHandles;
    return *known;
}

} // namespace

VulkanHandle::VulkanHandle(std::shared_ptr<VulkanInstance> instance, VkDevice device, std::set<std::string> extensions,
                           bool ours)
    : instance(std::move(instance)),
      device(device),
      extensions(std::move(extensions)),
      is_ours(ours)
{
}

std::shared_ptr<VulkanHandle> VulkanHandle::make(std::shared_ptr<VulkanInstance> instance, VkDevice device,
                                                 std::set<std::string> extensions, bool ours)
{
    auto handle = std::make_shared<VulkanHandle>(std::move(instance), device, std::move(extensions), ours);
    KnownHandles& known = known_handles();
    std::lock_guard lock(known.mutex);
    known.handles[device] = handle;
    return handle;
}

std::shared_ptr<VulkanHandle> VulkanHandle::find(VkDevice device)
{
    KnownHandles& known = known_handles();
    std::lock_guard lock(known.mutex);
    const auto found = known.handles.find(device);
    return found == known.handles.end() ? nullptr : found->second.lock();
}

VulkanHandle::~VulkanHandle()
{
    {
        KnownHandles& known = known_handles();
        std::lock_guard lock(known.mutex);
        const auto found = known.handles.find(device);
        if (found != known.handles.end() && found->second.expired())
            known.handles.erase(found);
    }
    if (!is_ours)
        return;
    const PFN_vkVoidFunction destroy = instance->functions().GetDeviceProcAddr(device, "vkDestroyDevice");
    reinterpret_cast<PFN_vkDestroyDevice>(destroy)(device, nullptr);
}

void VulkanContext::open(const DeviceDesc& desc)
{
    open_instance(desc);
    choose_adapter(desc);
    choose_extensions(desc);
    choose_features();
    choose_queue();
    if (!handle)
        create_handle();
    vk = instance->functions();
    vk.load_device(device);
    vk.GetDeviceQueue(device, queue_family, 0, &queue);
    VkPipelineCacheCreateInfo cache{VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO};
    vk_check(vk.CreatePipelineCache(device, &cache, nullptr, &pipeline_cache), "vkCreatePipelineCache");
}

void VulkanContext::close() noexcept
{
    if (device && vk.DestroyDevice)
        vk.DestroyPipelineCache(device, pipeline_cache, nullptr);
    device = VK_NULL_HANDLE;
    handle.reset();
    instance.reset();
}

void VulkanContext::wait_idle() const noexcept
{
    const std::lock_guard lock(handle->queue_mutex);
    vk.DeviceWaitIdle(device);
}

void VulkanContext::open_instance(const DeviceDesc& desc)
{
    const NativeHandle& given = desc.existing_device_handles[0];
    if (given.type == NativeHandleType::undefined || !given.value) {
        instance = VulkanInstance::shared(desc.enable_debug_layers, desc.additional_vulkan_instance_extensions);
        return;
    }
    const auto& handles = desc.existing_device_handles;
    if (handles[0].type != NativeHandleType::VkInstance || handles[1].type != NativeHandleType::VkPhysicalDevice ||
        handles[2].type != NativeHandleType::VkDevice || !handles[1].value || !handles[2].value)
        fail_value(
            "existing_device_handles of a Vulkan device must be a VkInstance, a VkPhysicalDevice and a VkDevice");
    handle = VulkanHandle::find(reinterpret_cast<VkDevice>(handles[2].value));
    instance = handle ? handle->instance : std::make_shared<VulkanInstance>(reinterpret_cast<VkInstance>(given.value));
    if (!handle)
        handle = VulkanHandle::make(instance, reinterpret_cast<VkDevice>(handles[2].value), {}, false);
}

void VulkanContext::choose_adapter(const DeviceDesc& desc)
{
    if (handle) {
        const auto& handles = desc.existing_device_handles;
        adapter = std::make_unique<VulkanAdapter>(*instance, reinterpret_cast<VkPhysicalDevice>(handles[1].value));
        device = handle->device;
        extensions = handle->extensions;
        return;
    }
    std::vector<std::unique_ptr<VulkanAdapter>> adapters;
    for (VkPhysicalDevice physical : instance->physical_devices())
        adapters.push_back(std::make_unique<VulkanAdapter>(*instance, physical));
    if (adapters.empty())
        fail_runtime("no Vulkan device was found: the driver is missing or older than Vulkan 1.2; install a newer one");
    size_t chosen = 0;
    if (desc.has_adapter_luid) {
        while (chosen < adapters.size() && adapters[chosen]->info().luid != desc.adapter_luid)
            ++chosen;
        if (chosen == adapters.size())
            fail_runtime("no Vulkan adapter has the adapter_luid asked for; Device.enumerate_adapters lists them");
    } else if (desc.adapter_index >= 0) {
        chosen = size_t(desc.adapter_index);
        if (chosen >= adapters.size())
            fail_value("adapter_index ", chosen, " is out of range: there are ", adapters.size(),
                       " Vulkan adapters, counted from 0; Device.enumerate_adapters(DeviceType.vulkan) lists them");
    } else if (desc.enable_cuda_interop) {
        auto is_cuda = [](const auto& candidate) {
            std::array<uint8_t, 16> uuid;
            std::memcpy(uuid.data(), candidate->v11.deviceUUID, VK_UUID_SIZE);
            return CudaInterop::matches(uuid);
        };
        const auto match = std::find_if(adapters.begin(), adapters.end(), is_cuda);
        chosen = match == adapters.end() ? 0 : size_t(match - adapters.begin());
    }
    adapter = std::move(adapters[chosen]);
}

void VulkanContext::choose_extensions(const DeviceDesc& desc)
{
    if (handle)
        return;
    // All optional; each is used by one feature that is reported only with it.
    for (const char* name : {VK_EXT_SHADER_ATOMIC_FLOAT_EXTENSION_NAME, VK_EXT_SHADER_ATOMIC_FLOAT_2_EXTENSION_NAME,
                             VK_EXT_SHADER_IMAGE_ATOMIC_INT64_EXTENSION_NAME, VK_EXT_ROBUSTNESS_2_EXTENSION_NAME,
                             VK_KHR_SHADER_CLOCK_EXTENSION_NAME, VK_EXT_CUSTOM_BORDER_COLOR_EXTENSION_NAME,
                             VK_EXT_4444_FORMATS_EXTENSION_NAME, VK_KHR_SHADER_NON_SEMANTIC_INFO_EXTENSION_NAME,
                             VK_KHR_EXTERNAL_MEMORY_FD_EXTENSION_NAME, VK_KHR_EXTERNAL_SEMAPHORE_FD_EXTENSION_NAME,
                             VK_KHR_DYNAMIC_RENDERING_EXTENSION_NAME, VK_EXT_EXTENDED_DYNAMIC_STATE_EXTENSION_NAME,
                             VK_EXT_VERTEX_ATTRIBUTE_DIVISOR_EXTENSION_NAME, VK_EXT_LINE_RASTERIZATION_EXTENSION_NAME,
                             VK_EXT_MESH_SHADER_EXTENSION_NAME, VK_KHR_FRAGMENT_SHADER_BARYCENTRIC_EXTENSION_NAME,
                             VK_EXT_CONSERVATIVE_RASTERIZATION_EXTENSION_NAME})
        if (adapter->extensions.count(name))
            extensions.insert(name);
    // Slang's code for cooperative vectors needs both.
    if (adapter->extensions.count(VK_NV_COOPERATIVE_VECTOR_EXTENSION_NAME) &&
        adapter->extensions.count(VK_EXT_SHADER_REPLICATED_COMPOSITES_EXTENSION_NAME))
        extensions.insert(
            {VK_NV_COOPERATIVE_VECTOR_EXTENSION_NAME, VK_EXT_SHADER_REPLICATED_COMPOSITES_EXTENSION_NAME});
    if (multiplies_tiles(*instance, *adapter))
        extensions.insert(VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME);
    choose_ray_extensions();
    if (instance->has_surfaces() && adapter->extensions.count(VK_KHR_SWAPCHAIN_EXTENSION_NAME))
        extensions.insert(VK_KHR_SWAPCHAIN_EXTENSION_NAME);
    for (const std::string& name : desc.additional_vulkan_device_extensions) {
        if (!adapter->extensions.count(name))
            fail_runtime("the Vulkan device ", adapter->properties.deviceName, " has no extension ", name,
                         "; install a newer driver, or choose another adapter with 'adapter_index'");
        extensions.insert(name);
    }
}

/// Each needs the one before it.
void VulkanContext::choose_ray_extensions()
{
    const auto has = [&](const char* name) { return adapter->extensions.count(name) != 0; };
    if (!has(VK_KHR_ACCELERATION_STRUCTURE_EXTENSION_NAME) || !has(VK_KHR_DEFERRED_HOST_OPERATIONS_EXTENSION_NAME))
        return;
    for (const char* name :
         {VK_KHR_ACCELERATION_STRUCTURE_EXTENSION_NAME, VK_KHR_DEFERRED_HOST_OPERATIONS_EXTENSION_NAME,
          VK_KHR_RAY_QUERY_EXTENSION_NAME, VK_KHR_RAY_TRACING_PIPELINE_EXTENSION_NAME})
        if (has(name))
            extensions.insert(name);
    if (has(VK_KHR_RAY_TRACING_PIPELINE_EXTENSION_NAME) && has(VK_KHR_RAY_TRACING_MAINTENANCE_1_EXTENSION_NAME))
        extensions.insert(VK_KHR_RAY_TRACING_MAINTENANCE_1_EXTENSION_NAME);
}

void VulkanContext::choose_features()
{
    // What a caller's own device was created with is unknown: no extension is assumed, core features are.
    features.link(extensions);
    instance->functions().GetPhysicalDeviceFeatures2(adapter->handle, &features.core);
    const VkPhysicalDeviceVulkan12Features& v12 = features.v12;
    if (!v12.bufferDeviceAddress || !v12.timelineSemaphore || !v12.scalarBlockLayout)
        fail_runtime("the Vulkan device ", adapter->properties.deviceName,
                     " lacks bufferDeviceAddress, timelineSemaphore or scalarBlockLayout, which are needed; install a "
                     "newer driver, or choose another adapter with 'adapter_index'");
    // These cost speed or need more than a flag.
    VkPhysicalDeviceFeatures& core = features.core.features;
    core.robustBufferAccess = false;
    core.sparseBinding = core.sparseResidencyBuffer = core.sparseResidencyImage2D = core.sparseResidencyImage3D = false;
    core.sparseResidency2Samples = core.sparseResidency4Samples = core.sparseResidency8Samples = false;
    core.sparseResidency16Samples = core.sparseResidencyAliased = false;
    features.v11.protectedMemory = features.v11.samplerYcbcrConversion = false;
    features.v12.bufferDeviceAddressCaptureReplay = features.v12.bufferDeviceAddressMultiDevice = false;
    features.robustness2.robustBufferAccess2 = features.robustness2.robustImageAccess2 = false;
    features.image_atomic_int64.sparseImageInt64Atomics = false;
    features.atomic_float.sparseImageFloat32Atomics = features.atomic_float.sparseImageFloat32AtomicAdd = false;
    features.atomic_float2.sparseImageFloat32AtomicMinMax = false;
    features.mesh.multiviewMeshShader = features.mesh.primitiveFragmentShadingRateMeshShader = false;
    features.mesh.meshShaderQueries = false;
    features.coop_matrix.cooperativeMatrixRobustBufferAccess = false;
    features.acceleration.accelerationStructureCaptureReplay = false;
    features.acceleration.accelerationStructureIndirectBuild = false;
    features.acceleration.accelerationStructureHostCommands = false;
    features.ray_tracing.rayTracingPipelineShaderGroupHandleCaptureReplay = false;
    features.ray_tracing.rayTracingPipelineShaderGroupHandleCaptureReplayMixed = false;
}

void VulkanContext::choose_queue()
{
    const VulkanFunctions& functions = instance->functions();
    uint32_t count = 0;
    functions.GetPhysicalDeviceQueueFamilyProperties(adapter->handle, &count, nullptr);
    std::vector<VkQueueFamilyProperties> families(count);
    functions.GetPhysicalDeviceQueueFamilyProperties(adapter->handle, &count, families.data());
    auto find = [&](VkQueueFlags flags) {
        uint32_t i = 0;
        while (i < count && (families[i].queueFlags & flags) != flags)
            ++i;
        return i;
    };
    queue_family = find(VK_QUEUE_COMPUTE_BIT | VK_QUEUE_GRAPHICS_BIT);
    if (queue_family == count)
        queue_family = find(VK_QUEUE_COMPUTE_BIT);
    if (queue_family == count)
        fail_runtime("the Vulkan device ", adapter->properties.deviceName,
                     " has no compute queue; choose another adapter with 'adapter_index'");
    timestamp_bits = families[queue_family].timestampValidBits;
    draws = families[queue_family].queueFlags & VK_QUEUE_GRAPHICS_BIT;
}

void VulkanContext::create_handle()
{
    const float priority = 1.f;
    VkDeviceQueueCreateInfo created{VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO};
    created.queueFamilyIndex = queue_family;
    created.queueCount = 1;
    created.pQueuePriorities = &priority;
    std::vector<const char*> names;
    for (const std::string& name : extensions)
        names.push_back(name.c_str());
    VkDeviceCreateInfo info{VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO};
    info.pNext = &features.core;
    info.queueCreateInfoCount = 1;
    info.pQueueCreateInfos = &created;
    info.enabledExtensionCount = uint32_t(names.size());
    info.ppEnabledExtensionNames = names.data();
    vk_check(instance->functions().CreateDevice(adapter->handle, &info, nullptr, &device), "vkCreateDevice");
    handle = VulkanHandle::make(instance, device, extensions, true);
}

VkSemaphore VulkanContext::create_timeline(uint64_t initial_value, bool exported) const
{
    if (exported && !has_extension(VK_KHR_EXTERNAL_SEMAPHORE_FD_EXTENSION_NAME))
        fail_runtime("a shared fence needs the Vulkan extension VK_KHR_external_semaphore_fd, which ",
                     adapter->properties.deviceName, " does not offer");
    VkExportSemaphoreCreateInfo shared{VK_STRUCTURE_TYPE_EXPORT_SEMAPHORE_CREATE_INFO};
    shared.handleTypes = VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD_BIT;
    VkSemaphoreTypeCreateInfo type{VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO};
    type.pNext = exported ? &shared : nullptr;
    type.semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE;
    type.initialValue = initial_value;
    const VkSemaphoreCreateInfo info{VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO, &type, 0};
    VkSemaphore semaphore = VK_NULL_HANDLE;
    vk_check(vk.CreateSemaphore(device, &info, nullptr, &semaphore), "vkCreateSemaphore");
    return semaphore;
}

int VulkanContext::export_semaphore(VkSemaphore semaphore) const
{
    VkSemaphoreGetFdInfoKHR info{VK_STRUCTURE_TYPE_SEMAPHORE_GET_FD_INFO_KHR};
    info.semaphore = semaphore;
    info.handleType = VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD_BIT;
    int descriptor = -1;
    vk_check(vk.GetSemaphoreFdKHR(device, &info, &descriptor), "vkGetSemaphoreFdKHR");
    return descriptor;
}

int VulkanContext::export_memory(VkDeviceMemory memory) const
{
    VkMemoryGetFdInfoKHR info{VK_STRUCTURE_TYPE_MEMORY_GET_FD_INFO_KHR};
    info.memory = memory;
    info.handleType = VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT;
    int descriptor = -1;
    vk_check(vk.GetMemoryFdKHR(device, &info, &descriptor), "vkGetMemoryFdKHR");
    return descriptor;
}

VkFormatProperties VulkanContext::format_properties(Format format) const
{
    VkFormatProperties properties{};
    const uint32_t number = format_info(format).vk_format;
    const bool is_4444 = number == VK_FORMAT_A4R4G4B4_UNORM_PACK16;
    if (number && (!is_4444 || features.formats_4444.formatA4R4G4B4))
        vk.GetPhysicalDeviceFormatProperties(adapter->handle, VkFormat(number), &properties);
    return properties;
}

VkSampleCountFlags VulkanContext::sample_counts(Format format) const
{
    const VkFormatFeatureFlags has = format_properties(format).optimalTilingFeatures;
    VkImageUsageFlags usage = 0;
    if (has & VK_FORMAT_FEATURE_COLOR_ATTACHMENT_BIT)
        usage |= VK_IMAGE_USAGE_COLOR_ATTACHMENT_BIT;
    if (has & VK_FORMAT_FEATURE_DEPTH_STENCIL_ATTACHMENT_BIT)
        usage |= VK_IMAGE_USAGE_DEPTH_STENCIL_ATTACHMENT_BIT;
    VkImageFormatProperties limits{};
    const VkResult code = !usage
        ? VK_ERROR_FORMAT_NOT_SUPPORTED
        : vk.GetPhysicalDeviceImageFormatProperties(adapter->handle, VkFormat(format_info(format).vk_format),
                                                    VK_IMAGE_TYPE_2D, VK_IMAGE_TILING_OPTIMAL, usage, 0, &limits);
    return code == VK_SUCCESS ? limits.sampleCounts : 0;
}

void VulkanContext::set_name(VkObjectType type, uint64_t object, const std::string& name) const
{
    if (!vk.SetDebugUtilsObjectNameEXT || !instance->has_debug_utils() || name.empty())
        return;
    VkDebugUtilsObjectNameInfoEXT info{VK_STRUCTURE_TYPE_DEBUG_UTILS_OBJECT_NAME_INFO_EXT};
    info.objectType = type;
    info.objectHandle = object;
    info.pObjectName = name.c_str();
    vk.SetDebugUtilsObjectNameEXT(device, &info);
}

} // namespace spy
