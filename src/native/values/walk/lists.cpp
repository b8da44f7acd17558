// The walk over dicts and lists: numbers become one leaf, dicts their fields, other lists their elements.
#include "core/class_name.h"
#include "values/walk/walk.h"

#include <algorithm>

namespace spy {

namespace {

/// A new list or dict where it is wanted; the warm path makes none.
template <typename T>
T optional_object(bool wanted)
{
    return wanted ? T() : nb::steal<T>(nb::handle());
}

/// A leaf for a dict or list of objects as a whole, in front of those of its parts: the planner takes one or the other.
int64_t add_aggregate(Walk& w, PyObject* value, ValueKind kind)
{
    w.add_leaf(kind, value);
    return w.last_leaf();
}

bool take_item(Walk& w, PyObject* item, const ClassEntry& entry, Leaf& leaf)
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
        if (scalar == ScalarType::none)
            return false;
        scalar = scalar_info(scalar).is_float ? ScalarType::float32
            : scalar_info(scalar).size == 8   ? scalar
                                              : ScalarType::int32;
        break;
    case ValueClass::enumeration: {
        PyObject* inner = w.hold(nb::handle(item).attr("value"));
        return take_item(w, inner, class_of(inner), leaf);
    }
    case ValueClass::math:
        scalar = entry.math->scalar;
        rows = entry.math->is_matrix ? entry.math->rows : 1;
        cols = entry.math->cols;
        if (entry.math->is_scalar) {
            rows = cols = 0;
            scalar = ScalarType::float32;
        }
        break;
    default: return false;
    }
    if (leaf.items.empty()) {
        leaf.scalar = scalar;
        leaf.rows = rows;
        leaf.cols = cols;
    } else if (rows != leaf.rows || cols != leaf.cols || (cols && scalar != leaf.scalar)) {
        w.fail_bound("all elements of a list must be of one kind (numbers, or one vector or matrix class)");
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

/// Where a nested list lies in the outermost one: "[2][0]".
struct ListPath {
    const ListPath* outer = nullptr;
    int64_t index = 0;

    std::string text() const { return outer ? cat(outer->text(), "[", index, "]") : std::string(); }
};

/// Flattens nested sequences of scalars or math values into leaf.items; false when an element is something else.
bool flatten(Walk& w, PyObject* value, size_t depth, Leaf& leaf, std::vector<int64_t>& sizes, const ListPath& path)
{
    int64_t count = PySequence_Fast_GET_SIZE(value);
    if (depth == sizes.size())
        sizes.push_back(count);
    else if (sizes[depth] != count)
        w.fail_bound("nested lists must have equal lengths: ", path.text(), " has ", count,
                     " elements where an earlier list at the same depth has ", sizes[depth]);
    if (depth >= 16)
        w.fail_bound("a list nested more than 16 levels deep cannot be an argument");
    for (int64_t i = 0; i < count; ++i) {
        const ListPath at{&path, i};
        if (i >= PySequence_Fast_GET_SIZE(value))
            w.fail_bound("a list changed its length while it was read");
        PyObject* item = PySequence_Fast_GET_ITEM(value, i);
        const ClassEntry& entry = class_of(item);
        if (entry.value_class == ValueClass::sequence) {
            if (!leaf.items.empty() && sizes.size() == depth + 1)
                w.fail_bound("nested lists must have equal lengths: ", at.text(),
                             " is a list, but earlier elements at the same depth are numbers; a struct takes a dict of "
                             "its fields");
            if (!flatten(w, item, depth + 1, leaf, sizes, at))
                return false;
            continue;
        }
        if (sizes.size() > depth + 1)
            w.fail_bound("nested lists must have equal lengths: ", at.text(),
                         " is no list, but earlier elements at the same depth are lists");
        if (!take_item(w, item, entry, leaf))
            return false;
    }
    return true;
}

/// The elements of a list, each object with get_this, and each dataclass, replaced by what it stands for (nested lists
/// too).
nb::object plain_items(Walk& w, PyObject* value, int level = 0)
{
    nb::list items;
    if (level >= 16)
        w.fail_bound("a list nested more than 16 levels deep cannot be an argument");
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(value); ++i) {
        nb::object item = nb::borrow(PySequence_Fast_GET_ITEM(value, i));
        for (int depth = 0; class_of(item.ptr()).value_class == ValueClass::get_this; ++depth) {
            if (depth > 64)
                w.fail_bound("get_this() nested more than 64 levels deep");
            item = ask_this(w, item.ptr());
        }
        const ValueClass found = class_of(item.ptr()).value_class;
        if (found == ValueClass::dataclass)
            item = fields_of(item.ptr());
        if (found == ValueClass::sequence)
            item = plain_items(w, item.ptr(), level + 1);
        items.append(item);
    }
    return items;
}

/// Whether objects stand for numbers, so that their list is one of numbers.
bool is_numbers(Walk& w, const nb::object& items)
{
    size_t leaf_index = w.signature.leaf_count;
    Leaf& leaf = w.signature.add_leaf();
    leaf.kind = ValueKind::list;
    std::vector<int64_t> sizes;
    bool numbers = flatten(w, items.ptr(), 0, leaf, sizes, {});
    leaf.items.clear();
    w.signature.leaf_count = leaf_index;
    return numbers;
}

nb::object walk_array_of_objects(Walk& w, PyObject* value, PyObject* list, int64_t own)
{
    w.put('r');
    w.put32(uint32_t(PyList_GET_SIZE(list)));
    nb::list children = optional_object<nb::list>(w.describes || w.strips);
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); ++i) {
        nb::object child = walk_value(w, PyList_GET_ITEM(list, i));
        if (w.strips)
            children.append(child);
        if (w.describes)
            children.append(nb::make_tuple(cat("[", i, "]"), child));
    }
    w.put('e');
    if (w.strips)
        return children;
    if (!w.describes)
        return {};
    nb::dict details;
    details["items"] = true;
    details["length"] = PyList_GET_SIZE(list);
    return w.described(value, ValueKind::list, details, own, children);
}

/// The items of a list that became one dict of lists.
nb::object split_items(nb::handle fields, const Shape& shape, size_t level)
{
    nb::list items;
    for (int64_t i = 0; i < shape[level]; ++i) {
        nb::dict item;
        for (auto [name, values] : nb::borrow<nb::dict>(fields)) {
            const bool is_type = nb::isinstance<nb::str>(name) && nb::cast<std::string>(name) == "_type";
            item[name] = is_type ? nb::borrow(values) : nb::steal(PySequence_GetItem(values.ptr(), Py_ssize_t(i)));
        }
        items.append(level + 1 < shape.size() ? split_items(item, shape, level + 1) : nb::object(item));
    }
    return items;
}

nb::object walk_merged(Walk& w, nb::object merged, PyObject* list, int64_t own)
{
    w.put('L');
    for (PyObject* at = list; PyList_GET_SIZE(at) && PyList_Check(PyList_GET_ITEM(at, 0));) { // all are of one length:
        at = PyList_GET_ITEM(at, 0);                                                          // the fields tell
        w.signature.leaves[size_t(own)].shape.push_back(PyList_GET_SIZE(at));
    }
    nb::object inner = walk_value(w, w.hold(std::move(merged)));
    if (w.describes) {
        inner[2]["list_length"] = PyList_GET_SIZE(list);
        inner[2]["list_depth"] = w.signature.leaves[size_t(own)].shape.size();
        inner[2]["list_shape"] = to_tuple(w.signature.leaves[size_t(own)].shape);
        inner[2]["list_leaf"] = own;
    }
    return w.strips ? split_items(inner, w.signature.leaves[size_t(own)].shape, 0) : inner;
}

/// A list of dicts becomes one dict of lists; other lists of objects are arrays of resources.
nb::object walk_objects(Walk& w, PyObject* value)
{
    nb::object items = plain_items(w, value);
    if (w.depth < 64 && is_numbers(w, items))
        return walk_sequence(w, w.hold(items));
    nb::object merged = merge_items(w, items.ptr());
    PyObject* list = w.hold(items);
    int64_t own = add_aggregate(w, list, ValueKind::list);
    w.signature.leaves[size_t(own)].shape.push_back(PyList_GET_SIZE(list));
    return merged.is_valid() ? walk_merged(w, std::move(merged), list, own)
                             : walk_array_of_objects(w, value, list, own);
}

/// The fields of a dict by name, in that order.
using DictFields = std::vector<std::pair<std::string_view, PyObject*>>;

nb::object walk_fields(Walk& w, PyObject* value, int64_t own, const DictFields& fields)
{
    nb::list children = optional_object<nb::list>(w.describes);
    nb::dict details = optional_object<nb::dict>(w.describes), stripped = optional_object<nb::dict>(w.strips);
    for (auto& [name, item] : fields) {
        w.put(char(name.size() & 0x7f));
        w.signature.key.append(name);
        if (name == "_type") {
            std::string text = type_text(w, item);
            w.signature.key.append(text);
            w.put('\0');
            if (w.strips)
                stripped["_type"] = nb::borrow(item);
            if (w.describes)
                details["_type"] = nb::borrow(item);
            continue;
        }
        w.path.push_back(name);
        const PartScope part(w);
        nb::object child = walk_value(w, item);
        w.path.pop_back();
        if (w.strips)
            stripped[nb::str(name.data(), name.size())] = child;
        if (w.describes)
            children.append(nb::make_tuple(std::string(name), child));
    }
    if (w.strips)
        return stripped;
    return w.describes ? w.described(value, ValueKind::dict, details, own, children) : nb::object();
}

} // namespace

nb::object walk_dict(Walk& w, PyObject* value)
{
    w.put('d');
    DictFields fields;
    PyObject *key, *item;
    Py_ssize_t position = 0;
    while (PyDict_Next(value, &position, &key, &item)) {
        if (!PyUnicode_Check(key))
            return walk_unsupported(w, value, "dict keys");
        Py_ssize_t size = 0;
        const char* text = PyUnicode_AsUTF8AndSize(key, &size);
        if (!text) { // a lone surrogate
            PyErr_Clear();
            return walk_unsupported(w, value, "dict keys");
        }
        w.hold(nb::borrow(key)); // get_this of a field may change the dict
        fields.emplace_back(std::string_view(text, size_t(size)), w.hold(nb::borrow(item)));
    }
    std::sort(fields.begin(), fields.end(), [](auto& a, auto& b) { return a.first < b.first; });
    const int64_t own = add_aggregate(w, value, ValueKind::dict);
    if (++w.depth > 64)
        w.fail_bound("a dict nested more than 64 levels deep cannot be an argument");
    nb::object result = walk_fields(w, value, own, fields);
    --w.depth;
    w.put('e');
    return result;
}

nb::object walk_sequence(Walk& w, PyObject* value)
{
    if (!PyList_CheckExact(value) && !PyTuple_CheckExact(value))
        value = w.hold(nb::steal(PySequence_List(value)));
    size_t leaf_index = w.signature.leaf_count;
    Leaf& leaf = w.add_leaf(ValueKind::list, value);
    std::vector<int64_t> sizes;
    if (!flatten(w, value, 0, leaf, sizes, {})) {
        w.signature.leaf_count = leaf_index;
        leaf.items.clear();
        return walk_objects(w, value);
    }
    leaf.shape = Shape(std::span<const int64_t>(sizes));
    w.put('l');
    w.put(leaf.items.empty() ? '0' : char(leaf.scalar));
    w.put(char(leaf.rows * 16 + leaf.cols));
    w.put(char(sizes.size()));
    if (w.strips)
        return nb::steal(PySequence_List(value));
    if (!w.describes)
        return {};
    nb::dict details;
    details["shape"] = to_tuple(leaf.shape);
    if (!leaf.items.empty())
        details["scalar"] = std::string(scalar_info(leaf.scalar).slang_name);
    details["rows"] = leaf.rows;
    details["cols"] = leaf.cols;
    return w.described(value, ValueKind::list, details, w.last_leaf());
}

} // namespace spy
