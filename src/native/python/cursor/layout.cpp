// Plain layouts for Python: what cursors accept as a type, and layouts made by hand (planning without a compiler,
// tests).
#include "python/bindings.h"

#include "python/cursor/bindings.h"

#include <nanobind/stl/string.h>

namespace spy {
namespace {

constexpr const char* kind_names[] = {
    "none",
    "struct",
    "array",
    "matrix",
    "vector",
    "scalar",
    "constant_buffer",
    "resource",
    "sampler_state",
    "texture_buffer",
    "shader_storage_buffer",
    "parameter_block",
    "generic_type_parameter",
    "interface",
    "output_stream",
    "specialized",
    "feedback",
    "pointer",
    "dynamic_resource",
    "enum",
    "descriptor_handle",
};
constexpr const char* shape_names[] = {
    "none",
    "texture_1d",
    "texture_2d",
    "texture_3d",
    "texture_cube",
    "texture_buffer",
    "structured_buffer",
    "byte_address_buffer",
    "unknown",
    "acceleration_structure",
    "texture_subpass",
    "texture_1d_array",
    "texture_2d_array",
    "texture_cube_array",
    "texture_2d_multisample",
    "texture_2d_multisample_array",
};
constexpr const char* access_names[] = {"none",   "read",    "read_write", "raster_ordered",
                                        "append", "consume", "write",      "feedback"};
constexpr const char* slot_kind_names[] = {
    "structured_buffer", "byte_address_buffer",   "texture", "sampler", "combined_texture_sampler",
    "texel_buffer",      "acceleration_structure"};

template <typename E, size_t N>
E parse(const std::string& text, const char* const (&names)[N], const char* what)
{
    for (size_t i = 0; i < N; ++i)
        if (text == names[i])
            return E(i);
    fail_value("unknown ", what, " '", text, "'");
}

template <typename T>
void take(nb::dict values, const char* name, T& target)
{
    if (values.contains(name))
        target = nb::cast<T>(values[name]);
}

template <typename E, size_t N>
void take_name(nb::dict values, const char* name, const char* const (&names)[N], E& target)
{
    if (values.contains(name))
        target = parse<E>(nb::cast<std::string>(values[name]), names, name);
}

void take_layout(nb::dict values, const char* name, ref<TypeLayout>& target)
{
    if (values.contains(name))
        target = nb::cast<TypeLayout*>(values[name]);
}

ref<TypeLayout> make_type_layout(nb::kwargs values)
{
    ref<TypeLayout> layout = new TypeLayout();
    take_name(values, "kind", kind_names, layout->kind);
    take(values, "name", layout->name);
    layout->full_name = layout->name;
    take(values, "full_name", layout->full_name);
    if (values.contains("scalar"))
        layout->scalar = scalar_from_slang_name(nb::cast<std::string>(values["scalar"]));
    take(values, "rows", layout->rows);
    take(values, "cols", layout->cols);
    take(values, "size", layout->size);
    layout->stride = layout->size;
    take(values, "stride", layout->stride);
    take(values, "alignment", layout->alignment);
    take(values, "slot_count", layout->slot_count);
    take(values, "scope_count", layout->scope_count);
    take(values, "element_count", layout->element_count);
    take(values, "element_stride", layout->element_stride);
    take(values, "row_major", layout->row_major);
    take_layout(values, "element", layout->element);
    take_name(values, "resource_shape", shape_names, layout->resource_shape);
    take_name(values, "resource_access", access_names, layout->resource_access);
    if (values.contains("fields")) {
        for (nb::handle item : nb::list(values["fields"])) {
            const nb::dict field = nb::cast<nb::dict>(item);
            FieldLayout& entry = layout->fields.emplace_back();
            take(field, "name", entry.name);
            take_layout(field, "type", entry.type);
            take(field, "offset", entry.offset);
            take(field, "slot", entry.slot);
            take(field, "scope", entry.scope);
        }
    }
    return layout;
}

ref<ProgramLayout> make_program_layout(nb::kwargs values)
{
    ref<ProgramLayout> layout = new ProgramLayout();
    take_layout(values, "globals", layout->globals);
    EntryPoint& own = layout->entry_points.emplace_back();
    take_layout(values, "entry_point", own.parameters);
    take(values, "entry_point_slot", own.slot);
    take(values, "nested_scope", layout->nested_scope);
    take(values, "entry_point_nested_scope", own.nested_scope);
    take(values, "entry_point_name", own.name);
    if (values.contains("stages")) {
        const nb::list stages(values["stages"]);
        layout->entry_points.resize(stages.size(), own);
        for (size_t i = 0; i < stages.size(); ++i) {
            layout->entry_points[i].scope = uint32_t(i + 1);
            layout->entry_points[i].stage = stage_from_name(nb::cast<std::string>(stages[i]));
        }
    }
    if (values.contains("scope_sizes"))
        for (nb::handle size : nb::list(values["scope_sizes"]))
            layout->scopes.emplace_back().size = nb::cast<uint64_t>(size);
    if (values.contains("slots")) {
        for (nb::handle item : nb::list(values["slots"])) {
            const nb::dict slot = nb::cast<nb::dict>(item);
            SlotLayout& entry = layout->slots.emplace_back();
            take_name(slot, "kind", slot_kind_names, entry.kind);
            take(slot, "path", entry.path);
            take(slot, "writable", entry.writable);
        }
    }
    return layout;
}

} // namespace

ref<TypeLayout> layout_from_python(nb::handle value, const char* function)
{
    nb::object current = nb::borrow(value);
    for (int depth = 0; depth < 3 && !current.is_none(); ++depth) {
        if (nb::isinstance<TypeLayout>(current))
            return nb::cast<TypeLayout*>(current);
        nb::object plain = nb::getattr(current, "plain", nb::none()); // TypeLayoutReflection
        if (nb::isinstance<TypeLayout>(plain))
            return nb::cast<TypeLayout*>(plain);
        current = nb::getattr(current, "type_layout", nb::none()); // reflection cursors, variable layouts
    }
    fail(ErrorKind::type, function, ": expected a type layout or a reflection cursor, got ", short_repr(value.ptr()),
         " (", type_name(value.ptr()), ")");
}

void bind_layout_tools(nb::module_& m)
{
    m.def("_make_type_layout", &make_type_layout);
    m.def("_make_program_layout", &make_program_layout);
}

} // namespace spy
