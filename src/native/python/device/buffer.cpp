// Buffer.
#include "python/device/bindings.h"
#include "core/python_names.h"

#include "device/content.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/array.h>

namespace spy {

namespace {

using ByteArray = nb::ndarray<nb::array_api, uint8_t, nb::ndim<1>, nb::c_contig>;

nb::object read_all(Buffer* buffer)
{
    open_device(buffer);
    const BufferDesc& desc = buffer->desc();
    const ScalarType scalar = desc.format == Format::undefined ? ScalarType::uint8 : host_scalar(desc.format);
    const FormatInfo& info = format_info(desc.format);
    auto fill = [&](void* data, uint64_t size) { read_buffer(buffer, 0, data, size); };
    if (desc.format == Format::undefined || scalar == ScalarType::none || desc.size % info.bytes_per_block)
        return make_array({desc.size}, "uint8", fill);
    const uint64_t texels = desc.size / info.bytes_per_block;
    const char* dtype = scalar_info(scalar).numpy_name.data();
    return info.channel_count > 1 ? make_array({texels, info.channel_count}, dtype, fill)
                                  : make_array({texels}, dtype, fill);
}

/// Where the buffer says what its elements are: a format, or their size.
void check_format(const BufferDesc& desc, ScalarType content, const char* call)
{
    if (const std::string why = content_misfit(content, desc.format); !why.empty())
        fail(ErrorKind::type, call, " 'data': ", why);
    if (content != ScalarType::none && desc.struct_size && desc.struct_size < scalar_info(content).size)
        fail(ErrorKind::type, call, " 'data': ",
             content_misfit(content, uint32_t(desc.struct_size),
                            cat("elements of ", desc.struct_size, " bytes (struct_size)")));
}

void write_all(Buffer* buffer, nb::handle data)
{
    open_device(buffer);
    HostBytes host(data, "copy_from_numpy");
    if (host.bytes().size() > buffer->desc().size)
        fail_value("copy_from_numpy: numpy array is larger than the buffer (", host.bytes().size(), " > ",
                   buffer->desc().size, ")");
    check_format(buffer->desc(), host.content(), "copy_from_numpy");
    GilRelease release;
    write_buffer(buffer, 0, host.bytes().data(), host.bytes().size());
    buffer->set_content(host.content());
}

/// The bytes of a buffer as an array of nanobind, which speaks DLPack. Shares memory.
/// Of methods that take the Python object as well.
Buffer* buffer_of(nb::handle self)
{
    Buffer* buffer = nullptr;
    if (!nb::try_cast<Buffer*>(self, buffer, false) || !buffer)
        fail_field("buffer", self, "a Buffer");
    return buffer;
}

nb::object export_bytes(nb::handle self)
{
    Buffer* buffer = buffer_of(self);
    Device* device = open_device(buffer);
    void* data = buffer->host_pointer();
    int dl_device = nb::device::cpu::value, dl_id = 0;
    if (const uint64_t address = buffer->cuda_address()) {
        data = reinterpret_cast<void*>(address);
        dl_device = nb::device::cuda::value;
        dl_id = device->cuda_index();
    } else if (!device->info().on_host) {
        fail_runtime(device->cuda_index() < 0
                         ? "Device does not support CUDA interop: the memory of "
                         : "only buffers with BufferUsage.shared are shared with CUDA: the memory of ",
                     summary(buffer), " cannot be shared; use to_numpy()");
    }
    const size_t shape[] = {size_t(buffer->desc().size)};
    buffer->mark_exported();
    return nb::cast(ByteArray(data, 1, shape, self, nullptr, nb::dtype<uint8_t>(), dl_device, dl_id));
}

nb::object map_buffer(nb::handle self)
{
    Buffer* buffer = buffer_of(self);
    Device* device = open_device(buffer);
    const BufferDesc& desc = buffer->desc();
    nb::object existing = nb::getattr(self, "_mapped", nb::none());
    if (!existing.is_none())
        fail_runtime("map: ", summary(buffer), " is mapped already");
    if (desc.memory_type == MemoryType::device_local)
        fail_runtime("map: only buffers of memory type 'upload' or 'read_back' can be mapped; ", summary(buffer),
                     " is 'device_local'");
    // A copy, written back by unmap: the memory itself may go away under a memoryview when the device is closed.
    nb::object bytes = nb::steal(PyByteArray_FromStringAndSize(nullptr, Py_ssize_t(desc.size)));
    if (!bytes.is_valid())
        nb::raise_python_error();
    void* data = PyByteArray_AsString(bytes.ptr());
    if (desc.memory_type == MemoryType::read_back) {
        GilRelease release;
        device->read_buffer(buffer, 0, data, desc.size);
    } else if (buffer->host_pointer()) {
        const Device::Use use(*device); // close() in another thread waits
        memcpy(data, buffer->host_pointer(), desc.size);
    } else {
        memset(data, 0, desc.size);
    }
    self.attr("_mapped") = bytes;
    nb::object view = nb::steal(PyMemoryView_FromObject(bytes.ptr()));
    return desc.memory_type == MemoryType::read_back ? view.attr("toreadonly")() : view;
}

void unmap_buffer(nb::handle self)
{
    Buffer* buffer = buffer_of(self);
    open_device(buffer);
    nb::object bytes = nb::getattr(self, "_mapped", nb::none());
    if (bytes.is_none())
        fail_runtime("unmap: ", summary(buffer), " is not mapped");
    if (buffer->desc().memory_type == MemoryType::upload)
        write_buffer(buffer, 0, PyByteArray_AsString(bytes.ptr()), buffer->desc().size);
    self.attr("_mapped") = nb::none();
}

using BufferClass = nb::class_<Buffer, DeviceObject>;

void bind_buffer_contents(BufferClass& cls)
{
    cls.def("to_numpy", &read_all,
            "The contents as a new array: 1-D uint8; with a format, of its scalar, (n, channels) for several channels. "
            "Waits for earlier work.")
        .def("copy_from_numpy", &write_all, nb::arg("data"),
             "Writes a contiguous array to the start of the buffer; it may be shorter than the buffer.")
        .def(
            "to_torch",
            [](nb::handle self, nb::args args, nb::kwargs kwargs) {
                return in_python::buffer_to_torch.get()(self, *args, **kwargs);
            },
            nb::sig(
                "def to_torch(self, type: typing.Any = ..., shape: Sequence[int] = (), strides: Sequence[int] = (), "
                "offset: int = 0) -> typing.Any"),
            "A torch tensor that shares the memory. `strides` and `offset` count elements.")
        .def(
            "__array__",
            [](nb::handle self, nb::handle dtype, nb::handle copy) {
                return in_python::as_array.get()(self, dtype, copy);
            },
            nb::arg("dtype") = nb::none(), nb::arg("copy") = nb::none())
        .def("map", &map_buffer, nb::sig("def map(self) -> memoryview"),
             "The contents of upload or read-back memory; what is written reaches the buffer at unmap().")
        .def("unmap", &unmap_buffer, nb::sig("def unmap(self) -> None"),
             "Ends map(): what was written to upload memory reaches the buffer. RuntimeError if it is not mapped.")
        .def(
            "mapped", [](nb::handle self) { return in_python::mapped.get()(self); },
            nb::sig("def mapped(self) -> contextlib.AbstractContextManager[memoryview]"),
            "`with buffer.mapped() as view:` maps and unmaps.")
        .def(
            "__dlpack__",
            [](nb::handle self, nb::kwargs kwargs) { return export_bytes(self).attr("__dlpack__")(**kwargs); },
            "The bytes as a DLPack capsule: 1-D uint8, no copy.")
        .def("__dlpack_device__", [](nb::handle self) { return export_bytes(self).attr("__dlpack_device__")(); })
        .def("__repr__", [](const Buffer& b) {
            return cat("Buffer(\n  size = ", b.desc().size, ",\n  struct_size = ", b.desc().struct_size,
                       ",\n  format = ", format_name(b.desc().format),
                       ",\n  memory_type = ", name_of(b.desc().memory_type), ",\n  usage = ", names_of(b.desc().usage),
                       ",\n  label = '", b.desc().label, "',\n)");
        });
}

} // namespace

void bind_buffer(nb::module_& m)
{
    m.def("_export_bytes", &export_bytes, nb::arg("buffer"));
    BufferClass cls(m, "Buffer", nb::dynamic_attr(), "Memory of a device.");
    cls.def_prop_ro("desc", [](const Buffer& b) { return to_python(b.desc()); })
        .def_prop_ro(
            "size", [](const Buffer& b) { return b.desc().size; }, "Bytes.")
        .def_prop_ro(
            "struct_size", [](const Buffer& b) { return b.desc().struct_size; },
            "Bytes from one element to the next; 0 when not structured.")
        .def_prop_ro("label", [](const Buffer& b) { return b.desc().label; })
        .def_prop_ro(
            "device_address",
            [](const Buffer& b) {
                open_device(&b);
                return b.device_address();
            },
            "Address in device memory; 0 where the API has no addresses.")
        .def_prop_ro("native_handle",
                     [](const Buffer& b) {
                         open_device(&b);
                         return b.native_handle();
                     })
        .def_prop_ro(
            "shared_handle",
            [](Buffer& b) {
                open_device(&b);
                if (!has_flag(b.desc().usage, BufferUsage::shared))
                    fail_runtime(summary(&b), " was created without the usage flag shared, so it has no shared handle");
                return b.shared_handle();
            },
            "Handle for other APIs; needs BufferUsage.shared.")
        .def_prop_ro(
            "memory_usage", [](nb::handle self) { return in_python::memory_usage.get()(self); },
            nb::sig("def memory_usage(self) -> slangpy.device.MemoryUsage"), "Bytes held: `.device` and `.host`.");
    bind_buffer_contents(cls);
    bind_handles_of(cls);
    m.def(
        "_content_misfit",
        [](int content, const TypeLayout* element) { return content_misfit(ScalarType(content), *element); },
        nb::arg("content"), nb::arg("element"),
        "Why elements cannot be what a buffer was filled with; empty if they can.");
}

ref<Buffer> create_buffer(Device* device, const PyBufferDesc& fields)
{
    check_open(device);
    ref<TypeLayout> layout;
    if (!fields.resource_type_layout.is_none()) {
        nb::object given = fields.resource_type_layout;
        for (const char* name : {"type_layout", "plain"}) // reflection cursors, reflected layouts
            if (!nb::isinstance<TypeLayout>(given) && nb::hasattr(given, name))
                given = given.attr(name);
        if (!nb::try_cast(given, layout))
            fail(ErrorKind::type,
                 "create_buffer 'resource_type_layout': expected a type layout or a reflection cursor, got ",
                 short_text(fields.resource_type_layout));
    }
    std::unique_ptr<HostBytes> data;
    std::optional<uint64_t> data_size;
    if (!fields.data.is_none()) {
        data = std::make_unique<HostBytes>(fields.data, "create_buffer 'data'");
        data_size = data->bytes().size();
    }
    BufferDesc desc = resolve_buffer_desc(fields, fields.element_count, layout.get(), data_size);
    if (data && desc.memory_type == MemoryType::read_back)
        fail_runtime("Cannot write data to buffer with memory type 'read_back'. Write to a buffer of type "
                     "'device_local' or 'upload', and "
                     "copy that.");
    if (data && layout && layout->element)
        if (const std::string why = content_misfit(data->content(), *layout->element); !why.empty())
            fail(ErrorKind::type, "create_buffer 'data': ", why);
    if (data)
        check_format(desc, data->content(), "create_buffer");
    desc.uninitialized = bool(data);
    GilRelease release;
    ref<Buffer> buffer = device->create_buffer(desc);
    if (data) {
        device->write_buffer(buffer.get(), 0, data->bytes().data(), desc.size);
        buffer->set_content(data->content());
    }
    return buffer;
}

} // namespace spy
