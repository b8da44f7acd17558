// Render passes.
#include "python/device/render.h"

#include "python/device/pass_markers.h"
#include "python/integers.h"
#include "core/python_names.h"

#include <nanobind/stl/array.h>

namespace spy {

namespace {

using PassClass = nb::class_<RenderPassEncoder, Object>;

ref<ShaderObject> bind_render_pipeline_to(RenderPassEncoder& pass, nb::handle pipeline, nb::object root)
{
    const ref<ShaderObject> object = root_from(root);
    ref<RenderPipeline> native = pipeline_from<RenderPipeline>(pipeline, "RenderPipeline", "create_render_pipeline");
    return with_used(pass.bind_pipeline(std::move(native), object), pipeline);
}

DrawArguments arguments_of(nb::args args, nb::kwargs kwargs, const char* call)
{
    return Fields<DrawArguments>::from_arguments(args, kwargs, call);
}

void bind_draws(PassClass& cls)
{
    using P = RenderPassEncoder;
    cls.def(
           "draw", [](P& p, nb::args args, nb::kwargs kwargs) { p.draw(arguments_of(args, kwargs, "draw")); },
           nb::sig(Fields<DrawArguments>::signature("draw", "None")),
           "Draws vertices with the bound pipeline and state. IndexError if a vertex buffer is too short.")
        .def(
            "draw_indexed",
            [](P& p, nb::args args, nb::kwargs kwargs) { p.draw_indexed(arguments_of(args, kwargs, "draw_indexed")); },
            nb::sig(Fields<DrawArguments>::signature("draw_indexed", "None")),
            "`vertex_count` is the number of indices; `start_vertex_location` is added to every index.")
        .def(
            "draw_indirect",
            [](P& p, Int<"draw_indirect 'max_draw_count'"> count, nb::handle arguments, nb::handle count_buffer) {
                p.draw_indirect(count, buffer_offset_from(arguments, "draw_indirect 'arg_buffer'"),
                                buffer_offset_from(count_buffer, "draw_indirect 'count_buffer'"));
            },
            nb::arg("max_draw_count"), nb::arg("arg_buffer"), nb::arg("count_buffer") = nb::none(),
            "Records of 4 uint32: vertex_count, instance_count, start_vertex, start_instance. With a count buffer, the "
            "smaller of its uint32 and `max_draw_count` draws.")
        .def(
            "draw_indexed_indirect",
            [](P& p, Int<"draw_indexed_indirect 'max_draw_count'"> count, nb::handle arguments,
               nb::handle count_buffer) {
                p.draw_indexed_indirect(count, buffer_offset_from(arguments, "draw_indexed_indirect 'arg_buffer'"),
                                        buffer_offset_from(count_buffer, "draw_indexed_indirect 'count_buffer'"));
            },
            nb::arg("max_draw_count"), nb::arg("arg_buffer"), nb::arg("count_buffer") = nb::none(),
            "Records of 5 uint32: index_count, instance_count, start_index, base_vertex (int32), start_instance.")
        .def(
            "draw_mesh_tasks",
            [](P& p, nb::handle dimensions) {
                p.draw_mesh_tasks(uint32s_from<3>(dimensions, "draw_mesh_tasks 'dimensions'", true));
            },
            nb::arg("dimensions"), "Groups in x, y and z; needs Feature.mesh_shader.");
}

void bind_pass_rest(PassClass& cls)
{
    using P = RenderPassEncoder;
    bind_pass_markers(cls);
    cls.def(
           "end", [](P& p) { p.end(); }, "Ends the pass; the encoder records again.")
        .def("__enter__", [](nb::handle self) { return nb::borrow(self); })
        .def(
            "__exit__", [](P& p, nb::handle error, nb::args) { p.end(!error.is_none()); }, nb::arg("error").none(),
            nb::arg("details"), "Ends the pass.");
}

} // namespace

void bind_render_pass(nb::module_& m, EncoderClass& encoder)
{
    PassClass cls(m, "RenderPassEncoder", "Records draws; a context manager.");
    cls.def("__repr__", [](nb::handle self) { return in_python::native_repr.get()(self); })
        .def("bind_pipeline", &bind_render_pipeline_to, nb::arg("pipeline"), nb::arg("root") = nb::none(),
             nb::sig("def bind_pipeline(self, pipeline: slangpy.graphics.pipeline.RenderPipeline, root: ShaderObject | "
                     "None = None) -> ShaderObject"),
             "Binds a pipeline with a fresh root object, or with the one given. Returns the root object; what is "
             "written to it counts for the draws that follow.")
        .def(
            "set_render_state",
            [](RenderPassEncoder& p, nb::args args, nb::kwargs kwargs) {
                p.set_render_state(to_native(Fields<PyRenderState>::from_arguments(args, kwargs, "set_render_state")));
            },
            nb::sig(Fields<PyRenderState>::signature("set_render_state", "None")), "Replaces the whole state.");
    bind_draws(cls);
    bind_pass_rest(cls);
    encoder.def(
        "begin_render_pass",
        [](CommandEncoder& e, nb::args args, nb::kwargs kwargs) {
            const auto desc = Fields<PyRenderPassDesc>::from_arguments(args, kwargs, "begin_render_pass");
            e.check_recording("begin_render_pass");
            return e.begin_render_pass(to_native(desc));
        },
        nb::sig(Fields<PyRenderPassDesc>::signature("begin_render_pass", "RenderPassEncoder")),
        "Until it is ended, by end() or the end of its `with` block, the encoder takes no other command.");
    encoder.def(
        "clear_texture_depth_stencil",
        [](CommandEncoder& e, ref<Texture> texture, nb::handle range, bool clear_depth, float depth, bool clear_stencil,
           Int<"clear_texture_depth_stencil 'stencil_value'"> stencil) {
            const nb::dict empty;
            const bool whole = range.is_none() || range.equal(empty);
            e.clear_texture_depth_stencil(
                texture, subresources_from(whole ? nb::none() : range, "clear_texture_depth_stencil 'range'"),
                clear_depth, depth, clear_stencil, stencil);
        },
        nb::arg("texture"), nb::arg("range") = nb::none(), nb::arg("clear_depth") = true, nb::arg("depth_value") = 0.f,
        nb::arg("clear_stencil") = true, nb::arg("stencil_value") = 0,
        "Sets the depth and stencil of the range; what the format has not is left out.");
}

} // namespace spy
