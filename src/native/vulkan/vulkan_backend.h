#pragma once
// The Vulkan backend's own types.
//
// Work is recorded into one open command list, which is submitted ("flushed") when somebody waits or reads, when the
// GPU has nothing to do, or when the list is full. A timeline semaphore carries the submit ids. Whatever is released
// while work is in flight goes to a queue that is emptied as ids pass, so commands hold no references.
#include "core/interrupt.h"
#include "device/backend.h"
#include "device/command.h"
#include "device/cuda_interop.h"
#include "device/texel_format.h"
#include "vulkan/vulkan_api.h"
#include "vulkan/vulkan_memory.h"

#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <utility>

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
    uint64_t max_buffer_size = ~0ull;
    std::set<std::string> extensions;

    VulkanAdapter(const VulkanInstance& instance, VkPhysicalDevice device);
    AdapterInfo info() const;
    bool is_software() const { return properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU; }
};

// --- kernels

/// SPIR-V made fit for a device: see vulkan_spirv.cpp.
struct SpirvOptions {
    const VulkanFeatures* features = nullptr;
    const VkPhysicalDeviceVulkan11Properties* properties = nullptr;
    bool spill_push_constants = false;
    uint32_t spill_set = 0; ///< where the spilled push constants are bound (binding 0)
    std::string label, device_name;
};
struct SpirvResult {
    std::vector<uint32_t> code;
    std::string entry_point; ///< the name in the code
    /// (set, binding) of storage images whose texel format had to be fixed, with the VkFormat they now take.
    std::map<std::pair<uint32_t, uint32_t>, VkFormat> fixed_formats;
};
SpirvResult prepare_spirv(std::string_view code, const ProgramLayout& layout, const SpirvOptions& options);
/// The code with every product and sum rounded by itself.
std::string forbid_contraction(std::string_view code, const std::string& label);
/// True when the code reads push constants of 8 or 16 bits that the device lacks.
bool needs_push_constant_spill(std::string_view code, const VulkanFeatures& features);

/// One descriptor to write at a launch.
struct DescriptorSource {
    VkDescriptorType type = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
    bool is_scope = false; ///< index is that of a scope, else of a slot
    uint32_t index = 0;
    VkFormat fixed_format = VK_FORMAT_UNDEFINED;
};
union DescriptorData {
    VkDescriptorBufferInfo buffer;
    VkDescriptorImageInfo image;
    VkBufferView view;
};
struct DescriptorSetPlan {
    VkDescriptorSetLayout layout = VK_NULL_HANDLE;
    VkDescriptorUpdateTemplate update = VK_NULL_HANDLE;
    std::vector<DescriptorSource> sources; ///< in the order of the update template
};

class VulkanKernel final : public Kernel {
public:
    VulkanKernel(ref<Device> device, const KernelDesc& desc);
    ~VulkanKernel() override { retire(); }
    void release() noexcept override;
    NativeHandle native_handle() const override { return {NativeHandleType::VkPipeline, uint64_t(m_pipeline)}; }

    VkPipeline pipeline() const { return m_pipeline; }
    VkPipelineLayout pipeline_layout() const { return m_pipeline_layout; }
    const std::vector<DescriptorSetPlan>& sets() const { return m_sets; }
    int push_scope() const { return m_push_scope; }         ///< scope whose bytes are push constants (or spilled); -1
    uint32_t push_size() const { return m_push_size; }      ///< bytes, a multiple of 4
    int spill_set() const { return m_spill_set; }           ///< set of the spilled push constants; -1 = not spilled

private:
    void check_descriptor_counts(const VkPhysicalDeviceLimits& limits, const std::string& device_name) const;
    void create_set_layouts(const SpirvResult& spirv);
    void create_pipeline(const SpirvResult& spirv);

    VkPipeline m_pipeline = VK_NULL_HANDLE;
    VkPipelineLayout m_pipeline_layout = VK_NULL_HANDLE;
    std::vector<DescriptorSetPlan> m_sets;
    int m_push_scope = -1, m_spill_set = -1;
    uint32_t m_push_size = 0;
};

// --- commands

/// Host-visible memory that one command list after another carves up.
struct UploadPage {
    VkBuffer buffer = VK_NULL_HANDLE;
    Allocation allocation;
    uint64_t size = 0, used = 0; ///< the buffer is longer: a descriptor of the whole spill range fits at any offset
    VkDescriptorPool spill_pool = VK_NULL_HANDLE;
    VkDescriptorSet spill_set = VK_NULL_HANDLE; ///< dynamic uniform buffer over the page
};
struct UploadSlice {
    UploadPage* page = nullptr;
    uint64_t offset = 0;
    uint8_t* data = nullptr;
};

struct CommandList {
    VkCommandPool pool = VK_NULL_HANDLE;
    VkCommandBuffer commands = VK_NULL_HANDLE;
    std::vector<VkDescriptorPool> descriptor_pools;
    size_t descriptor_pool = 0; ///< the one in use
    std::vector<UploadPage*> pages;
    uint64_t id = 0;
    uint32_t command_count = 0;
    uint64_t staged_bytes = 0;
    VkPipeline bound = VK_NULL_HANDLE;
};

/// A driver object to destroy once `id` has passed.
struct Garbage {
    uint64_t id = 0;
    VkObjectType type = VK_OBJECT_TYPE_UNKNOWN;
    uint64_t handle = 0;
    Allocation allocation;
};

/// Arguments of a launch as the recording code reads them.
struct ArgumentView {
    std::span<const std::span<const uint8_t>> scopes;
    std::span<const ref<Object>> slots;
};

/// The copy between a texture and memory that its format allows; `what` names the operation in messages.
/// `row_pitch` 0 = tightly packed.
VkBufferImageCopy image_copy(const VulkanTexture& texture, uint32_t layer, uint32_t mip, Offset3 offset, Extent3 extent,
                             uint64_t buffer_offset, uint64_t row_pitch, const char* what);

/// A VkDevice with what was asked of it. Devices opened on one VkDevice share it, and so do the handles that Python has
/// of it: where we made it, the last one to go destroys it, in whatever order they are closed.
struct VulkanHandle {
    std::shared_ptr<VulkanInstance> instance;
    VkDevice device = VK_NULL_HANDLE;
    std::set<std::string> extensions; ///< empty when it is the caller's: what that was made with is unknown
    bool is_ours = false;
    std::mutex queue_mutex; ///< the driver leaves it to us that calls on one queue do not overlap

    VulkanHandle(std::shared_ptr<VulkanInstance> instance, VkDevice device, std::set<std::string> extensions, bool ours);
    ~VulkanHandle();
    /// The one that stands for this VkDevice, null where we know of none.
    static std::shared_ptr<VulkanHandle> find(VkDevice device);
    static std::shared_ptr<VulkanHandle> make(std::shared_ptr<VulkanInstance> instance, VkDevice device,
                                              std::set<std::string> extensions, bool ours);
};

class VulkanDevice final : public Device {
public:
    explicit VulkanDevice(const DeviceDesc& desc);
    ~VulkanDevice() override;

    ref<Buffer> create_buffer(const BufferDesc& desc) override;
    ref<Texture> create_texture(const TextureDesc& desc) override;
    ref<TextureView> create_texture_view(Texture* texture, const TextureViewDesc& desc) override;
    ref<Sampler> create_sampler(const SamplerDesc& desc) override;
    ref<Fence> create_fence(uint64_t initial_value, bool shared) override;
    ref<QueryPool> create_query_pool(QueryType type, uint32_t count) override;
    uint32_t format_support(Format format) override;
    std::string compile(const CompileDesc& desc) override;
    std::string compiler_fingerprint() override;
    ref<Kernel> create_kernel(const KernelDesc& desc) override;

    void launch(const LaunchDesc& desc) override;
    uint64_t submit(const SubmitDesc& desc) override;
    uint64_t last_submit_id() override;
    bool is_finished(uint64_t submit_id) override;
    bool wait(uint64_t submit_id, uint64_t timeout_ns) override;
    void read_buffer(Buffer* buffer, uint64_t offset, void* data, uint64_t size) override;
    void write_buffer(Buffer* buffer, uint64_t offset, const void* data, uint64_t size) override;
    void read_texture(Texture* texture, uint32_t layer, uint32_t mip, void* data) override;
    void write_texture(Texture* texture, uint32_t layer, uint32_t mip, const void* data) override;
    std::vector<HeapReport> heap_reports() override;
    std::array<NativeHandle, 3> native_handles() override;
    std::shared_ptr<void> native_owner() override { return m_handle; }
    int cuda_index() const override { return m_interop ? m_interop->device_index() : -1; }
    void sync_to_stream(NativeHandle stream) override;
    void sync_stream_to(NativeHandle stream) override;

    // --- for the classes of this backend
    const std::shared_ptr<CudaInterop>& interop() const { return m_interop; }
    VkSemaphore create_timeline(uint64_t initial_value, bool exported);
    /// A new file descriptor, the caller's.
    int export_semaphore(VkSemaphore semaphore) const;
    int export_memory(VkDeviceMemory memory) const;
    const VulkanFunctions& vk() const { return m_vk; }
    VkDevice handle() const { return m_device; }
    const VulkanAdapter& adapter() const { return *m_adapter; }
    const VulkanFeatures& features() const { return m_features; }
    bool has_extension(const char* name) const { return m_extensions.count(name) != 0; }
    VulkanMemory& memory() { return m_memory; }
    PoliteMutex& mutex() { return m_mutex; }
    VkPipelineCache pipeline_cache() const { return m_pipeline_cache; }
    VkDescriptorSetLayout spill_layout() const { return m_spill_layout; }
    uint32_t timestamp_valid_bits() const { return m_timestamp_bits; }
    uint32_t queue_family() const { return m_queue_family; }
    void require_open(const char* what) const;
    void set_name(VkObjectType type, uint64_t handle, const std::string& name);

    /// Waits as long as it takes.
    void wait_all();
    /// Destroys a driver object now, or when the work that may use it is done. Null handles are fine.
    void discard(VkObjectType type, uint64_t handle, const Allocation& allocation = {}) noexcept;
    /// Frees what finished work has used. With `block`, waits for all of it first.
    void collect(bool block);
    /// Keeps released memory that is still in use by the GPU within bounds.
    void throttle_garbage();
    /// Records the change from "undefined" to the layout all images have from then on.
    void record_initial_layout(VulkanTexture& texture);
    VkFormatProperties format_properties(Format format) const;
    VkSampler default_sampler();

protected:
    void close_backend() noexcept override;

private:
    // vulkan_device.cpp
    void open_instance();
    void open_device();
    void choose_extensions();
    void create_device_handle();
    void wait_idle() noexcept;
    void create_common_objects();

    // vulkan_interop.cpp
    void open_interop();
    CudaInterop& require_interop(const char* what) const;

    // vulkan_info.cpp
    void fill_info();
    void fill_limits();
    void fill_features();
    void fill_target();

    // vulkan_command.cpp
    CommandList& open_list();
    std::unique_ptr<CommandList> create_list();
    VkCommandBuffer begin_command();
    void barrier(VkCommandBuffer commands);
    /// Submits the open list. `waits` and `signals` name fences; with either, an empty list is submitted too.
    void flush(const SubmitDesc* waits = nullptr, const SubmitDesc* signals = nullptr);
    void abandon_open_list() noexcept;
    void begin_list(CommandList& list);
    void run_callback(const command::Callback& command, std::unique_lock<PoliteMutex>& lock);
    void recycle(std::unique_ptr<CommandList> list);
    uint64_t completed_id();
    bool is_idle();
    void check_result(VkResult result, const char* what);
    /// As long as it takes, or until Ctrl-C.
    void wait_semaphore(uint64_t submit_id);
    void destroy_now(const Garbage& garbage) noexcept;

    // vulkan_upload.cpp
    /// Host-visible bytes that live until the open list is done. May flush, so it comes before begin_command.
    UploadSlice upload_slice(uint64_t size, uint64_t alignment);
    VkDescriptorSet spill_set(UploadPage& page);
    UploadPage* create_page(uint64_t size);
    void recycle_page(UploadPage* page);
    void destroy_page(UploadPage* page) noexcept;
    void limit_staging();

    // vulkan_launch.cpp
    VkDescriptorSet allocate_set(VkDescriptorSetLayout layout);
    VkDescriptorPool create_descriptor_pool();
    void record_launch(VulkanKernel& kernel, const std::array<uint32_t, 3>& groups, const ArgumentView& arguments);
    void record_indirect(VulkanKernel& kernel, VulkanBuffer& buffer, uint64_t offset, const ArgumentView& arguments);
    void record_push_constants(VkCommandBuffer commands, VulkanKernel& kernel, const ArgumentView& arguments);
    VkCommandBuffer record_bindings(VulkanKernel& kernel, const ArgumentView& arguments);
    void fill_slot(VulkanKernel& kernel, const DescriptorSource& source, Object* object, DescriptorData& data);
    void fill_image(VulkanKernel& kernel, const DescriptorSource& source, Object* object, DescriptorData& data);

    // vulkan_transfer.cpp
    void record(const command::Dispatch& command);
    void record(const command::DispatchIndirect& command);
    void record(const command::CopyBuffer& command);
    void record(const command::FillBuffer& command);
    void record(const command::UploadBuffer& command);
    void record(const command::CopyTexture& command);
    void record(const command::CopyTextureToBuffer& command);
    void record(const command::CopyBufferToTexture& command);
    void record(const command::UploadTexture& command);
    void record(const command::ClearTexture& command);
    void record(const command::WriteTimestamp& command);
    void record(const command::ResolveQuery& command);
    void record(const command::Barrier& command);
    void record(const command::DebugMarker& command);
    void record(const command::Callback&) {} // run_callback
    void record_texture_upload(VulkanTexture& texture, uint32_t layer, uint32_t mip, Offset3 offset, Extent3 extent,
                               const void* data, uint64_t size);

    // vulkan_host.cpp
    struct ReadPage { VkBuffer buffer = VK_NULL_HANDLE; Allocation allocation; uint64_t size = 0; };
    ReadPage create_read_page(uint64_t size);
    void destroy_read_page(ReadPage& page) noexcept;

    // --- state
    std::shared_ptr<VulkanInstance> m_instance;
    std::unique_ptr<VulkanAdapter> m_adapter;
    VulkanFunctions m_vk;
    VulkanFeatures m_features;
    std::set<std::string> m_extensions;
    std::shared_ptr<VulkanHandle> m_handle;
    VkDevice m_device = VK_NULL_HANDLE; ///< of m_handle
    VkQueue m_queue = VK_NULL_HANDLE;
    uint32_t m_queue_family = 0, m_timestamp_bits = 0;
    VkPipelineCache m_pipeline_cache = VK_NULL_HANDLE;
    VkDescriptorSetLayout m_spill_layout = VK_NULL_HANDLE;
    VkSampler m_default_sampler = VK_NULL_HANDLE;
    UploadPage* m_null_buffer = nullptr; ///< stands for buffers never set where the device has no null descriptors

    PoliteMutex m_mutex; ///< guards all below, the queue and the memory
    VulkanMemory m_memory{*this};
    VkSemaphore m_timeline = VK_NULL_HANDLE;
    std::shared_ptr<CudaInterop> m_interop;
    VkSemaphore m_from_cuda = VK_NULL_HANDLE, m_to_cuda = VK_NULL_HANDLE; ///< timelines that CUDA and we signal
    uint64_t m_cuda_wait = 0, m_to_cuda_value = 0; ///< what the next submission waits for (0: nothing); last signalled
    bool m_cuda_signal = false;                    ///< the next submission signals m_to_cuda
    uint64_t m_submitted = 0, m_completed = 0, m_staged_bytes = 0;
    bool m_needs_barrier = false, m_in_submit = false;
    std::string m_lost; ///< message once the device is lost
    std::string m_last_label;
    std::unique_ptr<CommandList> m_open;
    std::deque<std::unique_ptr<CommandList>> m_pending;
    std::vector<std::unique_ptr<CommandList>> m_free_lists;
    std::vector<UploadPage*> m_free_pages, m_free_large_pages;
    std::deque<Garbage> m_garbage;
    uint64_t m_garbage_bytes = 0;

    PoliteMutex m_read_mutex;
    std::array<ReadPage, 2> m_read_pages;
};

} // namespace spy
