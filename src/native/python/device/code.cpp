// Kernels: compiling, creating and launching them.
#include "python/device/bindings.h"

#include "device/compile_ahead.h"
#include "device/ray_tracing.h"
#include "core/python_names.h"

#include <nanobind/stl/array.h>
#include <nanobind/stl/pair.h>

#include <chrono>

namespace spy {

namespace {

/// Runs one step of building a kernel; with compilation reports, tells the device how long it took.
template <typename F>
auto timed(Device& device, const char* step, const std::string& label, size_t size, const F& run)
{
    using Clock = std::chrono::steady_clock;
    const auto start = Clock::now();
    auto result = [&] {
        GilRelease release;
        return run();
    }();
    if (device.desc().enable_compilation_reports) {
        const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
        nb::cast(ref<Device>(&device)).attr(in_python::report_step.name)(step, label, seconds, size);
    }
    return result;
}

CompileDesc::FloatMode float_mode_from(const std::string& name)
{
    if (name == "default")
        return CompileDesc::FloatMode::default_;
    if (name == "fast")
        return CompileDesc::FloatMode::fast;
    if (name == "precise")
        return CompileDesc::FloatMode::precise;
    if (name == "uncontracted")
        return CompileDesc::FloatMode::uncontracted;
    fail_value("compile: float_mode is 'default', 'fast', 'uncontracted' or 'precise', not '", name, "'");
}

/// Starts programs, which takes a moment.
void expect_compile(Device& device, const nb::bytes& beginning, const std::string& float_mode, int optimization)
{
    check_open(&device);
    auto* compiler = dynamic_cast<CompileAhead*>(device.backend());
    if (!compiler)
        return;
    CompileDesc desc;
    const std::string text(static_cast<const char*>(beginning.data()), beginning.size());
    desc.source = text;
    desc.float_mode = float_mode_from(float_mode);
    desc.optimization = optimization;
    GilRelease release;
    compiler->expect_compile(desc);
}

std::string compile(Device& device, nb::bytes source, const std::string& entry_point_name, const std::string& label,
                    const std::string& float_mode, int optimization, bool debug_info,
                    std::vector<std::string> downstream_args, nb::handle group_size, const std::string& cuda_arch,
                    nb::bytes whole_source, const std::string& stage)
{
    check_open(&device);
    CompileDesc desc;
    const std::string text(static_cast<const char*>(source.data()), source.size());
    desc.source = text;
    const std::string whole(static_cast<const char*>(whole_source.data()), whole_source.size());
    desc.whole_source = whole;
    desc.entry_point_name = entry_point_name;
    desc.label = label.empty() ? entry_point_name : label;
    desc.float_mode = float_mode_from(float_mode);
    desc.optimization = optimization;
    desc.debug_info = debug_info;
    desc.downstream_args = std::move(downstream_args);
    const auto size = uint32s_from<3>(group_size, "compile 'group_size'");
    std::copy(size.begin(), size.end(), desc.group_size);
    desc.cuda_arch = cuda_arch;
    desc.stage = stage_from_name(stage);
    ++device.compiled_count;
    return timed(device, "downstream", desc.label, text.size(), [&] { return device.compile(desc); });
}

/// ShaderObject binds nothing else; here anything may come.
void check_slot_types(const Kernel& kernel, std::span<const ref<Object>> slots)
{
    const std::vector<SlotLayout>& layouts = kernel.layout().slots;
    if (slots.size() > layouts.size())
        fail_value("launch 'slots': ", kernel.label(), " has ", layouts.size(), " slots, got ", slots.size());
    for (size_t i = 0; i < slots.size(); ++i) {
        const Object* object = slots[i].get();
        bool fits = !object;
        switch (layouts[i].kind) {
        case SlotKind::texture:
        case SlotKind::combined_texture_sampler:
            fits = fits || dynamic_cast<const Texture*>(object) || dynamic_cast<const TextureView*>(object);
            break;
        case SlotKind::sampler: fits = fits || dynamic_cast<const Sampler*>(object); break;
        default: fits = fits || dynamic_cast<const Buffer*>(object);
        }
        if (!fits)
            fail(ErrorKind::type, "launch 'slots': '", layouts[i].path, "' takes no such object");
    }
}

void launch(Device& device, Kernel* kernel, nb::handle groups, nb::sequence scopes, std::vector<ref<Object>> slots,
            std::vector<ref<Object>> keep_alive, NativeHandle stream, nb::handle group_size, uint32_t shared_memory)
{
    check_open(&device);
    std::vector<std::string> blocks;
    for (nb::handle scope : scopes) {
        HostBytes bytes(scope, "launch 'scopes'");
        blocks.emplace_back(reinterpret_cast<const char*>(bytes.bytes().data()), bytes.bytes().size());
    }
    std::vector<std::span<const uint8_t>> spans;
    for (const std::string& block : blocks)
        spans.emplace_back(reinterpret_cast<const uint8_t*>(block.data()), block.size());
    LaunchDesc desc;
    desc.kernel = kernel;
    desc.group_count = uint32s_from<3>(groups, "launch 'group_count'", true);
    desc.arguments = {spans, slots, keep_alive};
    desc.stream = stream;
    if (!group_size.is_none())
        desc.group_size = uint32s_from<3>(group_size, "launch 'group_size'", true);
    desc.shared_memory = shared_memory;
    if (kernel) {
        check_slot_types(*kernel, slots);
        check_group_count(&device, *kernel, {desc.group_count[0], desc.group_count[1], desc.group_count[2]});
    }
    if (!desc.group_count[0] || !desc.group_count[1] || !desc.group_count[2])
        return;
    GilRelease release;
    device.launch(desc);
}

void bind_kernel(nb::module_& m)
{
    nb::class_<Kernel, DeviceObject>(m, "Kernel", nb::dynamic_attr(), "One entry point in executable form.")
        .def_prop_ro("label", [](const Kernel& k) { return k.label(); })
        .def_prop_ro("layout",
                     [](const Kernel& k) { return ref<ProgramLayout>(const_cast<ProgramLayout*>(&k.layout())); })
        .def_prop_ro("thread_group_size", [](const Kernel& k) { return uints_to_python(k.layout().group_size, 3); })
        .def_prop_ro("native_handle",
                     [](const Kernel& k) {
                         open_device(&k);
                         return k.native_handle();
                     })
        .def("__repr__", [](const Kernel& k) {
            const uint32_t* s = k.layout().group_size;
            return cat("Kernel(\n  label = '", k.label(), "',\n  thread_group_size = ", s[0], " x ", s[1], " x ", s[2],
                       ",\n)");
        });
    nb::class_<CompileTarget>(m, "CompileTarget", "What the Slang compiler must know to generate code for a device.")
        .def_ro("format", &CompileTarget::format, "'cpp', 'cuda', 'spirv' or 'hlsl'.")
        .def_ro("profile", &CompileTarget::profile)
        .def_ro("capabilities", &CompileTarget::capabilities)
        .def_ro("defines", &CompileTarget::defines, "List of (name, value).");
}

} // namespace

void bind_code(nb::module_& m, nb::class_<Device, Object>& cls)
{
    bind_kernel(m);
    cls.def_prop_ro("compile_target", [](const Device& d) { return d.compile_target(); })
        .def_prop_ro("compiler_fingerprint", open_call([](Device& d) { return d.compiler_fingerprint(); }),
                     "Compiler, driver, architecture and flags: equal text means equal results of compile().")
        .def(
            "compile",
            [](Device& d, nb::object source, const std::string& entry_point_name, const std::string& label,
               const std::string& float_mode, int optimization, bool debug_info,
               std::vector<std::string> downstream_args, nb::object group_size, const std::string& cuda_arch,
               nb::bytes whole_source, const std::string& stage) {
                nb::object data = PyUnicode_Check(source.ptr()) ? nb::steal(PyUnicode_AsUTF8String(source.ptr()))
                                                                : source;
                if (!data.is_valid() || !PyBytes_Check(data.ptr())) {
                    PyErr_Clear();
                    fail_field("compile 'source'", source, "str or bytes");
                }
                const std::string code = compile(d, nb::borrow<nb::bytes>(data), entry_point_name, label, float_mode,
                                                 optimization, debug_info, std::move(downstream_args), group_size,
                                                 cuda_arch, std::move(whole_source), stage);
                return nb::bytes(code.data(), code.size());
            },
            nb::arg("source"), nb::arg("entry_point_name"), nb::kw_only(), nb::arg("label") = "",
            nb::arg("float_mode") = "default", nb::arg("optimization") = 1, nb::arg("debug_info") = false,
            nb::arg("downstream_args") = std::vector<std::string>{}, nb::arg("group_size") = nb::make_tuple(1, 1, 1),
            nb::arg("cuda_arch") = "", nb::arg("whole_source") = nb::bytes("", 0), nb::arg("stage") = "compute",
            "Code generated for this device -> what create_kernel takes. Does not hold the GIL. whole_source: compiled "
            "where "
            "`source` does not compile, and what the error is about; on the CPU only.")
        .def("_expect_compile", &expect_compile, nb::arg("beginning"), nb::kw_only(), nb::arg("float_mode"),
             nb::arg("optimization"), "Texts with this beginning will be compiled soon: gets ready for them.")
        .def(
            "create_kernel",
            [](Device& d, const nb::bytes& code, ref<ProgramLayout> layout, std::string label, RayTracingPipeline* rays,
               ShaderTable* table) {
                check_open(&d);
                const std::string_view view(static_cast<const char*>(code.data()), code.size());
                ++d.kernel_count;
                const KernelDesc desc{view, layout, label.empty() ? layout->entry_point().name : label, rays, table};
                return timed(d, "pipeline", desc.label, code.size(), [&] { return d.create_kernel(desc); });
            },
            nb::arg("code"), nb::arg("layout"), nb::arg("label") = "", nb::arg("rays") = nb::none(),
            nb::arg("table") = nb::none(),
            "`rays` (a CompiledRayTracingPipeline): launches trace rays, with this shader table.")
        .def("launch", &launch, nb::arg("kernel"), nb::arg("group_count"), nb::arg("scopes"),
             nb::arg("slots") = std::vector<ref<Object>>{}, nb::arg("keep_alive") = std::vector<ref<Object>>{},
             nb::arg("stream") = NativeHandle{}, nb::arg("group_size") = nb::none(), nb::arg("shared_memory") = 0,
             "Launches at once, without waiting: the bytes of each scope and the resource of each slot of the kernel's "
             "layout; `keep_alive` are buffers reached by pointer.");
}

} // namespace spy
