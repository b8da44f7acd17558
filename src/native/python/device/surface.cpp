// Surfaces. slangpy/device/surface.py makes them for windows.
#include "python/device/bindings.h"

#include "device/surface.h"

#include <nanobind/stl/optional.h>

namespace spy {

namespace {

void bind_surface_descs(nb::module_& m)
{
    using C = SurfaceConfig;
    bind_desc<C>(m, "SurfaceConfig", "Fields of Surface.configure.",
                 {
                     field<C, &C::format>("format", "Format", "Of the images; undefined: the preferred one."),
                     field<C, &C::usage>("usage", "TextureUsage", "Of the images; none: the supported usage."),
                     field<C, &C::width>("width", "int", "Pixels."),
                     field<C, &C::height>("height", "int", "Pixels."),
                     field<C, &C::desired_image_count>("desired_image_count", "int", "The driver may make more."),
                     field<C, &C::vsync>("vsync", "bool", "Present in step with the screen."),
                 });
    using I = SurfaceInfo;
    nb::class_<I>(m, "SurfaceInfo", "What a window takes.")
        .def_ro("preferred_format", &I::preferred_format)
        .def_ro("supported_usage", &I::supported_usage)
        .def_ro("formats", &I::formats)
        .def("__repr__", [](const I& info) {
            std::string formats;
            for (Format format : info.formats)
                formats += cat(formats.empty() ? "" : ", ", format_name(format));
            return cat("SurfaceInfo(\n  preferred_format = ", format_name(info.preferred_format),
                       ",\n  supported_usage = ", names_of(info.supported_usage), ",\n  formats = ", formats, ",\n)");
        });
}

/// Of `configure(width, height, ...)`, whose order is not that of the fields; other arguments stay as they are.
SurfaceConfig surface_config(nb::args args, nb::kwargs kwargs)
{
    constexpr const char* function = "Surface.configure";
    constexpr const char* order[] = {"width", "height", "format", "usage", "desired_image_count", "vsync"};
    if (args.size() == 0 || !PyLong_Check(args[0].ptr()) || nb::isinstance<Format>(args[0]))
        return Fields<SurfaceConfig>::from_arguments(args, kwargs, function);
    if (args.size() > std::size(order))
        fail(ErrorKind::type, function, " takes at most ", std::size(order), " arguments, got ", args.size());
    nb::dict named(kwargs);
    for (size_t i = 0; i < args.size(); ++i) {
        if (named.contains(order[i]))
            fail(ErrorKind::type, function, " '", order[i], "': given twice, by position and by name");
        named[order[i]] = args[i];
    }
    return Fields<SurfaceConfig>::from_arguments(nb::borrow<nb::args>(nb::tuple()), nb::borrow<nb::kwargs>(named),
                                                 function);
}

void bind_surface_class(nb::module_& m)
{
    nb::class_<Surface, DeviceObject>(m, "Surface", nb::dynamic_attr(), "What a window shows.")
        .def_prop_ro("info", [](const Surface& s) { return s.info(); })
        .def_prop_ro("config", &Surface::config, "As configured, with the size that images have; None before.")
        .def(
            "configure",
            [](Surface& s, nb::args args, nb::kwargs kwargs) {
                open_device(&s);
                const SurfaceConfig config = surface_config(args, kwargs);
                GilRelease release;
                s.configure(config);
            },
            nb::sig("def configure(self, width: int | SurfaceConfig | dict[str, object] = ..., height: int = ..., "
                    "format: Format | str = ..., usage: TextureUsage | str = ..., desired_image_count: int = ..., "
                    "vsync: bool = ...) "
                    "-> None"),
            "Makes the images, after each change of the window's size anew. Takes the fields of SurfaceConfig in this "
            "order, or "
            "one.")
        .def(
            "unconfigure",
            [](Surface& s) {
                open_device(&s);
                GilRelease release;
                s.unconfigure();
            },
            "Frees the images.")
        .def(
            "acquire_next_image",
            [](Surface& s) -> std::optional<ref<Texture>> {
                open_device(&s);
                ref<Texture> image;
                {
                    GilRelease release;
                    image = s.acquire_next_image();
                }
                return image ? std::optional(image) : std::nullopt;
            },
            "The next image to draw into, until present(). None: the window has another size than the images, or no "
            "area; skip the frame.")
        .def(
            "present",
            [](Surface& s) {
                open_device(&s);
                GilRelease release;
                s.present();
            },
            "Shows the acquired image, after the work that was submitted. The image may not be used afterwards.")
        .def("__repr__", [](const Surface& s) {
            const auto config = s.config();
            return cat("Surface(\n  preferred_format = ", format_name(s.info().preferred_format), ",\n  config = ",
                       config ? cat(config->width, " x ", config->height, ", ", format_name(config->format)) : "None",
                       ",\n)");
        });
}

SurfaceDesc::Kind kind_from(const std::string& kind)
{
    return kind == "xlib" ? SurfaceDesc::Kind::xlib
        : kind == "win32" ? SurfaceDesc::Kind::win32
                          : SurfaceDesc::Kind::vulkan;
}

} // namespace

void bind_surface(nb::module_& m, nb::class_<Device, Object>& device)
{
    bind_surface_descs(m);
    bind_surface_class(m);
    device
        .def(
            "_create_surface",
            [](Device& d, const std::string& kind, uint64_t display, uint64_t handle) {
                check_open(&d);
                return d.create_surface({kind_from(kind), display, handle});
            },
            nb::arg("kind"), nb::arg("display"), nb::arg("handle"),
            "kind: 'vulkan' (handle: a VkSurfaceKHR, which it takes over), 'xlib' (Display*, Window) or 'win32' "
            "(HWND).")
        .def(
            "_create_upload_surface",
            [](Device& d, ref<Surface> shown) {
                check_open(&d);
                return create_upload_surface(&d, std::move(shown));
            },
            nb::arg("shown"), "Shows images of this device on a surface of another.");
}

} // namespace spy
