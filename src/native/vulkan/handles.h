#pragma once
// Descriptor handles: one descriptor set for the whole device, with an array for each kind of resource. A handle is an
// index into its array. Kernels that use handles have the set bound beside their own.
#include "device/handles.h"
#include "vulkan/context.h"

namespace spy {

class VulkanQueue;

/// Where the arrays are bound in the set. Slang puts all but samplers into one binding, whose descriptors may be of any
/// kind; spirv/handle_arrays.cpp moves them here, for which drivers need no extension.
enum class HandleBinding : uint32_t { sampler, combined, texture, rw_texture, buffer };

/// The number of the set that the code expects handles in; -1 where it uses none.
int handle_set(std::string_view code, const ProgramLayout& layout);

/// Whether the device can have the set: the feature 'bindless'.
bool has_handles(const VulkanFeatures& features);

class VulkanHandles {
public:
    VulkanHandles(VulkanContext& context, VulkanQueue& queue, const DeviceDesc& desc)
        : m_context(context),
          m_queue(queue),
          m_sizes(desc.bindless)
    {
    }
    void close() noexcept;

    VkDescriptorSetLayout layout(); ///< makes the set when it is asked for first
    VkDescriptorSet set();
    DescriptorHandle make(DeviceObject* object, DescriptorHandleType type);
    /// Its place becomes free when the work in flight is done.
    void drop(const DescriptorHandle& handle) noexcept;
    /// That time has come; `place` is what drop() gave the queue.
    void recycle(uint64_t place) noexcept;

private:
    void open();
    void create_layout();
    void create_set();
    void clear();
    void check_limits() const;
    uint32_t count(HandleBinding binding) const;
    void write(DescriptorHandleType type, uint32_t index, DeviceObject* object);
    void update(HandleBinding binding, uint32_t index, const VkDescriptorImageInfo* image,
                const VkDescriptorBufferInfo* buffer) const;

    VulkanContext& m_context;
    VulkanQueue& m_queue;
    const BindlessDesc& m_sizes;
    HandleTables m_tables;
    VkDescriptorSetLayout m_layout = VK_NULL_HANDLE;
    VkDescriptorPool m_pool = VK_NULL_HANDLE;
    VkDescriptorSet m_set = VK_NULL_HANDLE;
    VkSampler m_sampler = VK_NULL_HANDLE; ///< where there is none: samplers cannot be null
};

} // namespace spy
