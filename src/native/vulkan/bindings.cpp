// Descriptor set layouts, push constants and pipeline layouts.
#include "vulkan/bindings.h"

#include "core/error.h"
#include "vulkan/device.h"

#include <algorithm>

namespace spy {

namespace {

VkDescriptorType descriptor_type(const SlotLayout& slot)
{
    switch (slot.kind) {
    case SlotKind::structured_buffer:
    case SlotKind::byte_address_buffer: return VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
    case SlotKind::texture: return slot.writable ? VK_DESCRIPTOR_TYPE_STORAGE_IMAGE : VK_DESCRIPTOR_TYPE_SAMPLED_IMAGE;
    case SlotKind::sampler: return VK_DESCRIPTOR_TYPE_SAMPLER;
    case SlotKind::combined_texture_sampler: return VK_DESCRIPTOR_TYPE_COMBINED_IMAGE_SAMPLER;
    case SlotKind::texel_buffer:
        return slot.writable ? VK_DESCRIPTOR_TYPE_STORAGE_TEXEL_BUFFER : VK_DESCRIPTOR_TYPE_UNIFORM_TEXEL_BUFFER;
    case SlotKind::acceleration_structure: return VK_DESCRIPTOR_TYPE_ACCELERATION_STRUCTURE_KHR;
    }
    fail(ErrorKind::not_implemented, "'", slot.path, "': this kind of resource is not implemented");
}

} // namespace

VkShaderStageFlagBits vulkan_stage(ShaderStage stage)
{
    switch (stage) {
    case ShaderStage::vertex: return VK_SHADER_STAGE_VERTEX_BIT;
    case ShaderStage::fragment: return VK_SHADER_STAGE_FRAGMENT_BIT;
    case ShaderStage::mesh: return VK_SHADER_STAGE_MESH_BIT_EXT;
    case ShaderStage::amplification: return VK_SHADER_STAGE_TASK_BIT_EXT;
    case ShaderStage::ray_generation: return VK_SHADER_STAGE_RAYGEN_BIT_KHR;
    case ShaderStage::miss: return VK_SHADER_STAGE_MISS_BIT_KHR;
    case ShaderStage::closest_hit: return VK_SHADER_STAGE_CLOSEST_HIT_BIT_KHR;
    case ShaderStage::any_hit: return VK_SHADER_STAGE_ANY_HIT_BIT_KHR;
    case ShaderStage::intersection: return VK_SHADER_STAGE_INTERSECTION_BIT_KHR;
    case ShaderStage::callable: return VK_SHADER_STAGE_CALLABLE_BIT_KHR;
    default: return VK_SHADER_STAGE_COMPUTE_BIT;
    }
}

VulkanBindings::VulkanBindings(VulkanDevice& owner, const ProgramLayout& layout, std::string label,
                               std::span<const std::string_view> code)
    : m_owner(owner),
      m_layout(layout),
      m_label(std::move(label))
{
    const VkPhysicalDeviceLimits& limits = owner.context().adapter->properties.limits;
    uint32_t set_count = 0;
    for (const EntryPoint& entry : layout.entry_points)
        m_stages |= vulkan_stage(entry.stage);
    for (const SlotLayout& slot : layout.slots)
        set_count = std::max(set_count, slot.set + 1);
    for (const ScopeLayout& scope : layout.scopes) {
        if (scope.size > limits.maxUniformBufferRange)
            fail_value("kernel '", m_label, "': the uniform parameters '", scope.path, "' take ", scope.size,
                       " bytes; ", owner.info().adapter_name, " allows ", limits.maxUniformBufferRange,
                       ": put large arrays in a buffer");
        if (scope.size && !scope.push_constant)
            set_count = std::max(set_count, scope.set + 1);
    }
    set_count = std::max(set_count, plan_handles(code));
    m_sets.resize(set_count);
    if (m_handle_set >= 0)
        m_sets[size_t(m_handle_set)] = {owner.handles().layout(), VK_NULL_HANDLE, {}, {}, owner.handles().set()};
    plan_pushes(code);
    plan_dynamic_scopes();
    if (set_count + m_spill_count > limits.maxBoundDescriptorSets)
        fail_value("kernel '", m_label, "' needs ", set_count + m_spill_count, " descriptor sets; ",
                   owner.info().adapter_name, " allows ", limits.maxBoundDescriptorSets, ": use fewer ParameterBlocks");
    check_descriptor_counts();
}

/// The number of sets that handles need: theirs is the last.
uint32_t VulkanBindings::plan_handles(std::span<const std::string_view> code)
{
    for (const std::string_view stage : code)
        m_handle_set = std::max(m_handle_set, handle_set(stage, m_layout));
    if (m_handle_set >= 0 && !has_handles(m_owner.context().features))
        fail(ErrorKind::not_implemented, "kernel '", m_label, "' uses descriptor handles, which need the feature ",
             "'bindless', which the Vulkan device ", m_owner.info().adapter_name,
             " has not: bind the resources as parameters, or use a cpu or cuda device");
    return uint32_t(m_handle_set + 1);
}

/// Slang puts the parameters of every entry point at the first push constant: those of two would lie on each other.
void VulkanBindings::plan_pushes(std::span<const std::string_view> code)
{
    const VulkanContext& context = m_owner.context();
    bool spill = false;
    for (size_t i = 0; i < m_layout.entry_points.size(); ++i) {
        const EntryPoint& entry = m_layout.entry_points[i];
        const ScopeLayout& scope = m_layout.scopes[entry.scope];
        // Those of ray generation are in its record of the shader table.
        if (!scope.size || !scope.push_constant || entry.stage == ShaderStage::ray_generation)
            continue;
        const PushBlock block{entry.scope, uint32_t((scope.size + 3) / 4 * 4), -1,
                              VkShaderStageFlags(vulkan_stage(entry.stage))};
        spill |= !m_pushes.empty() || block.size > context.adapter->properties.limits.maxPushConstantsSize ||
            needs_push_constant_spill(code[i], context.features);
        m_pushes.push_back(block);
    }
    if (!spill)
        return;
    for (PushBlock& block : m_pushes)
        block.spill_set = int(m_sets.size() + m_spill_count++);
}

/// Draws of one pass mostly differ in their values, not in their resources: they share sets, and differ in an offset.
void VulkanBindings::plan_dynamic_scopes()
{
    const auto is_dynamic = [](const ScopeLayout& scope) { return scope.size && !scope.push_constant; };
    const auto count = std::count_if(m_layout.scopes.begin(), m_layout.scopes.end(), is_dynamic);
    const uint32_t limit = m_owner.context().adapter->properties.limits.maxDescriptorSetUniformBuffersDynamic;
    m_dynamic_scopes = !(m_stages & VK_SHADER_STAGE_COMPUTE_BIT) && uint64_t(count) + m_spill_count <= limit;
    if (!m_dynamic_scopes)
        return;
    for (uint32_t i = 0; i < m_layout.scopes.size(); ++i)
        if (is_dynamic(m_layout.scopes[i]))
            m_sets[m_layout.scopes[i].set].dynamic_scopes.push_back(i);
    for (DescriptorSetLayout& set : m_sets)
        std::sort(set.dynamic_scopes.begin(), set.dynamic_scopes.end(),
                  [&](uint32_t a, uint32_t b) { return m_layout.scopes[a].binding < m_layout.scopes[b].binding; });
}

const PushBlock* VulkanBindings::push_of(const EntryPoint& entry) const
{
    for (const PushBlock& block : m_pushes)
        if (block.scope == entry.scope)
            return &block;
    return nullptr;
}

void VulkanBindings::create(const FixedFormats& formats)
{
    create_set_layouts(formats);
    create_pipeline_layout();
}

/// Drivers do not say so: what is beyond their limits reads as something else.
void VulkanBindings::check_descriptor_counts() const
{
    for (const SlotLayout& slot : m_layout.slots)
        if (slot.kind == SlotKind::acceleration_structure && !m_owner.context().has_acceleration())
            require_acceleration(&m_owner, cat("kernel '", m_label, "': parameter '", slot.path, "'").c_str());
    const VkPhysicalDeviceLimits& limits = m_owner.context().adapter->properties.limits;
    struct Kind {
        VkDescriptorType type;
        const char* name;
        uint32_t limit;
    };
    const Kind kinds[] = {
        {VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, "buffers", limits.maxPerStageDescriptorStorageBuffers},
        {VK_DESCRIPTOR_TYPE_SAMPLED_IMAGE, "textures", limits.maxPerStageDescriptorSampledImages},
        {VK_DESCRIPTOR_TYPE_STORAGE_IMAGE, "writable textures", limits.maxPerStageDescriptorStorageImages},
        {VK_DESCRIPTOR_TYPE_SAMPLER, "samplers", limits.maxPerStageDescriptorSamplers},
    };
    for (const Kind& kind : kinds) {
        auto is_kind = [&](const SlotLayout& slot) { return descriptor_type(slot) == kind.type; };
        const auto count = std::count_if(m_layout.slots.begin(), m_layout.slots.end(), is_kind);
        if (count > int64_t(kind.limit))
            fail_value("kernel '", m_label, "' takes ", count, " ", kind.name, "; ", m_owner.info().adapter_name,
                       " allows ", kind.limit, ": pass fewer, or tensors and pointers, which take none");
    }
}

void VulkanBindings::create_set_layouts(const FixedFormats& formats)
{
    const VulkanContext& context = m_owner.context();
    const VulkanFunctions& vk = context.vk;
    struct Place {
        uint32_t set, binding, element;
    };
    std::vector<std::vector<VkDescriptorSetLayoutBinding>> bindings(m_sets.size());
    std::vector<std::vector<VkDescriptorUpdateTemplateEntry>> entries(m_sets.size());
    auto add = [&](Place place, DescriptorSource source) {
        auto& list = bindings[place.set];
        auto found = std::find_if(list.begin(), list.end(), [&](auto& b) { return b.binding == place.binding; });
        if (found == list.end()) {
            VkDescriptorSetLayoutBinding binding{};
            binding.binding = place.binding;
            binding.descriptorType = source.type;
            binding.stageFlags = m_stages;
            found = list.insert(list.end(), binding);
        }
        found->descriptorCount = std::max(found->descriptorCount, place.element + 1);
        DescriptorSetLayout& set = m_sets[place.set];
        entries[place.set].push_back({place.binding, place.element, 1, source.type,
                                      set.sources.size() * sizeof(DescriptorData), sizeof(DescriptorData)});
        if (auto fixed = formats.find({place.set, place.binding}); fixed != formats.end())
            source.fixed_format = fixed->second;
        set.sources.push_back(source);
    };
    const VkDescriptorType uniforms = m_dynamic_scopes ? VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER_DYNAMIC
                                                       : VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER;
    for (uint32_t i = 0; i < m_layout.scopes.size(); ++i) {
        const ScopeLayout& scope = m_layout.scopes[i];
        if (scope.size && !scope.push_constant)
            add({scope.set, scope.binding, 0}, {uniforms, true, i});
    }
    for (uint32_t i = 0; i < m_layout.slots.size(); ++i) {
        const SlotLayout& slot = m_layout.slots[i];
        add({slot.set, slot.binding, slot.array_index}, {descriptor_type(slot), false, i});
    }
    for (size_t set = 0; set < m_sets.size(); ++set) {
        if (m_sets[set].whole)
            continue;
        VkDescriptorSetLayoutCreateInfo info{VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO};
        info.bindingCount = uint32_t(bindings[set].size());
        info.pBindings = bindings[set].data();
        vk_check(vk.CreateDescriptorSetLayout(context.device, &info, nullptr, &m_sets[set].layout),
                 "vkCreateDescriptorSetLayout");
        if (entries[set].empty())
            continue;
        VkDescriptorUpdateTemplateCreateInfo update{VK_STRUCTURE_TYPE_DESCRIPTOR_UPDATE_TEMPLATE_CREATE_INFO};
        update.descriptorUpdateEntryCount = uint32_t(entries[set].size());
        update.pDescriptorUpdateEntries = entries[set].data();
        update.templateType = VK_DESCRIPTOR_UPDATE_TEMPLATE_TYPE_DESCRIPTOR_SET;
        update.descriptorSetLayout = m_sets[set].layout;
        vk_check(vk.CreateDescriptorUpdateTemplate(context.device, &update, nullptr, &m_sets[set].update),
                 "vkCreateDescriptorUpdateTemplate");
    }
}

void VulkanBindings::create_pipeline_layout()
{
    const VulkanContext& context = m_owner.context();
    std::vector<VkDescriptorSetLayout> layouts;
    for (const DescriptorSetLayout& set : m_sets)
        layouts.push_back(set.layout);
    layouts.resize(layouts.size() + m_spill_count, m_owner.uploads().spill_layout());
    std::vector<VkPushConstantRange> ranges;
    for (const PushBlock& block : m_pushes)
        if (block.spill_set < 0)
            ranges.push_back({block.stages, 0, block.size});
    VkPipelineLayoutCreateInfo layout{VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO};
    layout.setLayoutCount = uint32_t(layouts.size());
    layout.pSetLayouts = layouts.data();
    layout.pushConstantRangeCount = uint32_t(ranges.size());
    layout.pPushConstantRanges = ranges.data();
    vk_check(context.vk.CreatePipelineLayout(context.device, &layout, nullptr, &m_pipeline_layout),
             "vkCreatePipelineLayout");
}

void VulkanBindings::release() noexcept
{
    VulkanQueue& queue = m_owner.queue();
    queue.discard(VK_OBJECT_TYPE_PIPELINE_LAYOUT, uint64_t(std::exchange(m_pipeline_layout, VK_NULL_HANDLE)));
    for (DescriptorSetLayout& set : m_sets) {
        if (set.whole)
            continue;
        queue.discard(VK_OBJECT_TYPE_DESCRIPTOR_UPDATE_TEMPLATE, uint64_t(std::exchange(set.update, VK_NULL_HANDLE)));
        queue.discard(VK_OBJECT_TYPE_DESCRIPTOR_SET_LAYOUT, uint64_t(std::exchange(set.layout, VK_NULL_HANDLE)));
    }
}

} // namespace spy
