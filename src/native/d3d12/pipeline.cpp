// Kernels: DXIL and compute pipelines.
#include "d3d12/device.h"

#include "core/error.h"

#include <algorithm>

namespace spy {

namespace {

const char* profile_of(ShaderStage stage)
{
    switch (stage) {
    case ShaderStage::vertex: return "vs";
    case ShaderStage::fragment: return "ps";
    case ShaderStage::mesh: return "ms";
    case ShaderStage::amplification: return "as";
    default: return "cs";
    }
}

} // namespace

D3D12Kernel::D3D12Kernel(ref<Device> device, const KernelDesc& desc)
    : Kernel(std::move(device), desc.layout, desc.label.empty() ? desc.layout->entry_point().name : desc.label),
      m_root(static_cast<D3D12Device*>(m_device.get())->context(), m_layout, m_label, false)
{
    create_pipeline(desc.code);
}

void D3D12Kernel::create_pipeline(std::string_view code)
{
    D3D12Device& owner = *static_cast<D3D12Device*>(m_device.get());
    take_d3d12_messages(); // of the past
    D3D12_COMPUTE_PIPELINE_STATE_DESC desc{};
    desc.pRootSignature = m_root.handle();
    desc.CS = {code.data(), code.size()};
    const HRESULT result = owner.context().device->CreateComputePipelineState(&desc, iid_of<ID3D12PipelineState>(),
                                                                              m_pipeline.put_void());
    if (FAILED(result))
        d3d12_fail(result, cat("CreateComputePipelineState of kernel '", m_label, "'"));
    owner.context().set_name(m_pipeline.get(), m_label);
}

void D3D12Kernel::release() noexcept
{
    D3D12Device& owner = *static_cast<D3D12Device*>(m_device.get());
    owner.queue().discard(m_pipeline);
    m_root.release(owner.queue());
}

ref<Kernel> D3D12Device::create_kernel(const KernelDesc& desc)
{
    require_open("create_kernel");
    check_group_size(m_info.limits, desc);
    return ref<Kernel>(new D3D12Kernel(ref<Device>(this), desc));
}

std::string D3D12Device::compile(const CompileDesc& desc)
{
    require_open("compile");
    const int model = m_context.features.shader_model;
    const std::string profile = cat(profile_of(desc.stage), "_", model / 10, "_", model % 10);
    std::vector<std::string> arguments{"-T", profile, "-E", desc.entry_point_name, "-HV", "2021", "-no-warnings"};
    // As the pragma that Slang writes: DXC mixes up the rows and columns of temporaries where only that says so.
    arguments.push_back(desc.source.find("pack_matrix(column_major)") == std::string::npos ? "-Zpr" : "-Zpc");
    arguments.push_back(cat("-O", std::clamp(desc.optimization, 0, 3)));
    if (desc.float_mode >= CompileDesc::FloatMode::uncontracted)
        arguments.push_back("-Gis");
    if (desc.debug_info) {
        arguments.push_back("-Zi");
        arguments.push_back("-Qembed_debug");
    }
    if (m_context.features.native_16bit)
        arguments.push_back("-enable-16bit-types");
    arguments.insert(arguments.end(), desc.downstream_args.begin(), desc.downstream_args.end());
    return compile_hlsl(desc.source, arguments, desc.label);
}

std::string D3D12Device::compiler_fingerprint()
{
    require_open("compiler_fingerprint");
    // DXIL does not depend on the driver, which makes its own code of it.
    return cat("d3d12 3 ", dxc_version(), " sm ", m_context.features.shader_model, " 16 bit ",
               int(m_context.features.native_16bit), " windows ", window_count);
}

} // namespace spy
