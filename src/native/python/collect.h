#pragma once
// Python's garbage collector cannot see the Python objects that native members hold; a class whose members may lead
// back to it shows them with these slots, or such cycles live forever.
#include <nanobind/nanobind.h>

namespace spy {

/// Slots for a class T with `template <typename Visit> int visit_objects(T&, const Visit&)`, which gives each
/// nb::object that the instance owns to `visit` once and returns the first answer that is not 0, and `void
/// clear_objects(T&)`, which drops those that may be part of a cycle.
template <typename T>
struct CollectedSlots {
    static int traverse(PyObject* self, visitproc visit, void* arg)
    {
        Py_VISIT(Py_TYPE(self));
        if (PyObject** dict = instance_dict(self))
            Py_VISIT(*dict);
        if (!nanobind::inst_ready(self))
            return 0;
        return visit_objects(*nanobind::inst_ptr<T>(self), [&](nanobind::handle object) {
            Py_VISIT(object.ptr());
            return 0;
        });
    }

    static int clear(PyObject* self)
    {
        if (PyObject** dict = instance_dict(self))
            Py_CLEAR(*dict);
        if (nanobind::inst_ready(self))
            clear_objects(*nanobind::inst_ptr<T>(self));
        return 0;
    }

    /// Where nanobind's dynamic_attr keeps the dict.
    static PyObject** instance_dict(PyObject* self)
    {
        const Py_ssize_t offset = Py_TYPE(self)->tp_dictoffset;
        return offset > 0 ? reinterpret_cast<PyObject**>(reinterpret_cast<char*>(self) + offset) : nullptr;
    }

    static inline PyType_Slot slots[] = {{Py_tp_traverse, reinterpret_cast<void*>(&traverse)},
                                         {Py_tp_clear, reinterpret_cast<void*>(&clear)},
                                         {0, nullptr}};
};

} // namespace spy
