// Descriptors of rasterisation as the device layer takes them.
#include "python/device/render.h"
#include "python/device/tensor_places.h"

namespace spy {

namespace {

ref<TextureView> view_of(nb::handle object, const char* what)
{
    if (object.is_none())
        return {};
    ref<TextureView> view;
    if (nb::try_cast(object, view) && view)
        return view;
    ref<Texture> texture;
    if (!nb::try_cast(object, texture) || !texture)
        fail_field(what, object, "a TextureView or a Texture");
    TextureViewDesc desc;
    desc.range = {0, texture->desc().layer_count(), 0, 1};
    check_open(texture->frontend());
    return texture->frontend()->create_texture_view(texture.get(), resolve_view_desc(texture->desc(), desc));
}

template <typename E>
std::vector<E> natives(const nb::list& items, const char* what)
{
    std::vector<E> out;
    for (nb::handle item : items)
        out.push_back(Fields<E>::from(item, what));
    return out;
}

ColorTargetDesc to_native(const PyColorTargetDesc& target)
{
    return {target.format,
            target.enable_blend,
            Fields<AspectBlendDesc>::from(target.color, "ColorTargetDesc 'color'"),
            Fields<AspectBlendDesc>::from(target.alpha, "ColorTargetDesc 'alpha'"),
            target.logic_op,
            target.write_mask};
}

} // namespace

BufferOffset buffer_offset_from(nb::handle value, const char* what)
{
    if (value.is_none())
        return {};
    ref<Buffer> buffer;
    if (nb::try_cast(value, buffer) && buffer)
        return {std::move(buffer), 0};
    const PyBufferOffsetPair pair = Fields<PyBufferOffsetPair>::from(value, what);
    if (!nb::try_cast(pair.buffer, buffer) || !buffer)
        fail(ErrorKind::type, what, ": the BufferOffsetPair has no buffer");
    return {std::move(buffer), pair.offset};
}

RenderPassDesc to_native(const PyRenderPassDesc& desc)
{
    RenderPassDesc out;
    for (const PyColorAttachment& from :
         natives<PyColorAttachment>(desc.color_attachments, "begin_render_pass 'color_attachments'")) {
        RenderPassColorAttachment& to = out.color_attachments.emplace_back();
        to.view = view_of(from.view, "begin_render_pass 'view'");
        to.resolve_target = view_of(from.resolve_target, "begin_render_pass 'resolve_target'");
        to.load_op = from.load_op;
        to.store_op = from.store_op;
        to.clear_value = from.clear_value;
    }
    if (!desc.depth_stencil_attachment.is_none()) {
        const auto from = Fields<PyDepthStencilAttachment>::from(desc.depth_stencil_attachment,
                                                                 "begin_render_pass 'depth_stencil_attachment'");
        out.depth_stencil_attachment = static_cast<const RenderPassDepthStencilAttachment&>(from);
        out.depth_stencil_attachment->view = view_of(from.view_object, "begin_render_pass 'view'");
    }
    return out;
}

RenderState to_native(const PyRenderState& state)
{
    RenderState out;
    out.stencil_ref = state.stencil_ref;
    out.viewports = natives<Viewport>(state.viewports, "set_render_state 'viewports'");
    out.scissor_rects = natives<ScissorRect>(state.scissor_rects, "set_render_state 'scissor_rects'");
    for (nb::handle item : state.vertex_buffers) {
        constexpr const char* what = "set_render_state 'vertex_buffers'";
        const bool is_tensor = nb::isinstance<TensorBase>(item);
        out.vertex_buffers.push_back(is_tensor ? vertex_buffer_from(nb::cast<const TensorBase&>(item), what)
                                               : buffer_offset_from(item, what));
    }
    constexpr const char* what = "set_render_state 'index_buffer'";
    out.index_buffer = nb::isinstance<TensorBase>(state.index_buffer)
        ? index_buffer_from(nb::cast<const TensorBase&>(state.index_buffer), state.index_format, what)
        : buffer_offset_from(state.index_buffer, what);
    out.index_format = state.index_format;
    return out;
}

InputLayoutDesc to_native(const PyInputLayoutDesc& desc)
{
    return {natives<InputElementDesc>(desc.input_elements, "create_input_layout 'input_elements'"),
            natives<VertexStreamDesc>(desc.vertex_streams, "create_input_layout 'vertex_streams'")};
}

RenderPipelineState to_native(const PyRenderPipelineDesc& desc)
{
    constexpr const char* call = "create_render_pipeline";
    RenderPipelineState out;
    if (!desc.input_layout.is_none())
        out.input = nb::cast<const InputLayout&>(desc.input_layout).desc();
    out.topology = desc.primitive_topology;
    for (const PyColorTargetDesc& target : natives<PyColorTargetDesc>(desc.targets, call))
        out.targets.push_back(to_native(target));
    if (!desc.depth_stencil.is_none()) {
        const auto from = Fields<PyDepthStencilDesc>::from(desc.depth_stencil, call);
        out.depth_stencil = from;
        out.depth_stencil.front_face = Fields<DepthStencilOpDesc>::from(from.front, call);
        out.depth_stencil.back_face = Fields<DepthStencilOpDesc>::from(from.back, call);
    }
    if (!desc.rasterizer.is_none())
        out.rasterizer = Fields<RasterizerDesc>::from(desc.rasterizer, call);
    if (!desc.multisample.is_none())
        out.multisample = Fields<MultisampleDesc>::from(desc.multisample, call);
    return out;
}

} // namespace spy
