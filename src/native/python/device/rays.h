#pragma once
// Descriptors of acceleration structures and ray tracing as Python knows them.
#include "python/device/render.h"

#include "device/ray_tracing_pass.h"

namespace spy {

struct PyTriangles : TriangleGeometry {
    nb::list vertex_buffers;
    nb::object index_buffer = nb::none(), pre_transform_buffer = nb::none();
};
struct PyBoxes : BoxGeometry {
    nb::list aabb_buffers;
};
struct PyInstances : InstanceGeometry {
    nb::object instance_buffer = nb::none();
};
struct PyMotionOptions {
    uint32_t key_count = 1;
    float time_start = 0.f, time_end = 1.f;
};
struct PyBuildDesc {
    nb::list inputs;
    nb::object motion_options = nb::none();
    AccelerationStructureBuildMode mode = AccelerationStructureBuildMode::build;
    AccelerationStructureBuildFlags flags = AccelerationStructureBuildFlags::none;
};
struct PyStructureQuery {
    QueryType query_type = QueryType::acceleration_structure_compacted_size;
    nb::object query_pool = nb::none();
    uint32_t first_query_index = 0;
};
struct PyShaderTableDesc : ShaderTableDesc {
    nb::object program = nb::none();
};
struct PyRayPipelineDesc {
    nb::object program = nb::none();
    nb::list hit_groups;
    uint32_t max_recursion = 0, max_ray_payload_size = 0, max_attribute_size = 8;
    RayTracingPipelineFlags flags = RayTracingPipelineFlags::none;
    bool defer_target_compilation = false;
    nb::object label = nb::none();
};

AccelerationStructureBuildDesc to_native(const PyBuildDesc& desc, const char* call);
RayTracingPipelineState to_native(const PyRayPipelineDesc& desc);

void bind_ray_descs(nb::module_& m);                                                // ray_types.cpp
void bind_acceleration_structures(nb::module_& m, nb::class_<Device, Object>& cls); // acceleration.cpp
void bind_acceleration_commands(EncoderClass& encoder);                             // acceleration.cpp
void bind_ray_tracing(nb::module_& m, nb::class_<Device, Object>& cls);             // ray_tracing.cpp
void bind_ray_tracing_pass(nb::module_& m, EncoderClass& encoder);                  // ray_tracing.cpp

} // namespace spy
