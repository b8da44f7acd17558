// Commands of encoders that copy, fill and clear textures.
#include "python/device/bindings.h"
#include "python/device/tensor_places.h"
#include "python/integers.h"

#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>

namespace spy {

SubresourceRange subresources_from(nb::handle value, const char* what)
{
    return value.is_none() ? PySubresourceRange() : Fields<PySubresourceRange>::from(value, what);
}

namespace {

Offset3 offset_from(nb::handle value, const char* what)
{
    if (PyLong_Check(value.ptr()) && uint_from(value, what, 0xffffffffu) == 0)
        return {};
    const auto v = uint32s_from<3>(value, what, true, 0);
    return {v[0], v[1], v[2]};
}

bool is_minus_one(nb::handle value)
{
    int overflow = 0;
    return PyLong_Check(value.ptr()) && PyLong_AsLongAndOverflow(value.ptr(), &overflow) == -1 && !overflow;
}

/// -1 (alone or as a component): as much as fits.
OptionalExtent extent_from(nb::handle value, const char* what)
{
    OptionalExtent extent;
    if (value.is_none() || is_minus_one(value))
        return extent;
    nb::object items = nb::steal(PySequence_List(value.ptr()));
    if (!items.is_valid() || nb::len(items) > 3 || nb::len(items) == 0) {
        PyErr_Clear();
        fail_field(what, value, "a sequence of 3 ints, or -1 for as much as fits");
    }
    extent = {1u, 1u, 1u};
    for (size_t i = 0; i < nb::len(items); ++i) {
        nb::object item = items[i];
        if (is_minus_one(item)) {
            extent[i] = std::nullopt;
            continue;
        }
        const uint32_t number = uint32_t(uint_from(item, what, 0xffffffffu));
        extent[i] = number == 0xffffffffu ? std::nullopt : std::optional(number); // a uint3 holds -1 so
    }
    return extent;
}

std::array<uint32_t, 4> clear_bits(nb::handle value, command::ClearTexture::Kind kind)
{
    using Kind = command::ClearTexture::Kind;
    std::array<uint32_t, 4> bits{};
    const bool is_number = PyLong_Check(value.ptr()) || PyFloat_Check(value.ptr());
    nb::object items = is_number ? nb::object(nb::make_tuple(value, value, value, value)) : nb::borrow(value);
    if (kind == Kind::float_) {
        const auto floats = floats_from(items, "clear_value", 4);
        memcpy(bits.data(), floats.data(), 16);
    } else if (kind == Kind::uint_) {
        bits = uint32s_from<4>(items, "clear_value");
    } else {
        for (size_t i = 0; i < 4; ++i)
            bits[i] = uint32_t(from_field<int32_t>(items[i], "clear_value"));
    }
    return bits;
}

void upload_list(CommandEncoder& encoder, ref<Texture> texture, Offset3 offset, nb::handle extent,
                 SubresourceRange range, nb::handle data)
{
    range = resolve_range(texture->desc(), range);
    const nb::list items = list_from(data, "upload_texture_data 'subresource_data'");
    const size_t expected = size_t(range.layer_count) * range.mip_count;
    if (items.size() != expected)
        fail_value("upload_texture_data: got ", items.size(), " subresources, expected ", range.layer_count,
                   " layers x ", range.mip_count, " mips = ", expected);
    for (size_t i = 0; i < expected; ++i) {
        HostBytes bytes(items[i], "upload_texture_data");
        check_texels(texture->desc(), bytes, "upload_texture_data");
        encoder.upload_texture_data(
            {texture, uint32_t(range.layer + i / range.mip_count), uint32_t(range.mip + i % range.mip_count), offset},
            extent_from(extent, "upload_texture_data 'extent'"), bytes.bytes());
    }
}

void bind_texture_clears(EncoderClass& cls)
{
    using E = CommandEncoder;
    using Kind = command::ClearTexture::Kind;
    const std::pair<const char*, Kind> clears[] = {
        {"clear_texture_float", Kind::float_}, {"clear_texture_uint", Kind::uint_}, {"clear_texture_sint", Kind::sint}};
    for (auto [name, kind] : clears)
        cls.def(
            name,
            [kind](E& e, ref<Texture> texture, nb::object range, nb::handle value) {
                e.clear_texture(texture, kind, subresources_from(range, "clear_texture 'range'"),
                                clear_bits(value, kind));
            },
            nb::arg("texture"), nb::arg("range") = nb::none(), nb::arg("clear_value") = 0,
            "Sets every texel of the range; one number or four.");
}

void bind_texture_uploads(EncoderClass& cls)
{
    using E = CommandEncoder;
    cls.def(
        "upload_texture_data",
        [](E& e, ref<Texture> texture, Int<"upload_texture_data 'layer'"> layer, Int<"upload_texture_data 'mip'"> mip,
           nb::handle data) {
            HostBytes bytes(data, "upload_texture_data");
            check_texels(texture->desc(), bytes, "upload_texture_data");
            e.upload_texture_data({texture, layer, mip, {}}, {}, bytes.bytes());
        },
        nb::arg("texture"), nb::arg("layer"), nb::arg("mip"), nb::arg("data"),
        "Rows tightly packed; the data is copied at once.");
    cls.def(
        "upload_texture_data",
        [](E& e, ref<Texture> texture, nb::handle data) {
            upload_list(e, texture, {}, nb::none(), PySubresourceRange(), data);
        },
        nb::arg("texture"), nb::arg("subresource_data"), "One array for each layer and mip, layer-major.");
    cls.def(
        "upload_texture_data",
        [](E& e, ref<Texture> texture, nb::handle range, nb::handle data) {
            upload_list(e, texture, {}, nb::none(), subresources_from(range, "upload_texture_data"), data);
        },
        nb::arg("texture"), nb::arg("range"), nb::arg("subresource_data"));
    cls.def(
        "upload_texture_data",
        [](E& e, ref<Texture> texture, nb::handle offset, nb::handle extent, nb::handle range, nb::handle data) {
            upload_list(e, texture, offset_from(offset, "upload_texture_data 'offset'"), extent,
                        subresources_from(range, "upload_texture_data"), data);
        },
        nb::arg("texture"), nb::arg("offset"), nb::arg("extent"), nb::arg("range"), nb::arg("subresource_data"));
}

void bind_tensor_copies(EncoderClass& cls)
{
    using E = CommandEncoder;
    cls.def(
        "copy_tensor_to_texture",
        [](E& e, ref<Texture> dst, nb::handle src, Int<"copy_tensor_to_texture 'layer'"> layer,
           Int<"copy_tensor_to_texture 'mip'"> mip) {
            constexpr const char* call = "copy_tensor_to_texture";
            e.check_recording(call);
            const TensorRows rows = tensor_rows(tensor_from(src, "copy_tensor_to_texture 'src'"), *dst, mip, call);
            e.copy_buffer_to_texture({dst, layer, mip, {}}, rows.buffer, rows.offset, rows.size, rows.row_pitch, {});
        },
        nb::arg("dst"), nb::arg("src"), nb::arg("layer") = 0, nb::arg("mip") = 0,
        nb::sig(
            "def copy_tensor_to_texture(self, dst: Texture, src: TensorBase, layer: int = 0, mip: int = 0) -> None"),
        "On the device. `src`: (height, width) elements of as many scalars as the format has channels, or (height, "
        "width, "
        "channels) scalars; of the scalar type that the format stores. Rows may have gaps.");
    cls.def(
        "copy_texture_to_tensor",
        [](E& e, nb::handle dst, ref<Texture> src, Int<"copy_texture_to_tensor 'layer'"> layer,
           Int<"copy_texture_to_tensor 'mip'"> mip) {
            constexpr const char* call = "copy_texture_to_tensor";
            e.check_recording(call);
            const TensorRows rows = tensor_rows(tensor_from(dst, "copy_texture_to_tensor 'dst'"), *src, mip, call);
            e.copy_texture_to_buffer(rows.buffer, rows.offset, rows.size, rows.row_pitch, {src, layer, mip, {}}, {});
        },
        nb::arg("dst"), nb::arg("src"), nb::arg("layer") = 0, nb::arg("mip") = 0,
        nb::sig(
            "def copy_texture_to_tensor(self, dst: TensorBase, src: Texture, layer: int = 0, mip: int = 0) -> None"),
        "On the device. `dst` as `src` of copy_tensor_to_texture.");
}

} // namespace

void bind_texture_commands(EncoderClass& cls)
{
    using E = CommandEncoder;
    cls.def(
        "copy_texture",
        [](E& e, ref<Texture> dst, Int<"copy_texture 'dst_layer'"> dst_layer, Int<"copy_texture 'dst_mip'"> dst_mip,
           nb::handle dst_offset, ref<Texture> src, Int<"copy_texture 'src_layer'"> src_layer,
           Int<"copy_texture 'src_mip'"> src_mip, nb::handle src_offset, nb::handle extent) {
            e.copy_texture(
                TextureLocation{dst, dst_layer, dst_mip, offset_from(dst_offset, "copy_texture 'dst_offset'")},
                TextureLocation{src, src_layer, src_mip, offset_from(src_offset, "copy_texture 'src_offset'")},
                extent_from(extent, "copy_texture 'extent'"));
        },
        nb::arg("dst"), nb::arg("dst_layer"), nb::arg("dst_mip"), nb::arg("dst_offset"), nb::arg("src"),
        nb::arg("src_layer"), nb::arg("src_mip"), nb::arg("src_offset"), nb::arg("extent") = -1,
        "Offsets and extent in texels; extent -1: as much as fits.");
    cls.def(
        "copy_texture",
        [](E& e, ref<Texture> dst, nb::handle dst_range, nb::handle dst_offset, ref<Texture> src, nb::handle src_range,
           nb::handle src_offset, nb::handle extent) {
            e.copy_texture(dst, subresources_from(dst_range, "copy_texture 'dst_subresource_range'"),
                           offset_from(dst_offset, "copy_texture 'dst_offset'"), src,
                           subresources_from(src_range, "copy_texture 'src_subresource_range'"),
                           offset_from(src_offset, "copy_texture 'src_offset'"),
                           extent_from(extent, "copy_texture 'extent'"));
        },
        nb::arg("dst"), nb::arg("dst_subresource_range"), nb::arg("dst_offset"), nb::arg("src"),
        nb::arg("src_subresource_range"), nb::arg("src_offset"), nb::arg("extent") = -1);
    cls.def(
        "copy_texture_to_buffer",
        [](E& e, ref<Buffer> dst, Int64<"copy_texture_to_buffer 'dst_offset'"> dst_offset,
           Int64<"copy_texture_to_buffer 'dst_size'"> dst_size,
           Int64<"copy_texture_to_buffer 'dst_row_pitch'"> dst_row_pitch, ref<Texture> src,
           Int<"copy_texture_to_buffer 'src_layer'"> src_layer, Int<"copy_texture_to_buffer 'src_mip'"> src_mip,
           nb::handle src_offset, nb::handle extent) {
            e.copy_texture_to_buffer(
                dst, dst_offset, dst_size, dst_row_pitch,
                {src, src_layer, src_mip, offset_from(src_offset, "copy_texture_to_buffer 'src_offset'")},
                extent_from(extent, "copy_texture_to_buffer 'extent'"));
        },
        nb::arg("dst"), nb::arg("dst_offset"), nb::arg("dst_size"), nb::arg("dst_row_pitch"), nb::arg("src"),
        nb::arg("src_layer"), nb::arg("src_mip"), nb::arg("src_offset") = 0, nb::arg("extent") = -1,
        "Copies a box of texels to rows, `dst_row_pitch` bytes apart. `extent` -1: as much as fits.");
    cls.def(
        "copy_buffer_to_texture",
        [](E& e, ref<Texture> dst, Int<"copy_buffer_to_texture 'dst_layer'"> dst_layer,
           Int<"copy_buffer_to_texture 'dst_mip'"> dst_mip, nb::handle dst_offset, ref<Buffer> src,
           Int64<"copy_buffer_to_texture 'src_offset'"> src_offset, Int64<"copy_buffer_to_texture 'src_size'"> src_size,
           Int64<"copy_buffer_to_texture 'src_row_pitch'"> src_row_pitch, nb::handle extent) {
            e.copy_buffer_to_texture(
                {dst, dst_layer, dst_mip, offset_from(dst_offset, "copy_buffer_to_texture 'dst_offset'")}, src,
                src_offset, src_size, src_row_pitch, extent_from(extent, "copy_buffer_to_texture 'extent'"));
        },
        nb::arg("dst"), nb::arg("dst_layer"), nb::arg("dst_mip"), nb::arg("dst_offset"), nb::arg("src"),
        nb::arg("src_offset"), nb::arg("src_size"), nb::arg("src_row_pitch"), nb::arg("extent") = -1,
        "Copies rows, `src_row_pitch` bytes apart, to a box of texels. `extent` -1: as much as fits.");
    bind_tensor_copies(cls);
    bind_texture_uploads(cls);
    bind_texture_clears(cls);
}

} // namespace spy
