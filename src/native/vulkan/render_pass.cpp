// Render passes: attachments, draws, and what stands between them.
#include "vulkan/recorder.h"
#include "vulkan/render_pipeline.h"

#include "core/error.h"

#include <algorithm>
#include <cstring>

namespace spy {

namespace {

VulkanTexture& texture_of(const TextureView& view) { return *static_cast<VulkanTexture*>(view.texture()); }
VkBuffer buffer_of(const BufferOffset& at) { return static_cast<VulkanBuffer*>(at.buffer.get())->handle(); }
const VulkanRenderPipeline& pipeline_of(const command::Draw& draw)
{
    return *static_cast<const VulkanRenderPipeline*>(draw.pipeline.get());
}

VkAttachmentLoadOp load_op(LoadOp op)
{
    return op == LoadOp::load ? VK_ATTACHMENT_LOAD_OP_LOAD
        : op == LoadOp::clear ? VK_ATTACHMENT_LOAD_OP_CLEAR
                              : VK_ATTACHMENT_LOAD_OP_DONT_CARE;
}

VkAttachmentStoreOp store_op(StoreOp op, bool read_only = false)
{
    if (read_only) // shaders may read it meanwhile
        return VK_ATTACHMENT_STORE_OP_NONE_KHR;
    return op == StoreOp::store ? VK_ATTACHMENT_STORE_OP_STORE : VK_ATTACHMENT_STORE_OP_DONT_CARE;
}

VkRenderingAttachmentInfoKHR color_attachment(const command::ColorAttachment& from)
{
    VkRenderingAttachmentInfoKHR info{VK_STRUCTURE_TYPE_RENDERING_ATTACHMENT_INFO_KHR};
    info.imageView = texture_of(*from.view).attachment_view(from.view->desc());
    info.imageLayout = VK_IMAGE_LAYOUT_GENERAL;
    if (from.resolve_target) {
        info.resolveMode = VK_RESOLVE_MODE_AVERAGE_BIT;
        info.resolveImageView = texture_of(*from.resolve_target).attachment_view(from.resolve_target->desc());
        info.resolveImageLayout = VK_IMAGE_LAYOUT_GENERAL;
    }
    info.loadOp = load_op(from.load_op);
    info.storeOp = store_op(from.store_op);
    std::memcpy(&info.clearValue.color, from.clear_bits.data(), sizeof(from.clear_bits));
    return info;
}

void draw_indirect(const VulkanContext& context, VkCommandBuffer commands, const command::Draw& draw)
{
    const VulkanFunctions& vk = context.vk;
    const bool indexed = draw.kind == command::Draw::Kind::indexed_indirect;
    const uint32_t record = indexed ? 20 : 16;
    const VkBuffer records = buffer_of(draw.indirect);
    if (draw.count.buffer) {
        if (!context.features.v12.drawIndirectCount)
            fail(ErrorKind::not_implemented, indexed ? "draw_indexed_indirect" : "draw_indirect",
                 ": the Vulkan device ", context.name(),
                 " takes no count_buffer (Feature.multi_draw_indirect_count); leave it out");
        (indexed ? vk.CmdDrawIndexedIndirectCount : vk.CmdDrawIndirectCount)(commands, records, draw.indirect.offset,
                                                                             buffer_of(draw.count), draw.count.offset,
                                                                             draw.max_draw_count, record);
        return;
    }
    const auto call = indexed ? vk.CmdDrawIndexedIndirect : vk.CmdDrawIndirect;
    const uint32_t step = context.features.core.features.multiDrawIndirect
        ? context.adapter->properties.limits.maxDrawIndirectCount
        : 1;
    for (uint32_t done = 0; done < draw.max_draw_count; done += std::min(step, draw.max_draw_count - done))
        call(commands, records, draw.indirect.offset + uint64_t(done) * record,
             std::min(step, draw.max_draw_count - done), record);
}

/// One slice for all draws: nothing may be submitted before the pass has ended.
uint64_t uniforms_of(const VulkanContext& context, const command::RenderPass& pass)
{
    uint64_t needed = 0;
    const BoundArguments* bound = nullptr;
    const RenderPipeline* pipeline = nullptr;
    for (const command::RenderItem& item : pass.items)
        if (const auto* draw = std::get_if<command::Draw>(&item);
            draw && (draw->bound.get() != bound || draw->pipeline.get() != pipeline)) {
            needed += uniform_bytes(context, pipeline_of(*draw).bindings());
            bound = draw->bound.get();
            pipeline = draw->pipeline.get();
        }
    return needed;
}

void begin_rendering(const VulkanContext& context, VkCommandBuffer commands, const command::RenderPass& pass)
{
    std::vector<VkRenderingAttachmentInfoKHR> colors;
    for (const command::ColorAttachment& color : pass.colors)
        colors.push_back(color_attachment(color));
    VkRenderingAttachmentInfoKHR depth{VK_STRUCTURE_TYPE_RENDERING_ATTACHMENT_INFO_KHR}, stencil = depth;
    VkRenderingInfoKHR info{VK_STRUCTURE_TYPE_RENDERING_INFO_KHR};
    info.renderArea.extent = {pass.width, pass.height};
    info.layerCount = pass.layer_count;
    info.colorAttachmentCount = uint32_t(colors.size());
    info.pColorAttachments = colors.data();
    if (const auto& from = pass.depth_stencil) {
        const FormatInfo& format = format_info(from->view->desc().format);
        depth.imageView = texture_of(*from->view).attachment_view(from->view->desc());
        depth.imageLayout = VK_IMAGE_LAYOUT_GENERAL;
        stencil.imageView = depth.imageView;
        stencil.imageLayout = depth.imageLayout;
        depth.loadOp = load_op(from->depth_load_op);
        depth.storeOp = store_op(from->depth_store_op, from->depth_read_only);
        depth.clearValue.depthStencil.depth = from->depth_clear_value;
        stencil.loadOp = load_op(from->stencil_load_op);
        stencil.storeOp = store_op(from->stencil_store_op, from->stencil_read_only);
        stencil.clearValue.depthStencil.stencil = from->stencil_clear_value;
        info.pDepthAttachment = format.is_depth() ? &depth : nullptr;
        info.pStencilAttachment = format.is_stencil() ? &stencil : nullptr;
    }
    context.vk.CmdBeginRenderingKHR(commands, &info);
}

void record_state(const VulkanContext& context, VkCommandBuffer commands, const RenderState& state,
                  const RenderPipeline& pipeline)
{
    const VulkanFunctions& vk = context.vk;
    std::array<VkViewport, max_viewports> viewports;
    std::array<VkRect2D, max_viewports> scissors;
    const uint32_t count = uint32_t(state.viewports.size());
    for (uint32_t i = 0; i < count; ++i) {
        const Viewport& v = state.viewports[i];
        viewports[i] = {v.x, v.y + v.height, v.width, -v.height, v.min_depth, v.max_depth}; // y up
        const ScissorRect& r = state.scissor_rects[i];
        scissors[i] = {{int32_t(r.min_x), int32_t(r.min_y)}, {r.max_x - r.min_x, r.max_y - r.min_y}};
    }
    if (context.features.dynamic_state.extendedDynamicState) {
        vk.CmdSetViewportWithCountEXT(commands, count, viewports.data());
        vk.CmdSetScissorWithCountEXT(commands, count, scissors.data());
    } else {
        if (count > 1)
            fail(ErrorKind::not_implemented, "set_render_state: the Vulkan device ", context.name(),
                 " takes one viewport and one rectangle (VK_EXT_extended_dynamic_state is missing)");
        vk.CmdSetViewport(commands, 0, 1, viewports.data());
        vk.CmdSetScissor(commands, 0, 1, scissors.data());
    }
    vk.CmdSetStencilReference(commands, VK_STENCIL_FACE_FRONT_AND_BACK, state.stencil_ref);
    if (!pipeline.is_mesh())
        for (uint32_t i = 0; i < state.vertex_buffers.size(); ++i)
            if (const BufferOffset& at = state.vertex_buffers[i]; at.buffer) {
                const VkBuffer buffer = buffer_of(at);
                vk.CmdBindVertexBuffers(commands, i, 1, &buffer, &at.offset);
            }
    if (state.index_buffer.buffer)
        vk.CmdBindIndexBuffer(commands, buffer_of(state.index_buffer), state.index_buffer.offset,
                              state.index_format == IndexFormat::uint16 ? VK_INDEX_TYPE_UINT16 : VK_INDEX_TYPE_UINT32);
}

void record_draw(const VulkanContext& context, VkCommandBuffer commands, const command::Draw& draw)
{
    using Kind = command::Draw::Kind;
    const VulkanFunctions& vk = context.vk;
    const DrawArguments& a = draw.arguments;
    switch (draw.kind) {
    case Kind::vertices:
        vk.CmdDraw(commands, a.vertex_count, a.instance_count, a.start_vertex_location, a.start_instance_location);
        break;
    case Kind::indexed:
        vk.CmdDrawIndexed(commands, a.vertex_count, a.instance_count, a.start_index_location,
                          int32_t(a.start_vertex_location), a.start_instance_location);
        break;
    case Kind::indirect:
    case Kind::indexed_indirect: draw_indirect(context, commands, draw); break;
    case Kind::mesh_tasks:
        vk.CmdDrawMeshTasksEXT(commands, draw.group_count[0], draw.group_count[1], draw.group_count[2]);
        break;
    }
}

} // namespace

void VulkanRecorder::record(const command::ClearDepthStencil& command)
{
    const auto& texture = *static_cast<VulkanTexture*>(command.texture.get());
    VkImageAspectFlags aspects = 0;
    if (command.clear_depth)
        aspects |= VK_IMAGE_ASPECT_DEPTH_BIT;
    if (command.clear_stencil)
        aspects |= VK_IMAGE_ASPECT_STENCIL_BIT;
    const VkImageSubresourceRange range{aspects, command.range.mip, command.range.mip_count, command.range.layer,
                                        command.range.layer_count};
    const VkClearDepthStencilValue value{command.depth, command.stencil};
    m_context.vk.CmdClearDepthStencilImage(m_queue.begin_command(), texture.handle(), VK_IMAGE_LAYOUT_GENERAL, &value,
                                           1, &range);
}

void VulkanRecorder::record(const command::RenderPass& pass)
{
    const VulkanFunctions& vk = m_context.vk;
    UniformBytes bytes(m_context, m_uploads, uniforms_of(m_context, pass));
    VkCommandBuffer commands = m_queue.begin_command(true);
    for (const command::RenderItem& item : pass.items) // a pass cannot reset queries
        if (const auto* timestamp = std::get_if<command::WriteTimestamp>(&item))
            vk.CmdResetQueryPool(commands, static_cast<VulkanQueryPool*>(timestamp->pool.get())->handle(),
                                 timestamp->index, 1);
    begin_rendering(m_context, commands, pass);
    const command::Draw* last = nullptr;
    std::vector<VkDescriptorSet> sets;
    for (const command::RenderItem& item : pass.items) {
        if (const auto* timestamp = std::get_if<command::WriteTimestamp>(&item)) {
            auto* pool = static_cast<VulkanQueryPool*>(timestamp->pool.get());
            vk.CmdWriteTimestamp(commands, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, pool->handle(), timestamp->index);
            pool->mark_written(timestamp->index, m_queue.timeline.submitted() + 1);
            continue;
        }
        if (const auto* marker = std::get_if<command::DebugMarker>(&item)) {
            record(*marker);
            continue;
        }
        const auto& draw = std::get<command::Draw>(item);
        const VulkanRenderPipeline& pipeline = pipeline_of(draw);
        const bool other = !last || last->pipeline != draw.pipeline;
        if (other)
            vk.CmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_GRAPHICS, pipeline.pipeline());
        if (other || last->bound != draw.bound) {
            const std::vector<std::span<const uint8_t>> scopes(draw.bound->scopes.begin(), draw.bound->scopes.end());
            const ArgumentView arguments{scopes, draw.bound->slots};
            if (other || !pipeline.bindings().has_dynamic_scopes() || last->bound->slots != draw.bound->slots)
                m_descriptors.write_sets(pipeline.bindings(), arguments, bytes, sets);
            m_descriptors.bind(commands, VK_PIPELINE_BIND_POINT_GRAPHICS, pipeline.bindings(), sets, arguments, bytes);
        }
        if (other || last->state != draw.state)
            record_state(m_context, commands, *draw.state, pipeline);
        record_draw(m_context, commands, draw);
        last = &draw;
    }
    vk.CmdEndRenderingKHR(commands);
    if (last)
        m_queue.timeline.note_label(last->pipeline->label());
}

} // namespace spy
