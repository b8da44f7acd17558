// What a render pass draws into: checked, and resolved to one size, sample count and set of clear values.
#include "device/render_pass.h"

#include "core/error.h"
#include "device/resource.h"
#include "device/texture_shape.h"

#include <cmath>
#include <cstring>
#include <limits>

namespace spy {

namespace {

constexpr const char* call = "begin_render_pass";

struct Size {
    uint32_t width, height, layers, samples;
};

Size size_of(const TextureView& view)
{
    const TextureDesc& texture = view.texture()->desc();
    const SubresourceRange& range = view.desc().range;
    return {std::max(texture.width >> range.mip, 1u), std::max(texture.height >> range.mip, 1u), range.layer_count,
            texture.sample_count};
}

void check_view(const Device* device, const TextureView* view, TextureUsage usage, const std::string& what)
{
    check_same_device(device, view, what.c_str());
    const Texture* texture = view->texture();
    check_current(texture, what.c_str());
    const TextureDesc& desc = texture->desc();
    if (!has_flag(desc.usage, usage))
        fail_value(what, ": ", summary(texture), " was created without the usage flag ", names_of(usage));
    const FormatInfo& format = format_info(view->desc().format);
    const bool depth = usage == TextureUsage::depth_stencil;
    if (format.is_depth_stencil() != depth)
        fail_value(what, ": ", format.name,
                   depth ? " is a colour format; give it as a colour attachment"
                         : " is a depth format; give it as depth_stencil_attachment");
    if (desc.type == TextureType::texture_1d || desc.type == TextureType::texture_1d_array ||
        desc.type == TextureType::texture_3d)
        fail_value(what, ": ", summary(texture), " is a ", name_of(desc.type),
                   "; what is drawn into is a 2D texture, an array of them or a cube");
    if (view->desc().range.mip_count != 1)
        fail_value(what, ": the view has ", view->desc().range.mip_count,
                   " mips, but one is drawn into; create it with mip_count=1");
}

std::string text_of(const Size& size)
{
    return cat(size.width, " x ", size.height, ", ", size.layers, size.layers == 1 ? " layer, " : " layers, ",
               size.samples, size.samples == 1 ? " sample" : " samples");
}

void check_size(const Size& size, command::RenderPass& pass, bool& known, const std::string& what)
{
    if (!known) {
        pass.width = size.width;
        pass.height = size.height;
        pass.layer_count = size.layers;
        pass.sample_count = size.samples;
        known = true;
        return;
    }
    if (size.width != pass.width || size.height != pass.height || size.layers != pass.layer_count ||
        size.samples != pass.sample_count)
        fail_value(what, ": ", text_of(size), "; the attachments before it have ",
                   text_of({pass.width, pass.height, pass.layer_count, pass.sample_count}),
                   ". All attachments of a pass have one size and sample count");
}

void check_resolve(const Device* device, const RenderPassColorAttachment& attachment, const std::string& what)
{
    const TextureView* target = attachment.resolve_target.get();
    check_view(device, target, TextureUsage::resolve_destination, what);
    const Size from = size_of(*attachment.view), to = size_of(*target);
    if (from.samples == 1)
        fail_value(what, ": the attachment has one sample, so there is nothing to resolve; leave resolve_target out");
    if (to.samples != 1 || to.width != from.width || to.height != from.height || to.layers != from.layers)
        fail_value(what, ": ", text_of(to), "; it must have the size of its attachment and one sample (",
                   text_of({from.width, from.height, from.layers, 1}), ")");
    const FormatInfo &format = format_info(attachment.view->desc().format), &own = format_info(target->desc().format);
    if (format.format != own.format)
        fail_value(what, ": format ", own.name, "; it must be that of the attachment, ", format.name);
    if (format.is_integer_format())
        fail_value(what, ": integer formats such as ", format.name, " cannot be resolved");
}

/// Floats as they are; whole numbers for integer formats, cut to the range of 32 bits.
std::array<uint32_t, 4> clear_bits(const std::array<float, 4>& value, Format format)
{
    std::array<uint32_t, 4> bits{};
    const FormatType type = format_info(format).type;
    for (size_t i = 0; i < 4; ++i) {
        const double number = std::isnan(value[i]) ? 0. : std::trunc(double(value[i]));
        if (type == FormatType::uint)
            bits[i] = uint32_t(std::clamp(number, 0., 4294967295.));
        else if (type == FormatType::sint)
            bits[i] = uint32_t(int32_t(std::clamp(number, -2147483648., 2147483647.)));
        else
            std::memcpy(&bits[i], &value[i], 4);
    }
    return bits;
}

void add_color(const Device* device, const RenderPassColorAttachment& given, size_t index, command::RenderPass& pass,
               bool& known)
{
    const std::string what = cat(call, " 'color_attachments[", index, "]'");
    if (!given.view)
        fail(ErrorKind::type, what, ": 'view' is missing; give a TextureView or a Texture");
    check_view(device, given.view.get(), TextureUsage::render_target, what);
    check_size(size_of(*given.view), pass, known, what);
    for (size_t k = 0; k < pass.colors.size(); ++k) {
        const TextureView& other = *pass.colors[k].view;
        const SubresourceRange &a = given.view->desc().range, &b = other.desc().range;
        if (other.texture() == given.view->texture() && a.mip == b.mip && a.layer < b.layer + b.layer_count &&
            b.layer < a.layer + a.layer_count)
            fail_value(what, ": it is the same part of the same texture as color_attachments[", k, "]");
    }
    if (given.resolve_target)
        check_resolve(device, given, what + ".resolve_target");
    pass.colors.push_back({given.view, given.resolve_target, given.load_op, given.store_op,
                           clear_bits(given.clear_value, given.view->desc().format)});
}

void add_depth_stencil(const Device* device, const RenderPassDepthStencilAttachment& given, command::RenderPass& pass,
                       bool& known)
{
    const std::string what = cat(call, " 'depth_stencil_attachment'");
    if (!given.view)
        fail(ErrorKind::type, what, ": 'view' is missing; give a TextureView or a Texture");
    check_view(device, given.view.get(), TextureUsage::depth_stencil, what);
    check_size(size_of(*given.view), pass, known, what);
    if (given.depth_load_op == LoadOp::clear && !(given.depth_clear_value >= 0 && given.depth_clear_value <= 1))
        fail_value(what, ": depth_clear_value must be from 0 to 1, got ", given.depth_clear_value);
    if (given.stencil_clear_value > 255)
        fail_value(what, ": stencil_clear_value must be from 0 to 255, got ", given.stencil_clear_value);
    command::DepthStencilAttachment out{given.view,
                                        given.depth_load_op,
                                        given.stencil_load_op,
                                        given.depth_store_op,
                                        given.stencil_store_op,
                                        given.depth_read_only,
                                        given.stencil_read_only,
                                        given.depth_clear_value,
                                        given.stencil_clear_value};
    // What is only read is what was there before, and stays.
    if (out.depth_read_only) {
        out.depth_load_op = LoadOp::load;
        out.depth_store_op = StoreOp::store;
    }
    if (out.stencil_read_only) {
        out.stencil_load_op = LoadOp::load;
        out.stencil_store_op = StoreOp::store;
    }
    pass.depth_stencil = std::move(out);
}

} // namespace

command::RenderPass resolve_render_pass(const Device* device, const RenderPassDesc& desc)
{
    require_rasterization(device, call);
    if (desc.color_attachments.size() > max_color_attachments)
        fail_value(call, ": ", desc.color_attachments.size(), " color_attachments; there may be at most ",
                   max_color_attachments);
    if (desc.color_attachments.empty() && !desc.depth_stencil_attachment)
        fail_value(call, ": no attachment at all; give color_attachments or a depth_stencil_attachment");
    command::RenderPass pass;
    bool known = false;
    for (size_t i = 0; i < desc.color_attachments.size(); ++i)
        add_color(device, desc.color_attachments[i], i, pass, known);
    if (desc.depth_stencil_attachment)
        add_depth_stencil(device, *desc.depth_stencil_attachment, pass, known);
    return pass;
}

} // namespace spy
