#include "vulkan/api.h"

#include "core/error.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <tuple>

#ifdef _WIN32
#ifndef NOMINMAX
#define NOMINMAX
#endif
#include <windows.h>
#undef CreateSemaphore // a function of Vulkan is called so, too
#else
#include <dlfcn.h>
#include <unistd.h>
#endif

namespace spy {

namespace {

PFN_vkGetInstanceProcAddr open_loader()
{
#ifdef _WIN32
    HMODULE library = LoadLibraryA("vulkan-1.dll");
    if (!library)
        fail_runtime("Vulkan is not available: vulkan-1.dll was not found (install a graphics driver with Vulkan)");
    void* entry = reinterpret_cast<void*>(GetProcAddress(library, "vkGetInstanceProcAddr"));
#else
    void* library = nullptr;
    for (const char* name : {"libvulkan.so.1", "libvulkan.so", "libvulkan.1.dylib"})
        if ((library = dlopen(name, RTLD_NOW | RTLD_LOCAL)))
            break;
    if (!library)
        fail_runtime("Vulkan is not available: the loader libvulkan.so.1 was not found (package libvulkan1)");
    void* entry = dlsym(library, "vkGetInstanceProcAddr");
#endif
    if (!entry)
        fail_runtime("Vulkan is not available: the loader has no vkGetInstanceProcAddr; install another one (package "
                     "libvulkan1)");
    return reinterpret_cast<PFN_vkGetInstanceProcAddr>(entry);
}

struct MessageList {
    std::mutex mutex;
    std::deque<std::string> messages;
};

MessageList& message_list()
{
    static MessageList* list = new MessageList; // never freed: drivers may log during static destruction
    return *list;
}

/// Whether an instance was asked for with the validation layer, and made without it because there is none.
std::atomic<bool> layer_missing{false};

VKAPI_ATTR VkBool32 VKAPI_CALL on_debug_message(VkDebugUtilsMessageSeverityFlagBitsEXT severity,
                                                VkDebugUtilsMessageTypeFlagsEXT,
                                                const VkDebugUtilsMessengerCallbackDataEXT* data, void*)
{
    const bool error = severity & VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT;
    MessageList& list = message_list();
    std::lock_guard lock(list.mutex);
    if (list.messages.size() >= 1024)
        list.messages.pop_front();
    list.messages.push_back(cat(error ? "error: " : "warning: ", data->pMessage ? data->pMessage : ""));
    return VK_FALSE;
}

VkDebugUtilsMessengerCreateInfoEXT messenger_info()
{
    VkDebugUtilsMessengerCreateInfoEXT info{VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT};
    info.messageSeverity = VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT |
        VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT;
    info.messageType = VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT;
    info.pfnUserCallback = on_debug_message;
    return info;
}

std::set<std::string> instance_extensions(const VulkanFunctions& vk, const char* layer)
{
    uint32_t count = 0;
    vk_check(vk.EnumerateInstanceExtensionProperties(layer, &count, nullptr), "vkEnumerateInstanceExtensionProperties");
    std::vector<VkExtensionProperties> list(count);
    vk_check(vk.EnumerateInstanceExtensionProperties(layer, &count, list.data()),
             "vkEnumerateInstanceExtensionProperties");
    std::set<std::string> names;
    for (uint32_t i = 0; i < count; ++i)
        names.insert(list[i].extensionName);
    return names;
}

/// All that windows of this system may be: they are made by others, who ask for theirs. Without a folder for sockets
/// there is no Wayland, and the driver would write a complaint to stderr.
bool is_surface_extension(const std::string& name)
{
    const bool is_wayland = name == "VK_KHR_wayland_surface";
    return name.starts_with("VK_") && name.ends_with("_surface") && (!is_wayland || std::getenv("XDG_RUNTIME_DIR"));
}

bool has_layer(const VulkanFunctions& vk, const char* name)
{
    uint32_t count = 0;
    vk_check(vk.EnumerateInstanceLayerProperties(&count, nullptr), "vkEnumerateInstanceLayerProperties");
    std::vector<VkLayerProperties> list(count);
    vk_check(vk.EnumerateInstanceLayerProperties(&count, list.data()), "vkEnumerateInstanceLayerProperties");
    return std::any_of(list.begin(), list.begin() + count,
                       [&](const VkLayerProperties& layer) { return !std::strcmp(layer.layerName, name); });
}

} // namespace

const char* vk_result_name(VkResult result)
{
    switch (result) {
#define X(name)                                                                                                        \
    case name: return #name;
        // clang-format off
        X(VK_SUCCESS) X(VK_NOT_READY) X(VK_TIMEOUT) X(VK_INCOMPLETE) X(VK_ERROR_OUT_OF_HOST_MEMORY)
        X(VK_ERROR_OUT_OF_DEVICE_MEMORY) X(VK_ERROR_INITIALIZATION_FAILED) X(VK_ERROR_DEVICE_LOST)
        X(VK_ERROR_MEMORY_MAP_FAILED) X(VK_ERROR_LAYER_NOT_PRESENT) X(VK_ERROR_EXTENSION_NOT_PRESENT)
        X(VK_ERROR_FEATURE_NOT_PRESENT) X(VK_ERROR_INCOMPATIBLE_DRIVER) X(VK_ERROR_TOO_MANY_OBJECTS)
        X(VK_ERROR_FORMAT_NOT_SUPPORTED) X(VK_ERROR_FRAGMENTED_POOL) X(VK_ERROR_OUT_OF_POOL_MEMORY)
        X(VK_ERROR_INVALID_EXTERNAL_HANDLE) X(VK_ERROR_FRAGMENTATION) X(VK_ERROR_INVALID_SHADER_NV)
        X(VK_ERROR_UNKNOWN) X(VK_ERROR_SURFACE_LOST_KHR) X(VK_ERROR_NATIVE_WINDOW_IN_USE_KHR)
        X(VK_ERROR_OUT_OF_DATE_KHR)
#undef X
    default: return "unknown VkResult";
        // clang-format on
    }
}

void vk_fail(VkResult result, const char* what, std::string_view advice)
{
    const bool memory = result == VK_ERROR_OUT_OF_HOST_MEMORY || result == VK_ERROR_OUT_OF_DEVICE_MEMORY ||
        result == VK_ERROR_OUT_OF_POOL_MEMORY;
    const char* hint = result == VK_ERROR_DEVICE_LOST
        ? ": the device was lost (a kernel faulted or ran too long); close this device and create another"
        : "";
    fail(memory ? ErrorKind::memory : ErrorKind::runtime, what, " failed with ", vk_result_name(result), " (",
         int(result), ")", hint, advice);
}

const VulkanFunctions& vulkan_loader()
{
    static const VulkanFunctions functions = [] {
        VulkanFunctions vk;
        vk.GetInstanceProcAddr = open_loader();
#define X(name) vk.name = reinterpret_cast<PFN_vk##name>(vk.GetInstanceProcAddr(nullptr, "vk" #name));
        SPY_VK_GLOBAL(X)
#undef X
        if (!vk.EnumerateInstanceVersion || !vk.CreateInstance)
            fail_runtime("Vulkan is not available: the loader is older than Vulkan 1.1; install a newer one (package "
                         "libvulkan1)");
        return vk;
    }();
    return functions;
}

void VulkanFunctions::load_instance(VkInstance instance)
{
#define X(name)                                                                                                        \
    name = reinterpret_cast<PFN_vk##name>(GetInstanceProcAddr(instance, "vk" #name));                                  \
    if (!name)                                                                                                         \
        fail_runtime("Vulkan is not available: the driver lacks vk" #name);
    SPY_VK_INSTANCE(X)
#undef X
#define X(name) name = reinterpret_cast<PFN_vk##name>(GetInstanceProcAddr(instance, "vk" #name));
    SPY_VK_INSTANCE_OPTIONAL(X)
#undef X
}

void VulkanFunctions::load_device(VkDevice device)
{
#define X(name)                                                                                                        \
    name = reinterpret_cast<PFN_vk##name>(GetDeviceProcAddr(device, "vk" #name));                                      \
    if (!name)                                                                                                         \
        fail_runtime("the Vulkan driver lacks vk" #name " (Vulkan 1.2 is needed); install a newer driver");
    SPY_VK_DEVICE(X)
#undef X
#define X(name) name = reinterpret_cast<PFN_vk##name>(GetDeviceProcAddr(device, "vk" #name));
    SPY_VK_DEVICE_OPTIONAL(X)
#undef X
}

VulkanInstance::VulkanInstance(bool debug, const std::vector<std::string>& extra_extensions)
    : m_functions(vulkan_loader())
{
    uint32_t version = VK_API_VERSION_1_0;
    vk_check(m_functions.EnumerateInstanceVersion(&version), "vkEnumerateInstanceVersion");
    if (version < VK_API_VERSION_1_2)
        fail_runtime("Vulkan 1.2 is needed; install a newer loader (package libvulkan1), this one offers ",
                     VK_API_VERSION_MAJOR(version), ".", VK_API_VERSION_MINOR(version));
    constexpr const char* layer = "VK_LAYER_KHRONOS_validation";
    if (debug && !has_layer(m_functions, layer)) {
        layer_missing = true;
        debug = false;
    }

    std::set<std::string> available = instance_extensions(m_functions, nullptr);
    std::vector<const char*> extensions;
    if (debug) {
        available.merge(instance_extensions(m_functions, layer));
        if ((m_debug_utils = available.count(VK_EXT_DEBUG_UTILS_EXTENSION_NAME)))
            extensions.push_back(VK_EXT_DEBUG_UTILS_EXTENSION_NAME);
    }
    for (const std::string& name : available)
        if (is_surface_extension(name))
            extensions.push_back(name.c_str());
    m_surfaces = available.count(VK_KHR_SURFACE_EXTENSION_NAME);
    for (const std::string& name : extra_extensions) {
        if (!available.count(name))
            fail_runtime(
                "the Vulkan instance extension ", name,
                " is not available; install a newer loader or driver, or open the device without what needs it");
        extensions.push_back(name.c_str());
    }

    VkApplicationInfo application{VK_STRUCTURE_TYPE_APPLICATION_INFO};
    application.pApplicationName = application.pEngineName = "slangpy";
    application.apiVersion = std::min<uint32_t>(version, VK_API_VERSION_1_3);
    VkDebugUtilsMessengerCreateInfoEXT messenger = messenger_info();
    VkInstanceCreateInfo info{VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO};
    info.pNext = m_debug_utils ? &messenger : nullptr; // messages of creating and destroying the instance itself
    info.pApplicationInfo = &application;
    info.enabledLayerCount = debug ? 1 : 0;
    info.ppEnabledLayerNames = &layer;
    info.enabledExtensionCount = uint32_t(extensions.size());
    info.ppEnabledExtensionNames = extensions.data();
    const VkResult result = m_functions.CreateInstance(&info, nullptr, &m_instance);
    if (result == VK_ERROR_INCOMPATIBLE_DRIVER)
        fail_runtime("Vulkan is not available: the loader found no Vulkan driver; install one (of Mesa: package "
                     "mesa-vulkan-drivers)");
    vk_check(result, "vkCreateInstance");
    m_owned = true;
    m_functions.load_instance(m_instance);
    create_messenger();
}

std::shared_ptr<VulkanInstance> VulkanInstance::shared(bool debug, const std::vector<std::string>& extra_extensions)
{
    using Key = std::tuple<long, bool, std::vector<std::string>>; // the process: a fork cannot use its parent's
    static std::mutex mutex;
    static auto& instances = *new std::map<Key, std::shared_ptr<VulkanInstance>>;
#ifdef _WIN32
    const long process = 0;
#else
    const long process = long(getpid());
#endif
    std::lock_guard lock(mutex);
    std::shared_ptr<VulkanInstance>& instance = instances[{process, debug, extra_extensions}];
    if (!instance)
        instance = std::make_shared<VulkanInstance>(debug, extra_extensions);
    return instance;
}

VulkanInstance::VulkanInstance(VkInstance borrowed) : m_functions(vulkan_loader()), m_instance(borrowed)
{
    m_functions.load_instance(borrowed);
}

VulkanInstance::~VulkanInstance()
{
    if (m_messenger)
        m_functions.DestroyDebugUtilsMessengerEXT(m_instance, m_messenger, nullptr);
    if (m_owned && m_instance && m_functions.DestroyInstance)
        m_functions.DestroyInstance(m_instance, nullptr);
}

void VulkanInstance::create_messenger()
{
    if (!m_debug_utils || !m_functions.CreateDebugUtilsMessengerEXT)
        return;
    VkDebugUtilsMessengerCreateInfoEXT info = messenger_info();
    vk_check(m_functions.CreateDebugUtilsMessengerEXT(m_instance, &info, nullptr, &m_messenger),
             "vkCreateDebugUtilsMessengerEXT");
}

std::vector<VkPhysicalDevice> VulkanInstance::physical_devices() const
{
    uint32_t count = 0;
    vk_check(m_functions.EnumeratePhysicalDevices(m_instance, &count, nullptr), "vkEnumeratePhysicalDevices");
    std::vector<VkPhysicalDevice> devices(count);
    vk_check(m_functions.EnumeratePhysicalDevices(m_instance, &count, devices.data()), "vkEnumeratePhysicalDevices");
    devices.resize(count);
    auto properties = [&](VkPhysicalDevice device) {
        VkPhysicalDeviceProperties result;
        m_functions.GetPhysicalDeviceProperties(device, &result);
        return result;
    };
    std::erase_if(devices, [&](VkPhysicalDevice d) { return properties(d).apiVersion < VK_API_VERSION_1_2; });
    auto rank = [&](VkPhysicalDevice device) {
        switch (properties(device).deviceType) {
        case VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU: return 0;
        case VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU: return 1;
        case VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU: return 2;
        case VK_PHYSICAL_DEVICE_TYPE_CPU: return 4;
        default: return 3;
        }
    };
    std::stable_sort(devices.begin(), devices.end(),
                     [&](VkPhysicalDevice a, VkPhysicalDevice b) { return rank(a) < rank(b); });
    return devices;
}

bool vulkan_layer_missing() { return layer_missing; }

std::vector<std::string> take_vulkan_debug_messages()
{
    MessageList& list = message_list();
    std::lock_guard lock(list.mutex);
    std::vector<std::string> messages(list.messages.begin(), list.messages.end());
    list.messages.clear();
    return messages;
}

} // namespace spy
