#include "python/device/tensor_places.h"

#include "core/error.h"
#include "device/resource.h"
#include "device/texel_format.h"
#include "python/fields.h"

namespace spy {

namespace {

std::string text_of(const TensorBase& t)
{
    return cat("a Tensor of ", t.layout->full_name, ", shape ", t.shape.str(), ", strides ", t.strides.str());
}

uint64_t first_byte(const TensorBase& t) { return uint64_t(t.offset) * t.layout->stride; }

/// Whether the dimensions from `from` on are row-major without gaps.
bool is_dense(const TensorBase& t, size_t from)
{
    int64_t step = 1;
    for (size_t i = t.shape.size(); i-- > from; step *= t.shape[i])
        if (t.shape[i] != 1 && t.strides[i] != step)
            return false;
    return true;
}

/// Bytes of what the dimensions from `from` on hold, without gaps.
uint64_t dense_bytes(const TensorBase& t, size_t from)
{
    uint64_t bytes = t.layout->stride;
    for (size_t i = from; i < t.shape.size(); ++i)
        bytes *= uint64_t(t.shape[i]);
    return bytes;
}

void check_storage(const TensorBase& t, const char* what)
{
    if (!t.storage)
        fail(ErrorKind::type, what, ": ", text_of(t), " is memory of another package; copy it into a Tensor first");
    if (t.shape.element_count() == 0)
        fail_value(what, ": ", text_of(t), " has no elements");
}

ScalarType scalar_of(const TypeLayout& layout)
{
    const bool plain = layout.kind == TypeKind::scalar ||
        (layout.kind == TypeKind::vector && layout.element_stride == scalar_info(layout.scalar).size);
    return plain ? layout.scalar : ScalarType::none;
}

} // namespace

const TensorBase& tensor_from(nb::handle value, const char* what)
{
    if (!nb::isinstance<TensorBase>(value))
        fail_field(what, value, "a Tensor (Tensor.from_torch and Tensor.from_numpy make one)");
    return nb::cast<const TensorBase&>(value);
}

BufferOffset vertex_buffer_from(const TensorBase& t, const char* what)
{
    check_storage(t, what);
    if (t.shape.size() == 0)
        fail_value(what, ": ", text_of(t), " has no first dimension, which counts the vertices");
    if (!is_dense(t, 1))
        fail_value(what, ": ", text_of(t), ": a vertex is what one index of the first dimension leaves, and its ",
                   "elements must be adjacent in memory; use contiguous()");
    const uint64_t record = dense_bytes(t, 1);
    const int64_t step = t.shape[0] > 1 ? t.strides[0] * int64_t(t.layout->stride) : int64_t(record);
    if (step <= 0)
        fail_value(what, ": ", text_of(t), ": vertices must be adjacent in memory; use contiguous()");
    return {t.storage, first_byte(t), uint64_t(t.shape[0] - 1) * uint64_t(step) + record,
            t.shape[0] > 1 ? uint64_t(step) : 0};
}

BufferOffset index_buffer_from(const TensorBase& t, IndexFormat format, const char* what)
{
    check_storage(t, what);
    const ScalarType scalar = scalar_of(*t.layout);
    const ScalarInfo& info = scalar_info(scalar);
    if (!info.is_integer || (info.size != 2 && info.size != 4))
        fail_value(what, ": ", text_of(t), "; indices are integers of 16 or 32 bits");
    const IndexFormat wanted = info.size == 2 ? IndexFormat::uint16 : IndexFormat::uint32;
    if (format != wanted)
        fail_value(what, ": ", text_of(t), " has indices of ", info.size * 8, " bits, but index_format is ",
                   format == IndexFormat::uint16 ? "uint16" : "uint32", "; set it to IndexFormat.",
                   wanted == IndexFormat::uint16 ? "uint16" : "uint32");
    if (!is_dense(t, 0))
        fail_value(what, ": ", text_of(t), ": indices must be adjacent in memory; use contiguous()");
    return {t.storage, first_byte(t), dense_bytes(t, 0)};
}

TensorRows tensor_rows(const TensorBase& t, const Texture& texture, uint32_t mip, const char* call)
{
    check_storage(t, call);
    const TextureDesc& desc = texture.desc();
    if (mip >= desc.mip_count)
        fail(ErrorKind::index, call, ": 'mip' must be less than ", desc.mip_count, ", got ", mip);
    const SubresourceLayout level = subresource_layout(desc, mip);
    const bool is_plane = desc.type == TextureType::texture_2d || desc.type == TextureType::texture_2d_array ||
        desc.type == TextureType::texture_cube || desc.type == TextureType::texture_cube_array;
    if (!is_plane)
        fail(ErrorKind::not_implemented, call, ": ", summary(&texture),
             " is no plane of one sample; use copy_buffer_to_texture or copy_texture_to_buffer with tensor.storage");
    const FormatInfo& format = format_info(desc.format);
    const ScalarType scalar = host_scalar(desc.format);
    const uint32_t channels = format.channel_count;
    if (scalar == ScalarType::none || format.is_compressed() || format.is_depth_stencil())
        fail_value(call, ": texels of format ", format.name,
                   " are no elements of a tensor; use blit into a texture of ", "another format");
    const bool in_elements = t.shape.size() == 2 && t.layout->cols == channels && t.layout->rows == 1;
    const bool in_dimension = t.shape.size() == 3 && t.layout->kind == TypeKind::scalar && t.shape[2] == channels;
    if (scalar_of(*t.layout) != scalar || !(in_elements || in_dimension) || t.shape[0] != level.height ||
        t.shape[1] != level.width)
        fail_value(call, ": mip ", mip, " of ", summary(&texture), " takes shape [", level.height, ", ", level.width,
                   "] of ", scalar_info(scalar).slang_name, channels > 1 ? cat(channels) : std::string(), ", or [",
                   level.height, ", ", level.width, ", ", channels, "] of ", scalar_info(scalar).slang_name, "; got ",
                   text_of(t));
    const int64_t texel = format.bytes_per_block, step = int64_t(t.layout->stride);
    const int64_t row = t.shape[0] > 1 ? t.strides[0] * step : texel * level.width;
    if ((in_dimension && channels > 1 && t.strides[2] != 1) || (level.width > 1 && t.strides[1] * step != texel) ||
        row < texel * level.width || row % texel)
        fail_value(call, ": ", text_of(t), ": the texels of a row must be adjacent in memory, and rows a whole number ",
                   "of texels (", texel, " bytes) apart; use contiguous()");
    const uint64_t size = uint64_t(row) * (level.height - 1) + uint64_t(texel) * level.width;
    return {t.storage, first_byte(t), size, uint64_t(row)};
}

} // namespace spy
