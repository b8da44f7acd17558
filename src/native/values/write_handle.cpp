// Descriptor handles as values.
#include "values/nb.h"

#include "device/handles.h"
#include "device/resource.h"
#include "values/writer.h"

namespace spy {
namespace {

/// What a place takes is what a handle names; what is written to may be read, too, where it is a buffer.
bool type_fits(DescriptorHandleType wanted, DescriptorHandleType got)
{
    return wanted == got || (wanted == DescriptorHandleType::buffer && got == DescriptorHandleType::rw_buffer);
}

void check_place(const TypeLayout& layout, const ValuePath& path)
{
    if (layout.handle == DescriptorHandleType::undefined || layout.resource_shape == ResourceShape::texture_buffer)
        fail_at(path, ErrorKind::not_implemented,
                cat(type_text(layout),
                    " cannot be written: there are handles of structured buffers, byte-address "
                    "buffers, textures, samplers and acceleration structures"));
}

/// A resource as Slang lays it out where a handle is one: the layout of an element does not say that it is a handle.
void set_handle(TypeLayout& layout, const TypeLayout& resource)
{
    using Type = DescriptorHandleType;
    const bool writable = resource.resource_access != ResourceAccess::read &&
        resource.resource_access != ResourceAccess::none;
    switch (resource.resource_shape) {
    case ResourceShape::none: layout.handle = Type::sampler; break;
    case ResourceShape::acceleration_structure: layout.handle = Type::acceleration_structure; break;
    case ResourceShape::structured_buffer:
    case ResourceShape::byte_address_buffer:
    case ResourceShape::texture_buffer:
        layout.handle = writable ? Type::rw_buffer : Type::buffer;
        layout.element_stride = resource.element ? resource.element->stride : 0;
        break;
    default:
        layout.handle = writable                                               ? Type::rw_texture
            : resource.size == 16 || resource.full_name.starts_with("Sampler") ? Type::combined_texture_sampler
                                                                               : Type::texture;
    }
}

} // namespace

bool write_element_handle(const TypeLayout& layout, const Place& place, PyObject* value, const ValuePath& path)
{
    if (!nb::isinstance<DescriptorHandle>(nb::handle(value)))
        return false;
    const bool is_vector = layout.kind == TypeKind::vector;
    if (is_vector && (layout.scalar != ScalarType::uint32 || layout.cols != 2))
        return false;
    TypeLayout handle;
    handle.kind = TypeKind::descriptor_handle;
    handle.full_name = layout.full_name;
    handle.size = layout.size;
    handle.resource_shape = layout.resource_shape;
    if (is_vector) // which may hold any
        handle.handle = nb::cast<const DescriptorHandle*>(nb::handle(value))->type;
    else
        set_handle(handle, layout);
    return write_handle(handle, place, value, path);
}

bool write_handle(const TypeLayout& layout, const Place& place, PyObject* value, const ValuePath& path)
{
    if (!nb::isinstance<DescriptorHandle>(nb::handle(value)))
        return false;
    const auto& handle = *nb::cast<const DescriptorHandle*>(nb::handle(value));
    if (handle.id)
        check_place(layout, path);
    if (!handle.id || handle.type == DescriptorHandleType::undefined)
        fail_at(path, ErrorKind::value,
                cat("this DescriptorHandle is not valid, so it cannot be written to ", type_text(layout),
                    ": handles of texture and sampler in one need a sampler, given to create_view(sampler=...) or "
                    "create_texture(sampler=...)"));
    if (!type_fits(layout.handle, handle.type))
        fail_at(path, ErrorKind::value,
                cat(type_text(layout), " takes a handle of type ", name_of(layout.handle), ", got one of type ",
                    name_of(handle.type)));
    const Device* owner = device_of(handle);
    if (!owner)
        fail_at(
            path, ErrorKind::value,
            "what this DescriptorHandle names is gone: handles keep nothing alive, so keep the buffer, texture, view, "
            "sampler or structure as long as kernels use it");
    const Device* device = place.object ? place.object->device() : place.device;
    if (device && const_cast<Device*>(device)->backend() != owner)
        fail_at(path, ErrorKind::value,
                cat("the DescriptorHandle belongs to ", other_device(*owner, *device, "it is written for")));
    store_handle(layout, place.bytes, handle);
    return true;
}

nb::object read_handle(const TypeLayout& layout, const uint8_t* bytes, const Device* device)
{
    DescriptorHandle handle{layout.handle, load_raw<uint64_t>(bytes)};
    if (device)
        if (const DescriptorHandle found = find_handle(const_cast<Device*>(device)->backend(), handle.type,
                                                       handle.value);
            found.id)
            handle = found;
    return nb::cast(handle);
}

} // namespace spy
