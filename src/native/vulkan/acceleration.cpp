// Acceleration structures: sizes, memory, builds, copies, queries.
#include "vulkan/acceleration.h"

#include "core/error.h"
#include "vulkan/device.h"

#include <algorithm>

namespace spy {

namespace {

/// A description in Vulkan's terms; its parts point into it.
struct BuildInfo {
    std::vector<VkAccelerationStructureGeometryKHR> geometries;
    std::vector<uint32_t> counts;
    std::vector<VkAccelerationStructureBuildRangeInfoKHR> ranges;
    VkAccelerationStructureBuildGeometryInfoKHR info{VK_STRUCTURE_TYPE_ACCELERATION_STRUCTURE_BUILD_GEOMETRY_INFO_KHR};
};

VkFormat vertex_format(Format format)
{
    // The fourth channel does not count, and drivers need not know the format.
    return format == Format::rgba32_float ? VK_FORMAT_R32G32B32_SFLOAT : VkFormat(format_info(format).vk_format);
}

/// Where it lies; `none` stands for what is not there: the address of some buffer.
VkDeviceOrHostAddressConstKHR address_of(const BufferOffset& at, uint64_t none)
{
    VkDeviceOrHostAddressConstKHR address{};
    address.deviceAddress = at.buffer ? at.buffer->device_address() + at.offset : none;
    return address;
}

void fill(VkAccelerationStructureGeometryKHR& out, const TriangleGeometry& in, uint64_t none)
{
    out.geometryType = VK_GEOMETRY_TYPE_TRIANGLES_KHR;
    VkAccelerationStructureGeometryTrianglesDataKHR& to = out.geometry.triangles;
    to = {VK_STRUCTURE_TYPE_ACCELERATION_STRUCTURE_GEOMETRY_TRIANGLES_DATA_KHR};
    to.vertexFormat = vertex_format(in.vertex_format);
    to.vertexData = address_of(in.vertices, none);
    to.vertexStride = in.vertex_stride;
    to.maxVertex = in.vertex_count ? in.vertex_count - 1 : 0;
    to.indexType = !in.is_indexed                ? VK_INDEX_TYPE_NONE_KHR
        : in.index_format == IndexFormat::uint16 ? VK_INDEX_TYPE_UINT16
                                                 : VK_INDEX_TYPE_UINT32;
    if (in.is_indexed)
        to.indexData = address_of(in.indices, none);
    to.transformData = address_of(in.transform, 0);
    out.flags = VkGeometryFlagsKHR(in.flags);
}

void fill(VkAccelerationStructureGeometryKHR& out, const BoxGeometry& in, uint64_t none)
{
    out.geometryType = VK_GEOMETRY_TYPE_AABBS_KHR;
    out.geometry.aabbs = {VK_STRUCTURE_TYPE_ACCELERATION_STRUCTURE_GEOMETRY_AABBS_DATA_KHR};
    out.geometry.aabbs.data = address_of(in.boxes, none);
    out.geometry.aabbs.stride = in.stride;
    out.flags = VkGeometryFlagsKHR(in.flags);
}

void fill(VkAccelerationStructureGeometryKHR& out, const InstanceGeometry& in, uint64_t none)
{
    out.geometryType = VK_GEOMETRY_TYPE_INSTANCES_KHR;
    out.geometry.instances = {VK_STRUCTURE_TYPE_ACCELERATION_STRUCTURE_GEOMETRY_INSTANCES_DATA_KHR};
    out.geometry.instances.data = address_of(in.instances, none);
}

static_assert(uint32_t(AccelerationStructureGeometryFlags::opaque) == VK_GEOMETRY_OPAQUE_BIT_KHR);
static_assert(uint32_t(AccelerationStructureGeometryFlags::no_duplicate_any_hit_invocation) ==
              VK_GEOMETRY_NO_DUPLICATE_ANY_HIT_INVOCATION_BIT_KHR);
static_assert(uint32_t(AccelerationStructureBuildFlags::allow_compaction) ==
              VK_BUILD_ACCELERATION_STRUCTURE_ALLOW_COMPACTION_BIT_KHR);
static_assert(uint32_t(AccelerationStructureBuildFlags::minimize_memory) ==
              VK_BUILD_ACCELERATION_STRUCTURE_LOW_MEMORY_BIT_KHR);

void fill(BuildInfo& out, const AccelerationStructureBuildDesc& desc, uint64_t none)
{
    for (const AccelerationStructureInput& input : desc.inputs) {
        VkAccelerationStructureGeometryKHR& geometry = out.geometries.emplace_back();
        geometry = {VK_STRUCTURE_TYPE_ACCELERATION_STRUCTURE_GEOMETRY_KHR};
        std::visit([&](const auto& in) { fill(geometry, in, none); }, input);
        out.counts.push_back(primitive_count(input));
        out.ranges.push_back({out.counts.back(), 0, 0, 0});
    }
    out.info.type = desc.is_top_level() ? VK_ACCELERATION_STRUCTURE_TYPE_TOP_LEVEL_KHR
                                        : VK_ACCELERATION_STRUCTURE_TYPE_BOTTOM_LEVEL_KHR;
    out.info.flags = VkBuildAccelerationStructureFlagsKHR(desc.flags);
    out.info.mode = desc.mode == AccelerationStructureBuildMode::update
        ? VK_BUILD_ACCELERATION_STRUCTURE_MODE_UPDATE_KHR
        : VK_BUILD_ACCELERATION_STRUCTURE_MODE_BUILD_KHR;
    out.info.geometryCount = uint32_t(out.geometries.size());
    out.info.pGeometries = out.geometries.data();
}

void check_limits(const VulkanContext& context, const AccelerationStructureBuildDesc& desc)
{
    constexpr const char* what = "acceleration structure: ";
    const VkPhysicalDeviceAccelerationStructurePropertiesKHR& limits = context.adapter->acceleration;
    uint64_t count = 0;
    for (const AccelerationStructureInput& input : desc.inputs) {
        count += primitive_count(input);
        const auto* triangles = std::get_if<TriangleGeometry>(&input);
        if (!triangles || triangles->vertex_format == Format::rgba32_float)
            continue;
        const VkFormatFeatureFlags flags = context.format_properties(triangles->vertex_format).bufferFeatures;
        if (!(flags & VK_FORMAT_FEATURE_ACCELERATION_STRUCTURE_VERTEX_BUFFER_BIT_KHR))
            fail_value(what, context.name(), " does not take vertices of ", format_name(triangles->vertex_format),
                       "; use rgb32_float");
    }
    const uint64_t most = desc.is_top_level() ? limits.maxInstanceCount : limits.maxPrimitiveCount;
    if (count > most)
        fail_value(what, count, desc.is_top_level() ? " instances" : " primitives", " are more than the ", most, " of ",
                   context.name());
    if (desc.inputs.size() > limits.maxGeometryCount)
        fail_value(what, desc.inputs.size(), " inputs are more than the ", limits.maxGeometryCount, " of ",
                   context.name());
}

VkAccelerationStructureTypeKHR type_of(AccelerationStructureKind kind)
{
    switch (kind) {
    case AccelerationStructureKind::bottom_level: return VK_ACCELERATION_STRUCTURE_TYPE_BOTTOM_LEVEL_KHR;
    case AccelerationStructureKind::top_level: return VK_ACCELERATION_STRUCTURE_TYPE_TOP_LEVEL_KHR;
    default: return VK_ACCELERATION_STRUCTURE_TYPE_GENERIC_KHR;
    }
}

VkAccelerationStructureKHR handle_of(const ref<AccelerationStructure>& structure)
{
    return structure ? static_cast<VulkanAccelerationStructure*>(structure.get())->handle()
                     : VkAccelerationStructureKHR(VK_NULL_HANDLE);
}

} // namespace

VkQueryType acceleration_query(const VulkanContext& context, QueryType type)
{
    if (type == QueryType::acceleration_structure_compacted_size)
        return VK_QUERY_TYPE_ACCELERATION_STRUCTURE_COMPACTED_SIZE_KHR;
    if (!context.features.ray_maintenance.rayTracingMaintenance1)
        fail(ErrorKind::not_implemented, "create_query_pool: ", context.name(),
             " does not tell current sizes of acceleration structures (VK_KHR_ray_tracing_maintenance1 is missing); "
             "get_acceleration_structure_sizes tells those of inputs");
    return VK_QUERY_TYPE_ACCELERATION_STRUCTURE_SIZE_KHR;
}

VulkanAccelerationStructure::VulkanAccelerationStructure(ref<Device> device, AccelerationStructureDesc desc)
    : AccelerationStructure(std::move(device), std::move(desc))
{
    VulkanDevice& owner = *static_cast<VulkanDevice*>(m_device.get());
    const VulkanFunctions& vk = owner.context().vk;
    const VkDevice handle = owner.context().device;
    VkBufferCreateInfo buffer{VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO};
    buffer.size = m_desc.size;
    buffer.usage = VK_BUFFER_USAGE_ACCELERATION_STRUCTURE_STORAGE_BIT_KHR | VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT;
    std::lock_guard lock(owner.queue().mutex());
    owner.queue().throttle_garbage();
    vk_check(vk.CreateBuffer(handle, &buffer, nullptr, &m_buffer), "vkCreateBuffer");
    try {
        AllocationRequest request;
        vk.GetBufferMemoryRequirements(handle, m_buffer, &request.requirements);
        request.requirements.alignment = std::max<VkDeviceSize>(request.requirements.alignment, 256);
        request.buffer = m_buffer;
        m_allocation = owner.memory().allocate(request);
        vk_check(vk.BindBufferMemory(handle, m_buffer, m_allocation.memory, m_allocation.offset), "vkBindBufferMemory");
        VkAccelerationStructureCreateInfoKHR info{VK_STRUCTURE_TYPE_ACCELERATION_STRUCTURE_CREATE_INFO_KHR};
        info.buffer = m_buffer;
        info.size = m_desc.size;
        info.type = type_of(m_desc.kind);
        vk_check(vk.CreateAccelerationStructureKHR(handle, &info, nullptr, &m_handle),
                 "vkCreateAccelerationStructureKHR");
        VkAccelerationStructureDeviceAddressInfoKHR address{
            VK_STRUCTURE_TYPE_ACCELERATION_STRUCTURE_DEVICE_ADDRESS_INFO_KHR};
        address.accelerationStructure = m_handle;
        m_address = vk.GetAccelerationStructureDeviceAddressKHR(handle, &address);
    } catch (...) {
        release();
        throw;
    }
    owner.context().set_name(VK_OBJECT_TYPE_ACCELERATION_STRUCTURE_KHR, uint64_t(m_handle), m_desc.label);
}

void VulkanAccelerationStructure::release() noexcept
{
    VulkanQueue& queue = static_cast<VulkanDevice*>(m_device.get())->queue();
    queue.discard(VK_OBJECT_TYPE_ACCELERATION_STRUCTURE_KHR, uint64_t(std::exchange(m_handle, VK_NULL_HANDLE)));
    queue.discard(VK_OBJECT_TYPE_BUFFER, uint64_t(std::exchange(m_buffer, VK_NULL_HANDLE)),
                  std::exchange(m_allocation, {}));
    m_address = 0;
}

AccelerationStructureSizes VulkanDevice::acceleration_structure_sizes(const AccelerationStructureBuildDesc& desc)
{
    require_open("get_acceleration_structure_sizes");
    check_limits(m_context, desc);
    BuildInfo build;
    fill(build, desc, 0);
    build.info.mode = VK_BUILD_ACCELERATION_STRUCTURE_MODE_BUILD_KHR;
    VkAccelerationStructureBuildSizesInfoKHR sizes{VK_STRUCTURE_TYPE_ACCELERATION_STRUCTURE_BUILD_SIZES_INFO_KHR};
    m_context.vk.GetAccelerationStructureBuildSizesKHR(
        m_context.device, VK_ACCELERATION_STRUCTURE_BUILD_TYPE_DEVICE_KHR, &build.info, build.counts.data(), &sizes);
    // A buffer has at least one byte.
    const auto some = [](uint64_t size) { return std::max<uint64_t>(size, 16); };
    return {some(sizes.accelerationStructureSize), some(sizes.buildScratchSize), some(sizes.updateScratchSize)};
}

ref<AccelerationStructure> VulkanDevice::create_acceleration_structure(const AccelerationStructureDesc& desc)
{
    require_open("create_acceleration_structure");
    return ref<AccelerationStructure>(new VulkanAccelerationStructure(ref<Device>(this), desc));
}

void VulkanRecorder::record(const command::BuildAccelerationStructure& command)
{
    BuildInfo build;
    const uint64_t scratch = command.scratch.buffer->device_address();
    fill(build, command.desc, scratch);
    build.info.srcAccelerationStructure = handle_of(command.src);
    build.info.dstAccelerationStructure = handle_of(command.dst);
    build.info.scratchData.deviceAddress = scratch + command.scratch.offset;
    const VkAccelerationStructureBuildRangeInfoKHR* ranges = build.ranges.data();
    m_context.vk.CmdBuildAccelerationStructuresKHR(m_queue.begin_command(true), 1, &build.info, &ranges);
}

void VulkanRecorder::record(const command::CopyAccelerationStructure& command)
{
    VkCopyAccelerationStructureInfoKHR info{VK_STRUCTURE_TYPE_COPY_ACCELERATION_STRUCTURE_INFO_KHR};
    info.src = handle_of(command.src);
    info.dst = handle_of(command.dst);
    info.mode = command.mode == AccelerationStructureCopyMode::compact ? VK_COPY_ACCELERATION_STRUCTURE_MODE_COMPACT_KHR
                                                                       : VK_COPY_ACCELERATION_STRUCTURE_MODE_CLONE_KHR;
    m_context.vk.CmdCopyAccelerationStructureKHR(m_queue.begin_command(true), &info);
}

void VulkanRecorder::record(const command::QueryAccelerationStructures& command)
{
    auto& pool = *static_cast<VulkanQueryPool*>(command.pool.get());
    std::vector<VkAccelerationStructureKHR> handles;
    for (const ref<AccelerationStructure>& structure : command.structures)
        handles.push_back(handle_of(structure));
    const uint32_t count = uint32_t(handles.size());
    VkCommandBuffer commands = m_queue.begin_command(true);
    m_context.vk.CmdResetQueryPool(commands, pool.handle(), command.index, count);
    m_context.vk.CmdWriteAccelerationStructuresPropertiesKHR(
        commands, count, handles.data(), acceleration_query(m_context, pool.type()), pool.handle(), command.index);
    for (uint32_t i = 0; i < count; ++i)
        pool.mark_written(command.index + i, m_queue.timeline.submitted() + 1);
}

} // namespace spy
