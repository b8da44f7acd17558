#include "python/call_saved.h"

#include "core/error.h"
#include "python/bindings.h"

#include <nanobind/stl/string.h>

namespace spy {

namespace {

std::string facts(const SavedTensor& tensor)
{
    std::string text = cat(scalar_info(tensor.scalar).slang_name, " ", tensor.shape.str(), " on ",
                           tensor.device_type == 1 ? "cpu" : "cuda");
    return tensor.device_type == 1 ? text : cat(text, ":", tensor.device_index);
}

} // namespace

SavedTensor saved_tensor(const TorchTensor& tensor)
{
    return {tensor.scalar, tensor.device_type, tensor.device_index, tensor.address, tensor.shape};
}

SavedTensor saved_tensor(const Leaf& leaf)
{
    return {leaf.scalar, leaf.device_type, leaf.device_index, leaf.address, leaf.shape};
}

nb::object check_saved(const std::string& label, const SavedTensor& saved, PyObject* object, TorchTensor& found,
                       const char* what)
{
    try {
        read_torch(object, found);
        if (saved.address && found.address != saved.address)
            check_torch_storage(object, found);
    } catch (const Error& error) {
        throw Error(error.kind(), cat(label, ": ", what, ": ", error.what()));
    }
    const SavedTensor now = saved_tensor(found);
    if (now.scalar != saved.scalar || !(now.shape == saved.shape) || now.device_type != saved.device_type ||
        now.device_index != saved.device_index)
        fail_runtime(label, ": ", what, " is ", facts(now), ", but the forward pass had ", facts(saved),
                     "; what a hook gives back must have the dtype, shape and device of what it was given");
    if (!torch_is_negated(object))
        return nb::borrow(object);
    nb::object resolved = nb::handle(object).attr("resolve_neg")();
    read_torch(resolved.ptr(), found);
    return resolved;
}

void bind_call_saved(nb::module_& m)
{
    nb::class_<SavedTensors>(m, "SavedTensors", "What the tensors were that torch keeps of a call; None where there is none.")
        .def("__init__",
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
        .def("check",
             [](const SavedTensors& self, nb::handle given, const char* what) {
                 nb::list checked;
                 TorchTensor found;
                 size_t index = 0;
                 for (nb::handle tensor : given) {
                     if (!tensor.is_none() && (index >= self.tensors.size() || self.tensors[index].scalar == ScalarType::none))
                         fail_runtime(self.label, ": ", what, " came back where the forward pass had none");
                     checked.append(tensor.is_none() ? nb::object(nb::none())
                                                     : check_saved(self.label, self.tensors[index], tensor.ptr(), found, what));
                     ++index;
                 }
                 return checked;
             },
             nb::arg("given"), nb::arg("what") = "a saved tensor", "The tensors as they are to be used. RuntimeError for others.");
}

} // namespace spy
