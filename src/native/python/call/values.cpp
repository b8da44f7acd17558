// Objects that stand for values: references, pairs, packed arguments.
#include "python/call/bindings.h" // first

#include "python/call/collect.h"

namespace spy {

void bind_values(nb::module_& m)
{
    bind_generators(m);
    nb::class_<ValueRef>(m, "ValueRef", nb::dynamic_attr(), nb::type_slots(CollectedSlots<ValueRef>::slots),
                         "A host value that a call may write; `.value` is replaced after the call.")
        .def(
            "__init__", [](ValueRef* self, nb::object value) { new (self) ValueRef{std::move(value)}; },
            nb::arg("init") = nb::none())
        .def_rw("value", &ValueRef::value, nb::arg().none())
        .def("__repr__", [](const ValueRef& self) { return cat("ValueRef(", nb::repr(self.value).c_str(), ")"); });
    nb::class_<PackedArg>(m, "PackedArg", nb::dynamic_attr(), nb::type_slots(CollectedSlots<PackedArg>::slots),
                          "A value that calls share; see slangpy.pack.")
        .def(
            "__init__",
            [](PackedArg* self, nb::object value) {
                new (self) PackedArg();
                self->value = std::move(value);
            },
            nb::arg("value"))
        .def_prop_ro("_value", [](const PackedArg& self) { return self.value; })
        .def_prop_ro("_uploads", [](const PackedArg& self) { return self.uploads.size(); });
    nb::class_<DiffPair>(m, "DiffPair", nb::dynamic_attr(), nb::type_slots(CollectedSlots<DiffPair>::slots),
                         "A value with its gradient.")
        .def(
            "__init__",
            [](DiffPair* self, nb::object primal, nb::object grad, bool needs_grad) {
                new (self) DiffPair{std::move(primal), std::move(grad), needs_grad};
            },
            nb::arg("p").none(), nb::arg("d").none(), nb::arg("needs_grad") = true)
        .def_rw("primal", &DiffPair::primal, nb::arg().none())
        .def_rw("grad", &DiffPair::grad, nb::arg().none())
        .def_rw("needs_grad", &DiffPair::needs_grad)
        .def("__repr__", [](const DiffPair& self) {
            return cat("DiffPair(primal=", nb::repr(self.primal).c_str(), ", grad=", nb::repr(self.grad).c_str(), ")");
        });
}

} // namespace spy
