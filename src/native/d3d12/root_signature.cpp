// Root signatures, made from the layouts of programs.
#include "d3d12/root_signature.h"

#include "core/error.h"
#include "d3d12/memory.h"
#include "d3d12/queue.h"

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
         "': acceleration structures are not implemented on d3d12 devices; use a vulkan device, or the Slang module "
         "slangpy.rays, which traces rays on every device");
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

D3D12RootSignature::D3D12RootSignature(const D3D12Context& context, ref<ProgramLayout> layout, std::string label,
                                       bool draws)
    : m_layout(std::move(layout)),
      m_label(std::move(label))
{
    find_scopes();
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
                                         draws ? D3D12_ROOT_SIGNATURE_FLAG_ALLOW_INPUT_ASSEMBLER_INPUT_LAYOUT
                                               : D3D12_ROOT_SIGNATURE_FLAG_NONE};
    Com<ID3DBlob> blob, errors;
    const HRESULT result = d3d12_loader().serialize_root_signature(&desc, D3D_ROOT_SIGNATURE_VERSION_1_0, blob.put(),
                                                                   errors.put());
    if (FAILED(result))
        d3d12_fail(result,
                   cat("the root signature of '", m_label, "'",
                       errors ? static_cast<const char*>(errors->GetBufferPointer()) : ""));
    d3d12_check(context.device->CreateRootSignature(0, blob->GetBufferPointer(), blob->GetBufferSize(),
                                                    iid_of<ID3D12RootSignature>(), m_root.put_void()),
                "CreateRootSignature");
}

void D3D12RootSignature::find_scopes()
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
}

void D3D12RootSignature::release(D3D12Queue& queue) noexcept { queue.discard(m_root); }

} // namespace spy
