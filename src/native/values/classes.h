#pragma once
// What a Python class means as an argument: found once per class, then a look-up.
#include "values/value.h"
#include "values/math.h"

namespace spy {

/// How values of one Python class are treated; found once per class.
enum class ValueClass : uint8_t {
    none,
    boolean,
    integer,
    floating,
    numpy_scalar,
    math,
    sequence,
    dict,
    dataclass,
    numpy,
    masked,
    tensor,
    range,
    generator,
    value_ref,
    diff_pair,
    buffer,
    texture,
    texture_view,
    sampler,
    descriptor_handle,
    acceleration_structure,
    enumeration,
    get_this,
    foreign_array,
    torch,
    torch_pair,
    torch_slot,
    packed,
    custom,
    text_or_unsupported,
};

struct ClassEntry {
    ValueClass value_class = ValueClass::text_or_unsupported;
    const MathTypeInfo* math = nullptr;
    nb::object signature;      ///< custom: fn(value) -> text, or None
    uint64_t registration = 0; ///< custom: grows with each change of the registry
};

const ClassEntry& class_of(PyObject* value);

/// Classes that users registered: {class: factory}, {class: fn(value) -> text for the key}.
void set_custom_types(nb::dict registry, nb::dict signatures);
void clear_type_cache();

} // namespace spy
