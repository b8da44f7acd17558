// FunctionNode's native half.
#include "python/call/bindings.h" // first

#include "call/run.h"
#include "python/call/collect.h"
#include "values/classes.h"

#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/vector.h>

namespace spy {

namespace {

/// The call slot of FunctionNode: what its Python method `__call__` says is for torch.compile, which reads it.
PyObject* call_slot(PyObject* self, PyObject* args, PyObject* kwargs)
{
    try {
        nb::kwargs keywords = kwargs ? nb::borrow<nb::kwargs>(kwargs) : nb::steal<nb::kwargs>(PyDict_New());
        return call_function(self, nb::borrow<nb::args>(args), std::move(keywords)).release().ptr();
    } catch (...) {
        set_error_in_flight();
        return nullptr;
    }
}

void take_call_slot(nb::handle type)
{
    if (!PyType_Check(type.ptr()) ||
        !PyType_IsSubtype((PyTypeObject*)type.ptr(), (PyTypeObject*)nb::type<CallSite>().ptr()))
        fail(ErrorKind::type, "_take_call_slot: expected a class derived from CallSite");
    ((PyTypeObject*)type.ptr())->tp_call = call_slot;
}

/// A call that is recorded; a class derived from FunctionNode may call in its own way.
void append_call(nb::handle self, nb::handle encoder, nb::tuple args, nb::dict kwargs)
{
    site_of(self);
    if (Py_TYPE(self.ptr())->tp_call != call_slot) {
        self(*args, nb::arg("_append_to") = encoder, **kwargs);
        return;
    }
    append_function(self, encoder, nb::borrow<nb::args>(args), nb::borrow<nb::kwargs>(kwargs));
}

/// A call whose TorchSlots stand for `values`, in walk order.
nb::object call_with_values(nb::handle self, nb::tuple args, nb::dict kwargs, nb::list values)
{
    site_of(self);
    std::vector<PyObject*> slots;
    for (size_t i = 0; i < values.size(); ++i)
        slots.push_back(PyList_GET_ITEM(values.ptr(), Py_ssize_t(i)));
    return call_function(self, nb::borrow<nb::args>(args), nb::borrow<nb::kwargs>(kwargs), slots);
}

void bind_plans(nb::module_& m)
{
    nb::class_<FileWatcher, Object>(m, "FileWatcher", "Tells whether watched files have changed.")
        .def(nb::init<>())
        .def("watch", &FileWatcher::watch, nb::arg("path"), "Adds a file by its path.")
        .def("changed", &FileWatcher::changed, "True once after a change; never waits.");
    nb::class_<PlanTable>(m, "PlanTable", "Plans by key.", nb::type_slots(CollectedSlots<PlanTable>::slots))
        .def(nb::init<>())
        .def("__len__", [](const PlanTable& self) { return self.plans.size(); })
        .def("clear", [](PlanTable& self) { clear_objects(self); }, "Forgets all plans.");
    nb::class_<PlanLink>(m, "PlanLink", "How the arguments of one kind of call are written and launched.")
        .def_prop_ro("last_call_shape",
                     [](const PlanLink& self) { return to_tuple(self.get()->state.last_call_shape); })
        .def(
            "add_variant",
            [](PlanLink& self, uint64_t key, Kernel* kernel, uint32_t items_per_group, uint32_t max_groups,
               bool needs_globals) {
                self.get()->state.variants[key] = {ref<Kernel>(kernel), items_per_group, max_groups, needs_globals};
            },
            nb::arg("key"), nb::arg("kernel"), nb::arg("items_per_group"), nb::arg("max_groups") = 0,
            nb::arg("needs_globals") = false, "The kernel for calls whose values need the variant `key`.");
}

void bind_site(nb::module_& m)
{
    nb::class_<CallSite>(m, "CallSite", nb::dynamic_attr(), nb::type_slots(CollectedSlots<CallSite>::slots),
                         "Native half of FunctionNode.")
        .def(
            "__init__",
            [](CallSite* self, nb::object table, nb::object planner, nb::object bound, nb::object uniforms,
               uint64_t cuda_stream, bool is_bwds, FileWatcher* watcher, Device* device) {
                new (self) CallSite{std::move(table),
                                    std::move(planner),
                                    std::move(bound),
                                    {std::move(uniforms), {}},
                                    is_bwds,
                                    watcher,
                                    device ? device->deterministic : nullptr};
                if (cuda_stream)
                    self->run.stream = {NativeHandleType::CUstream, cuda_stream};
            },
            nb::arg("table"), nb::arg("planner"), nb::arg("bound").none(), nb::arg("uniforms").none(),
            nb::arg("cuda_stream"), nb::arg("is_bwds") = false, nb::arg("watcher").none() = nb::none(),
            nb::arg("device").none() = nb::none())
        .def("__call__",
             [](nb::handle self, nb::args args, nb::kwargs kwargs) {
                 site_of(self);
                 return call_function(self, args, kwargs);
             })
        .def("_append", &append_call)
        .def("_plan_of", &plan_of)
        .def("_build", &build_call)
        .def("_describe", &describe_call);
}

} // namespace

void bind_backends(nb::module_& m); // device/backends.cpp

void bind_call(nb::module_& m)
{
    bind_backends(m);
    bind_values(m);
    bind_graph(m);
    bind_torch(m);
    bind_raw(m);
    bind_prepared(m);
    bind_plans(m);
    bind_site(m);
    m.def("_set_check_bounds", &set_check_bounds, nb::arg("enabled"),
          "Plans calls from now on with checks of the indices into tensors.");
    m.def("_take_call_slot", &take_call_slot, nb::arg("type"),
          "Calls instances natively, whatever __call__ the class has.");
    m.def("_call_with", &call_with_values, nb::arg("node"), nb::arg("args"), nb::arg("kwargs"), nb::arg("values"),
          "A call in which each TorchSlot among the arguments stands for the next of `values`.");
    m.def("_set_custom_types", &set_custom_types, nb::arg("registry"), nb::arg("signatures"));
    m.def("_clear_type_cache", &clear_type_cache);
}

} // namespace spy
