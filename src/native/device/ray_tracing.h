#pragma once
// Ray-tracing pipelines and shader tables. Recording of rays is in ray_tracing_pass.h.
#include "device/acceleration.h"

namespace spy {

enum class RayTracingPipelineFlags : uint32_t {
    none = 0,
    skip_triangles = 1,
    skip_procedurals = 2,
    enable_spheres = 4,
    enable_linear_swept_spheres = 8,
};

/// Entry points by name; empty: there is none. Of boxes where there is an intersection entry point, else of triangles.
struct HitGroupDesc {
    std::string hit_group_name, closest_hit_entry_point, any_hit_entry_point, intersection_entry_point;
};

struct RayTracingPipelineState {
    std::vector<HitGroupDesc> hit_groups;
    uint32_t max_recursion = 0; ///< of TraceRay; 1: ray generation alone calls it
    uint32_t max_ray_payload_size = 0, max_attribute_size = 8;
    RayTracingPipelineFlags flags = RayTracingPipelineFlags::none;
};

struct RayTracingPipelineDesc {
    std::span<const StageCode> stages; ///< in the order of the layout's entry points
    ref<ProgramLayout> layout;
    RayTracingPipelineState state;
    std::string label;
};

/// Made by Device::create_ray_tracing_pipeline.
class RayTracingPipeline : public DeviceObject {
public:
    RayTracingPipeline(ref<Device> device, const RayTracingPipelineDesc& desc);
    const ProgramLayout& layout() const { return *m_layout; }
    const RayTracingPipelineState& state() const { return m_state; }
    const std::string& label() const { return m_label; }
    int print_slot() const { return m_print_slot; } ///< as of Kernel
    virtual NativeHandle native_handle() const { return {}; }

protected:
    ref<ProgramLayout> m_layout;
    RayTracingPipelineState m_state;
    std::string m_label;
    int m_print_slot = -1;
};

/// The index in each list is the one that shaders use. An empty name is a record without a shader.
struct ShaderTableDesc {
    std::vector<std::string> ray_gen_entry_points, miss_entry_points, hit_group_names, callable_entry_points;
};

/// Host data alone: pipelines know where their shaders are. `program`: whose entry points these are, if anyone asks;
/// `layout` is of the same.
class ShaderTable : public DeviceObject {
public:
    ShaderTable(ref<Device> device, ShaderTableDesc desc, const ProgramLayout& layout, ref<Object> program);
    const ShaderTableDesc& desc() const { return m_desc; }
    const ref<Object>& program() const { return m_program; }
    const std::string& entry_points() const { return m_entry_points; } ///< all of the program, for messages

private:
    ShaderTableDesc m_desc;
    ref<Object> m_program;
    std::string m_entry_points;
};

/// NotImplementedError unless the device has ray-tracing pipelines.
void require_ray_tracing(const Device* device, const char* call);
/// Checks a description; the stages' code may be missing.
void check_ray_tracing_pipeline(const Device* device, const RayTracingPipelineDesc& desc);
/// The same, and makes the pipeline.
ref<RayTracingPipeline> create_ray_tracing_pipeline(Device* device, const RayTracingPipelineDesc& desc);
/// ValueError for names of entry points that the program lacks, or has in another stage.
void check_shader_table(const ProgramLayout& layout, const ShaderTableDesc& desc, const char* call);
/// The names of a program's entry points, for messages.
std::string names_of_entry_points(const ProgramLayout& layout);
/// ValueError for names that the pipeline does not have.
void check_shader_table(const RayTracingPipeline& pipeline, const ShaderTable& table, const char* call);

} // namespace spy
