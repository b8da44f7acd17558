// Ray-tracing pipelines, shader tables and passes. slangpy/graphics/ray_tracing.py compiles what these take.
#include "python/device/rays.h"

#include "python/device/pass_markers.h"
#include "python/integers.h"
#include "core/python_names.h"

namespace spy {

namespace {

using RayPassClass = nb::class_<RayTracingPassEncoder, Object>;

/// ValueError for a table of another program, even one whose names fit: indices mean what its shaders say.
void check_program(const RayTracingPipeline& native, const ShaderTable& table, nb::handle pipeline)
{
    const nb::object program = nb::getattr(pipeline, in_python::program.name, nb::none());
    if (program.is_none() || !table.program() || nb::cast<ref<Object>>(program) == table.program())
        return;
    fail_value("bind_pipeline 'shader_table': it is of the program with the entry points ", table.entry_points(),
               ", but pipeline '", native.label(), "' of another program, with ",
               names_of_entry_points(native.layout()),
               "; make the table with create_shader_table(pipeline.program, ...)");
}

ref<ShaderObject> bind_rays(RayTracingPassEncoder& pass, nb::handle pipeline, nb::handle table, nb::object root)
{
    const ref<ShaderObject> object = root_from(root);
    ref<ShaderTable> shaders;
    if (!nb::try_cast(table, shaders) || !shaders)
        fail(ErrorKind::type,
             "bind_pipeline 'shader_table': expected a ShaderTable (create_shader_table makes one), got ",
             short_text(table), " (", class_name(table), ")");
    ref<RayTracingPipeline> native = pipeline_from<RayTracingPipeline>(pipeline, "RayTracingPipeline",
                                                                       "create_ray_tracing_pipeline");
    check_program(*native, *shaders, pipeline);
    return with_used(pass.bind_pipeline(std::move(native), std::move(shaders), object), pipeline);
}

ref<RayTracingPipeline> make_pipeline(Device& device, const PyRayPipelineDesc& desc, ref<ProgramLayout> layout,
                                      const std::vector<nb::bytes>& code, std::string label)
{
    check_open(&device);
    std::vector<StageCode> stages;
    for (size_t i = 0; i < code.size(); ++i) {
        const ShaderStage stage = i < layout->entry_points.size() ? layout->entry_points[i].stage : ShaderStage::none;
        stages.push_back({stage, {static_cast<const char*>(code[i].data()), code[i].size()}});
    }
    RayTracingPipelineDesc native{stages, std::move(layout), to_native(desc), std::move(label)};
    ++device.kernel_count;
    GilRelease release;
    return create_ray_tracing_pipeline(&device, native);
}

ref<ShaderTable> make_table(Device& device, const PyShaderTableDesc& desc, const ProgramLayout& layout)
{
    constexpr const char* call = "create_shader_table";
    check_open(&device);
    require_ray_tracing(&device, call);
    check_shader_table(layout, desc, call);
    ref<Object> program;
    if (!desc.program.is_none())
        program = nb::cast<ref<Object>>(desc.program);
    ref<ShaderTable> table = new ShaderTable(&device, desc, layout, std::move(program));
    table->set_frontend(&device);
    return table;
}

void bind_ray_pass_rest(RayPassClass& cls)
{
    using P = RayTracingPassEncoder;
    bind_pass_markers(cls);
    cls.def("end", &P::end, "Ends the pass; the encoder records again.")
        .def("__enter__", [](nb::handle self) { return nb::borrow(self); })
        .def("__exit__", [](P& p, nb::args) { p.end(); }, "Ends the pass.");
}

} // namespace

RayTracingPipelineState to_native(const PyRayPipelineDesc& desc)
{
    RayTracingPipelineState out;
    for (nb::handle item : desc.hit_groups)
        out.hit_groups.push_back(Fields<HitGroupDesc>::from(item, "create_ray_tracing_pipeline 'hit_groups'"));
    out.max_recursion = desc.max_recursion;
    out.max_ray_payload_size = desc.max_ray_payload_size;
    out.max_attribute_size = desc.max_attribute_size;
    out.flags = desc.flags;
    return out;
}

void bind_ray_tracing_pass(nb::module_& m, EncoderClass& encoder)
{
    RayPassClass cls(m, "RayTracingPassEncoder", "Records rays; a context manager.");
    cls.def("__repr__", [](nb::handle self) { return in_python::native_repr.get()(self); })
        .def("bind_pipeline", &bind_rays, nb::arg("pipeline"), nb::arg("shader_table"), nb::arg("root") = nb::none(),
             nb::sig("def bind_pipeline(self, pipeline: slangpy.graphics.ray_tracing.RayTracingPipeline, shader_table: "
                     "ShaderTable, root: ShaderObject | None = None) -> ShaderObject"),
             "Binds a pipeline with a fresh root object, or with the one given. Returns the root object; what is "
             "written to it counts for the rays that follow.")
        .def(
            "dispatch_rays",
            [](RayTracingPassEncoder& p, Int<"dispatch_rays 'ray_gen_shader_index'", uint64_t> index,
               nb::handle dimensions) {
                p.dispatch_rays(index, uint32s_from<3>(dimensions, "dispatch_rays 'dimensions'", true));
            },
            nb::arg("ray_gen_shader_index"), nb::arg("dimensions"),
            "Rays in x, y and z, exactly as many; a zero is no work.");
    bind_ray_pass_rest(cls);
    encoder.def("begin_ray_tracing_pass", &CommandEncoder::begin_ray_tracing_pass,
                "Until it is ended, by end() or the end of its `with` block, the encoder takes no other command.");
}

void bind_ray_tracing(nb::module_& m, nb::class_<Device, Object>& cls)
{
    nb::class_<RayTracingPipeline, DeviceObject>(m, "CompiledRayTracingPipeline", nb::dynamic_attr(),
                                                 "What a RayTracingPipeline is compiled to.")
        .def_prop_ro("label", [](const RayTracingPipeline& p) { return p.label(); })
        .def_prop_ro("native_handle",
                     [](const RayTracingPipeline& p) {
                         open_device(&p);
                         return p.native_handle();
                     })
        .def("__repr__", [](const RayTracingPipeline& p) {
            return cat("CompiledRayTracingPipeline(\n  label = '", p.label(), "',\n)");
        });
    nb::class_<ShaderTable, DeviceObject>(m, "ShaderTable", nb::dynamic_attr(),
                                          "Entry points and hit groups by the index that shaders use.")
        .def("__repr__", [](const ShaderTable& t) {
            const ShaderTableDesc& d = t.desc();
            return cat("ShaderTable(\n  ray_gen = ", d.ray_gen_entry_points.size(),
                       ",\n  miss = ", d.miss_entry_points.size(), ",\n  hit_groups = ", d.hit_group_names.size(),
                       ",\n  callable = ", d.callable_entry_points.size(), ",\n)");
        });
    m.def(
        "_ray_tracing_pipeline_desc",
        [](nb::args args, nb::kwargs kwargs) {
            return Fields<PyRayPipelineDesc>::from_arguments(args, kwargs, "create_ray_tracing_pipeline");
        },
        nb::sig("def _ray_tracing_pipeline_desc(*args: typing.Any, **kwargs: typing.Any) -> RayTracingPipelineDesc"),
        "The arguments of create_ray_tracing_pipeline.");
    m.def(
        "_shader_table_desc",
        [](nb::args args, nb::kwargs kwargs) {
            return Fields<PyShaderTableDesc>::from_arguments(args, kwargs, "create_shader_table");
        },
        nb::sig("def _shader_table_desc(*args: typing.Any, **kwargs: typing.Any) -> ShaderTableDesc"),
        "The arguments of create_shader_table.");
    cls.def(
           "_check_ray_tracing_pipeline",
           [](Device& device, const PyRayPipelineDesc& desc, ref<ProgramLayout> layout) {
               check_open(&device);
               check_ray_tracing_pipeline(&device, {{}, std::move(layout), to_native(desc), ""});
           },
           nb::arg("desc"), nb::arg("layout"),
           "What create_ray_tracing_pipeline says of a description, before it compiles.")
        .def("_create_ray_tracing_pipeline", &make_pipeline, nb::arg("desc"), nb::arg("layout"), nb::arg("code"),
             nb::arg("label"), "From the code of each entry point of the layout.")
        .def("_create_shader_table", &make_table, nb::arg("desc"), nb::arg("layout"), "Of entry points of the layout.")
        .def(
            "_require_ray_tracing",
            [](Device& device, const std::string& call) { require_ray_tracing(&device, call.c_str()); },
            nb::arg("call"), "NotImplementedError naming who has it.");
}

} // namespace spy
