// Opening a device: adapter, extensions, features, queue.
#include "vulkan/vulkan_backend.h"

#include "core/error.h"

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

std::vector<AdapterInfo> enumerate_adapters()
{
    // Kept for the life of the process: opening an instance loads every driver of the machine.
    static const std::vector<AdapterInfo> adapters = [] {
        std::vector<AdapterInfo> result;
        try {
            const std::shared_ptr<VulkanInstance> instance = VulkanInstance::shared(false, {});
            for (VkPhysicalDevice device : instance->physical_devices())
                result.push_back(VulkanAdapter(*instance, device).info());
        } catch (const Error&) {
            result.clear(); // no loader or driver: the contract asks for an empty list
        }
        return result;
    }();
    return adapters;
}

ref<Device> open_vulkan_device(const DeviceDesc& desc) { return ref<Device>(new VulkanDevice(desc)); }

} // namespace

Backend vulkan_backend() { return {DeviceType::vulkan, "vulkan", &enumerate_adapters, &open_vulkan_device}; }

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
}

VulkanAdapter::VulkanAdapter(const VulkanInstance& instance, VkPhysicalDevice device) : handle(device)
{
    const VulkanFunctions& vk = instance.functions();
    extensions = device_extensions(vk, device);
    vk.GetPhysicalDeviceProperties(device, &properties);
    VkPhysicalDeviceProperties2 chain{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2};
    VkPhysicalDeviceMaintenance4Properties maintenance4{
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_4_PROPERTIES};
    chain.pNext = &v11;
    v11.pNext = &v12;
    const bool has_maintenance4 =
        properties.apiVersion >= VK_API_VERSION_1_3 || extensions.count(VK_KHR_MAINTENANCE_4_EXTENSION_NAME);
    v12.pNext = has_maintenance4 ? &maintenance4 : nullptr;
    vk.GetPhysicalDeviceProperties2(device, &chain);
    v11.pNext = v12.pNext = nullptr;
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
    : instance(std::move(instance)), device(device), extensions(std::move(extensions)), is_ours(ours)
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

VulkanDevice::VulkanDevice(const DeviceDesc& desc)
{
    m_desc = desc;
    m_desc.type = DeviceType::vulkan;
    try {
        open_instance();
        open_device();
        create_common_objects();
        open_interop();
    } catch (...) {
        close_backend();
        throw;
    }
    fill_info();
    fill_target();
}

VulkanDevice::~VulkanDevice() { close_backend(); }

void VulkanDevice::open_instance()
{
    const NativeHandle& given = m_desc.existing_device_handles[0];
    if (given.type == NativeHandleType::undefined || !given.value) {
        m_instance = VulkanInstance::shared(m_desc.enable_debug_layers, m_desc.additional_vulkan_instance_extensions);
        return;
    }
    const auto& handles = m_desc.existing_device_handles;
    if (handles[0].type != NativeHandleType::VkInstance || handles[1].type != NativeHandleType::VkPhysicalDevice
        || handles[2].type != NativeHandleType::VkDevice || !handles[1].value || !handles[2].value)
        fail_value("existing_device_handles of a Vulkan device must be a VkInstance, a VkPhysicalDevice and a VkDevice");
    m_handle = VulkanHandle::find(reinterpret_cast<VkDevice>(handles[2].value));
    m_instance = m_handle ? m_handle->instance : std::make_shared<VulkanInstance>(reinterpret_cast<VkInstance>(given.value));
    if (!m_handle)
        m_handle = VulkanHandle::make(m_instance, reinterpret_cast<VkDevice>(handles[2].value), {}, false);
}

void VulkanDevice::open_device()
{
    if (m_handle) {
        const auto& handles = m_desc.existing_device_handles;
        m_adapter = std::make_unique<VulkanAdapter>(*m_instance, reinterpret_cast<VkPhysicalDevice>(handles[1].value));
        m_device = m_handle->device;
        m_extensions = m_handle->extensions;
    } else {
        std::vector<std::unique_ptr<VulkanAdapter>> adapters;
        for (VkPhysicalDevice device : m_instance->physical_devices())
            adapters.push_back(std::make_unique<VulkanAdapter>(*m_instance, device));
        if (adapters.empty())
            fail_runtime("no Vulkan device was found: the driver is missing or older than Vulkan 1.2");
        size_t chosen = 0;
        if (m_desc.has_adapter_luid) {
            while (chosen < adapters.size() && adapters[chosen]->info().luid != m_desc.adapter_luid)
                ++chosen;
            if (chosen == adapters.size())
                fail_runtime("no Vulkan adapter has the adapter_luid asked for; Device.enumerate_adapters lists them");
        } else if (m_desc.adapter_index >= 0) {
            chosen = size_t(m_desc.adapter_index);
            if (chosen >= adapters.size())
                fail_value("adapter_index ", chosen, " is out of range: there are ", adapters.size(),
                           " Vulkan adapters");
        } else if (m_desc.enable_cuda_interop) {
            auto is_cuda = [](const auto& adapter) {
                std::array<uint8_t, 16> uuid;
                std::memcpy(uuid.data(), adapter->v11.deviceUUID, VK_UUID_SIZE);
                return CudaInterop::matches(uuid);
            };
            const auto match = std::find_if(adapters.begin(), adapters.end(), is_cuda);
            chosen = match == adapters.end() ? 0 : size_t(match - adapters.begin());
        }
        m_adapter = std::move(adapters[chosen]);
    }
    choose_extensions();
    if (!m_handle)
        create_device_handle();
    m_vk = m_instance->functions();
    m_vk.load_device(m_device);
    m_vk.GetDeviceQueue(m_device, m_queue_family, 0, &m_queue);
}

void VulkanDevice::choose_extensions()
{
    if (!m_handle) {
        // All optional; each is used by one feature that is reported only with it.
        for (const char* name :
             {VK_EXT_SHADER_ATOMIC_FLOAT_EXTENSION_NAME, VK_EXT_SHADER_ATOMIC_FLOAT_2_EXTENSION_NAME,
              VK_EXT_SHADER_IMAGE_ATOMIC_INT64_EXTENSION_NAME, VK_EXT_ROBUSTNESS_2_EXTENSION_NAME,
              VK_KHR_SHADER_CLOCK_EXTENSION_NAME, VK_EXT_CUSTOM_BORDER_COLOR_EXTENSION_NAME,
              VK_EXT_4444_FORMATS_EXTENSION_NAME, VK_KHR_SHADER_NON_SEMANTIC_INFO_EXTENSION_NAME,
              VK_KHR_EXTERNAL_MEMORY_FD_EXTENSION_NAME, VK_KHR_EXTERNAL_SEMAPHORE_FD_EXTENSION_NAME})
            if (m_adapter->extensions.count(name))
                m_extensions.insert(name);
        for (const std::string& name : m_desc.additional_vulkan_device_extensions) {
            if (!m_adapter->extensions.count(name))
                fail_runtime("the Vulkan device ", m_adapter->properties.deviceName, " has no extension ", name);
            m_extensions.insert(name);
        }
    }
    // What a caller's own device was created with is unknown: no extension is assumed, core features are.
    m_features.link(m_extensions);
    m_instance->functions().GetPhysicalDeviceFeatures2(m_adapter->handle, &m_features.core);
    const VkPhysicalDeviceVulkan12Features& v12 = m_features.v12;
    if (!v12.bufferDeviceAddress || !v12.timelineSemaphore || !v12.scalarBlockLayout)
        fail_runtime("the Vulkan device ", m_adapter->properties.deviceName,
                     " lacks bufferDeviceAddress, timelineSemaphore or scalarBlockLayout, which are needed");
    // These cost speed or need more than a flag.
    VkPhysicalDeviceFeatures& core = m_features.core.features;
    core.robustBufferAccess = false;
    core.sparseBinding = core.sparseResidencyBuffer = core.sparseResidencyImage2D = core.sparseResidencyImage3D = false;
    core.sparseResidency2Samples = core.sparseResidency4Samples = core.sparseResidency8Samples = false;
    core.sparseResidency16Samples = core.sparseResidencyAliased = false;
    m_features.v11.protectedMemory = m_features.v11.samplerYcbcrConversion = false;
    m_features.v12.bufferDeviceAddressCaptureReplay = m_features.v12.bufferDeviceAddressMultiDevice = false;
    m_features.robustness2.robustBufferAccess2 = m_features.robustness2.robustImageAccess2 = false;
    m_features.image_atomic_int64.sparseImageInt64Atomics = false;
    m_features.atomic_float.sparseImageFloat32Atomics = m_features.atomic_float.sparseImageFloat32AtomicAdd = false;
    m_features.atomic_float2.sparseImageFloat32AtomicMinMax = false;

    const VulkanFunctions& vk = m_instance->functions();
    uint32_t count = 0;
    vk.GetPhysicalDeviceQueueFamilyProperties(m_adapter->handle, &count, nullptr);
    std::vector<VkQueueFamilyProperties> families(count);
    vk.GetPhysicalDeviceQueueFamilyProperties(m_adapter->handle, &count, families.data());
    auto find = [&](VkQueueFlags flags) {
        uint32_t i = 0;
        while (i < count && (families[i].queueFlags & flags) != flags)
            ++i;
        return i;
    };
    m_queue_family = find(VK_QUEUE_COMPUTE_BIT | VK_QUEUE_GRAPHICS_BIT);
    if (m_queue_family == count)
        m_queue_family = find(VK_QUEUE_COMPUTE_BIT);
    if (m_queue_family == count)
        fail_runtime("the Vulkan device ", m_adapter->properties.deviceName, " has no compute queue");
    m_timestamp_bits = families[m_queue_family].timestampValidBits;
}

void VulkanDevice::create_device_handle()
{
    const float priority = 1.f;
    VkDeviceQueueCreateInfo queue{VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO};
    queue.queueFamilyIndex = m_queue_family;
    queue.queueCount = 1;
    queue.pQueuePriorities = &priority;
    std::vector<const char*> extensions;
    for (const std::string& name : m_extensions)
        extensions.push_back(name.c_str());
    VkDeviceCreateInfo info{VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO};
    info.pNext = &m_features.core;
    info.queueCreateInfoCount = 1;
    info.pQueueCreateInfos = &queue;
    info.enabledExtensionCount = uint32_t(extensions.size());
    info.ppEnabledExtensionNames = extensions.data();
    vk_check(m_instance->functions().CreateDevice(m_adapter->handle, &info, nullptr, &m_device), "vkCreateDevice");
    m_handle = VulkanHandle::make(m_instance, m_device, m_extensions, true);
}

void VulkanDevice::create_common_objects()
{
    VkSemaphoreTypeCreateInfo type{VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO};
    type.semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE;
    VkSemaphoreCreateInfo semaphore{VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO, &type};
    vk_check(m_vk.CreateSemaphore(m_device, &semaphore, nullptr, &m_timeline), "vkCreateSemaphore");
    VkPipelineCacheCreateInfo cache{VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO};
    vk_check(m_vk.CreatePipelineCache(m_device, &cache, nullptr, &m_pipeline_cache), "vkCreatePipelineCache");
    VkDescriptorSetLayoutBinding binding{};
    binding.descriptorType = VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER_DYNAMIC;
    binding.descriptorCount = 1;
    binding.stageFlags = VK_SHADER_STAGE_COMPUTE_BIT;
    VkDescriptorSetLayoutCreateInfo layout{VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO};
    layout.bindingCount = 1;
    layout.pBindings = &binding;
    vk_check(m_vk.CreateDescriptorSetLayout(m_device, &layout, nullptr, &m_spill_layout),
             "vkCreateDescriptorSetLayout");
    m_null_buffer = create_page(4096);
    std::memset(m_null_buffer->allocation.mapped, 0, 4096);
}

/// Also for work of other devices on the same VkDevice, which must not submit meanwhile.
void VulkanDevice::wait_idle() noexcept
{
    const std::lock_guard lock(m_handle->queue_mutex);
    m_vk.DeviceWaitIdle(m_device);
}

void VulkanDevice::close_backend() noexcept
{
    if (!m_device)
        return;
    if (m_vk.DestroyDevice) {
        wait_idle();
        std::lock_guard lock(m_mutex);
        abandon_open_list();
        m_completed = ~0ull; // idle, or lost: nothing will touch these again
        while (!m_pending.empty()) {
            m_free_lists.push_back(std::move(m_pending.front()));
            m_pending.pop_front();
        }
        for (const Garbage& garbage : m_garbage)
            destroy_now(garbage);
        m_garbage.clear();
        for (auto& list : m_free_lists) {
            for (VkDescriptorPool pool : list->descriptor_pools)
                m_vk.DestroyDescriptorPool(m_device, pool, nullptr);
            for (UploadPage* page : list->pages)
                destroy_page(page);
            m_vk.DestroyCommandPool(m_device, list->pool, nullptr);
        }
        m_free_lists.clear();
        for (std::vector<UploadPage*>* pages : {&m_free_pages, &m_free_large_pages}) {
            for (UploadPage* page : *pages)
                destroy_page(page);
            pages->clear();
        }
        if (m_null_buffer)
            destroy_page(m_null_buffer);
        for (ReadPage& page : m_read_pages)
            destroy_read_page(page);
        m_vk.DestroySampler(m_device, m_default_sampler, nullptr);
        m_vk.DestroyDescriptorSetLayout(m_device, m_spill_layout, nullptr);
        m_vk.DestroyPipelineCache(m_device, m_pipeline_cache, nullptr);
        m_interop = nullptr; // waits for CUDA
        for (VkSemaphore semaphore : {m_timeline, m_from_cuda, m_to_cuda})
            m_vk.DestroySemaphore(m_device, semaphore, nullptr);
        m_memory.clear();
    }
    m_null_buffer = nullptr;
    m_device = VK_NULL_HANDLE;
    m_handle.reset();
    m_instance.reset();
}

void VulkanDevice::require_open(const char* what) const
{
    if (!m_device)
        fail_runtime(what, ": device is closed");
    if (!m_lost.empty())
        fail_runtime(m_lost);
}

std::array<NativeHandle, 3> VulkanDevice::native_handles()
{
    require_open("native_handles");
    return {NativeHandle{NativeHandleType::VkInstance, uint64_t(m_instance->handle())},
            NativeHandle{NativeHandleType::VkPhysicalDevice, uint64_t(m_adapter->handle)},
            NativeHandle{NativeHandleType::VkDevice, uint64_t(m_device)}};
}

std::vector<HeapReport> VulkanDevice::heap_reports()
{
    std::lock_guard lock(m_mutex);
    return m_memory.reports();
}

void VulkanDevice::set_name(VkObjectType type, uint64_t handle, const std::string& name)
{
    if (!m_vk.SetDebugUtilsObjectNameEXT || !m_instance->has_debug_utils() || name.empty())
        return;
    VkDebugUtilsObjectNameInfoEXT info{VK_STRUCTURE_TYPE_DEBUG_UTILS_OBJECT_NAME_INFO_EXT};
    info.objectType = type;
    info.objectHandle = handle;
    info.pObjectName = name.c_str();
    m_vk.SetDebugUtilsObjectNameEXT(m_device, &info);
}

} // namespace spy
