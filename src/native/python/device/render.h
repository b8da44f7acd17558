#pragma once
// Descriptors of rasterisation as Python knows them. Those inside others are objects, so that
// `desc.targets[0].enable_blend = True` changes the descriptor.
#include "python/device/bindings.h"

#include "device/render_pass.h"

namespace spy {

struct PyBufferOffsetPair {
    nb::object buffer = nb::none();
    uint64_t offset = 0;
};
/// A BufferOffsetPair, dict or Buffer; None is no buffer.
BufferOffset buffer_offset_from(nb::handle value, const char* what);

struct PyInputLayoutDesc {
    nb::list input_elements, vertex_streams;
};
struct PyColorTargetDesc {
    Format format = Format::undefined;
    bool enable_blend = false;
    nb::object color = nb::cast(AspectBlendDesc()), alpha = nb::cast(AspectBlendDesc());
    LogicOp logic_op = LogicOp::no_op;
    RenderTargetWriteMask write_mask = RenderTargetWriteMask::all;
};
struct PyDepthStencilDesc : DepthStencilDesc {
    nb::object front = nb::cast(DepthStencilOpDesc()), back = nb::cast(DepthStencilOpDesc());
};
struct PyRenderPipelineDesc {
    nb::object program = nb::none(), input_layout = nb::none();
    PrimitiveTopology primitive_topology = PrimitiveTopology::triangle_list;
    nb::list targets;
    nb::object depth_stencil = nb::none(), rasterizer = nb::none(), multisample = nb::none();
    bool defer_target_compilation = false;
    nb::object label = nb::none();
};
struct PyColorAttachment {
    nb::object view = nb::none(), resolve_target = nb::none();
    LoadOp load_op = LoadOp::clear;
    StoreOp store_op = StoreOp::store;
    std::array<float, 4> clear_value{};
};
struct PyDepthStencilAttachment : RenderPassDepthStencilAttachment {
    nb::object view_object = nb::none();
};
struct PyRenderPassDesc {
    nb::list color_attachments;
    nb::object depth_stencil_attachment = nb::none();
};
struct PyRenderState {
    uint32_t stencil_ref = 0;
    nb::list viewports, scissor_rects, vertex_buffers;
    nb::object index_buffer = nb::none();
    IndexFormat index_format = IndexFormat::uint32;
};

void bind_render_enums(nb::module_& m); // render_types.cpp
void bind_render_descs(nb::module_& m); // render_types.cpp

RenderPassDesc to_native(const PyRenderPassDesc& desc);
RenderState to_native(const PyRenderState& state);
InputLayoutDesc to_native(const PyInputLayoutDesc& desc);
RenderPipelineState to_native(const PyRenderPipelineDesc& desc);

void bind_render_pass(nb::module_& m, EncoderClass& encoder);               // render_pass.cpp
void bind_render_pipeline(nb::module_& m, nb::class_<Device, Object>& cls); // render_pipeline.cpp

} // namespace spy
