// Prepared calls.
#include "python/call/bindings.h" // first

#include "call/prepared/prepared.h"
#include "call/run.h"
#include "python/collect.h"
#include "values/torch.h"

#include <nanobind/stl/vector.h>

namespace spy {

template <typename Visit>
int visit_objects(PreparedCall& call, const Visit& visit)
{
    return call.visit_objects(visit);
}
static void clear_objects(PreparedCall& call) { call.clear(); }

namespace {

/// The error in flight, with the function's name.
[[noreturn]] void fail_named(const nb::object& node)
{
    try {
        throw;
    } catch (const TracedTensor&) {
        fail(ErrorKind::not_implemented, nb::str(node.attr("label")).c_str(),
             ": prepare: torch.compile cannot trace a prepared call; call the function itself there");
    } catch (const Error& error) {
        if (!node.is_valid() || !nb::isinstance<CallSite>(node)) // of a call that was never prepared
            throw;
        fail_labelled(node, error);
    }
}

template <typename Body>
auto named(const nb::object& node, Body&& body)
{
    try {
        return body();
    } catch (...) {
        fail_named(node);
    }
}

nb::object call_prepared(PreparedCall& call, nb::handle args, nb::handle kwargs)
{
    return named(call.node(), [&] {
        if (PyTuple_GET_SIZE(args.ptr()))
            fail(ErrorKind::type, "a prepared call takes its arguments by name, got ", PyTuple_GET_SIZE(args.ptr()),
                 " by position");
        if (kwargs.is_valid() && PyDict_GET_SIZE(kwargs.ptr()))
            call.set(kwargs);
        return call.launch();
    });
}

PyObject* prepared_slot(PyObject* self, PyObject* args, PyObject* kwargs)
{
    try {
        return call_prepared(*nb::inst_ptr<PreparedCall>(self), args, kwargs).release().ptr();
    } catch (...) {
        set_error_in_flight();
        return nullptr;
    }
}

struct PreparedSlots : CollectedSlots<PreparedCall> {
    static inline PyType_Slot slots[] = {{Py_tp_traverse, reinterpret_cast<void*>(&traverse)},
                                         {Py_tp_clear, reinterpret_cast<void*>(&CollectedSlots::clear)},
                                         {Py_tp_call, reinterpret_cast<void*>(&prepared_slot)},
                                         {0, nullptr}};
};

} // namespace

void bind_prepared(nb::module_& m)
{
    nb::class_<PreparedCall>(m, "PreparedLaunch", nb::dynamic_attr(), nb::type_slots(PreparedSlots::slots),
                             "Native half of PreparedCall.")
        .def(
            "__init__",
            [](PreparedCall* self, nb::handle node, nb::tuple args, nb::dict kwargs) {
                named(nb::borrow(node), [&] {
                    return new (self) PreparedCall(node, nb::borrow<nb::args>(args), nb::borrow<nb::kwargs>(kwargs));
                });
            },
            nb::arg("node"), nb::arg("args"), nb::arg("kwargs"))
        .def(
            "set", [](PreparedCall& self, nb::kwargs values) { named(self.node(), [&] { self.set(values); }); },
            nb::arg("values"), "Replaces arguments by name. Types, ranks and dtypes stay those of prepare().")
        .def_prop_ro("_node", [](const PreparedCall& self) { return self.node(); })
        .def_prop_ro("_shape", [](const PreparedCall& self) { return to_tuple(self.shape()); })
        .def_prop_ro("names", &PreparedCall::names);
}

} // namespace spy
