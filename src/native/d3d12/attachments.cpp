// Views of textures that are drawn into.
#include "d3d12/device.h"

namespace spy {

void D3D12Texture::write_target_view(const TextureViewDesc& desc, D3D12_CPU_DESCRIPTOR_HANDLE to) const
{
    D3D12Device& owner = device_of(*this);
    owner.require_open("texture view");
    const SubresourceRange& range = desc.range;
    D3D12_RENDER_TARGET_VIEW_DESC view{};
    view.Format = DXGI_FORMAT(format_info(desc.format == Format::undefined ? m_desc.format : desc.format).dxgi_format);
    if (m_desc.sample_count > 1) {
        view.ViewDimension = D3D12_RTV_DIMENSION_TEXTURE2DMSARRAY;
        view.Texture2DMSArray = {range.layer, range.layer_count};
    } else {
        view.ViewDimension = D3D12_RTV_DIMENSION_TEXTURE2DARRAY;
        view.Texture2DArray = {range.mip, range.layer, range.layer_count, 0};
    }
    owner.context().device->CreateRenderTargetView(m_resource.get(), &view, to);
}

void D3D12Texture::write_depth_view(const TextureViewDesc& desc, D3D12_DSV_FLAGS flags,
                                    D3D12_CPU_DESCRIPTOR_HANDLE to) const
{
    D3D12Device& owner = device_of(*this);
    owner.require_open("texture view");
    const SubresourceRange& range = desc.range;
    D3D12_DEPTH_STENCIL_VIEW_DESC view{};
    view.Format = DXGI_FORMAT(format_info(m_desc.format).dxgi_format);
    view.Flags = flags;
    if (m_desc.sample_count > 1) {
        view.ViewDimension = D3D12_DSV_DIMENSION_TEXTURE2DMSARRAY;
        view.Texture2DMSArray = {range.layer, range.layer_count};
    } else {
        view.ViewDimension = D3D12_DSV_DIMENSION_TEXTURE2DARRAY;
        view.Texture2DArray = {range.mip, range.layer, range.layer_count};
    }
    owner.context().device->CreateDepthStencilView(m_resource.get(), &view, to);
}

} // namespace spy
