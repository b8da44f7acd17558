// The walk itself: each value by its class, packed arguments, and what the functions of the walk share.
#include "core/class_name.h"
#include "core/python_names.h"
#include "values/numpy.h"
#include "values/walk/walk.h"

#include <cstring>

namespace spy {

namespace {

nb::object walk_as(Walk& w, PyObject* value, const ClassEntry& entry)
{
    switch (entry.value_class) {
    case ValueClass::none: return walk_simple(w, value, ValueKind::none, 'z');
    case ValueClass::boolean: return walk_number(w, value, ValueKind::boolean, ScalarType::bool_, 'b');
    case ValueClass::integer: return walk_integer(w, value);
    case ValueClass::floating: return walk_number(w, value, ValueKind::floating, ScalarType::float32, 'f');
    case ValueClass::numpy_scalar: return walk_numpy_scalar(w, value);
    case ValueClass::math: return walk_math(w, value, *entry.math);
    case ValueClass::sequence: return walk_sequence(w, value);
    case ValueClass::dict: return walk_dict(w, value);
    case ValueClass::dataclass: return w.instead(value, walk_dict(w, w.hold(fields_of(value))));
    case ValueClass::numpy: return walk_numpy(w, value);
    case ValueClass::masked: return walk_masked(w, value);
    case ValueClass::tensor: return walk_tensor(w, value);
    case ValueClass::range: return walk_range(w, value);
    case ValueClass::generator: return walk_generator(w, value, nb::cast<Generator*>(nb::handle(value)));
    case ValueClass::value_ref: return walk_value_ref(w, value);
    case ValueClass::diff_pair: return walk_diff_pair(w, value);
    case ValueClass::buffer: return walk_buffer(w, value);
    case ValueClass::texture:
        return walk_texture(w, value, texture_value(*nb::cast<Texture*>(nb::handle(value))), ValueKind::texture);
    case ValueClass::texture_view:
        return walk_texture(w, value, texture_value(*nb::cast<TextureView*>(nb::handle(value))),
                            ValueKind::texture_view);
    case ValueClass::sampler: return walk_simple(w, value, ValueKind::sampler, 'S');
    case ValueClass::descriptor_handle: return walk_simple(w, value, ValueKind::descriptor_handle, 'H');
    case ValueClass::acceleration_structure: return walk_simple(w, value, ValueKind::acceleration_structure, 'A');
    case ValueClass::enumeration: return walk_value(w, w.hold(nb::handle(value).attr("value")));
    case ValueClass::get_this: return walk_get_this(w, value);
    case ValueClass::foreign_array: return walk_foreign(w, value);
    case ValueClass::custom: return walk_custom(w, value, entry);
    case ValueClass::torch: return walk_torch(w, value);
    case ValueClass::torch_pair: return walk_torch_pair(w, value);
    case ValueClass::torch_slot: return walk_torch_slot(w, value);
    case ValueClass::packed: w.fail_bound("a PackedArg must be a top level argument; pack the value as a whole");
    default:
        if (!PyType_Check(value) && // set on this object alone
            (nb::hasattr(value, "__array_interface__") || nb::hasattr(value, "__dlpack__")))
            return walk_foreign(w, value);
        return walk_unsupported(w, value, "");
    }
}

/// What the walk of a packed value left, from these places on, for the calls that follow.
struct PackedStart {
    size_t key, leaves, keep, answers;

    explicit PackedStart(const Signature& s)
        : key(s.key.size()),
          leaves(s.leaf_count),
          keep(s.keep.size()),
          answers(s.answers.size())
    {
    }

    void remember(const Signature& s, PackedArg& pack) const
    {
        pack.key = s.key.substr(key);
        pack.leaves.assign(s.leaves.begin() + ptrdiff_t(leaves), s.leaves.begin() + ptrdiff_t(s.leaf_count));
        pack.keep.assign(s.keep.begin() + ptrdiff_t(keep), s.keep.end());
        pack.answers.assign(s.answers.begin() + ptrdiff_t(answers), s.answers.end());
        pack.walked = true;
    }
};

nb::object walk_packed(Walk& w, PyObject* value)
{
    Signature& signature = w.signature;
    auto* pack = nb::cast<PackedArg*>(nb::handle(value));
    w.put('K');
    if (pack->walked && !w.describes) {
        signature.key.append(pack->key);
        signature.answers.insert(signature.answers.end(), pack->answers.begin(), pack->answers.end());
        for (const Leaf& leaf : pack->leaves)
            signature.add_leaf() = leaf;
        return w.plain(value);
    }
    const PackedStart start(signature);
    w.in_packed = true;
    nb::object result = walk_value(w, pack->value.ptr());
    w.in_packed = false;
    bool fixed = !w.describes && !w.strips;
    for (size_t i = start.leaves; i < signature.leaf_count; ++i) {
        Leaf& leaf = signature.leaves[i];
        fixed &= leaf.kind != ValueKind::torch && leaf.kind != ValueKind::custom && leaf.kind != ValueKind::unsupported;
        leaf.packed = pack;
        leaf.packed_index = uint32_t(i - start.leaves);
    }
    if (w.describes)
        result[2]["packed"] = true;
    if (fixed)
        start.remember(signature, *pack);
    return w.instead(value, std::move(result));
}

} // namespace

namespace {

nb::object walk_entry(Walk& w, PyObject* value, const ClassEntry& entry)
{
    try {
        return walk_as(w, value, entry);
    } catch (const std::bad_cast&) { // an instance of a native class whose __init__ never ran
        w.fail_bound("this ", class_name(value), " was never initialised (a subclass without super().__init__()?)");
    }
}

} // namespace

nb::object walk_value(Walk& w, PyObject* value) { return walk_entry(w, value, class_of(value)); }

nb::object walk_argument(Walk& w, PyObject* value)
{
    const ClassEntry& entry = class_of(value);
    return entry.value_class == ValueClass::packed ? walk_packed(w, value) : walk_entry(w, value, entry);
}

PyObject* Walk::hold(nb::object object)
{
    if (!object.is_valid())
        throw nb::python_error();
    signature.keep.push_back(std::move(object));
    return signature.keep.back().ptr();
}

nb::object Walk::described(PyObject* value, ValueKind kind, nb::dict details, int64_t leaf, nb::list fields) const
{
    return nb::make_tuple(to_string(kind), class_name(value), details, leaf, fields);
}

nb::object walk_simple(Walk& w, PyObject* value, ValueKind kind, char code)
{
    w.put(code);
    w.add_leaf(kind, value);
    return w.describes ? w.described(value, kind, nb::dict(), w.last_leaf()) : w.plain(value);
}

/// Characters of a str that may name a value of an enum.
constexpr Py_ssize_t longest_name = 128;

nb::object walk_unsupported(Walk& w, PyObject* value, const char* reason)
{
    w.put('U');
    w.signature.key.append(class_name(value));
    w.signature.key.append(reason);
    w.put('\0');
    const bool is_text = PyUnicode_Check(value) && PyUnicode_GET_LENGTH(value) <= longest_name;
    if (is_text) { // the name of an enum's value, which the kernel holds
        w.signature.key.append(text_of(value));
        w.put('\0');
    }
    w.add_leaf(ValueKind::unsupported, value);
    if (!w.describes)
        return w.plain(value);
    nb::dict details;
    details["reason"] = reason;
    if (is_text)
        details["text"] = nb::borrow(value);
    if (is_numpy_array(value))
        details["dtype"] = nb::str(nb::handle(value).attr("dtype"));
    return w.described(value, ValueKind::unsupported, details, w.last_leaf());
}

void PartScope::begin()
{
    m_index = m_walk->parts->size();
    const Signature& signature = m_walk->signature;
    std::string path = m_walk->argument;
    for (std::string_view field : m_walk->path)
        path += cat(".", field);
    // until the end: where the key begins
    m_walk->parts->push_back({std::move(path), std::string(), signature.leaf_count, signature.key.size()});
}

void PartScope::end()
{
    ArgumentPart& part = (*m_walk->parts)[m_index];
    part.key = m_walk->signature.key.substr(part.count);
    part.count = m_walk->signature.leaf_count - part.first;
}

std::string Walk::label() const
{
    return node ? nb::cast<std::string>(nb::str(nb::getattr(nb::handle(node), "label", nb::str("")))) + ": " : "";
}

std::string Walk::place() const
{
    std::string where = "argument " + argument;
    for (std::string_view field : path)
        where += cat(".", field);
    return where;
}

std::string Walk::named_place() const
{
    std::string where = place();
    if (!node || argument.empty() || argument.find_first_not_of("0123456789") != std::string::npos)
        return where;
    nb::object name = nb::steal(
        PyObject_CallMethod(node, in_python::parameter_at.name, "n", Py_ssize_t(std::stoull(argument))));
    if (!name.is_valid())
        PyErr_Clear(); // the function itself cannot be found: another error, of the call
    if (!name.is_valid() || name.is_none())
        return where;
    return "argument " + nb::cast<std::string>(name) + where.substr(std::strlen("argument ") + argument.size());
}

void Walk::throw_bound(const std::string& text) const
{
    nb::object kind = in_python::bound_variable_exception.get();
    PyErr_SetString(kind.ptr(), cat(label(), place(), ": ", text).c_str());
    throw nb::python_error();
}

std::string text_of(PyObject* text)
{
    Py_ssize_t size = 0;
    if (const char* bytes = PyUnicode_AsUTF8AndSize(text, &size))
        return {bytes, size_t(size)};
    PyErr_Clear();
    nb::object encoded = nb::steal(PyUnicode_AsEncodedString(text, "utf-8", "backslashreplace"));
    if (!encoded.is_valid())
        throw nb::python_error();
    return {PyBytes_AS_STRING(encoded.ptr()), size_t(PyBytes_GET_SIZE(encoded.ptr()))};
}

} // namespace spy
