#pragma once
// Device memory of the Vulkan backend, and the resources that take it.
#include "device/cuda_interop.h"
#include "device/device.h"
#include "vulkan/api.h"

#include <array>
#include <list>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

namespace spy {

class VulkanDevice;

// --- memory

enum class MemoryUse : uint8_t { device, upload, read_back };

struct MemoryBlock;

/// A range of device memory. `block` is null for an allocation of its own.
struct Allocation {
    VkDeviceMemory memory = VK_NULL_HANDLE;
    uint64_t offset = 0, size = 0;
    uint8_t* mapped = nullptr; ///< persistent mapping of the first byte; null for memory the host cannot see
    uint32_t type = 0;
    MemoryBlock* block = nullptr;
    bool exported = false, image = false;
};

/// One VkDeviceMemory that allocations share. Buffers and images have blocks of their own, which settles
/// bufferImageGranularity.
struct MemoryBlock {
    VkDeviceMemory memory = VK_NULL_HANDLE;
    uint64_t size = 0, used = 0;
    uint8_t* mapped = nullptr;
    uint32_t type = 0;
    bool image = false;
    std::map<uint64_t, uint64_t> free;                  ///< offset -> size
    std::set<std::pair<uint64_t, uint64_t>> free_sizes; ///< size, offset: the smallest that fits is taken
};

struct AllocationRequest {
    VkMemoryRequirements requirements;
    MemoryUse use = MemoryUse::device;
    VkBuffer buffer = VK_NULL_HANDLE; ///< one of the two
    VkImage image = VK_NULL_HANDLE;
    bool exported = false;
};

/// Suballocates small requests from blocks, gives large ones memory of their own and keeps a few of those for reuse.
/// Not thread-safe: the device's lock guards it.
class VulkanMemory {
public:
    explicit VulkanMemory(VulkanDevice& device) : m_device(device) { }
    /// Throws ErrorKind::memory.
    Allocation allocate(const AllocationRequest& request);
    void free(const Allocation& allocation) noexcept;
    void trim() noexcept;  ///< gives kept memory back to the driver
    void clear() noexcept; ///< frees everything; the device is idle
    std::vector<HeapReport> reports() const;
    uint64_t in_use() const;

private:
    struct TypeStatistics {
        uint64_t pages = 0, allocated = 0, used = 0, count = 0;
    };

    uint32_t find_type(const AllocationRequest& request) const;
    bool try_allocate(const AllocationRequest& request, uint32_t type, Allocation& result);
    bool allocate_from_block(const AllocationRequest& request, uint32_t type, Allocation& result);
    bool allocate_own(const AllocationRequest& request, uint32_t type, Allocation& result);
    VkResult allocate_driver(uint64_t size, uint32_t type, const AllocationRequest* dedicated, VkDeviceMemory& memory,
                             uint8_t*& mapped);
    void free_driver(VkDeviceMemory memory, uint64_t size, uint32_t type) noexcept;
    uint64_t block_size(uint32_t type) const;

    VulkanDevice& m_device;
    std::vector<std::unique_ptr<MemoryBlock>> m_blocks;
    std::list<Allocation> m_kept; ///< large allocations waiting for reuse, oldest first
    uint64_t m_kept_bytes = 0;
    std::array<TypeStatistics, VK_MAX_MEMORY_TYPES> m_statistics{};
};

/// The file descriptor under which other APIs open a resource: made once, closed with it.
class SharedHandle {
public:
    template <typename Export>
    NativeHandle get(Export&& make)
    {
        if (m_descriptor < 0)
            m_descriptor = make();
        return {NativeHandleType::file_descriptor, uint64_t(m_descriptor)};
    }
    void close() noexcept;

private:
    int m_descriptor = -1;
};

// --- resources

class VulkanBuffer final : public Buffer {
public:
    VulkanBuffer(ref<Device> device, BufferDesc desc);
    ~VulkanBuffer() override
    {
        retire();
        unmap_cuda();
    }
    void release() noexcept override;

    uint64_t device_address() const override { return m_address; }
    uint64_t cuda_address() override;
    void* host_pointer() const override
    {
        return m_desc.memory_type == MemoryType::device_local ? nullptr : m_allocation.mapped;
    }
    NativeHandle native_handle() const override { return {NativeHandleType::VkBuffer, uint64_t(m_buffer)}; }
    NativeHandle shared_handle() override;

    VkBuffer handle() const { return m_buffer; }
    const Allocation& allocation() const { return m_allocation; }
    /// View with the buffer's format, for texel buffers; throws when the buffer has none.
    VkBufferView texel_view();

private:
    VkBuffer m_buffer = VK_NULL_HANDLE;
    VkBufferView m_view = VK_NULL_HANDLE;
    Allocation m_allocation;
    uint64_t m_address = 0;
    SharedHandle m_shared_handle;
    CudaInterop::Memory m_cuda; ///< the memory as CUDA sees it, once asked for
    std::shared_ptr<CudaInterop> m_interop;
    void unmap_cuda() noexcept;
};

class VulkanTexture final : public Texture {
public:
    VulkanTexture(ref<Device> device, TextureDesc desc);
    /// An image that `owner` holds, made for `usage`; its layout is general while it is in use.
    VulkanTexture(ref<Device> device, TextureDesc desc, VkImage image, VkImageUsageFlags usage,
                  std::shared_ptr<void> owner);
    ~VulkanTexture() override { retire(); }
    void release() noexcept override;

    NativeHandle native_handle() const override { return {NativeHandleType::VkImage, uint64_t(m_image)}; }
    NativeHandle shared_handle() override;
    uint64_t memory_usage() const override { return m_allocation.size; }

    VkImage handle() const { return m_image; }
    bool is_borrowed() const { return m_is_borrowed; }
    VkImageAspectFlags aspects() const;
    /// Cached; the texture owns it. `shape` none takes the texture's own.
    VkImageView view(const TextureViewDesc& desc, ResourceShape shape);
    /// For drawing into it: all aspects, one mip.
    VkImageView attachment_view(const TextureViewDesc& desc);
    TextureViewDesc whole() const;

private:
    struct ViewKey {
        uint32_t format, aspect, layer, layer_count, mip, mip_count, type, is_attachment;
        auto operator<=>(const ViewKey&) const = default;
    };
    static ViewKey key_of(const VkImageViewCreateInfo& info, bool is_attachment);
    VkImageView create_view(const ViewKey& key, VkImageViewCreateInfo info, VkImageUsageFlags usage);

    VkImage m_image = VK_NULL_HANDLE;
    VkImageUsageFlags m_usage = 0;
    std::shared_ptr<void> m_owner; ///< of a borrowed image
    bool m_is_borrowed = false;
    Allocation m_allocation;
    std::map<ViewKey, VkImageView> m_views;
    SharedHandle m_shared_handle;
};

class VulkanTextureView final : public TextureView {
public:
    using TextureView::TextureView;
    NativeHandle native_handle() const override;
};

class VulkanSampler final : public Sampler {
public:
    VulkanSampler(ref<Device> device, SamplerDesc desc);
    ~VulkanSampler() override { retire(); }
    void release() noexcept override;
    NativeHandle native_handle() const override { return {NativeHandleType::VkSampler, uint64_t(m_sampler)}; }
    VkSampler handle() const { return m_sampler; }

private:
    VkSampler m_sampler = VK_NULL_HANDLE;
};

class VulkanFence final : public Fence {
public:
    VulkanFence(ref<Device> device, uint64_t initial_value, bool shared);
    ~VulkanFence() override { retire(); }
    void release() noexcept override;
    uint64_t current_value() override;
    void signal(uint64_t value) override;
    bool wait(uint64_t value, uint64_t timeout_ns) override;
    NativeHandle native_handle() const override { return {NativeHandleType::VkSemaphore, uint64_t(m_semaphore)}; }
    NativeHandle shared_handle() override;
    VkSemaphore handle() const { return m_semaphore; }

private:
    VkSemaphore m_semaphore = VK_NULL_HANDLE;
    bool m_shared = false;
    SharedHandle m_shared_handle;
};

class VulkanQueryPool final : public QueryPool {
public:
    VulkanQueryPool(ref<Device> device, QueryType type, uint32_t count);
    ~VulkanQueryPool() override { retire(); }
    void release() noexcept override;
    void reset(uint32_t index, uint32_t count) override;
    void get_results(uint32_t index, uint32_t count, uint64_t* ticks) override;

    VkQueryPool handle() const { return m_pool; }
    void mark_written(uint32_t index, uint64_t submit_id) { m_submit_ids[index] = submit_id; }
    void require_written(uint32_t index, uint32_t count) const;

private:
    VkQueryPool m_pool = VK_NULL_HANDLE;
    std::vector<uint64_t> m_submit_ids; ///< of the last write; 0 = none since the last reset
};

} // namespace spy
