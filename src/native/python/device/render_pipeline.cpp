// Input layouts and render pipelines. slangpy/graphics/pipeline.py compiles what these take.
#include "python/device/render.h"

namespace spy {

namespace {

RenderPipelineDesc pipeline_desc(const PyRenderPipelineDesc& desc, ref<ProgramLayout> layout, std::string label)
{
    RenderPipelineDesc out;
    out.layout = std::move(layout);
    out.state = to_native(desc);
    out.label = std::move(label);
    return out;
}

ref<InputLayout> create_input_layout(Device& device, nb::args args, nb::kwargs kwargs)
{
    check_open(&device);
    require_rasterization(&device, "create_input_layout");
    const auto desc = Fields<PyInputLayoutDesc>::from_arguments(args, kwargs, "create_input_layout");
    return new InputLayout(&device, to_native(desc));
}

ref<RenderPipeline> make_render_pipeline(Device& device, const PyRenderPipelineDesc& desc, ref<ProgramLayout> layout,
                                         const std::vector<nb::bytes>& code, std::string label)
{
    check_open(&device);
    RenderPipelineDesc native = pipeline_desc(desc, std::move(layout), std::move(label));
    std::vector<StageCode> stages;
    for (size_t i = 0; i < code.size(); ++i) {
        const auto& entries = native.layout->entry_points;
        const ShaderStage stage = i < entries.size() ? entries[i].stage : ShaderStage::none;
        stages.push_back({stage, {static_cast<const char*>(code[i].data()), code[i].size()}});
    }
    native.stages = stages;
    ++device.kernel_count;
    GilRelease release;
    return create_render_pipeline(&device, std::move(native));
}

PyInputLayoutDesc desc_of(const InputLayout& layout)
{
    PyInputLayoutDesc out;
    for (const InputElementDesc& element : layout.desc().input_elements)
        out.input_elements.append(nb::cast(element));
    for (const VertexStreamDesc& stream : layout.desc().vertex_streams)
        out.vertex_streams.append(nb::cast(stream));
    return out;
}

} // namespace

void bind_render_pipeline(nb::module_& m, nb::class_<Device, Object>& cls)
{
    nb::class_<InputLayout, DeviceObject>(m, "InputLayout", "What vertex buffers hold.")
        .def_prop_ro("desc", &desc_of, "A copy of what it was made with.")
        .def("__repr__", [](const InputLayout& layout) {
            return cat("InputLayout(\n  input_elements = ", layout.desc().input_elements.size(),
                       ",\n  vertex_streams = ", layout.desc().vertex_streams.size(), ",\n)");
        });
    nb::class_<RenderPipeline, DeviceObject>(m, "CompiledRenderPipeline", nb::dynamic_attr(),
                                             "What a RenderPipeline is compiled to.")
        .def_prop_ro("label", [](const RenderPipeline& p) { return p.label(); })
        .def_prop_ro("native_handle",
                     [](const RenderPipeline& p) {
                         open_device(&p);
                         return p.native_handle();
                     })
        .def("__repr__",
             [](const RenderPipeline& p) { return cat("CompiledRenderPipeline(\n  label = '", p.label(), "',\n)"); });
    m.def(
        "_render_pipeline_desc",
        [](nb::args args, nb::kwargs kwargs) {
            return Fields<PyRenderPipelineDesc>::from_arguments(args, kwargs, "create_render_pipeline");
        },
        nb::sig("def _render_pipeline_desc(*args: typing.Any, **kwargs: typing.Any) -> RenderPipelineDesc"),
        "The arguments of create_render_pipeline.");
    cls.def("create_input_layout", &create_input_layout,
            nb::sig(Fields<PyInputLayoutDesc>::signature("create_input_layout", "InputLayout")),
            "Says how the vertex buffers of a render pipeline are read.")
        .def(
            "_check_render_pipeline",
            [](Device& device, const PyRenderPipelineDesc& desc, ref<ProgramLayout> layout) {
                check_open(&device);
                RenderPipelineDesc native = pipeline_desc(desc, std::move(layout), "");
                check_render_pipeline(&device, native);
            },
            nb::arg("desc"), nb::arg("layout"),
            "What create_render_pipeline says of a description, before it compiles.")
        .def("_create_render_pipeline", &make_render_pipeline, nb::arg("desc"), nb::arg("layout"), nb::arg("code"),
             nb::arg("label"), "From the code of each entry point of the layout.")
        .def(
            "_require_feature",
            [](Device& device, const std::string& feature, const std::string& call) {
                require_feature(&device, feature.c_str(), call.c_str());
            },
            nb::arg("feature"), nb::arg("call"), "NotImplementedError naming who has it.");
}

} // namespace spy
