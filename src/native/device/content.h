#pragma once
// What the host filled a buffer with. Buffers are untyped, so float64 numbers in one that a kernel reads as float would
// be wrong without a word: the size of the numbers is kept with the buffer and compared where it gets a type.
#include "core/format.h"
#include "core/layout.h"
#include "device/texel_format.h"

#include <string>

namespace spy {

/// What is kept of an array's scalar type: that of floats, signed integers and bool. Unsigned integers stand for bytes,
/// which may be anything: `none`.
ScalarType content_of(ScalarType scalar);

/// Why elements of a type cannot be what a buffer was filled with: none of their scalars has its size. Empty if they
/// can.
std::string content_misfit(ScalarType content, const TypeLayout& element);
/// The same for texels or vertices of a format, and for numbers of `bytes` that are named `wanted`.
std::string content_misfit(ScalarType content, Format format);
std::string content_misfit(ScalarType content, uint32_t bytes, std::string_view wanted);

} // namespace spy
