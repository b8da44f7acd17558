#pragma once
// Shared by the files that bind the device layer.
#include "python/fields.h"

#include "device/encoder.h"
#include "device/resource.h"
#include "device/submit.h"

namespace spy {

void bind_device_types(nb::module_& m);                              // types.cpp
void bind_device_descs(nb::module_& m);                              // desc.cpp
void bind_buffer(nb::module_& m);                                    // buffer.cpp
void bind_resources(nb::module_& m);                                 // resource.cpp
void bind_commands(nb::module_& m, nb::class_<Device, Object>& cls); // command.cpp
void bind_fences(nb::module_& m);                                    // fence.cpp
void bind_code(nb::module_& m, nb::class_<Device, Object>& cls);     // code.cpp
void bind_surface(nb::module_& m, nb::class_<Device, Object>& cls);  // surface.cpp

/// A handle of a device, which keeps the named object alive.
struct DeviceHandle : NativeHandle {
    std::shared_ptr<void> owner;
};

/// Descriptors as Python knows them: the C++ one and what only Python has use for.
struct PyBufferDesc : BufferDesc {
    uint64_t element_count = 0;
    nb::object resource_type_layout = nb::none(), data = nb::none();
};
struct PyTextureDesc : TextureDesc {
    nb::object sampler = nb::none(), data = nb::none();
};
struct PySubresourceRange : SubresourceRange {
    PySubresourceRange() : SubresourceRange{0, all_layers, 0, all_mips} { }
    PySubresourceRange(const SubresourceRange& range) : SubresourceRange(range) { }
};
struct PyTextureViewDesc {
    Format format = Format::undefined;
    TextureAspect aspect = TextureAspect::all;
    PySubresourceRange range;
    nb::object sampler = nb::none();
    std::string label;
};
struct PyDeviceDesc : DeviceDesc {
    nb::object debug_layers_log_level, rhi_validation_log_level;
    bool enable_ray_tracing_validation = false, enable_aftermath = false;
    nb::object compiler_options = nb::none(), module_cache_path = nb::none(), shader_cache_path = nb::none();
    uint64_t shader_cache_size = 134217728;
    nb::object handle_objects = nb::none(); ///< those of existing_device_handles, which keep what they name alive
    bool enable_cuda_launch_from_gfx = true, enable_ray_tracing = true;
    PyDeviceDesc();
};
struct FenceDesc {
    uint64_t initial_value = 0;
    bool shared = false;
};
struct QueryPoolDesc {
    QueryType type = QueryType::timestamp;
    uint32_t count = 0;
};

PyBufferDesc to_python(const BufferDesc& desc);
PyTextureDesc to_python(const Texture& texture);
PyTextureViewDesc to_python(const TextureView& view);

ref<Buffer> create_buffer(Device* device, const PyBufferDesc& desc);
ref<Texture> create_texture(Device* device, const PyTextureDesc& desc);

/// Contiguous bytes of a NumPy array or another object with the buffer protocol, while this object lives.
class HostBytes {
public:
    HostBytes(nb::handle value, const char* function);
    ~HostBytes();
    HostBytes(const HostBytes&) = delete;
    HostBytes& operator=(const HostBytes&) = delete;
    std::span<const uint8_t> bytes() const { return {static_cast<const uint8_t*>(m_view.buf), size_t(m_view.len)}; }
    /// Of the array's numbers, as a buffer keeps it (device/content.h).
    ScalarType content() const { return m_content; }

private:
    nb::object m_owner;
    ScalarType m_content = ScalarType::none;
    Py_buffer m_view{};
};

/// Throws for texels whose numbers do not have the size of the format's.
void check_texels(const TextureDesc& desc, const HostBytes& data, const char* call);

/// A new NumPy array, filled by `fill(data, bytes)` without the GIL.
nb::object make_array(const std::vector<uint64_t>& shape, const char* dtype,
                      const std::function<void(void*, uint64_t)>& fill);

/// Repeats `step(timeout_ns)` without the GIL until it is true or the time is up, letting Ctrl-C through.
bool wait_interruptible(uint64_t timeout_ns, const std::function<bool(uint64_t)>& step);

/// Python's device of an object; "device is closed" when it is.
inline Device* open_device(const DeviceObject* object)
{
    check_open(object->frontend());
    return object->frontend();
}

const char* handle_type_name(NativeHandleType type);
std::string handle_repr(const NativeHandle& handle);

/// handles.cpp: the classes, and the properties descriptor_handle...
void bind_handle_types(nb::module_& m);
void bind_handles_of(nb::class_<Buffer, DeviceObject>& buffer);
void bind_handles_of(nb::class_<Texture, DeviceObject>& texture);
void bind_handles_of(nb::class_<TextureView, DeviceObject>& view);
void bind_handles_of(nb::class_<Sampler, DeviceObject>& sampler);
void bind_handles_of(nb::class_<AccelerationStructure, DeviceObject>& structure);

/// A list of any sequence.
nb::list list_from(nb::handle value, const char* what);
/// Layers and mips; None is all of them.
SubresourceRange subresources_from(nb::handle value, const char* what);
using EncoderClass = nb::class_<CommandEncoder, DeviceObject>;
void bind_texture_commands(EncoderClass& cls);                       // texture_commands.cpp
void bind_coop_vec(nb::module_& m, nb::class_<Device, Object>& cls); // coop_vec.cpp
void bind_coop_vec_commands(EncoderClass& cls);                      // coop_vec.cpp

/// A Python callable that native code may drop on any thread.
std::shared_ptr<nb::object> share_callable(nb::handle callable);

/// A function of a device, which must be open.
template <typename F>
auto open_call(F function)
{
    return [function](Device& d) {
        check_open(&d);
        return function(d);
    };
}

} // namespace spy
