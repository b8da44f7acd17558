// Launches, submitted command lists and host access.
#include "cuda/cuda_backend.h"
#include "cuda/cuda_copy.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

namespace spy {

namespace {

/// Frees memory of one launch in the stream's order, also when the launch fails.
struct Temporary {
    CudaDevice& device;
    CUstream stream;
    CUdeviceptr address = 0;
    ~Temporary()
    {
        if (address)
            device.free(address, stream);
    }
};

/// Uploads up to this size never wait in the driver.
constexpr uint64_t pageable_at_once = 64 << 10;

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
    case FormatType::float_:
        return width == 16 ? half_bits(value) : bits;
    case FormatType::unorm_srgb:
        if (channel < 3) {
            value = std::clamp(value, 0.f, 1.f);
            value = value <= 0.0031308f ? value * 12.92f : 1.055f * std::pow(value, 1.f / 2.4f) - 0.055f;
        }
        [[fallthrough]];
    case FormatType::unorm:
        return uint32_t(std::nearbyint(double(std::clamp(value, 0.f, 1.f)) * mask));
    case FormatType::snorm:
        return uint32_t(int32_t(std::nearbyint(double(std::clamp(value, -1.f, 1.f)) * (mask >> 1)))) & mask;
    case FormatType::sint:
        return uint32_t(int32_t(value)) & mask;
    default:
        return uint32_t(std::max(value, 0.f)) & mask;
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

// ---------------------------------------------------------------------------------------------------------- launches

void CudaDevice::launch(const LaunchDesc& desc)
{
    Lock lock(*this);
    ensure_usable();
    CUstream stream = stream_of(desc.stream);
    Work work(*this, stream);
    run_kernel(*static_cast<CudaKernel*>(desc.kernel), desc.group_count, desc.arguments, stream, work.tracked);
}

void CudaDevice::start(CudaKernel& kernel, const std::array<uint32_t, 3>& groups, void* parameters, CUstream stream)
{
    void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, parameters, CU_LAUNCH_PARAM_BUFFER_SIZE, &kernel.m_parameter_bytes, CU_LAUNCH_PARAM_END};
    const uint32_t* size = kernel.m_layout->group_size;
    m_recent[m_recent_count++ % recent_size] = kernel.m_label_index;
    CUresult result = m_api.cuLaunchKernel(kernel.m_function, groups[0], groups[1], groups[2], size[0], size[1], size[2], 0, stream, nullptr,
                                           kernel.m_parameter_bytes ? extra : nullptr);
    if (result != CUDA_SUCCESS) [[unlikely]] {
        int registers = 0, threads = 0;
        m_api.cuFuncGetAttribute(&registers, CU_FUNC_ATTRIBUTE_NUM_REGS, kernel.m_function);
        m_api.cuFuncGetAttribute(&threads, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, kernel.m_function);
        raise(result, cat("launch '", kernel.m_label, "' with ", groups[0], " x ", groups[1], " x ", groups[2], " groups of ", size[0], " x ", size[1], " x ",
                          size[2], " threads (the kernel uses ", registers, " registers and allows ", threads, " threads in a group)"));
    }
}

void CudaDevice::run_kernel(CudaKernel& kernel, const std::array<uint32_t, 3>& groups, const Arguments& arguments, CUstream stream, bool tracked)
{
    if (!kernel.m_function)
        fail_runtime("'", kernel.m_label, "' was released with its device");
    if (!groups[0] || !groups[1] || !groups[2])
        return;
    if (!kernel.m_plain) {
        run_bound(kernel, groups, arguments, stream, tracked);
        return;
    }
    std::span<const uint8_t> bytes = arguments.scopes.size() > 1 ? arguments.scopes[1] : std::span<const uint8_t>();
    if (bytes.size() >= kernel.m_parameter_bytes) [[likely]] {
        start(kernel, groups, const_cast<uint8_t*>(bytes.data()), stream); // the driver copies them before it returns
        return;
    }
    if (!bytes.empty())
        std::memcpy(kernel.m_scratch.data(), bytes.data(), bytes.size());
    std::memset(kernel.m_scratch.data() + bytes.size(), 0, kernel.m_parameter_bytes - bytes.size());
    start(kernel, groups, kernel.m_scratch.data(), stream);
}

void CudaDevice::run_bound(CudaKernel& kernel, const std::array<uint32_t, 3>& groups, const Arguments& arguments, CUstream stream, bool tracked)
{
    uint8_t* scratch = kernel.m_scratch.data();
    const auto& scopes = kernel.m_layout->scopes;
    std::memset(scratch, 0, kernel.m_scratch.size());
    for (size_t scope = 0; scope < scopes.size() && scope < arguments.scopes.size(); ++scope)
        if (!arguments.scopes[scope].empty())
            std::memcpy(scratch + kernel.m_scratch_offset[scope], arguments.scopes[scope].data(), std::min<size_t>(arguments.scopes[scope].size(), scopes[scope].size));
    std::vector<Shadow> shadows;
    for (size_t slot = 0; slot < kernel.m_slots.size(); ++slot)
        bind_slot(kernel, slot, arguments, stream, shadows);

    if (!tracked && (kernel.m_block_bytes || kernel.m_global_bytes || !shadows.empty()))
        fail_runtime("'", kernel.m_label, "' cannot be recorded into a CUDA graph: it has parameters outside of its entry point (globals, ConstantBuffer, "
                     "ParameterBlock) or texture views that are copied; pass them as entry point parameters");
    Temporary block{*this, stream};
    if (kernel.m_block_bytes) {
        block.address = allocate(kernel.m_block_bytes, stream, "parameter blocks");
        for (size_t scope = 2; scope < scopes.size(); ++scope) {
            if (scopes[scope].parent < 0)
                continue;
            CUdeviceptr address = block.address + (kernel.m_scratch_offset[scope] - kernel.m_block_begin);
            std::memcpy(scratch + kernel.m_scratch_offset[size_t(scopes[scope].parent)] + scopes[scope].parent_offset, &address, sizeof(address));
        }
        // Pageable memory: the driver takes a copy before it returns.
        check(m_api.cuMemcpyHtoDAsync(block.address, scratch + kernel.m_block_begin, kernel.m_block_bytes, stream), "upload the parameter blocks of '", kernel.m_label, "'");
    }
    if (kernel.m_globals) {
        const uint8_t* globals = scratch + kernel.m_scratch_offset[0];
        if (!kernel.m_globals_uploaded || std::memcmp(globals, kernel.m_globals_now.data(), kernel.m_global_bytes)) {
            kernel.m_globals_uploaded = false;
            check(m_api.cuMemcpyHtoDAsync(kernel.m_globals, globals, kernel.m_global_bytes, stream), "upload the global parameters of '", kernel.m_label, "'");
            std::memcpy(kernel.m_globals_now.data(), globals, kernel.m_global_bytes);
            kernel.m_globals_uploaded = true;
        }
    }
    start(kernel, groups, scratch + kernel.m_scratch_offset[1], stream);
    for (const Shadow& shadow : shadows)
        if (shadow.write_back)
            copy_shadow(shadow, true, stream);
    for (const Shadow& shadow : shadows)
        m_retired.push_back(shadow.copy); // freed once this work counts as submitted
}

void CudaDevice::run_recorded(Kernel* kernel, const std::array<uint32_t, 3>& groups, const std::vector<std::vector<uint8_t>>& scopes,
                              const std::vector<ref<Object>>& slots, CUstream stream, bool tracked)
{
    std::vector<std::span<const uint8_t>> spans(scopes.begin(), scopes.end());
    run_kernel(*static_cast<CudaKernel*>(kernel), groups, {spans, slots, {}}, stream, tracked);
}

// -------------------------------------------------------------------------------------------------------- submission

uint64_t CudaDevice::submit(const SubmitDesc& desc)
{
    Lock lock(*this);
    ensure_usable();
    CUstream stream = stream_of(desc.stream);
    Relaxed relaxed(m_api);
    bool tracked = false;
    {
        Work work(*this, stream);
        tracked = work.tracked;
        for (size_t i = 0; i < desc.wait_fences.size(); ++i)
            static_cast<CudaFence*>(desc.wait_fences[i].get())->wait_on(stream, desc.wait_values[i]);
        for (CommandBuffer* buffer : desc.command_buffers)
            for (const Command& command : buffer->commands())
                execute(command, stream, tracked, lock);
        for (size_t i = 0; i < desc.signal_fences.size(); ++i)
            static_cast<CudaFence*>(desc.signal_fences[i].get())->signal_on(stream, desc.signal_values[i]);
    }
    if (tracked) {
        record_mark(); // submissions are asked about one by one, so each gets its own mark
        poll();
    }
    return m_sequence.load();
}

namespace {

template <typename... Cases>
struct Overload : Cases... { using Cases::operator()...; };

} // namespace

void CudaDevice::execute(const Command& recorded, CUstream stream, bool tracked, Lock& lock)
{
    auto address = [](const ref<Buffer>& buffer, uint64_t offset) { return buffer->device_address() + offset; };
    std::visit(Overload{
        [&](const command::Dispatch& c) { run_recorded(c.kernel.get(), c.group_count, c.scopes, c.slots, stream, tracked); },
        [&](const command::DispatchIndirect& c) { dispatch_indirect(c, stream, tracked, lock); },
        [&](const command::CopyBuffer& c) {
            check(m_api.cuMemcpyAsync(address(c.dst, c.dst_offset), address(c.src, c.src_offset), c.size, stream), "copy ", c.size, " bytes between buffers");
        },
        [&](const command::FillBuffer& c) { fill_buffer(c, stream); },
        [&](const command::UploadBuffer& c) {
            check(m_api.cuMemcpyHtoDAsync(address(c.buffer, c.offset), c.data.data(), c.data.size(), stream), "upload ", c.data.size(), " bytes");
        },
        [&](const command::CopyTexture& c) {
            CUDA_MEMCPY3D copy = copy_extent(uint64_t(c.extent.width) * cuda(c.src.get()).texel_bytes(), c.extent.height, c.extent.depth);
            set_source(copy, cuda(c.src.get()), c.src_layer, c.src_mip, c.src_offset);
            set_destination(copy, cuda(c.dst.get()), c.dst_layer, c.dst_mip, c.dst_offset);
            copy_texture_part(copy, "copy between textures", stream);
        },
        [&](const command::CopyTextureToBuffer& c) {
            CUDA_MEMCPY3D copy = copy_extent(uint64_t(c.extent.width) * cuda(c.src.get()).texel_bytes(), c.extent.height, c.extent.depth);
            set_source(copy, cuda(c.src.get()), c.src_layer, c.src_mip, c.src_offset);
            set_destination(copy, CU_MEMORYTYPE_UNIFIED, nullptr, address(c.dst, c.dst_offset), c.dst_row_pitch);
            copy_texture_part(copy, "copy a texture to a buffer", stream);
        },
        [&](const command::CopyBufferToTexture& c) {
            CUDA_MEMCPY3D copy = copy_extent(uint64_t(c.extent.width) * cuda(c.dst.get()).texel_bytes(), c.extent.height, c.extent.depth);
            set_source(copy, CU_MEMORYTYPE_UNIFIED, nullptr, address(c.src, c.src_offset), c.src_row_pitch);
            set_destination(copy, cuda(c.dst.get()), c.dst_layer, c.dst_mip, c.dst_offset);
            copy_texture_part(copy, "copy a buffer to a texture", stream);
        },
        [&](const command::UploadTexture& c) {
            uint64_t row = uint64_t(c.extent.width) * cuda(c.dst.get()).texel_bytes();
            CUDA_MEMCPY3D copy = copy_extent(row, c.extent.height, c.extent.depth);
            set_source(copy, CU_MEMORYTYPE_HOST, c.data.data(), 0, row);
            set_destination(copy, cuda(c.dst.get()), c.layer, c.mip, c.offset);
            copy_texture_part(copy, "upload a texture", stream);
        },
        [&](const command::ClearTexture& c) { clear_texture(c, stream); },
        [&](const command::WriteTimestamp& c) { static_cast<CudaQueryPool*>(c.pool.get())->write(c.index, stream); },
        [&](const command::ResolveQuery& c) { // waits on the host: CUDA hands timestamps to the host only
            std::vector<uint64_t> ticks(c.count);
            c.pool->get_results(c.index, c.count, ticks.data());
            check(m_api.cuMemcpyHtoDAsync(address(c.buffer, c.offset), ticks.data(), ticks.size() * sizeof(uint64_t), stream), "resolve timestamps");
        },
        [&](const command::Barrier&) {}, // a stream is in order
        [&](const command::DebugMarker&) {},
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
            begin_work(stream);
        },
    }, recorded);
}

void CudaDevice::copy_texture_part(CUDA_MEMCPY3D copy, const char* what, CUstream stream)
{
    check(m_api.cuMemcpy3DAsync(&copy, stream), what, " (", copy.WidthInBytes, " bytes x ", copy.Height, " x ", copy.Depth, ")");
}

void CudaDevice::dispatch_indirect(const command::DispatchIndirect& dispatch, CUstream stream, bool tracked, Lock& lock)
{
    // CUDA launches from host counts only, so these are read back, which waits for all earlier work.
    if (!tracked)
        fail_runtime("an indirect dispatch of '", dispatch.kernel->label(), "' cannot be recorded into a CUDA graph");
    std::array<uint32_t, 3> groups{};
    settle(stream, &lock);
    begin_work(stream); // others may have put work elsewhere meanwhile
    check(m_api.cuMemcpyDtoHAsync(groups.data(), dispatch.buffer->device_address() + dispatch.offset, sizeof(groups), stream), "read indirect dispatch counts");
    check(m_api.cuStreamSynchronize(stream), "read indirect dispatch counts");
    const auto& limit = m_info.limits.max_compute_dispatch_thread_groups;
    for (int i = 0; i < 3; ++i)
        if (groups[size_t(i)] > limit[size_t(i)])
            fail_runtime("indirect dispatch of '", dispatch.kernel->label(), "': ", groups[size_t(i)], " groups in dimension ", i, ", the limit is ", limit[size_t(i)]);
    run_recorded(dispatch.kernel.get(), groups, dispatch.scopes, dispatch.slots, stream, tracked);
}

void CudaDevice::fill_buffer(const command::FillBuffer& fill, CUstream stream)
{
    CUdeviceptr address = fill.buffer->device_address() + fill.offset;
    uint64_t words = address % 4 ? 0 : fill.size / 4;
    if (words)
        check(m_api.cuMemsetD32Async(address, fill.value, words, stream), "fill ", fill.size, " bytes");
    // What is left is short or oddly placed; the pattern goes on byte by byte.
    bool uniform = fill.value == (fill.value & 0xff) * 0x01010101u;
    if (uniform && fill.size > words * 4)
        check(m_api.cuMemsetD8Async(address + words * 4, uint8_t(fill.value), fill.size - words * 4, stream), "fill ", fill.size, " bytes");
    else if (fill.size > words * 4) {
        std::vector<uint8_t> rest(fill.size - words * 4);
        for (size_t i = 0; i < rest.size(); ++i)
            rest[i] = uint8_t(fill.value >> i % 4 * 8);
        check(m_api.cuMemcpyHtoDAsync(address + words * 4, rest.data(), rest.size(), stream), "fill ", fill.size, " bytes");
    }
}

void CudaDevice::clear_texture(const command::ClearTexture& clear, CUstream stream)
{
    const CudaArray& texture = cuda(clear.texture.get());
    const FormatInfo& info = format_info(texture.desc().format);
    uint32_t bytes = info.bytes_per_block;
    std::array<uint32_t, 4> words = pack_texel(clear, info);
    SubresourceLayout largest = subresource_layout(texture.desc(), clear.range.mip);
    uint64_t texels = uint64_t(largest.width) * largest.height * largest.depth;
    // Arrays have no memset: fill one image in linear memory and copy it to every layer and mip.
    Temporary image{*this, stream};
    image.address = allocate(texels * bytes, stream, "clearing a texture");
    if (bytes == 1)
        check(m_api.cuMemsetD8Async(image.address, uint8_t(words[0]), texels, stream), "clear a texture");
    else if (bytes == 2)
        check(m_api.cuMemsetD16Async(image.address, uint16_t(words[0]), texels, stream), "clear a texture");
    else if (bytes == 4)
        check(m_api.cuMemsetD32Async(image.address, words[0], texels, stream), "clear a texture");
    else
        for (uint32_t word = 0; word < bytes / 4; ++word) // a column of single words, one texel apart
            check(m_api.cuMemsetD2D32Async(image.address + word * 4, bytes, words[word], 1, texels, stream), "clear a texture");
    for (uint32_t mip = clear.range.mip; mip < clear.range.mip + clear.range.mip_count; ++mip) {
        SubresourceLayout layout = subresource_layout(texture.desc(), mip);
        for (uint32_t layer = clear.range.layer; layer < clear.range.layer + clear.range.layer_count; ++layer) {
            CUDA_MEMCPY3D copy = copy_extent(uint64_t(layout.width) * bytes, layout.height, layout.depth);
            set_source(copy, CU_MEMORYTYPE_DEVICE, nullptr, image.address, copy.WidthInBytes);
            set_destination(copy, texture, layer, mip, {});
            copy_texture_part(copy, "clear a texture", stream);
        }
    }
}

// ------------------------------------------------------------------------------------------------------- host access

void CudaDevice::read_buffer(Buffer* buffer, uint64_t offset, void* data, uint64_t size)
{
    if (!size)
        return;
    Lock lock(*this);
    ensure_usable();
    Relaxed relaxed(m_api);
    CUstream queue = own_queue();
    void* staging = nullptr;
    if (size <= staging_size && !buffer->host_pointer()) {
        // Pinned memory spares small reads the driver's own staging.
        if (m_staging.empty())
            check(m_api.cuMemHostAlloc(&staging, staging_size, CU_MEMHOSTALLOC_PORTABLE), "allocate pinned host memory");
        else {
            staging = m_staging.back();
            m_staging.pop_back();
        }
    }
    struct Return { // also when the wait is interrupted; a copy still under way comes before any that follows
        CudaDevice& device;
        void* piece;
        ~Return() { if (piece) device.m_staging.push_back(piece); }
    } give_back{*this, staging};
    CUresult result = CUDA_SUCCESS;
    if (staging)
        result = m_api.cuMemcpyDtoHAsync(staging, buffer->device_address() + offset, size, queue);
    check(result, "read ", size, " bytes of a buffer");
    settle(queue, &lock); // other threads may go on launching while this one waits
    if (staging)
        std::memcpy(data, staging, size);
    else if (buffer->host_pointer())
        std::memcpy(data, static_cast<uint8_t*>(buffer->host_pointer()) + offset, size);
    else
        check(m_api.cuMemcpyDtoHAsync(data, buffer->device_address() + offset, size, own_queue()), "read ", size, " bytes of a buffer");
}

void CudaDevice::write_buffer(Buffer* buffer, uint64_t offset, const void* data, uint64_t size)
{
    if (!size)
        return;
    Lock lock(*this);
    ensure_usable();
    Relaxed relaxed(m_api);
    CUstream queue = own_queue();
    if (buffer->host_pointer()) {
        settle(queue, &lock); // the device may still read what stands there
        std::memcpy(static_cast<uint8_t*>(buffer->host_pointer()) + offset, data, size);
        return;
    }
    // From pageable memory: the driver has taken the bytes when it returns, and waits for its turn with large ones.
    if (size > pageable_at_once) {
        settle(queue, &lock);
        queue = own_queue();
    }
    check(m_api.cuMemcpyHtoDAsync(buffer->device_address() + offset, data, size, queue), "write ", size, " bytes of a buffer");
}

void CudaDevice::read_texture(Texture* texture, uint32_t layer, uint32_t mip, void* data)
{
    Lock lock(*this);
    ensure_usable();
    Relaxed relaxed(m_api);
    CUstream queue = own_queue();
    SubresourceLayout layout = subresource_layout(texture->desc(), mip);
    CUDA_MEMCPY3D copy = copy_extent(layout.row_pitch, layout.row_count, layout.depth);
    set_source(copy, cuda(texture), layer, mip, {});
    set_destination(copy, CU_MEMORYTYPE_HOST, data, 0, layout.row_pitch);
    settle(queue, &lock);
    copy_texture_part(copy, "read a texture", own_queue());
    check(m_api.cuStreamSynchronize(nullptr), "read a texture");
}

void CudaDevice::write_texture(Texture* texture, uint32_t layer, uint32_t mip, const void* data)
{
    Lock lock(*this);
    ensure_usable();
    Relaxed relaxed(m_api);
    CUstream queue = own_queue();
    SubresourceLayout layout = subresource_layout(texture->desc(), mip);
    CUDA_MEMCPY3D copy = copy_extent(layout.row_pitch, layout.row_count, layout.depth);
    set_source(copy, CU_MEMORYTYPE_HOST, data, 0, layout.row_pitch);
    set_destination(copy, cuda(texture), layer, mip, {});
    settle(queue, &lock);
    copy_texture_part(copy, "write a texture", own_queue());
    // A host that hands over pinned memory would else race with the copy.
    check(m_api.cuStreamSynchronize(nullptr), "write a texture");
}

} // namespace spy
