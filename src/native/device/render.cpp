// Render pipelines: what a description must hold, checked once for all backends.
#include "device/render.h"

#include "core/error.h"
#include "device/backend.h"
#include "device/resource.h"

#include <algorithm>
#include <bit>
#include <cctype>

namespace spy {

namespace {

constexpr const char* create_call = "create_render_pipeline";

std::string capitals(std::string text)
{
    for (char& c : text)
        c = char(std::toupper(static_cast<unsigned char>(c)));
    return text;
}

std::string semantic_text(const std::string& name, uint32_t index) { return capitals(name) + std::to_string(index); }

bool supports(Device* device, Format format, FormatSupport flag)
{
    return device->format_support(format) & uint32_t(flag);
}

[[noreturn]] void fail_format(Device* device, const std::string& what, Format format, const char* flag)
{
    fail_value(create_call, ": ", what, ": format ", format_name(format), " is not ", flag, " on ",
               device->info().adapter_name, "; Device.get_format_support(Format.", format_name(format),
               ") tells what it supports");
}

// --- stages

void check_stages(const RenderPipelineDesc& desc)
{
    uint32_t count[size_t(ShaderStage::dispatch) + 1] = {};
    for (const EntryPoint& entry : desc.layout->entry_points) {
        const ShaderStage stage = entry.stage;
        if (stage == ShaderStage::hull || stage == ShaderStage::domain || stage == ShaderStage::geometry)
            fail(ErrorKind::not_implemented, create_call, ": '", entry.name, "' is a ", stage_name(stage),
                 " shader, which is not implemented; use vertex, mesh, amplification and fragment shaders");
        if (stage != ShaderStage::vertex && stage != ShaderStage::fragment && stage != ShaderStage::mesh &&
            stage != ShaderStage::amplification)
            fail_value(create_call, ": '", entry.name, "' is a ", stage_name(stage),
                       " entry point; a render pipeline has a vertex (or mesh and amplification) and a fragment entry "
                       "point: link those alone, and mark them with [shader(\"vertex\")] and [shader(\"fragment\")]");
        if (++count[size_t(stage)] > 1)
            fail_value(create_call, ": the program has two ", stage_name(stage), " entry points, '", entry.name,
                       "' is the second; link one of each stage");
    }
    const bool vertex = count[size_t(ShaderStage::vertex)], mesh = count[size_t(ShaderStage::mesh)];
    if (vertex == mesh)
        fail_value(create_call, ": the program has ", vertex ? "a vertex and a mesh" : "no vertex or mesh",
                   " entry point; it needs one of the two");
    if (vertex && count[size_t(ShaderStage::amplification)])
        fail_value(create_call, ": amplification shaders go with mesh shaders, not with vertex shaders");
    if (!count[size_t(ShaderStage::fragment)] && !desc.state.targets.empty())
        fail_value(create_call,
                   ": the program has no fragment entry point to write targets[0]; link one, or leave "
                   "'targets' out to write depth alone");
}

// --- vertex input

/// What a shader sees of texels of a format: float, uint or int.
char class_of(const FormatInfo& format)
{
    return format.type == FormatType::uint ? 'u' : format.type == FormatType::sint ? 'i' : 'f';
}

char class_of(ScalarType scalar)
{
    const ScalarInfo& info = scalar_info(scalar);
    return info.is_float ? 'f' : info.is_signed ? 'i' : 'u';
}

void check_stream(const VertexStreamDesc& stream, size_t index, const DeviceLimits& limits)
{
    if (limits.max_vertex_stream_stride && stream.stride > limits.max_vertex_stream_stride)
        fail_value(create_call, ": vertex_streams[", index, "]: a stride of ", stream.stride,
                   " bytes is more than this device's limit of ", limits.max_vertex_stream_stride);
    if (stream.slot_class == InputSlotClass::per_vertex && stream.instance_data_step_rate)
        fail_value(create_call, ": vertex_streams[", index, "]: instance_data_step_rate is ",
                   stream.instance_data_step_rate,
                   ", but the stream is per vertex; set slot_class to InputSlotClass.per_instance");
}

void check_element(Device* device, const InputLayoutDesc& input, size_t index)
{
    const InputElementDesc& element = input.input_elements[index];
    const std::string name = semantic_text(element.semantic_name, element.semantic_index);
    if (element.semantic_name.empty())
        fail_value(create_call, ": input_elements[", index, "] has no semantic_name");
    for (size_t i = 0; i < index; ++i)
        if (semantic_text(input.input_elements[i].semantic_name, input.input_elements[i].semantic_index) == name)
            fail_value(create_call, ": the input layout has two elements for ", name);
    if (element.format == Format::undefined)
        fail_value(create_call, ": input element ", name, " has no format");
    if (!supports(device, element.format, FormatSupport::vertex_buffer))
        fail_format(device, "input element " + name, element.format, "a format of vertex buffers");
    if (element.buffer_slot_index >= input.vertex_streams.size())
        fail_value(create_call, ": input element ", name, " is in stream ", element.buffer_slot_index, ", but there ",
                   input.vertex_streams.size() == 1 ? "is 1 vertex stream"
                                                    : cat("are ", input.vertex_streams.size(), " vertex streams"));
    const uint32_t stride = input.vertex_streams[element.buffer_slot_index].stride;
    const uint64_t end = uint64_t(element.offset) + format_info(element.format).bytes_per_block;
    if (stride < end)
        fail_value(create_call, ": input element ", name, " takes the bytes up to ", end, " of its vertex, but stream ",
                   element.buffer_slot_index, " has a stride of ", stride);
    const uint32_t most = device->info().limits.max_vertex_input_element_offset;
    if (most && element.offset > most)
        fail_value(create_call, ": input element ", name, ": an offset of ", element.offset,
                   " bytes is more than this device's limit of ", most);
}

const InputElementDesc& element_for(const VertexInput& wanted, const RenderPipelineDesc& desc)
{
    const std::string name = semantic_text(wanted.semantic, wanted.semantic_index);
    const std::vector<InputElementDesc>& elements = desc.state.input.input_elements;
    std::string known;
    for (const InputElementDesc& element : elements) {
        const std::string own = semantic_text(element.semantic_name, element.semantic_index);
        known += (known.empty() ? "" : ", ") + own;
        if (own != name)
            continue;
        const FormatInfo& format = format_info(element.format);
        if (class_of(format) != class_of(wanted.scalar))
            fail_value(create_call, ": vertex input '", name, "' is ", scalar_info(wanted.scalar).slang_name,
                       " in the shader, but its element has format ", format.name,
                       "; float inputs take float and normalized formats, int and uint inputs sint and uint formats");
        return element;
    }
    std::string vertex;
    for (const EntryPoint& entry : desc.layout->entry_points)
        if (entry.stage == ShaderStage::vertex)
            vertex = entry.name;
    fail_value(create_call, ": vertex input '", name, "' of '", vertex, "' is not in the input layout; ",
               elements.empty() ? std::string("it is empty, or none was given") : "it has " + known);
}

void resolve_input(Device* device, RenderPipelineDesc& desc)
{
    InputLayoutDesc& input = desc.state.input;
    const DeviceLimits& limits = device->info().limits;
    if (limits.max_vertex_streams && input.vertex_streams.size() > limits.max_vertex_streams)
        fail_value(create_call, ": ", input.vertex_streams.size(),
                   " vertex streams are more than this device's limit of ", limits.max_vertex_streams);
    if (limits.max_vertex_input_elements && desc.layout->vertex_inputs.size() > limits.max_vertex_input_elements)
        fail_value(create_call, ": ", desc.layout->vertex_inputs.size(),
                   " vertex inputs are more than this device's limit of ", limits.max_vertex_input_elements);
    for (size_t i = 0; i < input.vertex_streams.size(); ++i) {
        VertexStreamDesc& stream = input.vertex_streams[i];
        check_stream(stream, i, limits);
        if (stream.slot_class == InputSlotClass::per_instance)
            stream.instance_data_step_rate = std::max(stream.instance_data_step_rate, 1u);
    }
    for (size_t i = 0; i < input.input_elements.size(); ++i)
        check_element(device, input, i);
    desc.state.attributes.clear();
    for (const VertexInput& wanted : desc.layout->vertex_inputs)
        desc.state.attributes.push_back({element_for(wanted, desc), wanted.location});
}

// --- targets

void check_target(Device* device, const ColorTargetDesc& target, size_t index)
{
    const std::string what = cat("targets[", index, "]");
    const FormatInfo& format = format_info(target.format);
    if (target.format == Format::undefined)
        fail_value(create_call, ": ", what, " has no format");
    if (format.is_depth_stencil())
        fail_value(create_call, ": ", what, ": ", format.name, " is a depth format; give it as depth_stencil");
    if (!supports(device, target.format, FormatSupport::render_target))
        fail_format(device, what, target.format, "a format to draw into");
    if (!target.enable_blend)
        return;
    for (const AspectBlendDesc* aspect : {&target.color, &target.alpha})
        for (BlendFactor factor : {aspect->src_factor, aspect->dst_factor})
            if (factor == BlendFactor::blend_color || factor == BlendFactor::inv_blend_color)
                fail(ErrorKind::not_implemented, create_call, ": ", what,
                     ": BlendFactor.blend_color and inv_blend_color are not implemented, as there is no way to set the "
                     "colour; let the shader multiply");
    if (format.is_integer_format())
        fail_value(create_call, ": ", what, ": integer formats such as ", format.name, " cannot be blended");
    if (!supports(device, target.format, FormatSupport::blendable))
        fail_format(device, what + ".enable_blend", target.format, "blendable");
    if (target.logic_op != LogicOp::no_op)
        fail_value(create_call, ": ", what, " has both enable_blend and a logic_op; choose one");
}

void check_depth_stencil(Device* device, const DepthStencilDesc& desc)
{
    if (desc.format == Format::undefined) {
        if (desc.depth_test_enable || desc.stencil_enable)
            fail_value(create_call, ": depth_stencil has ",
                       desc.depth_test_enable ? "depth_test_enable" : "stencil_enable",
                       ", but no format; give the format of the pass's depth attachment");
        return;
    }
    const FormatInfo& format = format_info(desc.format);
    if (!format.is_depth_stencil())
        fail_value(create_call, ": depth_stencil.format: ", format.name,
                   " is no depth format; use d32_float, d16_unorm "
                   "or d32_float_s8_uint");
    if (!supports(device, desc.format, FormatSupport::depth_stencil))
        fail_format(device, "depth_stencil", desc.format, "a depth format");
    if (desc.stencil_enable && !format.is_stencil())
        fail_value(create_call, ": depth_stencil.stencil_enable: format ", format.name,
                   " has no stencil; use d32_float_s8_uint");
}

void check_samples(Device* device, const MultisampleDesc& desc)
{
    const uint32_t counts = device->info().limits.sample_counts;
    if (!std::has_single_bit(desc.sample_count) || (counts && !(counts & desc.sample_count))) {
        std::string known;
        for (uint32_t bit = 1; bit && bit <= counts; bit <<= 1)
            if (counts & bit)
                known += (known.empty() ? "" : ", ") + std::to_string(bit);
        fail_value(create_call, ": multisample.sample_count is ", desc.sample_count, "; ",
                   known.empty() ? std::string("it must be a power of two")
                                 : device->info().adapter_name + " draws with " + known);
    }
}

} // namespace

void require_feature(const Device* device, const char* feature, const char* call)
{
    if (device->has_feature(feature))
        return;
    const DeviceInfo& info = device->info();
    const char* who = info.type == DeviceType::vulkan || info.type == DeviceType::d3d12
        ? "a vulkan device whose driver has it (Device.features lists them)"
        : "a vulkan or d3d12 device; Mesa's lavapipe is a Vulkan driver that needs no GPU";
    fail(ErrorKind::not_implemented, call, ": ", info.adapter_name, " (", device_type_name(info.type),
         ") does not have the feature '", feature, "'; use ", who);
}

bool DepthStencilDesc::writes_stencil() const
{
    const auto writes = [](const DepthStencilOpDesc& face) {
        return face.stencil_fail_op != StencilOp::keep || face.stencil_depth_fail_op != StencilOp::keep ||
            face.stencil_pass_op != StencilOp::keep;
    };
    return stencil_enable && (stencil_write_mask & 0xff) && (writes(front_face) || writes(back_face));
}

InputLayout::InputLayout(ref<Device> device, InputLayoutDesc desc)
    : DeviceObject(std::move(device)),
      m_desc(std::move(desc))
{
}

RenderPipeline::RenderPipeline(ref<Device> device, const RenderPipelineDesc& desc)
    : DeviceObject(std::move(device)),
      m_layout(desc.layout),
      m_state(desc.state),
      m_label(desc.label),
      m_print_slot(print_slot_of(*m_layout))
{
}

bool RenderPipeline::has_stage(ShaderStage stage) const
{
    const auto& all = m_layout->entry_points;
    return std::any_of(all.begin(), all.end(), [&](const EntryPoint& entry) { return entry.stage == stage; });
}

void check_render_pipeline(Device* device, RenderPipelineDesc& desc)
{
    require_rasterization(device, create_call);
    check_stages(desc);
    for (const EntryPoint& entry : desc.layout->entry_points)
        if (entry.stage == ShaderStage::mesh || entry.stage == ShaderStage::amplification)
            require_feature(device, "mesh_shader", create_call);
    RenderPipelineState& state = desc.state;
    if (state.topology == PrimitiveTopology::patch_list)
        fail(ErrorKind::not_implemented, create_call,
             ": PrimitiveTopology.patch_list needs hull and domain shaders, which are not implemented");
    if (state.targets.size() > max_color_attachments)
        fail_value(create_call, ": ", state.targets.size(), " targets; there may be at most ", max_color_attachments);
    resolve_input(device, desc);
    for (size_t i = 0; i < state.targets.size(); ++i)
        check_target(device, state.targets[i], i);
    check_depth_stencil(device, state.depth_stencil);
    check_samples(device, state.multisample);
    if (state.targets.empty() && state.depth_stencil.format == Format::undefined)
        fail_value(create_call, ": the pipeline writes nothing: give 'targets', or a depth_stencil with a format");
    if (state.rasterizer.enable_conservative_rasterization)
        require_feature(device, "conservative_rasterization",
                        "create_render_pipeline: enable_conservative_rasterization");
    if (state.rasterizer.forced_sample_count)
        fail(ErrorKind::not_implemented, create_call,
             ": rasterizer.forced_sample_count is not implemented; leave it 0");
}

ref<RenderPipeline> create_render_pipeline(Device* device, RenderPipelineDesc desc)
{
    check_open(device);
    check_render_pipeline(device, desc);
    if (desc.stages.size() != desc.layout->entry_points.size())
        fail_runtime(create_call, ": ", desc.stages.size(), " pieces of code for ", desc.layout->entry_points.size(),
                     " entry points");
    return device->create_render_pipeline(desc);
}

} // namespace spy
