// torch tensors with gradients as values, and what Python may ask of a tensor.
#include "python/call/bindings.h" // first

#include "values/torch.h"

namespace spy {

void bind_torch(nb::module_& m)
{
    nb::class_<TorchPair>(m, "TorchPair", nb::dynamic_attr(), "A torch tensor with its gradient, for bwds.")
        .def(
            "__init__",
            [](TorchPair* self, nb::object primal, nb::object grad, nb::object seed, bool fresh) {
                new (self) TorchPair{std::move(primal), std::move(grad), std::move(seed), fresh};
            },
            nb::arg("primal").none(), nb::arg("grad").none(), nb::arg("seed").none() = nb::none(),
            nb::arg("fresh") = false)
        .def_rw("primal", &TorchPair::primal, nb::arg().none())
        .def_rw("grad", &TorchPair::grad, nb::arg().none())
        .def_ro("seed", &TorchPair::seed);
    nb::class_<TorchSlot>(m, "TorchSlot", "Stands for a torch tensor in stored arguments.").def(nb::init<>());
    m.def(
        "_read_torch",
        [](nb::handle tensor) {
            TorchTensor found;
            read_torch(tensor.ptr(), found);
            return nb::make_tuple(found.address, std::string(scalar_info(found.scalar).slang_name),
                                  to_tuple(found.shape), to_tuple(found.strides), found.device_type,
                                  found.device_index);
        },
        nb::arg("tensor"), "(address, Slang scalar, sizes, strides in elements, DLPack device type, device index).");
    m.def("_check_torch_storage", &check_torch_storage, nb::arg("tensor"), nb::arg("what"),
          "RuntimeError that begins with `what` where the storage of a torch tensor does not hold its elements.");
    m.def(
        "_torch_stream",
        [](nb::handle tensor) {
            TorchTensor found;
            read_torch(tensor.ptr(), found);
            return torch_stream(tensor.ptr(), found);
        },
        nb::arg("tensor"), "torch's current CUDA stream for the device of a tensor; 0 for CPU tensors.");
    m.def("set_torch_bridge_python_fallback", &set_torch_python_fallback, nb::arg("enabled"),
          "Reads torch tensors through Python attributes even where torch has a C interface.");
    m.def("is_torch_bridge_using_fallback", &torch_uses_python_fallback,
          "Whether torch tensors are read through Python, as torch has no DLPack C exchange API.");
}

} // namespace spy
