#pragma once
// One render pass while it is recorded.
#include "d3d12/recorder.h"
#include "d3d12/render_pipeline.h"

namespace spy {

struct D3D12IndirectDraws {
    ID3D12CommandSignature *draw = nullptr, *indexed = nullptr;
};

/// All of this needs the lock of the queue. Textures are in one state outside of passes; within one, the parts that are
/// drawn into may differ from the rest, which shaders use.
class D3D12RenderPass {
public:
    D3D12RenderPass(D3D12Recorder& recorder, D3D12Queue& queue, D3D12Descriptors& descriptors, D3D12Bindings& bindings,
                    D3D12IndirectDraws indirect, const command::RenderPass& pass);
    ~D3D12RenderPass();
    void record();

private:
    /// What is drawn into.
    struct Part {
        D3D12Texture* texture;
        SubresourceRange range;
        PlaneStates states;
        bool is_shared = false; ///< shaders use other parts of the texture, or read this one too
        D3D12_RESOURCE_STATES rest = D3D12_RESOURCE_STATE_COMMON; ///< that of the other parts then
    };

    void find_parts();
    void find_shared();
    void enter();
    void leave();
    void set_targets(ID3D12GraphicsCommandList* commands);
    void clear(ID3D12GraphicsCommandList* commands);
    void draw(const command::Draw& draw);
    void use_depth(const DepthStencilDesc& desc);
    void use_buffers(const command::Draw& draw, const D3D12RenderPipeline& pipeline);
    void set_pipeline(ID3D12GraphicsCommandList* commands, const D3D12RenderPipeline& pipeline);
    void set_state(ID3D12GraphicsCommandList* commands, const RenderState& state, const D3D12RenderPipeline& pipeline);
    void execute(ID3D12GraphicsCommandList* commands, const command::Draw& draw);
    void resolve();

    D3D12Recorder& m_recorder;
    D3D12Queue& m_queue;
    D3D12Descriptors& m_descriptors;
    D3D12Bindings& m_bindings;
    D3D12IndirectDraws m_indirect;
    const command::RenderPass& m_pass;
    std::vector<Part> m_parts;
    std::vector<D3D12Texture*> m_shared;
    bool m_entered = false;
    uint64_t m_list = 0;                   ///< serial of the list that the targets are set in
    const command::Draw* m_last = nullptr; ///< the draw before, in that list
    D3D12BoundArguments m_bound;
};

} // namespace spy
