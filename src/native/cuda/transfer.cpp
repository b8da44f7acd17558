// Recorded commands, put on a stream.
#include "cuda/transfer.h"
#include "cuda/fence.h"
#include "cuda/copy.h"
#include "device/profile.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

namespace spy {

namespace {

uint16_t half_bits(float value)
{
    uint32_t bits = std::bit_cast<uint32_t>(value), sign = bits >> 16 & 0x8000;
    float magnitude = std::fabs(value);
    if (std::isnan(value))
        return uint16_t(sign | 0x7e00);
    if (magnitude >= 65520.f)
        return uint16_t(sign | 0x7c00);
    if (magnitude < 6.103515625e-5f) // subnormal: multiples of 2^-24
        return uint16_t(sign | uint32_t(std::nearbyint(magnitude * 16777216.f)));
    bits &= 0x7fffffff;
    bits += 0xfff + (bits >> 13 & 1); // to nearest, ties to even
    return uint16_t(sign | ((bits - 0x38000000) >> 13));
}

/// One channel of a clear value in the format's storage.
uint32_t pack_channel(command::ClearTexture::Kind kind, uint32_t bits, const FormatInfo& info, uint32_t channel)
{
    uint32_t width = info.channel_bit_count[channel];
    uint32_t mask = width == 32 ? ~0u : (1u << width) - 1;
    if (kind != command::ClearTexture::Kind::float_)
        return bits & mask;
    float value = std::bit_cast<float>(bits);
    switch (info.type) {
    case FormatType::float_: return width == 16 ? half_bits(value) : bits;
    case FormatType::unorm_srgb:
        if (channel < 3) {
            value = std::clamp(value, 0.f, 1.f);
            value = value <= 0.0031308f ? value * 12.92f : 1.055f * std::pow(value, 1.f / 2.4f) - 0.055f;
        }
        [[fallthrough]];
    case FormatType::unorm: return uint32_t(std::nearbyint(double(std::clamp(value, 0.f, 1.f)) * mask));
    case FormatType::snorm:
        return uint32_t(int32_t(std::nearbyint(double(std::clamp(value, -1.f, 1.f)) * (mask >> 1)))) & mask;
    case FormatType::sint: return uint32_t(int32_t(value)) & mask;
    default: return uint32_t(std::max(value, 0.f)) & mask;
    }
}

/// The texel as up to four 32-bit words.
std::array<uint32_t, 4> pack_texel(const command::ClearTexture& clear, const FormatInfo& info)
{
    std::array<uint8_t, 16> bytes{};
    uint32_t step = info.bytes_per_block / info.channel_count;
    for (uint32_t channel = 0; channel < info.channel_count; ++channel) {
        uint32_t packed = pack_channel(clear.kind, clear.bits[channel], info, channel);
        std::memcpy(bytes.data() + channel * step, &packed, step);
    }
    return std::bit_cast<std::array<uint32_t, 4>>(bytes);
}

} // namespace

// -------------------------------------------------------------------------------------------------------- submission

uint64_t CudaCommands::submit(const SubmitDesc& desc)
{
    CudaContext::Lock lock(m_context);
    m_context.ensure_usable();
    CUstream stream = cuda_stream_of(desc.stream);
    CudaContext::Relaxed relaxed(m_context.api());
    bool tracked = false;
    {
        CudaQueue::Work work(m_queue, stream);
        tracked = work.tracked;
        for (size_t i = 0; i < desc.wait_fences.size(); ++i)
            static_cast<CudaFence*>(desc.wait_fences[i].get())->wait_on(stream, desc.wait_values[i]);
        for (CommandBuffer* buffer : desc.command_buffers)
            for (const Command& command : buffer->commands())
                execute_timed(command, stream, tracked, lock);
        for (size_t i = 0; i < desc.signal_fences.size(); ++i)
            static_cast<CudaFence*>(desc.signal_fences[i].get())->signal_on(stream, desc.signal_values[i]);
    }
    if (tracked) {
        m_queue.record_mark(); // submissions are asked about one by one, so each gets its own mark
        m_queue.poll();
    }
    return m_queue.newest_id();
}

namespace {

uint64_t address_of(const ref<Buffer>& buffer, uint64_t offset) { return buffer->device_address() + offset; }

[[noreturn]] void refuse_drawing(const Device& device)
{
    require_rasterization(&device, "render pass");
    fail(ErrorKind::not_implemented, "render passes are not implemented by CUDA devices");
}

template <typename... Cases>
struct Overload : Cases... {
    using Cases::operator()...;
};

} // namespace

void CudaCommands::execute_timed(const Command& command, CUstream stream, bool tracked, CudaContext::Lock& lock)
{
    if (!tracked) // recorded into a graph: it does not run now
        return execute(command, stream, tracked, lock);
    timed(
        m_device, command,
        [&](const command::WriteTimestamp& c) { static_cast<CudaQueryPool*>(c.pool.get())->write(c.index, stream); },
        [&] { execute(command, stream, tracked, lock); });
}

void CudaCommands::execute(const Command& recorded, CUstream stream, bool tracked, CudaContext::Lock& lock)
{
    std::visit(Overload{
                   [&](const command::Dispatch& c) {
                       run_recorded(c.kernel.get(), c.group_count, c.scopes, c.slots, stream, tracked);
                   },
                   [&](const command::DispatchIndirect& c) { dispatch_indirect(c, stream, tracked, lock); },
                   [&](const command::CopyBuffer& c) {
                       m_context.check(m_context.api().cuMemcpyAsync(address_of(c.dst, c.dst_offset),
                                                                     address_of(c.src, c.src_offset), c.size, stream),
                                       "copy ", c.size, " bytes between buffers");
                   },
                   [&](const command::FillBuffer& c) { fill_buffer(c, stream); },
                   [&](const command::UploadBuffer& c) {
                       m_context.check(m_context.api().cuMemcpyHtoDAsync(address_of(c.buffer, c.offset), c.data.data(),
                                                                         c.data.size(), stream),
                                       "upload ", c.data.size(), " bytes");
                   },
                   [&](const command::CopyTexture& c) { copy(c, stream); },
                   [&](const command::CopyTextureToBuffer& c) { copy(c, stream); },
                   [&](const command::CopyBufferToTexture& c) { copy(c, stream); },
                   [&](const command::UploadTexture& c) { copy(c, stream); },
                   [&](const command::ClearTexture& c) { clear_texture(c, stream); },
                   [&](const command::WriteTimestamp& c) {
                       static_cast<CudaQueryPool*>(c.pool.get())->write(c.index, stream);
                   },
                   [&](const command::ResolveQuery& c) { // waits on the host: CUDA hands timestamps to the host only
                       std::vector<uint64_t> ticks(c.count);
                       c.pool->get_results(c.index, c.count, ticks.data());
                       m_context.check(m_context.api().cuMemcpyHtoDAsync(address_of(c.buffer, c.offset), ticks.data(),
                                                                         ticks.size() * sizeof(uint64_t), stream),
                                       "resolve timestamps");
                   },
                   [&](const command::Barrier&) { }, // a stream is in order
                   [&](const command::DebugMarker&) { },
                   // encoders refuse these: there is no feature 'rasterization'
                   [&](const command::ClearDepthStencil&) { refuse_drawing(m_device); },
                   [&](const command::RenderPass&) { refuse_drawing(m_device); },
                   [&](const RayCommand auto&) { require_acceleration(&m_device, "acceleration structure"); },
                   [&](const command::ConvertCoopVecMatrices&) { }, // encoders refuse it
                   [&](const command::Callback& c) {
                       // The callback may need a lock (Python's) whose holder waits for ours.
                       lock.unlock();
                       try {
                           c.function({NativeHandleType::CUstream, uint64_t(stream)});
                       } catch (...) {
                           lock.lock();
                           throw;
                       }
                       lock.lock();
                       m_queue.begin_work(stream);
                   },
               },
               recorded);
}

void CudaCommands::dispatch_indirect(const command::DispatchIndirect& dispatch, CUstream stream, bool tracked,
                                     CudaContext::Lock& lock)
{
    // CUDA launches from host counts only, so these are read back, which waits for all earlier work.
    if (!tracked)
        fail_runtime("an indirect dispatch of '", dispatch.kernel->label(), "' cannot be recorded into a CUDA graph");
    std::array<uint32_t, 3> groups{};
    m_queue.wait_stream(stream, &lock);
    m_queue.begin_work(stream); // others may have put work elsewhere meanwhile
    m_context.check(m_context.api().cuMemcpyDtoHAsync(
                        groups.data(), dispatch.buffer->device_address() + dispatch.offset, sizeof(groups), stream),
                    "read indirect dispatch counts");
    m_context.check(m_context.api().cuStreamSynchronize(stream), "read indirect dispatch counts");
    const auto& limit = m_info.limits.max_compute_dispatch_thread_groups;
    for (int i = 0; i < 3; ++i)
        if (groups[size_t(i)] > limit[size_t(i)])
            fail_runtime("indirect dispatch of '", dispatch.kernel->label(), "': ", groups[size_t(i)],
                         " groups in dimension ", i, ", the limit is ", limit[size_t(i)]);
    run_recorded(dispatch.kernel.get(), groups, dispatch.scopes, dispatch.slots, stream, tracked);
}

void CudaCommands::fill_buffer(const command::FillBuffer& fill, CUstream stream)
{
    CUdeviceptr address = fill.buffer->device_address() + fill.offset;
    uint64_t words = address % 4 ? 0 : fill.size / 4;
    if (words)
        m_context.check(m_context.api().cuMemsetD32Async(address, fill.value, words, stream), "fill ", fill.size,
                        " bytes");
    // What is left is short or oddly placed; the pattern goes on byte by byte.
    bool uniform = fill.value == (fill.value & 0xff) * 0x01010101u;
    if (uniform && fill.size > words * 4)
        m_context.check(
            m_context.api().cuMemsetD8Async(address + words * 4, uint8_t(fill.value), fill.size - words * 4, stream),
            "fill ", fill.size, " bytes");
    else if (fill.size > words * 4) {
        std::vector<uint8_t> rest(fill.size - words * 4);
        for (size_t i = 0; i < rest.size(); ++i)
            rest[i] = uint8_t(fill.value >> i % 4 * 8);
        m_context.check(m_context.api().cuMemcpyHtoDAsync(address + words * 4, rest.data(), rest.size(), stream),
                        "fill ", fill.size, " bytes");
    }
}

void CudaCommands::clear_texture(const command::ClearTexture& clear, CUstream stream)
{
    const CudaArray& texture = cuda(clear.texture.get());
    const FormatInfo& info = format_info(texture.desc().format);
    uint32_t bytes = info.bytes_per_block;
    std::array<uint32_t, 4> words = pack_texel(clear, info);
    SubresourceLayout largest = subresource_layout(texture.desc(), clear.range.mip);
    uint64_t texels = uint64_t(largest.width) * largest.height * largest.depth;
    // Arrays have no memset: fill one image in linear memory and copy it to every layer and mip.
    CudaTemporary image{m_memory, stream};
    image.address = m_memory.allocate(texels * bytes, stream, "clearing a texture");
    if (bytes == 1)
        m_context.check(m_context.api().cuMemsetD8Async(image.address, uint8_t(words[0]), texels, stream),
                        "clear a texture");
    else if (bytes == 2)
        m_context.check(m_context.api().cuMemsetD16Async(image.address, uint16_t(words[0]), texels, stream),
                        "clear a texture");
    else if (bytes == 4)
        m_context.check(m_context.api().cuMemsetD32Async(image.address, words[0], texels, stream), "clear a texture");
    else
        for (uint32_t word = 0; word < bytes / 4; ++word) // a column of single words, one texel apart
            m_context.check(
                m_context.api().cuMemsetD2D32Async(image.address + word * 4, bytes, words[word], 1, texels, stream),
                "clear a texture");
    for (uint32_t mip = clear.range.mip; mip < clear.range.mip + clear.range.mip_count; ++mip) {
        SubresourceLayout layout = subresource_layout(texture.desc(), mip);
        for (uint32_t layer = clear.range.layer; layer < clear.range.layer + clear.range.layer_count; ++layer) {
            CUDA_MEMCPY3D copy = copy_extent(uint64_t(layout.width) * bytes, layout.height, layout.depth);
            set_source(copy, CU_MEMORYTYPE_DEVICE, nullptr, image.address, copy.WidthInBytes);
            set_destination(copy, texture, layer, mip, {});
            copy_part(m_context, copy, "clear a texture", stream);
        }
    }
}

void CudaCommands::run_recorded(Kernel* kernel, const std::array<uint32_t, 3>& groups,
                                const std::vector<std::vector<uint8_t>>& scopes, const std::vector<ref<Object>>& slots,
                                CUstream stream, bool tracked)
{
    std::vector<std::span<const uint8_t>> spans(scopes.begin(), scopes.end());
    m_launcher.run(*static_cast<CudaKernel*>(kernel), groups, {spans, slots, {}}, stream, tracked);
}

void CudaCommands::copy(const command::CopyTexture& c, CUstream stream)
{
    CUDA_MEMCPY3D part = copy_extent(uint64_t(c.extent.width) * cuda(c.src.get()).texel_bytes(), c.extent.height,
                                     c.extent.depth);
    set_source(part, cuda(c.src.get()), c.src_layer, c.src_mip, c.src_offset);
    set_destination(part, cuda(c.dst.get()), c.dst_layer, c.dst_mip, c.dst_offset);
    copy_part(m_context, part, "copy between textures", stream);
}

void CudaCommands::copy(const command::CopyTextureToBuffer& c, CUstream stream)
{
    CUDA_MEMCPY3D part = copy_extent(uint64_t(c.extent.width) * cuda(c.src.get()).texel_bytes(), c.extent.height,
                                     c.extent.depth);
    set_source(part, cuda(c.src.get()), c.src_layer, c.src_mip, c.src_offset);
    set_destination(part, CU_MEMORYTYPE_UNIFIED, nullptr, address_of(c.dst, c.dst_offset), c.dst_row_pitch);
    copy_part(m_context, part, "copy a texture to a buffer", stream);
}

void CudaCommands::copy(const command::CopyBufferToTexture& c, CUstream stream)
{
    CUDA_MEMCPY3D part = copy_extent(uint64_t(c.extent.width) * cuda(c.dst.get()).texel_bytes(), c.extent.height,
                                     c.extent.depth);
    set_source(part, CU_MEMORYTYPE_UNIFIED, nullptr, address_of(c.src, c.src_offset), c.src_row_pitch);
    set_destination(part, cuda(c.dst.get()), c.dst_layer, c.dst_mip, c.dst_offset);
    copy_part(m_context, part, "copy a buffer to a texture", stream);
}

void CudaCommands::copy(const command::UploadTexture& c, CUstream stream)
{
    uint64_t row = uint64_t(c.extent.width) * cuda(c.dst.get()).texel_bytes();
    CUDA_MEMCPY3D part = copy_extent(row, c.extent.height, c.extent.depth);
    set_source(part, CU_MEMORYTYPE_HOST, c.data.data(), 0, row);
    set_destination(part, cuda(c.dst.get()), c.layer, c.mip, c.offset);
    copy_part(m_context, part, "upload a texture", stream);
}

} // namespace spy
