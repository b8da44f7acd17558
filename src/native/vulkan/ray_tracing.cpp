// Ray-tracing pipelines, and the recording of rays with their shader tables.
#include "vulkan/ray_tracing.h"

#include "core/align.h"
#include "core/error.h"
#include "vulkan/device.h"
#include "vulkan/pipeline_stages.h"
#include "vulkan/spirv/words.h"

#include <algorithm>
#include <cstring>

namespace spy {

namespace {

constexpr const char* ray_call = "create_ray_tracing_pipeline";

/// Hit groups may be called as an entry point is.
std::string group_key(const std::string& hit_group) { return "group:" + hit_group; }

bool traces_rays(const std::vector<uint32_t>& words)
{
    for (size_t i = spirv_header_words; i < words.size(); i += spirv_count(words, i))
        if (spirv_opcode(words, i) == spv::OpTraceRayKHR)
            return true;
    return false;
}

/// A driver does not say when rays nest deeper than was allowed.
void check_recursion(const EntryPoint& entry, const std::vector<uint32_t>& words, uint32_t most)
{
    const uint32_t needed = entry.stage == ShaderStage::ray_generation ? 1 : 2;
    if (most < needed && traces_rays(words))
        fail_value(ray_call, ": '", entry.name, "' (", stage_name(entry.stage),
                   ") calls TraceRay, which needs a 'max_recursion' of at least ", needed, ", got ", most);
}

VkPipelineCreateFlags pipeline_flags(const VulkanContext& context, RayTracingPipelineFlags flags)
{
    VkPipelineCreateFlags out = 0;
    if (has_flag(flags, RayTracingPipelineFlags::skip_triangles))
        out |= VK_PIPELINE_CREATE_RAY_TRACING_SKIP_TRIANGLES_BIT_KHR;
    if (has_flag(flags, RayTracingPipelineFlags::skip_procedurals))
        out |= VK_PIPELINE_CREATE_RAY_TRACING_SKIP_AABBS_BIT_KHR;
    if (out && !context.features.ray_tracing.rayTraversalPrimitiveCulling)
        fail(ErrorKind::not_implemented, ray_call, ": flags skip_triangles and skip_procedurals are not supported by ",
             context.name(), "; leave them out");
    return out;
}

/// Records of a shader table, one kind after the other.
class TableWriter {
public:
    TableWriter(const VulkanContext& context, const VulkanRayTracingPipeline& pipeline)
        : m_limits(context.adapter->ray_tracing),
          m_pipeline(pipeline)
    {
    }
    /// A record of its own: the handle, then the bytes.
    VkStridedDeviceAddressRegionKHR add_generation(const std::string& name, std::span<const uint8_t> parameters)
    {
        const uint64_t size = round_up(m_limits.shaderGroupHandleSize + parameters.size(),
                                       uint64_t(m_limits.shaderGroupHandleAlignment));
        if (size > m_limits.maxShaderGroupStride)
            fail_value("dispatch_rays: the uniform parameters of '", name, "' take ", parameters.size(),
                       " bytes, which is more than a shader record of this device holds (",
                       m_limits.maxShaderGroupStride - m_limits.shaderGroupHandleSize,
                       "); put them in a global ConstantBuffer");
        const uint64_t at = begin(size);
        put(at, name, parameters);
        return {at, size, size};
    }
    /// `spare`: records after the last one that hold no shader, for indices that are out of range.
    VkStridedDeviceAddressRegionKHR add(const std::vector<std::string>& names, bool hit_groups, uint64_t spare)
    {
        const uint64_t stride = round_up(uint64_t(m_limits.shaderGroupHandleSize),
                                         uint64_t(m_limits.shaderGroupHandleAlignment));
        const uint64_t size = stride * (names.size() + spare), at = begin(size);
        for (size_t i = 0; i < names.size(); ++i)
            if (!names[i].empty())
                put(at + i * stride, hit_groups ? group_key(names[i]) : names[i], {});
        return {at, stride, size};
    }
    const std::vector<uint8_t>& bytes() const { return m_bytes; }

private:
    uint64_t begin(uint64_t size)
    {
        const uint64_t at = round_up(uint64_t(m_bytes.size()), uint64_t(m_limits.shaderGroupBaseAlignment));
        m_bytes.resize(at + size);
        return at;
    }
    void put(uint64_t at, const std::string& key, std::span<const uint8_t> parameters)
    {
        const std::span<const uint8_t> handle = m_pipeline.group_handle(key);
        std::copy(handle.begin(), handle.end(), m_bytes.begin() + std::ptrdiff_t(at));
        std::copy(parameters.begin(), parameters.end(),
                  m_bytes.begin() + std::ptrdiff_t(at + m_limits.shaderGroupHandleSize));
    }

    const VkPhysicalDeviceRayTracingPipelinePropertiesKHR& m_limits;
    const VulkanRayTracingPipeline& m_pipeline;
    std::vector<uint8_t> m_bytes;
};

/// The parameters that a ray generation entry point has of its own.
std::vector<uint8_t> generation_bytes(const ProgramLayout& layout, const std::string& name,
                                      const ArgumentView& arguments)
{
    for (const EntryPoint& entry : layout.entry_points)
        if (entry.name == name) {
            std::vector<uint8_t> bytes(layout.scopes[entry.scope].size);
            copy_scope(bytes.data(), bytes.size(), arguments, entry.scope);
            return bytes;
        }
    return {};
}

} // namespace

VulkanRayTracingPipeline::VulkanRayTracingPipeline(ref<Device> device, const RayTracingPipelineDesc& desc)
    : RayTracingPipeline(std::move(device), desc),
      m_bindings(*static_cast<VulkanDevice*>(m_device.get()), *m_layout, m_label, codes_of(desc.stages))
{
    VulkanDevice& owner = *static_cast<VulkanDevice*>(m_device.get());
    std::vector<SpirvResult> code;
    FixedFormats formats;
    for (size_t i = 0; i < desc.stages.size(); ++i) {
        const EntryPoint& entry = m_layout->entry_points[i];
        const SpirvOptions options = spirv_options(owner, m_bindings, entry);
        code.push_back(prepare_spirv(desc.stages[i].code, *m_layout, options));
        formats.insert(code.back().fixed_formats.begin(), code.back().fixed_formats.end());
        refuse_large_variables(code.back().code, m_label, options.scalar_phis);
        check_recursion(entry, code.back().code, m_state.max_recursion);
    }
    try {
        m_bindings.create(formats);
        create_pipeline(code);
    } catch (...) {
        release();
        throw;
    }
}

void VulkanRayTracingPipeline::create_pipeline(const std::vector<SpirvResult>& code)
{
    const VulkanContext& context = static_cast<VulkanDevice*>(m_device.get())->context();
    PipelineStages stages{context, {}};
    std::vector<VkRayTracingShaderGroupCreateInfoKHR> groups;
    std::map<std::string, uint32_t> numbers;
    const auto add_group = [&](const std::string& key, VkRayTracingShaderGroupTypeKHR type) -> auto& {
        VkRayTracingShaderGroupCreateInfoKHR& group = groups.emplace_back();
        group = {VK_STRUCTURE_TYPE_RAY_TRACING_SHADER_GROUP_CREATE_INFO_KHR};
        group.type = type;
        group.generalShader = group.closestHitShader = group.anyHitShader = group.intersectionShader =
            VK_SHADER_UNUSED_KHR;
        m_groups.emplace(key, uint32_t(groups.size() - 1));
        return group;
    };
    for (uint32_t i = 0; i < code.size(); ++i) {
        const EntryPoint& entry = m_layout->entry_points[i];
        VkPipelineShaderStageCreateInfo& stage = stages.list.emplace_back();
        stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
        stage.stage = vulkan_stage(entry.stage);
        stage.pName = code[i].entry_point.c_str();
        stage.module = create_shader_module(context, code[i].code);
        numbers.emplace(entry.name, i);
        if (entry.stage == ShaderStage::ray_generation || entry.stage == ShaderStage::miss ||
            entry.stage == ShaderStage::callable)
            add_group(entry.name, VK_RAY_TRACING_SHADER_GROUP_TYPE_GENERAL_KHR).generalShader = i;
    }
    const auto number = [&](const std::string& name) { return name.empty() ? VK_SHADER_UNUSED_KHR : numbers.at(name); };
    for (const HitGroupDesc& hit : m_state.hit_groups) {
        auto& group = add_group(group_key(hit.hit_group_name),
                                hit.intersection_entry_point.empty()
                                    ? VK_RAY_TRACING_SHADER_GROUP_TYPE_TRIANGLES_HIT_GROUP_KHR
                                    : VK_RAY_TRACING_SHADER_GROUP_TYPE_PROCEDURAL_HIT_GROUP_KHR);
        group.closestHitShader = number(hit.closest_hit_entry_point);
        group.anyHitShader = number(hit.any_hit_entry_point);
        group.intersectionShader = number(hit.intersection_entry_point);
    }
    VkRayTracingPipelineCreateInfoKHR info{VK_STRUCTURE_TYPE_RAY_TRACING_PIPELINE_CREATE_INFO_KHR};
    info.flags = pipeline_flags(context, m_state.flags);
    info.stageCount = uint32_t(stages.list.size());
    info.pStages = stages.list.data();
    info.groupCount = uint32_t(groups.size());
    info.pGroups = groups.data();
    info.maxPipelineRayRecursionDepth = m_state.max_recursion;
    info.layout = m_bindings.pipeline_layout();
    const VkResult result = context.vk.CreateRayTracingPipelinesKHR(
        context.device, VK_NULL_HANDLE, context.pipeline_cache, 1, &info, nullptr, &m_pipeline);
    if (result < 0 || !m_pipeline)
        vk_fail(result < 0 ? result : VK_ERROR_INITIALIZATION_FAILED,
                cat("vkCreateRayTracingPipelinesKHR of '", m_label, "'").c_str());
    context.set_name(VK_OBJECT_TYPE_PIPELINE, uint64_t(m_pipeline), m_label);
    read_handles(uint32_t(groups.size()));
}

void VulkanRayTracingPipeline::read_handles(uint32_t group_count)
{
    const VulkanContext& context = static_cast<VulkanDevice*>(m_device.get())->context();
    m_handles.resize(size_t(group_count) * context.adapter->ray_tracing.shaderGroupHandleSize);
    vk_check(context.vk.GetRayTracingShaderGroupHandlesKHR(context.device, m_pipeline, 0, group_count, m_handles.size(),
                                                           m_handles.data()),
             "vkGetRayTracingShaderGroupHandlesKHR");
}

std::span<const uint8_t> VulkanRayTracingPipeline::group_handle(const std::string& name) const
{
    const auto found = m_groups.find(name);
    if (found == m_groups.end())
        return {};
    const size_t size = m_handles.size() / m_groups.size();
    return {m_handles.data() + found->second * size, size};
}

void VulkanRayTracingPipeline::release() noexcept
{
    VulkanDevice& owner = *static_cast<VulkanDevice*>(m_device.get());
    owner.queue().discard(VK_OBJECT_TYPE_PIPELINE, uint64_t(std::exchange(m_pipeline, VK_NULL_HANDLE)));
    m_bindings.release();
}

ref<RayTracingPipeline> VulkanDevice::create_ray_tracing_pipeline(const RayTracingPipelineDesc& desc)
{
    require_open(ray_call);
    return ref<RayTracingPipeline>(new VulkanRayTracingPipeline(ref<Device>(this), desc));
}

void VulkanRecorder::record(const command::DispatchRays& command)
{
    const std::vector<std::span<const uint8_t>> scopes(command.scopes.begin(), command.scopes.end());
    record_rays(*command.pipeline, *command.table, command.ray_gen_index, command.dimensions, {scopes, command.slots});
}

void VulkanRecorder::record_rays(const RayTracingPipeline& rays, const ShaderTable& shaders, uint32_t ray_gen_index,
                                 const std::array<uint32_t, 3>& dimensions, const ArgumentView& arguments)
{
    const auto& pipeline = static_cast<const VulkanRayTracingPipeline&>(rays);
    const VulkanBindings& bindings = pipeline.bindings();
    const ShaderTableDesc& desc = shaders.desc();
    constexpr uint64_t spare = 64;
    uint64_t contribution = 0;
    for (size_t i = 0; i < std::min(arguments.slots.size(), rays.layout().slots.size()); ++i)
        if (rays.layout().slots[i].kind == SlotKind::acceleration_structure && arguments.slots[i])
            contribution = std::max<uint64_t>(
                contribution, static_cast<AccelerationStructure&>(*arguments.slots[i]).content().max_contribution);
    TableWriter table(m_context, pipeline);
    const std::string& name = desc.ray_gen_entry_points[ray_gen_index];
    VkStridedDeviceAddressRegionKHR regions[] = {
        table.add_generation(name, generation_bytes(rays.layout(), name, arguments)),
        table.add(desc.miss_entry_points, false, spare),
        table.add(desc.hit_group_names, true, spare + contribution),
        table.add(desc.callable_entry_points, false, spare),
    };
    const uint64_t size = table.bytes().size(), alignment = m_context.adapter->ray_tracing.shaderGroupBaseAlignment;
    UniformBytes bytes(m_context, m_uploads, uniform_bytes(m_context, bindings) + size + 2 * alignment + 4096);
    const UploadSlice slice = bytes.take(size, alignment);
    std::memcpy(slice.data, table.bytes().data(), size);
    VkBufferDeviceAddressInfo page{VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO};
    page.buffer = slice.page->buffer;
    const uint64_t address = m_context.vk.GetBufferDeviceAddress(m_context.device, &page) + slice.offset;
    for (VkStridedDeviceAddressRegionKHR& region : regions)
        region.deviceAddress += address;
    static thread_local std::vector<VkDescriptorSet> sets;
    m_descriptors.write_sets(bindings, arguments, bytes, sets);
    VkCommandBuffer commands = m_queue.begin_command(true);
    m_context.vk.CmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_RAY_TRACING_KHR, pipeline.pipeline());
    m_descriptors.bind(commands, VK_PIPELINE_BIND_POINT_RAY_TRACING_KHR, bindings, sets, arguments, bytes);
    m_context.vk.CmdTraceRaysKHR(commands, &regions[0], &regions[1], &regions[2], &regions[3], dimensions[0],
                                 dimensions[1], dimensions[2]);
    m_queue.timeline.note_label(rays.label());
}

} // namespace spy
