// Buffers, textures, samplers, pointers and TensorView structs as values.
#include "values/nb.h"

#include "device/acceleration.h"
#include "device/content.h"
#include "device/cursor.h"
#include "device/texel_format.h"
#include "device/texture_shape.h"
#include "values/writer.h"

namespace spy {
namespace {

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

} // namespace

void check_content(const Buffer& buffer, const TypeLayout& layout, const ValuePath& path)
{
    if (buffer.content() == ScalarType::none || !layout.element ||
        layout.resource_shape == ResourceShape::byte_address_buffer)
        return;
    if (const std::string why = content_misfit(buffer.content(), *layout.element); !why.empty())
        fail_at(path, ErrorKind::type, cat("a buffer for ", type_text(layout), ": ", why));
}

namespace {

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
    check_content(*buffer, layout, path);
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
    const std::string_view wanted = layout.kind == TypeKind::sampler_state ? "Sampler"
                                                                           : shape_name(layout.resource_shape);
    const bool has_elements = wanted == "Buffer" && !PyUnicode_Check(value) && nb::hasattr(value, "__len__");
    fail_at(path, ErrorKind::type,
            cat("expected a ", wanted, " or None for ", type_text(layout), ", got ", short_repr(value), " (",
                type_name(value), ")", has_elements ? "; pass Tensor.from_numpy(device, array)" : ""));
}

} // namespace

bool write_resource(const TypeLayout& layout, const Place& place, PyObject* value, const ValuePath& path)
{
    if (!place.object && write_element_handle(layout, place, value, path))
        return true;
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
        AccelerationStructure* structure = nullptr;
        written = nb::try_cast<AccelerationStructure*>(nb::handle(value), structure, false) && structure;
        if (written)
            set_resource(place, ref<Object>(structure));
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
            fail_at(path, ErrorKind::value,
                    "this buffer has no device address: pass it to a buffer parameter (Direct3D 12 has no pointers)");
        owner = buffer;
        return true;
    }
    Number number;
    if (!PyBool_Check(value) && !PyFloat_Check(value) && number_at(value, number, path) &&
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

} // namespace spy
