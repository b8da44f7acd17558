#pragma once
// torch tensors without linking torch: read and made through the DLPack C exchange table that torch exposes on its
// tensor type, else through the Python protocol. Both paths give the same results.
#include "values/value.h"

namespace spy {

struct TorchTensor {
    uint64_t address = 0;
    ScalarType scalar = ScalarType::none;
    Shape shape, strides;    ///< elements
    int32_t device_type = 1; ///< DLDeviceType: 1 CPU, 2 CUDA
    int32_t device_index = 0;
};

/// Thrown for a tensor that stands for another while torch.compile or torch.export traces: the call is to be recorded.
struct TracedTensor { };

/// Reads a tensor; throws TypeError naming a dtype or layout that cannot be read.
void read_torch(PyObject* tensor, TorchTensor& out);
/// Reads a tensor outside of calls, whose memory is then used: refused is what has none.
void read_torch_memory(PyObject* tensor, TorchTensor& out);
/// RuntimeError where the storage of a tensor does not hold its elements: it was freed or made smaller since.
void check_torch_storage(PyObject* tensor, const TorchTensor& description);
/// Makes a leaf that of a tensor.
void set_torch(Leaf& leaf, PyObject* object, const TorchTensor& tensor, uint8_t flags);
/// An uninitialised tensor on the device of `like`.
nb::object new_torch(const TorchTensor& like, PyObject* like_object, ScalarType scalar, const Shape& shape);
/// torch's current CUDA stream of a device; 0 elsewhere.
uint64_t torch_stream(PyObject* tensor, const TorchTensor& description);
/// Whether the memory holds the negated values (lazy negation).
bool torch_is_negated(PyObject* tensor);
bool torch_requires_grad(PyObject* tensor);
bool torch_grad_enabled();
/// Whether torch.use_deterministic_algorithms is on.
bool torch_is_deterministic();
/// Raises when a tensor carries a tangent of torch's forward mode, which calls would drop.
void refuse_tangent(PyObject* tensor);
/// Tells autograd that a tensor's content was changed in place.
void bump_torch_version(PyObject* tensor);
/// The same of a tuple of tensors for which it was done before.
void bump_torch_versions(PyObject* tensors);
/// Forces the Python protocol, for tests.
void set_torch_python_fallback(bool enabled);
bool torch_uses_python_fallback();

} // namespace spy
