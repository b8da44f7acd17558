// Recorded copies, fills, clears, queries and markers.
#include "vulkan/recorder.h"

#include "core/error.h"
#include "device/profile.h"
#include "device/texture_shape.h"

#include <algorithm>
#include <cstring>
#include <numeric>

namespace spy {

namespace {

VulkanBuffer& vulkan(const ref<Buffer>& buffer) { return *static_cast<VulkanBuffer*>(buffer.get()); }
VulkanTexture& vulkan(const ref<Texture>& texture) { return *static_cast<VulkanTexture*>(texture.get()); }
VulkanKernel& vulkan(const ref<Kernel>& kernel) { return *static_cast<VulkanKernel*>(kernel.get()); }

/// Layer and depth of a texel box: 3-D textures count slices in the offset, others in the layer.
VkImageSubresourceLayers layers_of(const VulkanTexture& texture, uint32_t layer, uint32_t mip)
{
    return {texture.aspects(), mip, layer, 1};
}

VkOffset3D offset_of(Offset3 offset) { return {int32_t(offset.x), int32_t(offset.y), int32_t(offset.z)}; }
VkExtent3D extent_of(Extent3 extent) { return {extent.width, extent.height, extent.depth}; }

void refuse_depth_stencil(const VulkanTexture& texture, const char* what)
{
    if (format_info(texture.desc().format).is_stencil())
        fail(ErrorKind::not_implemented, what, ": textures of format ", format_name(texture.desc().format),
             " cannot be copied to or from buffers; use Texture.to_numpy() and copy_from_numpy(), or d32_float");
    refuse_samples(texture.desc(), what);
}

std::vector<std::span<const uint8_t>> spans(const std::vector<std::vector<uint8_t>>& scopes)
{
    return std::vector<std::span<const uint8_t>>(scopes.begin(), scopes.end());
}

} // namespace

VkBufferImageCopy image_copy(const VulkanTexture& texture, uint32_t layer, uint32_t mip, Offset3 offset, Extent3 extent,
                             uint64_t buffer_offset, uint64_t row_pitch, const char* what)
{
    refuse_depth_stencil(texture, what);
    const FormatInfo& format = format_info(texture.desc().format);
    const uint64_t alignment = std::lcm<uint64_t>(format.bytes_per_block, 4);
    if (buffer_offset % alignment && buffer_offset % format.bytes_per_block)
        fail_value(what, ": the buffer offset ", buffer_offset, " must be a multiple of ", format.bytes_per_block,
                   " bytes for format ", format.name);
    if (row_pitch % format.bytes_per_block)
        fail_value(what, ": the row pitch ", row_pitch, " must be a multiple of ", format.bytes_per_block,
                   " bytes for format ", format.name);
    VkBufferImageCopy copy{};
    copy.bufferOffset = buffer_offset;
    copy.bufferRowLength = uint32_t(row_pitch / format.bytes_per_block * format.block_width);
    copy.imageSubresource = layers_of(texture, layer, mip);
    copy.imageOffset = offset_of(offset);
    copy.imageExtent = extent_of(extent);
    return copy;
}

// --- recorded commands

void VulkanRecorder::record(const command::Dispatch& command)
{
    const auto scopes = spans(command.scopes);
    record_launch(vulkan(command.kernel), command.group_count, {scopes, command.slots});
}

void VulkanRecorder::record(const command::DispatchIndirect& command)
{
    const auto scopes = spans(command.scopes);
    VulkanKernel& kernel = vulkan(command.kernel);
    VkCommandBuffer commands = record_bindings(kernel, {scopes, command.slots});
    m_context.vk.CmdDispatchIndirect(commands, vulkan(command.buffer).handle(), command.offset);
    m_queue.timeline.note_label(kernel.label());
}

void VulkanRecorder::record(const command::CopyBuffer& command)
{
    if (!command.size)
        return;
    const VkBufferCopy copy{command.src_offset, command.dst_offset, command.size};
    m_context.vk.CmdCopyBuffer(m_queue.begin_command(), vulkan(command.src).handle(), vulkan(command.dst).handle(), 1,
                               &copy);
}

void VulkanRecorder::record(const command::FillBuffer& command)
{
    // vkCmdFillBuffer works on whole words; odd ends are written from the pattern.
    const uint64_t begin = (command.offset + 3) / 4 * 4, end = (command.offset + command.size) / 4 * 4;
    auto edge = [&](uint64_t from, uint64_t to) {
        if (from >= to)
            return;
        uint8_t pattern[4];
        std::memcpy(pattern, &command.value, 4);
        UploadSlice slice = m_uploads.slice(to - from, 4);
        for (uint64_t i = from; i < to; ++i)
            slice.data[i - from] = pattern[(i - command.offset) % 4];
        const VkBufferCopy copy{slice.offset, from, to - from};
        m_context.vk.CmdCopyBuffer(m_queue.begin_command(), slice.page->buffer, vulkan(command.buffer).handle(), 1,
                                   &copy);
    };
    if (begin >= end) {
        edge(command.offset, command.offset + command.size);
        return;
    }
    // The pattern starts at the offset: rotate it to where the words start.
    const uint32_t shift = uint32_t(begin - command.offset) * 8;
    const uint32_t value = shift ? command.value >> shift | command.value << (32 - shift) : command.value;
    m_context.vk.CmdFillBuffer(m_queue.begin_command(), vulkan(command.buffer).handle(), begin, end - begin, value);
    edge(command.offset, begin);
    edge(end, command.offset + command.size);
}

void VulkanRecorder::record(const command::UploadBuffer& command)
{
    if (command.data.empty())
        return;
    const UploadSlice slice = m_uploads.slice(command.data.size(), 16);
    std::memcpy(slice.data, command.data.data(), command.data.size());
    const VkBufferCopy copy{slice.offset, command.offset, command.data.size()};
    m_context.vk.CmdCopyBuffer(m_queue.begin_command(), slice.page->buffer, vulkan(command.buffer).handle(), 1, &copy);
}

void VulkanRecorder::record(const command::CopyTexture& command)
{
    VulkanTexture &dst = vulkan(command.dst), &src = vulkan(command.src);
    VkImageCopy copy{};
    copy.srcSubresource = layers_of(src, command.src_layer, command.src_mip);
    copy.srcOffset = offset_of(command.src_offset);
    copy.dstSubresource = layers_of(dst, command.dst_layer, command.dst_mip);
    copy.dstOffset = offset_of(command.dst_offset);
    copy.extent = extent_of(command.extent);
    m_context.vk.CmdCopyImage(m_queue.begin_command(), src.handle(), VK_IMAGE_LAYOUT_GENERAL, dst.handle(),
                              VK_IMAGE_LAYOUT_GENERAL, 1, &copy);
}

void VulkanRecorder::record(const command::CopyTextureToBuffer& command)
{
    VulkanTexture& src = vulkan(command.src);
    const VkBufferImageCopy copy = image_copy(src, command.src_layer, command.src_mip, command.src_offset,
                                              command.extent, command.dst_offset, command.dst_row_pitch,
                                              "copy_texture_to_buffer");
    m_context.vk.CmdCopyImageToBuffer(m_queue.begin_command(), src.handle(), VK_IMAGE_LAYOUT_GENERAL,
                                      vulkan(command.dst).handle(), 1, &copy);
}

void VulkanRecorder::record(const command::CopyBufferToTexture& command)
{
    VulkanTexture& dst = vulkan(command.dst);
    const VkBufferImageCopy copy = image_copy(dst, command.dst_layer, command.dst_mip, command.dst_offset,
                                              command.extent, command.src_offset, command.src_row_pitch,
                                              "copy_buffer_to_texture");
    m_context.vk.CmdCopyBufferToImage(m_queue.begin_command(), vulkan(command.src).handle(), dst.handle(),
                                      VK_IMAGE_LAYOUT_GENERAL, 1, &copy);
}

void VulkanRecorder::record_texture_upload(VulkanTexture& texture, uint32_t layer, uint32_t mip, Offset3 offset,
                                           Extent3 extent, const void* data, uint64_t size)
{
    const uint64_t alignment = std::lcm<uint64_t>(format_info(texture.desc().format).bytes_per_block, 16);
    const UploadSlice slice = m_uploads.slice(size, alignment);
    std::memcpy(slice.data, data, size);
    const VkBufferImageCopy copy = image_copy(texture, layer, mip, offset, extent, slice.offset, 0,
                                              "upload_texture_data");
    m_context.vk.CmdCopyBufferToImage(m_queue.begin_command(), slice.page->buffer, texture.handle(),
                                      VK_IMAGE_LAYOUT_GENERAL, 1, &copy);
}

void VulkanRecorder::record(const command::UploadTexture& command)
{
    record_texture_upload(vulkan(command.dst), command.layer, command.mip, command.offset, command.extent,
                          command.data.data(), command.data.size());
}

void VulkanRecorder::record(const command::ClearTexture& command)
{
    VulkanTexture& texture = vulkan(command.texture);
    const FormatInfo& format = format_info(texture.desc().format);
    if (format.is_compressed())
        fail_value("clear_texture: textures of the compressed format ", format.name,
                   " cannot be cleared; upload blocks of zeros with upload_texture_data");
    const VkImageSubresourceRange range{texture.aspects(), command.range.mip, command.range.mip_count,
                                        command.range.layer, command.range.layer_count};
    if (format.is_depth_stencil()) {
        VkClearDepthStencilValue value{};
        std::memcpy(&value.depth, command.bits.data(), 4);
        value.stencil = command.bits[1];
        m_context.vk.CmdClearDepthStencilImage(m_queue.begin_command(), texture.handle(), VK_IMAGE_LAYOUT_GENERAL,
                                               &value, 1, &range);
        return;
    }
    VkClearColorValue value;
    std::memcpy(value.uint32, command.bits.data(), sizeof(value.uint32));
    m_context.vk.CmdClearColorImage(m_queue.begin_command(), texture.handle(), VK_IMAGE_LAYOUT_GENERAL, &value, 1,
                                    &range);
}

void VulkanRecorder::record(const command::WriteTimestamp& command)
{
    auto* pool = static_cast<VulkanQueryPool*>(command.pool.get());
    VkCommandBuffer commands = m_queue.begin_command(); // its barrier orders the timestamp after the work before it
    m_context.vk.CmdResetQueryPool(commands, pool->handle(), command.index, 1);
    m_context.vk.CmdWriteTimestamp(commands, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, pool->handle(), command.index);
    pool->mark_written(command.index, m_queue.timeline.submitted() + 1);
}

void VulkanRecorder::record_timed(Device& device, const Command& command)
{
    timed(
        device, command, [&](const command::WriteTimestamp& c) { record(c); },
        [&] { std::visit([&](const auto& c) { record(c); }, command); });
}

void VulkanRecorder::record(const command::ResolveQuery& command)
{
    auto* pool = static_cast<VulkanQueryPool*>(command.pool.get());
    pool->require_written(command.index, command.count); // the copy waits for results: forever, if there are none
    m_context.vk.CmdCopyQueryPoolResults(m_queue.begin_command(), pool->handle(), command.index, command.count,
                                         vulkan(command.buffer).handle(), command.offset, 8,
                                         VK_QUERY_RESULT_64_BIT | VK_QUERY_RESULT_WAIT_BIT);
}

void VulkanRecorder::record(const command::Barrier&) { m_queue.global_barrier(); }

void VulkanRecorder::record(const command::DebugMarker& command)
{
    using Kind = command::DebugMarker::Kind;
    VkCommandBuffer commands = m_queue.open_list().commands;
    if (!m_context.vk.CmdBeginDebugUtilsLabelEXT || !m_context.instance->has_debug_utils())
        return;
    VkDebugUtilsLabelEXT label{VK_STRUCTURE_TYPE_DEBUG_UTILS_LABEL_EXT};
    label.pLabelName = command.name.c_str();
    std::copy(command.color.begin(), command.color.end(), label.color);
    label.color[3] = 1.f;
    if (command.kind == Kind::push)
        m_context.vk.CmdBeginDebugUtilsLabelEXT(commands, &label);
    else if (command.kind == Kind::pop)
        m_context.vk.CmdEndDebugUtilsLabelEXT(commands);
    else
        m_context.vk.CmdInsertDebugUtilsLabelEXT(commands, &label);
}

} // namespace spy
