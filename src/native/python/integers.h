#pragma once
// Integer arguments of native functions whose errors say which argument is out of range: nanobind itself would say that
// no overload takes an int.
#include "python/fields.h"

#include <algorithm>
#include <limits>

namespace spy {

template <size_t Size>
struct ArgumentName {
    char text[Size];
    constexpr ArgumentName(const char (&name)[Size]) { std::copy_n(name, Size, text); }
};

/// A parameter of type T. Python's int (or what has __index__) is converted where it is used.
template <ArgumentName Name, typename T = uint32_t>
struct Int {
    nb::handle value;
    operator T() const { return T(uint_from(value, Name.text, std::numeric_limits<T>::max())); }
};

template <ArgumentName Name>
using Int64 = Int<Name, uint64_t>;

} // namespace spy

namespace nanobind::detail {

template <spy::ArgumentName Which, typename T>
struct type_caster<spy::Int<Which, T>> {
    using Argument = spy::Int<Which, T>;
    NB_TYPE_CASTER(Argument, const_name("int"))

    bool from_python(handle source, uint8_t, cleanup_list*) noexcept
    {
        value.value = source;
        return PyIndex_Check(source.ptr());
    }
};

} // namespace nanobind::detail
