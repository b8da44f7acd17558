// Lists of dicts become one dict of lists, so that their fields vectorise one by one.
#include "core/class_name.h"
#include "values/walk/walk.h"

namespace spy {

namespace {

/// The names of fields as Python shows a list of them, sorted where they can be.
std::string shown(nb::handle dict)
{
    nb::object names = nb::steal(PyDict_Keys(dict.ptr()));
    if (PyList_Sort(names.ptr()))
        PyErr_Clear(); // keys of several kinds
    return nb::cast<std::string>(nb::repr(names));
}

/// The elements of a list as dicts: those of nested lists are merged. Empty where none is a dict.
std::vector<nb::object> dicts_of(Walk& w, PyObject* items)
{
    const Py_ssize_t count = PySequence_Fast_GET_SIZE(items);
    std::vector<nb::object> dicts;
    for (Py_ssize_t i = 0; i < count; ++i) {
        nb::object item = nb::borrow(PySequence_Fast_GET_ITEM(items, i));
        if (class_of(item.ptr()).value_class == ValueClass::sequence)
            item = merge_items(w, item.ptr());
        if (item.is_valid() && class_of(item.ptr()).value_class == ValueClass::dict)
            dicts.push_back(std::move(item));
        else if (!dicts.empty())
            break; // no list of dicts alone
    }
    if (!dicts.empty() && Py_ssize_t(dicts.size()) != count)
        w.fail_bound("all elements of a list must be of one kind: found dicts and other values");
    return dicts;
}

/// One field of all dicts as a list.
nb::object gather(Walk& w, const std::vector<nb::object>& dicts, PyObject* key)
{
    nb::object values = nb::steal(PyList_New(Py_ssize_t(dicts.size())));
    for (size_t i = 0; i < dicts.size(); ++i) {
        PyObject* value = PyDict_GetItemWithError(dicts[i].ptr(), key);
        if (!value && PyErr_Occurred())
            throw nb::python_error();
        if (!value || PyDict_GET_SIZE(dicts[i].ptr()) != PyDict_GET_SIZE(dicts[0].ptr()))
            w.fail_bound("all dicts of a list must have equal fields: element 0 has ", shown(dicts[0]), ", element ", i,
                         " has ", shown(dicts[i]));
        PyList_SET_ITEM(values.ptr(), Py_ssize_t(i), Py_NewRef(value));
    }
    return values;
}

/// The type that all dicts name.
nb::object one_type(Walk& w, const nb::object& types)
{
    nb::object first = nb::borrow(PyList_GET_ITEM(types.ptr(), 0));
    for (Py_ssize_t i = 1; i < PyList_GET_SIZE(types.ptr()); ++i) {
        PyObject* other = PyList_GET_ITEM(types.ptr(), i);
        if (other != first.ptr() && type_text(w, other) != type_text(w, first.ptr()))
            w.fail_bound("all dicts of a list must have one _type, found ", type_text(w, first.ptr()), " and ",
                         type_text(w, other));
    }
    return first;
}

} // namespace

std::string type_text(const Walk& w, PyObject* item)
{
    if (PyUnicode_Check(item))
        return text_of(item);
    nb::object name = nb::getattr(nb::handle(item), "full_name", nb::none());
    if (!PyUnicode_Check(name.ptr()))
        w.fail_bound("_type must be the name of a Slang type or a Struct, got ", class_name(item));
    return text_of(name.ptr());
}

nb::object merge_items(Walk& w, PyObject* items)
{
    const std::vector<nb::object> dicts = dicts_of(w, items);
    if (dicts.empty())
        return {};
    nb::dict merged;
    nb::object keys = nb::steal(PyDict_Keys(dicts[0].ptr()));
    for (nb::handle key : keys) {
        nb::object values = gather(w, dicts, key.ptr());
        const bool is_type = PyUnicode_Check(key.ptr()) && PyUnicode_CompareWithASCIIString(key.ptr(), "_type") == 0;
        merged[key] = is_type ? one_type(w, values) : values;
    }
    return merged;
}

} // namespace spy
