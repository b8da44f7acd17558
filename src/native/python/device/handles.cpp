// DescriptorHandle, what it may name, and how many of them a device has.
#include "python/device/bindings.h"

#include "device/acceleration.h"
#include "device/handles.h"

#include <cstdio>

namespace spy {

namespace {

std::string handle_text(const DescriptorHandle& handle)
{
    char digits[24];
    std::snprintf(digits, sizeof(digits), "0x%08llx", static_cast<unsigned long long>(handle.value));
    return cat("DescriptorHandle(type=", name_of(handle.type), ", value=", digits, ")");
}

template <typename T, DescriptorHandleType Type>
void def_handle(nb::class_<T, DeviceObject>& cls, const char* name, const char* doc)
{
    const std::string call = cat(nb::cast<std::string>(cls.attr("__name__")), ".", name);
    cls.def_prop_ro(
        name,
        [call](T& object) {
            open_device(&object);
            GilRelease release;
            return handle_of(&object, Type, call.c_str());
        },
        doc);
}

} // namespace

void bind_handle_types(nb::module_& m)
{
    auto type = nb::enum_<DescriptorHandleType>(m, "DescriptorHandleType", nb::is_arithmetic(),
                                                "What a DescriptorHandle names.");
    for (auto i = DescriptorHandleType::undefined; i <= DescriptorHandleType::acceleration_structure;
         i = DescriptorHandleType(uint8_t(i) + 1))
        type.value(name_of(i), i);
    nb::class_<DescriptorHandle>(m, "DescriptorHandle",
                                 "What kernels reach a resource by that is bound nowhere: a value for "
                                 "DescriptorHandle<T>, also within structs and buffers. It keeps nothing alive. True "
                                 "while it is valid.")
        .def_ro("type", &DescriptorHandle::type)
        .def_ro("value", &DescriptorHandle::value,
                "An index on vulkan devices, an address or a driver's object on others.")
        .def("__bool__", [](const DescriptorHandle& h) { return device_of(h) != nullptr; })
        .def("__eq__",
             [](const DescriptorHandle& a, nb::handle b) {
                 return nb::isinstance<DescriptorHandle>(b) && a == nb::cast<DescriptorHandle>(b);
             })
        .def("__hash__", [](const DescriptorHandle& h) { return std::hash<uint64_t>()(h.id); })
        .def("__repr__", &handle_text);
    using B = BindlessDesc;
    bind_desc<B>(
        m, "BindlessDesc", "How many descriptor handles a device has (bindless_options of Device).",
        {
            field<B, &B::buffer_count>("buffer_count", "int", "Of buffers."),
            field<B, &B::texture_count>("texture_count", "int", "Of textures and views, of each access."),
            field<B, &B::sampler_count>("sampler_count", "int", "Of samplers."),
            field<B, &B::acceleration_structure_count>("acceleration_structure_count", "int",
                                                       "Of acceleration structures; vulkan devices have no limit."),
        });
}

void bind_handles_of(nb::class_<Buffer, DeviceObject>& buffer)
{
    using Type = DescriptorHandleType;
    def_handle<Buffer, Type::buffer>(buffer, "descriptor_handle_ro",
                                     "Of the whole buffer, for DescriptorHandle<StructuredBuffer<T>> or "
                                     "<ByteAddressBuffer>.");
    def_handle<Buffer, Type::rw_buffer>(buffer, "descriptor_handle_rw",
                                        "The same for RWStructuredBuffer<T> and RWByteAddressBuffer; needs "
                                        "BufferUsage.unordered_access.");
}

namespace {

template <typename T>
void def_texture_handles(nb::class_<T, DeviceObject>& cls)
{
    using Type = DescriptorHandleType;
    def_handle<T, Type::texture>(cls, "descriptor_handle_ro", "For DescriptorHandle<Texture2D<T>> and its like.");
    def_handle<T, Type::rw_texture>(cls, "descriptor_handle_rw",
                                    "For DescriptorHandle<RWTexture2D<T>> and its like; needs "
                                    "TextureUsage.unordered_access.");
    def_handle<T, Type::combined_texture_sampler>(
        cls, "descriptor_handle_combined",
        "For DescriptorHandle<Sampler2D<T>> and its like; not valid where the "
        "texture or view was given no sampler.");
}

} // namespace

void bind_handles_of(nb::class_<Texture, DeviceObject>& texture) { def_texture_handles(texture); }
void bind_handles_of(nb::class_<TextureView, DeviceObject>& view) { def_texture_handles(view); }

void bind_handles_of(nb::class_<Sampler, DeviceObject>& sampler)
{
    def_handle<Sampler, DescriptorHandleType::sampler>(sampler, "descriptor_handle",
                                                       "For DescriptorHandle<SamplerState>.");
}

void bind_handles_of(nb::class_<AccelerationStructure, DeviceObject>& structure)
{
    def_handle<AccelerationStructure, DescriptorHandleType::acceleration_structure>(
        structure, "descriptor_handle",
        "For DescriptorHandle<RaytracingAccelerationStructure>; of a structure whose build from instances was "
        "submitted.");
}

} // namespace spy
