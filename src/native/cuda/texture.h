#pragma once
// Textures, their views and samplers.
#include "cuda/context.h"
#include "device/texel_format.h"

namespace spy {

class CudaDevice;

/// How a texel format is stored in a CUDA array. `channels` is 0 where CUDA has no such format.
struct CudaTexel {
    CUarray_format format = CU_AD_FORMAT_FLOAT;
    uint32_t channels = 0;
    bool normalized = false, srgb = false, integer = false;
};
CudaTexel cuda_texel(Format format);
/// FormatSupport bits.
uint32_t cuda_format_support(Format format);

class CudaSampler final : public Sampler {
public:
    CudaSampler(ref<CudaDevice> device, const SamplerDesc& desc);
    ~CudaSampler() override { retire(); }
    const CUDA_TEXTURE_DESC& texture_desc() const { return m_texture_desc; }
    static CUDA_TEXTURE_DESC convert(const SamplerDesc& desc);

private:
    CUDA_TEXTURE_DESC m_texture_desc;
};

/// The memory of a texture with the handles made for it. Not a DeviceObject: the copies made for views during a launch
/// come and go under the device's lock, where no Python reference count may be touched.
class CudaArray {
public:
    CudaArray(CudaDevice& device, const TextureDesc& desc);
    ~CudaArray() { release(); }
    CudaArray(const CudaArray&) = delete;
    void release() noexcept;

    const TextureDesc& desc() const { return m_desc; }
    CUmipmappedArray handle() const { return m_array; }
    uint64_t bytes() const { return m_bytes; }
    uint32_t texel_bytes() const { return format_info(m_desc.format).bytes_per_block; }
    SubresourceRange full_range() const { return {0, m_desc.layer_count(), 0, m_desc.mip_count}; }
    CUarray level(uint32_t mip) const;
    CUtexObject texture_object(const SubresourceRange& range, Format format, CUDA_TEXTURE_DESC sampling);
    CUsurfObject surface_object(uint32_t mip);

private:
    struct TextureObject {
        SubresourceRange range;
        Format format;
        CUDA_TEXTURE_DESC sampling;
        CUtexObject object;
    };
    CudaDevice& m_device;
    TextureDesc m_desc;
    CUmipmappedArray m_array = nullptr;
    uint64_t m_bytes = 0;
    std::vector<TextureObject> m_texture_objects;
    std::vector<CUsurfObject> m_surface_objects; ///< by mip
};

class CudaTexture final : public Texture {
public:
    CudaTexture(ref<CudaDevice> device, const TextureDesc& desc);
    ~CudaTexture() override { retire(); }
    NativeHandle native_handle() const override
    {
        return {NativeHandleType::CUmipmappedArray, uint64_t(m_array.handle())};
    }
    NativeHandle shared_handle() override;
    uint64_t memory_usage() const override { return m_array.bytes(); }
    void release() noexcept override { m_array.release(); }
    CudaArray& array() { return m_array; }

private:
    CudaArray m_array;
};

class CudaTextureView final : public TextureView {
public:
    using TextureView::TextureView;
    ~CudaTextureView() override { retire(); }
    void release() noexcept override { shadow = nullptr; }
    NativeHandle native_handle() const override;
    std::shared_ptr<CudaArray> shadow; ///< copy bound in place of a part that CUDA cannot address
};

} // namespace spy
