// Acceleration structures: what is built is checked here, once for all backends.
#include "device/acceleration.h"

#include "core/error.h"
#include "device/backend.h"
#include "device/content.h"
#include "device/encoder.h"
#include "device/handles.h"
#include "device/resource.h"

#include <algorithm>
#include <cstring>

namespace spy {

namespace {

constexpr const char* feature_name = "acceleration_structure";

/// A buffer that a build reads `size` bytes of.
void check_input(const Device* device, const BufferOffset& at, uint64_t size, uint64_t alignment,
                 const std::string& what)
{
    check_same_device(device, at.buffer.get(), what.c_str());
    const BufferUsage usage = at.buffer->desc().usage;
    if (!has_flag(usage, BufferUsage::acceleration_structure_build_input) &&
        !has_flag(usage, BufferUsage::shader_resource))
        fail_value(what, ": ", summary(at.buffer.get()),
                   " was created without the usage flag acceleration_structure_build_input (or shader_resource)");
    if (at.offset % alignment)
        fail_value(what, ": the offset (", at.offset, ") must be a multiple of ", alignment);
    check_buffer_range(at.buffer.get(), at.offset, size, what.c_str());
}

void check_numbers(const BufferOffset& at, uint32_t bytes, std::string_view wanted, const std::string& what)
{
    if (const std::string why = content_misfit(at.buffer->content(), bytes, wanted); !why.empty())
        fail(ErrorKind::type, what, ": ", why);
}

/// Vertices may have channels more than the three that count.
uint32_t component_bytes(Format format)
{
    const FormatInfo& info = format_info(format);
    return info.bytes_per_block / std::max(info.channel_count, 1u);
}

void check_vertex_format(const Device* device, Format format, const std::string& what)
{
    constexpr Format known[] = {Format::rgb32_float, Format::rgba32_float, Format::rg32_float, Format::rgba16_float,
                                Format::rg16_float,  Format::rgba16_snorm, Format::rg16_snorm};
    if (std::find(std::begin(known), std::end(known), format) != std::end(known))
        return;
    std::string names;
    for (const Format each : known)
        names += (names.empty() ? "" : ", ") + std::string(format_name(each));
    fail_value(what, ": vertex_format is ", format == Format::undefined ? "undefined" : format_name(format),
               "; positions are one of ", names, " (", device->info().adapter_name, " may lack some)");
}

void check_geometry(const Device* device, TriangleGeometry& in, bool with_buffers, const std::string& what)
{
    check_vertex_format(device, in.vertex_format, what);
    const uint32_t bytes = format_info(in.vertex_format).bytes_per_block, part = component_bytes(in.vertex_format);
    if (!in.vertex_stride)
        in.vertex_stride = bytes;
    if (in.vertex_stride % part || in.vertex_stride < bytes)
        fail_value(what, ": vertex_stride is ", in.vertex_stride, "; vertices of ", format_name(in.vertex_format),
                   " take ", bytes, " bytes, and the stride must be a multiple of ", part);
    const uint32_t corners = in.is_indexed ? in.index_count : in.vertex_count;
    if (corners % 3)
        fail_value(what, ": ", in.is_indexed ? "index_count" : "vertex_count (there is no index_buffer)", " is ",
                   corners, ", which is no multiple of 3");
    if (!in.is_indexed && in.index_count)
        fail_value(what, ": index_count is ", in.index_count, ", but there is no index_buffer");
    if (in.is_indexed && in.index_count && !in.vertex_count)
        fail_value(what, ": there are indices, but vertex_count is 0");
    if (!with_buffers)
        return;
    if (in.vertex_count) {
        if (!in.vertices.buffer)
            fail_value(what, ": vertex_buffers is empty, but vertex_count is ", in.vertex_count);
        check_input(device, in.vertices, uint64_t(in.vertex_count - 1) * in.vertex_stride + bytes, part,
                    what + " 'vertex_buffers[0]'");
        check_numbers(in.vertices, part, format_name(in.vertex_format), what + " 'vertex_buffers[0]'");
    }
    if (in.is_indexed && in.index_count) {
        const uint32_t size = in.index_format == IndexFormat::uint16 ? 2 : 4;
        check_input(device, in.indices, uint64_t(in.index_count) * size, size, what + " 'index_buffer'");
        check_numbers(in.indices, size, size == 2 ? "uint16 indices" : "uint32 indices", what + " 'index_buffer'");
    }
    if (in.transform.buffer)
        check_input(device, in.transform, 48, 16, what + " 'pre_transform_buffer'");
}

void check_geometry(const Device* device, BoxGeometry& in, bool with_buffers, const std::string& what)
{
    if (!in.stride)
        in.stride = 24;
    if (in.stride % 8 || in.stride < 24)
        fail_value(what, ": aabb_stride is ", in.stride, "; boxes take 24 bytes, and the stride is a multiple of 8");
    if (!with_buffers || !in.count)
        return;
    if (!in.boxes.buffer)
        fail_value(what, ": aabb_buffers is empty, but primitive_count is ", in.count);
    check_input(device, in.boxes, uint64_t(in.count - 1) * in.stride + 24, 8, what + " 'aabb_buffers[0]'");
    check_numbers(in.boxes, 4, "boxes of six floats", what + " 'aabb_buffers[0]'");
}

void check_geometry(const Device* device, InstanceGeometry& in, bool with_buffers, const std::string& what)
{
    if (!in.stride)
        in.stride = instance_record_size;
    if (in.stride != instance_record_size)
        fail_value(what, ": instance_stride is ", in.stride, "; instances of this device take ", instance_record_size,
                   " bytes, one after the other");
    if (!with_buffers || !in.count)
        return;
    if (!in.instances.buffer)
        fail_value(what, ": instance_buffer is None, but instance_count is ", in.count);
    check_input(device, in.instances, uint64_t(in.count) * in.stride, 16, what + " 'instance_buffer'");
    for (const ref<AccelerationStructure>& structure : in.structures) {
        if (!structure)
            continue;
        check_same_device(device, structure.get(), (what + ": an instance's acceleration_structure").c_str());
        if (!structure->content().is_built)
            fail_value(what, ": an instance names ", summary(structure.get()),
                       ", which was never built; record its build_acceleration_structure first");
        if (structure->content().is_top_level)
            fail_value(what, ": an instance names ", summary(structure.get()),
                       ", which holds instances itself; instances are of structures of triangles or boxes");
    }
}

const char* kind_text(bool top_level) { return top_level ? "top_level" : "bottom_level"; }

AccelerationStructure::Content content_of(const AccelerationStructureBuildDesc& desc, uint64_t size)
{
    AccelerationStructure::Content content{true, desc.is_top_level(), desc.flags, {}, size, 0};
    if (const auto* instances = std::get_if<InstanceGeometry>(&desc.inputs.front()))
        content.max_contribution = instances->max_contribution;
    for (const AccelerationStructureInput& input : desc.inputs)
        content.counts.push_back(primitive_count(input));
    return content;
}

/// What kernels reach by a handle they walk through as one of instances, unseen by these checks.
void check_handles(const AccelerationStructure& dst, bool top, const char* call)
{
    if (!top && has_handles(&dst))
        fail_value(call, " 'dst': ", summary(&dst),
                   " has a descriptor handle, by which kernels trace rays through "
                   "instances; triangles and boxes go into another structure");
}

void check_target(const AccelerationStructure& dst, const AccelerationStructureBuildDesc& desc, uint64_t size,
                  const char* call)
{
    const bool top = desc.is_top_level();
    const AccelerationStructureKind other = top ? AccelerationStructureKind::bottom_level
                                                : AccelerationStructureKind::top_level;
    if (dst.desc().kind == other)
        fail_value(call, " 'dst': ", summary(&dst), " was created as ", kind_text(!top), ", but the inputs are ",
                   top ? "instances" : "no instances");
    check_handles(dst, top, call);
    if (dst.desc().size < size)
        fail_value(call, " 'dst': ", summary(&dst), " is too small: these inputs need ", size,
                   " bytes (get_acceleration_structure_sizes)");
}

/// An update keeps all but positions.
void check_update(const AccelerationStructure* src, const AccelerationStructureBuildDesc& desc, const char* call)
{
    if (!src)
        fail_value(call, ": mode is update, but 'src' is None; give the structure to start from, which may be 'dst'");
    const AccelerationStructure::Content &was = src->content(), now = content_of(desc, 0);
    if (!was.is_built)
        fail_value(call, " 'src': ", summary(src), " was never built");
    if (!has_flag(was.flags, AccelerationStructureBuildFlags::allow_update))
        fail_value(call, " 'src': ", summary(src), " was built without AccelerationStructureBuildFlags.allow_update");
    if (was.flags != now.flags)
        fail_value(call, ": an update has the flags of the build (", uint32_t(was.flags), "), got ",
                   uint32_t(now.flags));
    if (was.is_top_level != now.is_top_level || was.counts != now.counts)
        fail_value(call, ": an update has the inputs of the build with other positions, but numbers of ",
                   "geometries or primitives differ; build anew");
}

} // namespace

uint32_t primitive_count(const AccelerationStructureInput& input)
{
    if (const auto* triangles = std::get_if<TriangleGeometry>(&input))
        return (triangles->is_indexed ? triangles->index_count : triangles->vertex_count) / 3;
    if (const auto* boxes = std::get_if<BoxGeometry>(&input))
        return boxes->count;
    return std::get<InstanceGeometry>(input).count;
}

std::vector<ref<AccelerationStructure>>
AccelerationStructure::exchange_references(std::vector<ref<AccelerationStructure>> structures)
{
    std::lock_guard lock(m_mutex);
    std::swap(structures, m_references);
    return structures;
}

void StructureUses::check(std::unordered_set<const AccelerationStructure*>& filled) const
{
    for (const ref<AccelerationStructure>& structure : m_awaited)
        if (!structure->is_submitted() && !filled.count(structure.get()))
            fail_value("submit: a command uses ", summary(structure.get()),
                       ", whose build_acceleration_structure was recorded but not submitted; submit it first");
    filled.insert(m_filled.begin(), m_filled.end());
}

std::vector<ref<AccelerationStructure>> AccelerationStructure::references() const
{
    std::lock_guard lock(m_mutex);
    return m_references;
}

void require_acceleration(const Device* device, const char* call)
{
    if (device->has_feature(feature_name))
        return;
    const DeviceInfo& info = device->info();
    fail(ErrorKind::not_implemented, call, ": ", info.adapter_name, " (", device_type_name(info.type),
         ") does not have the feature '", feature_name,
         "'; use a vulkan device whose driver has it (Device.features lists them), or the Slang module slangpy.rays, "
         "which traces rays on every device");
}

void check_build_inputs(const Device* device, AccelerationStructureBuildDesc& desc, bool with_buffers, const char* call)
{
    if (desc.inputs.empty())
        fail_value(call, ": inputs must not be empty");
    for (size_t i = 0; i < desc.inputs.size(); ++i) {
        const std::string what = cat(call, ": inputs[", i, "]");
        if (desc.inputs[i].index() != desc.inputs[0].index())
            fail_value(what, " is of another kind than inputs[0]; a structure is built from one kind");
        std::visit([&](auto& input) { check_geometry(device, input, with_buffers, what); }, desc.inputs[i]);
    }
    if (desc.is_top_level() && desc.inputs.size() > 1)
        fail_value(call, ": ", desc.inputs.size(),
                   " inputs of instances; give one with all of them (an AccelerationStructureInstanceList)");
    if (has_flag(desc.flags, AccelerationStructureBuildFlags::prefer_fast_trace) &&
        has_flag(desc.flags, AccelerationStructureBuildFlags::prefer_fast_build))
        fail_value(call, ": flags has both prefer_fast_trace and prefer_fast_build; choose one");
}

AccelerationStructureSizes acceleration_structure_sizes(Device* device, AccelerationStructureBuildDesc desc)
{
    constexpr const char* call = "get_acceleration_structure_sizes";
    check_open(device);
    require_acceleration(device, call);
    check_build_inputs(device, desc, false, call);
    return device->acceleration_structure_sizes(desc);
}

ref<AccelerationStructure> create_acceleration_structure(Device* device, const AccelerationStructureDesc& desc)
{
    constexpr const char* call = "create_acceleration_structure";
    check_open(device);
    require_acceleration(device, call);
    if (!desc.size)
        fail_value(call, ": 'size' must be at least 1; get_acceleration_structure_sizes tells what inputs need");
    return device->create_acceleration_structure(desc);
}

AccelerationStructureSizes Device::acceleration_structure_sizes(const AccelerationStructureBuildDesc&)
{
    require_acceleration(this, "get_acceleration_structure_sizes");
    fail(ErrorKind::not_implemented, "get_acceleration_structure_sizes is not implemented by this ", m_info.api_name,
         " device");
}

ref<AccelerationStructure> Device::create_acceleration_structure(const AccelerationStructureDesc&)
{
    require_acceleration(this, "create_acceleration_structure");
    fail(ErrorKind::not_implemented, "create_acceleration_structure is not implemented by this ", m_info.api_name,
         " device");
}

// --- commands

void CommandEncoder::build_acceleration_structure(AccelerationStructureBuildDesc desc, ref<AccelerationStructure> dst,
                                                  ref<AccelerationStructure> src, BufferOffset scratch,
                                                  std::span<const AccelerationStructureQuery> queries)
{
    constexpr const char* call = "build_acceleration_structure";
    check_recording(call);
    require_acceleration(device(), call);
    check_same_device(device(), dst.get(), "build_acceleration_structure 'dst'");
    if (src)
        check_same_device(device(), src.get(), "build_acceleration_structure 'src'");
    check_build_inputs(device(), desc, true, call);
    const bool updates = desc.mode == AccelerationStructureBuildMode::update;
    if (updates)
        check_update(src.get(), desc, call);
    else if (src)
        fail_value(call, ": 'src' is for mode=AccelerationStructureBuildMode.update; leave it None");
    const AccelerationStructureSizes sizes = device()->acceleration_structure_sizes(desc);
    check_target(*dst, desc, sizes.acceleration_structure_size, call);
    constexpr const char* what = "build_acceleration_structure 'scratch_buffer'";
    check_same_device(device(), scratch.buffer.get(), what);
    if (!has_flag(scratch.buffer->desc().usage, BufferUsage::unordered_access))
        fail_value(what, ": ", summary(scratch.buffer.get()), " was created without the usage flag unordered_access");
    const uint64_t needed = updates ? sizes.update_scratch_size : sizes.scratch_size;
    if (scratch.offset > scratch.buffer->desc().size || scratch.room() < needed)
        fail_value(what, ": ", scratch.offset > scratch.buffer->desc().size ? 0 : scratch.room(),
                   " bytes from the offset on are too few: this ", updates ? "update" : "build", " needs ", needed,
                   " (get_acceleration_structure_sizes)");
    if (const uint32_t alignment = device()->info().limits.acceleration_structure_scratch_alignment;
        alignment && scratch.offset % alignment)
        fail_value(what, ": the offset (", scratch.offset, ") must be a multiple of ", alignment,
                   " on this device; 256 is always fine");
    if (const auto* instances = std::get_if<InstanceGeometry>(&desc.inputs.front()))
        for (const ref<AccelerationStructure>& structure : instances->structures)
            m_structures.use(structure);
    m_structures.use(src);
    m_structures.fill(dst.get());
    dst->note_content(content_of(desc, sizes.acceleration_structure_size));
    dst->note_compacted_size({}, 0);
    add(command::BuildAccelerationStructure{std::move(desc), dst, std::move(src), std::move(scratch)});
    query_acceleration_structures({std::move(dst)}, queries);
}

void CommandEncoder::copy_acceleration_structure(ref<AccelerationStructure> dst, ref<AccelerationStructure> src,
                                                 AccelerationStructureCopyMode mode)
{
    constexpr const char* call = "copy_acceleration_structure";
    check_recording(call);
    require_acceleration(device(), call);
    check_same_device(device(), dst.get(), "copy_acceleration_structure 'dst'");
    check_same_device(device(), src.get(), "copy_acceleration_structure 'src'");
    AccelerationStructure::Content content = src->content();
    if (!content.is_built)
        fail_value(call, " 'src': ", summary(src.get()), " was never built");
    if (dst == src)
        fail_value(call, ": 'dst' and 'src' are the same structure");
    const AccelerationStructureKind other = content.is_top_level ? AccelerationStructureKind::bottom_level
                                                                 : AccelerationStructureKind::top_level;
    if (dst->desc().kind == other)
        fail_value(call, " 'dst': ", summary(dst.get()), " was created as ", kind_text(!content.is_top_level),
                   ", but 'src' is ", kind_text(content.is_top_level));
    check_handles(*dst, content.is_top_level, call);
    if (mode == AccelerationStructureCopyMode::compact) {
        if (!has_flag(content.flags, AccelerationStructureBuildFlags::allow_compaction))
            fail_value(call, " 'src': ", summary(src.get()),
                       " was built without AccelerationStructureBuildFlags.allow_compaction");
        const auto& [pool, index] = src->compacted_size();
        if (dst->desc().size < content.size && !pool)
            fail_value(call, " 'dst': ", summary(dst.get()), " is smaller than 'src' (", content.size,
                       " bytes), whose compacted size nobody has asked for; query it first "
                       "(query_acceleration_structure_properties)");
        if (pool)
            pool->get_results(index, 1, &content.size);
    }
    if (dst->desc().size < content.size)
        fail_value(call, " 'dst': ", summary(dst.get()), " is too small: the copy takes ", content.size, " bytes");
    m_structures.use(src);
    m_structures.fill(dst.get());
    dst->note_content(content);
    dst->note_compacted_size({}, 0);
    add(command::CopyAccelerationStructure{std::move(dst), std::move(src), mode});
}

void CommandEncoder::query_acceleration_structures(std::vector<ref<AccelerationStructure>> structures,
                                                   std::span<const AccelerationStructureQuery> queries)
{
    constexpr const char* call = "query_acceleration_structure_properties";
    check_recording(call);
    require_acceleration(device(), call);
    for (const ref<AccelerationStructure>& structure : structures) {
        check_same_device(device(), structure.get(), "query_acceleration_structure_properties");
        if (!structure->content().is_built)
            fail_value(call, ": ", summary(structure.get()), " was never built");
        m_structures.use(structure);
    }
    for (const AccelerationStructureQuery& query : queries) {
        check_same_device(device(), query.pool.get(), "query_acceleration_structure_properties 'query_pool'");
        if (query.type == QueryType::timestamp || query.pool->type() != query.type)
            fail_value(call,
                       ": 'query_type' must be acceleration_structure_compacted_size or _current_size, and that "
                       "of the query_pool");
        if (query.index > query.pool->count() || structures.size() > query.pool->count() - query.index)
            fail(ErrorKind::index, call, ": ", structures.size(), " results from first_query_index ", query.index,
                 " on do not fit a pool of ", query.pool->count());
        const bool compacted = query.type == QueryType::acceleration_structure_compacted_size;
        for (size_t i = 0; compacted && i < structures.size(); ++i) {
            if (!has_flag(structures[i]->content().flags, AccelerationStructureBuildFlags::allow_compaction))
                fail_value(call, ": ", summary(structures[i].get()),
                           " was built without AccelerationStructureBuildFlags.allow_compaction");
            structures[i]->note_compacted_size(query.pool, query.index + uint32_t(i));
        }
        if (!structures.empty())
            add(command::QueryAccelerationStructures{structures, query.pool, query.index});
    }
}

} // namespace spy
