#pragma once
// What torch keeps of a call for its backward pass, told again when it comes back: hooks on saved tensors
// (torch.autograd.graph.saved_tensors_hooks) and `.data` may put anything in its place.
#include "values/torch.h"
#include "values/value.h"

#include <string>
#include <vector>

namespace spy {

struct SavedTensor {
    ScalarType scalar = ScalarType::none; ///< none: nothing was saved
    int32_t device_type = 0, device_index = 0;
    Shape shape;
};

SavedTensor saved_tensor(const TorchTensor& tensor);
SavedTensor saved_tensor(const Leaf& leaf);

/// Reads what came back for `saved`. Gives the tensor to use: the same one, or a copy of a lazily negated one.
/// RuntimeError when dtype, shape or device differ, or when its storage has become too small for it.
/// what: "a saved tensor", or what else it is.
nb::object check_saved(const std::string& label, const SavedTensor& saved, PyObject* object, TorchTensor& found,
                       const char* what);

/// The tensors of one call, for calls whose node is made in Python.
struct SavedTensors {
    std::string label;
    std::vector<SavedTensor> tensors;
};

} // namespace spy
