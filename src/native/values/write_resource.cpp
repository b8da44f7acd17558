// Buffers, textures, samplers, pointers and TensorView structs as values.
#include "values/nb.h"

#include "device/cursor.h"
#include "device/texel_format.h"
#include "device/texture_shape.h"
#include "values/writer.h"

#include <nanobind/ndarray.h>

namespace spy {
namespace {

nb::object attribute(PyObject* value, const char* name) { return nb::getattr(nb::handle(value), name, nb::none()); }

bool is_writable(ResourceAccess access) { return access != ResourceAccess::none && access != ResourceAccess::read; }

const char* shape_name(ResourceShape shape)
{
    switch (shape) {
    case ResourceShape::texture_1d: return "1D texture";
    case ResourceShape::texture_2d: return "2D texture";
    case ResourceShape::texture_3d: return "3D texture";
    case ResourceShape::texture_cube: return "cube texture";
    case ResourceShape::texture_1d_array: return "1D texture array";
    case ResourceShape::texture_2d_array: return "2D texture array";
    case ResourceShape::texture_cube_array: return "cube texture array";
    case ResourceShape::texture_2d_multisample: return "multisampled 2D texture";
    case ResourceShape::texture_2d_multisample_array: return "multisampled 2D texture array";
    case ResourceShape::structured_buffer:
    case ResourceShape::byte_address_buffer:
    case ResourceShape::texture_buffer: return "Buffer";
    case ResourceShape::acceleration_structure: return "AccelerationStructure";
    default: return "resource";
    }
}

bool is_texture(ResourceShape shape)
{
    return shape >= ResourceShape::texture_1d && shape != ResourceShape::texture_buffer &&
        shape != ResourceShape::structured_buffer && shape != ResourceShape::byte_address_buffer &&
        shape != ResourceShape::unknown && shape != ResourceShape::acceleration_structure;
}

bool shape_fits(ResourceShape shape, TextureType type, bool single_layer)
{
    using T = TextureType;
    switch (shape) {
    case ResourceShape::texture_1d: return type == T::texture_1d || (single_layer && type == T::texture_1d_array);
    case ResourceShape::texture_1d_array: return type == T::texture_1d_array || type == T::texture_1d;
    case ResourceShape::texture_2d:
        return type == T::texture_2d ||
            (single_layer && (type == T::texture_2d_array || type == T::texture_cube || type == T::texture_cube_array));
    case ResourceShape::texture_2d_array:
        return type == T::texture_2d_array || type == T::texture_2d || type == T::texture_cube ||
            type == T::texture_cube_array;
    case ResourceShape::texture_3d: return type == T::texture_3d;
    case ResourceShape::texture_cube: return type == T::texture_cube || type == T::texture_cube_array;
    case ResourceShape::texture_cube_array: return type == T::texture_cube_array || type == T::texture_cube;
    case ResourceShape::texture_2d_multisample: return type == T::texture_2d_ms;
    case ResourceShape::texture_2d_multisample_array: return type == T::texture_2d_ms_array;
    default: return true;
    }
}

void check_buffer_usage(const Buffer& buffer, bool writable, const TypeLayout& layout, const ValuePath& path)
{
    const BufferUsage usage = buffer.desc().usage;
    const bool write_ok = has_flag(usage, BufferUsage::unordered_access);
    if (writable && !write_ok)
        fail_at(path, ErrorKind::value,
                cat("a buffer for ", type_text(layout), " must be created with BufferUsage.unordered_access"));
    if (!write_ok && !has_flag(usage, BufferUsage::shader_resource))
        fail_at(path, ErrorKind::value,
                cat("a buffer for ", type_text(layout),
                    " must be created with BufferUsage.shader_resource or BufferUsage.unordered_access"));
}

bool kind_fits(ScalarType scalar, FormatType type)
{
    const ScalarInfo& info = scalar_info(scalar);
    if (type == FormatType::uint)
        return info.is_integer && !info.is_signed;
    if (type == FormatType::sint)
        return info.is_integer && info.is_signed;
    return type == FormatType::unknown || info.is_float;
}

void check_texture(const TextureDesc& desc, Format format, bool single_layer, const TypeLayout& layout,
                   const ValuePath& path)
{
    if (!shape_fits(layout.resource_shape, desc.type, single_layer)) {
        fail_at(path, ErrorKind::value,
                cat("expected a ", shape_name(layout.resource_shape), " for ", type_text(layout),
                    ", got a TextureType.", type_name(desc.type)));
    }
    const TextureUsage needed = is_writable(layout.resource_access) ? TextureUsage::unordered_access
                                                                    : TextureUsage::shader_resource;
    if (!has_flag(desc.usage, needed))
        fail_at(path, ErrorKind::value,
                cat("a texture for ", type_text(layout), " must be created with TextureUsage.",
                    needed == TextureUsage::unordered_access ? "unordered_access" : "shader_resource"));
    if (layout.scalar != ScalarType::none && !kind_fits(layout.scalar, format_info(format).type))
        fail_at(path, ErrorKind::value,
                cat("texels of format ", format_name(format), " cannot be seen as ",
                    scalar_info(layout.scalar).slang_name, " (", type_text(layout), ")"));
}

void set_resource(const Place& place, ref<Object> object) { place.object->set_resource(place.slot, std::move(object)); }

/// The storage of a contiguous Tensor that begins at the start of its buffer; null for other objects.
Buffer* tensor_storage(PyObject* value, const TypeLayout& layout, const ValuePath& path)
{
    nb::object storage = attribute(value, "storage");
    Buffer* buffer = nullptr;
    if (!nb::try_cast<Buffer*>(storage, buffer, false) || !buffer)
        return nullptr;
    nb::object is_contiguous = attribute(value, "is_contiguous"), offset = attribute(value, "offset");
    const bool whole = !is_contiguous.is_none() && nb::cast<bool>(is_contiguous()) &&
        (offset.is_none() || nb::cast<int64_t>(offset) == 0);
    if (!whole)
        fail_at(
            path, ErrorKind::value,
            cat("a Tensor for ", type_text(layout), " must be contiguous and start at offset 0; pass tensor.copy()"));
    return buffer;
}

bool write_buffer_slot(const TypeLayout& layout, const Place& place, PyObject* value, const ValuePath& path)
{
    Buffer* buffer = nullptr;
    if (!nb::try_cast<Buffer*>(nb::handle(value), buffer, false) || !buffer)
        buffer = tensor_storage(value, layout, path);
    if (!buffer)
        return false;
    check_buffer_usage(*buffer, is_writable(layout.resource_access), layout, path);
    set_resource(place, ref<Object>(buffer));
    return true;
}

bool write_texture_slot(const TypeLayout& layout, const Place& place, PyObject* value, const ValuePath& path)
{
    nb::handle handle(value);
    if (nb::isinstance<Texture>(handle)) {
        auto* texture = nb::cast<Texture*>(handle);
        check_texture(texture->desc(), texture->desc().format, false, layout, path);
        set_resource(place, ref<Object>(texture));
        return true;
    }
    if (!nb::isinstance<TextureView>(handle))
        return false;
    auto* view = nb::cast<TextureView*>(handle);
    const Format format = view->desc().format == Format::undefined ? view->texture()->desc().format
                                                                   : view->desc().format;
    check_texture(view->texture()->desc(), format, view->desc().range.layer_count == 1, layout, path);
    set_resource(place, ref<Object>(view));
    return true;
}

[[noreturn]] void fail_resource(const TypeLayout& layout, PyObject* value, const ValuePath& path)
{
    const char* wanted = layout.kind == TypeKind::sampler_state ? "Sampler" : shape_name(layout.resource_shape);
    fail_at(path, ErrorKind::type,
            cat("expected a ", wanted, " or None for ", type_text(layout), ", got ", short_repr(value), " (",
                type_name(value), ")"));
}

} // namespace

bool write_resource(const TypeLayout& layout, const Place& place, PyObject* value, const ValuePath& path)
{
    if (!place.object)
        fail_at(path, ErrorKind::value, cat(type_text(layout), " is a resource and cannot be stored in buffer memory"));
    if (value == Py_None) {
        set_resource(place, nullptr);
        return true;
    }
    bool written = false;
    if (layout.kind == TypeKind::sampler_state) {
        Sampler* sampler = nullptr;
        written = nb::try_cast<Sampler*>(nb::handle(value), sampler, false) && sampler;
        if (written)
            set_resource(place, ref<Object>(sampler));
    } else if (layout.resource_shape == ResourceShape::acceleration_structure) {
        fail_at(path, ErrorKind::not_implemented,
                "acceleration structures are not there yet; use a Buffer of "
                "triangles and intersect in the shader");
    } else if (is_texture(layout.resource_shape)) {
        written = write_texture_slot(layout, place, value, path);
    } else {
        written = write_buffer_slot(layout, place, value, path);
    }
    if (!written && !nb::hasattr(value, "get_this"))
        fail_resource(layout, value, path);
    return written;
}

bool pointer_from_python(PyObject* value, uint64_t& address, ref<Object>& owner, const ValuePath& path)
{
    if (value == Py_None) {
        address = 0;
        return true;
    }
    Buffer* buffer = nullptr;
    if (nb::try_cast<Buffer*>(nb::handle(value), buffer, false) && buffer) {
        address = buffer->device_address();
        if (!address)
            fail_at(path, ErrorKind::value, "this buffer has no device address");
        owner = buffer;
        return true;
    }
    Number number;
    if (!PyBool_Check(value) && !PyFloat_Check(value) && number_from_python(value, number) &&
        number.kind != Number::Kind::real) {
        if (store_number(ScalarType::uint64, 1, reinterpret_cast<uint8_t*>(&address), number) != StoreResult::ok)
            fail_number(StoreResult::out_of_range, "pointer", ScalarType::uint64, value, path);
        return true;
    }
    nb::object first = attribute(value, "device_address");
    if (first.is_none())
        return false;
    nb::object is_contiguous = attribute(value, "is_contiguous");
    if (!is_contiguous.is_none() && !nb::cast<bool>(is_contiguous()))
        fail_at(path, ErrorKind::value, "a Tensor for a pointer must be contiguous; pass tensor.contiguous()");
    address = nb::cast<uint64_t>(first);
    nb::object storage = attribute(value, "storage");
    if (nb::try_cast<Buffer*>(storage, buffer, false) && buffer)
        owner = buffer;
    else
        owner = new PythonOwner(value);
    return true;
}

// --- TensorView

namespace {

constexpr size_t tensor_view_rank = 5;

/// The struct of Slang's CUDA prelude: pointer, five byte strides, five sizes, rank.
struct TensorViewBytes {
    uint64_t data;
    uint32_t strides[tensor_view_rank], sizes[tensor_view_rank], rank;
};

/// The scalar of TensorView<T>; none where T is neither scalar nor vector.
ScalarType view_scalar(std::string_view full_name)
{
    const size_t open = full_name.find('<');
    if (open == std::string_view::npos)
        return ScalarType::none;
    std::string_view element = full_name.substr(open + 1);
    if (element.starts_with("vector<"))
        element.remove_prefix(7);
    return scalar_from_slang_name(element.substr(0, element.find_first_of(",>")));
}

uint32_t narrow(int64_t value, const char* what, const ValuePath& path)
{
    if (value < 0 || value > int64_t(UINT32_MAX))
        fail_at(path, ErrorKind::value, cat("a TensorView holds 32-bit ", what, "s without sign, got ", value));
    return uint32_t(value);
}

void check_array_device(const Place& place, int device_type, const ValuePath& path)
{
    if (!place.object || !place.object->device())
        return;
    const DeviceInfo& info = place.object->device()->info();
    const bool on_gpu = device_type == nb::device::cuda::value || device_type == nb::device::cuda_managed::value;
    if (!info.on_host && info.type != DeviceType::cuda)
        fail_at(path, ErrorKind::runtime, "TensorView parameters need a cuda or cpu device; use Tensor elsewhere");
    if ((info.type == DeviceType::cuda) != on_gpu && info.type != DeviceType::null)
        fail_at(path, ErrorKind::value,
                cat("the array lies in ", on_gpu ? "GPU" : "host",
                    " memory, which this device does not read in place; copy it first"));
}

} // namespace

bool write_tensor_view(const TypeLayout& layout, const Place& place, PyObject* value, const ValuePath& path)
{
    nb::object source = nb::borrow(value);
    if (nb::hasattr(source, "requires_grad") && nb::hasattr(source, "detach"))
        source = source.attr("detach")(); // autograd tensors refuse to be exported
    nb::ndarray<nb::ro> array;
    if (!nb::try_cast(source, array) || !array.is_valid())
        return false;
    check_array_device(place, array.device_type(), path);
    if (array.ndim() > tensor_view_rank)
        fail_at(path, ErrorKind::value, cat("a TensorView has at most 5 dimensions, got ", array.ndim()));
    if (layout.size < sizeof(uint64_t) + 11 * sizeof(uint32_t))
        fail_at(path, ErrorKind::runtime, cat("unexpected layout of ", type_text(layout)));
    const ScalarType scalar = scalar_from_dlpack(array.dtype().code, array.dtype().bits);
    const ScalarType wanted = view_scalar(layout.full_name);
    if (wanted != ScalarType::none && scalar != wanted)
        fail_at(path, ErrorKind::type,
                cat("expected an array of ", scalar_info(wanted).numpy_name, " for ", type_text(layout), ", got ",
                    scalar == ScalarType::none ? "another dtype" : scalar_info(scalar).numpy_name));
    const auto item = int64_t(array.dtype().bits / 8);
    TensorViewBytes view{};
    view.data = uint64_t(array.data());
    view.rank = uint32_t(array.ndim());
    for (size_t axis = 0; axis < array.ndim(); ++axis) {
        view.strides[axis] = narrow(array.stride(axis) * item, "stride", path);
        view.sizes[axis] = narrow(int64_t(array.shape(axis)), "size", path);
    }
    std::memcpy(place.bytes, &view, sizeof(uint64_t) + 11 * sizeof(uint32_t));
    keep_at(place, ref<Object>(new PythonOwner(source)));
    return true;
}

} // namespace spy
