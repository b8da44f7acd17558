#pragma once
// Render pipelines: the fixed functions in Direct3D's terms.
#include "d3d12/root_signature.h"

#include "device/render.h"

namespace spy {

class D3D12RenderPipeline final : public RenderPipeline {
public:
    D3D12RenderPipeline(ref<Device> device, const RenderPipelineDesc& desc);
    ~D3D12RenderPipeline() override { retire(); }
    void release() noexcept override;
    NativeHandle native_handle() const override
    {
        return {NativeHandleType::D3D12PipelineState, uint64_t(m_pipeline.get())};
    }

    ID3D12PipelineState* pipeline() const { return m_pipeline.get(); }
    const D3D12RootSignature& root() const { return m_root; }
    /// Streams that the vertex shader reads, without repeats.
    const std::vector<uint32_t>& streams() const { return m_streams; }

private:
    void check_support() const;
    void create_pipeline(const RenderPipelineDesc& desc);

    Com<ID3D12PipelineState> m_pipeline;
    D3D12RootSignature m_root;
    std::vector<uint32_t> m_streams;
};

} // namespace spy
