#pragma once
// Descriptions of copies between arrays and linear memory.
#include "cuda/texture.h"
#include "device/command.h"

namespace spy {

inline CUDA_MEMCPY3D copy_extent(uint64_t row_bytes, uint32_t rows, uint32_t slices)
{
    CUDA_MEMCPY3D copy{};
    copy.WidthInBytes = row_bytes;
    copy.Height = rows;
    copy.Depth = slices;
    return copy;
}

inline void set_source(CUDA_MEMCPY3D& copy, const CudaArray& texture, uint32_t layer, uint32_t mip, Offset3 offset)
{
    copy.srcMemoryType = CU_MEMORYTYPE_ARRAY;
    copy.srcArray = texture.level(mip);
    copy.srcXInBytes = uint64_t(offset.x) * texture.texel_bytes();
    copy.srcY = offset.y;
    copy.srcZ = offset.z + layer; // layers are slices; only 3-D textures have a z, and they have one layer
}

inline void set_destination(CUDA_MEMCPY3D& copy, const CudaArray& texture, uint32_t layer, uint32_t mip, Offset3 offset)
{
    copy.dstMemoryType = CU_MEMORYTYPE_ARRAY;
    copy.dstArray = texture.level(mip);
    copy.dstXInBytes = uint64_t(offset.x) * texture.texel_bytes();
    copy.dstY = offset.y;
    copy.dstZ = offset.z + layer;
}

inline void set_source(CUDA_MEMCPY3D& copy, CUmemorytype type, const void* host, CUdeviceptr device, uint64_t pitch)
{
    copy.srcMemoryType = type;
    copy.srcHost = host;
    copy.srcDevice = device;
    copy.srcPitch = pitch;
    copy.srcHeight = copy.Height;
}

inline void set_destination(CUDA_MEMCPY3D& copy, CUmemorytype type, void* host, CUdeviceptr device, uint64_t pitch)
{
    copy.dstMemoryType = type;
    copy.dstHost = host;
    copy.dstDevice = device;
    copy.dstPitch = pitch;
    copy.dstHeight = copy.Height;
}

/// Puts a copy on a stream; `what` names it in messages.
inline void copy_part(CudaContext& context, const CUDA_MEMCPY3D& copy, const char* what, CUstream stream)
{
    context.check(context.api().cuMemcpy3DAsync(&copy, stream), what, " (", copy.WidthInBytes, " bytes x ", copy.Height,
                  " x ", copy.Depth, ")");
}

inline CudaArray& cuda(Texture* texture) { return static_cast<CudaTexture*>(texture)->array(); }

} // namespace spy
