#pragma once
// Shared by the files that bind Shape and the native half of slangpy.Tensor.
#include "python/bindings.h"

#include "values/value.h"

namespace spy {

void bind_tensor(nb::module_& m);                    // tensor.cpp
void bind_tensor_index(nb::class_<TensorBase>& cls); // index.cpp
void bind_tensor_transfer(nb::module_& m);           // transfer.cpp
void bind_tensor_dlpack(nb::module_& m);             // dlpack.cpp

/// Throws unless every element lies in the storage.
void check_view(const TensorBase& tensor);

/// From a Shape, an int, a sequence of ints; None is the invalid shape.
Shape shape_from(nb::handle value);

} // namespace spy
