// Textures, their views and samplers, and what CUDA has of texel formats.
#include "cuda/device.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace spy {

namespace {

CUarray_format array_format(FormatType type, uint32_t bits)
{
    bool is_signed = type == FormatType::sint || type == FormatType::snorm;
    if (type == FormatType::float_)
        return bits == 16 ? CU_AD_FORMAT_HALF : CU_AD_FORMAT_FLOAT;
    if (bits == 8)
        return is_signed ? CU_AD_FORMAT_SIGNED_INT8 : CU_AD_FORMAT_UNSIGNED_INT8;
    if (bits == 16)
        return is_signed ? CU_AD_FORMAT_SIGNED_INT16 : CU_AD_FORMAT_UNSIGNED_INT16;
    return is_signed ? CU_AD_FORMAT_SIGNED_INT32 : CU_AD_FORMAT_UNSIGNED_INT32;
}

/// Resource view formats come in groups of 1, 2 and 4 channels: uint8, sint8, uint16, sint16, uint32, sint32, half,
/// float.
CUresourceViewFormat view_format(const CudaTexel& texel)
{
    unsigned group = 0;
    switch (texel.format) {
    case CU_AD_FORMAT_UNSIGNED_INT8: group = 0; break;
    case CU_AD_FORMAT_SIGNED_INT8: group = 1; break;
    case CU_AD_FORMAT_UNSIGNED_INT16: group = 2; break;
    case CU_AD_FORMAT_SIGNED_INT16: group = 3; break;
    case CU_AD_FORMAT_UNSIGNED_INT32: group = 4; break;
    case CU_AD_FORMAT_SIGNED_INT32: group = 5; break;
    case CU_AD_FORMAT_HALF: group = 6; break;
    case CU_AD_FORMAT_FLOAT: group = 7; break;
    }
    return CUresourceViewFormat(CU_RES_VIEW_FORMAT_UINT_1X8 + group * 3 +
                                (texel.channels == 4 ? 2 : texel.channels - 1));
}

bool is_32_bit_integer(CUarray_format format)
{
    return format == CU_AD_FORMAT_UNSIGNED_INT32 || format == CU_AD_FORMAT_SIGNED_INT32;
}

bool same(const SubresourceRange& a, const SubresourceRange& b)
{
    return a.layer == b.layer && a.layer_count == b.layer_count && a.mip == b.mip && a.mip_count == b.mip_count;
}

} // namespace

CudaTexel cuda_texel(Format format)
{
    const FormatInfo& info = format_info(format);
    CudaTexel texel;
    bool bgr = info.name.starts_with("bgr") || info.name.starts_with("b5");
    uint32_t bits = info.channel_bit_count[0];
    bool channels = info.channel_count == 1 || info.channel_count == 2 || info.channel_count == 4;
    if (bgr || info.is_compressed() || info.is_stencil() || !channels || !info.has_equal_channel_bits() ||
        (bits != 8 && bits != 16 && bits != 32))
        return texel;
    texel.format = array_format(info.type, bits);
    texel.channels = info.channel_count;
    texel.normalized = info.is_normalized_format();
    texel.srgb = info.is_srgb_format();
    texel.integer = info.is_integer_format();
    return texel;
}

uint32_t cuda_format_support(Format format)
{
    if (!cuda_texel(format).channels)
        return 0;
    FormatSupport support = FormatSupport::texture | FormatSupport::shader_load | FormatSupport::shader_sample |
        FormatSupport::copy_source | FormatSupport::copy_destination;
    const FormatInfo& info = format_info(format);
    if (!info.is_depth())
        support = support | FormatSupport::buffer | FormatSupport::shader_uav_load | FormatSupport::shader_uav_store;
    return uint32_t(support);
}

// ---------------------------------------------------------------------------------------------------------- textures

CudaTexture::CudaTexture(ref<CudaDevice> device, const TextureDesc& desc)
    : Texture(device, desc),
      m_array(*device, desc)
{
}

CudaArray::CudaArray(CudaDevice& device, const TextureDesc& desc) : m_device(device), m_desc(desc)
{
    CudaTexel texel = cuda_texel(desc.format);
    if (!texel.channels)
        fail_value("create_texture: the cuda device has no textures of format ", format_name(desc.format),
                   "; get_format_support tells which it has");
    if (desc.sample_count > 1 || desc.type == TextureType::texture_2d_ms ||
        desc.type == TextureType::texture_2d_ms_array)
        fail(ErrorKind::not_implemented,
             "create_texture: CUDA has no multisampled textures; use sample_count=1 or the vulkan device");
    bool array = desc.type == TextureType::texture_1d_array || desc.type == TextureType::texture_2d_array ||
        desc.type == TextureType::texture_cube_array;
    bool one_dimensional = desc.type == TextureType::texture_1d || desc.type == TextureType::texture_1d_array;
    CUDA_ARRAY3D_DESCRIPTOR layout{};
    layout.Width = desc.width;
    layout.Height = one_dimensional ? 0 : desc.height;
    layout.Depth = desc.type == TextureType::texture_3d ? desc.depth
        : (array || desc.is_cube())                     ? desc.layer_count()
                                                        : 0;
    layout.Format = texel.format;
    layout.NumChannels = texel.channels;
    layout.Flags = (array ? CUDA_ARRAY3D_LAYERED : 0u) | (desc.is_cube() ? CUDA_ARRAY3D_CUBEMAP : 0u) |
        (has_flag(desc.usage, TextureUsage::unordered_access) ? CUDA_ARRAY3D_SURFACE_LDST : 0u);
    for (uint32_t mip = 0; mip < desc.mip_count; ++mip)
        m_bytes += subresource_layout(desc, mip).size_in_bytes * desc.layer_count();

    CudaContext::Lock lock(device.context());
    device.context().ensure_usable();
    CudaContext::Relaxed relaxed(device.context().api());
    CUresult result = CUDA_ERROR_INVALID_VALUE;
    if (desc.type == TextureType::texture_2d) { // Gather() needs a flag that not every size and format may have
        layout.Flags |= CUDA_ARRAY3D_TEXTURE_GATHER;
        result = device.context().api().cuMipmappedArrayCreate(&m_array, &layout, desc.mip_count);
        layout.Flags &= ~unsigned(CUDA_ARRAY3D_TEXTURE_GATHER);
    }
    if (result != CUDA_SUCCESS)
        result = device.context().api().cuMipmappedArrayCreate(&m_array, &layout, desc.mip_count);
    device.context().check(result, "create a ", desc.width, " x ", desc.height, " x ", desc.depth, " texture of ",
                           desc.layer_count(), " layers and ", desc.mip_count, " mips in ", format_name(desc.format),
                           " (", m_bytes, " bytes)");
    m_surface_objects.resize(desc.mip_count);
    device.memory().usage().textures.add(m_bytes);
}

void CudaArray::release() noexcept
{
    CudaDevice& device = m_device;
    if (!m_array || !device.context().alive())
        return;
    CudaContext::Lock lock(device.context());
    CudaContext::Relaxed relaxed(device.context().api());
    const CudaApi* api = &device.context().api();
    for (TextureObject& object : m_texture_objects)
        device.queue().defer([api, handle = object.object] { api->cuTexObjectDestroy(handle); });
    for (CUsurfObject object : m_surface_objects)
        if (object)
            device.queue().defer([api, object] { api->cuSurfObjectDestroy(object); });
    m_texture_objects.clear();
    m_surface_objects.clear();
    device.memory().usage().textures.take(m_bytes);
    device.queue().defer([api, array = std::exchange(m_array, nullptr)] { api->cuMipmappedArrayDestroy(array); });
}

NativeHandle CudaTexture::shared_handle()
{
    fail(ErrorKind::not_implemented,
         "shared_handle: CUDA does not export textures; copy the texture into a shared buffer of a vulkan device");
}

CUarray CudaArray::level(uint32_t mip) const
{
    CUarray array = nullptr;
    m_device.context().check(m_device.context().api().cuMipmappedArrayGetLevel(&array, m_array, mip), "get mip ", mip,
                             " of a texture");
    return array;
}

CUtexObject CudaArray::texture_object(const SubresourceRange& range, Format format, CUDA_TEXTURE_DESC sampling)
{
    CudaTexel texel = cuda_texel(format);
    sampling.flags |= (texel.integer ? CU_TRSF_READ_AS_INTEGER : 0u) | (texel.srgb ? CU_TRSF_SRGB : 0u) |
        (m_desc.is_cube() ? CU_TRSF_SEAMLESS_CUBEMAP : 0u);
    if (texel.integer || is_32_bit_integer(texel.format)) // integers cannot be filtered
        sampling.filterMode = sampling.mipmapFilterMode = CU_TR_FILTER_MODE_POINT;
    for (const TextureObject& object : m_texture_objects)
        if (same(object.range, range) && object.format == format &&
            !std::memcmp(&object.sampling, &sampling, sizeof(sampling)))
            return object.object;

    bool all_layers = range.layer == 0 && range.layer_count == m_desc.layer_count();
    // A level alone, so that sizes and mip 0 are those of the level. CUDA mixes up the layers of such a level, though.
    bool one_mip = range.mip_count == 1 && m_desc.mip_count > 1 && m_desc.layer_count() == 1;
    CUDA_RESOURCE_DESC resource{};
    CUDA_RESOURCE_VIEW_DESC view{};
    bool use_view = !all_layers || format != m_desc.format || (range.mip_count != m_desc.mip_count && !one_mip);
    if (one_mip) {
        resource.resType = CU_RESOURCE_TYPE_ARRAY;
        resource.res.array.hArray = level(range.mip);
    } else {
        resource.resType = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY;
        resource.res.mipmap.hMipmappedArray = m_array;
        view.firstMipmapLevel = range.mip;
        view.lastMipmapLevel = range.mip + range.mip_count - 1;
    }
    uint32_t shift = one_mip ? range.mip : 0;
    bool flat = m_desc.type == TextureType::texture_1d || m_desc.type == TextureType::texture_1d_array;
    bool layered = m_desc.type != TextureType::texture_1d && m_desc.type != TextureType::texture_2d &&
        m_desc.type != TextureType::texture_3d;
    view.format = view_format(texel);
    view.width = std::max(1u, m_desc.width >> shift);
    view.height = flat ? 0 : std::max(1u, m_desc.height >> shift);
    view.depth = m_desc.type == TextureType::texture_3d ? std::max(1u, m_desc.depth >> shift)
        : layered                                       ? m_desc.layer_count()
                                                        : 0; // CUDA wants the whole depth
    if (layered) {
        view.firstLayer = range.layer;
        view.lastLayer = range.layer + range.layer_count - 1;
    }
    CUtexObject object = 0;
    m_device.context().check(
        m_device.context().api().cuTexObjectCreate(&object, &resource, &sampling, use_view ? &view : nullptr),
        "make a texture object for a ", format_name(m_desc.format), " texture (layers ", range.layer, "+",
        range.layer_count, ", mips ", range.mip, "+", range.mip_count, ")");
    m_texture_objects.push_back({range, format, sampling, object});
    return object;
}

CUsurfObject CudaArray::surface_object(uint32_t mip)
{
    CUsurfObject& object = m_surface_objects[mip];
    if (!object) {
        CUDA_RESOURCE_DESC resource{};
        resource.resType = CU_RESOURCE_TYPE_ARRAY;
        resource.res.array.hArray = level(mip);
        m_device.context().check(m_device.context().api().cuSurfObjectCreate(&object, &resource),
                                 "make a surface object for mip ", mip, " of a ", format_name(m_desc.format),
                                 " texture (was it created with TextureUsage.unordered_access?)");
    }
    return object;
}

NativeHandle CudaTextureView::native_handle() const { return m_texture->native_handle(); }

// ---------------------------------------------------------------------------------------------------------- samplers

CudaSampler::CudaSampler(ref<CudaDevice> device, const SamplerDesc& desc)
    : Sampler(device, desc),
      m_texture_desc(convert(desc))
{
}

CUDA_TEXTURE_DESC CudaSampler::convert(const SamplerDesc& desc)
{
    auto address = [](TextureAddressingMode mode) {
        switch (mode) {
        case TextureAddressingMode::wrap: return CU_TR_ADDRESS_MODE_WRAP;
        case TextureAddressingMode::clamp_to_edge: return CU_TR_ADDRESS_MODE_CLAMP;
        case TextureAddressingMode::clamp_to_border: return CU_TR_ADDRESS_MODE_BORDER;
        case TextureAddressingMode::mirror_repeat: return CU_TR_ADDRESS_MODE_MIRROR;
        default: break;
        }
        fail(ErrorKind::not_implemented,
             "create_sampler: CUDA has no TextureAddressingMode.mirror_once; use mirror_repeat or clamp_to_edge");
    };
    if (desc.reduction_op != TextureReductionOp::average)
        fail(ErrorKind::not_implemented,
             "create_sampler: CUDA samplers only average; compare or reduce in the shader, or use the vulkan device");
    auto filter = [](TextureFilteringMode mode) {
        return mode == TextureFilteringMode::linear ? CU_TR_FILTER_MODE_LINEAR : CU_TR_FILTER_MODE_POINT;
    };
    CUDA_TEXTURE_DESC out{};
    out.addressMode[0] = address(desc.address_u);
    out.addressMode[1] = address(desc.address_v);
    out.addressMode[2] = address(desc.address_w);
    out.filterMode = filter(desc.mag_filter); // CUDA has one filter for both directions
    out.mipmapFilterMode = filter(desc.mip_filter);
    out.flags = CU_TRSF_NORMALIZED_COORDINATES;
    out.maxAnisotropy = desc.max_anisotropy <= 1 ? 0 : std::min(desc.max_anisotropy, 16u);
    out.mipmapLevelBias = desc.mip_lod_bias;
    out.minMipmapLevelClamp = std::max(0.f, desc.min_lod);
    out.maxMipmapLevelClamp = std::max(0.f, desc.max_lod);
    std::copy(desc.border_color.begin(), desc.border_color.end(), out.borderColor);
    return out;
}

} // namespace spy
