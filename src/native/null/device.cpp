// The null device: checks and records what it is told, and computes nothing.
#include "device/backend.h"
#include "device/profile.h"
#include "device/texel_format.h"
#include "null/device.h"

#include <utility>

namespace spy::null {

NullDevice::NullDevice(const DeviceDesc& desc)
{
    m_desc = desc;
    m_info.type = DeviceType::null;
    m_info.on_host = true;
    m_info.api_name = "null";
    m_info.adapter_name = "null";
    m_info.timestamp_frequency = 1'000'000'000;
    DeviceLimits& limits = m_info.limits;
    limits.max_texture_dimension_1d = limits.max_texture_dimension_2d = limits.max_texture_dimension_cube = 16384;
    limits.max_texture_dimension_3d = limits.max_texture_layers = 2048;
    limits.max_compute_threads_per_group = 1024;
    limits.max_compute_thread_group_size = {1024, 1024, 64};
    limits.max_compute_dispatch_thread_groups = {0x7fffffff, 0x7fffffff, 0x7fffffff};
    limits.max_entry_point_uniform_size = 4096;
    m_info.features = {
        "software_device", "parameter_block",        "timestamp_query", "half",        "double",  "int16",
        "int64",           "atomic_float",           "pointer",         "sm_5_1",      "sm_6_0",  "rasterization",
        "mesh_shader",     "acceleration_structure", "ray_query",       "ray_tracing", "bindless"};
    limits.max_ray_dispatch = 1u << 30;
    m_info.capabilities = {"cpp"};
    m_target = {"cpp", "", {}, {{"__TARGET_CPU__", "1"}}};
}

uint32_t NullDevice::format_support(Format format)
{
    if (format == Format::undefined)
        return 0;
    const FormatInfo& info = format_info(format);
    FormatSupport support = FormatSupport::buffer | FormatSupport::texture | FormatSupport::shader_load |
        FormatSupport::shader_sample | FormatSupport::shader_uav_load | FormatSupport::shader_uav_store |
        FormatSupport::copy_source | FormatSupport::copy_destination;
    if (info.is_depth_stencil())
        support = support | FormatSupport::depth_stencil;
    else if (!info.is_compressed())
        support = support | FormatSupport::render_target | FormatSupport::vertex_buffer;
    if (!info.is_compressed())
        support = support | FormatSupport::multisampling;
    if (!info.is_depth_stencil() && !info.is_compressed() && !info.is_integer_format())
        support = support | FormatSupport::blendable | FormatSupport::resolvable;
    return uint32_t(support);
}

DescriptorHandle NullDevice::make_handle(DeviceObject* object, DescriptorHandleType type)
{
    std::lock_guard lock(m_mutex);
    const auto* buffer = dynamic_cast<const Buffer*>(object);
    return {type, m_handles.take(m_desc.bindless, type), buffer ? buffer->desc().size : 0};
}

void NullDevice::drop_handle(const DescriptorHandle& handle) noexcept
{
    std::lock_guard lock(m_mutex);
    m_handles.give_back(handle.type, handle.value);
}

void NullDevice::launch(const LaunchDesc& desc)
{
    LaunchRecord record;
    record.kernel = desc.kernel->label();
    record.group_count = desc.group_count;
    for (const std::span<const uint8_t>& scope : desc.arguments.scopes)
        record.scope_sizes.push_back(scope.size());
    for (const ref<Object>& slot : desc.arguments.slots)
        record.slot_count += slot ? 1 : 0;
    if (Profiler* const profiler = this->profiler()) { // nothing runs, which takes no time
        const uint64_t now = host_ticks();
        profiler->note(work_of(desc), now, now);
    }
    std::lock_guard lock(m_mutex);
    if (m_records.size() == max_records)
        m_records.erase(m_records.begin(), m_records.begin() + max_records / 2);
    m_records.push_back(std::move(record));
    ++m_submit_id;
}

void NullDevice::run_render_pass(const command::RenderPass& pass)
{
    static constexpr const char* kinds[] = {"vertices", "indexed", "indirect", "indexed_indirect", "mesh_tasks"};
    PassRecord record{pass.width, pass.height, pass.layer_count, pass.sample_count, {}};
    for (const command::RenderItem& item : pass.items) {
        if (const auto* timestamp = std::get_if<command::WriteTimestamp>(&item))
            static_cast<HostQueryPool*>(timestamp->pool.get())->write(timestamp->index);
        const auto* draw = std::get_if<command::Draw>(&item);
        if (!draw)
            continue;
        DrawRecord& out = record.draws.emplace_back();
        out.pipeline = draw->pipeline->label();
        out.kind = kinds[size_t(draw->kind)];
        out.arguments = draw->arguments;
        out.group_count = draw->group_count;
        out.max_draw_count = draw->max_draw_count;
        out.stencil_ref = draw->state->stencil_ref;
        out.viewports = draw->state->viewports;
        out.scissor_rects = draw->state->scissor_rects;
        for (const BufferOffset& stream : draw->state->vertex_buffers)
            out.vertex_buffer_count += stream.buffer ? 1 : 0;
        for (const ref<Object>& slot : draw->bound->slots)
            out.slot_count += slot ? 1 : 0;
    }
    std::lock_guard lock(m_mutex);
    if (m_passes.size() == max_records)
        m_passes.erase(m_passes.begin(), m_passes.begin() + max_records / 2);
    m_passes.push_back(std::move(record));
}

std::vector<PassRecord> NullDevice::take_passes()
{
    std::lock_guard lock(m_mutex);
    return std::exchange(m_passes, {});
}

void NullDevice::run_ray_command(const Command& command)
{
    RayRecord record;
    const AccelerationStructure* structure = nullptr;
    if (const auto* build = std::get_if<command::BuildAccelerationStructure>(&command)) {
        record.kind = build->desc.mode == AccelerationStructureBuildMode::update ? "update" : "build";
        structure = build->dst.get();
    } else if (const auto* copy = std::get_if<command::CopyAccelerationStructure>(&command)) {
        record.kind = copy->mode == AccelerationStructureCopyMode::compact ? "compact" : "clone";
        structure = copy->dst.get();
    } else if (const auto* query = std::get_if<command::QueryAccelerationStructures>(&command)) {
        record.kind = "query";
        for (size_t i = 0; i < query->structures.size(); ++i)
            static_cast<HostQueryPool*>(query->pool.get())
                ->write(query->index + uint32_t(i), query->structures[i]->content().size);
    } else if (const auto* rays = std::get_if<command::DispatchRays>(&command)) {
        record.kind = "rays";
        record.counts.assign(rays->dimensions.begin(), rays->dimensions.end());
    }
    if (structure)
        record.counts = structure->content().counts;
    std::lock_guard lock(m_mutex);
    if (m_ray_commands.size() == max_records)
        m_ray_commands.erase(m_ray_commands.begin(), m_ray_commands.begin() + max_records / 2);
    m_ray_commands.push_back(std::move(record));
}

/// Numbers of a likely size.
AccelerationStructureSizes NullDevice::acceleration_structure_sizes(const AccelerationStructureBuildDesc& desc)
{
    uint64_t count = 0;
    for (const AccelerationStructureInput& input : desc.inputs)
        count += primitive_count(input);
    return {256 + count * 64, 256 + count * 32, 256};
}

std::vector<RayRecord> NullDevice::take_ray_commands()
{
    std::lock_guard lock(m_mutex);
    return std::exchange(m_ray_commands, {});
}

std::vector<LaunchRecord> NullDevice::take_records()
{
    std::lock_guard lock(m_mutex);
    return std::exchange(m_records, {});
}

} // namespace spy::null

namespace spy {

Backend null_backend()
{
    return {DeviceType::null, "null", [] { return std::vector<AdapterInfo>{{"null", 0, 0, {}, true}}; },
            [](const DeviceDesc& desc) -> ref<Device> { return new null::NullDevice(desc); }};
}

} // namespace spy
