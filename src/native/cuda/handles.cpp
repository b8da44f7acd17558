// Descriptor handles: what kernels take for the resources themselves.
#include "cuda/device.h"
#include "device/resource.h"

namespace spy {

namespace {

/// A surface covers one mip with all its layers, and faces of a cube cannot be chosen.
void check_view(const CudaArray& array, const SubresourceRange& range, bool writes)
{
    const TextureDesc& desc = array.desc();
    const bool all_layers = range.layer == 0 && range.layer_count == desc.layer_count();
    if (!all_layers && (writes || desc.is_cube()))
        fail(ErrorKind::not_implemented, "a cuda device has no descriptor handle for layers ", range.layer, " + ",
             range.layer_count, " of ", desc.layer_count(), " of ", desc.is_cube() ? "a cube" : "a writable texture",
             ": use a view of all layers, or bind the view as a parameter");
}

} // namespace

DescriptorHandle CudaDevice::make_handle(DeviceObject* object, DescriptorHandleType type)
{
    if (auto* buffer = dynamic_cast<Buffer*>(object))
        return {type, buffer->device_address(), buffer->desc().size};
    if (type == DescriptorHandleType::sampler) // any number: textures have theirs inside
        return {type, uint64_t(object)};
    CudaContext::Lock lock(m_context);
    m_context.ensure_usable();
    auto* view = dynamic_cast<CudaTextureView*>(object);
    CudaArray& array = static_cast<CudaTexture*>(view ? view->texture() : object)->array();
    const SubresourceRange range = view ? view->desc().range : array.full_range();
    const bool writes = type == DescriptorHandleType::rw_texture;
    check_view(array, range, writes);
    if (writes)
        return {type, array.surface_object(range.mip)};
    const Format format = view && view->desc().format != Format::undefined ? view->desc().format : array.desc().format;
    const auto* sampler = static_cast<CudaSampler*>(sampler_of(object));
    return {
        type,
        array.texture_object(range, format, sampler ? sampler->texture_desc() : CudaSampler::convert(SamplerDesc{}))};
}

} // namespace spy
