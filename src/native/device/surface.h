#pragma once
// Surfaces: what a window shows. The rules of configuring, acquiring and presenting stand here, once for all backends.
#include "core/interrupt.h"
#include "device/device.h"

#include <optional>

namespace spy {

struct SurfaceInfo {
    Format preferred_format = Format(0);
    TextureUsage supported_usage = TextureUsage::none; ///< what images have where no usage is asked for
    std::vector<Format> formats;
};

struct SurfaceConfig {
    Format format = Format(0);               ///< undefined: the preferred one
    TextureUsage usage = TextureUsage::none; ///< none: what is supported
    uint32_t width = 0, height = 0;          ///< pixels
    uint32_t desired_image_count = 3;
    bool vsync = true;
};

/// A window of the system, or a surface that somebody made of one.
struct SurfaceDesc {
    enum class Kind { vulkan, xlib, win32 } kind = Kind::vulkan;
    uint64_t display = 0; ///< xlib: Display*
    uint64_t handle = 0;  ///< VkSurfaceKHR (the surface takes it over), Window, HWND
};

/// Made by Device::create_surface.
class Surface : public DeviceObject {
public:
    using DeviceObject::DeviceObject;
    const SurfaceInfo& info() const { return m_info; }
    /// None before configure() and after unconfigure(). Sizes are those of the images.
    std::optional<SurfaceConfig> config() const;
    void configure(SurfaceConfig config);
    void unconfigure();
    /// Null: out of date (configure again) or without area; skip this frame.
    ref<Texture> acquire_next_image();
    /// Shows the acquired image; it may not be used afterwards.
    void present();

protected:
    /// Makes the images anew; returns what they are.
    virtual SurfaceConfig create_images(const SurfaceConfig& config) = 0;
    virtual void destroy_images() = 0;
    virtual ref<Texture> acquire() = 0;
    virtual void present_image(Texture* image) = 0;

    SurfaceInfo m_info;

private:
    void drop_image();

    mutable PoliteMutex m_mutex; ///< who holds it may wait, and poll for Ctrl-C
    std::optional<SurfaceConfig> m_config;
    ref<Texture> m_image; ///< acquired
};

/// The surface of a device that cannot show anything: images are its own textures, which are copied through the host to
/// `shown`, a surface of another device, when they are presented.
ref<Surface> create_upload_surface(ref<Device> device, ref<Surface> shown);

} // namespace spy
