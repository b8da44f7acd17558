#pragma once
// Kernels of the Direct3D 12 backend: DXIL, its bindings, pipelines.
#include "d3d12/root_signature.h"

namespace spy {

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
    const D3D12RootSignature& root() const { return m_root; }

private:
    void create_pipeline(std::string_view code);

    Com<ID3D12PipelineState> m_pipeline;
    D3D12RootSignature m_root;
};

} // namespace spy
