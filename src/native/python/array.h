#pragma once
// Shared by the files that bind Shape and the native half of slangpy.Tensor.
#include "python/bindings.h"

#include "call/value.h"

namespace spy {

void bind_tensor(nb::module_& m);          // array_tensor.cpp
void bind_tensor_transfer(nb::module_& m); // array_transfer.cpp
void bind_tensor_dlpack(nb::module_& m);   // array_dlpack.cpp

/// From a Shape, an int, a sequence of ints; None is the invalid shape.
Shape shape_from(nb::handle value);

/// True when the device's memory is the host's and its work is done when a call returns.
bool is_host_device(const Device& device);

} // namespace spy
