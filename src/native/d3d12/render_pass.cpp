// Render passes: attachments, draws, and what stands between them.
#include "d3d12/render_pass.h"

#include "core/error.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace spy {

namespace {

D3D12Texture& texture_of(const ref<TextureView>& view) { return *static_cast<D3D12Texture*>(view->texture()); }
const D3D12Buffer& buffer_of(const BufferOffset& at) { return *static_cast<D3D12Buffer*>(at.buffer.get()); }
const D3D12RenderPipeline& pipeline_of(const command::Draw& draw)
{
    return *static_cast<const D3D12RenderPipeline*>(draw.pipeline.get());
}

D3D12_GPU_VIRTUAL_ADDRESS address_of(const BufferOffset& at)
{
    return buffer_of(at).block()->resource->GetGPUVirtualAddress() + at.offset;
}

UINT bytes_from(const BufferOffset& at)
{
    return UINT(std::min<uint64_t>(at.buffer->desc().size - at.offset, UINT32_MAX));
}

D3D12_PRIMITIVE_TOPOLOGY native_topology(PrimitiveTopology topology)
{
    switch (topology) {
    case PrimitiveTopology::point_list: return D3D_PRIMITIVE_TOPOLOGY_POINTLIST;
    case PrimitiveTopology::line_list: return D3D_PRIMITIVE_TOPOLOGY_LINELIST;
    case PrimitiveTopology::line_strip: return D3D_PRIMITIVE_TOPOLOGY_LINESTRIP;
    case PrimitiveTopology::triangle_strip: return D3D_PRIMITIVE_TOPOLOGY_TRIANGLESTRIP;
    default: return D3D_PRIMITIVE_TOPOLOGY_TRIANGLELIST;
    }
}

/// The API takes floats for integer formats too, and converts them; the largest must not round up.
std::array<float, 4> clear_color(const command::ColorAttachment& from)
{
    std::array<float, 4> color{};
    const FormatType type = format_info(from.view->desc().format).type;
    for (size_t i = 0; i < 4; ++i)
        if (type == FormatType::uint)
            color[i] = std::min(float(from.clear_bits[i]), 4294967040.f);
        else if (type == FormatType::sint)
            color[i] = std::min(float(int32_t(from.clear_bits[i])), 2147483520.f);
        else
            color[i] = std::bit_cast<float>(from.clear_bits[i]);
    return color;
}

PlaneStates depth_states(const command::DepthStencilAttachment& from)
{
    constexpr auto read = D3D12_RESOURCE_STATES(int(D3D12_RESOURCE_STATE_DEPTH_READ) | int(shader_read_state));
    constexpr auto write = D3D12_RESOURCE_STATE_DEPTH_WRITE;
    const bool has_stencil = format_info(from.view->desc().format).is_stencil();
    const auto depth = from.depth_read_only ? read : write;
    return {depth, has_stencil ? (from.stencil_read_only ? read : write) : depth};
}

D3D12_DSV_FLAGS depth_flags(const command::DepthStencilAttachment& from)
{
    const bool has_stencil = format_info(from.view->desc().format).is_stencil();
    return D3D12_DSV_FLAGS((from.depth_read_only ? D3D12_DSV_FLAG_READ_ONLY_DEPTH : 0) |
                           (has_stencil && from.stencil_read_only ? D3D12_DSV_FLAG_READ_ONLY_STENCIL : 0));
}

} // namespace

D3D12RenderPass::D3D12RenderPass(D3D12Recorder& recorder, D3D12Queue& queue, D3D12Descriptors& descriptors,
                                 D3D12Bindings& bindings, D3D12IndirectDraws indirect, const command::RenderPass& pass)
    : m_recorder(recorder),
      m_queue(queue),
      m_descriptors(descriptors),
      m_bindings(bindings),
      m_indirect(indirect),
      m_pass(pass)
{
    find_parts();
    find_shared();
}

D3D12RenderPass::~D3D12RenderPass()
{
    if (m_entered && m_queue.current_list()) // a draw could not be recorded
        leave();
}

void D3D12RenderPass::record()
{
    m_queue.open_list();
    m_queue.barriers.prepare_dispatch();
    enter();
    ID3D12GraphicsCommandList* commands = m_queue.begin_command();
    set_targets(commands);
    clear(commands);
    for (const command::RenderItem& item : m_pass.items) {
        if (const auto* timestamp = std::get_if<command::WriteTimestamp>(&item))
            m_recorder.record(*timestamp);
        else if (const auto* marker = std::get_if<command::DebugMarker>(&item))
            m_recorder.record(*marker);
        else
            draw(std::get<command::Draw>(item));
    }
    leave();
    resolve();
}

// --- attachments

void D3D12RenderPass::find_parts()
{
    for (const command::ColorAttachment& color : m_pass.colors)
        m_parts.push_back({&texture_of(color.view), color.view->desc().range, D3D12_RESOURCE_STATE_RENDER_TARGET});
    if (const auto& depth = m_pass.depth_stencil)
        m_parts.push_back({&texture_of(depth->view), depth->view->desc().range, depth_states(*depth)});
    for (Part& part : m_parts)
        part.is_shared = part.states.first != part.states.stencil &&
            format_info(part.texture->desc().format).is_stencil();
}

/// Textures of which one part is drawn into and another one used by shaders.
void D3D12RenderPass::find_shared()
{
    const BoundArguments* last = nullptr;
    for (const command::RenderItem& item : m_pass.items) {
        const auto* draw = std::get_if<command::Draw>(&item);
        if (!draw || draw->bound.get() == last)
            continue;
        last = draw->bound.get();
        const D3D12RootSignature& root = pipeline_of(*draw).root();
        for (uint32_t slot : root.resources()) {
            const D3D12Texture* texture = slot < last->slots.size() ? bound_texture(last->slots[slot].get()) : nullptr;
            for (Part& part : m_parts) {
                if (!texture || part.texture != texture)
                    continue;
                const SlotLayout& layout = root.layout().slots[slot];
                const D3D12_RESOURCE_STATES rest = layout.writable ? D3D12_RESOURCE_STATE_UNORDERED_ACCESS
                                                                   : shader_read_state;
                if (part.rest != D3D12_RESOURCE_STATE_COMMON && part.rest != rest)
                    fail(ErrorKind::not_implemented, "render pass: '", layout.path,
                         "' is a texture of which one part is drawn into, another one read, and a third one written; "
                         "use a texture of its own for one of them");
                part.rest = rest;
                part.is_shared = true;
            }
        }
    }
    for (Part& part : m_parts) {
        if (part.is_shared && part.rest == D3D12_RESOURCE_STATE_COMMON)
            part.rest = D3D12_RESOURCE_STATE_DEPTH_WRITE;
        if (part.is_shared)
            m_shared.push_back(part.texture);
    }
}

void D3D12RenderPass::enter()
{
    for (const Part& part : m_parts)
        m_queue.barriers.use(*part.texture, part.is_shared ? part.rest : part.states.first);
    m_entered = true;
    for (const Part& part : m_parts)
        if (part.is_shared)
            m_queue.barriers.use(*part.texture, part.range, part.rest, part.states);
}

void D3D12RenderPass::leave()
{
    m_entered = false;
    for (const Part& part : m_parts)
        if (part.is_shared)
            m_queue.barriers.use(*part.texture, part.range, part.states, part.rest);
}

void D3D12RenderPass::set_targets(ID3D12GraphicsCommandList* commands)
{
    D3D12_CPU_DESCRIPTOR_HANDLE targets[max_color_attachments], depth = m_descriptors.depth();
    for (uint32_t i = 0; i < m_pass.colors.size(); ++i) {
        targets[i] = m_descriptors.target(i);
        texture_of(m_pass.colors[i].view).write_target_view(m_pass.colors[i].view->desc(), targets[i]);
    }
    const auto& from = m_pass.depth_stencil;
    if (from)
        texture_of(from->view).write_depth_view(from->view->desc(), depth_flags(*from), depth);
    commands->OMSetRenderTargets(UINT(m_pass.colors.size()), targets, false, from ? &depth : nullptr);
    constexpr float blend_factor[4] = {};
    commands->OMSetBlendFactor(blend_factor);
    m_list = m_queue.current_list()->serial;
    m_last = nullptr;
}

void D3D12RenderPass::clear(ID3D12GraphicsCommandList* commands)
{
    for (uint32_t i = 0; i < m_pass.colors.size(); ++i)
        if (m_pass.colors[i].load_op == LoadOp::clear)
            commands->ClearRenderTargetView(m_descriptors.target(i), clear_color(m_pass.colors[i]).data(), 0, nullptr);
    const auto& depth = m_pass.depth_stencil;
    if (!depth)
        return;
    const bool has_stencil = format_info(depth->view->desc().format).is_stencil();
    const auto flags = D3D12_CLEAR_FLAGS(
        (depth->depth_load_op == LoadOp::clear ? D3D12_CLEAR_FLAG_DEPTH : 0) |
        (has_stencil && depth->stencil_load_op == LoadOp::clear ? D3D12_CLEAR_FLAG_STENCIL : 0));
    if (flags)
        commands->ClearDepthStencilView(m_descriptors.depth(), flags, depth->depth_clear_value,
                                        UINT8(depth->stencil_clear_value), 0, nullptr);
}

/// Each layer by itself: they are subresources of their own.
void D3D12RenderPass::resolve()
{
    for (const command::ColorAttachment& color : m_pass.colors) {
        if (!color.resolve_target)
            continue;
        D3D12Texture &from = texture_of(color.view), &to = texture_of(color.resolve_target);
        const SubresourceRange &source = color.view->desc().range, &target = color.resolve_target->desc().range;
        m_queue.barriers.use(from, D3D12_RESOURCE_STATE_RESOLVE_SOURCE);
        m_queue.barriers.use(to, D3D12_RESOURCE_STATE_RESOLVE_DEST);
        ID3D12GraphicsCommandList* commands = m_queue.begin_command();
        for (uint32_t layer = 0; layer < m_pass.layer_count; ++layer)
            commands->ResolveSubresource(to.resource(), to.subresource(target.layer + layer, target.mip),
                                         from.resource(), from.subresource(source.layer + layer, source.mip),
                                         DXGI_FORMAT(format_info(color.view->desc().format).dxgi_format));
    }
}

// --- draws

void D3D12RenderPass::draw(const command::Draw& draw)
{
    const D3D12RenderPipeline& pipeline = pipeline_of(draw);
    if (!m_last || m_last->pipeline != draw.pipeline || m_last->bound != draw.bound) {
        const std::vector<std::span<const uint8_t>> scopes(draw.bound->scopes.begin(), draw.bound->scopes.end());
        m_bound = m_bindings.write(pipeline.root(), {scopes, draw.bound->slots}); // may have begun another list
        if (m_bound.list != m_list)
            set_targets(m_queue.begin_command());
    }
    m_bindings.prepare_slots(pipeline.root(), draw.bound->slots, m_shared);
    use_depth(pipeline.state().depth_stencil);
    use_buffers(draw, pipeline);
    ID3D12GraphicsCommandList* commands = m_queue.begin_command();
    const bool other = !m_last || m_last->pipeline != draw.pipeline;
    if (other)
        set_pipeline(commands, pipeline);
    if (other || m_last->bound != draw.bound)
        m_bindings.bind_draw(commands, pipeline.root(), m_bound);
    if (other || m_last->state != draw.state)
        set_state(commands, *draw.state, pipeline);
    execute(commands, draw);
    m_last = &draw;
    m_queue.timeline.note_label(pipeline.label());
}

/// libvkd3d takes an attachment that a pipeline does not write for one that is read only.
void D3D12RenderPass::use_depth([[maybe_unused]] const DepthStencilDesc& desc)
{
#ifndef _WIN32
    if (!m_pass.depth_stencil)
        return;
    Part& part = m_parts.back();
    const command::DepthStencilAttachment& from = *m_pass.depth_stencil;
    const bool writes = desc.writes_depth() || desc.writes_stencil();
    const bool is_sampled = part.is_shared && part.rest == shader_read_state;
    const PlaneStates states = is_sampled ? depth_states(from)
        : writes                          ? PlaneStates(D3D12_RESOURCE_STATE_DEPTH_WRITE)
                                          : PlaneStates(D3D12_RESOURCE_STATE_DEPTH_READ);
    if (!part.is_shared)
        m_queue.barriers.use(*part.texture, states.first);
    else if (states.first != part.states.first || states.stencil != part.states.stencil)
        m_queue.barriers.use(*part.texture, part.range, part.states, states);
    part.states = states;
#endif
}

void D3D12RenderPass::use_buffers(const command::Draw& draw, const D3D12RenderPipeline& pipeline)
{
    auto use = [&](const BufferOffset& at, D3D12_RESOURCE_STATES state) {
        if (at.buffer)
            m_queue.barriers.use(*buffer_of(at).block(), state);
    };
    for (uint32_t slot : pipeline.streams())
        use(draw.state->vertex_buffers[slot], D3D12_RESOURCE_STATE_VERTEX_AND_CONSTANT_BUFFER);
    using Kind = command::Draw::Kind;
    if (draw.kind == Kind::indexed || draw.kind == Kind::indexed_indirect)
        use(draw.state->index_buffer, D3D12_RESOURCE_STATE_INDEX_BUFFER);
    use(draw.indirect, D3D12_RESOURCE_STATE_INDIRECT_ARGUMENT);
    use(draw.count, D3D12_RESOURCE_STATE_INDIRECT_ARGUMENT);
}

void D3D12RenderPass::set_pipeline(ID3D12GraphicsCommandList* commands, const D3D12RenderPipeline& pipeline)
{
    D3D12List& list = *m_queue.current_list();
    if (list.bound != pipeline.pipeline()) {
        commands->SetPipelineState(pipeline.pipeline());
        commands->SetGraphicsRootSignature(pipeline.root().handle());
        commands->SetGraphicsRootDescriptorTable(0, m_descriptors.windows());
        list.bound = pipeline.pipeline();
    }
    commands->IASetPrimitiveTopology(native_topology(pipeline.state().topology));
}

void D3D12RenderPass::set_state(ID3D12GraphicsCommandList* commands, const RenderState& state,
                                const D3D12RenderPipeline& pipeline)
{
    std::array<D3D12_VIEWPORT, max_viewports> viewports;
    std::array<D3D12_RECT, max_viewports> scissors;
    const auto count = UINT(state.viewports.size());
    for (size_t i = 0; i < count; ++i) {
        const Viewport& v = state.viewports[i];
        viewports[i] = {v.x, v.y, v.width, v.height, v.min_depth, v.max_depth};
        const ScissorRect& r = state.scissor_rects[i];
        scissors[i] = {LONG(r.min_x), LONG(r.min_y), LONG(r.max_x), LONG(r.max_y)};
    }
    commands->RSSetViewports(count, viewports.data());
    commands->RSSetScissorRects(count, scissors.data());
    commands->OMSetStencilRef(state.stencil_ref);
    for (uint32_t slot : pipeline.streams()) {
        const BufferOffset& at = state.vertex_buffers[slot];
        const D3D12_VERTEX_BUFFER_VIEW view{address_of(at), bytes_from(at),
                                            pipeline.state().input.vertex_streams[slot].stride};
        commands->IASetVertexBuffers(slot, 1, &view);
    }
    if (state.index_buffer.buffer) {
        const D3D12_INDEX_BUFFER_VIEW view{address_of(state.index_buffer), bytes_from(state.index_buffer),
                                           state.index_format == IndexFormat::uint16 ? DXGI_FORMAT_R16_UINT
                                                                                     : DXGI_FORMAT_R32_UINT};
        commands->IASetIndexBuffer(&view);
    }
}

void D3D12RenderPass::execute(ID3D12GraphicsCommandList* commands, const command::Draw& draw)
{
    using Kind = command::Draw::Kind;
    const DrawArguments& a = draw.arguments;
    switch (draw.kind) {
    case Kind::vertices:
        commands->DrawInstanced(a.vertex_count, a.instance_count, a.start_vertex_location, a.start_instance_location);
        break;
    case Kind::indexed:
        commands->DrawIndexedInstanced(a.vertex_count, a.instance_count, a.start_index_location,
                                       INT(a.start_vertex_location), a.start_instance_location);
        break;
    case Kind::indirect:
    case Kind::indexed_indirect:
        commands->ExecuteIndirect(draw.kind == Kind::indirect ? m_indirect.draw : m_indirect.indexed,
                                  draw.max_draw_count, buffer_of(draw.indirect).block()->resource.get(),
                                  draw.indirect.offset,
                                  draw.count.buffer ? buffer_of(draw.count).block()->resource.get() : nullptr,
                                  draw.count.buffer ? draw.count.offset : 0);
        break;
    case Kind::mesh_tasks:
        fail(ErrorKind::not_implemented,
             "draw_mesh_tasks: mesh shaders are not implemented on d3d12; use a vulkan "
             "device");
    }
}

// --- recorder

void D3D12Recorder::record(const command::RenderPass& command)
{
    D3D12RenderPass(*this, m_queue, m_descriptors, m_bindings, {m_indirect_draw.get(), m_indirect_indexed.get()},
                    command)
        .record();
    m_queue.barriers.note_writes(); // of fragments
}

void D3D12Recorder::record(const command::ClearDepthStencil& command)
{
    auto& texture = *static_cast<D3D12Texture*>(command.texture.get());
    m_queue.barriers.use(texture, D3D12_RESOURCE_STATE_DEPTH_WRITE);
    ID3D12GraphicsCommandList* commands = m_queue.begin_command();
    const auto flags = D3D12_CLEAR_FLAGS((command.clear_depth ? D3D12_CLEAR_FLAG_DEPTH : 0) |
                                         (command.clear_stencil ? D3D12_CLEAR_FLAG_STENCIL : 0));
    for (uint32_t mip = command.range.mip; mip < command.range.mip + command.range.mip_count; ++mip) {
        TextureViewDesc view;
        view.range = {command.range.layer, command.range.layer_count, mip, 1};
        texture.write_depth_view(view, D3D12_DSV_FLAG_NONE, m_descriptors.depth());
        commands->ClearDepthStencilView(m_descriptors.depth(), flags, command.depth, UINT8(command.stencil), 0,
                                        nullptr);
    }
}

} // namespace spy
