#pragma once
// NumPy arrays without linking NumPy.
#include "core/format.h"
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

} // namespace spy
