// Texture, TextureView, Sampler.
#include "python/device/bindings.h"
#include "device/content.h"
#include "python/integers.h"
#include "core/python_names.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/array.h>

namespace spy {

namespace {

/// Shape and dtype of one layer and mip as an array.
std::pair<std::vector<uint64_t>, std::string> array_form(const TextureDesc& desc, uint32_t mip)
{
    const SubresourceLayout layout = subresource_layout(desc, mip);
    const ScalarType scalar = host_scalar(desc.format);
    if (scalar == ScalarType::none)
        return {{layout.size_in_bytes}, "uint8"};
    std::vector<uint64_t> shape;
    if (desc.type == TextureType::texture_3d)
        shape.push_back(layout.depth);
    if (desc.type != TextureType::texture_1d && desc.type != TextureType::texture_1d_array)
        shape.push_back(layout.height);
    shape.push_back(layout.width);
    if (const uint32_t channels = format_info(desc.format).channel_count; channels > 1)
        shape.push_back(channels);
    return {shape, std::string(scalar_info(scalar).numpy_name)};
}

std::string shape_text(const std::vector<uint64_t>& shape)
{
    std::string text = "[";
    for (size_t i = 0; i < shape.size(); ++i)
        text += (i ? ", " : "") + std::to_string(shape[i]);
    return text + "]";
}

void check_array(nb::handle data, const TextureDesc& desc, uint32_t mip)
{
    const auto [shape, dtype] = array_form(desc, mip);
    const nb::object shape_of_data = nb::getattr(data, "shape", nb::none());
    if (!PyTuple_Check(shape_of_data.ptr()) || !nb::hasattr(data, "dtype"))
        fail(ErrorKind::type, "copy_from_numpy: expected a NumPy array, got ", short_text(data), " (", class_name(data),
             ")");
    const nb::tuple given = nb::borrow<nb::tuple>(shape_of_data);
    if (given.size() != shape.size())
        fail_value("copy_from_numpy: numpy array has wrong number of dimensions (expected ", shape.size(), "), got ",
                   given.size(), "; one layer and mip has the shape ", shape_text(shape));
    for (size_t i = 0; i < shape.size(); ++i)
        if (uint64_t size = 0; !nb::try_cast(given[i], size) || size != shape[i])
            fail_value("copy_from_numpy: numpy array has wrong shape (expected ", shape_text(shape), "), got ",
                       short_text(shape_of_data));
    const std::string given_dtype = nb::cast<std::string>(nb::str(nb::object(data.attr("dtype"))));
    if (given_dtype != dtype)
        fail_value("copy_from_numpy: numpy array has wrong dtype (expected ", dtype, " for format ",
                   format_name(desc.format), ", got ", given_dtype, "); pass array.astype(numpy.", dtype, ")");
}

void write_layer(Texture* texture, nb::handle data, Int<"copy_from_numpy 'layer'"> given_layer,
                 Int<"copy_from_numpy 'mip'"> given_mip)
{
    const uint32_t layer = given_layer, mip = given_mip;
    Device* device = open_device(texture);
    check_subresource(texture->desc(), layer, mip);
    check_array(data, texture->desc(), mip);
    HostBytes host(data, "copy_from_numpy");
    GilRelease release;
    device->write_texture(texture, layer, mip, host.bytes().data());
}

nb::object read_layer(Texture* texture, Int<"to_numpy 'layer'"> given_layer, Int<"to_numpy 'mip'"> given_mip)
{
    const uint32_t layer = given_layer, mip = given_mip;
    Device* device = open_device(texture);
    check_subresource(texture->desc(), layer, mip);
    const auto [shape, dtype] = array_form(texture->desc(), mip);
    return make_array(shape, dtype.c_str(),
                      [&](void* data, uint64_t) { device->read_texture(texture, layer, mip, data); });
}

/// A sampler of the device; null for None.
ref<Sampler> sampler_from(Device* device, nb::handle value, const char* what)
{
    ref<Sampler> sampler;
    if (value.is_none())
        return sampler;
    if (!nb::try_cast(value, sampler) || !sampler)
        fail_field(what, value, "a Sampler or None");
    check_same_device(device, sampler.get(), what);
    return sampler;
}

ref<TextureView> create_view(Texture* texture, nb::args args, nb::kwargs kwargs)
{
    Device* device = open_device(texture);
    const auto fields = Fields<PyTextureViewDesc>::from_arguments(args, kwargs, "create_view");
    ref<Sampler> sampler = sampler_from(device, fields.sampler, "create_view 'sampler'");
    TextureViewDesc desc;
    desc.format = fields.format;
    desc.aspect = fields.aspect;
    desc.range = fields.range;
    desc.label = fields.label;
    ref<TextureView> view = device->create_texture_view(texture, resolve_view_desc(texture->desc(), desc));
    view->set_sampler(std::move(sampler));
    return view;
}

template <uint32_t TextureDesc::* Size>
auto mip_size_getter()
{
    return [](const Texture& t, Int<"'mip'"> given) {
        const uint32_t mip = given;
        check_subresource(t.desc(), 0, mip);
        return std::max(1u, t.desc().*Size >> mip);
    };
}

void bind_subresource_layout(nb::module_& m)
{
    nb::class_<SubresourceLayout>(m, "SubresourceLayout", "Bytes and pitches of one layer and mip in linear memory.")
        .def_prop_ro("size",
                     [](const SubresourceLayout& l) {
                         const uint32_t size[] = {l.width, l.height, l.depth};
                         return uints_to_python(size, 3);
                     })
        .def_ro("col_pitch", &SubresourceLayout::col_pitch)
        .def_ro("row_pitch", &SubresourceLayout::row_pitch)
        .def_ro("slice_pitch", &SubresourceLayout::slice_pitch)
        .def_ro("size_in_bytes", &SubresourceLayout::size_in_bytes)
        .def_ro("block_width", &SubresourceLayout::block_width)
        .def_ro("block_height", &SubresourceLayout::block_height)
        .def_ro("row_count", &SubresourceLayout::row_count)
        .def("__repr__", [](const SubresourceLayout& l) {
            return cat("SubresourceLayout(\n  size = ", l.width, " x ", l.height, " x ", l.depth,
                       ",\n  row_pitch = ", l.row_pitch, ",\n  size_in_bytes = ", l.size_in_bytes, ",\n)");
        });
}

using TextureClass = nb::class_<Texture, DeviceObject>;

void bind_texture_fields(TextureClass& cls)
{
    cls.def_prop_ro("desc", [](const Texture& t) { return to_python(t); })
        .def_prop_ro("type", [](const Texture& t) { return t.desc().type; })
        .def_prop_ro("format", [](const Texture& t) { return t.desc().format; })
        .def_prop_ro("label", [](const Texture& t) { return t.desc().label; })
        .def_prop_ro("width", [](const Texture& t) { return t.desc().width; })
        .def_prop_ro("height", [](const Texture& t) { return t.desc().height; })
        .def_prop_ro("depth", [](const Texture& t) { return t.desc().depth; })
        .def_prop_ro("array_length", [](const Texture& t) { return t.desc().array_length; })
        .def_prop_ro("mip_count", [](const Texture& t) { return t.desc().mip_count; })
        .def_prop_ro("layer_count", [](const Texture& t) { return t.desc().layer_count(); })
        .def_prop_ro("subresource_count", [](const Texture& t) { return t.desc().layer_count() * t.desc().mip_count; })
        .def_prop_ro("native_handle",
                     [](const Texture& t) {
                         open_device(&t);
                         return t.native_handle();
                     })
        .def_prop_ro("shared_handle",
                     [](Texture& t) {
                         open_device(&t);
                         if (!has_flag(t.desc().usage, TextureUsage::shared))
                             fail_runtime(summary(&t),
                                          " was created without the usage flag shared, so it has no shared handle");
                         return t.shared_handle();
                     })
        .def_prop_ro(
            "memory_usage", [](nb::handle self) { return in_python::memory_usage.get()(self); },
            nb::sig("def memory_usage(self) -> slangpy.device.MemoryUsage"), "Bytes held: `.device` and `.host`.")
        .def_prop_ro("_memory_bytes", [](const Texture& t) {
            if (const uint64_t bytes = t.memory_usage())
                return bytes;
            uint64_t total = 0;
            for (uint32_t mip = 0; mip < t.desc().mip_count; ++mip)
                total += subresource_layout(t.desc(), mip).size_in_bytes * t.desc().layer_count();
            return total;
        });
}

nb::object as_array(nb::handle self, nb::handle dtype, nb::handle copy)
{
    return in_python::as_array.get()(self, dtype, copy);
}

std::string texture_repr(const Texture& t)
{
    return cat("Texture(\n  type = ", name_of(t.desc().type), ",\n  format = ", format_name(t.desc().format),
               ",\n  size = ", t.desc().width, " x ", t.desc().height, " x ", t.desc().depth,
               ",\n  array_length = ", t.desc().array_length, ",\n  mip_count = ", t.desc().mip_count,
               ",\n  usage = ", names_of(t.desc().usage), ",\n  label = '", t.desc().label, "',\n)");
}

void bind_texture_methods(TextureClass& cls)
{
    cls.def("get_mip_width", mip_size_getter<&TextureDesc::width>(), nb::arg("mip") = 0, "Texels of a mip level.")
        .def("get_mip_height", mip_size_getter<&TextureDesc::height>(), nb::arg("mip") = 0, "Texels of a mip level.")
        .def("get_mip_depth", mip_size_getter<&TextureDesc::depth>(), nb::arg("mip") = 0,
             "Texels of a mip level; 1 if not 3-D.")
        .def(
            "get_mip_size",
            [](const Texture& t, Int<"get_mip_size 'mip'"> mip) {
                check_subresource(t.desc(), 0, mip);
                const SubresourceLayout l = subresource_layout(t.desc(), mip);
                const uint32_t size[] = {l.width, l.height, l.depth};
                return uints_to_python(size, 3);
            },
            nb::arg("mip") = 0, "Width, height and depth of a mip level, in texels: `uint3`.")
        .def(
            "get_subresource_layout",
            [](const Texture& t, Int<"get_subresource_layout 'mip'"> mip,
               Int<"get_subresource_layout 'row_alignment'"> row_alignment) {
                check_subresource(t.desc(), 0, mip);
                return subresource_layout(t.desc(), mip, row_alignment);
            },
            nb::arg("mip") = 0, nb::arg("row_alignment") = 1, "`row_alignment` in bytes; 1 = packed.")
        .def(
            "to_bitmap",
            [](nb::handle self, nb::args args, nb::kwargs kwargs) {
                return in_python::texture_to_bitmap.get()(self, *args, **kwargs);
            },
            nb::sig("def to_bitmap(self, layer: int = 0, mip: int = 0) -> slangpy.images.Bitmap"),
            "The texels of one layer and mip.")
        .def(
            "save",
            [](nb::handle self, nb::args args, nb::kwargs kwargs) {
                in_python::save_texture.get()(self, *args, **kwargs);
            },
            nb::sig(
                "def save(self, path: str | os.PathLike[str], layer: int = 0, mip: int = 0, srgb: bool | None = None, "
                "quality: int = -1) -> None"),
            "Writes one layer and mip as a picture; see slangpy.save_image.")
        .def("create_view", &create_view, nb::sig(Fields<PyTextureViewDesc>::signature("create_view", "TextureView")),
             "A view of part of the texture: some layers and mips, or another format of the same texel size.")
        .def(
            "to_numpy", &read_layer, nb::arg("layer") = 0, nb::arg("mip") = 0,
            "One layer and mip: (w,), (h, w) or (d, h, w), plus a channel axis when there are several channels; packed "
            "and compressed formats as 1-D uint8.")
        .def("copy_from_numpy", &write_layer, nb::arg("data"), nb::arg("layer") = 0, nb::arg("mip") = 0,
             "Takes exactly the array that to_numpy gives.")
        .def("__array__", &as_array, nb::arg("dtype") = nb::none(), nb::arg("copy") = nb::none())
        .def("__repr__", &texture_repr);
}

void bind_texture_view(nb::module_& m)
{
    nb::class_<TextureView, DeviceObject> view(m, "TextureView", nb::dynamic_attr(), "Part of a texture.");
    bind_handles_of(view);
    view.def_prop_ro("texture", [](const TextureView& v) { return ref<Texture>(v.texture()); })
        .def_prop_ro("desc", [](const TextureView& v) { return to_python(v); })
        .def_prop_ro("format", [](const TextureView& v) { return v.desc().format; })
        .def_prop_ro("aspect", [](const TextureView& v) { return v.desc().aspect; })
        .def_prop_ro(
            "subresource_range", [](const TextureView& v) { return PySubresourceRange(v.desc().range); },
            "Resolved layers and mips.")
        .def_prop_ro("label", [](const TextureView& v) { return v.desc().label; })
        .def_prop_ro("native_handle",
                     [](const TextureView& v) {
                         open_device(&v);
                         return v.native_handle();
                     })
        .def("__repr__", [](const TextureView& v) {
            const SubresourceRange& r = v.desc().range;
            return cat("TextureView(\n  format = ", format_name(v.desc().format), ",\n  layers = ", r.layer, " + ",
                       r.layer_count, ",\n  mips = ", r.mip, " + ", r.mip_count, ",\n  label = '", v.desc().label,
                       "',\n)");
        });
    nb::class_<Sampler, DeviceObject> sampler(m, "Sampler", nb::dynamic_attr(),
                                              "How textures are filtered and addressed.");
    bind_handles_of(sampler);
    sampler.def_prop_ro("desc", [](const Sampler& s) { return s.desc(); })
        .def_prop_ro("native_handle",
                     [](const Sampler& s) {
                         open_device(&s);
                         return s.native_handle();
                     })
        .def("__repr__", [](const Sampler& s) { return "Sampler" + Fields<SamplerDesc>::repr(s.desc()).substr(11); });
}

} // namespace

namespace {

/// The scalar of an array's dtype, or of the format of another buffer of Python; `none` for what is no plain number.
ScalarType scalar_of(nb::handle value, nb::handle dtype, const char* function)
{
    char kind = 0;
    int64_t size = 0;
    if (!dtype.is_none() && nb::hasattr(dtype, "kind") && nb::hasattr(dtype, "itemsize")) {
        if (!nb::cast<bool>(nb::getattr(dtype, "isnative", nb::bool_(true))))
            fail_value(function, ": the array's dtype ", short_text(dtype),
                       " has the other byte order; pass a.astype(a.dtype.newbyteorder('='))");
        kind = nb::cast<std::string>(nb::str(dtype.attr("kind")))[0];
        size = nb::cast<int64_t>(dtype.attr("itemsize")) / (kind == 'c' ? 2 : 1);
        kind = kind == 'c' ? 'f' : kind;
    } else if (dtype.is_none()) {
        nb::object view = nb::steal(PyMemoryView_FromObject(value.ptr()));
        if (!view.is_valid())
            nb::raise_python_error();
        const std::string format = nb::cast<std::string>(view.attr("format"));
        size = nb::cast<int64_t>(view.attr("itemsize"));
        if (format.size() == 1)
            kind = strchr("efd", format[0]) ? 'f' : strchr("bhilqn", format[0]) ? 'i' : format[0] == '?' ? 'b' : 0;
    }
    if (kind == 'b')
        return ScalarType::bool_;
    return kind == 'f' || kind == 'i'
        ? scalar_from_dlpack(kind == 'f' ? uint8_t(kDLFloat) : uint8_t(kDLInt), uint8_t(size * 8))
        : ScalarType::none;
}

} // namespace

HostBytes::HostBytes(nb::handle value, const char* function) : m_owner(nb::borrow(value))
{
    if (!PyObject_CheckBuffer(value.ptr()))
        fail(ErrorKind::type, function, ": expected a contiguous NumPy array, got ", short_text(value), " (",
             class_name(value), ")");
    nb::object dtype = nb::getattr(value, "dtype", nb::none());
    if (nb::cast<bool>(nb::getattr(dtype, "hasobject", nb::bool_(false))))
        fail(ErrorKind::type, function, ": the array holds Python objects (dtype ", short_text(dtype),
             "), which have no bytes for the device; convert it with astype() first");
    m_content = content_of(scalar_of(value, dtype, function));
    if (PyObject_GetBuffer(value.ptr(), &m_view, PyBUF_ND) == 0)
        return;
    PyErr_Clear();
    if (PyObject_GetBuffer(value.ptr(), &m_view, PyBUF_STRIDES) == 0) {
        PyBuffer_Release(&m_view);
        fail_value(function, ": the array must be C-contiguous; pass numpy.ascontiguousarray(a)");
    }
    nb::raise_python_error();
}

HostBytes::~HostBytes() { PyBuffer_Release(&m_view); }

nb::object make_array(const std::vector<uint64_t>& shape, const char* dtype,
                      const std::function<void(void*, uint64_t)>& fill)
{
    nb::object array = nb::module_::import_("numpy").attr("empty")(nb::tuple(nb::cast(shape)), dtype);
    Py_buffer view;
    if (PyObject_GetBuffer(array.ptr(), &view, PyBUF_WRITABLE | PyBUF_ND) != 0)
        nb::raise_python_error();
    struct Guard {
        Py_buffer* view;
        ~Guard() { PyBuffer_Release(view); }
    } guard{&view};
    if (view.len) {
        GilRelease release;
        fill(view.buf, uint64_t(view.len));
    }
    return array;
}

void check_texels(const TextureDesc& desc, const HostBytes& data, const char* call)
{
    const std::string why = content_misfit(data.content(), desc.format);
    if (!why.empty())
        fail(ErrorKind::type, call, ": ", why);
}

/// The data that a texture is created with: any contiguous array of its bytes.
void write_first_layer(Device* device, Texture* texture, nb::handle data)
{
    HostBytes host(data, "create_texture 'data'");
    const uint64_t expected = subresource_layout(texture->desc(), 0).size_in_bytes;
    if (host.bytes().size() != expected) {
        const auto [shape, dtype] = array_form(texture->desc(), 0);
        const nb::object given_shape = nb::getattr(data, "shape", nb::none());
        const nb::object given_dtype = nb::getattr(data, "dtype", nb::none());
        fail_value("create_texture 'data': got ", host.bytes().size(), " bytes (shape ", short_text(given_shape),
                   ", dtype ", short_text(given_dtype), "), expected ", expected,
                   " for the first layer and mip, as of an array of shape ", shape_text(shape), " and dtype ", dtype);
    }
    check_texels(texture->desc(), host, "create_texture 'data'");
    GilRelease release;
    device->write_texture(texture, 0, 0, host.bytes().data());
}

ref<Texture> create_texture(Device* device, const PyTextureDesc& fields)
{
    check_open(device);
    ref<Sampler> sampler = sampler_from(device, fields.sampler, "create_texture 'sampler'");
    ref<Texture> texture = device->create_texture(resolve_texture_desc(fields));
    texture->set_sampler(std::move(sampler));
    if (!fields.data.is_none())
        write_first_layer(device, texture.get(), fields.data);
    return texture;
}

void bind_resources(nb::module_& m)
{
    bind_buffer(m);
    bind_subresource_layout(m);
    TextureClass texture(m, "Texture", nb::dynamic_attr(), "Texels with layers and mips.");
    bind_texture_fields(texture);
    bind_texture_methods(texture);
    bind_handles_of(texture);
    bind_texture_view(m);
}

} // namespace spy
