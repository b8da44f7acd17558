// Kernels: SPIR-V, descriptor set layouts from the program layout, compute pipelines.
#include "vulkan/device.h"

#include "core/error.h"
#include "vulkan/variables.h"

#include <algorithm>
#include <cstdlib>

namespace spy {

namespace {

constexpr uint64_t most_driver_bytes = 12 << 10; ///< from which on a driver may refuse a kernel for its variables

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
    case SlotKind::acceleration_structure: break;
    }
    fail(ErrorKind::not_implemented, "'", slot.path,
         "': acceleration structures are not implemented; pass the scene in buffers");
}

/// Why a driver may have refused a kernel without a reason; empty where its variables are small.
std::string advice_on_variables(const std::vector<uint32_t>& code)
{
    const uint64_t bytes = bytes_in_variables(code);
    if (bytes <= most_driver_bytes)
        return {};
    return cat(
        ": its functions keep ", bytes,
        " bytes in variables, recorded states of loops included, and some drivers refuse more than about 16 KiB; "
        "lower [MaxIters(n)] of nested loops, use smaller arrays, or a CUDA device");
}

/// Drivers that are given more than they can hold do not say so, but compile for minutes or hours. No GPU has room for
/// more than 512 KiB of a thread's variables; Mesa's processor driver takes a time that grows with the square of them:
/// a minute for 8 to 16 KiB, or for ten times as much where LLVM does not optimise; kernels with 1 MiB end the process.
void refuse_large_variables(const std::vector<uint32_t>& code, const std::string& label, bool is_llvmpipe)
{
    const char* perf = is_llvmpipe ? std::getenv("GALLIVM_PERF") : nullptr;
    const bool is_plain = perf && std::string_view(perf).find("nopt") != std::string_view::npos;
    const uint64_t bytes = bytes_in_variables(code), most = (!is_llvmpipe ? 512 : is_plain ? 128 : 32) << 10;
    if (bytes <= most)
        return;
    fail_runtime(
        "kernel '", label, "': its functions keep ", bytes,
        " bytes in variables, recorded states of loops included, and this driver would compile more than ", most,
        " for hours: use smaller arrays or buffers, lower [MaxIters(n)], of which nested loops multiply theirs",
        is_llvmpipe && !is_plain ? ", set GALLIVM_PERF=nopt, with which it compiles faster" : "",
        ", or use a CPU device");
}

std::string hex(const uint8_t* bytes, size_t count)
{
    constexpr char digits[] = "0123456789abcdef";
    std::string text;
    for (size_t i = 0; i < count; ++i) {
        text += digits[bytes[i] >> 4];
        text += digits[bytes[i] & 15];
    }
    return text;
}

} // namespace

VulkanKernel::VulkanKernel(ref<Device> device, const KernelDesc& desc)
    : Kernel(std::move(device), desc.layout, desc.label.empty() ? desc.layout->entry_point().name : desc.label)
{
    VulkanDevice& owner = *static_cast<VulkanDevice*>(m_device.get());
    const VkPhysicalDeviceLimits& limits = owner.context().adapter->properties.limits;
    uint32_t set_count = 0;
    for (const SlotLayout& slot : m_layout->slots)
        set_count = std::max(set_count, slot.set + 1);
    for (size_t i = 0; i < m_layout->scopes.size(); ++i) {
        const ScopeLayout& scope = m_layout->scopes[i];
        if (!scope.size)
            continue;
        if (scope.size > limits.maxUniformBufferRange)
            fail_value("kernel '", m_label, "': the uniform parameters '", scope.path, "' take ", scope.size,
                       " bytes; ", owner.info().adapter_name, " allows ", limits.maxUniformBufferRange,
                       ": put large arrays in a buffer");
        if (!scope.push_constant) {
            set_count = std::max(set_count, scope.set + 1);
            continue;
        }
        m_push_scope = int(i);
        m_push_size = uint32_t((scope.size + 3) / 4 * 4);
    }
    const bool spill = m_push_scope >= 0 &&
        (m_push_size > limits.maxPushConstantsSize || needs_push_constant_spill(desc.code, owner.context().features));
    if (spill)
        m_spill_set = int(set_count++);
    if (set_count > limits.maxBoundDescriptorSets)
        fail_value("kernel '", m_label, "' needs ", set_count, " descriptor sets; ", owner.info().adapter_name,
                   " allows ", limits.maxBoundDescriptorSets, ": use fewer ParameterBlocks");
    m_sets.resize(set_count - (spill ? 1 : 0));

    SpirvOptions options;
    options.features = &owner.context().features;
    options.properties = &owner.context().adapter->v11;
    options.spill_push_constants = spill;
    options.spill_set = spill ? uint32_t(m_spill_set) : 0;
    options.scalar_phis = owner.context().adapter->v12.driverID == VK_DRIVER_ID_MESA_LLVMPIPE;
    options.shifted_conversions = options.scalar_phis;
    options.wide_negations = owner.context().adapter->v12.driverID == VK_DRIVER_ID_NVIDIA_PROPRIETARY;
    options.label = m_label;
    options.device_name = owner.info().adapter_name;
    const SpirvResult spirv = prepare_spirv(desc.code, *m_layout, options);
    check_descriptor_counts(limits, owner.info().adapter_name);
    refuse_large_variables(spirv.code, m_label, options.scalar_phis);
    try {
        create_set_layouts(spirv);
        create_pipeline(spirv);
    } catch (...) {
        release();
        throw;
    }
}

/// Drivers do not say so: what is beyond their limits reads as something else.
void VulkanKernel::check_descriptor_counts(const VkPhysicalDeviceLimits& limits, const std::string& device_name) const
{
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
        const auto count = std::count_if(m_layout->slots.begin(), m_layout->slots.end(), is_kind);
        if (count > int64_t(kind.limit))
            fail_value("kernel '", m_label, "' takes ", count, " ", kind.name, "; ", device_name, " allows ",
                       kind.limit, ": pass fewer, or tensors and pointers, which take none");
    }
}

void VulkanKernel::create_set_layouts(const SpirvResult& spirv)
{
    VulkanDevice& owner = *static_cast<VulkanDevice*>(m_device.get());
    const VulkanFunctions& vk = owner.context().vk;
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
            binding.stageFlags = VK_SHADER_STAGE_COMPUTE_BIT;
            found = list.insert(list.end(), binding);
        }
        found->descriptorCount = std::max(found->descriptorCount, place.element + 1);
        DescriptorSetLayout& set = m_sets[place.set];
        entries[place.set].push_back({place.binding, place.element, 1, source.type,
                                      set.sources.size() * sizeof(DescriptorData), sizeof(DescriptorData)});
        if (auto fixed = spirv.fixed_formats.find({place.set, place.binding}); fixed != spirv.fixed_formats.end())
            source.fixed_format = fixed->second;
        set.sources.push_back(source);
    };
    for (uint32_t i = 0; i < m_layout->scopes.size(); ++i) {
        const ScopeLayout& scope = m_layout->scopes[i];
        if (scope.size && !scope.push_constant)
            add({scope.set, scope.binding, 0}, {VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER, true, i});
    }
    for (uint32_t i = 0; i < m_layout->slots.size(); ++i) {
        const SlotLayout& slot = m_layout->slots[i];
        add({slot.set, slot.binding, slot.array_index}, {descriptor_type(slot), false, i});
    }
    for (size_t set = 0; set < m_sets.size(); ++set) {
        VkDescriptorSetLayoutCreateInfo info{VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO};
        info.bindingCount = uint32_t(bindings[set].size());
        info.pBindings = bindings[set].data();
        vk_check(vk.CreateDescriptorSetLayout(owner.context().device, &info, nullptr, &m_sets[set].layout),
                 "vkCreateDescriptorSetLayout");
        if (entries[set].empty())
            continue;
        VkDescriptorUpdateTemplateCreateInfo update{VK_STRUCTURE_TYPE_DESCRIPTOR_UPDATE_TEMPLATE_CREATE_INFO};
        update.descriptorUpdateEntryCount = uint32_t(entries[set].size());
        update.pDescriptorUpdateEntries = entries[set].data();
        update.templateType = VK_DESCRIPTOR_UPDATE_TEMPLATE_TYPE_DESCRIPTOR_SET;
        update.descriptorSetLayout = m_sets[set].layout;
        vk_check(vk.CreateDescriptorUpdateTemplate(owner.context().device, &update, nullptr, &m_sets[set].update),
                 "vkCreateDescriptorUpdateTemplate");
    }
}

void VulkanKernel::create_pipeline(const SpirvResult& spirv)
{
    VulkanDevice& owner = *static_cast<VulkanDevice*>(m_device.get());
    const VulkanFunctions& vk = owner.context().vk;
    std::vector<VkDescriptorSetLayout> layouts;
    for (const DescriptorSetLayout& set : m_sets)
        layouts.push_back(set.layout);
    if (m_spill_set >= 0)
        layouts.push_back(owner.uploads().spill_layout());
    const VkPushConstantRange range{VK_SHADER_STAGE_COMPUTE_BIT, 0, m_push_size};
    VkPipelineLayoutCreateInfo layout{VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO};
    layout.setLayoutCount = uint32_t(layouts.size());
    layout.pSetLayouts = layouts.data();
    layout.pushConstantRangeCount = m_push_scope >= 0 && m_spill_set < 0 ? 1 : 0;
    layout.pPushConstantRanges = &range;
    vk_check(vk.CreatePipelineLayout(owner.context().device, &layout, nullptr, &m_pipeline_layout),
             "vkCreatePipelineLayout");

    VkShaderModuleCreateInfo module{VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO};
    module.codeSize = spirv.code.size() * 4;
    module.pCode = spirv.code.data();
    VkShaderModule shader = VK_NULL_HANDLE;
    vk_check(vk.CreateShaderModule(owner.context().device, &module, nullptr, &shader), "vkCreateShaderModule");
    VkComputePipelineCreateInfo info{VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO};
    info.stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
    info.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
    info.stage.module = shader;
    info.stage.pName = spirv.entry_point.c_str();
    info.layout = m_pipeline_layout;
    const VkResult code = vk.CreateComputePipelines(owner.context().device, owner.context().pipeline_cache, 1, &info,
                                                    nullptr, &m_pipeline);
    vk.DestroyShaderModule(owner.context().device, shader, nullptr);
    if (code < 0 || !m_pipeline)
        vk_fail(code < 0 ? code : VK_ERROR_INITIALIZATION_FAILED,
                cat("vkCreateComputePipelines of kernel '", m_label, "'").c_str(),
                code == VK_ERROR_UNKNOWN ? advice_on_variables(spirv.code) : std::string());
    owner.context().set_name(VK_OBJECT_TYPE_PIPELINE, uint64_t(m_pipeline), m_label);
}

void VulkanKernel::release() noexcept
{
    VulkanDevice& owner = *static_cast<VulkanDevice*>(m_device.get());
    owner.queue().discard(VK_OBJECT_TYPE_PIPELINE, uint64_t(std::exchange(m_pipeline, VK_NULL_HANDLE)));
    owner.queue().discard(VK_OBJECT_TYPE_PIPELINE_LAYOUT, uint64_t(std::exchange(m_pipeline_layout, VK_NULL_HANDLE)));
    for (DescriptorSetLayout& set : m_sets) {
        owner.queue().discard(VK_OBJECT_TYPE_DESCRIPTOR_UPDATE_TEMPLATE,
                              uint64_t(std::exchange(set.update, VK_NULL_HANDLE)));
        owner.queue().discard(VK_OBJECT_TYPE_DESCRIPTOR_SET_LAYOUT,
                              uint64_t(std::exchange(set.layout, VK_NULL_HANDLE)));
    }
}

ref<Kernel> VulkanDevice::create_kernel(const KernelDesc& desc)
{
    require_open("create_kernel");
    const DeviceLimits& limits = m_info.limits;
    const uint32_t* group = desc.layout->group_size;
    const uint64_t threads = uint64_t(group[0]) * group[1] * group[2];
    if (threads > limits.max_compute_threads_per_group || group[0] > limits.max_compute_thread_group_size[0] ||
        group[1] > limits.max_compute_thread_group_size[1] || group[2] > limits.max_compute_thread_group_size[2])
        fail_value("kernel '", desc.label, "': a group of ", group[0], " x ", group[1], " x ", group[2],
                   " threads is larger than this device allows (", limits.max_compute_threads_per_group,
                   " threads in all)");
    return ref<Kernel>(new VulkanKernel(ref<Device>(this), desc));
}

std::string VulkanDevice::compile(const CompileDesc& desc)
{
    require_open("compile");
    // Slang has made SPIR-V already; what depends on the driver happens in create_kernel.
    if (desc.source.size() < 20 || desc.source.size() % 4 || desc.source.substr(0, 4) != "\x03\x02\x23\x07")
        fail_runtime("kernel '", desc.label, "': compile on a Vulkan device takes SPIR-V code");
    if (desc.float_mode >= CompileDesc::FloatMode::uncontracted) // Slang's SPIR-V does not say so
        return forbid_contraction(desc.source, desc.label);
    return std::string(desc.source);
}

std::string VulkanDevice::compiler_fingerprint()
{
    const VkPhysicalDeviceVulkan12Properties& driver = m_context.adapter->v12;
    return cat("vulkan spirv-1.5 2 ", m_info.adapter_name, " driver ", driver.driverName, " ", driver.driverInfo, " ",
               m_context.adapter->properties.driverVersion, " ", hex(m_context.adapter->v11.driverUUID, VK_UUID_SIZE),
               " ", hex(m_context.adapter->properties.pipelineCacheUUID, VK_UUID_SIZE));
}

} // namespace spy
