// Laid-out bytes as Python values.
#include "values/nb.h"

#include "values/math.h"
#include "values/writer.h"

namespace spy {
namespace {

nb::object number_to_python(const Number& number)
{
    switch (number.kind) {
    case Number::Kind::boolean: return nb::bool_(number.u != 0);
    case Number::Kind::signed_: return nb::steal(PyLong_FromLongLong(number.i));
    case Number::Kind::unsigned_: return nb::steal(PyLong_FromUnsignedLongLong(number.u));
    default: return nb::float_(number.f);
    }
}

nb::object read_items(const TypeLayout& layout, const uint8_t* bytes, const Device* device = nullptr)
{
    const ref<TypeLayout> element = element_layout(layout);
    nb::list items;
    for (int64_t i = 0; i < element_count(layout); ++i)
        items.append(read_value(*element, bytes + uint64_t(i) * element_step(layout), device));
    return items;
}

nb::object read_math(const TypeLayout& layout, const uint8_t* bytes)
{
    const bool is_matrix = layout.kind == TypeKind::matrix;
    if (layout.cols > 4 || layout.rows > 4)
        return read_items(layout, bytes);
    ScalarGrid grid;
    scalar_grid(layout, grid);
    uint8_t packed[16 * 8];
    read_grid(grid, bytes, packed);
    return make_math_value(layout.scalar, is_matrix ? int(layout.rows) : 1, int(layout.cols), is_matrix, packed);
}

} // namespace

nb::object read_value(const TypeLayout& layout, const uint8_t* bytes, const Device* device)
{
    switch (layout.kind) {
    case TypeKind::scalar:
    case TypeKind::enum_: return number_to_python(load_number(layout.scalar, scalar_bytes(layout), bytes));
    case TypeKind::vector:
    case TypeKind::matrix: return read_math(layout, bytes);
    case TypeKind::pointer: return number_to_python(Number::from_uint(load_raw<uint64_t>(bytes)));
    case TypeKind::array:
        if (layout.element_count < 0)
            fail_value("an unbounded array (", type_text(layout),
                       ") cannot be read as a whole: read its elements one by one");
        return read_items(layout, bytes, device);
    case TypeKind::descriptor_handle: return read_handle(layout, bytes, device);
    case TypeKind::struct_: {
        nb::dict fields;
        for (const FieldLayout& field : layout.fields)
            fields[field.name.c_str()] = read_value(*field.type, bytes + field.offset, device);
        return fields;
    }
    default: fail_value("a value of type ", type_text(layout), " cannot be read from memory");
    }
}

} // namespace spy
