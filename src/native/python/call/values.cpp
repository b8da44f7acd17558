// Objects that stand for values: generators, references, pairs, packed arguments.
#include "python/call/bindings.h" // first

#include "python/call/collect.h"
#include "python/tensor/bindings.h"

namespace spy {

namespace {

void bind_generator(nb::module_& m)
{
    nb::enum_<GeneratorKind>(m, "GeneratorKind", "What a Generator makes.")
        .value("range", GeneratorKind::range)
        .value("grid", GeneratorKind::grid)
        .value("call_id", GeneratorKind::call_id)
        .value("thread_id", GeneratorKind::thread_id)
        .value("wang_hash", GeneratorKind::wang_hash)
        .value("rand_float", GeneratorKind::rand_float);
    nb::class_<Generator>(m, "Generator", "Values made inside the kernel, one per invocation.")
        .def(
            "__init__",
            [](Generator* self, GeneratorKind kind, int64_t dims, nb::tuple shape, nb::tuple offset, nb::tuple stride,
               uint32_t seed, uint32_t warmup, double min, double max) {
                Shape sizes = shape_from(shape), starts = shape_from(offset), steps = shape_from(stride);
                while (starts.size() < sizes.size())
                    starts.push_back(0);
                while (steps.size() < sizes.size())
                    steps.push_back(1);
                new (self) Generator{kind, dims, sizes, starts, steps, seed, warmup, min, max};
            },
            nb::arg("kind"), nb::arg("dims") = -1, nb::arg("shape") = nb::tuple(), nb::arg("offset") = nb::tuple(),
            nb::arg("stride") = nb::tuple(), nb::arg("seed") = 0, nb::arg("warmup") = 0, nb::arg("min") = 0.0,
            nb::arg("max") = 1.0)
        .def_ro("kind", &Generator::kind)
        .def_ro("seed", &Generator::seed)
        .def_ro("warmup", &Generator::warmup);
}

} // namespace

void bind_values(nb::module_& m)
{
    bind_generator(m);
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
