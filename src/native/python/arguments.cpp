// Arguments that bound functions do not take. nanobind answers with a list of signatures; this says which argument,
// what came and what was expected. Each function gets a vectorcall of its own before nanobind's, which looks at errors
// alone.
#include "python/arguments.h"

#include <cstdint>
#include <cstring>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include <nanobind/stl/string.h>

#include "core/python_names.h"

namespace nb = nanobind;

namespace spy {
namespace {

/// nanobind has one for each way to read arguments: six.
constexpr size_t MOST_WAYS = 12;
constexpr const char* THEIR_WORDS = "incompatible function arguments. The following";

vectorcallfunc originals[MOST_WAYS];
vectorcallfunc explained[MOST_WAYS];
size_t way_count;
/// Setters of properties, which have no names of their own. The functions live as long as the module.
std::unordered_map<PyObject*, std::string> setter_names;

bool is_method(PyObject* function) { return std::strstr(Py_TYPE(function)->tp_name, "nb_method") != nullptr; }

bool is_bound(PyObject* object)
{
    const char* type = Py_TYPE(object)->tp_name;
    return std::strstr(type, "nb_func") != nullptr || is_method(object);
}

std::string name_of(PyObject* function)
{
    if (auto found = setter_names.find(function); found != setter_names.end())
        return found->second;
    return nb::cast<std::string>(nb::handle(function).attr("__qualname__"));
}

/// The text of the error that is set, by the package's Python files; empty where it is another error.
std::string explanation(const nb::python_error& error, PyObject* function, PyObject* const* args, size_t count,
                        PyObject* names)
{
    if (!error.matches(PyExc_TypeError))
        return {};
    nb::str text(error.value());
    if (std::strstr(text.c_str(), THEIR_WORDS) == nullptr)
        return {};
    nb::list given;
    size_t total = count + (names != nullptr ? static_cast<size_t>(PyTuple_GET_SIZE(names)) : 0);
    for (size_t i = is_method(function) || setter_names.count(function) != 0 ? 1 : 0; i < total; ++i)
        given.append(nb::handle(args[i]));
    nb::object keys = names != nullptr ? nb::borrow(names) : nb::object(nb::tuple());
    return nb::cast<std::string>(in_python::explain_arguments.get()(name_of(function), text, given, keys));
}

void explain(PyObject* function, PyObject* const* args, size_t count, PyObject* names) noexcept
{
    if (PyErr_ExceptionMatches(PyExc_TypeError) == 0)
        return;
    nb::python_error error;
    try {
        std::string text = explanation(error, function, args, count, names);
        if (!text.empty()) {
            PyErr_SetString(PyExc_TypeError, text.c_str());
            return;
        }
    } catch (nb::python_error&) {
        // While the package is being imported there is nobody to ask: nanobind's words are better than none.
    } catch (const std::exception&) {
    }
    error.restore();
}

template <size_t way>
PyObject* call_and_explain(PyObject* function, PyObject* const* args, size_t count, PyObject* names)
{
    PyObject* result = originals[way](function, args, count, names);
    if (result == nullptr) [[unlikely]]
        explain(function, args, static_cast<uint32_t>(count), names); // above: flags of CPython and nanobind
    return result;
}

template <size_t... ways>
void fill(std::index_sequence<ways...>)
{
    ((explained[ways] = call_and_explain<ways>), ...);
}

void wrap(PyObject* function)
{
    auto* call = reinterpret_cast<vectorcallfunc*>(reinterpret_cast<char*>(function) +
                                                   Py_TYPE(function)->tp_vectorcall_offset);
    size_t way = 0;
    while (way < way_count && originals[way] != *call && explained[way] != *call)
        ++way;
    if (way == MOST_WAYS)
        return;
    if (way == way_count)
        originals[way_count++] = *call;
    *call = explained[way];
}

void wrap_all(nb::handle owner, std::unordered_set<PyObject*>& seen)
{
    if (!seen.insert(owner.ptr()).second)
        return;
    bool is_class = PyType_Check(owner.ptr()) != 0;
    for (nb::handle item : nb::list(owner.attr("__dict__").attr("items")())) {
        nb::object value = item[1];
        if (is_bound(value.ptr())) {
            wrap(value.ptr());
        } else if (is_class && PyObject_TypeCheck(value.ptr(), &PyProperty_Type) != 0) {
            nb::object setter = value.attr("fset");
            if (!is_bound(setter.ptr()))
                continue;
            setter_names[setter.ptr()] = nb::cast<std::string>(owner.attr("__name__")) + "." +
                nb::cast<std::string>(nb::object(item[0]));
            wrap(setter.ptr());
        } else if (nb::type_check(value)) {
            wrap_all(value, seen);
        }
    }
}

} // namespace

void explain_wrong_arguments(nb::module_& m)
{
    fill(std::make_index_sequence<MOST_WAYS>());
    std::unordered_set<PyObject*> seen;
    wrap_all(m, seen);
}

} // namespace spy
