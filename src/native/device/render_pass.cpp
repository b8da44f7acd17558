#include "device/render_pass.h"

#include "core/error.h"
#include "device/content.h"
#include "device/resource.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace spy {

namespace {

bool overlap(uint32_t a, uint32_t a_count, uint32_t b, uint32_t b_count) { return a < b + b_count && b < a + a_count; }

/// Whether two views, or a view and a texture, have texels in common.
bool share_texels(const TextureView& view, const Object* bound)
{
    const auto* other = dynamic_cast<const TextureView*>(bound);
    const auto* texture = other ? other->texture() : dynamic_cast<const Texture*>(bound);
    if (texture != view.texture())
        return false;
    if (!other)
        return true;
    const SubresourceRange &a = view.desc().range, &b = other->desc().range;
    return overlap(a.layer, a.layer_count, b.layer, b.layer_count) && overlap(a.mip, a.mip_count, b.mip, b.mip_count);
}

bool same_bytes(const std::vector<std::vector<uint8_t>>& kept, const std::vector<std::span<const uint8_t>>& now)
{
    return std::equal(kept.begin(), kept.end(), now.begin(), now.end(), [](const auto& a, const auto& b) {
        return a.size() == b.size() && (a.empty() || !std::memcmp(a.data(), b.data(), a.size()));
    });
}

void check_viewports(const RenderState& state, const DeviceLimits& limits, const char* call)
{
    for (size_t i = 0; i < state.viewports.size(); ++i) {
        const Viewport& v = state.viewports[i];
        if (!(v.width > 0) || !(v.height > 0) || !std::isfinite(v.x) || !std::isfinite(v.y) ||
            !std::isfinite(v.width) || !std::isfinite(v.height))
            fail_value(call, ": viewports[", i, "]: (x, y, width, height) is (", v.x, ", ", v.y, ", ", v.width, ", ",
                       v.height, "); width and height must be above 0");
        if (!(v.min_depth >= 0) || !(v.max_depth <= 1) || !(v.min_depth <= 1) || !(v.max_depth >= 0))
            fail_value(call, ": viewports[", i, "]: min_depth ", v.min_depth, " and max_depth ", v.max_depth,
                       " must be from 0 to 1");
        const auto& most = limits.max_viewport_dimensions;
        if ((most[0] && v.width > float(most[0])) || (most[1] && v.height > float(most[1])))
            fail_value(call, ": viewports[", i, "]: ", v.width, " x ", v.height,
                       " is more than this device's limit of ", most[0], " x ", most[1]);
    }
    for (size_t i = 0; i < state.scissor_rects.size(); ++i) {
        const ScissorRect& r = state.scissor_rects[i];
        if (r.max_x < r.min_x || r.max_y < r.min_y)
            fail_value(call, ": scissor_rects[", i, "]: from (", r.min_x, ", ", r.min_y, ") to (", r.max_x, ", ",
                       r.max_y, "); max must not be below min");
    }
}

/// Whole target where nothing was given; one rectangle for each viewport, cut to the target.
RenderState resolve_state(RenderState state, const command::RenderPass& pass)
{
    const Viewport whole{0.f, 0.f, float(pass.width), float(pass.height), 0.f, 1.f};
    const ScissorRect all{0, 0, pass.width, pass.height};
    const size_t count = std::max<size_t>({state.viewports.size(), state.scissor_rects.size(), 1});
    state.viewports.resize(count, state.viewports.empty() ? whole : state.viewports.back());
    state.scissor_rects.resize(count, all);
    for (ScissorRect& r : state.scissor_rects)
        r = {std::min(r.min_x, pass.width), std::min(r.min_y, pass.height), std::min(r.max_x, pass.width),
             std::min(r.max_y, pass.height)};
    return state;
}

void check_buffer_use(const Device* device, const Buffer* buffer, BufferUsage usage, const std::string& what)
{
    check_same_device(device, buffer, what.c_str());
    if (!has_flag(buffer->desc().usage, usage))
        fail_value(what, ": ", summary(buffer), " was created without the usage flag ", names_of(usage));
}

} // namespace

ref<RenderPassEncoder> CommandEncoder::begin_render_pass(const RenderPassDesc& desc)
{
    check_recording("begin_render_pass");
    command::RenderPass pass = resolve_render_pass(device(), desc);
    m_pass_open = "render";
    return new RenderPassEncoder(this, std::move(pass));
}

void CommandEncoder::clear_texture_depth_stencil(ref<Texture> texture, SubresourceRange range, bool clear_depth,
                                                 float depth, bool clear_stencil, uint32_t stencil)
{
    constexpr const char* call = "clear_texture_depth_stencil";
    check_recording(call);
    check_same_device(m_device.get(), texture.get(), "clear_texture_depth_stencil 'texture'");
    require_rasterization(device(), call);
    const FormatInfo& format = format_info(texture->desc().format);
    if (!format.is_depth_stencil())
        fail_value(call, ": ", format.name, " is a colour format; use clear_texture_float, _uint or _sint");
    if (!has_flag(texture->desc().usage, TextureUsage::depth_stencil))
        fail_value(call, ": ", summary(texture.get()), " was created without the usage flag depth_stencil");
    if (clear_depth && !(depth >= 0 && depth <= 1))
        fail_value(call, ": 'depth_value' must be from 0 to 1, got ", depth);
    if (clear_stencil && format.is_stencil() && stencil > 255)
        fail_value(call, ": 'stencil_value' must be from 0 to 255, got ", stencil);
    clear_depth = clear_depth && format.is_depth();
    clear_stencil = clear_stencil && format.is_stencil();
    if (!clear_depth && !clear_stencil)
        fail_value(call, ": nothing to clear: ", format.name, " has ",
                   format.is_stencil() ? "depth and stencil" : "depth alone", "; set clear_depth",
                   format.is_stencil() ? " or clear_stencil" : "");
    range = resolve_range(texture->desc(), range);
    add(command::ClearDepthStencil{std::move(texture), range, clear_depth, clear_stencil, depth, stencil});
}

// --- encoder

void RenderPassEncoder::check_open(const char* call) const
{
    if (m_ended)
        fail_runtime(call, ": the render pass has ended; begin another with begin_render_pass()");
    m_encoder->check_recording(call, true);
}

ref<ShaderObject> RenderPassEncoder::bind_pipeline(ref<RenderPipeline> pipeline, ref<ShaderObject> root)
{
    check_open("bind_pipeline");
    check_same_device(m_encoder->device(), pipeline.get(), "bind_pipeline 'pipeline'");
    m_root = root_for(m_encoder->device(), pipeline->layout(), pipeline->label(), std::move(root));
    m_targets_checked = m_targets_checked && m_pipeline == pipeline;
    m_pipeline = std::move(pipeline);
    m_bound.reset();
    return m_root;
}

void RenderPassEncoder::set_render_state(RenderState state)
{
    constexpr const char* call = "set_render_state";
    check_open(call);
    if (state.viewports.size() > max_viewports || state.scissor_rects.size() > max_viewports)
        fail_value(call, ": ", state.viewports.size(), " viewports and ", state.scissor_rects.size(),
                   " scissor_rects; there may be at most ", max_viewports, " of each");
    const uint32_t most = m_encoder->device()->info().limits.max_viewports;
    if (most && std::max(state.viewports.size(), state.scissor_rects.size()) > most)
        fail_value(call, ": more viewports or scissor_rects than this device's limit of ", most);
    if (state.stencil_ref > 255)
        fail_value(call, ": stencil_ref must be from 0 to 255, got ", state.stencil_ref);
    check_viewports(state, m_encoder->device()->info().limits, call);
    for (size_t i = 0; i < state.vertex_buffers.size(); ++i)
        if (const BufferOffset& at = state.vertex_buffers[i]; at.buffer) {
            const std::string what = cat(call, " 'vertex_buffers[", i, "]'");
            check_buffer_use(m_encoder->device(), at.buffer.get(), BufferUsage::vertex_buffer, what);
            check_buffer_range(at.buffer.get(), at.offset, 0, what.c_str());
        }
    if (const BufferOffset& at = state.index_buffer; at.buffer) {
        constexpr const char* what = "set_render_state 'index_buffer'";
        check_buffer_use(m_encoder->device(), at.buffer.get(), BufferUsage::index_buffer, what);
        check_buffer_range(at.buffer.get(), at.offset, 0, what);
        const uint32_t size = state.index_format == IndexFormat::uint16 ? 2 : 4;
        const char* name = size == 2 ? "uint16 indices (index_format)" : "uint32 indices (index_format)";
        if (const std::string why = content_misfit(at.buffer->content(), size, name); !why.empty())
            fail(ErrorKind::type, what, ": ", why);
        if (at.offset % size)
            fail_value(what, ": the offset (", at.offset, ") must be a multiple of ", size, ", the size of an index");
    }
    m_given = std::move(state);
    m_state.reset();
}

void RenderPassEncoder::check_targets(const char* call) const
{
    const RenderPipelineState& state = m_pipeline->state();
    auto text = [&](const auto&... parts) { fail_value(call, ": pipeline '", m_pipeline->label(), "' ", parts...); };
    if (state.targets.size() != m_pass.colors.size())
        text("has ", state.targets.size(), " targets, but the pass has ", m_pass.colors.size(), " color_attachments");
    for (size_t i = 0; i < state.targets.size(); ++i)
        if (const Format is = m_pass.colors[i].view->desc().format; is != state.targets[i].format)
            text("draws into ", format_name(state.targets[i].format), " as targets[", i, "], but color_attachments[", i,
                 "] has format ", format_name(is));
    const Format wanted = state.depth_stencil.format;
    const Format is = m_pass.depth_stencil ? m_pass.depth_stencil->view->desc().format : Format::undefined;
    if (wanted != is)
        text("has ",
             wanted == Format::undefined ? "no depth_stencil format"
                                         : cat("depth_stencil format ", format_name(wanted)),
             ", but the pass has ",
             is == Format::undefined ? std::string("no depth_stencil_attachment")
                                     : cat("a depth_stencil_attachment of format ", format_name(is)));
    if (state.multisample.sample_count != m_pass.sample_count)
        text("draws with ", state.multisample.sample_count,
             " samples (multisample.sample_count), but the attachments have ", m_pass.sample_count);
    if (m_pass.depth_stencil && m_pass.depth_stencil->depth_read_only && state.depth_stencil.writes_depth())
        text("writes depth, but the pass has depth_read_only; set depth_write_enable to False");
    if (m_pass.depth_stencil && m_pass.depth_stencil->stencil_read_only && state.depth_stencil.writes_stencil())
        text("writes stencil, but the pass has stencil_read_only; let its stencil operations be keep");
}

void RenderPassEncoder::check_streams(const command::Draw& draw, const char* call) const
{
    const RenderPipelineState& state = m_pipeline->state();
    const bool direct = draw.kind == command::Draw::Kind::vertices || draw.kind == command::Draw::Kind::indexed;
    for (const VertexAttribute& attribute : state.attributes) {
        const uint32_t slot = attribute.element.buffer_slot_index;
        const std::vector<BufferOffset>& buffers = m_given.vertex_buffers;
        if (slot >= buffers.size() || !buffers[slot].buffer)
            fail_value(call, ": vertex stream ", slot, " has no buffer; pipeline '", m_pipeline->label(), "' reads ",
                       attribute.element.semantic_name, attribute.element.semantic_index,
                       " from it: give it in vertex_buffers of set_render_state");
        const VertexStreamDesc& stream = state.input.vertex_streams[slot];
        if (const ScalarType content = buffers[slot].buffer->content(); scalar_info(content).size == 8)
            [[unlikely]] // no format has such channels
            fail(ErrorKind::type, call, ": vertex_buffers[", slot,
                 "]: ", content_misfit(content, attribute.element.format));
        if (buffers[slot].stride && buffers[slot].stride != stream.stride)
            fail_value(call, ": vertex_buffers[", slot, "] is a Tensor with ", buffers[slot].stride,
                       " bytes from one vertex to the next, but vertex_streams[", slot, "] of pipeline '",
                       m_pipeline->label(), "' has stride ", stream.stride);
        const bool instances = stream.slot_class == InputSlotClass::per_instance;
        if (!direct || (!instances && draw.kind == command::Draw::Kind::indexed))
            continue;
        const DrawArguments& a = draw.arguments;
        uint64_t last = uint64_t(a.start_vertex_location) + a.vertex_count - 1;
        if (instances)
            last = uint64_t(a.start_instance_location) + (a.instance_count - 1) / stream.instance_data_step_rate;
        const uint64_t end = last * stream.stride + attribute.element.offset +
            format_info(attribute.element.format).bytes_per_block;
        if (end > buffers[slot].room())
            fail(ErrorKind::index, call, ": vertex_buffers[", slot, "] has ", buffers[slot].room(),
                 " bytes from its offset on, but ", instances ? "instance" : "vertex", " record ", last,
                 " ends at byte ", end);
    }
}

void RenderPassEncoder::check_index_buffer(const command::Draw& draw, const char* call) const
{
    using Kind = command::Draw::Kind;
    if (draw.kind != Kind::indexed && draw.kind != Kind::indexed_indirect)
        return;
    const BufferOffset& at = m_given.index_buffer;
    if (!at.buffer)
        fail_value(call, ": no index buffer; give one as index_buffer of set_render_state");
    if (draw.kind == Kind::indexed_indirect)
        return;
    const uint64_t size = m_given.index_format == IndexFormat::uint16 ? 2 : 4;
    const uint64_t end = (uint64_t(draw.arguments.start_index_location) + draw.arguments.vertex_count) * size;
    if (end > at.room())
        fail(ErrorKind::index, call, ": index_buffer has ", at.room(), " bytes from its offset on, but ",
             draw.arguments.vertex_count, " indices from ", draw.arguments.start_index_location, " on end at byte ",
             end);
}

void RenderPassEncoder::check_feedback(const BoundArguments& bound, const char* call) const
{
    const std::vector<SlotLayout>& slots = m_pipeline->layout().slots;
    for (size_t i = 0; i < std::min(slots.size(), bound.slots.size()); ++i) {
        const bool is_texture = slots[i].kind == SlotKind::texture ||
            slots[i].kind == SlotKind::combined_texture_sampler;
        if (!bound.slots[i] || !is_texture)
            continue;
        for (size_t k = 0; k < m_pass.colors.size(); ++k)
            for (const TextureView* view : {m_pass.colors[k].view.get(), m_pass.colors[k].resolve_target.get()})
                if (view && share_texels(*view, bound.slots[i].get()))
                    fail_value(call, ": parameter '", slots[i].path, "' is ", summary(view->texture()),
                               ", into which this pass draws as color_attachments[", k,
                               "]; copy it before the pass, or use another texture");
        if (!m_pass.depth_stencil || !share_texels(*m_pass.depth_stencil->view, bound.slots[i].get()))
            continue;
        if (slots[i].writable || !m_pass.depth_stencil->depth_read_only)
            fail_value(call, ": parameter '", slots[i].path,
                       "' is the depth_stencil_attachment of this pass; to read it, set depth_read_only");
    }
}

void RenderPassEncoder::check_draw(const command::Draw& draw, const char* call) const
{
    const bool is_mesh = draw.kind == command::Draw::Kind::mesh_tasks;
    if (is_mesh != m_pipeline->is_mesh())
        fail_value(call, ": pipeline '", m_pipeline->label(), "' has a ", m_pipeline->is_mesh() ? "mesh" : "vertex",
                   " shader; draw with ", m_pipeline->is_mesh() ? "draw_mesh_tasks" : "draw or draw_indexed");
    if (draw.arguments.start_instance_location > ~draw.arguments.instance_count ||
        draw.arguments.start_vertex_location > 0x7fffffffu)
        fail_value(call, ": start_vertex_location or start_instance_location is too large");
    check_streams(draw, call);
    check_index_buffer(draw, call);
}

/// The values of the parameters now. Draws share them while nothing changes.
std::shared_ptr<const BoundArguments> RenderPassEncoder::bound_arguments()
{
    ArgumentData now;
    m_root->gather(now);
    if (m_bound && now.slots == m_bound->slots && now.keep_alive == m_bound->keep_alive &&
        same_bytes(m_bound->scopes, now.scopes))
        return m_bound;
    auto bound = std::make_shared<BoundArguments>();
    for (std::span<const uint8_t> bytes : now.scopes)
        bound->scopes.emplace_back(bytes.begin(), bytes.end());
    bound->slots = std::move(now.slots);
    bound->keep_alive = std::move(now.keep_alive);
    return bound;
}

void RenderPassEncoder::add_draw(command::Draw draw, const char* call)
{
    Device* device = m_encoder->device();
    if (!m_targets_checked)
        check_targets(call);
    m_targets_checked = true;
    check_draw(draw, call);
    m_root->check_bound(device->desc().enable_rhi_validation);
    if (auto bound = bound_arguments(); bound != m_bound) {
        check_arguments(device, m_pipeline->layout(), m_pipeline->label(), bound->slots, &m_encoder->m_structures);
        check_feedback(*bound, call);
        if (m_pipeline->print_slot() >= 0)
            bind_print_buffer(device, m_pipeline->print_slot(), std::const_pointer_cast<BoundArguments>(bound)->slots);
        m_bound = std::move(bound);
    }
    if (!m_state)
        m_state = std::make_shared<const RenderState>(resolve_state(m_given, m_pass));
    draw.pipeline = m_pipeline;
    draw.bound = m_bound;
    draw.state = m_state;
    m_pass.items.push_back(std::move(draw));
}

void RenderPassEncoder::draw(const DrawArguments& arguments)
{
    check_open("draw");
    if (!m_pipeline)
        fail_runtime("draw: no pipeline is bound; call bind_pipeline first");
    command::Draw draw;
    draw.arguments = arguments;
    if (arguments.vertex_count && arguments.instance_count)
        add_draw(std::move(draw), "draw");
}

void RenderPassEncoder::draw_indexed(const DrawArguments& arguments)
{
    check_open("draw_indexed");
    if (!m_pipeline)
        fail_runtime("draw_indexed: no pipeline is bound; call bind_pipeline first");
    command::Draw draw;
    draw.kind = command::Draw::Kind::indexed;
    draw.arguments = arguments;
    if (arguments.vertex_count && arguments.instance_count)
        add_draw(std::move(draw), "draw_indexed");
}

void RenderPassEncoder::check_indirect(const command::Draw& draw, const char* call) const
{
    const Device* device = m_encoder->device();
    if (!m_pipeline)
        fail_runtime(call, ": no pipeline is bound; call bind_pipeline first");
    const uint64_t record = draw.kind == command::Draw::Kind::indirect ? 16 : 20;
    const std::string what = cat(call, " 'arg_buffer'"), count_what = cat(call, " 'count_buffer'");
    check_buffer_use(device, draw.indirect.buffer.get(), BufferUsage::indirect_argument, what);
    check_buffer_range(draw.indirect.buffer.get(), draw.indirect.offset, record * draw.max_draw_count, what.c_str());
    if (draw.indirect.offset % 4)
        fail_value(what, ": the offset (", draw.indirect.offset, ") must be a multiple of 4");
    if (!draw.count.buffer)
        return;
    check_buffer_use(device, draw.count.buffer.get(), BufferUsage::indirect_argument, count_what);
    check_buffer_range(draw.count.buffer.get(), draw.count.offset, 4, count_what.c_str());
    if (draw.count.offset % 4)
        fail_value(count_what, ": the offset (", draw.count.offset, ") must be a multiple of 4");
}

void RenderPassEncoder::add_indirect(command::Draw::Kind kind, const char* call, uint32_t max_draw_count,
                                     BufferOffset arguments, BufferOffset count)
{
    check_open(call);
    command::Draw draw;
    draw.kind = kind;
    draw.indirect = std::move(arguments);
    draw.count = std::move(count);
    draw.max_draw_count = max_draw_count;
    check_indirect(draw, call);
    if (max_draw_count)
        add_draw(std::move(draw), call);
}

void RenderPassEncoder::draw_indirect(uint32_t max_draw_count, BufferOffset arguments, BufferOffset count)
{
    add_indirect(command::Draw::Kind::indirect, "draw_indirect", max_draw_count, std::move(arguments),
                 std::move(count));
}

void RenderPassEncoder::draw_indexed_indirect(uint32_t max_draw_count, BufferOffset arguments, BufferOffset count)
{
    add_indirect(command::Draw::Kind::indexed_indirect, "draw_indexed_indirect", max_draw_count, std::move(arguments),
                 std::move(count));
}

void RenderPassEncoder::draw_mesh_tasks(std::array<uint32_t, 3> group_count)
{
    check_open("draw_mesh_tasks");
    require_feature(m_encoder->device(), "mesh_shader", "draw_mesh_tasks");
    if (!m_pipeline)
        fail_runtime("draw_mesh_tasks: no pipeline is bound; call bind_pipeline first");
    for (size_t i = 0; i < 3; ++i)
        if (group_count[i] > 65535)
            fail_value("draw_mesh_tasks: ", group_count[i], " groups in ", "xyz"[i],
                       " are more than 65535; draw parts");
    if (uint64_t(group_count[0]) * group_count[1] * group_count[2] > (1u << 22))
        fail_value("draw_mesh_tasks: ", group_count[0], " x ", group_count[1], " x ", group_count[2],
                   " groups are more than 4194304; draw parts");
    command::Draw draw;
    draw.kind = command::Draw::Kind::mesh_tasks;
    draw.group_count = group_count;
    if (group_count[0] && group_count[1] && group_count[2])
        add_draw(std::move(draw), "draw_mesh_tasks");
}

void RenderPassEncoder::write_timestamp(ref<QueryPool> pool, uint32_t index)
{
    check_open("write_timestamp");
    check_query(m_encoder->device(), pool.get(), index);
    m_pass.items.push_back(command::WriteTimestamp{std::move(pool), index});
}

void RenderPassEncoder::debug_marker(command::DebugMarker::Kind kind, std::string name, std::array<float, 3> color)
{
    using Kind = command::DebugMarker::Kind;
    check_open("debug marker");
    if (kind == Kind::pop && m_debug_depth == 0)
        fail_runtime("pop_debug_group: no debug group is open in this render pass");
    m_debug_depth += kind == Kind::push ? 1 : kind == Kind::pop ? -1 : 0;
    m_pass.items.push_back(command::DebugMarker{kind, std::move(name), color});
}

void RenderPassEncoder::end(bool after_error)
{
    if (m_ended)
        return;
    if (!after_error)
        check_open("end");
    for (; after_error && m_debug_depth; --m_debug_depth)
        m_pass.items.push_back(command::DebugMarker{command::DebugMarker::Kind::pop, "", {}});
    if (m_debug_depth)
        fail_runtime("end: ", m_debug_depth,
                     " debug group(s) of this render pass were not popped; call pop_debug_group() for each");
    m_ended = true;
    m_encoder->m_pass_open = nullptr;
    m_encoder->add(std::move(m_pass));
    m_pipeline.reset();
    m_root.reset();
    m_bound.reset();
    m_state.reset();
    m_given = {};
}

} // namespace spy
