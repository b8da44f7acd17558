// Showing what devices without windows compute.
#include "device/surface.h"

#include "core/error.h"
#include "device/resource.h"
#include "device/texture_shape.h"

#include <algorithm>

namespace spy {

namespace {

class UploadSurface final : public Surface {
public:
    UploadSurface(ref<Device> device, ref<Surface> shown) : Surface(std::move(device)), m_shown(std::move(shown))
    {
        m_desc.format = Format::undefined;
        for (Format format : m_shown->info().formats)
            if (m_device->format_support(format) & uint32_t(FormatSupport::shader_load))
                m_info.formats.push_back(format);
        if (m_info.formats.empty())
            fail_runtime("create_surface: none of the window's formats is one of this device's; use a vulkan device");
        m_info.preferred_format = m_info.formats.front();
        m_info.supported_usage = TextureUsage::shader_resource | TextureUsage::render_target | TextureUsage::present |
            TextureUsage::copy_source | TextureUsage::copy_destination;
    }
    ~UploadSurface() override { retire(); }

protected:
    SurfaceConfig create_images(const SurfaceConfig& config) override
    {
        const uint32_t support = m_device->format_support(config.format);
        if (has_flag(config.usage, TextureUsage::unordered_access) &&
            !(support & uint32_t(FormatSupport::shader_uav_store)))
            fail_value("Surface.configure 'usage': format ", format_name(config.format),
                       " does not support unordered_access on this device; render into a texture and blit it");
        SurfaceConfig shown = config;
        shown.usage = TextureUsage::none;
        m_shown->configure(shown);
        SurfaceConfig made = *m_shown->config(); // the window says how large its images are
        made.usage = config.usage;
        TextureDesc desc;
        desc.type = TextureType::texture_2d;
        desc.format = made.format;
        desc.width = made.width;
        desc.height = made.height;
        desc.usage = TextureUsage(uint32_t(made.usage) & ~uint32_t(TextureUsage::present));
        desc.label = "image of a surface";
        m_desc = resolve_texture_desc(desc);
        return made;
    }

    void destroy_images() override { m_shown->unconfigure(); }

    ref<Texture> acquire() override
    {
        m_target = m_shown->acquire_next_image();
        if (!m_target)
            return nullptr;
        return m_device->create_texture(m_desc);
    }

    void present_image(Texture* image) override
    {
        m_pixels.resize(subresource_layout(m_desc, 0).size_in_bytes);
        m_device->read_texture(image, 0, 0, m_pixels.data());
        Device* shows = m_shown->frontend();
        shows->write_texture(m_target.get(), 0, 0, m_pixels.data());
        m_target = nullptr;
        m_shown->present();
    }

private:
    ref<Surface> m_shown;
    ref<Texture> m_target;
    TextureDesc m_desc;
    std::vector<uint8_t> m_pixels;
};

} // namespace

ref<Surface> create_upload_surface(ref<Device> device, ref<Surface> shown)
{
    const Device::Use use(*device);
    ref<Device> inner = device->backend();
    ref<Surface> surface = new UploadSurface(std::move(inner), std::move(shown));
    surface->set_frontend(device.get());
    return surface;
}

} // namespace spy
