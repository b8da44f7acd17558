#pragma once
// Descriptor sets of launches, and the uniform bytes that they point to.
#include "device/list_arguments.h"
#include "vulkan/pipeline.h"
#include "vulkan/queue.h"

namespace spy {

/// What the uniform bytes of one launch or draw take of a slice.
uint64_t uniform_bytes(const VulkanContext& context, const VulkanBindings& kernel);

/// The uniform bytes of one launch or one pass, which lie in one slice: a second one could find the list flushed by
/// then.
class UniformBytes {
public:
    UniformBytes(const VulkanContext& context, VulkanUploads& uploads, uint64_t needed);
    UploadPage* page() const { return m_slice.page; }
    /// Where the bytes of a scope lie in the page.
    uint64_t store(const ArgumentView& arguments, uint64_t size, size_t scope);
    /// Bytes for another use, of which there must be enough.
    UploadSlice take(uint64_t size, uint64_t alignment);

private:
    uint64_t m_alignment;
    UploadSlice m_slice{};
};

class VulkanDescriptors {
public:
    VulkanDescriptors(VulkanContext& context, VulkanQueue& queue, VulkanUploads& uploads, const DeviceInfo& info)
        : m_context(context),
          m_queue(queue),
          m_uploads(uploads),
          m_info(info)
    {
    }
    void open();
    void close() noexcept;
    /// A set with the resources of one launch, in the open list.
    VkDescriptorSet write(const VulkanBindings& kernel, const DescriptorSetLayout& layout,
                          const ArgumentView& arguments, UniformBytes& bytes);

    /// The sets of one launch; null where a set is empty.
    void write_sets(const VulkanBindings& bindings, const ArgumentView& arguments, UniformBytes& bytes,
                    std::vector<VkDescriptorSet>& sets);
    /// Binds them, and the parameters that entry points have of their own.
    void bind(VkCommandBuffer commands, VkPipelineBindPoint point, const VulkanBindings& bindings,
              const std::vector<VkDescriptorSet>& sets, const ArgumentView& arguments, UniformBytes& bytes);

private:
    VkDescriptorSet allocate_set(VkDescriptorSetLayout layout);
    void fill_slot(const VulkanBindings& kernel, const DescriptorSource& source, Object* object, DescriptorData& data);
    void fill_image(const VulkanBindings& kernel, const DescriptorSource& source, Object* object, DescriptorData& data);
    VkSampler default_sampler();

    VulkanContext& m_context;
    VulkanQueue& m_queue;
    VulkanUploads& m_uploads;
    const DeviceInfo& m_info;
    VkSampler m_default_sampler = VK_NULL_HANDLE;
    UploadPage* m_null_buffer = nullptr; ///< stands for buffers never set where the device has no null descriptors
};

} // namespace spy
