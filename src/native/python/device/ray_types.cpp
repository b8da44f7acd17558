// Enumerations and descriptors of acceleration structures and ray tracing.
#include "python/device/rays.h"
#include "python/math/bindings.h"
#include "values/math.h"

#include <nanobind/stl/array.h>

#include <cstring>

namespace spy {

namespace {

template <typename E>
void flag_enum(nb::module_& m, const char* name, const char* doc, std::initializer_list<const char*> names)
{
    nb::enum_<E> cls(m, name, nb::is_arithmetic(), nb::is_flag(), doc);
    cls.value("none", E(0));
    uint32_t bit = 1;
    for (const char* each : names) {
        cls.value(each, E(bit));
        bit <<= 1;
    }
}

template <typename E>
void plain_enum(nb::module_& m, const char* name, const char* doc, std::initializer_list<const char*> names)
{
    nb::enum_<E> cls(m, name, nb::is_arithmetic(), doc);
    uint32_t number = 0;
    for (const char* each : names)
        cls.value(each, E(number++));
}

/// A Buffer or a BufferOffsetPair, as it was given.
nb::object ray_place_from(nb::handle value, const char* what)
{
    if (value.is_none() || nb::isinstance<Buffer>(value) || nb::isinstance<PyBufferOffsetPair>(value))
        return nb::borrow(value);
    if (!PyDict_Check(value.ptr()))
        fail_field(what, value, "a Buffer, a BufferOffsetPair or a dict");
    return nb::cast(Fields<PyBufferOffsetPair>::from(value, what));
}

template <typename T, auto Member>
Field<T> place_field(const char* name, const char* doc)
{
    return {name, "Buffer | BufferOffsetPair | dict | None", doc,
            [](const T& desc) -> nb::object { return desc.*Member; },
            [](T& desc, nb::handle value, const char* what) { desc.*Member = ray_place_from(value, what); }};
}

template <typename T, auto Member>
Field<T> places_field(const char* name, const char* doc)
{
    return {name, "Sequence[Buffer | BufferOffsetPair | dict]", doc,
            [](const T& desc) -> nb::object { return desc.*Member; },
            [](T& desc, nb::handle value, const char* what) {
                nb::list places;
                for (nb::handle item : list_from(value, what))
                    places.append(ray_place_from(item, what));
                desc.*Member = std::move(places);
            }};
}

void bind_enums(nb::module_& m)
{
    plain_enum<AccelerationStructureKind>(m, "AccelerationStructureKind", "Holds triangles or boxes, or instances.",
                                          {"unknown", "bottom_level", "top_level"});
    plain_enum<AccelerationStructureBuildMode>(m, "AccelerationStructureBuildMode", "Anew, or with other positions.",
                                               {"build", "update"});
    plain_enum<AccelerationStructureCopyMode>(m, "AccelerationStructureCopyMode", "As it is, or as small as it gets.",
                                              {"clone", "compact"});
    flag_enum<AccelerationStructureGeometryFlags>(m, "AccelerationStructureGeometryFlags",
                                                  "opaque: no any-hit shader is asked.",
                                                  {"opaque", "no_duplicate_any_hit_invocation"});
    flag_enum<AccelerationStructureBuildFlags>(
        m, "AccelerationStructureBuildFlags", "What a structure must be able to do, and what to spare.",
        {"allow_update", "allow_compaction", "prefer_fast_trace", "prefer_fast_build", "minimize_memory"});
    flag_enum<AccelerationStructureInstanceFlags>(
        m, "AccelerationStructureInstanceFlags", "How rays meet an instance.",
        {"triangle_facing_cull_disable", "triangle_front_counter_clockwise", "force_opaque", "no_opaque"});
    flag_enum<RayTracingPipelineFlags>(
        m, "RayTracingPipelineFlags", "Kinds of primitives that rays skip.",
        {"skip_triangles", "skip_procedurals", "enable_spheres", "enable_linear_swept_spheres"});
}

void bind_triangles(nb::module_& m)
{
    using T = PyTriangles;
    bind_desc<T>(
        m, "AccelerationStructureBuildInputTriangles", "Triangles of a bottom level structure.",
        {
            places_field<T, &T::vertex_buffers>("vertex_buffers", "One, with positions."),
            field<T, &T::vertex_format>("vertex_format", "Format", "rgb32_float works everywhere."),
            field<T, &T::vertex_count>("vertex_count", "int", "Positions in the buffer."),
            field<T, &T::vertex_stride>("vertex_stride", "int", "Bytes from one to the next; 0: those of the format."),
            place_field<T, &T::index_buffer>("index_buffer", "None: each three vertices are a triangle."),
            field<T, &T::index_format>("index_format", "IndexFormat", "Of the indices."),
            field<T, &T::index_count>("index_count", "int", "Three for each triangle."),
            place_field<T, &T::pre_transform_buffer>("pre_transform_buffer",
                                                     "12 floats, rows of a 3x4 matrix, for all vertices."),
            field<T, &T::flags>("flags", "AccelerationStructureGeometryFlags", "opaque, or what any-hit shaders see."),
        });
    using B = PyBoxes;
    bind_desc<B>(m, "AccelerationStructureBuildInputProceduralPrimitives", "Boxes of a bottom level structure.",
                 {
                     places_field<B, &B::aabb_buffers>("aabb_buffers", "One, with six floats a box: minimum, maximum."),
                     field<B, &B::stride>("aabb_stride", "int", "Bytes from one box to the next; 0: 24."),
                     field<B, &B::count>("primitive_count", "int", "Boxes."),
                     field<B, &B::flags>("flags", "AccelerationStructureGeometryFlags", "As of triangles."),
                 });
    using I = PyInstances;
    bind_desc<I>(m, "AccelerationStructureBuildInputInstances",
                 "Instances of a top level structure, normally those of an AccelerationStructureInstanceList. What a "
                 "buffer of your own names must be kept alive by you.",
                 {
                     place_field<I, &I::instance_buffer>("instance_buffer", "Records of 64 bytes."),
                     field<I, &I::stride>("instance_stride", "int", "0: that of the device."),
                     field<I, &I::count>("instance_count", "int", "Records."),
                 });
}

nb::list inputs_from(nb::handle value, const char* what)
{
    nb::list out;
    for (nb::handle item : list_from(value, what)) {
        if (!nb::isinstance<PyTriangles>(item) && !nb::isinstance<PyBoxes>(item) && !nb::isinstance<PyInstances>(item))
            fail_field(what, item,
                       "AccelerationStructureBuildInputTriangles, ...ProceduralPrimitives or ...Instances "
                       "(AccelerationStructureInstanceList.build_input_instances makes these)");
        out.append(item);
    }
    return out;
}

void bind_build_desc(nb::module_& m)
{
    using O = PyMotionOptions;
    bind_desc<O>(m, "AccelerationStructureBuildInputMotionOptions", "Motion, which is not implemented: one key.",
                 {
                     field<O, &O::key_count>("key_count", "int", "1."),
                     field<O, &O::time_start>("time_start", "float", "Of the first key."),
                     field<O, &O::time_end>("time_end", "float", "Of the last key."),
                 });
    using D = PyBuildDesc;
    bind_desc<D>(
        m, "AccelerationStructureBuildDesc", "What a structure is built from.",
        {
            {"inputs", "Sequence[object]", "Geometries, all of one kind: triangles, boxes, or one of instances.",
             [](const D& desc) -> nb::object { return desc.inputs; },
             [](D& desc, nb::handle value, const char* what) { desc.inputs = inputs_from(value, what); }},
            {"motion_options", "AccelerationStructureBuildInputMotionOptions | dict | None", "One key alone.",
             [](const D& desc) -> nb::object { return desc.motion_options; },
             [](D& desc, nb::handle value, const char* what) {
                 desc.motion_options = value.is_none() ? nb::none() : nb::cast(Fields<O>::from(value, what));
             }},
            field<D, &D::mode>("mode", "AccelerationStructureBuildMode", "update: with other positions."),
            field<D, &D::flags>("flags", "AccelerationStructureBuildFlags", "As of the build, for an update."),
        });
    using Q = PyStructureQuery;
    bind_desc<Q>(m, "AccelerationStructureQueryDesc", "A size of structures, and where it goes.",
                 {
                     field<Q, &Q::query_type>("query_type", "QueryType", "Compacted or current size."),
                     field<Q, &Q::query_pool>("query_pool", "QueryPool", "Of that type; results are bytes."),
                     field<Q, &Q::first_query_index>("first_query_index", "int", "Place of the first result."),
                 });
    using S = AccelerationStructureDesc;
    bind_desc<S>(m, "AccelerationStructureDesc", "Fields of create_acceleration_structure.",
                 {
                     field<S, &S::kind>("kind", "AccelerationStructureKind", "unknown: either."),
                     field<S, &S::size>("size", "int", "Bytes, as get_acceleration_structure_sizes says."),
                     field<S, &S::label>("label", "str", "For debuggers and reports."),
                 });
}

void bind_instance_desc(nb::module_& m)
{
    using I = AccelerationStructureInstanceDesc;
    constexpr ScalarType real = ScalarType::float32;
    auto cls = bind_desc<I>(
        m, "AccelerationStructureInstanceDesc", "One instance of a bottom level structure.",
        {
            {"transform", "float3x4 | Sequence[Sequence[float]]", "Object to world.",
             [](const I& desc) -> nb::object { return make_math_value(real, 3, 4, true, desc.transform.data()); },
             [](I& desc, nb::handle value, const char* what) {
                 convert_math(value.ptr(), *math_matrix_type(real, 3, 4), desc.transform.data(), what);
             }},
            field<I, &I::instance_id>("instance_id", "int", "InstanceID(); 24 bits."),
            field<I, &I::instance_mask>("instance_mask", "int", "8 bits; 0 hides it, 0xFF shows it to every ray."),
            field<I, &I::instance_contribution_to_hit_group_index>("instance_contribution_to_hit_group_index", "int",
                                                                   "Its first hit record; 24 bits."),
            field<I, &I::flags>("flags", "AccelerationStructureInstanceFlags", "How rays meet it."),
            {"acceleration_structure", "AccelerationStructureHandle | AccelerationStructure | None", "What it shows.",
             [](const I& desc) -> nb::object {
                 return desc.structure ? nb::cast(AccelerationStructureHandle{desc.structure}) : nb::none();
             },
             [](I& desc, nb::handle value, const char* what) {
                 if (value.is_none())
                     desc.structure = {};
                 else if (nb::isinstance<AccelerationStructureHandle>(value))
                     desc.structure = nb::cast<const AccelerationStructureHandle&>(value).structure;
                 else if (nb::isinstance<AccelerationStructure>(value))
                     desc.structure = nb::cast<ref<AccelerationStructure>>(value);
                 else
                     fail_field(what, value, "an AccelerationStructure or its handle");
             }},
        });
    cls.def(
        "to_numpy",
        [](const I& desc) {
            const auto record = instance_record(desc);
            return make_array({record.size()}, "uint8",
                              [&](void* out, uint64_t size) { std::memcpy(out, record.data(), size); });
        },
        "The 64 bytes that builds read.");
}

template <typename T, auto Member>
Field<T> names_field(const char* name, const char* doc)
{
    return {name, "Sequence[str]", doc, [](const T& desc) -> nb::object { return nb::cast(desc.*Member); },
            [](T& desc, nb::handle value, const char* what) {
                std::vector<std::string> names;
                if (PyUnicode_Check(value.ptr()))
                    fail_field(what, value, "a list of names");
                for (nb::handle item : list_from(value, what))
                    names.push_back(from_field<std::string>(item, what));
                desc.*Member = std::move(names);
            }};
}

void bind_pipeline_descs(nb::module_& m)
{
    using H = HitGroupDesc;
    bind_desc<H>(
        m, "HitGroupDesc", "What happens where a ray meets a primitive.",
        {
            field<H, &H::hit_group_name>("hit_group_name", "str", "By which shader tables name it."),
            field<H, &H::closest_hit_entry_point>("closest_hit_entry_point", "str", "Called for the hit that counts."),
            field<H, &H::any_hit_entry_point>("any_hit_entry_point", "str", "Asked about hits that are not opaque."),
            field<H, &H::intersection_entry_point>("intersection_entry_point", "str", "Of boxes; none: of triangles."),
        });
    using T = PyShaderTableDesc;
    bind_desc<T>(m, "ShaderTableDesc", "Fields of create_shader_table: lists by the index that shaders use.",
                 {
                     field<T, &T::program>("program", "typing.Any", "Whose entry points these are."),
                     names_field<T, &T::ray_gen_entry_points>("ray_gen_entry_points", "Of dispatch_rays."),
                     names_field<T, &T::miss_entry_points>("miss_entry_points", "Of TraceRay."),
                     names_field<T, &T::hit_group_names>("hit_group_names", "Hit records."),
                     names_field<T, &T::callable_entry_points>("callable_entry_points", "Of CallShader."),
                 });
    using P = PyRayPipelineDesc;
    bind_desc<P>(
        m, "RayTracingPipelineDesc", "Fields of create_ray_tracing_pipeline.",
        {
            field<P, &P::program>("program", "typing.Any", "Linked from ray-tracing entry points."),
            {"hit_groups", "Sequence[HitGroupDesc | dict]", "Those that shader tables may name.",
             [](const P& desc) -> nb::object { return desc.hit_groups; },
             [](P& desc, nb::handle value, const char* what) {
                 nb::list groups;
                 for (nb::handle item : list_from(value, what))
                     groups.append(nb::isinstance<H>(item) ? nb::borrow(item) : nb::cast(Fields<H>::from(item, what)));
                 desc.hit_groups = std::move(groups);
             }},
            field<P, &P::max_recursion>("max_recursion", "int", "Of TraceRay; 1: ray generation alone calls it."),
            field<P, &P::max_ray_payload_size>("max_ray_payload_size", "int", "Bytes of the largest payload."),
            field<P, &P::max_attribute_size>("max_attribute_size", "int", "Bytes of the largest attributes."),
            field<P, &P::flags>("flags", "RayTracingPipelineFlags", "Primitives to skip."),
            field<P, &P::defer_target_compilation>("defer_target_compilation", "bool", "Compile at the first use."),
            {"label", "str | None", "For debuggers and reports.",
             [](const P& desc) -> nb::object { return desc.label; },
             [](P& desc, nb::handle value, const char* what) {
                 if (!value.is_none() && !PyUnicode_Check(value.ptr()))
                     fail_field(what, value, "a str or None");
                 desc.label = nb::borrow(value);
             }},
        });
}

} // namespace

void bind_ray_descs(nb::module_& m)
{
    bind_enums(m);
    bind_triangles(m);
    bind_build_desc(m);
    bind_instance_desc(m);
    bind_pipeline_descs(m);
}

} // namespace spy
