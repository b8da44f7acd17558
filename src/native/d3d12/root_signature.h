#pragma once
// How the arguments of a program are bound: a root signature made from its layout.
#include "d3d12/context.h"

namespace spy {

class D3D12Queue;

/// One root parameter that holds the bytes of a scope.
struct ScopeBinding {
    uint32_t scope = 0;
    bool memory = false; ///< a byte-address buffer instead of a constant buffer
};

class D3D12RootSignature {
public:
    /// `label`: of the kernel or pipeline, for messages. `draws`: it reads vertices.
    D3D12RootSignature(const D3D12Context& context, ref<ProgramLayout> layout, std::string label, bool draws);
    void release(D3D12Queue& queue) noexcept;

    ID3D12RootSignature* handle() const { return m_root.get(); }
    const ProgramLayout& layout() const { return *m_layout; }
    const std::string& label() const { return m_label; }
    /// Root parameters: 0 is the table of windows, then one for each of these, then the two tables if there are any.
    const std::vector<ScopeBinding>& scopes() const { return m_scopes; }
    const std::vector<uint32_t>& resources() const { return m_resources; } ///< slots in the order of the table
    const std::vector<uint32_t>& samplers() const { return m_samplers; }
    uint32_t resource_parameter() const { return uint32_t(m_scopes.size()) + 1; }
    uint32_t sampler_parameter() const { return resource_parameter() + (m_resources.empty() ? 0 : 1); }

private:
    void find_scopes();

    ref<ProgramLayout> m_layout;
    std::string m_label;
    Com<ID3D12RootSignature> m_root;
    std::vector<ScopeBinding> m_scopes;
    std::vector<uint32_t> m_resources, m_samplers;
};

} // namespace spy
