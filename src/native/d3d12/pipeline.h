#pragma once
// Kernels of the Direct3D 12 backend: DXIL, root signatures made from the program layout, pipelines.
#include "d3d12/context.h"

namespace spy {

/// One root parameter that holds the bytes of a scope.
struct ScopeBinding {
    uint32_t scope = 0;
    bool memory = false; ///< a byte-address buffer instead of a constant buffer
};

class D3D12Kernel final : public Kernel {
public:
    D3D12Kernel(ref<Device> device, const KernelDesc& desc);
    ~D3D12Kernel() override { retire(); }
    void release() noexcept override;
    NativeHandle native_handle() const override
    {
        return {NativeHandleType::D3D12PipelineState, uint64_t(m_pipeline.get())};
    }

    ID3D12PipelineState* pipeline() const { return m_pipeline.get(); }
    ID3D12RootSignature* root() const { return m_root.get(); }
    /// Root parameters: 0 is the table of windows, then one for each of these, then the two tables if there are any.
    const std::vector<ScopeBinding>& scopes() const { return m_scopes; }
    const std::vector<uint32_t>& resources() const { return m_resources; } ///< slots in the order of the table
    const std::vector<uint32_t>& samplers() const { return m_samplers; }
    uint32_t resource_parameter() const { return uint32_t(m_scopes.size()) + 1; }
    uint32_t sampler_parameter() const { return resource_parameter() + (m_resources.empty() ? 0 : 1); }

private:
    void create_root_signature();
    void create_pipeline(std::string_view code);

    Com<ID3D12PipelineState> m_pipeline;
    Com<ID3D12RootSignature> m_root;
    std::vector<ScopeBinding> m_scopes;
    std::vector<uint32_t> m_resources, m_samplers;
};

} // namespace spy
