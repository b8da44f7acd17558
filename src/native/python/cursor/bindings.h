#pragma once
// Shared by the files that bind cursors. Include python/bindings.h first.
#include "device/cursor.h"
#include "values/writer.h"

namespace spy {

void bind_shader_cursor(nanobind::module_& m);
void bind_buffer_cursor(nanobind::module_& m);
void bind_layout_tools(nanobind::module_& m);

/// The native layout of a layout, type reflection, reflection cursor or structured-buffer layout.
ref<TypeLayout> layout_from_python(nanobind::handle value, const char* function);

inline bool is_dunder(std::string_view name) { return name.starts_with("__") && name.ends_with("__"); }

/// The type that has fields or elements; a program's parameters have a type without a name.
inline std::string owner_text(const TypeLayout& layout)
{
    std::string text = type_text(layout);
    return text.empty() ? "the root" : text;
}

/// AttributeError listing the fields.
template <typename Cursor>
Cursor attribute_field(const Cursor& cursor, const char* class_name, std::string_view name)
{
    Cursor field = is_dunder(name) ? Cursor() : cursor.find_field(name);
    if (field.is_valid())
        return field;
    std::string message = cat("'", class_name, "' has no attribute or field '", name, "'");
    if (cursor.is_valid() && !is_dunder(name))
        message = cat(cursor.path().empty() ? "" : cursor.path() + ": ", owner_text(*cursor.layout()),
                      " has no field '", name, "'. Fields: ", field_list(*cursor.layout()));
    throw nanobind::attribute_error(message.c_str());
}

/// KeyError 'Field "x" not found.'
template <typename Cursor>
Cursor item_field(const Cursor& cursor, std::string_view name)
{
    Cursor field = cursor.find_field(name);
    if (!field.is_valid())
        fail(ErrorKind::key, "Field \"", name, "\" not found.",
             cursor.is_valid() ? " Fields: " + field_list(*cursor.layout()) : std::string());
    return field;
}

/// IndexError 'Element 9 not found.'; negative indices count from the end.
template <typename Cursor>
Cursor item_element(const Cursor& cursor, int64_t index)
{
    int64_t from_start = index;
    if (index < 0 && cursor.is_valid())
        from_start += std::max<int64_t>(element_count(*block_contents(cursor.layout().get())), 0);
    Cursor element = cursor.find_element(from_start);
    if (!element.is_valid())
        fail(ErrorKind::index, "Element ", index, " not found.",
             cursor.is_valid() ? cat(" ", owner_text(*cursor.layout()), " has ",
                                     element_count(*block_contents(cursor.layout().get())), " elements.")
                               : std::string());
    return element;
}

template <typename Cursor>
void check_valid(const Cursor& cursor, const char* function)
{
    if (!cursor.is_valid())
        fail_runtime(function, ": the cursor is invalid; find_field() or find_element() found nothing by that name");
}

/// Bytes of a contiguous array, at most `limit`.
inline std::span<const uint8_t> raw_bytes(HostArray& array, nanobind::handle data, uint64_t limit, const char* function)
{
    if (!array.open(data.ptr()))
        fail(ErrorKind::type, function, ": expected a NumPy array, got ", type_name(data.ptr()));
    if (!array.is_contiguous())
        fail_value(function, ": the array must be contiguous; pass numpy.ascontiguousarray(a)");
    if (uint64_t(array.nbytes()) > limit)
        fail_value(function, ": numpy array is larger than the buffer (", array.nbytes(), " > ", limit, ")");
    return {array.data(), size_t(array.nbytes())};
}

inline nanobind::list field_names(const TypeLayout* layout)
{
    nanobind::list names;
    for (const FieldLayout& field : block_contents(layout)->fields)
        names.append(nanobind::str(field.name.c_str()));
    return names;
}

/// dir(): the class's own names and the fields.
template <typename Cursor>
nanobind::object dir_with_fields(nanobind::handle self)
{
    namespace nb = nanobind;
    nb::object names = nb::module_::import_("builtins").attr("set")(self.type().attr("__dict__"));
    const auto& cursor = nb::cast<const Cursor&>(self);
    if (cursor.is_valid())
        names.attr("update")(field_names(cursor.layout().get()));
    return names.attr("__iter__")();
}

} // namespace spy
