// Render pipelines, with dynamic rendering: no VkRenderPass.
#include "vulkan/render_pipeline.h"

#include "core/error.h"
#include "vulkan/device.h"
#include "vulkan/pipeline_stages.h"

#include <algorithm>

namespace spy {

namespace {

VkPrimitiveTopology vulkan_topology(PrimitiveTopology topology)
{
    switch (topology) {
    case PrimitiveTopology::point_list: return VK_PRIMITIVE_TOPOLOGY_POINT_LIST;
    case PrimitiveTopology::line_list: return VK_PRIMITIVE_TOPOLOGY_LINE_LIST;
    case PrimitiveTopology::line_strip: return VK_PRIMITIVE_TOPOLOGY_LINE_STRIP;
    case PrimitiveTopology::triangle_strip: return VK_PRIMITIVE_TOPOLOGY_TRIANGLE_STRIP;
    default: return VK_PRIMITIVE_TOPOLOGY_TRIANGLE_LIST;
    }
}

constexpr VkBlendFactor blend_factors[] = {
    VK_BLEND_FACTOR_ZERO,
    VK_BLEND_FACTOR_ONE,
    VK_BLEND_FACTOR_SRC_COLOR,
    VK_BLEND_FACTOR_ONE_MINUS_SRC_COLOR,
    VK_BLEND_FACTOR_SRC_ALPHA,
    VK_BLEND_FACTOR_ONE_MINUS_SRC_ALPHA,
    VK_BLEND_FACTOR_DST_ALPHA,
    VK_BLEND_FACTOR_ONE_MINUS_DST_ALPHA,
    VK_BLEND_FACTOR_DST_COLOR,
    VK_BLEND_FACTOR_ONE_MINUS_DST_COLOR,
    VK_BLEND_FACTOR_SRC_ALPHA_SATURATE,
    VK_BLEND_FACTOR_CONSTANT_COLOR,
    VK_BLEND_FACTOR_ONE_MINUS_CONSTANT_COLOR,
    VK_BLEND_FACTOR_SRC1_COLOR,
    VK_BLEND_FACTOR_ONE_MINUS_SRC1_COLOR,
    VK_BLEND_FACTOR_SRC1_ALPHA,
    VK_BLEND_FACTOR_ONE_MINUS_SRC1_ALPHA,
};
constexpr VkLogicOp logic_ops[] = {
    VK_LOGIC_OP_COPY,          VK_LOGIC_OP_CLEAR,       VK_LOGIC_OP_SET,          VK_LOGIC_OP_COPY,
    VK_LOGIC_OP_COPY_INVERTED, VK_LOGIC_OP_NO_OP,       VK_LOGIC_OP_INVERT,       VK_LOGIC_OP_AND,
    VK_LOGIC_OP_NAND,          VK_LOGIC_OP_OR,          VK_LOGIC_OP_NOR,          VK_LOGIC_OP_XOR,
    VK_LOGIC_OP_EQUIVALENT,    VK_LOGIC_OP_AND_REVERSE, VK_LOGIC_OP_AND_INVERTED, VK_LOGIC_OP_OR_REVERSE,
    VK_LOGIC_OP_OR_INVERTED,
};
constexpr VkStencilOp stencil_ops[] = {
    VK_STENCIL_OP_KEEP,
    VK_STENCIL_OP_ZERO,
    VK_STENCIL_OP_REPLACE,
    VK_STENCIL_OP_INCREMENT_AND_CLAMP,
    VK_STENCIL_OP_DECREMENT_AND_CLAMP,
    VK_STENCIL_OP_INVERT,
    VK_STENCIL_OP_INCREMENT_AND_WRAP,
    VK_STENCIL_OP_DECREMENT_AND_WRAP,
};

VkStencilOpState stencil_state(const DepthStencilOpDesc& face, const DepthStencilDesc& desc)
{
    VkStencilOpState state{};
    state.failOp = stencil_ops[size_t(face.stencil_fail_op)];
    state.passOp = stencil_ops[size_t(face.stencil_pass_op)];
    state.depthFailOp = stencil_ops[size_t(face.stencil_depth_fail_op)];
    state.compareOp = VkCompareOp(face.stencil_func); // same order
    state.compareMask = desc.stencil_read_mask & 0xff;
    state.writeMask = desc.stencil_write_mask & 0xff;
    return state;
}

VkPipelineColorBlendAttachmentState blend_state(const ColorTargetDesc& target)
{
    VkPipelineColorBlendAttachmentState state{};
    state.blendEnable = target.enable_blend;
    state.srcColorBlendFactor = blend_factors[size_t(target.color.src_factor)];
    state.dstColorBlendFactor = blend_factors[size_t(target.color.dst_factor)];
    state.colorBlendOp = VkBlendOp(target.color.op); // same order
    state.srcAlphaBlendFactor = blend_factors[size_t(target.alpha.src_factor)];
    state.dstAlphaBlendFactor = blend_factors[size_t(target.alpha.dst_factor)];
    state.alphaBlendOp = VkBlendOp(target.alpha.op);
    state.colorWriteMask = VkColorComponentFlags(target.write_mask);
    return state;
}

bool same_blend(const ColorTargetDesc& a, const ColorTargetDesc& b)
{
    const auto same = [](const AspectBlendDesc& x, const AspectBlendDesc& y) {
        return x.src_factor == y.src_factor && x.dst_factor == y.dst_factor && x.op == y.op;
    };
    return a.enable_blend == b.enable_blend && same(a.color, b.color) && same(a.alpha, b.alpha) &&
        a.write_mask == b.write_mask;
}

bool uses_second_source(const ColorTargetDesc& target)
{
    const auto is_second = [](BlendFactor f) { return f >= BlendFactor::secondary_src_color; };
    return target.enable_blend &&
        (is_second(target.color.src_factor) || is_second(target.color.dst_factor) ||
         is_second(target.alpha.src_factor) || is_second(target.alpha.dst_factor));
}

/// The parts of a VkGraphicsPipelineCreateInfo, which points to them.
struct GraphicsState {
    std::vector<VkVertexInputBindingDescription> streams;
    std::vector<VkVertexInputAttributeDescription> attributes;
    std::vector<VkVertexInputBindingDivisorDescriptionEXT> divisors;
    VkPipelineVertexInputDivisorStateCreateInfoEXT divisor{
        VK_STRUCTURE_TYPE_PIPELINE_VERTEX_INPUT_DIVISOR_STATE_CREATE_INFO_EXT};
    VkPipelineVertexInputStateCreateInfo input{VK_STRUCTURE_TYPE_PIPELINE_VERTEX_INPUT_STATE_CREATE_INFO};
    VkPipelineInputAssemblyStateCreateInfo assembly{VK_STRUCTURE_TYPE_PIPELINE_INPUT_ASSEMBLY_STATE_CREATE_INFO};
    VkPipelineViewportStateCreateInfo viewports{VK_STRUCTURE_TYPE_PIPELINE_VIEWPORT_STATE_CREATE_INFO};
    VkPipelineRasterizationLineStateCreateInfoEXT lines{
        VK_STRUCTURE_TYPE_PIPELINE_RASTERIZATION_LINE_STATE_CREATE_INFO_EXT};
    VkPipelineRasterizationConservativeStateCreateInfoEXT conservative{
        VK_STRUCTURE_TYPE_PIPELINE_RASTERIZATION_CONSERVATIVE_STATE_CREATE_INFO_EXT};
    VkPipelineRasterizationStateCreateInfo raster{VK_STRUCTURE_TYPE_PIPELINE_RASTERIZATION_STATE_CREATE_INFO};
    VkSampleMask mask[2] = {~0u, ~0u};
    VkPipelineMultisampleStateCreateInfo samples{VK_STRUCTURE_TYPE_PIPELINE_MULTISAMPLE_STATE_CREATE_INFO};
    VkPipelineDepthStencilStateCreateInfo depth{VK_STRUCTURE_TYPE_PIPELINE_DEPTH_STENCIL_STATE_CREATE_INFO};
    std::vector<VkPipelineColorBlendAttachmentState> targets;
    VkPipelineColorBlendStateCreateInfo blend{VK_STRUCTURE_TYPE_PIPELINE_COLOR_BLEND_STATE_CREATE_INFO};
    std::vector<VkDynamicState> dynamics;
    VkPipelineDynamicStateCreateInfo dynamic{VK_STRUCTURE_TYPE_PIPELINE_DYNAMIC_STATE_CREATE_INFO};
    std::vector<VkFormat> formats;
    VkPipelineRenderingCreateInfoKHR rendering{VK_STRUCTURE_TYPE_PIPELINE_RENDERING_CREATE_INFO_KHR};

    GraphicsState() = default;
    GraphicsState(const GraphicsState&) = delete;
};

void fill_input(GraphicsState& out, const RenderPipelineState& state)
{
    for (const VertexAttribute& attribute : state.attributes) {
        const InputElementDesc& element = attribute.element;
        const uint32_t slot = element.buffer_slot_index;
        out.attributes.push_back(
            {attribute.location, slot, VkFormat(format_info(element.format).vk_format), element.offset});
        if (std::any_of(out.streams.begin(), out.streams.end(), [&](const auto& s) { return s.binding == slot; }))
            continue;
        const VertexStreamDesc& stream = state.input.vertex_streams[slot];
        const bool instances = stream.slot_class == InputSlotClass::per_instance;
        out.streams.push_back(
            {slot, stream.stride, instances ? VK_VERTEX_INPUT_RATE_INSTANCE : VK_VERTEX_INPUT_RATE_VERTEX});
        if (instances && stream.instance_data_step_rate > 1)
            out.divisors.push_back({slot, stream.instance_data_step_rate});
    }
    out.divisor.vertexBindingDivisorCount = uint32_t(out.divisors.size());
    out.divisor.pVertexBindingDivisors = out.divisors.data();
    out.input.pNext = out.divisors.empty() ? nullptr : &out.divisor;
    out.input.vertexBindingDescriptionCount = uint32_t(out.streams.size());
    out.input.pVertexBindingDescriptions = out.streams.data();
    out.input.vertexAttributeDescriptionCount = uint32_t(out.attributes.size());
    out.input.pVertexAttributeDescriptions = out.attributes.data();
    out.assembly.topology = vulkan_topology(state.topology);
}

void fill_raster(GraphicsState& out, const RenderPipelineState& state)
{
    const RasterizerDesc& desc = state.rasterizer;
    VkPipelineRasterizationStateCreateInfo& raster = out.raster;
    raster.depthClampEnable = !desc.depth_clip_enable;
    raster.polygonMode = desc.fill_mode == FillMode::wireframe ? VK_POLYGON_MODE_LINE : VK_POLYGON_MODE_FILL;
    raster.cullMode = desc.cull_mode == CullMode::front ? VK_CULL_MODE_FRONT_BIT
        : desc.cull_mode == CullMode::back              ? VK_CULL_MODE_BACK_BIT
                                                        : VK_CULL_MODE_NONE;
    raster.frontFace = desc.front_face == FrontFaceMode::clockwise ? VK_FRONT_FACE_CLOCKWISE
                                                                   : VK_FRONT_FACE_COUNTER_CLOCKWISE;
    raster.depthBiasEnable = desc.depth_bias || desc.depth_bias_clamp != 0 || desc.slope_scaled_depth_bias != 0;
    raster.depthBiasConstantFactor = float(desc.depth_bias);
    raster.depthBiasClamp = desc.depth_bias_clamp;
    raster.depthBiasSlopeFactor = desc.slope_scaled_depth_bias;
    raster.lineWidth = 1.f;
    if (desc.antialiased_line_enable) {
        out.lines.lineRasterizationMode = VK_LINE_RASTERIZATION_MODE_RECTANGULAR_SMOOTH_EXT;
        out.lines.pNext = raster.pNext;
        raster.pNext = &out.lines;
    }
    if (desc.enable_conservative_rasterization) {
        out.conservative.conservativeRasterizationMode = VK_CONSERVATIVE_RASTERIZATION_MODE_OVERESTIMATE_EXT;
        out.conservative.pNext = raster.pNext;
        raster.pNext = &out.conservative;
    }
    out.mask[0] = state.multisample.sample_mask;
    out.samples.rasterizationSamples = VkSampleCountFlagBits(state.multisample.sample_count);
    out.samples.pSampleMask = out.mask;
    out.samples.alphaToCoverageEnable = state.multisample.alpha_to_coverage_enable;
    out.samples.alphaToOneEnable = state.multisample.alpha_to_one_enable;
}

void fill_targets(GraphicsState& out, const RenderPipelineState& state)
{
    for (const ColorTargetDesc& target : state.targets) {
        out.targets.push_back(blend_state(target));
        out.formats.push_back(VkFormat(format_info(target.format).vk_format));
        if (target.logic_op != LogicOp::no_op) {
            out.blend.logicOpEnable = true;
            out.blend.logicOp = logic_ops[size_t(target.logic_op)];
        }
    }
    out.blend.attachmentCount = uint32_t(out.targets.size());
    out.blend.pAttachments = out.targets.data();
    out.rendering.colorAttachmentCount = uint32_t(out.formats.size());
    out.rendering.pColorAttachmentFormats = out.formats.data();
    const DepthStencilDesc& desc = state.depth_stencil;
    const FormatInfo& format = format_info(desc.format);
    if (format.is_depth())
        out.rendering.depthAttachmentFormat = VkFormat(format.vk_format);
    if (format.is_stencil())
        out.rendering.stencilAttachmentFormat = VkFormat(format.vk_format);
    out.depth.depthTestEnable = desc.depth_test_enable;
    out.depth.depthWriteEnable = desc.writes_depth();
    out.depth.depthCompareOp = VkCompareOp(desc.depth_func); // same order
    out.depth.stencilTestEnable = desc.stencil_enable;
    out.depth.front = stencil_state(desc.front_face, desc);
    out.depth.back = stencil_state(desc.back_face, desc);
    out.depth.maxDepthBounds = 1.f;
}

void fill_dynamic(GraphicsState& out, bool with_counts)
{
    out.dynamics = {VK_DYNAMIC_STATE_STENCIL_REFERENCE};
    if (with_counts) {
        out.dynamics.push_back(VK_DYNAMIC_STATE_VIEWPORT_WITH_COUNT_EXT);
        out.dynamics.push_back(VK_DYNAMIC_STATE_SCISSOR_WITH_COUNT_EXT);
    } else {
        out.dynamics.push_back(VK_DYNAMIC_STATE_VIEWPORT);
        out.dynamics.push_back(VK_DYNAMIC_STATE_SCISSOR);
        out.viewports.viewportCount = out.viewports.scissorCount = 1;
    }
    out.dynamic.dynamicStateCount = uint32_t(out.dynamics.size());
    out.dynamic.pDynamicStates = out.dynamics.data();
}

} // namespace

VulkanRenderPipeline::VulkanRenderPipeline(ref<Device> device, const RenderPipelineDesc& desc)
    : RenderPipeline(std::move(device), desc),
      m_bindings(*static_cast<VulkanDevice*>(m_device.get()), *m_layout, m_label, codes_of(desc.stages))
{
    VulkanDevice& owner = *static_cast<VulkanDevice*>(m_device.get());
    check_support();
    std::vector<SpirvResult> code;
    FixedFormats formats;
    for (size_t i = 0; i < desc.stages.size(); ++i) {
        const SpirvOptions options = spirv_options(owner, m_bindings, m_layout->entry_points[i]);
        code.push_back(prepare_spirv(desc.stages[i].code, *m_layout, options));
        formats.insert(code.back().fixed_formats.begin(), code.back().fixed_formats.end());
        refuse_large_variables(code.back().code, m_label, options.scalar_phis);
        if (desc.stages[i].stage == ShaderStage::vertex && m_state.topology == PrimitiveTopology::point_list)
            code.back().code = set_point_size(std::move(code.back().code));
        if (desc.stages[i].stage == ShaderStage::fragment)
            code.back().code = link_fragment_inputs(std::move(code.back().code), *m_layout);
    }
    try {
        m_bindings.create(formats);
        create_pipeline(code);
    } catch (...) {
        release();
        throw;
    }
}

/// What a driver may lack, and would not say.
void VulkanRenderPipeline::check_support() const
{
    VulkanDevice& owner = *static_cast<VulkanDevice*>(m_device.get());
    const VulkanFeatures& features = owner.context().features;
    const VkPhysicalDeviceFeatures& core = features.core.features;
    auto need = [&](bool used, bool there, const char* field) {
        if (used && !there)
            fail(ErrorKind::not_implemented, "create_render_pipeline: ", field,
                 " is not supported by the Vulkan device ", owner.info().adapter_name);
    };
    const RasterizerDesc& raster = m_state.rasterizer;
    need(raster.fill_mode == FillMode::wireframe, core.fillModeNonSolid, "FillMode.wireframe");
    need(!raster.depth_clip_enable, core.depthClamp, "depth_clip_enable=False");
    need(raster.depth_bias_clamp != 0, core.depthBiasClamp, "depth_bias_clamp");
    need(raster.antialiased_line_enable, features.lines.smoothLines, "antialiased_line_enable");
    need(m_state.multisample.alpha_to_one_enable, core.alphaToOne, "alpha_to_one_enable");
    for (const ColorTargetDesc& target : m_state.targets) {
        need(target.logic_op != LogicOp::no_op, core.logicOp, "logic_op");
        if (target.logic_op != m_state.targets[0].logic_op)
            fail_value("create_render_pipeline: all targets have one logic_op on Vulkan");
        need(!same_blend(target, m_state.targets[0]), core.independentBlend, "blending that differs between targets");
        need(uses_second_source(target), core.dualSrcBlend, "BlendFactor.secondary_src_color and its like");
    }
    for (const VertexStreamDesc& stream : m_state.input.vertex_streams)
        need(stream.instance_data_step_rate > 1, features.divisor.vertexAttributeInstanceRateDivisor,
             "instance_data_step_rate above 1");
}

void VulkanRenderPipeline::create_pipeline(const std::vector<SpirvResult>& code)
{
    VulkanDevice& owner = *static_cast<VulkanDevice*>(m_device.get());
    const VulkanContext& context = owner.context();
    GraphicsState state;
    fill_input(state, m_state);
    fill_raster(state, m_state);
    fill_targets(state, m_state);
    fill_dynamic(state, context.features.dynamic_state.extendedDynamicState);
    PipelineStages stages{context, {}};
    VkGraphicsPipelineCreateInfo info{VK_STRUCTURE_TYPE_GRAPHICS_PIPELINE_CREATE_INFO, &state.rendering};
    info.pVertexInputState = is_mesh() ? nullptr : &state.input;
    info.pInputAssemblyState = is_mesh() ? nullptr : &state.assembly;
    info.pViewportState = &state.viewports;
    info.pRasterizationState = &state.raster;
    info.pMultisampleState = &state.samples;
    info.pDepthStencilState = &state.depth;
    info.pColorBlendState = &state.blend;
    info.pDynamicState = &state.dynamic;
    info.layout = m_bindings.pipeline_layout();
    for (size_t i = 0; i < code.size(); ++i) {
        VkPipelineShaderStageCreateInfo& stage = stages.list.emplace_back();
        stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
        stage.stage = vulkan_stage(m_layout->entry_points[i].stage);
        stage.pName = code[i].entry_point.c_str();
        stage.module = create_shader_module(context, code[i].code);
    }
    info.stageCount = uint32_t(stages.list.size());
    info.pStages = stages.list.data();
    const VkResult result = context.vk.CreateGraphicsPipelines(context.device, context.pipeline_cache, 1, &info,
                                                               nullptr, &m_pipeline);
    if (result < 0 || !m_pipeline)
        vk_fail(result < 0 ? result : VK_ERROR_INITIALIZATION_FAILED,
                cat("vkCreateGraphicsPipelines of '", m_label, "'").c_str());
    context.set_name(VK_OBJECT_TYPE_PIPELINE, uint64_t(m_pipeline), m_label);
}

void VulkanRenderPipeline::release() noexcept
{
    VulkanDevice& owner = *static_cast<VulkanDevice*>(m_device.get());
    owner.queue().discard(VK_OBJECT_TYPE_PIPELINE, uint64_t(std::exchange(m_pipeline, VK_NULL_HANDLE)));
    m_bindings.release();
}

ref<RenderPipeline> VulkanDevice::create_render_pipeline(const RenderPipelineDesc& desc)
{
    require_open("create_render_pipeline");
    return ref<RenderPipeline>(new VulkanRenderPipeline(ref<Device>(this), desc));
}

} // namespace spy
