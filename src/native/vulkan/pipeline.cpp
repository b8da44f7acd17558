// Kernels: SPIR-V made fit for the device, compute pipelines.
#include "vulkan/device.h"

#include "core/error.h"
#include "vulkan/spirv/variables.h"

#include <algorithm>
#include <cstdlib>

namespace spy {

namespace {

constexpr uint64_t most_driver_bytes = 12 << 10; ///< from which on a driver may refuse a kernel for its variables

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

VulkanKernel::VulkanKernel(ref<Device> device, const KernelDesc& desc)
    : Kernel(std::move(device), desc.layout, desc.label.empty() ? desc.layout->entry_point().name : desc.label),
      m_rays(desc.rays),
      m_table(desc.table),
      m_bindings(*static_cast<VulkanDevice*>(m_device.get()), *m_layout, m_label, {&desc.code, 1})
{
    if (m_rays)
        return;
    VulkanDevice& owner = *static_cast<VulkanDevice*>(m_device.get());
    const SpirvOptions options = spirv_options(owner, m_bindings, m_layout->entry_point());
    const SpirvResult spirv = prepare_spirv(desc.code, *m_layout, options);
    refuse_large_variables(spirv.code, m_label, options.scalar_phis);
    try {
        m_bindings.create(spirv.fixed_formats);
        create_pipeline(spirv);
    } catch (...) {
        release();
        throw;
    }
}

void VulkanKernel::create_pipeline(const SpirvResult& spirv)
{
    VulkanDevice& owner = *static_cast<VulkanDevice*>(m_device.get());
    const VulkanFunctions& vk = owner.context().vk;
    const VkShaderModule shader = create_shader_module(owner.context(), spirv.code);
    VkComputePipelineCreateInfo info{VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO};
    info.stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
    info.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
    info.stage.module = shader;
    info.stage.pName = spirv.entry_point.c_str();
    info.layout = m_bindings.pipeline_layout();
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
    m_bindings.release();
}

VkShaderModule create_shader_module(const VulkanContext& context, const std::vector<uint32_t>& code)
{
    VkShaderModuleCreateInfo module{VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO};
    module.codeSize = code.size() * 4;
    module.pCode = code.data();
    VkShaderModule shader = VK_NULL_HANDLE;
    vk_check(context.vk.CreateShaderModule(context.device, &module, nullptr, &shader), "vkCreateShaderModule");
    return shader;
}

SpirvOptions spirv_options(VulkanDevice& owner, const VulkanBindings& bindings, const EntryPoint& entry)
{
    const VkDriverId driver = owner.context().adapter->v12.driverID;
    const PushBlock* push = bindings.push_of(entry);
    SpirvOptions options;
    options.features = &owner.context().features;
    options.properties = &owner.context().adapter->v11;
    options.entry_point = entry.name;
    options.spill_push_constants = push && push->spill_set >= 0;
    options.spill_set = options.spill_push_constants ? uint32_t(push->spill_set) : 0;
    options.scalar_phis = driver == VK_DRIVER_ID_MESA_LLVMPIPE;
    options.shifted_conversions = options.scalar_phis;
    options.wide_negations = driver == VK_DRIVER_ID_NVIDIA_PROPRIETARY;
    options.label = bindings.label();
    options.device_name = owner.info().adapter_name;
    return options;
}

ref<Kernel> VulkanDevice::create_kernel(const KernelDesc& desc)
{
    require_open("create_kernel");
    check_group_size(m_info.limits, desc);
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
