// The walk over dicts and lists: numbers become one leaf, dicts their fields, other lists their elements.
#include "call/walk.h"

namespace spy {

nb::object Walker::dict(PyObject* value)
{
    put('d');
    std::vector<std::pair<std::string_view, PyObject*>> fields;
    PyObject *key, *item;
    Py_ssize_t position = 0;
    while (PyDict_Next(value, &position, &key, &item)) {
        if (!PyUnicode_Check(key))
            return unsupported(value, "dict keys");
        Py_ssize_t size = 0;
        const char* text = PyUnicode_AsUTF8AndSize(key, &size);
        if (!text) { // a lone surrogate
            PyErr_Clear();
            return unsupported(value, "dict keys");
        }
        hold(nb::borrow(key)); // get_this of a field may change the dict
        fields.emplace_back(std::string_view(text, size_t(size)), hold(nb::borrow(item)));
    }
    std::sort(fields.begin(), fields.end(), [](auto& a, auto& b) { return a.first < b.first; });
    nb::list children;
    nb::dict details;
    int64_t own = add_aggregate(value, ValueKind::dict);
    if (++m_depth > 64)
        fail_bound("a dict nested more than 64 levels deep cannot be an argument");
    for (auto& [name, item] : fields) {
        put(char(name.size() & 0x7f));
        m.key.append(name);
        if (name == "_type") {
            std::string text = type_text(item);
            m.key.append(text);
            put('\0');
            if (m_describing)
                details["_type"] = nb::borrow(item);
            continue;
        }
        m_path.push_back(name);
        nb::object child = visit(item);
        m_path.pop_back();
        if (m_describing)
            children.append(nb::make_tuple(std::string(name), child));
    }
    --m_depth;
    put('e');
    return m_describing ? description(value, ValueKind::dict, details, own, children) : nb::object();
}

int64_t Walker::add_aggregate(PyObject* value, ValueKind kind)
{
    Leaf& leaf = m.add_leaf();
    leaf.kind = kind;
    leaf.object = value;
    return last_leaf();
}

std::string Walker::type_text(PyObject* item) const
{
    if (PyUnicode_Check(item))
        return text_of(item);
    nb::object name = nb::getattr(nb::handle(item), "full_name", nb::none());
    if (!PyUnicode_Check(name.ptr()))
        fail_bound("_type must be the name of a Slang type or a Struct, got ", Py_TYPE(item)->tp_name);
    return text_of(name.ptr());
}

nb::object Walker::sequence(PyObject* value)
{
    if (!PyList_CheckExact(value) && !PyTuple_CheckExact(value))
        value = hold(nb::steal(PySequence_List(value)));
    size_t leaf_index = m.leaf_count;
    Leaf& leaf = m.add_leaf();
    leaf.kind = ValueKind::list;
    leaf.object = value;
    std::vector<int64_t> sizes;
    if (!flatten(value, 0, leaf, sizes)) {
        m.leaf_count = leaf_index;
        leaf.items.clear();
        return sequence_of_objects(value);
    }
    leaf.shape = Shape(std::span<const int64_t>(sizes));
    put('l');
    put(leaf.items.empty() ? '0' : char(leaf.scalar));
    put(char(leaf.rows * 16 + leaf.cols));
    put(char(sizes.size()));
    if (!m_describing)
        return {};
    nb::dict details;
    details["shape"] = to_tuple(leaf.shape);
    if (!leaf.items.empty())
        details["scalar"] = std::string(scalar_info(leaf.scalar).slang_name);
    details["rows"] = leaf.rows;
    details["cols"] = leaf.cols;
    return description(value, ValueKind::list, details, last_leaf());
}

bool Walker::flatten(PyObject* value, size_t depth, Leaf& leaf, std::vector<int64_t>& sizes)
{
    int64_t count = PySequence_Fast_GET_SIZE(value);
    if (depth == sizes.size())
        sizes.push_back(count);
    else if (sizes[depth] != count)
        fail_bound("nested lists must have equal lengths: found ", count, " elements where an earlier list at the ",
                   "same depth has ", sizes[depth]);
    if (depth >= 16)
        fail_bound("a list nested more than 16 levels deep cannot be an argument");
    for (int64_t i = 0; i < count; ++i) {
        if (i >= PySequence_Fast_GET_SIZE(value))
            fail_bound("a list changed its length while it was read");
        PyObject* item = PySequence_Fast_GET_ITEM(value, i);
        const ClassEntry& entry = class_of(item);
        if (entry.value_class == ValueClass::sequence) {
            if (!leaf.items.empty() && sizes.size() == depth + 1)
                fail_bound("nested lists must have equal lengths: a list and a number at the same depth");
            if (!flatten(item, depth + 1, leaf, sizes))
                return false;
            continue;
        }
        if (sizes.size() > depth + 1)
            fail_bound("nested lists must have equal lengths: a list and a number at the same depth");
        if (!take_item(item, entry, leaf))
            return false;
    }
    return true;
}

bool Walker::take_item(PyObject* item, const ClassEntry& entry, Leaf& leaf)
{
    ScalarType scalar = ScalarType::none;
    uint8_t rows = 0, cols = 0;
    switch (entry.value_class) {
    case ValueClass::boolean: scalar = ScalarType::bool_; break;
    case ValueClass::integer: {
        char code = int_class(item);
        scalar = code == 'i' ? ScalarType::int32 : code == 'u' ? ScalarType::uint64 : ScalarType::int64;
        break;
    }
    case ValueClass::floating: scalar = ScalarType::float32; break;
    case ValueClass::numpy_scalar:
        scalar = numpy_scalar_type(item);
        if (scalar == ScalarType::none) return false;
        scalar = scalar_info(scalar).is_float ? ScalarType::float32
                 : scalar_info(scalar).size == 8 ? scalar : ScalarType::int32;
        break;
    case ValueClass::enumeration: {
        PyObject* inner = hold(nb::handle(item).attr("value"));
        return take_item(inner, class_of(inner), leaf);
    }
    case ValueClass::math:
        scalar = entry.math->scalar;
        rows = entry.math->is_matrix ? entry.math->rows : 1;
        cols = entry.math->cols;
        if (entry.math->is_scalar) { rows = cols = 0; scalar = ScalarType::float32; }
        break;
    default: return false;
    }
    if (leaf.items.empty()) {
        leaf.scalar = scalar;
        leaf.rows = rows;
        leaf.cols = cols;
    } else if (rows != leaf.rows || cols != leaf.cols || (cols && scalar != leaf.scalar)) {
        fail_bound("all elements of a list must be of one kind (numbers, or one vector or matrix class)");
    } else if (scalar == ScalarType::float32 || leaf.scalar == ScalarType::float32) {
        leaf.scalar = ScalarType::float32;
    } else if (scalar == ScalarType::uint64 || leaf.scalar == ScalarType::uint64) {
        leaf.scalar = ScalarType::uint64;
    } else if (scalar == ScalarType::int64 || leaf.scalar == ScalarType::int64) {
        leaf.scalar = ScalarType::int64;
    } else if (scalar != leaf.scalar) {
        leaf.scalar = ScalarType::int32;
    }
    leaf.items.push_back(nb::borrow(item));
    return true;
}

nb::object Walker::plain_items(PyObject* value, int level)
{
    nb::list items;
    if (level >= 16)
        fail_bound("a list nested more than 16 levels deep cannot be an argument");
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(value); ++i) {
        nb::object item = nb::borrow(PySequence_Fast_GET_ITEM(value, i));
        for (int depth = 0; class_of(item.ptr()).value_class == ValueClass::get_this; ++depth) {
            if (depth > 64)
                fail_bound("get_this() nested more than 64 levels deep");
            item = ask_this(item.ptr());
        }
        if (PyList_CheckExact(item.ptr()) || PyTuple_CheckExact(item.ptr()))
            item = plain_items(item.ptr(), level + 1);
        items.append(item);
    }
    return items;
}

nb::object Walker::sequence_of_objects(PyObject* value)
{
    static nb::object* transpose = nullptr;
    if (!transpose)
        transpose = new nb::object(nb::module_::import_("slangpy.call.lists").attr("merge_items"));
    nb::object items = plain_items(value);
    if (m_depth < 64 && is_numbers(items))
        return sequence(hold(items));
    nb::object merged = answer([&] {
        try {
            return (*transpose)(items); // None when the elements are no dicts
        } catch (nb::python_error& error) {
            if (!error.matches(PyExc_ValueError))
                throw;
            fail_bound(nb::cast<std::string>(nb::str(error.value())));
        }
    });
    PyObject* list = hold(items);
    int64_t own = add_aggregate(list, ValueKind::list);
    m.leaves[size_t(own)].shape.push_back(PyList_GET_SIZE(list));
    return merged.is_none() ? array_of_objects(value, list, own) : merged_list(std::move(merged), list, own);
}

/// Whether objects stand for numbers, so that their list is one of numbers.
bool Walker::is_numbers(const nb::object& items)
{
    size_t leaf_index = m.leaf_count;
    Leaf& leaf = m.add_leaf();
    leaf.kind = ValueKind::list;
    std::vector<int64_t> sizes;
    bool numbers = flatten(items.ptr(), 0, leaf, sizes);
    leaf.items.clear();
    m.leaf_count = leaf_index;
    return numbers;
}

nb::object Walker::array_of_objects(PyObject* value, PyObject* list, int64_t own)
{
    put('r');
    put32(uint32_t(PyList_GET_SIZE(list)));
    nb::list children;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); ++i) {
        nb::object child = visit(PyList_GET_ITEM(list, i));
        if (m_describing)
            children.append(nb::make_tuple(cat("[", i, "]"), child));
    }
    put('e');
    if (!m_describing)
        return {};
    nb::dict details;
    details["items"] = true;
    details["length"] = PyList_GET_SIZE(list);
    return description(value, ValueKind::list, details, own, children);
}

nb::object Walker::merged_list(nb::object merged, PyObject* list, int64_t own)
{
    put('L');
    for (PyObject* at = list; PyList_GET_SIZE(at) && PyList_Check(PyList_GET_ITEM(at, 0));) { // all are of one length:
        at = PyList_GET_ITEM(at, 0);                                                          // the fields tell
        m.leaves[size_t(own)].shape.push_back(PyList_GET_SIZE(at));
    }
    nb::object inner = visit(hold(std::move(merged)));
    if (m_describing) {
        inner[2]["list_length"] = PyList_GET_SIZE(list);
        inner[2]["list_depth"] = m.leaves[size_t(own)].shape.size();
        inner[2]["list_shape"] = to_tuple(m.leaves[size_t(own)].shape);
        inner[2]["list_leaf"] = own;
    }
    return inner;
}

} // namespace spy
