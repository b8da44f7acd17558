// Device and what it creates. What has no need to be native is in slangpy/device.py, to which the methods
// named in `forward` go.
#include "python/device_bindings.h"

#include "cpu/cpu_api.h"
#include "device/backend.h"
#include "null/null_backend.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/pair.h>

namespace spy {

namespace {

using DeviceClass = nb::class_<Device, Object>;

/// What can be asked of a closed device, too.
bool is_for_closed(std::string_view name) { return name == "close" || name == "__exit__" || name == "desc"; }

/// A method that calls slangpy.device._<name>(self, ...).
void forward(DeviceClass& cls, const char* name, const char* signature, const char* doc)
{
    const std::string target = std::string("_") + name;
    cls.def(name, [target, checked = !is_for_closed(name)](nb::handle self, nb::args args, nb::kwargs kwargs) {
        if (checked)
            check_open(nb::cast<Device*>(self));
        return nb::module_::import_("slangpy.device").attr(target.c_str())(self, *args, **kwargs);
    }, nb::sig(signature), doc);
}

void forward_property(DeviceClass& cls, const char* name, const char* signature, const char* doc)
{
    const std::string target = std::string("_") + name;
    cls.def_prop_ro(name, [target, checked = !is_for_closed(name)](nb::handle self) {
        if (checked)
            check_open(nb::cast<Device*>(self));
        return nb::module_::import_("slangpy.device").attr(target.c_str())(self);
    }, nb::sig(signature), doc);
}

ref<Device> new_device(nb::args args, nb::kwargs kwargs)
{
    PyDeviceDesc desc = Fields<PyDeviceDesc>::from_arguments(args, kwargs, "Device");
    nb::module_ support = nb::module_::import_("slangpy.device");
    support.attr("_opening")();
    ref<Device> device;
    {
        const DeviceDesc plain = desc;
        GilRelease release;
        device = create_device(plain);
    }
    desc.handle_objects = nb::none(); // the device holds what it needs of them until it is closed
    device->set_discarded_callback([](Device* d, uint64_t recording_id) {
        if (d->is_closed()) // its callbacks are gone, and at exit so is the module
            return;
        GilAcquire gil;
        if (!gil.is_valid())
            return;
        nb::error_scope pending; // objects also die while an exception is on its way
        try {
            nb::module_::import_("slangpy.device").attr("_discarded")(ref<Device>(d), recording_id);
        } catch (nb::python_error& error) {
            error.discard_as_unraisable("a callback for discarded commands");
        }
    });
    support.attr("_opened")(device, desc);
    return device;
}

/// The words that kernels have printed and how many calls found no room; empties the buffer. Waits for earlier work.
nb::tuple take_printed(Device& device)
{
    check_open(&device);
    Buffer* buffer = device.print_buffer();
    uint32_t header[4] = {};
    std::vector<uint32_t> words;
    if (buffer) {
        GilRelease release;
        device.read_buffer(buffer, 0, header, sizeof(header));
        words.resize(std::min<size_t>(header[0], header[2] - 4));
        if (!words.empty() || header[1]) {
            device.read_buffer(buffer, sizeof(header), words.data(), words.size() * 4);
            std::vector<uint32_t> empty(words.size() + 4);
            empty[2] = header[2];
            device.write_buffer(buffer, 0, empty.data(), empty.size() * 4);
        }
    }
    return nb::make_tuple(nb::bytes(words.data(), words.size() * 4), header[1]);
}

std::vector<AdapterInfo> enumerate_adapters(DeviceType type)
{
    std::vector<AdapterInfo> all;
    for (const Backend& backend : backends())
        if (backend.type == type || (type == DeviceType::automatic && backend.type != DeviceType::null))
            for (AdapterInfo& adapter : backend.enumerate())
                all.push_back(std::move(adapter));
    return all;
}

/// Waits without the GIL, in steps, so that Ctrl-C works.
void wait_device(Device* device, uint64_t submit_id)
{
    wait_interruptible(timeout_infinite, [&](uint64_t ns) { return device->wait(submit_id, ns); });
}

/// Each handle holds what it names, so that a device may be opened on it whatever becomes of this one.
nb::list native_handles(Device& device)
{
    const std::shared_ptr<void> owner = device.native_owner();
    nb::list out;
    for (const NativeHandle& handle : device.native_handles()) {
        DeviceHandle item{handle, owner};
        out.append(owner ? nb::cast(std::move(item)) : nb::cast(handle));
    }
    return out;
}

template <typename F>
auto open_call(F function)
{
    return [function](Device& d) {
        check_open(&d);
        return function(d);
    };
}

void bind_creation(DeviceClass& cls)
{
    cls.def("create_buffer", [](Device& d, nb::args args, nb::kwargs kwargs) {
            check_open(&d);
            return create_buffer(&d, Fields<PyBufferDesc>::from_arguments(args, kwargs, "create_buffer"));
        }, nb::sig(Fields<PyBufferDesc>::signature("create_buffer", "Buffer")),
        "Allocates memory. The size in bytes is `size`, `element_count` times `struct_size` or the stride of "
        "`resource_type_layout`, or that of `data`.");
    cls.def("create_texture", [](Device& d, nb::args args, nb::kwargs kwargs) {
            check_open(&d);
            return create_texture(&d, Fields<PyTextureDesc>::from_arguments(args, kwargs, "create_texture"));
        }, nb::sig(Fields<PyTextureDesc>::signature("create_texture", "Texture")),
        "Creates a texture; `data` fills its first layer and mip.");
    cls.def("create_sampler", [](Device& d, nb::args args, nb::kwargs kwargs) {
            check_open(&d);
            return d.create_sampler(Fields<SamplerDesc>::from_arguments(args, kwargs, "create_sampler"));
        }, nb::sig(Fields<SamplerDesc>::signature("create_sampler", "Sampler")));
    cls.def("create_fence", [](Device& d, nb::args args, nb::kwargs kwargs) {
            check_open(&d);
            const auto desc = Fields<FenceDesc>::from_arguments(args, kwargs, "create_fence");
            return create_fence(&d, desc.initial_value, desc.shared);
        }, nb::sig(Fields<FenceDesc>::signature("create_fence", "Fence")));
    cls.def("create_query_pool", [](Device& d, nb::args args, nb::kwargs kwargs) {
            check_open(&d);
            const auto desc = Fields<QueryPoolDesc>::from_arguments(args, kwargs, "create_query_pool");
            if (!desc.count)
                fail_value("create_query_pool: 'count' must be at least 1");
            constexpr uint32_t most = 1u << 20;
            if (desc.count > most)
                fail_value("create_query_pool: 'count' must be at most ", most, ", got ", desc.count);
            return d.create_query_pool(desc.type, desc.count);
        }, nb::sig(Fields<QueryPoolDesc>::signature("create_query_pool", "QueryPool")));
    cls.def("create_command_encoder", [](ref<Device> d, CommandQueueType) {
            check_open(d.get());
            return ref<CommandEncoder>(new CommandEncoder(d));
        }, nb::arg("queue") = CommandQueueType::graphics);
}

void bind_state(DeviceClass& cls)
{
    cls.def_prop_ro("info", [](const Device& d) { return d.info(); })
        .def_prop_ro("type", [](const Device& d) { return d.info().type; })
        .def_prop_ro("is_closed", &Device::is_closed)
        .def_prop_rw("check_gradients",
                     [](nb::handle self) { return nb::module_::import_("slangpy.device").attr("_checks_gradients")(self); },
                     [](nb::handle self, bool on) { self.attr("__dict__")["_state_check_gradients"] = nb::bool_(on); },
                     "bool: whether the first run of each new kind of backward call is compared with forward mode and, where "
                     "they differ, with differences; RuntimeWarning where its gradients are wrong. It compiles and runs more. At "
                     "first off, unless debug layers are on or the environment has SLANGPY_CHECK_GRADIENTS=1.")
        .def_prop_rw("deterministic", [](const Device& d) { return d.deterministic->load(); },
                     [](Device& d, bool on) { *d.deterministic = on; },
                "Whether backward calls sum gradients so that repeated runs give the same bits: exact sums, rounded "
                "once. Slower; gradients that threads share take 12 bytes more for each byte of float32. Off at first; "
                "torch.use_deterministic_algorithms(True) has the same effect on calls with torch tensors.")
        .def_prop_ro("_cuda_index", [](const Device& d) { return d.cuda_index(); })
        .def_prop_ro("_feature_names", [](const Device& d) { return d.info().features; })
        .def_prop_ro("capabilities", open_call([](Device& d) { return d.info().capabilities; }),
                     "Slang capability names that the target supports.")
        .def("has_capability", [](const Device& d, const std::string& name) {
            check_open(&d);
            const auto& all = d.info().capabilities;
            return std::find(all.begin(), all.end(), name) != all.end();
        }, nb::arg("name"))
        .def("get_format_support", [](Device& d, Format format) {
            check_open(&d);
            return FormatSupport(d.format_support(format));
        }, nb::arg("format"))
        .def("report_heaps", open_call([](Device& d) { return d.heap_reports(); }))
        .def_prop_ro("native_handles", open_call([](Device& d) {
            return native_handles(d);
        }), "Three handles: Vulkan instance, physical device, device; CUDA device, context, none; D3D12 device first. "
            "They keep what they name alive, even beyond close(); copies that you make of their values do not.")
        .def_prop_ro("supports_cuda_interop", open_call([](Device& d) {
            return d.cuda_index() >= 0;
        }))
        .def("sync_to_cuda", [](Device& d, uint64_t stream) {
            check_open(&d);
            d.sync_to_stream({NativeHandleType::CUstream, stream});
        }, nb::arg("cuda_stream") = 0, "The device's queue waits for the CUDA stream.")
        .def("sync_to_device", [](Device& d, uint64_t stream) {
            check_open(&d);
            d.sync_stream_to({NativeHandleType::CUstream, stream});
        }, nb::arg("cuda_stream") = 0, "The CUDA stream waits for the device's queue.")
        .def("set_cuda_context_current", [](Device& d) { check_open(&d); d.set_context_current(); })
        .def("wait", [](Device& d) { check_open(&d); wait_device(&d, d.last_submit_id()); },
             "Until all work is done. Raises the fault of a kernel.")
        .def("wait_for_idle", [](Device& d, CommandQueueType) { check_open(&d); wait_device(&d, d.last_submit_id()); },
             nb::arg("queue") = CommandQueueType::graphics)
        .def("is_submit_finished", [](Device& d, uint64_t id) {
            check_open(&d);
            return id <= d.last_submit_id() && d.is_finished(id);
        }, nb::arg("id"), "False for an id that was not given out yet.")
        .def("wait_for_submit", [](Device& d, uint64_t id) {
            check_open(&d);
            if (id > d.last_submit_id())
                fail_value("wait_for_submit: nothing was submitted under id ", id, "; the newest is ", d.last_submit_id());
            wait_device(&d, id);
        }, nb::arg("id"))
        .def_prop_ro("_kernel_counts", [](const Device& d) {
            return std::pair(d.compiled_count.load(), d.kernel_count.load());
        }, "Kernels compiled, and kernels created.")
        .def("_close", [](Device& d) {
            GilRelease release; // calls of other threads, which close() waits for, may need it
            d.close();
        }, "Frees everything; slangpy.device does what comes before.")
        .def("_take_printed", &take_printed)
        .def("_live_objects", [](Device& d) {
            std::vector<std::string> out;
            d.for_each_object([&](DeviceObject* o) { out.push_back(describe(o)); });
            if (d.backend() != &d)
                d.backend()->for_each_object([&](DeviceObject* o) { out.push_back(describe(o)); });
            return out;
        })
        .def("_take_launches", [](Device& d) {
            auto* device = dynamic_cast<null::NullDevice*>(d.backend());
            if (!device)
                fail(ErrorKind::type, "only the null device records launches");
            nb::list out;
            for (const null::LaunchRecord& record : device->take_records()) {
                nb::dict entry;
                entry["kernel"] = record.kernel;
                entry["group_count"] = nb::make_tuple(record.group_count[0], record.group_count[1], record.group_count[2]);
                entry["scope_sizes"] = record.scope_sizes;
                entry["slot_count"] = record.slot_count;
                out.append(entry);
            }
            return out;
        }, "null device: what was launched since the last call, as dicts.")
        .def_static("enumerate_adapters", &enumerate_adapters, nb::arg("type") = DeviceType::automatic,
                    "Adapters of a device type (of all types for automatic); empty when the API is missing.")
        .def("__repr__", [](const Device& d) {
            return cat("Device(\n  type = ", device_type_name(d.info().type), ",\n  adapter = '", d.info().adapter_name,
                       "',\n  label = '", d.desc().label, "',\n  closed = ", d.is_closed() ? "True" : "False", ",\n)");
        });
}

void bind_forwards(DeviceClass& cls)
{
    forward_property(cls, "desc", "def desc(self) -> DeviceDesc", "The fields it was opened with.");
    forward_property(cls, "features", "def features(self) -> list[Feature]", "What the device can do.");
    forward(cls, "has_feature", "def has_feature(self, feature: Feature) -> bool", "");
    forward_property(cls, "supported_shader_model", "def supported_shader_model(self) -> slangpy.session.ShaderModel", "");
    forward(cls, "close", "def close(self) -> None",
            "Waits, runs the close callbacks, frees everything. A second call does nothing.");
    forward(cls, "cuda_context_scope", "def cuda_context_scope(self) -> contextlib.AbstractContextManager[None]",
            "Makes the CUDA context current inside `with`; no effect off CUDA.");
    forward(cls, "register_device_close_callback",
            "def register_device_close_callback(self, callback: Callable[[Device], typing.Any]) -> int",
            "callback(device) runs at the start of close(); returns an id.");
    forward(cls, "unregister_device_close_callback", "def unregister_device_close_callback(self, id: int) -> None", "");
    forward(cls, "register_command_recording_submitted_callback",
            "def register_command_recording_submitted_callback(self, callback: Callable[[typing.Any], typing.Any]) -> int",
            "callback(event) after a command buffer was submitted: device, id, command_buffer, submit_id.");
    forward(cls, "unregister_command_recording_submitted_callback",
            "def unregister_command_recording_submitted_callback(self, id: int) -> None", "");
    forward(cls, "register_command_recording_discarded_callback",
            "def register_command_recording_discarded_callback(self, callback: Callable[[typing.Any], typing.Any]) -> int",
            "callback(event) when a command buffer is dropped without having been submitted.");
    forward(cls, "unregister_command_recording_discarded_callback",
            "def unregister_command_recording_discarded_callback(self, id: int) -> None", "");
    forward(cls, "submit_command_buffer",
            "def submit_command_buffer(self, command_buffer: CommandBuffer, queue: CommandQueueType = ..., "
            "cuda_stream: NativeHandle = ...) -> int", "Returns the id of the submission.");
    forward(cls, "submit_command_buffers",
            "def submit_command_buffers(self, command_buffers: Sequence[CommandBuffer], wait_fences: Sequence[Fence] = ..., "
            "wait_fence_values: Sequence[int] = ..., signal_fences: Sequence[Fence] = ..., signal_fence_values: "
            "Sequence[int] = ..., queue: CommandQueueType = ..., cuda_stream: NativeHandle = ...) -> int",
            "Fence values may be Fence.AUTO or left out. Returns the id of the submission.");
    forward(cls, "get_timestamp_calibration", "def get_timestamp_calibration(self) -> typing.Any", "Not implemented yet.");
    forward(cls, "__enter__", "def __enter__(self) -> Device", "Pushes the device on the current-device stack.");
    forward(cls, "__exit__", "def __exit__(self, *args: typing.Any) -> None", "");
    cls.def_static("get_created_devices", [] {
        return nb::module_::import_("slangpy.device").attr("_get_created_devices")();
    }, nb::sig("def get_created_devices() -> list[Device]"), "Open devices.");
    cls.def_static("report_live_objects", [] {
        return nb::module_::import_("slangpy.device").attr("_report_live_objects")();
    }, nb::sig("def report_live_objects() -> None"), "Logs what is alive on each open device.");
}

/// Methods of the program layer (Python): spec device.md 5, 6, 9, 10, 13.
void bind_program_forwards(DeviceClass& cls)
{
    forward_property(cls, "torch_device", "def torch_device(self) -> typing.Any", "The torch.device whose tensors calls take.");
    forward_property(cls, "slang_session", "def slang_session(self) -> typing.Any", "The default session.");
    forward(cls, "create_slang_session", "def create_slang_session(self, compiler_options: typing.Any = None, "
            "add_default_include_paths: bool = True, cache_path: typing.Any = None) -> typing.Any", "Another session.");
    forward(cls, "load_module", "def load_module(self, name: str) -> typing.Any", "Loads a Slang module by name or path.");
    forward(cls, "load_module_from_source",
            "def load_module_from_source(self, name: str, source: str, path: typing.Any = None) -> typing.Any", "");
    forward(cls, "compose_modules",
            "def compose_modules(self, name: str, modules: Sequence[typing.Any], type_conformances: Sequence[typing.Any] = ()) -> typing.Any", "");
    forward(cls, "link_program",
            "def link_program(self, modules: Sequence[typing.Any], entry_points: Sequence[typing.Any], link_options: typing.Any = None) -> typing.Any", "");
    forward(cls, "load_program",
            "def load_program(self, module_name: str, entry_point_names: Sequence[str], additional_source: str | None = None, "
            "link_options: typing.Any = None) -> typing.Any", "");
    forward(cls, "create_compute_pipeline",
            "def create_compute_pipeline(self, program: typing.Any, defer_target_compilation: bool = False, label: str | None = None) -> typing.Any", "");
    forward(cls, "create_compute_kernel", "def create_compute_kernel(self, program: typing.Any) -> typing.Any", "");
    forward(cls, "create_root_shader_object", "def create_root_shader_object(self, program: typing.Any) -> typing.Any", "");
    forward(cls, "create_shader_object", "def create_shader_object(self, type_layout: typing.Any) -> typing.Any", "");
    forward(cls, "hot_reload_check", "def hot_reload_check(self) -> None", "Applies changes of source files now.");
    forward(cls, "set_hot_reload_delay", "def set_hot_reload_delay(self, delay_ms: int) -> None", "");
    forward(cls, "reload_all_programs", "def reload_all_programs(self) -> None", "");
    forward(cls, "register_shader_hot_reload_callback",
            "def register_shader_hot_reload_callback(self, callback: Callable[[typing.Any], typing.Any]) -> int", "");
    forward(cls, "unregister_shader_hot_reload_callback",
            "def unregister_shader_hot_reload_callback(self, id: int) -> None", "");
    forward(cls, "flush_print", "def flush_print(self) -> None", "Logs what kernels have printed.");
    forward(cls, "flush_print_to_string", "def flush_print_to_string(self) -> str", "Waits, then returns what kernels printed.");
    forward_property(cls, "shader_cache_stats", "def shader_cache_stats(self) -> typing.Any", "entry_count, hit_count, miss_count.");
    forward(cls, "get_compilation_reports", "def get_compilation_reports(self) -> list[dict[str, typing.Any]]", "");
}

void bind_later(DeviceClass& cls)
{
    static constexpr std::pair<const char*, const char*> later[] = {
        {"create_render_pipeline", "use compute kernels"},
        {"create_ray_tracing_pipeline", "use compute kernels"},
        {"create_shader_table", "use compute kernels"},
        {"create_acceleration_structure", "trace rays in a compute kernel of your own"},
        {"create_acceleration_structure_instance_list", "trace rays in a compute kernel of your own"},
        {"get_acceleration_structure_sizes", "trace rays in a compute kernel of your own"},
        {"create_input_layout", "use compute kernels"},
        {"create_surface", "copy results with to_numpy()"},
    };
    for (auto [name, instead] : later)
        cls.def(name, [name = name, instead = instead](Device&, nb::args, nb::kwargs) {
            fail(ErrorKind::not_implemented, "Device.", name, " is not implemented; ", instead);
        }, "Not implemented yet.");
}

} // namespace

void bind_device(nb::module_& m)
{
    bind_device_types(m);
    bind_device_descs(m);
    DeviceClass cls(m, "Device", nb::dynamic_attr(), nb::is_weak_referenceable(), "Runs kernels and owns memory.");
    // Which C++ class a device is depends on the fields, so __new__ makes it and __init__ has nothing left to do.
    cls.def_static("__new__", [](nb::handle, nb::args args, nb::kwargs kwargs) { return new_device(args, kwargs); },
                   nb::sig("def __new__(cls, *args: typing.Any, **kwargs: typing.Any) -> Device"));
    cls.def("__init__", [](nb::handle, nb::args, nb::kwargs) {}, nb::sig(Fields<PyDeviceDesc>::signature("__init__", "None")));
    nb::class_<DeviceObject, Object>(m, "DeviceObject", "Base of everything a device creates.")
        .def_prop_ro("device", [](const DeviceObject& o) { return ref<Device>(o.frontend()); });
    bind_resources(m);
    bind_commands(m);
    bind_creation(cls);
    bind_code(m, cls);
    bind_state(cls);
    bind_forwards(cls);
    bind_program_forwards(cls);
    bind_later(cls);
    m.def("_unsupported_feature_message", [](const std::string& function, const std::string& feature, DeviceType type) {
        return unsupported_feature_message(function, feature, type);
    }, nb::arg("function"), nb::arg("feature"), nb::arg("device_type"));
    m.def("_configure_cpu", [](unsigned threads, std::vector<std::vector<std::string>> compilers) {
        cpu::Config config = cpu::config();
        config.thread_count = threads;
        if (!compilers.empty())
            config.compilers = std::move(compilers);
        cpu::set_config(std::move(config));
    }, nb::arg("threads") = 0, nb::arg("compilers") = std::vector<std::vector<std::string>>{},
        "Threads of CPU devices opened later (0: all) and the C++ compiler commands to try, in order.");
}

} // namespace spy
