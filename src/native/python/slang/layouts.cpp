// The plain layouts, bound here only where slangpy._native has not bound them.
#include "python/slang/bindings.h"

#include "core/error.h"
#include "core/layout.h"

namespace spy {
namespace {

void bind_type_enums(nb::module_& m)
{
    if (!is_bound<TypeKind>())
        nb::enum_<TypeKind>(m, "TypeKind", "Kinds of types.")
            .value("none", TypeKind::none)
            .value("struct", TypeKind::struct_)
            .value("array", TypeKind::array)
            .value("matrix", TypeKind::matrix)
            .value("vector", TypeKind::vector)
            .value("scalar", TypeKind::scalar)
            .value("constant_buffer", TypeKind::constant_buffer)
            .value("resource", TypeKind::resource)
            .value("sampler_state", TypeKind::sampler_state)
            .value("texture_buffer", TypeKind::texture_buffer)
            .value("shader_storage_buffer", TypeKind::shader_storage_buffer)
            .value("parameter_block", TypeKind::parameter_block)
            .value("generic_type_parameter", TypeKind::generic_type_parameter)
            .value("interface", TypeKind::interface)
            .value("output_stream", TypeKind::output_stream)
            .value("specialized", TypeKind::specialized)
            .value("feedback", TypeKind::feedback)
            .value("pointer", TypeKind::pointer)
            .value("dynamic_resource", TypeKind::dynamic_resource)
            .value("enum", TypeKind::enum_)
            .value("descriptor_handle", TypeKind::descriptor_handle);
    if (!is_bound<ScalarType>())
        nb::enum_<ScalarType>(m, "ScalarType", "Scalar types.")
            .value("none", ScalarType::none)
            .value("void", ScalarType::void_)
            .value("bool", ScalarType::bool_)
            .value("int8", ScalarType::int8)
            .value("int16", ScalarType::int16)
            .value("int32", ScalarType::int32)
            .value("int64", ScalarType::int64)
            .value("uint8", ScalarType::uint8)
            .value("uint16", ScalarType::uint16)
            .value("uint32", ScalarType::uint32)
            .value("uint64", ScalarType::uint64)
            .value("float16", ScalarType::float16)
            .value("float32", ScalarType::float32)
            .value("float64", ScalarType::float64)
            .value("bfloat16", ScalarType::bfloat16)
            .value("float8_e4m3", ScalarType::float8_e4m3)
            .value("float8_e5m2", ScalarType::float8_e5m2);
}

/// The table of scalar types, for slangpy/base/scalars.py.
void bind_scalar_table(nb::module_& m)
{
    m.def("_scalar_table", [] {
        nb::list rows;
        for (const ScalarInfo& info : scalar_table)
            if (info.size)
                rows.append(nb::make_tuple(std::string(info.slang_name), std::string(info.numpy_name), info.size,
                                           info.is_float, info.is_integer, info.is_signed));
        return rows;
    });
    m.def(
        "_scalar_name",
        [](const std::string& name) { return std::string(scalar_info(scalar_from_slang_name(name)).slang_name); },
        nb::arg("name"), "Slang's own name of a scalar type that has several; empty for what is none.");
}

void bind_resource_enums(nb::module_& m)
{
    if (!is_bound<ResourceShape>())
        nb::enum_<ResourceShape>(m, "ResourceShape", "Shapes of textures and buffers.")
            .value("none", ResourceShape::none)
            .value("texture_1d", ResourceShape::texture_1d)
            .value("texture_2d", ResourceShape::texture_2d)
            .value("texture_3d", ResourceShape::texture_3d)
            .value("texture_cube", ResourceShape::texture_cube)
            .value("texture_buffer", ResourceShape::texture_buffer)
            .value("structured_buffer", ResourceShape::structured_buffer)
            .value("byte_address_buffer", ResourceShape::byte_address_buffer)
            .value("unknown", ResourceShape::unknown)
            .value("acceleration_structure", ResourceShape::acceleration_structure)
            .value("texture_subpass", ResourceShape::texture_subpass)
            .value("texture_1d_array", ResourceShape::texture_1d_array)
            .value("texture_2d_array", ResourceShape::texture_2d_array)
            .value("texture_cube_array", ResourceShape::texture_cube_array)
            .value("texture_2d_multisample", ResourceShape::texture_2d_multisample)
            .value("texture_2d_multisample_array", ResourceShape::texture_2d_multisample_array);
    if (!is_bound<ResourceAccess>())
        nb::enum_<ResourceAccess>(m, "ResourceAccess", "How a kernel may use a resource.")
            .value("none", ResourceAccess::none)
            .value("read", ResourceAccess::read)
            .value("read_write", ResourceAccess::read_write)
            .value("raster_ordered", ResourceAccess::raster_ordered)
            .value("append", ResourceAccess::append)
            .value("consume", ResourceAccess::consume)
            .value("write", ResourceAccess::write)
            .value("feedback", ResourceAccess::feedback);
}

nb::dict to_dict(const FieldLayout& field)
{
    nb::dict result;
    result["name"] = field.name;
    result["type"] = field.type;
    result["offset"] = field.offset;
    result["slot"] = field.slot;
    result["scope"] = field.scope;
    return result;
}

nb::dict to_dict(const ScopeLayout& scope)
{
    static constexpr const char* kinds[] = {"globals", "entry_point", "constant_buffer", "parameter_block"};
    nb::dict result;
    result["kind"] = kinds[size_t(scope.kind)];
    result["path"] = scope.path;
    result["size"] = scope.size;
    result["parent"] = scope.parent;
    result["parent_offset"] = scope.parent_offset;
    result["set"] = scope.set;
    result["binding"] = scope.binding;
    result["push_constant"] = scope.push_constant;
    return result;
}

nb::dict to_dict(const SlotLayout& slot)
{
    static constexpr const char* kinds[] = {
        "structured_buffer", "byte_address_buffer",   "texture", "sampler", "combined_texture_sampler",
        "texel_buffer",      "acceleration_structure"};
    nb::dict result;
    result["kind"] = kinds[size_t(slot.kind)];
    result["path"] = slot.path;
    result["writable"] = slot.writable;
    result["set"] = slot.set;
    result["binding"] = slot.binding;
    result["array_index"] = slot.array_index;
    result["scope"] = slot.scope;
    result["offset"] = slot.offset;
    result["size"] = slot.size;
    result["element_stride"] = slot.element_stride;
    result["shape"] = slot.shape;
    result["scalar"] = slot.scalar;
    result["channels"] = slot.channels;
    return result;
}

nb::dict to_dict(const EntryPoint& entry)
{
    nb::dict result;
    result["name"] = entry.name;
    result["stage"] = stage_name(entry.stage);
    result["parameters"] = entry.parameters;
    result["scope"] = entry.scope;
    result["slot"] = entry.slot;
    result["nested_scope"] = entry.nested_scope;
    return result;
}

nb::dict to_dict(const Varying& input)
{
    nb::dict result;
    result["semantic"] = input.semantic;
    result["semantic_index"] = input.semantic_index;
    result["location"] = input.location;
    result["scalar"] = input.scalar;
    result["channels"] = input.channels;
    return result;
}

template <typename Item>
nb::list to_dicts(const std::vector<Item>& items)
{
    nb::list result;
    for (const Item& item : items)
        result.append(to_dict(item));
    return result;
}

void bind_type_layout(nb::module_& m)
{
    nb::class_<TypeLayout, Object>(m, "TypeLayout", "Layout of a type on one target, as plain data.")
        .def_ro("kind", &TypeLayout::kind)
        .def_ro("name", &TypeLayout::name)
        .def_ro("full_name", &TypeLayout::full_name)
        .def_ro("scalar", &TypeLayout::scalar)
        .def_ro("rows", &TypeLayout::rows)
        .def_ro("cols", &TypeLayout::cols)
        .def_ro("size", &TypeLayout::size)
        .def_ro("stride", &TypeLayout::stride)
        .def_ro("alignment", &TypeLayout::alignment)
        .def_ro("slot_count", &TypeLayout::slot_count)
        .def_ro("scope_count", &TypeLayout::scope_count)
        .def_ro("element_count", &TypeLayout::element_count)
        .def_ro("element_stride", &TypeLayout::element_stride)
        .def_ro("row_major", &TypeLayout::row_major)
        .def_prop_ro("element", [](const TypeLayout& self) { return self.element; })
        .def_ro("resource_shape", &TypeLayout::resource_shape)
        .def_ro("resource_access", &TypeLayout::resource_access)
        .def_prop_ro("fields", [](const TypeLayout& self) { return to_dicts(self.fields); })
        .def(
            "serialize",
            [](const TypeLayout& self) {
                const std::string bytes = serialize(self);
                return nb::bytes(bytes.data(), bytes.size());
            },
            "As bytes, which `deserialize` takes.")
        .def_static(
            "deserialize", [](nb::bytes bytes) { return deserialize_type_layout({bytes.c_str(), bytes.size()}); },
            "From the bytes of `serialize`. ValueError for others.");
}

void bind_program_layout(nb::module_& m)
{
    nb::class_<ProgramLayout, Object>(m, "PlainProgramLayout", "Where the parameters of a program are bound.")
        .def_prop_ro("globals", [](const ProgramLayout& self) { return self.globals; })
        .def_prop_ro("entry_point", [](const ProgramLayout& self) { return self.entry_point().parameters; })
        .def_prop_ro("entry_point_slot", [](const ProgramLayout& self) { return self.entry_point().slot; })
        .def_ro("nested_scope", &ProgramLayout::nested_scope)
        .def_prop_ro("entry_point_nested_scope",
                     [](const ProgramLayout& self) { return self.entry_point().nested_scope; })
        .def_prop_ro("stage", [](const ProgramLayout& self) { return stage_name(self.entry_point().stage); })
        .def_prop_ro("entry_points", [](const ProgramLayout& self) { return to_dicts(self.entry_points); })
        .def_prop_ro("vertex_inputs", [](const ProgramLayout& self) { return to_dicts(self.vertex_inputs); })
        .def_prop_ro("vertex_outputs", [](const ProgramLayout& self) { return to_dicts(self.vertex_outputs); })
        .def_prop_ro("fragment_inputs", [](const ProgramLayout& self) { return to_dicts(self.fragment_inputs); })
        .def_prop_ro("scopes", [](const ProgramLayout& self) { return to_dicts(self.scopes); })
        .def_prop_ro("slots", [](const ProgramLayout& self) { return to_dicts(self.slots); })
        .def_prop_ro("entry_point_name", [](const ProgramLayout& self) { return self.entry_point().name; })
        .def_prop_ro("group_size",
                     [](const ProgramLayout& self) {
                         return nb::make_tuple(self.group_size[0], self.group_size[1], self.group_size[2]);
                     })
        .def(
            "serialize",
            [](const ProgramLayout& self) {
                const std::string bytes = serialize(self);
                return nb::bytes(bytes.data(), bytes.size());
            },
            "As bytes, which `deserialize` takes.")
        .def_static(
            "deserialize", [](nb::bytes bytes) { return deserialize_program_layout({bytes.c_str(), bytes.size()}); },
            "From the bytes of `serialize`. ValueError for others.");
}

} // namespace

void bind_slang_layouts(nb::module_& m)
{
    if (!is_bound<Object>())
        nb::class_<Object>(m, "Object", nb::intrusive_ptr<Object>([](Object* self, PyObject* python) noexcept {
                               self->set_self_py(python);
                           }));
    bind_type_enums(m);
    bind_scalar_table(m);
    bind_resource_enums(m);
    if (!is_bound<TypeLayout>())
        bind_type_layout(m);
    if (!is_bound<ProgramLayout>())
        bind_program_layout(m);
}

} // namespace spy
