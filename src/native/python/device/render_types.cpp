// Enumerations and descriptors of rasterisation.
#include "python/device/render.h"
#include "python/device/tensor_places.h"

#include <nanobind/stl/array.h>

namespace spy {

namespace {

template <typename E>
void number(nb::enum_<E>& cls, std::initializer_list<const char*> names)
{
    int64_t value = 0;
    for (const char* name : names)
        cls.value(name, E(value++));
}

/// `value` as a descriptor object: itself, or made from a dict.
template <typename E>
nb::object desc_from(nb::handle value, const char* what)
{
    if (nb::isinstance<E>(value))
        return nb::borrow(value);
    return nb::cast(Fields<E>::from(value, what));
}

template <typename E>
nb::list descs_from(nb::handle value, const char* what)
{
    nb::list out;
    size_t i = 0;
    for (nb::handle item : list_from(value, what))
        out.append(desc_from<E>(item, cat(what, "[", i++, "]").c_str()));
    return out;
}

/// A list of descriptors of type E. The list is the descriptor's own.
template <typename T, auto Member, typename E>
Field<T> list_field(const char* name, const char* type, const char* doc)
{
    return {name, type, doc, [](const T& desc) -> nb::object { return desc.*Member; },
            [](T& desc, nb::handle value, const char* what) { desc.*Member = descs_from<E>(value, what); }};
}

/// A descriptor of type E inside another, or None where `is_optional`.
template <typename T, auto Member, typename E, bool is_optional>
Field<T> desc_field(const char* name, const char* type, const char* doc)
{
    return {name, type, doc, [](const T& desc) -> nb::object { return desc.*Member; },
            [](T& desc, nb::handle value, const char* what) {
                desc.*Member = is_optional && value.is_none() ? nb::none() : desc_from<E>(value, what);
            }};
}

bool is_view(nb::handle value) { return nb::isinstance<TextureView>(value) || nb::isinstance<Texture>(value); }

template <typename T, auto Member, bool is_optional>
Field<T> view_field(const char* name, const char* doc)
{
    return {name, is_optional ? "TextureView | Texture | None" : "TextureView | Texture", doc,
            [](const T& desc) -> nb::object { return desc.*Member; },
            [](T& desc, nb::handle value, const char* what) {
                if (!(is_optional && value.is_none()) && !is_view(value))
                    fail_field(what, value, "a TextureView or a Texture");
                desc.*Member = nb::borrow(value);
            }};
}

/// Objects that become BufferOffsetPairs when they are used: a buffer or a tensor may stand for itself.
nb::object place_from(nb::handle value, const char* what)
{
    if (value.is_none() || nb::isinstance<Buffer>(value) || nb::isinstance<TensorBase>(value))
        return nb::borrow(value);
    if (!nb::isinstance<PyBufferOffsetPair>(value) && !PyDict_Check(value.ptr()))
        fail_field(what, value,
                   "a Buffer, a Tensor, a BufferOffsetPair or a dict (Tensor.from_torch and from_numpy, with a usage, "
                   "make Tensors)");
    return desc_from<PyBufferOffsetPair>(value, what);
}

void bind_pipeline_enums(nb::module_& m)
{
    auto slot_class = nb::enum_<InputSlotClass>(m, "InputSlotClass", nb::is_arithmetic(),
                                                "Whether a vertex stream moves on with each vertex or each instance.");
    number(slot_class, {"per_vertex", "per_instance"});
    auto topology = nb::enum_<PrimitiveTopology>(m, "PrimitiveTopology", nb::is_arithmetic(),
                                                 "What vertices are put together to.");
    number(topology, {"point_list", "line_list", "line_strip", "triangle_list", "triangle_strip", "patch_list"});
    auto fill = nb::enum_<FillMode>(m, "FillMode", nb::is_arithmetic(),
                                    "Whether triangles are filled or drawn as lines.");
    number(fill, {"solid", "wireframe"});
    auto cull = nb::enum_<CullMode>(m, "CullMode", nb::is_arithmetic(), "Which faces are left out.");
    number(cull, {"none", "front", "back"});
    auto front = nb::enum_<FrontFaceMode>(m, "FrontFaceMode", nb::is_arithmetic(), "Seen with y up.");
    number(front, {"counter_clockwise", "clockwise"});
    auto blend_op = nb::enum_<BlendOp>(m, "BlendOp", nb::is_arithmetic(),
                                       "How a colour and the one in the target are combined.");
    number(blend_op, {"add", "subtract", "reverse_subtract", "min", "max"});
    auto factor = nb::enum_<BlendFactor>(m, "BlendFactor", nb::is_arithmetic(),
                                         "What colours are multiplied by before they are combined.");
    number(factor,
           {"zero", "one", "src_color", "inv_src_color", "src_alpha", "inv_src_alpha", "dest_alpha", "inv_dest_alpha",
            "dest_color", "inv_dest_color", "src_alpha_saturate", "blend_color", "inv_blend_color",
            "secondary_src_color", "inv_secondary_src_color", "secondary_src_alpha", "inv_secondary_src_alpha"});
    nb::enum_<RenderTargetWriteMask>(m, "RenderTargetWriteMask", nb::is_arithmetic(), nb::is_flag(),
                                     "Channels that are written.")
        .value("none", RenderTargetWriteMask::none)
        .value("red", RenderTargetWriteMask::red)
        .value("green", RenderTargetWriteMask::green)
        .value("blue", RenderTargetWriteMask::blue)
        .value("alpha", RenderTargetWriteMask::alpha)
        .value("all", RenderTargetWriteMask::all);
    auto stencil = nb::enum_<StencilOp>(m, "StencilOp", nb::is_arithmetic(), "What becomes of a stencil value.");
    number(stencil,
           {"keep", "zero", "replace", "increment_saturate", "decrement_saturate", "invert", "increment_wrap",
            "decrement_wrap"});
    auto logic = nb::enum_<LogicOp>(m, "LogicOp", nb::is_arithmetic(),
                                    "no_op: none; `keep` leaves what is there. Not on float formats.");
    number(logic,
           {"no_op", "clear", "set", "copy", "copy_inverted", "keep", "invert", "and_", "nand", "or_", "nor", "xor",
            "equivalent", "and_reverse", "and_inverted", "or_reverse", "or_inverted"});
}

void bind_input_descs(nb::module_& m)
{
    using E = InputElementDesc;
    bind_desc<E>(m, "InputElementDesc", "One input of a vertex shader, and where it lies in its stream.",
                 {
                     field<E, &E::semantic_name>("semantic_name", "str", "Any case, without its number."),
                     field<E, &E::semantic_index>("semantic_index", "int", "The number after the name."),
                     field<E, &E::format>("format", "Format", "As the buffer has it."),
                     field<E, &E::offset>("offset", "int", "Bytes from the start of the vertex."),
                     field<E, &E::buffer_slot_index>("buffer_slot_index", "int", "Which stream."),
                 });
    using S = VertexStreamDesc;
    bind_desc<S>(m, "VertexStreamDesc", "How one vertex buffer is walked.",
                 {
                     field<S, &S::stride>("stride", "int", "Bytes from one record to the next."),
                     field<S, &S::slot_class>("slot_class", "InputSlotClass", "A record per vertex or instance."),
                     field<S, &S::instance_data_step_rate>("instance_data_step_rate", "int",
                                                           "Instances that share a record; 0 is 1."),
                 });
    using L = PyInputLayoutDesc;
    bind_desc<L>(
        m, "InputLayoutDesc", "Fields of create_input_layout.",
        {
            list_field<L, &L::input_elements, E>("input_elements", "Sequence[InputElementDesc | dict]",
                                                 "What vertex shaders may read; the order does not matter."),
            list_field<L, &L::vertex_streams, S>("vertex_streams", "Sequence[VertexStreamDesc | dict]", "By slot."),
        });
}

void bind_target_descs(nb::module_& m)
{
    using A = AspectBlendDesc;
    bind_desc<A>(m, "AspectBlendDesc", "source * src_factor op destination * dst_factor.",
                 {
                     field<A, &A::src_factor>("src_factor", "BlendFactor", "Times what the shader gives."),
                     field<A, &A::dst_factor>("dst_factor", "BlendFactor", "Times what is there."),
                     field<A, &A::op>("op", "BlendOp", "How the two are combined."),
                 });
    using C = PyColorTargetDesc;
    bind_desc<C>(m, "ColorTargetDesc", "One target of a render pipeline.",
                 {
                     field<C, &C::format>("format", "Format", "That of the attachment."),
                     field<C, &C::enable_blend>("enable_blend", "bool", "Combine with what is there."),
                     desc_field<C, &C::color, A, false>("color", "AspectBlendDesc | dict", "Of red, green and blue."),
                     desc_field<C, &C::alpha, A, false>("alpha", "AspectBlendDesc | dict", "Of alpha."),
                     field<C, &C::logic_op>("logic_op", "LogicOp", "Of integer and normalized formats."),
                     field<C, &C::write_mask>("write_mask", "RenderTargetWriteMask", "Channels that are written."),
                 });
    using O = DepthStencilOpDesc;
    bind_desc<O>(
        m, "DepthStencilOpDesc", "What the stencil test of one face does.",
        {
            field<O, &O::stencil_fail_op>("stencil_fail_op", "StencilOp", "When the stencil test fails."),
            field<O, &O::stencil_depth_fail_op>("stencil_depth_fail_op", "StencilOp", "When the depth test fails."),
            field<O, &O::stencil_pass_op>("stencil_pass_op", "StencilOp", "When both pass."),
            field<O, &O::stencil_func>("stencil_func", "ComparisonFunc", "Of stencil_ref with what is there."),
        });
    using D = PyDepthStencilDesc;
    bind_desc<D>(
        m, "DepthStencilDesc", "Depth and stencil tests of a render pipeline.",
        {
            field<D, &D::format>("format", "Format", "That of the attachment; undefined: there is none."),
            field<D, &D::depth_test_enable>("depth_test_enable", "bool", "Test, and write if that is enabled."),
            field<D, &D::depth_write_enable>("depth_write_enable", "bool", "Only with the test."),
            field<D, &D::depth_func>("depth_func", "ComparisonFunc", "Of the new depth with what is there."),
            field<D, &D::stencil_enable>("stencil_enable", "bool", "Test and write."),
            field<D, &D::stencil_read_mask>("stencil_read_mask", "int", "The low 8 bits count."),
            field<D, &D::stencil_write_mask>("stencil_write_mask", "int", "The low 8 bits count."),
            desc_field<D, &D::front, O, false>("front_face", "DepthStencilOpDesc | dict", "Of front faces."),
            desc_field<D, &D::back, O, false>("back_face", "DepthStencilOpDesc | dict", "Of back faces."),
        });
}

void bind_raster_descs(nb::module_& m)
{
    using R = RasterizerDesc;
    bind_desc<R>(
        m, "RasterizerDesc", "How primitives become fragments.",
        {
            field<R, &R::fill_mode>("fill_mode", "FillMode", "Faces or their edges."),
            field<R, &R::cull_mode>("cull_mode", "CullMode", "Faces that are left out."),
            field<R, &R::front_face>("front_face", "FrontFaceMode", "Winding of front faces, y up."),
            field<R, &R::depth_bias>("depth_bias", "int", "Added to depths, in least steps of the format."),
            field<R, &R::depth_bias_clamp>("depth_bias_clamp", "float", "Most of the bias; 0: no limit."),
            field<R, &R::slope_scaled_depth_bias>("slope_scaled_depth_bias", "float", "Times the slope of the depth."),
            field<R, &R::depth_clip_enable>("depth_clip_enable", "bool", "Off: depths are clamped instead."),
            field<R, &R::scissor_enable>("scissor_enable", "bool", "Without effect: rectangles that are given clip."),
            field<R, &R::multisample_enable>("multisample_enable", "bool", "Without effect; see MultisampleDesc."),
            field<R, &R::antialiased_line_enable>("antialiased_line_enable", "bool", "Where the device has them."),
            field<R, &R::enable_conservative_rasterization>("enable_conservative_rasterization", "bool",
                                                            "Every pixel that is touched."),
            field<R, &R::forced_sample_count>("forced_sample_count", "int", "Not implemented beyond 0."),
        });
    using M = MultisampleDesc;
    bind_desc<M>(m, "MultisampleDesc", "Samples of a render pipeline.",
                 {
                     field<M, &M::sample_count>("sample_count", "int", "That of the attachments."),
                     field<M, &M::sample_mask>("sample_mask", "int", "Samples that are written."),
                     field<M, &M::alpha_to_coverage_enable>("alpha_to_coverage_enable", "bool",
                                                            "Alpha decides how many samples are covered."),
                     field<M, &M::alpha_to_one_enable>("alpha_to_one_enable", "bool", "Alpha is 1 from then on."),
                 });
}

Field<PyRenderPipelineDesc> layout_field()
{
    using P = PyRenderPipelineDesc;
    return {"input_layout", "InputLayout | None", "None: the vertex shader reads no buffers.",
            [](const P& desc) -> nb::object { return desc.input_layout; },
            [](P& desc, nb::handle value, const char* what) {
                if (!value.is_none() && !nb::isinstance<InputLayout>(value))
                    fail_field(what, value, "an InputLayout (create_input_layout makes one) or None");
                desc.input_layout = nb::borrow(value);
            }};
}

void bind_pipeline_desc(nb::module_& m)
{
    using P = PyRenderPipelineDesc;
    bind_desc<P>(
        m, "RenderPipelineDesc", "Fields of create_render_pipeline.",
        {
            field<P, &P::program>("program", "typing.Any", "Linked of a vertex (or mesh) and a fragment entry point."),
            layout_field(),
            field<P, &P::primitive_topology>("primitive_topology", "PrimitiveTopology", "What vertices make."),
            list_field<P, &P::targets, PyColorTargetDesc>("targets", "Sequence[ColorTargetDesc | dict]",
                                                          "By number of SV_Target."),
            desc_field<P, &P::depth_stencil, PyDepthStencilDesc, true>(
                "depth_stencil", "DepthStencilDesc | dict | None", "None: no depth attachment."),
            desc_field<P, &P::rasterizer, RasterizerDesc, true>("rasterizer", "RasterizerDesc | dict | None", ""),
            desc_field<P, &P::multisample, MultisampleDesc, true>("multisample", "MultisampleDesc | dict | None", ""),
            field<P, &P::defer_target_compilation>("defer_target_compilation", "bool", "Compile at the first use."),
            {"label", "str | None", "Name in messages and debuggers.",
             [](const P& desc) -> nb::object { return desc.label; },
             [](P& desc, nb::handle value, const char* what) {
                 if (!value.is_none() && !PyUnicode_Check(value.ptr()))
                     fail_field(what, value, "a str");
                 desc.label = nb::borrow(value);
             }},
        });
}

void bind_pass_descs(nb::module_& m)
{
    using C = PyColorAttachment;
    bind_desc<C>(
        m, "RenderPassColorAttachment", "What a render pass draws colours into.",
        {
            view_field<C, &C::view, false>("view", "One mip; of a texture the first, with all layers."),
            view_field<C, &C::resolve_target, true>("resolve_target",
                                                    "One sample: takes the average of the samples at the end."),
            field<C, &C::load_op>("load_op", "LoadOp", "What is there at the start."),
            field<C, &C::store_op>("store_op", "StoreOp", "What is left at the end."),
            {"clear_value", "Sequence[float]", "RGBA; linear for sRGB formats, whole numbers for integer formats.",
             [](const C& desc) -> nb::object {
                 const auto& c = desc.clear_value;
                 return nb::make_tuple(c[0], c[1], c[2], c[3]);
             },
             [](C& desc, nb::handle value, const char* what) { desc.clear_value = floats_from(value, what, 4); }},
        });
    using D = PyDepthStencilAttachment;
    bind_desc<D>(m, "RenderPassDepthStencilAttachment", "The depth and stencil of a render pass.",
                 {
                     view_field<D, &D::view_object, false>("view", "One mip of a texture of a depth format."),
                     field<D, &D::depth_load_op>("depth_load_op", "LoadOp", "What is there at the start."),
                     field<D, &D::depth_store_op>("depth_store_op", "StoreOp", "What is left at the end."),
                     field<D, &D::depth_clear_value>("depth_clear_value", "float", "From 0 to 1."),
                     field<D, &D::depth_read_only>("depth_read_only", "bool", "Shaders may read it as a texture."),
                     field<D, &D::stencil_load_op>("stencil_load_op", "LoadOp", "What is there at the start."),
                     field<D, &D::stencil_store_op>("stencil_store_op", "StoreOp", "What is left at the end."),
                     field<D, &D::stencil_clear_value>("stencil_clear_value", "int", "From 0 to 255."),
                     field<D, &D::stencil_read_only>("stencil_read_only", "bool", "No stencil is written."),
                 });
    using P = PyRenderPassDesc;
    bind_desc<P>(m, "RenderPassDesc", "Fields of begin_render_pass.",
                 {
                     list_field<P, &P::color_attachments, C>(
                         "color_attachments", "Sequence[RenderPassColorAttachment | dict]", "At most 8."),
                     desc_field<P, &P::depth_stencil_attachment, D, true>(
                         "depth_stencil_attachment", "RenderPassDepthStencilAttachment | dict | None", ""),
                 });
}

void bind_places(nb::module_& m)
{
    using B = PyBufferOffsetPair;
    bind_desc<B>(m, "BufferOffsetPair", "A place in a buffer.",
                 {
                     {"buffer", "Buffer", "The buffer.", [](const B& pair) -> nb::object { return pair.buffer; },
                      [](B& pair, nb::handle value, const char* what) {
                          if (!nb::isinstance<Buffer>(value))
                              fail_field(what, value, "a Buffer");
                          pair.buffer = nb::borrow(value);
                      }},
                     field<B, &B::offset>("offset", "int", "Bytes."),
                 });
    using V = Viewport;
    bind_desc<V>(m, "Viewport", "Where clip space goes, in pixels from the upper left corner.",
                 {
                     field<V, &V::x>("x", "float", "Left."),
                     field<V, &V::y>("y", "float", "Top."),
                     field<V, &V::width>("width", "float", "Pixels."),
                     field<V, &V::height>("height", "float", "Pixels."),
                     field<V, &V::min_depth>("min_depth", "float", "Depth of z = 0."),
                     field<V, &V::max_depth>("max_depth", "float", "Depth of z = 1."),
                 })
        .def_static(
            "from_size", [](float width, float height) { return Viewport{0.f, 0.f, width, height}; }, nb::arg("width"),
            nb::arg("height"), "From the origin to width and height, in pixels.");
    using S = ScissorRect;
    bind_desc<S>(m, "ScissorRect", "Pixels that may be drawn; max is excluded.",
                 {
                     field<S, &S::min_x>("min_x", "int", "Left."),
                     field<S, &S::min_y>("min_y", "int", "Top."),
                     field<S, &S::max_x>("max_x", "int", "One past the last column."),
                     field<S, &S::max_y>("max_y", "int", "Below the last row."),
                 })
        .def_static(
            "from_size", [](uint32_t width, uint32_t height) { return ScissorRect{0, 0, width, height}; },
            nb::arg("width"), nb::arg("height"), "From the origin to width and height, in pixels.");
}

void bind_state_descs(nb::module_& m)
{
    using D = DrawArguments;
    bind_desc<D>(m, "DrawArguments", "Fields of draw and draw_indexed.",
                 {
                     field<D, &D::vertex_count>("vertex_count", "int", "Vertices, or indices of draw_indexed."),
                     field<D, &D::instance_count>("instance_count", "int", "Instances."),
                     field<D, &D::start_vertex_location>("start_vertex_location", "int",
                                                         "First vertex, or what is added to every index."),
                     field<D, &D::start_instance_location>("start_instance_location", "int", "First instance."),
                     field<D, &D::start_index_location>("start_index_location", "int", "First index."),
                 });
    using R = PyRenderState;
    bind_desc<R>(
        m, "RenderState", "What draws take beside their pipeline and arguments.",
        {
            field<R, &R::stencil_ref>("stencil_ref", "int", "From 0 to 255."),
            list_field<R, &R::viewports, Viewport>("viewports", "Sequence[Viewport | dict]",
                                                   "Empty: the whole target."),
            list_field<R, &R::scissor_rects, ScissorRect>("scissor_rects", "Sequence[ScissorRect | dict]",
                                                          "Empty: the whole target."),
            {"vertex_buffers", "Sequence[BufferOffsetPair | Buffer | TensorBase | dict | None]",
             "By stream. Of a tensor, the first dimension counts the vertices.",
             [](const R& state) -> nb::object { return state.vertex_buffers; },
             [](R& state, nb::handle value, const char* what) {
                 nb::list out;
                 for (nb::handle item : list_from(value, what))
                     out.append(place_from(item, what));
                 state.vertex_buffers = std::move(out);
             }},
            {"index_buffer", "BufferOffsetPair | Buffer | TensorBase | dict | None", "Of indexed draws.",
             [](const R& state) -> nb::object { return state.index_buffer; },
             [](R& state, nb::handle value, const char* what) { state.index_buffer = place_from(value, what); }},
            field<R, &R::index_format>("index_format", "IndexFormat", "Of index_buffer."),
        });
}

} // namespace

void bind_render_enums(nb::module_& m)
{
    bind_pipeline_enums(m);
    auto index = nb::enum_<IndexFormat>(m, "IndexFormat", nb::is_arithmetic(), "Integers of index buffers.");
    number(index, {"uint16", "uint32"});
    auto load = nb::enum_<LoadOp>(m, "LoadOp", nb::is_arithmetic(), "What an attachment holds when a pass begins.");
    number(load, {"load", "clear", "dont_care"});
    auto store = nb::enum_<StoreOp>(m, "StoreOp", nb::is_arithmetic(), "What is kept when a pass ends.");
    number(store, {"store", "dont_care"});
}

void bind_render_descs(nb::module_& m)
{
    bind_input_descs(m);
    bind_target_descs(m);
    bind_raster_descs(m);
    bind_places(m);
    bind_state_descs(m);
    bind_pipeline_desc(m);
    bind_pass_descs(m);
}

} // namespace spy
