// What all surfaces have in common.
#include "device/surface.h"

#include "core/error.h"
#include "device/resource.h"
#include "device/texel_format.h"

#include <algorithm>

namespace spy {

namespace {

void check_format(const SurfaceInfo& info, Format format)
{
    if (std::find(info.formats.begin(), info.formats.end(), format) != info.formats.end())
        return;
    std::string known;
    for (Format one : info.formats)
        known += cat(known.empty() ? "" : ", ", format_name(one));
    fail_value("Surface.configure 'format': this surface does not take ", format_name(format), "; it takes ", known);
}

} // namespace

std::optional<SurfaceConfig> Surface::config() const
{
    std::lock_guard lock(m_mutex);
    return m_config;
}

void Surface::configure(SurfaceConfig config)
{
    const Device::Use use(*frontend());
    std::lock_guard lock(m_mutex);
    if (!config.width || !config.height)
        fail_value("Surface.configure: the size is ", config.width, " x ", config.height,
                   "; both must be at least 1 (while a window is minimised, call unconfigure() and skip frames)");
    if (!config.desired_image_count)
        fail_value("Surface.configure: 'desired_image_count' must be at least 1");
    if (config.format == Format::undefined)
        config.format = m_info.preferred_format;
    check_format(m_info, config.format);
    if (config.usage == TextureUsage::none)
        config.usage = m_info.supported_usage;
    drop_image();
    m_config.reset();
    m_config = create_images(config);
}

void Surface::unconfigure()
{
    const Device::Use use(*frontend());
    std::lock_guard lock(m_mutex);
    drop_image();
    m_config.reset();
    destroy_images();
}

ref<Texture> Surface::acquire_next_image()
{
    const Device::Use use(*frontend());
    std::lock_guard lock(m_mutex);
    if (!m_config)
        fail_runtime("Surface is not configured. Call configure(width, height) first, and again after each resize.");
    if (m_image)
        fail_runtime("Image already acquired. Image needs to be presented before acquiring a new one.");
    m_image = acquire();
    if (m_image)
        m_image->set_frontend(frontend());
    return m_image;
}

void Surface::present()
{
    const Device::Use use(*frontend());
    std::lock_guard lock(m_mutex);
    if (!m_config)
        fail_runtime("Surface is not configured. Call configure(width, height) first, and again after each resize.");
    if (!m_image)
        fail_runtime("No image was acquired. Call acquire_next_image() before present().");
    const ref<Texture> image = m_image;
    present_image(image.get());
    drop_image();
}

void Surface::drop_image()
{
    if (m_image)
        m_image->expire();
    m_image = nullptr;
}

} // namespace spy
