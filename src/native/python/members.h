#pragma once
// Enum arguments of native functions, which take the names of members as fields of descriptors do.
#include "python/integers.h"

namespace spy {

/// A parameter of the enum T: a member, its number, or its name, which is read where the argument is used.
template <ArgumentName Name, typename T>
struct Member {
    nb::handle text;
    T value{};
    operator T() const { return text.is_valid() ? from_field<T>(text, Name.text) : value; }
};

} // namespace spy

namespace nanobind::detail {

template <spy::ArgumentName Which, typename T>
struct type_caster<spy::Member<Which, T>> {
    using Argument = spy::Member<Which, T>;
    NB_TYPE_CASTER(Argument, make_caster<T>::Name + const_name(" | str"))

    bool from_python(handle source, uint8_t flags, cleanup_list* cleanup) noexcept
    {
        if (PyUnicode_Check(source.ptr())) {
            value.text = source;
            return true;
        }
        make_caster<T> caster;
        if (!caster.from_python(source, flags, cleanup))
            return false;
        value.value = caster.operator cast_t<T>();
        return true;
    }
};

} // namespace nanobind::detail
