#pragma once
// torch tensors without linking torch: read and made through the DLPack C exchange table that torch exposes on its
// tensor type, else through the Python protocol. Both paths give the same results.
#include "device/guard.h"
#include "values/value.h"

namespace spy {

struct TorchTensor {
    uint64_t address = 0;
    ScalarType scalar = ScalarType::none;
    Shape shape, strides;    ///< elements
    int32_t device_type = 1; ///< DLDeviceType: 1 CPU, 2 CUDA
    int32_t device_index = 0;
    uint64_t needed = 0; ///< bytes of its storage that it reaches into; 0 without elements
};

/// Thrown for a tensor that stands for another while torch.compile or torch.export traces: the call is to be recorded.
struct TracedTensor { };

/// Reads a tensor. TypeError for a dtype or layout that cannot be read, RuntimeError where its storage does not hold
/// its elements (any more).
void read_torch(PyObject* tensor, TorchTensor& out);
/// Reads a tensor outside of calls, whose memory is then used: refused is what has none.
void read_torch_memory(PyObject* tensor, TorchTensor& out);
/// What a tensor was found to need of its storage.
struct TorchPlace {
    uint64_t address = 0; ///< of the first element
    uint64_t needed = 0;  ///< bytes from the storage's start to the end of the last element; 0 without elements
};
/// Of a tensor that was read, for what uses its address later.
TorchPlace torch_place(PyObject* tensor, ScalarType scalar, const Shape& shape, const Shape& strides);
/// Whether a tensor is still where it was, and its storage still reaches as far.
bool is_torch_place(PyObject* tensor, const TorchPlace& place);
/// RuntimeError that says why it is not; `what` names the tensor.
[[noreturn]] void fail_torch_place(PyObject* tensor, const TorchPlace& place, const std::string& what);
/// RuntimeError where the storage of a tensor of any dtype does not hold its elements: for code that leaves the reading
/// to torch, which does not look.
void check_torch_storage(nb::handle tensor, const std::string& what);

/// Holds a tensor whose address went into something that runs later.
class TorchGuard final : public Object, public MemoryGuard {
public:
    /// `what` names the tensor in messages.
    TorchGuard(PyObject* tensor, const TorchPlace& place, std::string what);
    ~TorchGuard() override;
    void check() const override
    {
        if (!is_torch_place(m_tensor, m_place))
            fail_torch_place(m_tensor, m_place, m_what);
    }

private:
    PyObject* m_tensor;
    TorchPlace m_place;
    std::string m_what;
};

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
/// Whether tensors may carry tangents of torch's forward mode: inside of a dual_level().
bool torch_has_tangents();
/// Raises when a tensor carries a tangent, which calls would drop.
void refuse_tangent(PyObject* tensor);
/// Tells autograd that a tensor's content was changed in place.
void bump_torch_version(PyObject* tensor);
/// The same of a tuple of tensors for which it was done before.
void bump_torch_versions(PyObject* tensors);
/// Forces the Python protocol, for tests.
void set_torch_python_fallback(bool enabled);
bool torch_uses_python_fallback();

} // namespace spy
