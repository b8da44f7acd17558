#pragma once
// What the C interfaces of torch's own library say of a tensor: nothing of it gives up the interpreter lock or makes a
// Python object. Each function is tried on tensors of each kind before it is trusted; torch before 2.1 has none of
// them.
#include "values/nb.h"
#include "values/torch.h"

#include <optional>

namespace spy {

/// Where the memory of a tensor is, and how much of it there is.
struct TorchMemory {
    uint64_t address = 0; ///< of the first element
    uint64_t before = 0;  ///< elements of the storage in front of it
    uint64_t size = 0;    ///< bytes of the whole storage
};

/// Nothing, or false, where this torch has no such functions or the object is no tensor.
std::optional<bool> inner_is_negated(PyObject* tensor);
std::optional<bool> inner_requires_grad(PyObject* tensor);
/// What torch.is_grad_enabled() says.
std::optional<bool> inner_grad_enabled();
/// Whether a transform of torch.func (vmap, grad, jvp) is running.
std::optional<bool> inner_has_transforms();
/// Reads a tensor that lies on a CPU or a CUDA device with sizes and strides, and sets `before` and `size` of its
/// storage. False for all others, subclasses among them: whoever reads those says what is wrong with them.
bool read_inner(PyObject* tensor, TorchTensor& out, TorchMemory& memory);
/// Counts a change in place. False also for what has no version that may be counted, as inference tensors have none.
bool bump_inner_version(PyObject* tensor);
/// An uninitialised tensor where `like` is; invalid where torch gave none.
nb::object new_inner(const TorchTensor& like, ScalarType scalar, const Shape& shape);
/// Sets `before` and `size`.
bool read_inner_storage(PyObject* tensor, TorchMemory& out);
/// Sets `address` and `size`.
bool read_inner_place(PyObject* tensor, TorchMemory& out);

} // namespace spy
