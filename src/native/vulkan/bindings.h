#pragma once
// How the arguments of a program are bound: descriptor set layouts, push constants, and the pipeline layout of both.
#include "vulkan/context.h"

#include "device/acceleration.h"

#include <utility>

namespace spy {

class VulkanDevice;

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
    VkAccelerationStructureKHR acceleration_structure;
};
struct DescriptorSetLayout {
    VkDescriptorSetLayout layout = VK_NULL_HANDLE;
    VkDescriptorUpdateTemplate update = VK_NULL_HANDLE;
    std::vector<DescriptorSource> sources; ///< in the order of the update template
    std::vector<uint32_t> dynamic_scopes;  ///< by binding: the set says in which buffer, an offset at its binding where
    VkDescriptorSet whole = VK_NULL_HANDLE; ///< the device's, of handles; then `layout` is the device's, too
};

/// The parameters of an entry point that are its own.
struct PushBlock {
    uint32_t scope = 0;
    uint32_t size = 0;  ///< bytes, a multiple of 4
    int spill_set = -1; ///< set of the buffer that they are put into instead; -1: they are push constants
    VkShaderStageFlags stages = 0;
};

/// (set, binding) of storage images whose texel format had to be fixed, with the VkFormat they now take.
using FixedFormats = std::map<std::pair<uint32_t, uint32_t>, VkFormat>;

VkShaderStageFlagBits vulkan_stage(ShaderStage stage);

class VulkanBindings {
public:
    /// Decides what goes where; create() makes the driver's objects. `code`: of each entry point of the layout.
    VulkanBindings(VulkanDevice& owner, const ProgramLayout& layout, std::string label,
                   std::span<const std::string_view> code);
    void create(const FixedFormats& formats);
    void release() noexcept;

    const ProgramLayout& layout() const { return m_layout; }
    const std::string& label() const { return m_label; }
    /// Whether sets stay right when the values of scopes change.
    bool has_dynamic_scopes() const { return m_dynamic_scopes; }
    VkPipelineLayout pipeline_layout() const { return m_pipeline_layout; }
    const std::vector<DescriptorSetLayout>& sets() const { return m_sets; }
    const std::vector<PushBlock>& pushes() const { return m_pushes; }
    /// That of an entry point, null when it has none.
    const PushBlock* push_of(const EntryPoint& entry) const;

private:
    uint32_t plan_handles(std::span<const std::string_view> code);
    void plan_pushes(std::span<const std::string_view> code);
    void plan_dynamic_scopes();
    void check_descriptor_counts() const;
    void create_set_layouts(const FixedFormats& formats);
    void create_pipeline_layout();

    VulkanDevice& m_owner;
    const ProgramLayout& m_layout; ///< the pipeline's
    std::string m_label;
    VkShaderStageFlags m_stages = 0;
    bool m_dynamic_scopes = false;
    VkPipelineLayout m_pipeline_layout = VK_NULL_HANDLE;
    std::vector<DescriptorSetLayout> m_sets;
    std::vector<PushBlock> m_pushes;
    uint32_t m_spill_count = 0;
    int m_handle_set = -1; ///< that of descriptor handles; -1: it uses none
};

} // namespace spy
