#pragma once
// What the C interfaces of torch's own library say of a tensor: nothing of it gives up the interpreter lock or makes a
// Python object. Each function is tried on tensors of each kind before it is trusted; torch before 2.1 has none of
// them.
#include "values/nb.h"

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
/// Sets `before` and `size`.
bool read_inner_storage(PyObject* tensor, TorchMemory& out);
/// Sets `address` and `size`.
bool read_inner_place(PyObject* tensor, TorchMemory& out);

} // namespace spy
