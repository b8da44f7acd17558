// Acceleration structures, instance lists, and the commands that build them.
#include "python/device/rays.h"
#include "python/members.h"

namespace spy {

namespace {

/// The only buffer of a list that motion would give more.
BufferOffset only_place(const nb::list& places, const std::string& what)
{
    if (nb::len(places) > 1)
        fail(ErrorKind::not_implemented, what, ": ", nb::len(places),
             " buffers are those of motion, which is not implemented; give one");
    return nb::len(places) ? buffer_offset_from(places[0], what.c_str()) : BufferOffset{};
}

AccelerationStructureInput input_from(nb::handle item, const std::string& what)
{
    if (nb::isinstance<PyTriangles>(item)) {
        const auto& from = nb::cast<const PyTriangles&>(item);
        TriangleGeometry to = from;
        to.vertices = only_place(from.vertex_buffers, what + " 'vertex_buffers'");
        to.is_indexed = !from.index_buffer.is_none();
        to.indices = buffer_offset_from(from.index_buffer, (what + " 'index_buffer'").c_str());
        to.transform = buffer_offset_from(from.pre_transform_buffer, (what + " 'pre_transform_buffer'").c_str());
        return to;
    }
    if (nb::isinstance<PyBoxes>(item)) {
        const auto& from = nb::cast<const PyBoxes&>(item);
        BoxGeometry to = from;
        to.boxes = only_place(from.aabb_buffers, what + " 'aabb_buffers'");
        return to;
    }
    const auto& from = nb::cast<const PyInstances&>(item);
    InstanceGeometry to = from;
    to.instances = buffer_offset_from(from.instance_buffer, (what + " 'instance_buffer'").c_str());
    return to;
}

ref<AccelerationStructure> structure_from(nb::handle value, const char* what)
{
    ref<AccelerationStructure> structure;
    if (!value.is_none() && (!nb::try_cast(value, structure) || !structure))
        fail_field(what, value, "an AccelerationStructure");
    return structure;
}

std::vector<AccelerationStructureQuery> queries_from(nb::handle value, const char* what)
{
    std::vector<AccelerationStructureQuery> queries;
    for (nb::handle item : list_from(value, what)) {
        const auto from = Fields<PyStructureQuery>::from(item, what);
        AccelerationStructureQuery& to = queries.emplace_back();
        if (!nb::try_cast(from.query_pool, to.pool) || !to.pool)
            fail_field(what, from.query_pool, "a QueryPool as 'query_pool'");
        to.type = from.query_type;
        to.index = from.first_query_index;
    }
    return queries;
}

void build(CommandEncoder& e, nb::handle desc, nb::handle dst, nb::handle src, nb::handle scratch, nb::handle queries)
{
    constexpr const char* call = "build_acceleration_structure";
    e.check_recording(call);
    require_acceleration(e.device(), call);
    const auto fields = Fields<PyBuildDesc>::from(desc, call);
    e.build_acceleration_structure(to_native(fields, call), structure_from(dst, "build_acceleration_structure 'dst'"),
                                   structure_from(src, "build_acceleration_structure 'src'"),
                                   buffer_offset_from(scratch, "build_acceleration_structure 'scratch_buffer'"),
                                   queries_from(queries, "build_acceleration_structure 'queries'"));
}

void write_instances(AccelerationStructureInstanceList& list, Int<"write 'index'", uint64_t> first, nb::handle value)
{
    constexpr const char* call = "AccelerationStructureInstanceList.write";
    using I = AccelerationStructureInstanceDesc;
    const uint64_t index = first;
    if (nb::isinstance<I>(value) || PyDict_Check(value.ptr()))
        return list.write(index, Fields<I>::from(value, call));
    uint64_t i = index;
    for (nb::handle item : list_from(value, "AccelerationStructureInstanceList.write 'instances'"))
        list.write(i++, Fields<I>::from(item, call));
}

PyInstances build_input(AccelerationStructureInstanceList& list)
{
    open_device(&list);
    PyInstances input;
    static_cast<InstanceGeometry&>(input) = list.geometry();
    input.instance_buffer = nb::cast(std::exchange(input.instances.buffer, {}));
    return input;
}

void bind_instance_list(nb::module_& m)
{
    using L = AccelerationStructureInstanceList;
    nb::class_<L, DeviceObject>(m, "AccelerationStructureInstanceList",
                                "Instances of a top level structure; keeps the structures that they name.")
        .def_prop_ro("size", &L::size)
        .def_prop_ro(
            "instance_stride", [](const L&) { return instance_record_size; }, "Bytes of one.")
        .def(
            "resize", [](L& list, Int<"resize 'size'", uint64_t> size) { list.resize(size); }, nb::arg("size"),
            "New ones are hidden and name nothing.")
        .def("write", &write_instances, nb::arg("index"), nb::arg("instances"),
             "One AccelerationStructureInstanceDesc or dict, or a list of them from `index` on. IndexError beyond the "
             "size, ValueError for numbers beyond their bits.")
        .def(
            "buffer",
            [](L& list) {
                open_device(&list);
                return list.buffer();
            },
            "With what has been written; a new one after each change.")
        .def("build_input_instances", &build_input, "All of them, as the input of a build.")
        .def("__len__", &L::size)
        .def("__repr__",
             [](const L& list) { return cat("AccelerationStructureInstanceList(\n  size = ", list.size(), ",\n)"); });
}

void bind_structure(nb::module_& m)
{
    using S = AccelerationStructure;
    nb::class_<AccelerationStructureHandle>(m, "AccelerationStructureHandle",
                                            "What an instance names; keeps the structure.")
        .def("__repr__", [](const AccelerationStructureHandle& handle) {
            return cat("AccelerationStructureHandle(", summary(handle.structure.get()), ")");
        });
    nb::class_<S, DeviceObject> cls(m, "AccelerationStructure", nb::dynamic_attr(),
                                    "Triangles, boxes or instances in the form that rays walk through.");
    bind_handles_of(cls);
    cls.def_prop_ro(
           "desc", [](const S& s) { return s.desc(); }, "A copy of what it was made with.")
        .def_prop_ro("kind", [](const S& s) { return s.desc().kind; })
        .def_prop_ro(
            "size", [](const S& s) { return s.desc().size; }, "Bytes.")
        .def_prop_ro("label", [](const S& s) { return s.desc().label; })
        .def_prop_ro(
            "handle", [](S& s) { return AccelerationStructureHandle{ref<S>(&s)}; }, "For instances.")
        .def_prop_ro("device_address",
                     [](const S& s) {
                         open_device(&s);
                         return s.device_address();
                     })
        .def_prop_ro("native_handle",
                     [](const S& s) {
                         open_device(&s);
                         return s.native_handle();
                     })
        .def("__repr__", [](const S& s) {
            static constexpr const char* kinds[] = {"unknown", "bottom_level", "top_level"};
            return cat("AccelerationStructure(\n  kind = AccelerationStructureKind.", kinds[size_t(s.desc().kind)],
                       ",\n  size = ", s.desc().size, ",\n  label = '", s.desc().label, "',\n)");
        });
    using Z = AccelerationStructureSizes;
    nb::class_<Z>(m, "AccelerationStructureSizes", "Bytes that a structure and its builds need.")
        .def_ro("acceleration_structure_size", &Z::acceleration_structure_size)
        .def_ro("scratch_size", &Z::scratch_size)
        .def_ro("update_scratch_size", &Z::update_scratch_size)
        .def("__repr__", [](const Z& z) {
            return cat("AccelerationStructureSizes(\n  acceleration_structure_size = ", z.acceleration_structure_size,
                       ",\n  scratch_size = ", z.scratch_size, ",\n  update_scratch_size = ", z.update_scratch_size,
                       ",\n)");
        });
}

} // namespace

AccelerationStructureBuildDesc to_native(const PyBuildDesc& desc, const char* call)
{
    if (!desc.motion_options.is_none() && nb::cast<const PyMotionOptions&>(desc.motion_options).key_count != 1)
        fail(ErrorKind::not_implemented, call, ": motion_options: motion is not implemented; leave key_count 1");
    AccelerationStructureBuildDesc out;
    for (size_t i = 0; i < nb::len(desc.inputs); ++i)
        out.inputs.push_back(input_from(desc.inputs[i], cat(call, ": inputs[", i, "]")));
    out.mode = desc.mode;
    out.flags = desc.flags;
    return out;
}

void bind_acceleration_commands(EncoderClass& encoder)
{
    encoder
        .def("build_acceleration_structure", &build, nb::arg("desc"), nb::arg("dst"), nb::arg("src") = nb::none(),
             nb::arg("scratch_buffer") = nb::none(), nb::arg("queries") = nb::make_tuple(),
             nb::sig("def build_acceleration_structure(self, desc: AccelerationStructureBuildDesc | dict, dst: "
                     "AccelerationStructure, src: AccelerationStructure | None = None, scratch_buffer: Buffer | "
                     "BufferOffsetPair | dict | None = None, queries: "
                     "collections.abc.Sequence[AccelerationStructureQueryDesc | dict] = ()) -> None"),
             "Builds `dst`. `src`: what an update starts from, which may be `dst`.")
        .def(
            "copy_acceleration_structure",
            [](CommandEncoder& e, nb::handle dst, nb::handle src,
               Member<"copy_acceleration_structure 'mode'", AccelerationStructureCopyMode> given) {
                const AccelerationStructureCopyMode mode = given;
                auto to = structure_from(dst, "copy_acceleration_structure 'dst'");
                auto from = structure_from(src, "copy_acceleration_structure 'src'");
                GilRelease release; // may wait for the compacted size
                e.copy_acceleration_structure(std::move(to), std::move(from), mode);
            },
            nb::arg("dst"), nb::arg("src"), nb::arg("mode"),
            nb::sig(
                "def copy_acceleration_structure(self, dst: AccelerationStructure, src: AccelerationStructure, mode: "
                "AccelerationStructureCopyMode | str) -> None"),
            "compact: `dst` has the compacted size, which was queried and submitted before.")
        .def(
            "query_acceleration_structure_properties",
            [](CommandEncoder& e, nb::handle structures, nb::handle queries) {
                constexpr const char* what = "query_acceleration_structure_properties";
                std::vector<ref<AccelerationStructure>> list;
                for (nb::handle item : list_from(structures, what))
                    list.push_back(structure_from(item, what));
                e.query_acceleration_structures(std::move(list), queries_from(queries, what));
            },
            nb::arg("acceleration_structures"), nb::arg("queries"),
            nb::sig("def query_acceleration_structure_properties(self, acceleration_structures: "
                    "collections.abc.Sequence[AccelerationStructure], queries: "
                    "collections.abc.Sequence[AccelerationStructureQueryDesc | dict]) -> None"),
            "One result for each structure, at consecutive indices.");
}

void bind_acceleration_structures(nb::module_& m, nb::class_<Device, Object>& cls)
{
    bind_structure(m);
    bind_instance_list(m);
    cls.def(
           "get_acceleration_structure_sizes",
           [](Device& d, nb::args args, nb::kwargs kwargs) {
               constexpr const char* call = "get_acceleration_structure_sizes";
               check_open(&d);
               require_acceleration(&d, call);
               return acceleration_structure_sizes(
                   &d, to_native(Fields<PyBuildDesc>::from_arguments(args, kwargs, call), call));
           },
           nb::sig(Fields<PyBuildDesc>::signature("get_acceleration_structure_sizes", "AccelerationStructureSizes")),
           "What the structure and the scratch memory of its builds need. ValueError for empty inputs.")
        .def(
            "create_acceleration_structure",
            [](Device& d, nb::args args, nb::kwargs kwargs) {
                constexpr const char* call = "create_acceleration_structure";
                return create_acceleration_structure(
                    &d, Fields<AccelerationStructureDesc>::from_arguments(args, kwargs, call));
            },
            nb::sig(
                Fields<AccelerationStructureDesc>::signature("create_acceleration_structure", "AccelerationStructure")),
            "Memory for a structure, which holds nothing until it is built.")
        .def(
            "create_acceleration_structure_instance_list",
            [](Device& d, Int<"create_acceleration_structure_instance_list 'size'", uint64_t> size) {
                check_open(&d);
                require_acceleration(&d, "create_acceleration_structure_instance_list");
                ref<AccelerationStructureInstanceList> list = new AccelerationStructureInstanceList(&d, size);
                list->set_frontend(&d);
                return list;
            },
            nb::arg("size"), "Instances that are hidden and name nothing.");
}

} // namespace spy
