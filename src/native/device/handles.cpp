#include "device/handles.h"

#include "core/error.h"
#include "device/acceleration.h"
#include "device/resource.h"
#include "device/value_io.h"

#include <unordered_map>

namespace spy {

namespace {

struct Known {
    DescriptorHandle handle;
    const Device* device;
};

/// The handles of all objects in the process. Never destroyed, as objects may outlive static ones.
struct Registry {
    std::mutex mutex;
    std::mutex making; ///< held while a backend makes one; never by who holds a backend's lock
    uint64_t last_id = 0;
    std::unordered_map<const DeviceObject*, std::vector<Known>> objects;
    std::unordered_map<uint64_t, const Device*> living; ///< by id
};
Registry& registry()
{
    static auto* all = new Registry;
    return *all;
}

DescriptorHandle find(Registry& all, const DeviceObject* object, DescriptorHandleType type)
{
    std::lock_guard lock(all.mutex);
    const auto found = all.objects.find(object);
    if (found != all.objects.end())
        for (const Known& known : found->second)
            if (known.handle.type == type)
                return known.handle;
    return {};
}

void check_buffer(const Buffer& buffer, DescriptorHandleType type, const char* call)
{
    const BufferUsage usage = buffer.desc().usage;
    if (has_flag(usage, BufferUsage::unordered_access))
        return;
    if (type == DescriptorHandleType::rw_buffer)
        fail_value(call, ": ", summary(&buffer), " must be created with BufferUsage.unordered_access; it has ",
                   names_of(usage));
    if (!has_flag(usage, BufferUsage::shader_resource))
        fail_value(call, ": ", summary(&buffer),
                   " must be created with BufferUsage.shader_resource or BufferUsage.unordered_access; it has ",
                   names_of(usage));
}

void check_texture(const Texture& texture, DescriptorHandleType type, const char* call)
{
    const bool writes = type == DescriptorHandleType::rw_texture;
    const TextureUsage needed = writes ? TextureUsage::unordered_access : TextureUsage::shader_resource;
    if (!has_flag(texture.desc().usage, needed))
        fail_value(call, ": ", summary(&texture), " must be created with TextureUsage.",
                   writes ? "unordered_access" : "shader_resource", "; it has ", names_of(texture.desc().usage));
}

/// Where kernels get it by a handle, nobody looks at what they walk through.
void check_structure(const AccelerationStructure& structure, const char* call)
{
    if (!structure.is_submitted())
        fail_value(call, ": ", summary(&structure), " was never built, or its build was not submitted; submit its ",
                   "build_acceleration_structure first");
    if (!structure.content().is_top_level)
        fail_value(call, ": ", summary(&structure), " was built from triangles or boxes; rays are traced through one ",
                   "that was built from instances (AccelerationStructureInstanceList)");
}

void check_usage(const DeviceObject* object, DescriptorHandleType type, const char* call)
{
    if (const auto* buffer = dynamic_cast<const Buffer*>(object))
        check_buffer(*buffer, type, call);
    else if (const auto* texture = dynamic_cast<const Texture*>(object))
        check_texture(*texture, type, call);
    else if (const auto* view = dynamic_cast<const TextureView*>(object))
        check_texture(*view->texture(), type, call);
    else if (const auto* structure = dynamic_cast<const AccelerationStructure*>(object))
        check_structure(*structure, call);
}

} // namespace

const char* name_of(DescriptorHandleType type)
{
    static constexpr const char* names[] = {"undefined",
                                            "buffer",
                                            "rw_buffer",
                                            "texture",
                                            "rw_texture",
                                            "sampler",
                                            "combined_texture_sampler",
                                            "acceleration_structure"};
    return size_t(type) < std::size(names) ? names[size_t(type)] : "undefined";
}

DescriptorHandle handle_of(DeviceObject* object, DescriptorHandleType type, const char* call)
{
    Device* device = object->device();
    if (!device->has_feature("bindless"))
        fail(ErrorKind::not_implemented, call, " needs the feature 'bindless', which ", device->info().adapter_name,
             " (", device->info().api_name,
             ") has not; cpu and cuda devices have it, and vulkan devices with descriptor indexing. Bind the resource "
             "as a parameter instead");
    check_usage(object, type, call);
    if (type == DescriptorHandleType::combined_texture_sampler && !sampler_of(object))
        return {};
    Registry& all = registry();
    std::lock_guard making(all.making);
    if (DescriptorHandle known = find(all, object, type); known.id)
        return known;
    DescriptorHandle handle = device->make_handle(object, type);
    std::lock_guard lock(all.mutex);
    handle.type = type;
    handle.id = ++all.last_id;
    all.objects[object].push_back({handle, device});
    all.living[handle.id] = device;
    object->m_has_handles = true;
    return handle;
}

bool has_handles(const DeviceObject* object)
{
    Registry& all = registry();
    std::lock_guard lock(all.mutex);
    return all.objects.count(object) != 0;
}

const Device* device_of(const DescriptorHandle& handle)
{
    Registry& all = registry();
    std::lock_guard lock(all.mutex);
    const auto found = all.living.find(handle.id);
    return found == all.living.end() ? nullptr : found->second;
}

DescriptorHandle find_handle(const Device* device, DescriptorHandleType type, uint64_t value)
{
    Registry& all = registry();
    std::lock_guard lock(all.mutex);
    for (const auto& [object, handles] : all.objects)
        for (const Known& known : handles)
            if (known.device == device && known.handle.type == type && known.handle.value == value)
                return known.handle;
    return {};
}

void DeviceObject::drop_handles() noexcept
{
    std::vector<Known> dropped;
    {
        Registry& all = registry();
        std::lock_guard lock(all.mutex);
        const auto found = all.objects.find(this);
        if (found == all.objects.end())
            return;
        dropped = std::move(found->second);
        all.objects.erase(found);
        for (const Known& known : dropped)
            all.living.erase(known.handle.id);
    }
    for (const Known& known : dropped)
        m_device->drop_handle(known.handle);
}

DescriptorHandle Device::make_handle(DeviceObject*, DescriptorHandleType type)
{
    fail(ErrorKind::not_implemented, "this ", m_info.api_name, " device makes no descriptor handles of type ",
         name_of(type));
}

void Device::drop_handle(const DescriptorHandle&) noexcept { }

void store_handle(const TypeLayout& layout, uint8_t* bytes, const DescriptorHandle& handle)
{
    store_raw<uint64_t>(bytes, handle.value);
    if (layout.size < 16)
        return;
    const bool counts = layout.element_stride && layout.handle <= DescriptorHandleType::rw_buffer;
    store_raw<uint64_t>(bytes + 8, counts ? handle.extra / layout.element_stride : handle.extra);
}

uint64_t HandleSlots::take(uint32_t capacity, const char* kind, const char* option)
{
    if (!m_free.empty()) {
        const uint64_t index = m_free.back();
        m_free.pop_back();
        return index;
    }
    if (m_used >= capacity)
        fail(ErrorKind::memory, "all ", capacity, " ", kind, " handles are in use (bindless_options.", option, ")");
    return m_used++;
}

uint64_t HandleTables::take(const BindlessDesc& sizes, DescriptorHandleType type)
{
    switch (type) {
    case DescriptorHandleType::buffer:
    case DescriptorHandleType::rw_buffer: return m_buffers.take(sizes.buffer_count, "buffer", "buffer_count");
    case DescriptorHandleType::sampler: return m_samplers.take(sizes.sampler_count, "sampler", "sampler_count");
    case DescriptorHandleType::acceleration_structure:
        return m_structures.take(sizes.acceleration_structure_count, "acceleration structure",
                                 "acceleration_structure_count");
    default: return m_textures.take(sizes.texture_count, "texture", "texture_count");
    }
}

void HandleTables::give_back(DescriptorHandleType type, uint64_t index)
{
    switch (type) {
    case DescriptorHandleType::buffer:
    case DescriptorHandleType::rw_buffer: return m_buffers.give_back(index);
    case DescriptorHandleType::sampler: return m_samplers.give_back(index);
    case DescriptorHandleType::acceleration_structure: return m_structures.give_back(index);
    default: return m_textures.give_back(index);
    }
}

} // namespace spy
