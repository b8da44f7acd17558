// Device and what it creates. What has no need to be native is in the class that slangpy/device/device.py derives.
#include "python/device/bindings.h"
#include "python/members.h"

#include "cpu/api.h"
#include "device/backend.h"
#include "device/profile.h"
#include "null/device.h"
#include "python/device/rays.h"
#include "core/python_names.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/pair.h>

namespace spy {

namespace {

using DeviceClass = nb::class_<Device, Object>;

/// Tells the Python object of a device about commands that were dropped.
void note_discarded(Device* device, uint64_t recording_id)
{
    if (device->is_closed()) // its callbacks are gone
        return;
    GilAcquire gil;
    if (!gil.is_valid())
        return;
    nb::error_scope pending; // objects also die while an exception is on its way
    try {
        nb::cast(ref<Device>(device)).attr(in_python::note_discarded.name)(recording_id);
    } catch (nb::python_error& error) {
        error.discard_as_unraisable("a callback for discarded commands");
    }
}

/// Opens a device as an object of `type`, the class that slangpy.device derives. Which C++ class it has depends on the
/// fields, so that it is made here and not by __init__.
nb::object new_device(nb::handle type, PyDeviceDesc& desc)
{
    if (type.is(nb::type<Device>()))
        fail(ErrorKind::type,
             "slangpy._native.Device is the base of slangpy.Device: open devices with slangpy.Device(...) or "
             "slangpy.create_device(...)");
    ref<Device> device;
    {
        const DeviceDesc plain = desc;
        GilRelease release;
        device = create_device(plain);
    }
    desc.handle_objects = nb::none(); // the device holds what it needs of them until it is closed
    device->set_discarded_callback(&note_discarded);
    nb::object self = nb::inst_take_ownership(type, device.get());
    device->set_self_py(self.ptr());
    return self;
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

std::vector<AdapterInfo> enumerate_adapters(Member<"enumerate_adapters 'type'", DeviceType> given)
{
    const DeviceType type = given;
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

void bind_creation(DeviceClass& cls)
{
    cls.def(
        "create_buffer",
        [](Device& d, nb::args args, nb::kwargs kwargs) {
            check_open(&d);
            return create_buffer(&d, Fields<PyBufferDesc>::from_arguments(args, kwargs, "create_buffer"));
        },
        nb::sig(Fields<PyBufferDesc>::signature("create_buffer", "Buffer")),
        "Allocates memory. The size in bytes is `size`, `element_count` times `struct_size` or the stride of "
        "`resource_type_layout`, or that of `data`.");
    cls.def(
        "create_texture",
        [](Device& d, nb::args args, nb::kwargs kwargs) {
            check_open(&d);
            return create_texture(&d, Fields<PyTextureDesc>::from_arguments(args, kwargs, "create_texture"));
        },
        nb::sig(Fields<PyTextureDesc>::signature("create_texture", "Texture")),
        "Creates a texture; `data` fills its first layer and mip.");
    cls.def(
        "create_sampler",
        [](Device& d, nb::args args, nb::kwargs kwargs) {
            check_open(&d);
            return d.create_sampler(Fields<SamplerDesc>::from_arguments(args, kwargs, "create_sampler"));
        },
        nb::sig(Fields<SamplerDesc>::signature("create_sampler", "Sampler")),
        "How textures are read: filters, addressing, levels of detail.");
    cls.def(
        "create_fence",
        [](Device& d, nb::args args, nb::kwargs kwargs) {
            check_open(&d);
            const auto desc = Fields<FenceDesc>::from_arguments(args, kwargs, "create_fence");
            return create_fence(&d, desc.initial_value, desc.shared);
        },
        nb::sig(Fields<FenceDesc>::signature("create_fence", "Fence")),
        "A counter that the device and the host raise and wait for.");
    cls.def(
        "create_query_pool",
        [](Device& d, nb::args args, nb::kwargs kwargs) {
            check_open(&d);
            const auto desc = Fields<QueryPoolDesc>::from_arguments(args, kwargs, "create_query_pool");
            if (!desc.count)
                fail_value("create_query_pool: 'count' must be at least 1");
            constexpr uint32_t most = 1u << 20;
            if (desc.count > most)
                fail_value("create_query_pool: 'count' must be at most ", most, ", got ", desc.count);
            return d.create_query_pool(desc.type, desc.count);
        },
        nb::sig(Fields<QueryPoolDesc>::signature("create_query_pool", "QueryPool")),
        "`count` queries, for write_timestamp.");
    cls.def(
        "create_command_encoder",
        [](Device& d, Member<"create_command_encoder 'queue'", CommandQueueType> queue) {
            (void)CommandQueueType(queue);
            check_open(&d);
            return ref<CommandEncoder>(new CommandEncoder(ref<Device>(&d)));
        },
        nb::arg("queue") = CommandQueueType::graphics, "What commands are recorded with, for submit_command_buffer.");
}

void bind_state(DeviceClass& cls)
{
    cls.def_prop_ro("info", [](const Device& d) { return d.info(); })
        .def_prop_ro("type", [](const Device& d) { return d.info().type; })
        .def_prop_ro("is_closed", &Device::is_closed)
        .def_prop_rw(
            "deterministic", [](const Device& d) { return d.deterministic->load(); },
            [](Device& d, bool on) { *d.deterministic = on; },
            "Whether backward calls sum gradients so that repeated runs give the same bits: exact sums, rounded "
            "once. Slower; gradients that threads share take 12 bytes more for each byte of float32. Off at first; "
            "torch.use_deterministic_algorithms(True) has the same effect on calls with torch tensors.")
        .def_prop_ro("capabilities", open_call([](Device& d) { return d.info().capabilities; }),
                     "Slang capability names that the target supports.")
        .def(
            "has_capability",
            [](const Device& d, const std::string& name) {
                check_open(&d);
                const auto& all = d.info().capabilities;
                return std::find(all.begin(), all.end(), name) != all.end();
            },
            nb::arg("name"), "Whether the target supports a capability by Slang's name, as \"spirv_1_5\".")
        .def(
            "get_format_support",
            [](Device& d, Member<"get_format_support 'format'", Format> format) {
                check_open(&d);
                return FormatSupport(d.format_support(format));
            },
            nb::arg("format"), "What the device can do with a format, as flags.")
        .def_static("enumerate_adapters", &enumerate_adapters, nb::arg("type") = DeviceType::automatic,
                    "Adapters of a device type (of all types for automatic); empty when the API is missing.")
        .def("__repr__", [](const Device& d) {
            return cat("Device(\n  type = ", device_type_name(d.info().type), ",\n  adapter = '", d.info().adapter_name,
                       "',\n  label = '", d.desc().label, "',\n  closed = ", d.is_closed() ? "True" : "False", ",\n)");
        });
}

/// Order of work, and other APIs.
void bind_work(DeviceClass& cls)
{
    cls.def("report_heaps", open_call([](Device& d) { return d.heap_reports(); }),
            "Memory held from the driver and in use, in bytes.")
        .def_prop_ro(
            "native_handles", open_call([](Device& d) { return native_handles(d); }),
            "Three handles: Vulkan instance, physical device, device; CUDA device, context, none; D3D12 device first. "
            "They keep what they name alive, even beyond close(); copies that you make of their values do not.")
        .def_prop_ro("supports_cuda_interop", open_call([](Device& d) { return d.cuda_index() >= 0; }))
        .def(
            "sync_to_cuda",
            [](Device& d, uint64_t stream) {
                check_open(&d);
                d.sync_to_stream({NativeHandleType::CUstream, stream});
            },
            nb::arg("cuda_stream") = 0, "The device's queue waits for the CUDA stream.")
        .def(
            "sync_to_device",
            [](Device& d, uint64_t stream) {
                check_open(&d);
                d.sync_stream_to({NativeHandleType::CUstream, stream});
            },
            nb::arg("cuda_stream") = 0, "The CUDA stream waits for the device's queue.")
        .def(
            "set_cuda_context_current",
            [](Device& d) {
                check_open(&d);
                d.set_context_current();
            },
            "Makes the device's CUDA context the thread's. Does nothing on other devices.");
}

void bind_waits(DeviceClass& cls)
{
    cls.def(
           "wait",
           [](Device& d) {
               check_open(&d);
               wait_device(&d, d.last_submit_id());
           },
           "Until all work is done. Raises the fault of a kernel.")
        .def(
            "wait_for_idle",
            [](Device& d, Member<"wait_for_idle 'queue'", CommandQueueType> queue) {
                check_open(&d);
                (void)CommandQueueType(queue);
                wait_device(&d, d.last_submit_id());
            },
            nb::arg("queue") = CommandQueueType::graphics, "Waits until all submitted work is done.")
        .def(
            "is_submit_finished",
            [](Device& d, Int64<"is_submit_finished 'id'"> given) {
                check_open(&d);
                const uint64_t id = given;
                return id <= d.last_submit_id() && d.is_finished(id);
            },
            nb::arg("id"), "False for an id that was not given out yet.")
        .def(
            "wait_for_submit",
            [](Device& d, Int64<"wait_for_submit 'id'"> given) {
                check_open(&d);
                const uint64_t id = given;
                if (id > d.last_submit_id())
                    fail_value("wait_for_submit: nothing was submitted under id ", id, "; the newest is ",
                               d.last_submit_id());
                wait_device(&d, id);
            },
            nb::arg("id"), "Waits until a submission is done. ValueError for an id that was not given out.");
}

/// The null device: what was launched since the last call, as dicts.
nb::list take_launches(Device& d)
{
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
}

/// The null device: the render passes since the last call, as dicts.
nb::list take_passes(Device& d)
{
    auto* device = dynamic_cast<null::NullDevice*>(d.backend());
    if (!device)
        fail(ErrorKind::type, "only the null device records render passes");
    nb::list out;
    for (const null::PassRecord& pass : device->take_passes()) {
        nb::dict entry;
        entry["size"] = nb::make_tuple(pass.width, pass.height);
        entry["layer_count"] = pass.layer_count;
        entry["sample_count"] = pass.sample_count;
        nb::list draws;
        for (const null::DrawRecord& draw : pass.draws) {
            nb::dict item;
            item["pipeline"] = draw.pipeline;
            item["kind"] = draw.kind;
            item["arguments"] = draw.arguments;
            item["group_count"] = nb::make_tuple(draw.group_count[0], draw.group_count[1], draw.group_count[2]);
            item["max_draw_count"] = draw.max_draw_count;
            item["stencil_ref"] = draw.stencil_ref;
            item["viewports"] = draw.viewports;
            item["scissor_rects"] = draw.scissor_rects;
            item["vertex_buffer_count"] = draw.vertex_buffer_count;
            item["slot_count"] = draw.slot_count;
            draws.append(item);
        }
        entry["draws"] = draws;
        out.append(entry);
    }
    return out;
}

nb::list take_ray_commands(Device& d)
{
    auto* device = dynamic_cast<null::NullDevice*>(d.backend());
    if (!device)
        fail(ErrorKind::type, "only the null device records commands for acceleration structures");
    nb::list out;
    for (const null::RayRecord& record : device->take_ray_commands())
        out.append(nb::make_tuple(record.kind, record.counts));
    return out;
}

/// Ends a measurement: (name, start, duration, shape) of each event in the order in which the device ran them, times in
/// seconds from the first of them; and how many found no room. Without `read`, what was measured is dropped.
nb::tuple stop_profile(Device& device, size_t first, bool read)
{
    const std::shared_ptr<Profiler> profiler = device.backend()->leave_profile();
    Profiler::Result result;
    {
        GilRelease release;
        result = profiler->stop(first, read);
    }
    std::stable_sort(result.events.begin(), result.events.end(),
                     [](const auto& a, const auto& b) { return a.begin < b.begin; });
    const double tick = 1.0 / double(std::max<uint64_t>(1, device.info().timestamp_frequency));
    nb::list events;
    for (const Profiler::Event& event : result.events)
        events.append(nb::make_tuple(event.work.name, double(event.begin - result.events[0].begin) * tick,
                                     double(event.end - event.begin) * tick, nb::tuple(nb::cast(event.work.shape))));
    return nb::make_tuple(events, result.lost);
}

/// What the Python class builds on.
void bind_private(DeviceClass& cls)
{
    cls.def_prop_ro("_cuda_index", [](const Device& d) { return d.cuda_index(); })
        .def_prop_ro("_feature_names", [](const Device& d) { return d.info().features; })
        .def_prop_ro(
            "_kernel_counts", [](const Device& d) { return std::pair(d.compiled_count.load(), d.kernel_count.load()); },
            "Kernels compiled, and kernels created.")
        .def(
            "_close",
            [](Device& d) {
                GilRelease release; // calls of other threads, which close() waits for, may need it
                d.close();
            },
            "Frees everything; close() does what comes before.")
        .def(
            "_check_open", [](Device& d) { check_open(&d); }, "RuntimeError when it is closed.")
        .def("_take_printed", &take_printed)
        .def(
            "_start_profile",
            [](Device& d) {
                check_open(&d);
                return d.backend()->start_profile();
            },
            "Measures what runs from now on: the number of the first event.")
        .def("_stop_profile", &stop_profile, nb::arg("first"), nb::arg("read"))
        .def("_live_objects",
             [](Device& d) {
                 std::vector<std::string> out;
                 d.for_each_object([&](DeviceObject* o) { out.push_back(summary(o)); });
                 if (d.backend() != &d)
                     d.backend()->for_each_object([&](DeviceObject* o) { out.push_back(summary(o)); });
                 return out;
             })
        .def("_take_launches", &take_launches, "null device: what was launched since the last call, as dicts.")
        .def("_take_ray_commands", &take_ray_commands,
             "null device: (kind, counts) of what was done with acceleration structures since the last call.")
        .def("_take_passes", &take_passes, "null device: the render passes since the last call, as dicts.");
}

} // namespace

void bind_device(nb::module_& m)
{
    bind_device_types(m);
    bind_handle_types(m);
    bind_device_descs(m);
    bind_render_enums(m);
    bind_render_descs(m);
    bind_ray_descs(m);
    m.def(
        "_device_desc",
        [](nb::args args, nb::kwargs kwargs) { return Fields<PyDeviceDesc>::from_arguments(args, kwargs, "Device"); },
        nb::sig("def _device_desc(*args: typing.Any, **kwargs: typing.Any) -> DeviceDesc"),
        "The arguments of Device(...).");
    DeviceClass cls(m, "Device", "What of slangpy.Device is native.");
    cls.def_static("__new__", &new_device, nb::sig("def __new__(cls, desc: DeviceDesc) -> typing.Self"));
    // The derived class hands on what it is called with; __new__ has done it all.
    cls.def(
        "__init__", [](nb::handle, nb::args, nb::kwargs) { },
        nb::sig(Fields<PyDeviceDesc>::signature("__init__", "None")));
    nb::class_<DeviceObject, Object>(m, "DeviceObject", "Base of everything a device creates.")
        .def_prop_ro(
            "device", [](const DeviceObject& o) { return ref<Device>(o.frontend()); },
            nb::sig("def device(self) -> slangpy.device.Device"));
    bind_resources(m);
    bind_commands(m, cls);
    bind_creation(cls);
    bind_code(m, cls);
    bind_render_pipeline(m, cls);
    bind_coop_vec(m, cls);
    bind_acceleration_structures(m, cls);
    bind_ray_tracing(m, cls);
    bind_surface(m, cls);
    bind_state(cls);
    bind_work(cls);
    bind_waits(cls);
    bind_private(cls);
    m.def(
        "_unsupported_feature_message",
        [](const std::string& function, const std::string& feature, DeviceType type) {
            return unsupported_feature_message(function, feature, type);
        },
        nb::arg("function"), nb::arg("feature"), nb::arg("device_type"));
    m.def(
        "_configure_cpu",
        [](unsigned threads, std::vector<std::vector<std::string>> compilers, unsigned wave_lanes) {
            if (wave_lanes != 1 && wave_lanes != 32)
                fail_value("the cpu device has waves of 1 or 32 lanes (SLANGPY_CPU_WAVE_LANES), not of ", wave_lanes);
            cpu::Config config = cpu::config();
            config.thread_count = threads;
            config.wave_lanes = wave_lanes;
            if (!compilers.empty())
                config.compilers = std::move(compilers);
            cpu::set_config(std::move(config));
        },
        nb::arg("threads") = 0, nb::arg("compilers") = std::vector<std::vector<std::string>>{},
        nb::arg("wave_lanes") = 1,
        "Threads of CPU devices opened later (0: all), the C++ compiler commands to try, in order, and lanes of a "
        "wave.");
}

} // namespace spy
