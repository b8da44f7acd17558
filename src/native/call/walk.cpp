// The walk itself: each value by its class, packed arguments, and what a value leaves in key and description.
#include "call/walk.h"

namespace spy {

nb::object Walker::visit(PyObject* value)
{
    const ClassEntry& entry = class_of(value);
    try {
        return visit_as(value, entry);
    } catch (const std::bad_cast&) { // an instance of a native class whose __init__ never ran
        fail_bound("this ", Py_TYPE(value)->tp_name, " was never initialised (a subclass without super().__init__()?)");
    }
}

nb::object Walker::visit_as(PyObject* value, const ClassEntry& entry)
{
    switch (entry.value_class) {
    case ValueClass::none: return simple(value, ValueKind::none, 'z');
    case ValueClass::boolean: return number(value, ValueKind::boolean, ScalarType::bool_, 'b');
    case ValueClass::integer: return integer(value);
    case ValueClass::floating: return number(value, ValueKind::floating, ScalarType::float32, 'f');
    case ValueClass::numpy_scalar: return numpy_scalar(value);
    case ValueClass::math: return math(value, *entry.math);
    case ValueClass::sequence: return sequence(value);
    case ValueClass::dict: return dict(value);
    case ValueClass::numpy: return numpy(value);
    case ValueClass::tensor: return tensor(value);
    case ValueClass::range: return range(value);
    case ValueClass::generator: return generator(value, nb::cast<Generator*>(nb::handle(value)));
    case ValueClass::value_ref: return value_ref(value);
    case ValueClass::diff_pair: return diff_pair(value);
    case ValueClass::buffer: return buffer(value);
    case ValueClass::texture:
        return texture(value, texture_value(*nb::cast<Texture*>(nb::handle(value))), ValueKind::texture);
    case ValueClass::texture_view:
        return texture(value, texture_value(*nb::cast<TextureView*>(nb::handle(value))), ValueKind::texture_view);
    case ValueClass::sampler: return simple(value, ValueKind::sampler, 'S');
    case ValueClass::enumeration: return visit(hold(nb::handle(value).attr("value")));
    case ValueClass::get_this: return get_this(value);
    case ValueClass::foreign_array: return foreign(value);
    case ValueClass::custom: return custom(value, entry);
    case ValueClass::torch: return torch(value);
    case ValueClass::torch_pair: return torch_pair(value);
    case ValueClass::torch_slot: return torch_slot();
    case ValueClass::packed: fail_bound("a PackedArg must be a top level argument; pack the value as a whole");
    default: return unsupported(value, "");
    }
}

nb::object Walker::argument(PyObject* value)
{
    return class_of(value).value_class == ValueClass::packed ? packed(value) : visit(value);
}

nb::object Walker::packed(PyObject* value)
{
    auto* pack = nb::cast<PackedArg*>(nb::handle(value));
    put('K');
    if (pack->walked && !m_describing) {
        m.key.append(pack->key);
        m.answers.insert(m.answers.end(), pack->answers.begin(), pack->answers.end());
        for (const Leaf& leaf : pack->leaves)
            m.add_leaf() = leaf;
        return {};
    }
    size_t key = m.key.size(), leaves = m.leaf_count, keep = m.keep.size(), answers = m.answers.size();
    m_packed = true;
    nb::object result = visit(pack->value.ptr());
    m_packed = false;
    bool fixed = !m_describing;
    for (size_t i = leaves; i < m.leaf_count; ++i) {
        ValueKind kind = m.leaves[i].kind;
        fixed &= kind != ValueKind::torch && kind != ValueKind::custom && kind != ValueKind::unsupported;
        m.leaves[i].packed = pack;
        m.leaves[i].packed_index = uint32_t(i - leaves);
    }
    if (m_describing)
        result[2]["packed"] = true;
    if (fixed) {
        pack->key = m.key.substr(key);
        pack->leaves.assign(m.leaves.begin() + ptrdiff_t(leaves), m.leaves.begin() + ptrdiff_t(m.leaf_count));
        pack->keep.assign(m.keep.begin() + ptrdiff_t(keep), m.keep.end());
        pack->answers.assign(m.answers.begin() + ptrdiff_t(answers), m.answers.end());
        pack->walked = true;
    }
    return result;
}

PyObject* Walker::hold(nb::object object)
{
    if (!object.is_valid())
        throw nb::python_error();
    m.keep.push_back(std::move(object));
    return m.keep.back().ptr();
}

nb::object Walker::description(PyObject* value, ValueKind kind, nb::dict details, int64_t leaf, nb::list fields)
{
    return nb::make_tuple(to_string(kind), Py_TYPE(value)->tp_name, details, leaf, fields);
}

nb::object Walker::simple(PyObject* value, ValueKind kind, char code)
{
    put(code);
    Leaf& leaf = m.add_leaf();
    leaf.kind = kind;
    leaf.object = value;
    return m_describing ? description(value, kind, nb::dict(), last_leaf()) : nb::object();
}

nb::object Walker::unsupported(PyObject* value, const char* reason)
{
    put('U');
    m.key.append(Py_TYPE(value)->tp_name);
    m.key.append(reason);
    put('\0');
    Leaf& leaf = m.add_leaf();
    leaf.kind = ValueKind::unsupported;
    leaf.object = value;
    if (!m_describing)
        return {};
    nb::dict details;
    details["reason"] = reason;
    if (is_numpy_array(value))
        details["dtype"] = nb::str(nb::handle(value).attr("dtype"));
    return description(value, ValueKind::unsupported, details, last_leaf());
}

std::string Walker::label() const
{
    return m_node ? nb::cast<std::string>(nb::str(nb::getattr(nb::handle(m_node), "label", nb::str("")))) + ": " : "";
}

std::string Walker::place() const
{
    std::string where = "argument " + m_argument;
    for (std::string_view field : m_path)
        where += cat(".", field);
    return where;
}

void Walker::throw_bound(const std::string& text) const
{
    nb::object kind = nb::module_::import_("slangpy.errors").attr("BoundVariableException");
    PyErr_SetString(kind.ptr(), cat(label(), place(), ": ", text).c_str());
    throw nb::python_error();
}

nb::tuple to_tuple(const Shape& shape)
{
    nb::list list;
    for (int64_t dim : shape)
        list.append(dim);
    return nb::tuple(list);
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
