// Kernels: DXIL, root signatures from the program layout, compute pipelines.
#include "d3d12/device.h"

#include "core/error.h"

#include <algorithm>
#include <tuple>

namespace spy {

namespace {

constexpr uint32_t root_size = 64;  ///< words of a root signature; a constant buffer takes two, a table one
constexpr UINT window_space = 9999; ///< register space of the table of windows (slangpy/slang/atomics.slang)

bool is_sampler(const SlotLayout& slot) { return slot.kind == SlotKind::sampler; }

D3D12_DESCRIPTOR_RANGE_TYPE range_type(const SlotLayout& slot)
{
    switch (slot.kind) {
    case SlotKind::sampler: return D3D12_DESCRIPTOR_RANGE_TYPE_SAMPLER;
    case SlotKind::structured_buffer:
    case SlotKind::byte_address_buffer:
    case SlotKind::texel_buffer:
    case SlotKind::texture: return slot.writable ? D3D12_DESCRIPTOR_RANGE_TYPE_UAV : D3D12_DESCRIPTOR_RANGE_TYPE_SRV;
    case SlotKind::combined_texture_sampler:
        fail(ErrorKind::not_implemented, "'", slot.path,
             "': HLSL has no texture and sampler in one; declare a Texture and a SamplerState, or use a vulkan device");
    case SlotKind::acceleration_structure: break;
    }
    fail(ErrorKind::not_implemented, "'", slot.path,
         "': acceleration structures are not implemented; pass the scene in buffers");
}

/// Ranges of neighbouring registers, and the slots in the order of their descriptors.
std::vector<D3D12_DESCRIPTOR_RANGE> ranges_of(const std::vector<SlotLayout>& slots, bool samplers,
                                              std::vector<uint32_t>& order)
{
    for (uint32_t i = 0; i < slots.size(); ++i)
        if (is_sampler(slots[i]) == samplers)
            order.push_back(i);
    auto key = [&](uint32_t i) {
        const SlotLayout& slot = slots[i];
        return std::tuple(range_type(slot), slot.set, slot.binding, slot.array_index);
    };
    std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return key(a) < key(b); });
    std::vector<D3D12_DESCRIPTOR_RANGE> ranges;
    for (uint32_t i : order) {
        const SlotLayout& slot = slots[i];
        const UINT at = slot.binding + slot.array_index;
        if (!ranges.empty()) {
            D3D12_DESCRIPTOR_RANGE& last = ranges.back();
            if (last.RangeType == range_type(slot) && last.RegisterSpace == slot.set &&
                last.BaseShaderRegister + last.NumDescriptors == at) {
                ++last.NumDescriptors;
                continue;
            }
        }
        ranges.push_back({range_type(slot), 1, at, slot.set, D3D12_DESCRIPTOR_RANGE_OFFSET_APPEND});
    }
    return ranges;
}

} // namespace

D3D12Kernel::D3D12Kernel(ref<Device> device, const KernelDesc& desc)
    : Kernel(std::move(device), desc.layout, desc.label.empty() ? desc.layout->entry_point().name : desc.label)
{
    constexpr uint64_t max_constants = 65536; // of a constant buffer
    for (uint32_t i = 0; i < m_layout->scopes.size(); ++i) {
        const ScopeLayout& scope = m_layout->scopes[i];
        if (!scope.size)
            continue;
        if (!scope.memory && scope.size > max_constants)
            fail_value("kernel '", m_label, "': the uniform parameters '", scope.path, "' take ", scope.size,
                       " bytes; Direct3D 12 allows ", max_constants, ": put large arrays in a buffer");
        m_scopes.push_back({i, scope.memory});
    }
    if (3 + 2 * m_scopes.size() > root_size)
        fail_value("kernel '", m_label, "' has ", m_scopes.size(), " constant buffers; Direct3D 12 binds ",
                   (root_size - 3) / 2, " at most: use fewer ParameterBlocks");
    create_root_signature();
    create_pipeline(desc.code);
}

void D3D12Kernel::create_root_signature()
{
    const D3D12_DESCRIPTOR_RANGE windows{D3D12_DESCRIPTOR_RANGE_TYPE_UAV, window_count, 0, window_space, 0};
    const std::vector<D3D12_DESCRIPTOR_RANGE> resources = ranges_of(m_layout->slots, false, m_resources);
    const std::vector<D3D12_DESCRIPTOR_RANGE> samplers = ranges_of(m_layout->slots, true, m_samplers);
    std::vector<D3D12_ROOT_PARAMETER> parameters;
    auto add_table = [&](const D3D12_DESCRIPTOR_RANGE* ranges, size_t count) {
        D3D12_ROOT_PARAMETER parameter{};
        parameter.ParameterType = D3D12_ROOT_PARAMETER_TYPE_DESCRIPTOR_TABLE;
        parameter.DescriptorTable.NumDescriptorRanges = UINT(count);
        parameter.DescriptorTable.pDescriptorRanges = ranges;
        parameters.push_back(parameter);
    };
    add_table(&windows, 1);
    for (const ScopeBinding& binding : m_scopes) {
        const ScopeLayout& scope = m_layout->scopes[binding.scope];
        D3D12_ROOT_PARAMETER parameter{};
        parameter.ParameterType = binding.memory ? D3D12_ROOT_PARAMETER_TYPE_SRV : D3D12_ROOT_PARAMETER_TYPE_CBV;
        parameter.Descriptor.ShaderRegister = scope.binding;
        parameter.Descriptor.RegisterSpace = scope.set;
        parameters.push_back(parameter);
    }
    if (!resources.empty())
        add_table(resources.data(), resources.size());
    if (!samplers.empty())
        add_table(samplers.data(), samplers.size());
    const D3D12_ROOT_SIGNATURE_DESC desc{UINT(parameters.size()), parameters.data(), 0, nullptr,
                                         D3D12_ROOT_SIGNATURE_FLAG_NONE};
    Com<ID3DBlob> blob, errors;
    const HRESULT result = d3d12_loader().serialize_root_signature(&desc, D3D_ROOT_SIGNATURE_VERSION_1_0, blob.put(),
                                                                   errors.put());
    if (FAILED(result))
        d3d12_fail(result,
                   cat("the root signature of kernel '", m_label, "'",
                       errors ? static_cast<const char*>(errors->GetBufferPointer()) : ""));
    D3D12Device& owner = *static_cast<D3D12Device*>(m_device.get());
    d3d12_check(owner.context().device->CreateRootSignature(0, blob->GetBufferPointer(), blob->GetBufferSize(),
                                                            iid_of<ID3D12RootSignature>(), m_root.put_void()),
                "CreateRootSignature");
}

void D3D12Kernel::create_pipeline(std::string_view code)
{
    D3D12Device& owner = *static_cast<D3D12Device*>(m_device.get());
    take_d3d12_messages(); // of the past
    D3D12_COMPUTE_PIPELINE_STATE_DESC desc{};
    desc.pRootSignature = m_root.get();
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
    owner.queue().discard(m_root);
}

ref<Kernel> D3D12Device::create_kernel(const KernelDesc& desc)
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
    return ref<Kernel>(new D3D12Kernel(ref<Device>(this), desc));
}

std::string D3D12Device::compile(const CompileDesc& desc)
{
    require_open("compile");
    const int model = m_context.features.shader_model;
    std::vector<std::string> arguments{
        "-T", cat("cs_", model / 10, "_", model % 10), "-E", desc.entry_point_name, "-HV", "2021", "-no-warnings"};
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
