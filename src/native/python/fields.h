#pragma once
// Descriptor classes from one table each: constructor from fields, a dict or another descriptor; properties; repr; and
// the same fields as keyword arguments of the create_* methods.
#include "core/class_name.h"
#include "python/bindings.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <array>
#include <limits>
#include <memory>
#include <string>
#include <vector>

namespace spy {

/// repr cut to a length that fits a message.
std::string short_text(nb::handle value);

/// Non-negative integers from an int, a sequence, a spy vector or an array. Missing trailing ones are `fill`.
void read_uints(nb::handle value, const char* what, uint64_t* out, size_t count, bool pad, uint64_t fill);
template <size_t N>
std::array<uint64_t, N> uints_from(nb::handle value, const char* what, bool pad = false, uint64_t fill = 1)
{
    std::array<uint64_t, N> out;
    read_uints(value, what, out.data(), N, pad, fill);
    return out;
}
template <size_t N>
std::array<uint32_t, N> uint32s_from(nb::handle value, const char* what, bool pad = false, uint64_t fill = 1)
{
    const std::array<uint64_t, N> wide = uints_from<N>(value, what, pad, fill);
    std::array<uint32_t, N> out;
    for (size_t i = 0; i < N; ++i) {
        if (wide[i] > 0xffffffffu)
            fail_value(what, ": ", wide[i], " does not fit 32 bits");
        out[i] = uint32_t(wide[i]);
    }
    return out;
}
std::array<float, 4> floats_from(nb::handle value, const char* what, size_t count);
/// A uint2 or uint3 as Python knows it.
nb::object uints_to_python(const uint32_t* values, size_t count);

[[noreturn]] void fail_field(const char* what, nb::handle value, const char* expected);
/// A member of an enum, given as such or by its name. Of others, the member whose name is near to a text is named.
nb::object enum_from(nb::handle value, const char* what, nb::handle type);
uint64_t uint_from(nb::handle value, const char* what, uint64_t most);

/// How one C++ type goes to and comes from Python in a field.
template <typename T>
T from_field(nb::handle value, const char* what)
{
    if constexpr (std::is_same_v<T, nb::object>) {
        return nb::borrow(value);
    } else if constexpr (std::is_same_v<T, bool>) {
        if (!PyBool_Check(value.ptr()))
            fail_field(what, value, "a bool");
        return value.ptr() == Py_True;
    } else if constexpr (std::is_enum_v<T>) { // nanobind alone would take the enum's number too
        return nb::cast<T>(nb::isinstance<T>(value) ? nb::borrow(value) : enum_from(value, what, nb::type<T>()));
    } else if constexpr (std::is_integral_v<T> && std::is_unsigned_v<T>) {
        return T(uint_from(value, what, std::numeric_limits<T>::max()));
    } else {
        T result{};
        if (!nb::try_cast<T>(value, result))
            fail_field(what, value, std::is_same_v<T, std::string> ? "a str" : nullptr);
        return result;
    }
}

template <typename T>
struct Field {
    std::string name, type, doc; ///< `type` as a stub shows it
    nb::object (*get)(const T&);
    void (*set)(T&, nb::handle value, const char* what);
};

template <typename M>
struct member_value;
template <typename C, typename V>
struct member_value<V C::*> {
    using type = V;
};

template <typename T, auto Member>
Field<T> field(const char* name, const char* type, const char* doc)
{
    using V = typename member_value<decltype(Member)>::type;
    return {name, std::is_enum_v<V> ? cat(type, " | str") : std::string(type), doc,
            [](const T& desc) -> nb::object { return nb::cast(V(desc.*Member)); },
            [](T& desc, nb::handle value, const char* what) { desc.*Member = from_field<V>(value, what); }};
}

/// The table of a descriptor type; one per type, filled when it is bound.
template <typename T>
struct Fields {
    inline static std::string name;
    inline static std::vector<Field<T>> table;

    static std::string known()
    {
        std::string text;
        for (const Field<T>& field : table)
            text += (text.empty() ? "" : ", ") + field.name;
        return text;
    }

    static void set(T& desc, std::string_view field_name, nb::handle value, const char* function)
    {
        for (const Field<T>& field : table)
            if (field.name == field_name) {
                field.set(desc, value, cat(function, " '", field.name, "'").c_str());
                return;
            }
        fail(ErrorKind::type, function, ": unknown field '", field_name, "'; known fields: ", known());
    }

    static void set_all(T& desc, nb::handle fields, const char* function)
    {
        for (auto [key, value] : nb::borrow<nb::dict>(fields)) {
            if (!PyUnicode_Check(key.ptr()))
                fail(ErrorKind::type, function, ": field names are strings, got ", short_text(key));
            set(desc, nb::cast<std::string>(key), value, function);
        }
    }

    static void set_positional(T& desc, nb::args args, nb::kwargs kwargs, const char* function)
    {
        if (args.size() > table.size())
            fail(ErrorKind::type, function, " takes at most ", table.size(), " arguments (one ", name,
                 " or dict, or the fields ", known(), "); got ", args.size());
        for (size_t i = 0; i < args.size(); ++i) {
            const Field<T>& entry = table[i];
            if (kwargs.contains(entry.name.c_str()))
                fail(ErrorKind::type, function, ": '", entry.name, "' is given by position and by name");
            entry.set(desc, args[i], cat(function, " '", entry.name, "'").c_str());
        }
    }

    static T from(nb::handle value, const char* function)
    {
        if (nb::isinstance<T>(value))
            return nb::cast<T>(value);
        if (!PyDict_Check(value.ptr()))
            fail(ErrorKind::type, function, ": expected a ", name, " or a dict, got ", short_text(value), " (",
                 class_name(value), ")");
        T desc;
        set_all(desc, value, function);
        return desc;
    }

    /// Arguments of create_x: one descriptor or dict, or fields by position; and fields by name, which win over a
    /// descriptor's.
    static T from_arguments(nb::args args, nb::kwargs kwargs, const char* function)
    {
        T desc;
        if (args.size() && (nb::isinstance<T>(args[0]) || PyDict_Check(args[0].ptr()))) {
            if (args.size() > 1)
                fail(ErrorKind::type, function, ": after a ", name, " or dict, fields are given by name; got ",
                     args.size(), " positional arguments");
            desc = from(args[0], function);
        } else if (args.size()) {
            set_positional(desc, args, kwargs, function);
        } else if (kwargs.contains("desc")) {
            desc = from(kwargs["desc"], function);
            kwargs = nb::borrow<nb::kwargs>(kwargs.attr("copy")());
            nb::del(kwargs["desc"]);
        }
        set_all(desc, kwargs, function);
        return desc;
    }

    static std::string repr(const T& desc)
    {
        std::string text = name + "(\n";
        for (const Field<T>& field : table)
            text += "  " + field.name + " = " + nb::cast<std::string>(nb::repr(field.get(desc))) + ",\n";
        return text + ")";
    }

    /// "def create_buffer(self, size: BufferDesc | dict | int = ...) -> Buffer"; kept for the life of the process.
    static const char* signature(const std::string& function, const std::string& result)
    {
        static std::vector<std::unique_ptr<std::string>> kept;
        std::string text = "def " + function + "(self";
        for (const Field<T>& field : table)
            text += ", " + field.name + ": " + (&field == table.data() ? name + " | dict | " : "") + field.type +
                " = ...";
        kept.push_back(std::make_unique<std::string>(text + ") -> " + result));
        return kept.back()->c_str();
    }
};

/// Binds T with the fields given. T must be default constructible.
template <typename T>
nb::class_<T> bind_desc(nb::module_& m, const char* name, const char* doc, std::vector<Field<T>> table)
{
    Fields<T>::name = name;
    Fields<T>::table = std::move(table);
    nb::class_<T> cls(m, name, doc);
    cls.def(
        "__init__",
        [](T* self, nb::args args, nb::kwargs kwargs) {
            new (self) T(Fields<T>::from_arguments(args, kwargs, Fields<T>::name.c_str()));
        },
        nb::sig(Fields<T>::signature("__init__", "None")));
    for (const Field<T>& entry : Fields<T>::table) {
        const Field<T>* field = &entry;
        cls.def_prop_rw(
            field->name.c_str(), [field](const T& desc) { return field->get(desc); },
            [field](T& desc, nb::handle value) { field->set(desc, value, field->name.c_str()); }, nb::arg().none(),
            field->doc.c_str());
    }
    cls.def("__repr__", &Fields<T>::repr);
    return cls;
}

} // namespace spy
