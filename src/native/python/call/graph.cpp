// Calls as nodes of torch's graph.
#include "python/call/bindings.h" // first

#include "call/torch/graph.h"

namespace spy {

namespace {

void bind_saved(nb::module_& m)
{
    nb::class_<SavedTensors>(m, "SavedTensors",
                             "What the tensors were that torch keeps of a call; None where there is none.")
        .def(
            "__init__",
            [](SavedTensors* self, std::string label, nb::handle tensors) {
                new (self) SavedTensors{std::move(label), {}};
                TorchTensor found;
                for (nb::handle tensor : tensors) {
                    self->tensors.emplace_back();
                    if (tensor.is_none())
                        continue;
                    read_torch(tensor.ptr(), found);
                    self->tensors.back() = saved_tensor(found);
                }
            },
            nb::arg("label"), nb::arg("tensors"))
        .def(
            "check",
            [](const SavedTensors& self, nb::handle given, const char* what) {
                nb::list checked;
                TorchTensor found;
                size_t index = 0;
                for (nb::handle tensor : given) {
                    if (!tensor.is_none() &&
                        (index >= self.tensors.size() || self.tensors[index].scalar == ScalarType::none))
                        fail_runtime(self.label, ": ", what, " came back where the forward pass had none");
                    checked.append(tensor.is_none()
                                       ? nb::object(nb::none())
                                       : check_saved(self.label, self.tensors[index], tensor.ptr(), found, what));
                    ++index;
                }
                return checked;
            },
            nb::arg("given"), nb::arg("what") = "a saved tensor",
            "The tensors as they are to be used. RuntimeError for others.");
}

} // namespace

void bind_graph(nb::module_& m)
{
    bind_saved(m);
    nb::class_<SavedCall>(m, "SavedCall", "A call of numbers and tensors as a node of torch's graph keeps it.")
        .def_prop_ro("node", [](const SavedCall& c) { return c.node; })
        .def_prop_ro("view", [](const SavedCall& c) { return c.plan->view; })
        .def_prop_ro("args", [](const SavedCall& c) { return c.args; })
        .def_prop_ro("kwargs", [](const SavedCall& c) { return c.kwargs; })
        .def_prop_ro("pairs", [](const SavedCall&) { return nb::tuple(); })
        .def("checked", &checked_tensors, nb::arg("saved").none(),
             "The saved tensors. RuntimeError where other ones came back.")
        .def("checked_seed", &checked_seed, nb::arg("seed"),
             "An incoming gradient as the backward call takes it. ValueError if its shape is not the result's.")
        .def_prop_ro("places", [](const SavedCall& c) {
            nb::list places;
            for (uint8_t place : c.places)
                places.append(int(place));
            return places;
        });
    m.def("_graph_forward", &graph_forward);
    m.def("_graph_backward", &graph_backward, nb::arg("ctx"), nb::arg("seed").none());
}

} // namespace spy
