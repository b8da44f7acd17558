// Encoders, submission.
#include "python/device/rays.h"
#include "python/device/pass_markers.h"
#include "python/members.h"
#include "core/python_names.h"

#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>

#include <chrono>

namespace spy {

namespace {

/// An exception of a Python callback that ran while native code was recording; raised once that is done.
thread_local std::exception_ptr callback_error;

BufferRange range_from(nb::handle value, const char* what)
{
    if (value.is_none())
        return {};
    if (nb::isinstance<nb::dict>(value)) {
        BufferRange range;
        for (auto [key, entry] : nb::borrow<nb::dict>(value)) {
            const std::string field = nb::cast<std::string>(nb::str(key));
            if (field != "offset" && field != "size")
                fail(ErrorKind::type, what, ": unknown field '", field, "'; known fields: offset, size");
            (field == "offset" ? range.offset : range.size) = uint_from(entry, what, ~0ull);
        }
        return range;
    }
    if (nb::hasattr(value, "offset") && nb::hasattr(value, "size"))
        return {uint_from(value.attr("offset"), what, ~0ull), uint_from(value.attr("size"), what, ~0ull)};
    const auto pair = uints_from<2>(value, what);
    return {pair[0], pair[1]};
}

/// A kernel from what users bind: a native Kernel or anything with a `kernel` attribute (a ComputePipeline).
ref<Kernel> kernel_from(nb::handle pipeline)
{
    nb::object value = nb::borrow(pipeline);
    if (!nb::isinstance<Kernel>(value) && nb::hasattr(value.type(), in_python::kernel.name))
        value = value.attr(in_python::kernel.name); // may compile now, and fail
    ref<Kernel> kernel;
    if (value.is_none() || !nb::try_cast(value, kernel))
        fail(ErrorKind::type, "bind_pipeline: expected a compute pipeline, got ", short_text(pipeline), " (",
             class_name(pipeline), ")");
    return kernel;
}

void bind_ranges(nb::module_& m)
{
    struct BufferRangeObject {
        uint64_t offset, size;
    };
    nb::class_<BufferRangeObject>(m, "BufferRange", "Bytes [offset, offset + size) of a buffer.")
        .def("__repr__", [](nb::handle self) { return in_python::native_repr.get()(self); })
        .def(
            "__init__",
            [](BufferRangeObject* self, uint64_t offset, uint64_t size) { new (self) BufferRangeObject{offset, size}; },
            nb::arg("offset") = 0, nb::arg("size") = ~0ull)
        .def(
            "__init__",
            [](BufferRangeObject* self, nb::dict fields) {
                const BufferRange range = range_from(fields, "BufferRange");
                new (self) BufferRangeObject{range.offset, range.size};
            },
            nb::arg("fields"))
        .def_ro("offset", &BufferRangeObject::offset)
        .def_ro("size", &BufferRangeObject::size);
}

void dispatch_indirect(ComputePassEncoder& p, nb::handle where)
{
    BufferOffset place = buffer_offset_from(where, "dispatch_compute_indirect 'arguments'");
    if (!place.buffer)
        fail(ErrorKind::type, "dispatch_compute_indirect: expected a Buffer or BufferOffsetPair, got ",
             short_text(where));
    p.dispatch_compute_indirect(place.buffer, place.offset);
}

void bind_pass(nb::module_& m)
{
    nb::class_<ComputePassEncoder, Object> cls(m, "ComputePassEncoder", "Records dispatches; a context manager.");
    bind_pass_markers(cls);
    cls.def("__repr__", [](nb::handle self) { return in_python::native_repr.get()(self); })
        .def(
            "bind_pipeline",
            [](ComputePassEncoder& p, nb::handle pipeline, nb::object root) {
                const ref<ShaderObject> object = root_from(root);
                return with_used(p.bind_kernel(kernel_from(pipeline), object), pipeline);
            },
            nb::arg("pipeline"), nb::arg("root") = nb::none(),
            "Binds a pipeline with a fresh root object, or with the one given. Returns the root object.")
        .def(
            "dispatch",
            [](ComputePassEncoder& p, nb::handle threads) {
                p.dispatch(uints_from<3>(threads, "dispatch 'thread_count'", true));
            },
            nb::arg("thread_count"), "Counts threads; rounded up to whole groups.")
        .def(
            "dispatch_compute",
            [](ComputePassEncoder& p, nb::handle groups) {
                p.dispatch_compute(uints_from<3>(groups, "dispatch_compute 'group_count'", true));
            },
            nb::arg("group_count"), "Counts groups. ValueError beyond the device's limit; a zero does nothing.")
        .def("dispatch_compute_indirect", &dispatch_indirect, nb::arg("arguments"),
             "Group counts (three uint32) are read from the buffer when the command runs.")
        .def("end", &ComputePassEncoder::end, "Ends the pass; the encoder records again.")
        .def("__enter__", [](nb::handle self) { return nb::borrow(self); })
        .def("__exit__", [](ComputePassEncoder& p, nb::args) { p.end(); });
}

using TextureState = Member<"set_texture_state 'state'", ResourceState>;

void note_texture_state(CommandEncoder& encoder, const ref<Texture>& texture, nb::handle range, ResourceState)
{
    encoder.check_recording("set_texture_state");
    check_same_device(encoder.device(), texture.get(), "set_texture_state 'texture'");
    resolve_range(texture->desc(), subresources_from(range, "set_texture_state 'range'"));
}

void execute_callback(CommandEncoder& encoder, nb::callable function)
{
    std::shared_ptr<nb::object> shared = share_callable(function);
    encoder.execute_callback([shared](NativeHandle handle) {
        GilAcquire gil;
        try {
            (*shared)(nb::cast(handle));
        } catch (nb::python_error&) {
            if (!callback_error)
                callback_error = std::current_exception();
        }
    });
}

void bind_buffer_commands(EncoderClass& cls)
{
    using E = CommandEncoder;
    cls.def("begin_compute_pass", &E::begin_compute_pass,
            "A pass of dispatches, to be used in a `with` statement or ended by end().")
        .def(
            "copy_buffer",
            [](E& e, ref<Buffer> dst, Int64<"copy_buffer 'dst_offset'"> dst_offset, ref<Buffer> src,
               Int64<"copy_buffer 'src_offset'"> src_offset,
               Int64<"copy_buffer 'size'"> size) { e.copy_buffer(dst, dst_offset, src, src_offset, size); },
            nb::arg("dst"), nb::arg("dst_offset"), nb::arg("src"), nb::arg("src_offset"), nb::arg("size"), "Bytes.")
        .def(
            "clear_buffer",
            [](E& e, ref<Buffer> buffer, nb::object range) {
                e.fill_buffer(buffer, 0, range_from(range, "clear_buffer 'range'"), "clear_buffer");
            },
            nb::arg("buffer"), nb::arg("range") = nb::none(),
            "Writes zeros. `range`: BufferRange, all by default; offset and size in bytes, the offset a multiple of 4.")
        .def(
            "fill_buffer",
            [](E& e, ref<Buffer> buffer, Int<"fill_buffer 'value'"> value, nb::object range) {
                e.fill_buffer(buffer, value, range_from(range, "fill_buffer 'range'"));
            },
            nb::arg("buffer"), nb::arg("value"), nb::arg("range") = nb::none(), "Repeats a uint32.")
        .def(
            "upload_buffer_data",
            [](E& e, ref<Buffer> buffer, Int64<"upload_buffer_data 'offset'"> offset, nb::handle data) {
                HostBytes bytes(data, "upload_buffer_data");
                e.upload_buffer_data(buffer, offset, bytes.bytes());
                if (!offset)
                    buffer->set_content(bytes.content());
            },
            nb::arg("buffer"), nb::arg("offset"), nb::arg("data"), "The data is copied at once.")
        .def(
            "write_timestamp",
            [](E& e, ref<QueryPool> pool, Int<"write_timestamp 'index'"> index) { e.write_timestamp(pool, index); },
            nb::arg("query_pool"), nb::arg("index"),
            "Writes the time, when the work before it is done, to a query of the pool.")
        .def(
            "resolve_query",
            [](E& e, ref<QueryPool> pool, Int<"resolve_query 'index'"> index, Int<"resolve_query 'count'"> count,
               ref<Buffer> buffer,
               Int64<"resolve_query 'offset'"> offset) { e.resolve_query(pool, index, count, buffer, offset); },
            nb::arg("query_pool"), nb::arg("index"), nb::arg("count"), nb::arg("buffer"), nb::arg("offset"),
            "Writes ticks as uint64.")
        .def("global_barrier", &E::global_barrier, "Everything recorded later sees everything before.")
        .def("finish", &E::finish,
             "No command can be recorded after it. The result may be submitted any number of times.")
        .def("__enter__", [](nb::handle self) { return nb::borrow(self); })
        .def(
            "__exit__",
            [](nb::handle self, nb::handle error, nb::args) {
                if (error.is_none() && !nb::cast<const E&>(self).is_finished())
                    self.attr("device").attr("submit_command_buffer")(self.attr("finish")());
            },
            nb::arg("error").none(), nb::arg("details"),
            "Finishes and submits what was recorded; after an exception nothing is submitted.");
}

/// States, which are hints, as barriers are implicit; markers; what the encoder is.
void bind_encoder_rest(EncoderClass& cls)
{
    using E = CommandEncoder;
    using Marker = command::DebugMarker::Kind;
    cls.def(
           "set_buffer_state",
           [](E& e, ref<Buffer> buffer, Member<"set_buffer_state 'state'", ResourceState> state) {
               (void)ResourceState(state);
               e.check_recording("set_buffer_state");
               check_same_device(e.device(), buffer.get(), "set_buffer_state 'buffer'");
           },
           nb::arg("buffer"), nb::arg("state"), "A hint; barriers are implicit.")
        .def(
            "set_texture_state",
            [](E& e, ref<Texture> texture, TextureState state) { note_texture_state(e, texture, nb::none(), state); },
            nb::arg("texture"), nb::arg("state"), "A hint; barriers are implicit.")
        .def(
            "set_texture_state",
            [](E& e, ref<Texture> texture, nb::handle range, TextureState state) {
                note_texture_state(e, texture, range, state);
            },
            nb::arg("texture"), nb::arg("range"), nb::arg("state"))
        .def(
            "push_debug_group",
            [](E& e, std::string name, nb::object color) {
                e.debug_marker(Marker::push, std::move(name), marker_color(color));
            },
            nb::arg("name"), nb::arg("color") = nb::none(),
            "Opens a group of commands that debuggers show by name. `color`: red, green, blue from 0 to 1.")
        .def(
            "pop_debug_group", [](E& e) { e.debug_marker(Marker::pop, "", {}); }, "Closes the group opened last.")
        .def(
            "insert_debug_marker",
            [](E& e, std::string name, nb::object color) {
                e.debug_marker(Marker::insert, std::move(name), marker_color(color));
            },
            nb::arg("name"), nb::arg("color") = nb::none(),
            "A mark that debuggers show by name. `color`: red, green, blue from 0 to 1.")
        .def("execute_callback", &execute_callback, nb::arg("function"),
             "Calls function(NativeHandle) when the command is put on the API's list.")
        .def_prop_ro("queue", [](const E&) { return CommandQueueType::graphics; })
        .def_prop_ro("recording_id", &E::recording_id)
        .def_prop_ro(
            "native_handle", [](const E&) { return NativeHandle{}; },
            "Unset: commands are recorded natively when they are submitted; see execute_callback.")
        .def("__repr__", [](const E& e) {
            return cat("CommandEncoder(\n  recording_id = ", e.recording_id(),
                       ",\n  finished = ", e.is_finished() ? "True" : "False", ",\n)");
        });
}

void bind_encoder(nb::module_& m)
{
    EncoderClass cls(m, "CommandEncoder", nb::dynamic_attr(), "Records commands.");
    bind_buffer_commands(cls);
    bind_texture_commands(cls);
    bind_encoder_rest(cls);
    cls.def(
        "generate_mips",
        [](nb::handle self, nb::args args, nb::kwargs kwargs) {
            in_python::generate_mips.get()(self, *args, **kwargs);
        },
        nb::sig("def generate_mips(self, texture: Texture, layer: int = 0) -> None"),
        "Fills the mips below the first of one layer, each from the one above by linear interpolation.");
    cls.def(
        "blit", [](nb::handle self, nb::args args, nb::kwargs kwargs) { in_python::blit.get()(self, *args, **kwargs); },
        nb::sig("def blit(self, dst: Texture | TextureView, src: Texture | TextureView, "
                "filter: TextureFilteringMode | str = ...) -> None"),
        "Fills the first layer and mip of a texture or view with those of another, scaled and converted.");
    bind_render_pass(m, cls);
    bind_acceleration_commands(cls);
    bind_ray_tracing_pass(m, cls);
    bind_coop_vec_commands(cls);
    nb::class_<CommandBuffer, DeviceObject>(m, "CommandBuffer", nb::dynamic_attr(),
                                            "Finished commands; may be submitted again.")
        .def_prop_ro("recording_id", &CommandBuffer::recording_id, "The id of its encoder.")
        .def_prop_ro(
            "queue", [](const CommandBuffer&) { return CommandQueueType::graphics; }, "That of its encoder.")
        .def_prop_ro("command_count", [](const CommandBuffer& b) { return b.commands().size(); })
        .def("__repr__",
             [](const CommandBuffer& b) { return cat("CommandBuffer(\n  commands = ", b.commands().size(), ",\n)"); });
}

/// What submit_command_buffer() gives where there are no fences.
bool is_empty_tuple(nb::handle values) { return PyTuple_CheckExact(values.ptr()) && !PyTuple_GET_SIZE(values.ptr()); }

void read_values(nb::handle values, std::vector<uint64_t>& out, const char* what)
{
    if (is_empty_tuple(values))
        return;
    for (nb::handle value : list_from(values, what))
        out.push_back(uint_from(value, what, ~0ull));
}

std::vector<ref<Fence>> fences_from(nb::handle values, const char* what)
{
    std::vector<ref<Fence>> fences;
    if (is_empty_tuple(values))
        return fences;
    for (nb::handle value : list_from(values, what)) {
        ref<Fence> fence;
        if (!nb::try_cast(value, fence) || !fence)
            fail_field(what, value, "Fences");
        fences.push_back(std::move(fence));
    }
    return fences;
}

ref<CommandBuffer> command_buffer_from(nb::handle item)
{
    ref<CommandBuffer> buffer;
    if (!nb::try_cast(item, buffer) || !buffer)
        fail(ErrorKind::type, "submit: ",
             nb::isinstance<CommandEncoder>(item)
                 ? std::string("got a CommandEncoder; submit what its finish() returns")
                 : cat("expected a CommandBuffer, got ", short_text(item), " (", class_name(item), ")"));
    return buffer;
}

uint64_t submit_request(Device* device, SubmitRequest& request)
{
    for (const ref<CommandBuffer>& buffer : request.command_buffers)
        buffer->check_guards();
    uint64_t id;
    {
        GilRelease release;
        id = submit(device, request);
    }
    if (std::exception_ptr error = std::exchange(callback_error, nullptr))
        std::rethrow_exception(error);
    return id;
}

uint64_t submit_buffer(Device* device, nb::handle buffer, std::optional<NativeHandle> stream)
{
    check_open(device);
    SubmitRequest request;
    request.command_buffers.push_back(command_buffer_from(buffer));
    request.stream = stream.value_or(NativeHandle{});
    return submit_request(device, request);
}

uint64_t submit_buffers(Device* device, nb::handle buffers, nb::handle wait_fences, nb::handle wait_values,
                        nb::handle signal_fences, nb::handle signal_values, std::optional<NativeHandle> stream)
{
    check_open(device);
    SubmitRequest request;
    for (nb::handle item : list_from(buffers, "submit 'command_buffers'"))
        request.command_buffers.push_back(command_buffer_from(item));
    request.wait_fences = fences_from(wait_fences, "submit 'wait_fences'");
    request.signal_fences = fences_from(signal_fences, "submit 'signal_fences'");
    read_values(wait_values, request.wait_values, "wait_fence_values");
    read_values(signal_values, request.signal_values, "signal_fence_values");
    request.stream = stream.value_or(NativeHandle{});
    resolve_fence_values(request);
    if (device->info().on_host)
        for (size_t i = 0; i < request.wait_fences.size(); ++i) // work runs in the submitting thread, so it waits here
            wait_interruptible(timeout_infinite,
                               [&](uint64_t ns) { return request.wait_fences[i]->wait(request.wait_values[i], ns); });
    return submit_request(device, request);
}

} // namespace

nb::list list_from(nb::handle value, const char* what)
{
    nb::object items = nb::steal(PySequence_List(value.ptr()));
    if (!items.is_valid()) {
        PyErr_Clear();
        fail_field(what, value, "a list");
    }
    return nb::borrow<nb::list>(items);
}

bool wait_interruptible(uint64_t timeout_ns, const std::function<bool(uint64_t)>& step)
{
    using Clock = std::chrono::steady_clock;
    const auto start = Clock::now();
    for (;;) {
        const uint64_t passed = uint64_t((Clock::now() - start) / std::chrono::nanoseconds(1));
        const uint64_t left = timeout_ns == timeout_infinite ? ~0ull : timeout_ns > passed ? timeout_ns - passed : 0;
        bool done;
        {
            GilRelease release;
            done = step(std::min<uint64_t>(left, 50'000'000));
        }
        if (done)
            return true;
        if (PyErr_CheckSignals() != 0)
            throw nb::python_error();
        if (left <= 50'000'000)
            return false;
    }
}

std::shared_ptr<nb::object> share_callable(nb::handle callable)
{
    return {new nb::object(nb::borrow(callable)), [](nb::object* object) {
                GilAcquire gil;
                if (gil.is_valid())
                    delete object;
            }};
}

void bind_commands(nb::module_& m, nb::class_<Device, Object>& cls)
{
    bind_fences(m);
    bind_ranges(m);
    bind_pass(m);
    bind_encoder(m);
    cls.def("_submit_one", &submit_buffer, nb::arg("command_buffer").none(), nb::arg("cuda_stream").none());
    cls.def("_submit", &submit_buffers, nb::arg("command_buffers"), nb::arg("wait_fences"),
            nb::arg("wait_fence_values"), nb::arg("signal_fences"), nb::arg("signal_fence_values"),
            nb::arg("cuda_stream").none());
}

} // namespace spy
