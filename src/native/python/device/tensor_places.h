#pragma once
// Tensors where commands take buffers: their storage with the view's place in it.
#include "device/command.h"
#include "values/value.h"

namespace spy {

/// TypeError naming `what` for anything else.
const TensorBase& tensor_from(nb::handle value, const char* what);
/// Where a tensor lies as a vertex buffer: the first dimension counts the records, the others are one record.
BufferOffset vertex_buffer_from(const TensorBase& tensor, const char* what);
/// Where a tensor of 16 or 32 bit integers lies as an index buffer.
BufferOffset index_buffer_from(const TensorBase& tensor, IndexFormat format, const char* what);

/// The rows of a picture in a buffer.
struct TensorRows {
    ref<Buffer> buffer;
    uint64_t offset = 0, size = 0, row_pitch = 0; ///< bytes
};
/// Where the texels of one mip of a texture lie in a tensor of shape (height, width) or (height, width, channels).
/// ValueError where shape, strides or elements are not those of the texels.
TensorRows tensor_rows(const TensorBase& tensor, const Texture& texture, uint32_t mip, const char* call);

} // namespace spy
