// Textures, views, samplers.
#include "d3d12/device.h"

#include "core/error.h"
#include "device/texture_shape.h"

#include <algorithm>

namespace spy {

namespace {

D3D12_RESOURCE_DIMENSION dimension_of(TextureType type)
{
    switch (type) {
    case TextureType::texture_1d:
    case TextureType::texture_1d_array: return D3D12_RESOURCE_DIMENSION_TEXTURE1D;
    case TextureType::texture_3d: return D3D12_RESOURCE_DIMENSION_TEXTURE3D;
    default: return D3D12_RESOURCE_DIMENSION_TEXTURE2D;
    }
}

/// The typeless format of a family: views of such a texture may have any format of it. Depth is always made so, because
/// kernels read it under another format.
DXGI_FORMAT family_of(DXGI_FORMAT format)
{
    struct Family {
        int first, last;
        DXGI_FORMAT typeless;
    };
    constexpr Family families[] = {
        {2, 4, DXGI_FORMAT_R32G32B32A32_TYPELESS},   {6, 8, DXGI_FORMAT_R32G32B32_TYPELESS},
        {10, 14, DXGI_FORMAT_R16G16B16A16_TYPELESS}, {16, 18, DXGI_FORMAT_R32G32_TYPELESS},
        {20, 20, DXGI_FORMAT_R32G8X24_TYPELESS},     {24, 25, DXGI_FORMAT_R10G10B10A2_TYPELESS},
        {28, 32, DXGI_FORMAT_R8G8B8A8_TYPELESS},     {34, 38, DXGI_FORMAT_R16G16_TYPELESS},
        {40, 43, DXGI_FORMAT_R32_TYPELESS},          {49, 52, DXGI_FORMAT_R8G8_TYPELESS},
        {54, 59, DXGI_FORMAT_R16_TYPELESS},          {61, 64, DXGI_FORMAT_R8_TYPELESS},
        {71, 72, DXGI_FORMAT_BC1_TYPELESS},          {74, 75, DXGI_FORMAT_BC2_TYPELESS},
        {77, 78, DXGI_FORMAT_BC3_TYPELESS},          {87, 87, DXGI_FORMAT_B8G8R8A8_TYPELESS},
        {91, 91, DXGI_FORMAT_B8G8R8A8_TYPELESS},     {88, 88, DXGI_FORMAT_B8G8R8X8_TYPELESS},
        {93, 93, DXGI_FORMAT_B8G8R8X8_TYPELESS},     {98, 99, DXGI_FORMAT_BC7_TYPELESS}};
    for (const Family& family : families)
        if (int(format) >= family.first && int(format) <= family.last)
            return family.typeless;
    return format;
}

/// What kernels read of a depth format.
DXGI_FORMAT readable_format(DXGI_FORMAT format)
{
    switch (format) {
    case DXGI_FORMAT_D32_FLOAT: return DXGI_FORMAT_R32_FLOAT;
    case DXGI_FORMAT_D16_UNORM: return DXGI_FORMAT_R16_UNORM;
    case DXGI_FORMAT_D32_FLOAT_S8X24_UINT: return DXGI_FORMAT_R32_FLOAT_X8X24_TYPELESS;
    default: return format;
    }
}

void check_format(const TextureDesc& desc, const D3D12_FEATURE_DATA_FORMAT_SUPPORT& support, const std::string& device)
{
    auto need = [&](TextureUsage flag, bool has, const char* name) {
        if (has_flag(desc.usage, flag) && !has)
            fail_value("format ", format_name(desc.format), " does not support TextureUsage.", name, " on ", device,
                       "; Device.get_format_support tells what a format supports");
    };
    if (!support.Support1)
        fail_value("format ", format_name(desc.format), " is not supported on ", device,
                   "; Device.get_format_support tells what a format supports");
    const bool depth = support.Support1 & D3D12_FORMAT_SUPPORT1_DEPTH_STENCIL;
    need(TextureUsage::shader_resource,
         depth || (support.Support1 & (D3D12_FORMAT_SUPPORT1_SHADER_LOAD | D3D12_FORMAT_SUPPORT1_SHADER_SAMPLE)),
         "shader_resource");
    need(TextureUsage::unordered_access, support.Support1 & D3D12_FORMAT_SUPPORT1_TYPED_UNORDERED_ACCESS_VIEW,
         "unordered_access");
    need(TextureUsage::render_target, support.Support1 & D3D12_FORMAT_SUPPORT1_RENDER_TARGET, "render_target");
    need(TextureUsage::depth_stencil, depth, "depth_stencil");
}

uint64_t texel_bytes(const TextureDesc& desc)
{
    uint64_t bytes = 0;
    for (uint32_t mip = 0; mip < desc.mip_count; ++mip)
        bytes += subresource_layout(desc, mip).size_in_bytes * desc.layer_count() * desc.sample_count;
    return bytes;
}

D3D12_TEXTURE_ADDRESS_MODE address_mode(TextureAddressingMode mode)
{
    return D3D12_TEXTURE_ADDRESS_MODE(
        mode == TextureAddressingMode::wrap                  ? D3D12_TEXTURE_ADDRESS_MODE_WRAP
            : mode == TextureAddressingMode::clamp_to_edge   ? D3D12_TEXTURE_ADDRESS_MODE_CLAMP
            : mode == TextureAddressingMode::clamp_to_border ? D3D12_TEXTURE_ADDRESS_MODE_BORDER
            : mode == TextureAddressingMode::mirror_repeat   ? D3D12_TEXTURE_ADDRESS_MODE_MIRROR
                                                             : D3D12_TEXTURE_ADDRESS_MODE_MIRROR_ONCE);
}

} // namespace

DXGI_FORMAT copy_format(Format format)
{
    const DXGI_FORMAT own = DXGI_FORMAT(format_info(format).dxgi_format);
    return format_info(format).is_depth() ? readable_format(own) : own;
}

// --- D3D12Texture

D3D12Texture::D3D12Texture(ref<Device> device, TextureDesc desc) : Texture(std::move(device), std::move(desc))
{
    D3D12Device& owner = device_of(*this);
    const FormatInfo& format = format_info(m_desc.format);
    const D3D12_FEATURE_DATA_FORMAT_SUPPORT support = owner.context().format_support(m_desc.format);
    check_format(m_desc, support, owner.info().adapter_name);
    if (!(owner.context().sample_counts(m_desc.format) & m_desc.sample_count))
        fail_value("sample_count ", m_desc.sample_count, " is not supported with format ", format.name, " on ",
                   owner.info().adapter_name);
    if (has_flag(m_desc.usage, TextureUsage::shared))
        fail(ErrorKind::not_implemented,
             "TextureUsage.shared: textures of the d3d12 device cannot be shared; devices that "
             "can: vulkan");
    const bool depth = has_flag(m_desc.usage, TextureUsage::depth_stencil);
    m_is_writable = !depth && !format.is_depth_stencil() && m_desc.sample_count == 1 &&
        (support.Support1 & D3D12_FORMAT_SUPPORT1_TYPED_UNORDERED_ACCESS_VIEW);
    D3D12_RESOURCE_DESC info{};
    info.Dimension = dimension_of(m_desc.type);
    info.Width = m_desc.width;
    info.Height = m_desc.height;
    info.DepthOrArraySize = UINT16(m_desc.type == TextureType::texture_3d ? m_desc.depth : m_desc.layer_count());
    info.MipLevels = UINT16(m_desc.mip_count);
    info.Format = DXGI_FORMAT(format.dxgi_format);
    if (takes_other_formats())
        info.Format = family_of(info.Format);
    info.SampleDesc = {m_desc.sample_count, 0};
    if (m_is_writable)
        info.Flags |= D3D12_RESOURCE_FLAG_ALLOW_UNORDERED_ACCESS;
    if (depth)
        info.Flags |= D3D12_RESOURCE_FLAG_ALLOW_DEPTH_STENCIL;
    if (has_flag(m_desc.usage, TextureUsage::render_target) || (m_desc.sample_count > 1 && !depth))
        info.Flags |= D3D12_RESOURCE_FLAG_ALLOW_RENDER_TARGET;
    m_memory_usage = texel_bytes(m_desc);
    D3D12_HEAP_PROPERTIES heap{};
    heap.Type = D3D12_HEAP_TYPE_DEFAULT;
    std::lock_guard lock(owner.queue().mutex());
    owner.queue().throttle_garbage();
    const HRESULT result = owner.context().device->CreateCommittedResource(
        &heap, D3D12_HEAP_FLAG_NONE, &info, D3D12_RESOURCE_STATE_COMMON, nullptr, iid_of<ID3D12Resource>(),
        m_resource.put_void());
    if (FAILED(result))
        d3d12_fail(result,
                   cat("creating a texture of ", m_desc.width, " x ", m_desc.height, " x ", m_desc.depth, " texels, ",
                       m_desc.layer_count(), " layers, ", m_desc.mip_count, " mips, ", m_desc.sample_count,
                       " samples, format ", format.name, " (", m_memory_usage, " bytes)"));
    owner.context().set_name(m_resource.get(), m_desc.label);
}

void D3D12Texture::release() noexcept
{
    D3D12Queue& queue = device_of(*this).queue();
    queue.forget(this);
    queue.discard(m_resource);
}

/// libvkd3d resolves typeless textures only where they have the format that it makes of these.
bool D3D12Texture::takes_other_formats() const
{
#ifdef _WIN32
    return true;
#else
    return format_info(m_desc.format).is_depth_stencil() ||
        (m_desc.sample_count == 1 && !has_flag(m_desc.usage, TextureUsage::resolve_destination));
#endif
}

TextureViewDesc D3D12Texture::whole() const
{
    TextureViewDesc view;
    view.range = {0, m_desc.layer_count(), 0, m_desc.mip_count};
    return view;
}

ResourceShape D3D12Texture::array_shape() const
{
    switch (dimension_of(m_desc.type)) {
    case D3D12_RESOURCE_DIMENSION_TEXTURE1D: return ResourceShape::texture_1d_array;
    case D3D12_RESOURCE_DIMENSION_TEXTURE3D: return ResourceShape::texture_3d;
    default: return ResourceShape::texture_2d_array;
    }
}

namespace {

/// The part of a texture that a view shows.
struct Part {
    UINT mip, mips, layer, layers;
};

void set_dimension(D3D12_SHADER_RESOURCE_VIEW_DESC& view, ResourceShape shape, const Part& part)
{
    switch (shape) {
    case ResourceShape::texture_1d:
        view.ViewDimension = D3D12_SRV_DIMENSION_TEXTURE1D;
        view.Texture1D = {part.mip, part.mips, 0.f};
        return;
    case ResourceShape::texture_1d_array:
        view.ViewDimension = D3D12_SRV_DIMENSION_TEXTURE1DARRAY;
        view.Texture1DArray = {part.mip, part.mips, part.layer, part.layers, 0.f};
        return;
    case ResourceShape::texture_3d:
        view.ViewDimension = D3D12_SRV_DIMENSION_TEXTURE3D;
        view.Texture3D = {part.mip, part.mips, 0.f};
        return;
    case ResourceShape::texture_cube:
    case ResourceShape::texture_cube_array:
        view.ViewDimension = D3D12_SRV_DIMENSION_TEXTURECUBEARRAY;
        view.TextureCubeArray = {part.mip, part.mips, part.layer, part.layers / 6, 0.f};
        if (shape == ResourceShape::texture_cube) {
            view.ViewDimension = D3D12_SRV_DIMENSION_TEXTURECUBE;
            view.TextureCube = {part.mip, part.mips, 0.f};
        }
        return;
    case ResourceShape::texture_2d_multisample: view.ViewDimension = D3D12_SRV_DIMENSION_TEXTURE2DMS; return;
    case ResourceShape::texture_2d_multisample_array:
        view.ViewDimension = D3D12_SRV_DIMENSION_TEXTURE2DMSARRAY;
        view.Texture2DMSArray = {part.layer, part.layers};
        return;
    default:
        view.ViewDimension = D3D12_SRV_DIMENSION_TEXTURE2DARRAY;
        view.Texture2DArray = {part.mip, part.mips, part.layer, part.layers, 0, 0.f};
        if (shape == ResourceShape::texture_2d) {
            view.ViewDimension = D3D12_SRV_DIMENSION_TEXTURE2D;
            view.Texture2D = {part.mip, part.mips, 0, 0.f};
        }
    }
}

void set_dimension(D3D12_UNORDERED_ACCESS_VIEW_DESC& view, ResourceShape shape, const Part& part)
{
    switch (shape) {
    case ResourceShape::texture_1d:
        view.ViewDimension = D3D12_UAV_DIMENSION_TEXTURE1D;
        view.Texture1D = {part.mip};
        return;
    case ResourceShape::texture_1d_array:
        view.ViewDimension = D3D12_UAV_DIMENSION_TEXTURE1DARRAY;
        view.Texture1DArray = {part.mip, part.layer, part.layers};
        return;
    case ResourceShape::texture_3d:
        view.ViewDimension = D3D12_UAV_DIMENSION_TEXTURE3D;
        view.Texture3D = {part.mip, 0, UINT(-1)};
        return;
    default:
        view.ViewDimension = D3D12_UAV_DIMENSION_TEXTURE2DARRAY;
        view.Texture2DArray = {part.mip, part.layer, part.layers, 0};
        if (shape == ResourceShape::texture_2d) {
            view.ViewDimension = D3D12_UAV_DIMENSION_TEXTURE2D;
            view.Texture2D = {part.mip, 0};
        }
    }
}

template <typename View>
View make_view(ResourceShape shape, DXGI_FORMAT format, const Part& part)
{
    View view{};
    view.Format = format;
    if constexpr (requires { view.Shader4ComponentMapping; })
        view.Shader4ComponentMapping = D3D12_DEFAULT_SHADER_4_COMPONENT_MAPPING;
    set_dimension(view, shape, part);
    return view;
}

} // namespace

void D3D12Texture::write_view(const TextureViewDesc& desc, ResourceShape shape, bool writable,
                              D3D12_CPU_DESCRIPTOR_HANDLE to) const
{
    D3D12Device& owner = device_of(*this);
    owner.require_open("texture view");
    if (shape == ResourceShape::none || shape == ResourceShape::unknown)
        shape = shape_of(m_desc.type);
    const bool is_3d = m_desc.type == TextureType::texture_3d;
    const bool is_1d = dimension_of(m_desc.type) == D3D12_RESOURCE_DIMENSION_TEXTURE1D;
    const bool wants_1d = shape == ResourceShape::texture_1d || shape == ResourceShape::texture_1d_array;
    const bool wants_cube = shape == ResourceShape::texture_cube || shape == ResourceShape::texture_cube_array;
    if (is_3d != (shape == ResourceShape::texture_3d) || is_1d != wants_1d || (wants_cube && !m_desc.is_cube()) ||
        (wants_cube && desc.range.layer_count % 6))
        fail_value("a texture of type ", type_name(m_desc.type), " cannot be bound to a ", slang_name(shape),
                   " parameter");
    const bool is_one = shape == ResourceShape::texture_1d || shape == ResourceShape::texture_2d ||
        shape == ResourceShape::texture_cube;
    if (is_one && desc.range.layer)
        fail(ErrorKind::not_implemented, "layer ", desc.range.layer, " of a texture cannot be bound to a ",
             slang_name(shape), " parameter: Direct3D 12 shows layer 0 there; declare a ", slang_name(shape),
             "Array, or use one of the devices that can: cpu, cuda, vulkan");
    Part part{desc.range.mip, desc.range.mip_count, desc.range.layer, desc.range.layer_count};
#ifndef _WIN32
    if (is_1d && (part.mip || part.layer))
        fail(ErrorKind::not_implemented, "a view of mip ", part.mip, " and layer ", part.layer,
             " of a texture of type ", type_name(m_desc.type),
             ": libvkd3d shows the first ones of 1D textures whatever a view says; use a 2D texture, or one of the "
             "devices that can: cpu, cuda, vulkan");
#endif
    if (shape == ResourceShape::texture_2d || shape == ResourceShape::texture_1d)
        part.layers = 1;
    if (shape == ResourceShape::texture_cube)
        part.layers = std::min(part.layers, 6u);
    const Format format = desc.format == Format::undefined ? m_desc.format : desc.format;
    const DXGI_FORMAT native = readable_format(DXGI_FORMAT(format_info(format).dxgi_format));
    ID3D12Device* native_device = owner.context().device.get();
    if (writable) {
        if (!m_is_writable)
            fail_value("a texture of format ", format_name(m_desc.format),
                       " cannot be bound to a parameter that kernels "
                       "write; create it with TextureUsage.unordered_access");
        const auto view = make_view<D3D12_UNORDERED_ACCESS_VIEW_DESC>(shape, native, part);
        native_device->CreateUnorderedAccessView(m_resource.get(), nullptr, &view, to);
    } else {
        const auto view = make_view<D3D12_SHADER_RESOURCE_VIEW_DESC>(shape, native, part);
        native_device->CreateShaderResourceView(m_resource.get(), &view, to);
    }
}

void write_null_view(ID3D12Device* device, const SlotLayout& slot, D3D12_CPU_DESCRIPTOR_HANDLE to)
{
    D3D12_UNORDERED_ACCESS_VIEW_DESC uav{};
    D3D12_SHADER_RESOURCE_VIEW_DESC srv{};
    if (slot.kind == SlotKind::texture) {
        const DXGI_FORMAT format = slot.scalar == ScalarType::int32 ? DXGI_FORMAT_R32_SINT
            : slot.scalar == ScalarType::uint32                     ? DXGI_FORMAT_R32_UINT
                                                                    : DXGI_FORMAT_R32_FLOAT;
        uav = make_view<D3D12_UNORDERED_ACCESS_VIEW_DESC>(slot.shape, format, {0, 1, 0, 1});
        srv = make_view<D3D12_SHADER_RESOURCE_VIEW_DESC>(slot.shape, format, {0, 1, 0, 6});
    } else {
        const bool structured = slot.kind == SlotKind::structured_buffer;
        const bool raw = slot.kind == SlotKind::byte_address_buffer;
        uav.Format = srv.Format = structured ? DXGI_FORMAT_UNKNOWN
            : raw                            ? DXGI_FORMAT_R32_TYPELESS
                                             : DXGI_FORMAT_R32_UINT;
        uav.ViewDimension = D3D12_UAV_DIMENSION_BUFFER;
        srv.ViewDimension = D3D12_SRV_DIMENSION_BUFFER;
        srv.Shader4ComponentMapping = D3D12_DEFAULT_SHADER_4_COMPONENT_MAPPING;
        uav.Buffer.NumElements = srv.Buffer.NumElements = 4;
        uav.Buffer.StructureByteStride = srv.Buffer.StructureByteStride = structured
            ? UINT(std::max<uint64_t>(slot.element_stride, 4))
            : 0;
        uav.Buffer.Flags = raw ? D3D12_BUFFER_UAV_FLAG_RAW : D3D12_BUFFER_UAV_FLAG_NONE;
        srv.Buffer.Flags = raw ? D3D12_BUFFER_SRV_FLAG_RAW : D3D12_BUFFER_SRV_FLAG_NONE;
    }
    if (slot.writable)
        device->CreateUnorderedAccessView(nullptr, nullptr, &uav, to);
    else
        device->CreateShaderResourceView(nullptr, &srv, to);
}

ref<Texture> D3D12Device::create_texture(const TextureDesc& desc)
{
    require_open("create_texture");
    if (desc.memory_type != MemoryType::device_local)
        fail_value("create_texture: memory_type must be MemoryType.device_local on Direct3D 12");
    return ref<Texture>(new D3D12Texture(ref<Device>(this), desc));
}

ref<TextureView> D3D12Device::create_texture_view(Texture* texture, const TextureViewDesc& desc)
{
    require_open("create_view");
    const FormatInfo& own = format_info(texture->desc().format);
    if (desc.format != Format::undefined && desc.format != own.format) {
        const FormatInfo& other = format_info(desc.format);
        const auto family = [](const FormatInfo& format) { return family_of(DXGI_FORMAT(format.dxgi_format)); };
        if (own.is_depth_stencil() || other.is_depth_stencil() || !other.dxgi_format || family(own) != family(other))
            fail_value("create_view: a texture of format ", own.name, " cannot be viewed as ", other.name,
                       " on Direct3D 12, which needs the same channels and bits");
        if (!static_cast<D3D12Texture*>(texture)->takes_other_formats())
            fail(ErrorKind::not_implemented,
                 "create_view: a texture with several samples, or with the usage flag "
                 "resolve_destination, cannot be viewed as ",
                 other.name, ": libvkd3d resolves no such texture; use ", own.name, " or a vulkan device");
    }
    return ref<TextureView>(new TextureView(ref<Device>(this), ref<Texture>(texture), desc));
}

// --- D3D12Sampler

D3D12Sampler::D3D12Sampler(ref<Device> device, SamplerDesc desc) : Sampler(std::move(device), std::move(desc))
{
    const auto filter = [](TextureFilteringMode mode) {
        return mode == TextureFilteringMode::point ? D3D12_FILTER_TYPE_POINT : D3D12_FILTER_TYPE_LINEAR;
    };
    constexpr D3D12_FILTER_REDUCTION_TYPE reductions[] = {
        D3D12_FILTER_REDUCTION_TYPE_STANDARD, D3D12_FILTER_REDUCTION_TYPE_COMPARISON,
        D3D12_FILTER_REDUCTION_TYPE_MINIMUM, D3D12_FILTER_REDUCTION_TYPE_MAXIMUM};
    const auto reduction = reductions[size_t(m_desc.reduction_op)];
    // As the macros of the API's own headers do, which not all headers have.
    const uint32_t filters = m_desc.max_anisotropy > 1 ? uint32_t(D3D12_FILTER_ANISOTROPIC)
                                                       : uint32_t(filter(m_desc.min_filter)) << 4 |
            uint32_t(filter(m_desc.mag_filter)) << 2 | uint32_t(filter(m_desc.mip_filter));
    m_native.Filter = D3D12_FILTER(filters | uint32_t(reduction) << 7);
    m_native.AddressU = address_mode(m_desc.address_u);
    m_native.AddressV = address_mode(m_desc.address_v);
    m_native.AddressW = address_mode(m_desc.address_w);
    m_native.MipLODBias = std::clamp(m_desc.mip_lod_bias, -16.f, 15.99f);
    m_native.MaxAnisotropy = std::clamp(m_desc.max_anisotropy, 1u, 16u);
    m_native.ComparisonFunc = D3D12_COMPARISON_FUNC(int(m_desc.comparison_func) + 1); // same order
    std::copy(m_desc.border_color.begin(), m_desc.border_color.end(), m_native.BorderColor);
    m_native.MinLOD = m_desc.min_lod;
    m_native.MaxLOD = std::max(m_desc.max_lod, m_desc.min_lod);
}

ref<Sampler> D3D12Device::create_sampler(const SamplerDesc& desc)
{
    require_open("create_sampler");
    return ref<Sampler>(new D3D12Sampler(ref<Device>(this), desc));
}

} // namespace spy
