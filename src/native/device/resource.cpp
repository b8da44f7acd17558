#include "device/resource.h"

#include "core/error.h"
#include "device/command.h"
#include "device/encoder.h"

#include <algorithm>
#include <bit>

namespace spy {

namespace {

uint64_t stride_of(const TypeLayout& layout)
{
    const bool is_buffer = layout.kind == TypeKind::resource || layout.kind == TypeKind::shader_storage_buffer;
    if (!is_buffer || !layout.element || !layout.element->stride)
        fail(ErrorKind::type, "'resource_type_layout' must be the layout of a structured buffer, got that of ",
             layout.full_name);
    return layout.element->stride;
}

uint32_t full_mip_count(const TextureDesc& desc)
{
    return uint32_t(std::bit_width(std::max({desc.width, desc.height, desc.depth})));
}

std::string join_flags(uint32_t bits, std::span<const char* const> names)
{
    std::string text;
    for (size_t i = 0; i < names.size(); ++i)
        if (bits & (1u << i))
            text += (text.empty() ? "" : " | ") + std::string(names[i]);
    return text.empty() ? "none" : text;
}

void check_dimensions(const TextureDesc& desc)
{
    auto bad = [&](const char* kind) {
        fail_value("create_texture: Invalid dimensions (width=", desc.width, ", height=", desc.height,
                   ", depth=", desc.depth, ") for ", kind,
                   " texture. Each is at least 1, and 1 where the type has no such dimension.");
    };
    const bool zero = !desc.width || !desc.height || !desc.depth;
    switch (desc.type) {
    case TextureType::texture_1d:
    case TextureType::texture_1d_array:
        if (zero || desc.height != 1 || desc.depth != 1)
            bad("1D");
        break;
    case TextureType::texture_3d:
        if (zero)
            bad("3D");
        break;
    case TextureType::texture_cube:
    case TextureType::texture_cube_array:
        if (zero || desc.width != desc.height || desc.depth != 1)
            bad("cube");
        break;
    default:
        if (zero || desc.depth != 1)
            bad("2D");
    }
}

bool is_array_type(TextureType type)
{
    return type == TextureType::texture_1d_array || type == TextureType::texture_2d_array ||
        type == TextureType::texture_2d_ms_array || type == TextureType::texture_cube_array;
}

bool is_multisampled(TextureType type)
{
    return type == TextureType::texture_2d_ms || type == TextureType::texture_2d_ms_array;
}

} // namespace

BufferDesc resolve_buffer_desc(BufferDesc desc, uint64_t element_count, const TypeLayout* resource_type_layout,
                               std::optional<uint64_t> data_size)
{
    if (desc.size && element_count)
        fail_value("create_buffer: Only one of 'size' or 'element_count' must be set.");
    if (desc.struct_size && resource_type_layout)
        fail_value("create_buffer: Only one of 'struct_size' or 'resource_type_layout' must be set.");
    if (resource_type_layout)
        desc.struct_size = stride_of(*resource_type_layout);
    if (element_count) {
        if (!desc.struct_size)
            fail_value(
                "create_buffer: 'element_count' can only be used with 'struct_size' or 'resource_type_layout' set.");
        if (__builtin_mul_overflow(element_count, desc.struct_size, &desc.size))
            fail(ErrorKind::overflow, "create_buffer: ", element_count, " elements of ", desc.struct_size,
                 " bytes do not fit 64-bit sizes");
    }
    if (data_size) {
        if (!desc.size)
            desc.size = *data_size;
        else if (desc.size != *data_size)
            fail_value("create_buffer: Invalid data size (got ", *data_size, " bytes, expected ", desc.size,
                       " bytes); leave 'size' out to have the size of 'data'");
    }
    if (!desc.size)
        fail_value("create_buffer: the buffer has no size; give 'size', 'element_count' with 'struct_size', or 'data'");
    format_info(desc.format);
    desc.asked_copies = without_flags(
        desc.usage, without_flags(desc.usage, BufferUsage::copy_source | BufferUsage::copy_destination));
    if (desc.memory_type == MemoryType::device_local)
        desc.usage = desc.usage | BufferUsage::copy_source | BufferUsage::copy_destination;
    else
        desc.usage = desc.usage |
            (desc.memory_type == MemoryType::upload ? BufferUsage::copy_source : BufferUsage::copy_destination);
    return desc;
}

TextureDesc resolve_texture_desc(TextureDesc desc)
{
    if (desc.format == Format::undefined || desc.format >= Format::count_)
        fail_value("create_texture: Invalid texture format. Pass one of slangpy.Format other than undefined.");
    check_dimensions(desc);
    if (!desc.array_length || (desc.array_length > 1 && !is_array_type(desc.type)))
        fail_value("create_texture: Invalid array length (", desc.array_length, ") for ",
                   is_array_type(desc.type) ? "array" : "non-array",
                   " texture. It is at least 1 for types with 'array' in their name, and 1 for others.");
    if (is_multisampled(desc.type) != (desc.sample_count > 1))
        fail_value("create_texture: Invalid sample count (", desc.sample_count, ") for texture of type ",
                   name_of(desc.type), ". It is more than 1 for types with 'ms' in their name, and 1 for others.");
    if (desc.sample_count > 64 || !std::has_single_bit(desc.sample_count))
        fail_value("create_texture: Invalid sample count (", desc.sample_count, "): expected a power of two up to 64.");
    const uint32_t full = is_multisampled(desc.type) ? 1 : full_mip_count(desc);
    if (desc.mip_count == all_mips)
        desc.mip_count = full;
    if (!desc.mip_count || desc.mip_count > full)
        fail_value("create_texture: Invalid mip count (", desc.mip_count, "): a texture of this size has at most ",
                   full, " mips.");
    desc.usage = desc.usage | TextureUsage::copy_source | TextureUsage::copy_destination;
    return desc;
}

SubresourceRange resolve_range(const TextureDesc& texture, SubresourceRange range)
{
    const uint32_t layers = texture.layer_count();
    if (range.layer >= layers)
        fail(ErrorKind::index, "'layer' out of range: ", range.layer, " of ", layers, " layers");
    if (range.mip >= texture.mip_count)
        fail(ErrorKind::index, "'mip' out of range: ", range.mip, " of ", texture.mip_count, " mips");
    range.layer_count = std::min(range.layer_count, layers - range.layer);
    range.mip_count = std::min(range.mip_count, texture.mip_count - range.mip);
    return range;
}

TextureViewDesc resolve_view_desc(const TextureDesc& texture, TextureViewDesc desc)
{
    if (desc.format == Format::undefined)
        desc.format = texture.format;
    desc.range = resolve_range(texture, desc.range);
    if (format_info(desc.format).bytes_per_block != format_info(texture.format).bytes_per_block)
        fail_value("create_view: format ", format_name(desc.format), " does not have the texel size of the texture's ",
                   format_name(texture.format));
    return desc;
}

void check_buffer_range(const Buffer* buffer, uint64_t offset, uint64_t size, const char* what)
{
    const uint64_t total = buffer->desc().size;
    if (offset > total)
        fail(ErrorKind::index, what, ": offset (", offset, ") must be less than or equal ", total,
             ", the buffer's size");
    if (size > total - offset)
        fail(ErrorKind::index, what, ": size (", size, ") must be less than or equal ", total - offset,
             "; from the offset ", offset, " on, offset + size must be less than or equal ", total,
             ", the buffer's size");
}

/// The sampler that goes with a texture or view bound to a parameter that is both in one; null: the default.
Sampler* sampler_of(const Object* texture_or_view)
{
    if (auto* view = dynamic_cast<const TextureView*>(texture_or_view))
        return view->sampler() ? view->sampler() : view->texture()->sampler();
    auto* texture = dynamic_cast<const Texture*>(texture_or_view);
    return texture ? texture->sampler() : nullptr;
}

void QueryPool::fail_no_result(uint32_t index)
{
    fail_runtime("query ", index, " has no result: no timestamp was written since it was created or reset");
}

void check_subresource(const TextureDesc& desc, uint32_t layer, uint32_t mip)
{
    if (layer >= desc.layer_count())
        fail(ErrorKind::index, "\"layer\" must be less than ", desc.layer_count(), " (got ", layer, ")");
    if (mip >= desc.mip_count)
        fail(ErrorKind::index, "\"mip\" must be less than ", desc.mip_count, " (got ", mip, ")");
}

void read_buffer(Buffer* buffer, uint64_t offset, void* data, uint64_t size)
{
    check_open(buffer->frontend());
    if (buffer->desc().memory_type == MemoryType::upload)
        fail_runtime("Cannot read data from buffer with memory type 'upload'. Copy it into a buffer of type "
                     "'device_local' or 'read_back' "
                     "and read that.");
    check_buffer_range(buffer, offset, size, "read buffer");
    if (size)
        buffer->frontend()->read_buffer(buffer, offset, data, size);
}

void write_buffer(Buffer* buffer, uint64_t offset, const void* data, uint64_t size)
{
    check_open(buffer->frontend());
    if (buffer->desc().memory_type == MemoryType::read_back)
        fail_runtime("Cannot write data to buffer with memory type 'read_back'. Write to a buffer of type "
                     "'device_local' or 'upload', and "
                     "copy that.");
    check_buffer_range(buffer, offset, size, "write buffer");
    buffer->set_content(ScalarType::none);
    if (size)
        buffer->frontend()->write_buffer(buffer, offset, data, size);
}

void check_open(const Device* device)
{
    if (device->is_closed())
        device->fail_closed();
}

std::string other_device(const Device& theirs, const Device& ours, const char* use)
{
    const auto &name = theirs.info().adapter_name, &own = ours.info().adapter_name;
    if (name == own && theirs.info().type == ours.info().type)
        return cat("another device than the one ", use, ": both are ", theirs.info().api_name, " devices (", name,
                   "), made by two calls of create_device");
    return cat("another device (", theirs.info().api_name, ", ", name, ") than the one ", use, " (",
               ours.info().api_name, ", ", own, ")");
}

void check_current(const DeviceObject* object, const char* what)
{
    if (object->is_expired())
        fail_runtime(what,
                     ": the image of a surface may not be used after present() or configure(); acquire the next "
                     "one with acquire_next_image()");
}

void check_same_device(const Device* device, const DeviceObject* object, const char* what)
{
    if (!object)
        fail(ErrorKind::type, what, ": got None");
    check_current(object, what);
    auto backend = [](const Device* d) { return const_cast<Device*>(d)->backend(); };
    if (backend(object->frontend()) != backend(device))
        fail_value(what, ": ", summary(object), " belongs to ",
                   other_device(*object->frontend(), *device, "it is used with"));
}

namespace {

/// Whether one of the two was opened on the handles of the other, so that both work on the same memory.
bool share_handles(Device* a, Device* b)
{
    const auto is_given = [](const Device* device) { // the number of a CUDA device may be 0
        return device->desc().existing_device_handles[0].type != NativeHandleType::undefined;
    };
    if (a->info().type != b->info().type || !(is_given(a) || is_given(b)))
        return false;
    check_open(a);
    check_open(b);
    const auto first = a->native_handles(), second = b->native_handles();
    return std::equal(first.begin(), first.end(), second.begin(), [](const NativeHandle& x, const NativeHandle& y) {
        return x.type == y.type && x.value == y.value;
    });
}

} // namespace

void check_bindable(const Device* device, const DeviceObject* object, const char* what)
{
    if (!object || !share_handles(object->frontend(), const_cast<Device*>(device)))
        check_same_device(device, object, what);
}

const char* name_of(MemoryType type)
{
    static const char* names[] = {"device_local", "upload", "read_back"};
    return names[size_t(type)];
}

const char* name_of(TextureType type)
{
    static const char* names[] = {"texture_1d",       "texture_1d_array", "texture_2d",
                                  "texture_2d_array", "texture_2d_ms",    "texture_2d_ms_array",
                                  "texture_3d",       "texture_cube",     "texture_cube_array"};
    return names[size_t(type)];
}

std::string names_of(BufferUsage usage)
{
    static const char* names[] = {"vertex_buffer",
                                  "index_buffer",
                                  "constant_buffer",
                                  "shader_resource",
                                  "unordered_access",
                                  "indirect_argument",
                                  "copy_source",
                                  "copy_destination",
                                  "acceleration_structure",
                                  "acceleration_structure_build_input",
                                  "shader_table",
                                  "shared"};
    return join_flags(uint32_t(usage), names);
}

std::string names_of(TextureUsage usage)
{
    static const char* names[] = {
        "shader_resource",  "unordered_access", "render_target",       "depth_stencil", "present", "copy_source",
        "copy_destination", "resolve_source",   "resolve_destination", "typeless",      "shared"};
    return join_flags(uint32_t(usage), names);
}

std::string summary(const DeviceObject* object)
{
    auto labelled = [](const char* kind, const std::string& label) {
        return label.empty() ? std::string(kind) : cat(kind, " '", label, "'");
    };
    if (auto* buffer = dynamic_cast<const Buffer*>(object))
        return cat(labelled("Buffer", buffer->desc().label), " (", buffer->desc().size, " bytes)");
    if (auto* texture = dynamic_cast<const Texture*>(object))
        return cat(labelled("Texture", texture->desc().label), " (", texture->desc().width, " x ",
                   texture->desc().height, " x ", texture->desc().depth, ", ", format_name(texture->desc().format),
                   ")");
    if (auto* view = dynamic_cast<const TextureView*>(object))
        return labelled("TextureView", view->desc().label);
    if (auto* sampler = dynamic_cast<const Sampler*>(object))
        return labelled("Sampler", sampler->desc().label);
    if (auto* kernel = dynamic_cast<const Kernel*>(object))
        return labelled("Kernel", kernel->label());
    if (auto* pipeline = dynamic_cast<const RenderPipeline*>(object))
        return labelled("RenderPipeline", pipeline->label());
    if (auto* pipeline = dynamic_cast<const RayTracingPipeline*>(object))
        return labelled("RayTracingPipeline", pipeline->label());
    if (dynamic_cast<const ShaderTable*>(object))
        return "ShaderTable";
    if (dynamic_cast<const AccelerationStructureInstanceList*>(object))
        return "AccelerationStructureInstanceList";
    if (auto* structure = dynamic_cast<const AccelerationStructure*>(object))
        return cat(labelled("AccelerationStructure", structure->desc().label), " (", structure->desc().size, " bytes)");
    if (dynamic_cast<const Fence*>(object))
        return "Fence";
    if (dynamic_cast<const QueryPool*>(object))
        return "QueryPool";
    if (dynamic_cast<const CommandBuffer*>(object))
        return "CommandBuffer";
    if (dynamic_cast<const CommandEncoder*>(object))
        return "CommandEncoder";
    return "object";
}

} // namespace spy
