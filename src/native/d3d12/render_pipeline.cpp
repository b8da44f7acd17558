// Render pipelines.
#include "d3d12/render_pipeline.h"

#include "core/error.h"
#include "d3d12/device.h"
#include "d3d12/stages.h"

#include <algorithm>

namespace spy {

namespace {

D3D12_PRIMITIVE_TOPOLOGY_TYPE topology_type(PrimitiveTopology topology)
{
    switch (topology) {
    case PrimitiveTopology::point_list: return D3D12_PRIMITIVE_TOPOLOGY_TYPE_POINT;
    case PrimitiveTopology::line_list:
    case PrimitiveTopology::line_strip: return D3D12_PRIMITIVE_TOPOLOGY_TYPE_LINE;
    default: return D3D12_PRIMITIVE_TOPOLOGY_TYPE_TRIANGLE;
    }
}

constexpr D3D12_BLEND color_factors[] = {
    D3D12_BLEND_ZERO,
    D3D12_BLEND_ONE,
    D3D12_BLEND_SRC_COLOR,
    D3D12_BLEND_INV_SRC_COLOR,
    D3D12_BLEND_SRC_ALPHA,
    D3D12_BLEND_INV_SRC_ALPHA,
    D3D12_BLEND_DEST_ALPHA,
    D3D12_BLEND_INV_DEST_ALPHA,
    D3D12_BLEND_DEST_COLOR,
    D3D12_BLEND_INV_DEST_COLOR,
    D3D12_BLEND_SRC_ALPHA_SAT,
    D3D12_BLEND_BLEND_FACTOR,
    D3D12_BLEND_INV_BLEND_FACTOR,
    D3D12_BLEND_SRC1_COLOR,
    D3D12_BLEND_INV_SRC1_COLOR,
    D3D12_BLEND_SRC1_ALPHA,
    D3D12_BLEND_INV_SRC1_ALPHA,
};

/// Of the alpha channel, where the API takes no factor that is named after colours; alpha itself is meant there.
D3D12_BLEND alpha_factor(BlendFactor factor)
{
    switch (factor) {
    case BlendFactor::src_color: return D3D12_BLEND_SRC_ALPHA;
    case BlendFactor::inv_src_color: return D3D12_BLEND_INV_SRC_ALPHA;
    case BlendFactor::dest_color: return D3D12_BLEND_DEST_ALPHA;
    case BlendFactor::inv_dest_color: return D3D12_BLEND_INV_DEST_ALPHA;
    case BlendFactor::secondary_src_color: return D3D12_BLEND_SRC1_ALPHA;
    case BlendFactor::inv_secondary_src_color: return D3D12_BLEND_INV_SRC1_ALPHA;
    default: return color_factors[size_t(factor)];
    }
}

// These have the order of the API, which begins at 1.
D3D12_BLEND_OP blend_op(BlendOp op) { return D3D12_BLEND_OP(int(op) + 1); }
D3D12_COMPARISON_FUNC comparison(ComparisonFunc func) { return D3D12_COMPARISON_FUNC(int(func) + 1); }
D3D12_STENCIL_OP stencil_op(StencilOp op) { return D3D12_STENCIL_OP(int(op) + 1); }

bool uses_second_source(const ColorTargetDesc& target)
{
    const auto is_second = [](BlendFactor f) { return f >= BlendFactor::secondary_src_color; };
    return target.enable_blend &&
        (is_second(target.color.src_factor) || is_second(target.color.dst_factor) ||
         is_second(target.alpha.src_factor) || is_second(target.alpha.dst_factor));
}

D3D12_RENDER_TARGET_BLEND_DESC blend_state(const ColorTargetDesc& target)
{
    D3D12_RENDER_TARGET_BLEND_DESC state{};
    state.BlendEnable = target.enable_blend;
    state.SrcBlend = color_factors[size_t(target.color.src_factor)];
    state.DestBlend = color_factors[size_t(target.color.dst_factor)];
    state.BlendOp = blend_op(target.color.op);
    state.SrcBlendAlpha = alpha_factor(target.alpha.src_factor);
    state.DestBlendAlpha = alpha_factor(target.alpha.dst_factor);
    state.BlendOpAlpha = blend_op(target.alpha.op);
    state.LogicOpEnable = target.logic_op != LogicOp::no_op;
    state.LogicOp = state.LogicOpEnable ? D3D12_LOGIC_OP(int(target.logic_op) - 1) : D3D12_LOGIC_OP_NOOP; // same order
    state.RenderTargetWriteMask = UINT8(target.write_mask);
    return state;
}

D3D12_DEPTH_STENCILOP_DESC stencil_state(const DepthStencilOpDesc& face)
{
    return {stencil_op(face.stencil_fail_op), stencil_op(face.stencil_depth_fail_op), stencil_op(face.stencil_pass_op),
            comparison(face.stencil_func)};
}

void fill_depth_stencil(D3D12_GRAPHICS_PIPELINE_STATE_DESC& out, const DepthStencilDesc& desc)
{
    out.DSVFormat = DXGI_FORMAT(format_info(desc.format).dxgi_format);
    D3D12_DEPTH_STENCIL_DESC& to = out.DepthStencilState;
    to.DepthEnable = desc.depth_test_enable;
    to.DepthWriteMask = desc.writes_depth() ? D3D12_DEPTH_WRITE_MASK_ALL : D3D12_DEPTH_WRITE_MASK_ZERO;
    to.DepthFunc = comparison(desc.depth_func);
    to.StencilEnable = desc.stencil_enable;
    to.StencilReadMask = UINT8(desc.stencil_read_mask);
    to.StencilWriteMask = desc.writes_stencil() ? UINT8(desc.stencil_write_mask) : 0;
    to.FrontFace = stencil_state(desc.front_face);
    to.BackFace = stencil_state(desc.back_face);
#ifndef _WIN32
    // libvkd3d neither loads nor stores what is not tested, so what is to stay takes a test that passes.
    if (!desc.depth_test_enable && format_info(desc.format).is_depth()) {
        to.DepthEnable = true;
        to.DepthFunc = D3D12_COMPARISON_FUNC_ALWAYS;
    }
    if (!desc.stencil_enable && format_info(desc.format).is_stencil()) {
        to.StencilEnable = true;
        to.FrontFace = to.BackFace = stencil_state({});
    }
#endif
}

void fill_targets(D3D12_GRAPHICS_PIPELINE_STATE_DESC& out, const RenderPipelineState& state)
{
    out.BlendState.AlphaToCoverageEnable = state.multisample.alpha_to_coverage_enable;
    // Logic operations need blending that is alike for all targets.
    out.BlendState.IndependentBlendEnable = state.targets.size() > 1 && state.targets[0].logic_op == LogicOp::no_op;
    out.NumRenderTargets = UINT(state.targets.size());
    for (size_t i = 0; i < state.targets.size(); ++i) {
        out.BlendState.RenderTarget[i] = blend_state(state.targets[i]);
        out.RTVFormats[i] = DXGI_FORMAT(format_info(state.targets[i].format).dxgi_format);
    }
    out.SampleMask = state.multisample.sample_mask;
    out.SampleDesc = {state.multisample.sample_count, 0};
    fill_depth_stencil(out, state.depth_stencil);
}

D3D12_RASTERIZER_DESC rasterizer_state(const RasterizerDesc& from)
{
    D3D12_RASTERIZER_DESC to{};
    to.FillMode = from.fill_mode == FillMode::wireframe ? D3D12_FILL_MODE_WIREFRAME : D3D12_FILL_MODE_SOLID;
    to.CullMode = from.cull_mode == CullMode::front ? D3D12_CULL_MODE_FRONT
        : from.cull_mode == CullMode::back          ? D3D12_CULL_MODE_BACK
                                                    : D3D12_CULL_MODE_NONE;
    to.FrontCounterClockwise = from.front_face == FrontFaceMode::counter_clockwise;
    to.DepthBias = from.depth_bias;
    to.DepthBiasClamp = from.depth_bias_clamp;
    to.SlopeScaledDepthBias = from.slope_scaled_depth_bias;
    to.DepthClipEnable = from.depth_clip_enable;
    to.MultisampleEnable = from.multisample_enable;
    to.AntialiasedLineEnable = from.antialiased_line_enable;
    to.ConservativeRaster = from.enable_conservative_rasterization ? D3D12_CONSERVATIVE_RASTERIZATION_MODE_ON
                                                                   : D3D12_CONSERVATIVE_RASTERIZATION_MODE_OFF;
    return to;
}

/// They point to the names in `state`.
std::vector<D3D12_INPUT_ELEMENT_DESC> input_elements(const RenderPipelineState& state)
{
    std::vector<D3D12_INPUT_ELEMENT_DESC> elements;
    for (const VertexAttribute& attribute : state.attributes) {
        const InputElementDesc& from = attribute.element;
        const VertexStreamDesc& stream = state.input.vertex_streams[from.buffer_slot_index];
        const bool instances = stream.slot_class == InputSlotClass::per_instance;
        elements.push_back(
            {from.semantic_name.c_str(), from.semantic_index, DXGI_FORMAT(format_info(from.format).dxgi_format),
             from.buffer_slot_index, from.offset,
             instances ? D3D12_INPUT_CLASSIFICATION_PER_INSTANCE_DATA : D3D12_INPUT_CLASSIFICATION_PER_VERTEX_DATA,
             instances ? stream.instance_data_step_rate : 0});
    }
    return elements;
}

} // namespace

D3D12RenderPipeline::D3D12RenderPipeline(ref<Device> device, const RenderPipelineDesc& desc)
    : RenderPipeline(std::move(device), desc),
      m_root(static_cast<D3D12Device*>(m_device.get())->context(), m_layout, m_label, true)
{
    check_support();
    for (const VertexAttribute& attribute : m_state.attributes)
        if (const uint32_t slot = attribute.element.buffer_slot_index;
            std::find(m_streams.begin(), m_streams.end(), slot) == m_streams.end())
            m_streams.push_back(slot);
    create_pipeline(desc);
}

/// What the API or a driver may lack, and would not say.
void D3D12RenderPipeline::check_support() const
{
    D3D12Device& owner = *static_cast<D3D12Device*>(m_device.get());
    const auto& options = owner.context().features.options;
    auto need = [&](bool used, bool there, const char* field) {
        if (used && !there)
            fail(ErrorKind::not_implemented, "create_render_pipeline: ", field,
                 " is not supported by the Direct3D 12 device ", owner.info().adapter_name);
    };
    need(m_state.multisample.alpha_to_one_enable, false, "alpha_to_one_enable");
#ifndef _WIN32
    need(m_state.rasterizer.antialiased_line_enable, false, "antialiased_line_enable"); // libvkd3d ignores it
#endif
    for (const ColorTargetDesc& target : m_state.targets) {
        need(target.logic_op != LogicOp::no_op, options.OutputMergerLogicOp, "logic_op");
        if (target.logic_op != m_state.targets[0].logic_op)
            fail_value("create_render_pipeline: all targets have one logic_op on Direct3D 12");
        if (uses_second_source(target) && m_state.targets.size() > 1)
            fail_value("create_render_pipeline: BlendFactor.secondary_src_color and its like need a single target");
    }
}

void D3D12RenderPipeline::create_pipeline(const RenderPipelineDesc& desc)
{
    D3D12Device& owner = *static_cast<D3D12Device*>(m_device.get());
    D3D12_GRAPHICS_PIPELINE_STATE_DESC info{};
    info.pRootSignature = m_root.handle();
    std::string_view vertex, fragment;
    for (const StageCode& stage : desc.stages)
        (stage.stage == ShaderStage::vertex ? vertex : fragment) = stage.code;
    const std::string linked = fragment.empty() ? "" : with_inputs_of(fragment, vertex, m_label);
    info.VS = {vertex.data(), vertex.size()};
    if (!linked.empty())
        info.PS = {linked.data(), linked.size()};
    const std::vector<D3D12_INPUT_ELEMENT_DESC> elements = input_elements(m_state);
    info.InputLayout = {elements.data(), UINT(elements.size())};
    info.PrimitiveTopologyType = topology_type(m_state.topology);
    info.RasterizerState = rasterizer_state(m_state.rasterizer);
    fill_targets(info, m_state);
    take_d3d12_messages(); // of the past
    const HRESULT result = owner.context().device->CreateGraphicsPipelineState(&info, iid_of<ID3D12PipelineState>(),
                                                                               m_pipeline.put_void());
    if (FAILED(result))
        d3d12_fail(result, cat("CreateGraphicsPipelineState of '", m_label, "'"));
    owner.context().set_name(m_pipeline.get(), m_label);
}

void D3D12RenderPipeline::release() noexcept
{
    D3D12Device& owner = *static_cast<D3D12Device*>(m_device.get());
    owner.queue().discard(m_pipeline);
    m_root.release(owner.queue());
}

ref<RenderPipeline> D3D12Device::create_render_pipeline(const RenderPipelineDesc& desc)
{
    require_open("create_render_pipeline");
    return ref<RenderPipeline>(new D3D12RenderPipeline(ref<Device>(this), desc));
}

} // namespace spy
