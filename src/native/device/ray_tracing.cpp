// Ray-tracing pipelines and shader tables: what a description must hold, checked once for all backends.
#include "device/ray_tracing.h"

#include "core/error.h"
#include "device/backend.h"
#include "device/encoder.h"
#include "device/resource.h"

#include <algorithm>
#include <set>

namespace spy {

namespace {

constexpr const char* ray_create_call = "create_ray_tracing_pipeline";

bool is_ray_stage(ShaderStage stage) { return stage >= ShaderStage::ray_generation && stage <= ShaderStage::callable; }

std::string names_of_stage(const ProgramLayout& layout, ShaderStage stage)
{
    std::string names;
    for (const EntryPoint& entry : layout.entry_points)
        if (entry.stage == stage)
            names += (names.empty() ? "'" : ", '") + entry.name + "'";
    return names.empty() ? "none" : names;
}

/// `what` names the field in messages.
void check_entry_point(const ProgramLayout& layout, const std::string& name, ShaderStage stage, const std::string& what)
{
    if (name.empty())
        return;
    for (const EntryPoint& entry : layout.entry_points)
        if (entry.name == name) {
            if (entry.stage != stage)
                fail_value(what, ": '", name, "' is a ", stage_name(entry.stage), " entry point, expected a ",
                           stage_name(stage), " one");
            return;
        }
    fail_value(what, ": Entry point \"", name, "\" not found in the program; its ", stage_name(stage),
               " entry points are ", names_of_stage(layout, stage));
}

void check_stages(const ProgramLayout& layout)
{
    bool generates = false;
    for (const EntryPoint& entry : layout.entry_points) {
        generates |= entry.stage == ShaderStage::ray_generation;
        if (!is_ray_stage(entry.stage))
            fail_value(ray_create_call, ": '", entry.name, "' is a ", stage_name(entry.stage),
                       " entry point; a ray-tracing pipeline has raygeneration, miss, closesthit, anyhit, intersection "
                       "and callable entry points: link those alone");
        if (entry.stage != ShaderStage::ray_generation && layout.scopes[entry.scope].size)
            fail(ErrorKind::not_implemented, ray_create_call, ": '", entry.name,
                 "' has uniform parameters of its own, which only ray generation may have; make them global");
    }
    if (!generates)
        fail_value(ray_create_call,
                   ": the program has no ray generation entry point; link one "
                   "([shader(\"raygeneration\")])");
}

void check_hit_groups(const RayTracingPipelineDesc& desc)
{
    std::set<std::string> names;
    for (size_t i = 0; i < desc.state.hit_groups.size(); ++i) {
        const HitGroupDesc& group = desc.state.hit_groups[i];
        const std::string what = cat(ray_create_call, ": hit_groups[", i, "]");
        if (group.hit_group_name.empty())
            fail_value(what, " has no hit_group_name");
        if (!names.insert(group.hit_group_name).second)
            fail_value(what, ": another hit group is called '", group.hit_group_name, "', too");
        check_entry_point(*desc.layout, group.closest_hit_entry_point, ShaderStage::closest_hit,
                          what + " 'closest_hit_entry_point'");
        check_entry_point(*desc.layout, group.any_hit_entry_point, ShaderStage::any_hit,
                          what + " 'any_hit_entry_point'");
        check_entry_point(*desc.layout, group.intersection_entry_point, ShaderStage::intersection,
                          what + " 'intersection_entry_point'");
    }
}

void check_names(const ProgramLayout& layout, const std::vector<std::string>& names, ShaderStage stage,
                 const char* field, const char* call)
{
    for (size_t i = 0; i < names.size(); ++i)
        check_entry_point(layout, names[i], stage, cat(call, ": ", field, "[", i, "]"));
}

} // namespace

void require_ray_tracing(const Device* device, const char* call)
{
    if (device->has_feature("ray_tracing"))
        return;
    const DeviceInfo& info = device->info();
    fail(ErrorKind::not_implemented, call, ": ", info.adapter_name, " (", device_type_name(info.type),
         ") does not have the feature 'ray_tracing'; use a vulkan device whose driver has it (Device.features lists "
         "them), or trace in a compute kernel: with RayQuery, or with the Slang module slangpy.rays, which works on "
         "every device");
}

RayTracingPipeline::RayTracingPipeline(ref<Device> device, const RayTracingPipelineDesc& desc)
    : DeviceObject(std::move(device)),
      m_layout(desc.layout),
      m_state(desc.state),
      m_label(desc.label),
      m_print_slot(print_slot_of(*m_layout))
{
}

void check_ray_tracing_pipeline(const Device* device, const RayTracingPipelineDesc& desc)
{
    require_ray_tracing(device, ray_create_call);
    check_stages(*desc.layout);
    check_hit_groups(desc);
    const RayTracingPipelineState& state = desc.state;
    for (const RayTracingPipelineFlags flag :
         {RayTracingPipelineFlags::enable_spheres, RayTracingPipelineFlags::enable_linear_swept_spheres})
        if (has_flag(state.flags, flag))
            fail(ErrorKind::not_implemented, ray_create_call,
                 ": spheres and linear swept spheres are not implemented; use boxes with an intersection shader");
    const DeviceLimits& limits = device->info().limits;
    if (limits.max_ray_recursion && state.max_recursion > limits.max_ray_recursion)
        fail_value(ray_create_call, ": 'max_recursion' is ", state.max_recursion, "; ", device->info().adapter_name,
                   " allows ", limits.max_ray_recursion, ": loop in the ray generation shader");
    if (limits.max_ray_attribute_size && state.max_attribute_size > limits.max_ray_attribute_size)
        fail_value(ray_create_call, ": 'max_attribute_size' is ", state.max_attribute_size, "; ",
                   device->info().adapter_name, " allows ", limits.max_ray_attribute_size, " bytes");
}

ref<RayTracingPipeline> create_ray_tracing_pipeline(Device* device, const RayTracingPipelineDesc& desc)
{
    check_open(device);
    check_ray_tracing_pipeline(device, desc);
    if (desc.stages.size() != desc.layout->entry_points.size())
        fail_runtime(ray_create_call, ": ", desc.stages.size(), " pieces of code for ",
                     desc.layout->entry_points.size(), " entry points");
    return device->create_ray_tracing_pipeline(desc);
}

ref<RayTracingPipeline> Device::create_ray_tracing_pipeline(const RayTracingPipelineDesc&)
{
    require_ray_tracing(this, ray_create_call);
    fail(ErrorKind::not_implemented, ray_create_call, " is not implemented by this ", m_info.api_name, " device");
}

ShaderTable::ShaderTable(ref<Device> device, ShaderTableDesc desc, const ProgramLayout& layout, ref<Object> program)
    : DeviceObject(std::move(device)),
      m_desc(std::move(desc)),
      m_program(std::move(program)),
      m_entry_points(names_of_entry_points(layout))
{
}

std::string names_of_entry_points(const ProgramLayout& layout)
{
    std::string names;
    for (const EntryPoint& entry : layout.entry_points)
        names += (names.empty() ? "'" : ", '") + entry.name + "'";
    return names;
}

void check_shader_table(const ProgramLayout& layout, const ShaderTableDesc& desc, const char* call)
{
    check_names(layout, desc.ray_gen_entry_points, ShaderStage::ray_generation, "ray_gen_entry_points", call);
    check_names(layout, desc.miss_entry_points, ShaderStage::miss, "miss_entry_points", call);
    check_names(layout, desc.callable_entry_points, ShaderStage::callable, "callable_entry_points", call);
}

void check_shader_table(const RayTracingPipeline& pipeline, const ShaderTable& table, const char* call)
{
    check_shader_table(pipeline.layout(), table.desc(), call);
    std::set<std::string> known;
    std::string text;
    for (const HitGroupDesc& group : pipeline.state().hit_groups) {
        known.insert(group.hit_group_name);
        text += (text.empty() ? "'" : ", '") + group.hit_group_name + "'";
    }
    for (const std::string& name : table.desc().hit_group_names)
        if (!name.empty() && !known.count(name))
            fail_value(call, ": the shader table names the hit group '", name, "', which pipeline '", pipeline.label(),
                       "' does not have; it has ", text.empty() ? "none" : text);
}

} // namespace spy
