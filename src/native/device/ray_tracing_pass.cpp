// Ray-tracing passes.
#include "device/ray_tracing_pass.h"

#include "core/error.h"
#include "device/resource.h"

#include <algorithm>

namespace spy {

ref<RayTracingPassEncoder> CommandEncoder::begin_ray_tracing_pass()
{
    check_recording("begin_ray_tracing_pass");
    require_ray_tracing(device(), "begin_ray_tracing_pass");
    m_pass_open = "ray-tracing";
    return new RayTracingPassEncoder(this);
}

void check_rays(const Device* device, const ShaderTable& table, uint64_t ray_gen_index,
                std::array<uint32_t, 3> dimensions, const char* call)
{
    const std::vector<std::string>& names = table.desc().ray_gen_entry_points;
    if (ray_gen_index >= names.size())
        fail_value(call, ": ray_gen_shader_index is ", ray_gen_index, ", but the shader table has ", names.size(),
                   " ray generation entry points");
    if (names[ray_gen_index].empty())
        fail_value(call, ": the ray generation entry point ", ray_gen_index, " of the shader table is an empty name");
    const DeviceLimits& limits = device->info().limits;
    uint64_t rays = 1;
    for (size_t i = 0; i < 3; ++i) {
        const uint64_t most = uint64_t(limits.max_compute_dispatch_thread_groups[i]) *
            limits.max_compute_thread_group_size[i];
        if (most && dimensions[i] > most)
            fail_value(call, ": ", dimensions[i], " rays in ", "xyz"[i], ", but the device's limit is ", most,
                       "; dispatch parts, one after the other");
        // Each factor fits 32 bits, and so does the product so far: beyond the limit it does not grow.
        rays = std::min<uint64_t>(rays, 0xffffffffu) * dimensions[i];
    }
    if (limits.max_ray_dispatch && rays > limits.max_ray_dispatch)
        fail_value(call, ": ", dimensions[0], " x ", dimensions[1], " x ", dimensions[2],
                   " rays are more than the device's limit of ", limits.max_ray_dispatch,
                   "; dispatch parts, one after the other");
}

void check_hit_records(const ProgramLayout& layout, const ShaderTable& table, std::span<const ref<Object>> slots,
                       const char* call)
{
    const uint64_t count = table.desc().hit_group_names.size();
    for (size_t i = 0; count && i < std::min(slots.size(), layout.slots.size()); ++i) {
        if (layout.slots[i].kind != SlotKind::acceleration_structure || !slots[i])
            continue;
        const auto& structure = *static_cast<const AccelerationStructure*>(slots[i].get());
        if (structure.content().max_contribution >= count)
            fail_value(call, ": an instance of '", layout.slots[i].path,
                       "' has instance_contribution_to_hit_group_index ", structure.content().max_contribution,
                       ", but the shader table has ", count, " hit groups");
    }
}

void RayTracingPassEncoder::check_open(const char* call) const
{
    if (m_ended)
        fail_runtime(call, ": the ray-tracing pass has ended; begin another with begin_ray_tracing_pass()");
    m_encoder->check_recording(call, true);
}

ref<ShaderObject> RayTracingPassEncoder::bind_pipeline(ref<RayTracingPipeline> pipeline, ref<ShaderTable> table,
                                                       ref<ShaderObject> root)
{
    check_open("bind_pipeline");
    Device* device = m_encoder->device();
    check_same_device(device, pipeline.get(), "bind_pipeline 'pipeline'");
    check_same_device(device, table.get(), "bind_pipeline 'shader_table'");
    check_shader_table(*pipeline, *table, "bind_pipeline");
    m_root = root_for(device, pipeline->layout(), pipeline->label(), std::move(root));
    m_pipeline = std::move(pipeline);
    m_table = std::move(table);
    return m_root;
}

void RayTracingPassEncoder::dispatch_rays(uint64_t ray_gen_index, std::array<uint32_t, 3> dimensions)
{
    constexpr const char* call = "dispatch_rays";
    check_open(call);
    if (!m_pipeline)
        fail_runtime(call, ": no pipeline is bound; call bind_pipeline first");
    Device* device = m_encoder->device();
    check_rays(device, *m_table, ray_gen_index, dimensions, call);
    if (!dimensions[0] || !dimensions[1] || !dimensions[2])
        return;
    m_root->check_bound(device->desc().enable_rhi_validation);
    command::DispatchRays dispatch;
    dispatch.pipeline = m_pipeline;
    dispatch.table = m_table;
    dispatch.ray_gen_index = uint32_t(ray_gen_index);
    dispatch.dimensions = dimensions;
    m_root->copy_to(dispatch.scopes, dispatch.slots, dispatch.keep_alive);
    check_arguments(device, m_pipeline->layout(), m_pipeline->label(), dispatch.slots, &m_encoder->m_structures);
    check_hit_records(m_pipeline->layout(), *m_table, dispatch.slots, call);
    bind_print_buffer(device, m_pipeline->print_slot(), dispatch.slots);
    m_encoder->add(std::move(dispatch));
}

void RayTracingPassEncoder::write_timestamp(ref<QueryPool> pool, uint32_t index)
{
    check_open("write_timestamp");
    m_encoder->write_timestamp(std::move(pool), index, true);
}

void RayTracingPassEncoder::debug_marker(command::DebugMarker::Kind kind, std::string name, std::array<float, 3> color)
{
    check_open("debug marker");
    m_encoder->debug_marker(kind, std::move(name), color, true);
}

void RayTracingPassEncoder::end()
{
    if (m_ended)
        return;
    m_ended = true;
    m_encoder->m_pass_open = nullptr;
    m_pipeline.reset();
    m_table.reset();
    m_root.reset();
}

} // namespace spy
