#pragma once
// NumPy arrays without linking NumPy.
#include "core/format.h"
#include "device/guard.h"
#include "values/nb.h"

namespace spy {

/// Read-only access to numpy.ndarray without going through Python (the C layout is part of NumPy's stable ABI).
struct NumpyArray {
    void* data;
    int ndim;
    const ssize_t* sizes;
    const ssize_t* strides; ///< bytes
    ScalarType scalar;      ///< none when the dtype is not one of ours
    char kind;              ///< NumPy's kind letter
    bool writable, swapped;
};
/// False when the object is no numpy.ndarray.
bool read_numpy(PyObject* object, NumpyArray& out);
bool is_numpy_array(PyObject* object);
/// Of a numpy.ma.MaskedArray: raises where elements of it are masked, for what lies below is not what it stands for.
void refuse_masked(PyObject* array);

/// An array whose memory is used later: its resize() may take that away.
class ArrayGuard final : public Object, public MemoryGuard {
public:
    /// `what` names the array in messages.
    ArrayGuard(PyObject* array, std::string what);
    ~ArrayGuard() override;
    void check() const override;

private:
    PyObject* m_owner; ///< the array that the memory is of; `array` may be a view of it
    const void* m_data;
    ssize_t m_count;
    std::string m_what;
};

} // namespace spy
