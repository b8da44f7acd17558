// Buffers, textures, samplers, fences and timestamps.
#include "cuda/cuda_backend.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <thread>
#include <utility>

namespace spy {

namespace {

CudaDevice& cuda(Device* device) { return *static_cast<CudaDevice*>(device); }

CUarray_format array_format(FormatType type, uint32_t bits)
{
    bool is_signed = type == FormatType::sint || type == FormatType::snorm;
    if (type == FormatType::float_)
        return bits == 16 ? CU_AD_FORMAT_HALF : CU_AD_FORMAT_FLOAT;
    if (bits == 8)
        return is_signed ? CU_AD_FORMAT_SIGNED_INT8 : CU_AD_FORMAT_UNSIGNED_INT8;
    if (bits == 16)
        return is_signed ? CU_AD_FORMAT_SIGNED_INT16 : CU_AD_FORMAT_UNSIGNED_INT16;
    return is_signed ? CU_AD_FORMAT_SIGNED_INT32 : CU_AD_FORMAT_UNSIGNED_INT32;
}

/// Resource view formats come in groups of 1, 2 and 4 channels: uint8, sint8, uint16, sint16, uint32, sint32, half, float.
CUresourceViewFormat view_format(const CudaTexel& texel)
{
    unsigned group = 0;
    switch (texel.format) {
    case CU_AD_FORMAT_UNSIGNED_INT8: group = 0; break;
    case CU_AD_FORMAT_SIGNED_INT8: group = 1; break;
    case CU_AD_FORMAT_UNSIGNED_INT16: group = 2; break;
    case CU_AD_FORMAT_SIGNED_INT16: group = 3; break;
    case CU_AD_FORMAT_UNSIGNED_INT32: group = 4; break;
    case CU_AD_FORMAT_SIGNED_INT32: group = 5; break;
    case CU_AD_FORMAT_HALF: group = 6; break;
    case CU_AD_FORMAT_FLOAT: group = 7; break;
    }
    return CUresourceViewFormat(CU_RES_VIEW_FORMAT_UINT_1X8 + group * 3 + (texel.channels == 4 ? 2 : texel.channels - 1));
}

bool is_32_bit_integer(CUarray_format format) { return format == CU_AD_FORMAT_UNSIGNED_INT32 || format == CU_AD_FORMAT_SIGNED_INT32; }

bool same(const SubresourceRange& a, const SubresourceRange& b)
{
    return a.layer == b.layer && a.layer_count == b.layer_count && a.mip == b.mip && a.mip_count == b.mip_count;
}

} // namespace

CudaTexel cuda_texel(Format format)
{
    const FormatInfo& info = format_info(format);
    CudaTexel texel;
    bool bgr = info.name.starts_with("bgr") || info.name.starts_with("b5");
    uint32_t bits = info.channel_bit_count[0];
    bool channels = info.channel_count == 1 || info.channel_count == 2 || info.channel_count == 4;
    if (bgr || info.is_compressed() || info.is_stencil() || !channels || !info.has_equal_channel_bits() || (bits != 8 && bits != 16 && bits != 32))
        return texel;
    texel.format = array_format(info.type, bits);
    texel.channels = info.channel_count;
    texel.normalized = info.is_normalized_format();
    texel.srgb = info.is_srgb_format();
    texel.integer = info.is_integer_format();
    return texel;
}

// ------------------------------------------------------------------------------------------------------------ memory

CUdeviceptr CudaDevice::allocate(uint64_t size, CUstream stream, const std::string& purpose)
{
    size = std::max<uint64_t>(size, 1);
    CUdeviceptr address = 0;
    auto attempt = [&] { return m_pool ? m_api.cuMemAllocFromPoolAsync(&address, size, m_pool, stream) : m_api.cuMemAlloc(&address, size); };
    CUresult result = attempt();
    if (result == CUDA_ERROR_OUT_OF_MEMORY && m_pool) {
        // Memory freed but still waiting for the queue, or cached by the pool, can serve after a synchronisation.
        settle(stream, nullptr);
        poll();
        m_api.cuMemPoolTrimTo(m_pool, 0);
        result = attempt();
    }
    check(result, "allocate ", size, " bytes for ", purpose, " (", m_buffer_bytes, " bytes are in use by buffers of this device)");
    return address;
}

void CudaDevice::free(CUdeviceptr address, CUstream stream) noexcept
{
    // A failure means that the context is lost, which the next call of the user reports.
    if (m_pool)
        m_api.cuMemFreeAsync(address, stream);
    else
        m_api.cuMemFree(address); // synchronises
}

void CudaDevice::free_buffer(CUdeviceptr address, uint64_t size) noexcept
{
    CUresult result = CUDA_SUCCESS;
    try {
        begin_work(nullptr);
        result = m_pool ? m_api.cuMemFreeAsync(address, nullptr) : m_api.cuMemFree(address);
    } catch (const Error&) {
        return; // lost context
    }
    if (result >= 900 && result <= 908) { // a graph capture forbids it now
        m_late_frees.emplace_back(address, size);
        return;
    }
    m_buffer_bytes -= size;
    m_buffer_count -= 1;
}

void CudaDevice::free_after_close(CUdeviceptr address, void* host) noexcept
{
    if (!m_kept_context || m_api.cuCtxPushCurrent(m_kept_context) != CUDA_SUCCESS)
        return;
    host ? m_api.cuMemFreeHost(host) : m_api.cuMemFree(address);
    leave();
}

ref<Buffer> CudaDevice::create_buffer(const BufferDesc& desc) { return ref<Buffer>(new CudaBuffer(ref<CudaDevice>(this), desc)); }
ref<Texture> CudaDevice::create_texture(const TextureDesc& desc) { return ref<Texture>(new CudaTexture(ref<CudaDevice>(this), desc)); }
ref<Sampler> CudaDevice::create_sampler(const SamplerDesc& desc) { return ref<Sampler>(new CudaSampler(ref<CudaDevice>(this), desc)); }
ref<Fence> CudaDevice::create_fence(uint64_t value, bool shared) { return ref<Fence>(new CudaFence(ref<CudaDevice>(this), value, shared)); }
ref<QueryPool> CudaDevice::create_query_pool(QueryType type, uint32_t count) { return ref<QueryPool>(new CudaQueryPool(ref<CudaDevice>(this), type, count)); }

ref<TextureView> CudaDevice::create_texture_view(Texture* texture, const TextureViewDesc& desc)
{
    Format format = desc.format == Format::undefined ? texture->desc().format : desc.format;
    if (!cuda_texel(format).channels || format_info(format).bytes_per_block != format_info(texture->desc().format).bytes_per_block)
        fail_value("create_view: a cuda texture of format ", format_name(texture->desc().format), " cannot be viewed as ", format_name(format),
                   "; the formats must have texels of the same size");
    return ref<TextureView>(new CudaTextureView(ref<CudaDevice>(this), ref<Texture>(texture), desc));
}

uint32_t CudaDevice::format_support(Format format)
{
    if (!cuda_texel(format).channels)
        return 0;
    FormatSupport support = FormatSupport::texture | FormatSupport::shader_load | FormatSupport::shader_sample | FormatSupport::copy_source |
                            FormatSupport::copy_destination;
    const FormatInfo& info = format_info(format);
    if (!info.is_depth())
        support = support | FormatSupport::buffer | FormatSupport::shader_uav_load | FormatSupport::shader_uav_store;
    return uint32_t(support);
}

CudaBuffer::CudaBuffer(ref<CudaDevice> device, const BufferDesc& desc) : Buffer(device, desc)
{
    CudaDevice::Lock lock(*device);
    device->ensure_usable();
    CudaDevice::Relaxed relaxed(device->api());
    if (desc.memory_type == MemoryType::device_local) {
        m_address = device->allocate(desc.size, device->own_queue(), desc.label.empty() ? "a buffer" : cat("buffer '", desc.label, "'"));
        device->count_buffer(int64_t(desc.size), 1);
        return;
    }
    CUresult result = device->api().cuMemHostAlloc(&m_host, std::max<uint64_t>(desc.size, 1), CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP);
    device->check(result, "allocate ", desc.size, " bytes of pinned host memory");
    result = device->api().cuMemHostGetDevicePointer(&m_address, m_host, 0);
    if (result != CUDA_SUCCESS)
        device->api().cuMemFreeHost(m_host);
    device->check(result, "map pinned host memory");
    std::memset(m_host, 0, desc.size);
    device->count_host(int64_t(desc.size), 1);
}

CudaBuffer::~CudaBuffer()
{
    retire();
    if (m_address)
        cuda(m_device).free_after_close(m_address, m_host);
}

void CudaBuffer::release() noexcept
{
    CudaDevice& device = cuda(m_device);
    if (!m_address || !device.alive())
        return;
    if (m_exported && device.is_closed()) // close() is at work, and others still use the memory
        return device.keep_context();
    CudaDevice::Lock lock(device);
    CudaDevice::Relaxed relaxed(device.api());
    const CudaApi* api = &device.api();
    if (CUtexObject object = std::exchange(m_texel_object, 0))
        device.defer([api, object] { api->cuTexObjectDestroy(object); });
    if (m_host) {
        device.count_host(-int64_t(m_desc.size), -1);
        device.defer([api, host = m_host] { api->cuMemFreeHost(host); });
    } else {
        device.free_buffer(m_address, m_desc.size);
    }
    m_host = nullptr;
    m_address = 0;
}

NativeHandle CudaBuffer::shared_handle()
{
    if (!has_flag(m_desc.usage, BufferUsage::shared))
        fail_runtime("shared_handle: the buffer was not created with BufferUsage.shared");
    fail(ErrorKind::not_implemented, "shared_handle: a cuda device does not export its memory; create the buffer on a vulkan or d3d12 device "
                                     "with enable_cuda_interop=True, which maps it into CUDA");
}

CUtexObject CudaBuffer::texel_object()
{
    if (m_texel_object)
        return m_texel_object;
    CudaTexel texel = cuda_texel(m_desc.format);
    if (!texel.channels)
        fail_value("a Buffer<T> parameter needs a buffer whose format cuda supports, got ", format_name(m_desc.format), "; set 'format' at create_buffer");
    CUDA_RESOURCE_DESC resource{};
    resource.resType = CU_RESOURCE_TYPE_LINEAR;
    resource.res.linear = {m_address, texel.format, texel.channels, m_desc.size};
    CUDA_TEXTURE_DESC sampling{};
    sampling.flags = texel.integer ? CU_TRSF_READ_AS_INTEGER : 0u;
    CudaDevice& device = cuda(m_device);
    device.check(device.api().cuTexObjectCreate(&m_texel_object, &resource, &sampling, nullptr), "make a texel buffer of ", m_desc.size, " bytes");
    return m_texel_object;
}

// ---------------------------------------------------------------------------------------------------------- textures

CudaTexture::CudaTexture(ref<CudaDevice> device, const TextureDesc& desc) : Texture(device, desc), m_array(*device, desc) {}

CudaArray::CudaArray(CudaDevice& device, const TextureDesc& desc) : m_device(device), m_desc(desc)
{
    CudaTexel texel = cuda_texel(desc.format);
    if (!texel.channels)
        fail_value("create_texture: the cuda device has no textures of format ", format_name(desc.format), "; get_format_support tells which it has");
    if (desc.sample_count > 1 || desc.type == TextureType::texture_2d_ms || desc.type == TextureType::texture_2d_ms_array)
        fail(ErrorKind::not_implemented, "create_texture: CUDA has no multisampled textures; use sample_count=1 or the vulkan device");
    bool array = desc.type == TextureType::texture_1d_array || desc.type == TextureType::texture_2d_array || desc.type == TextureType::texture_cube_array;
    bool one_dimensional = desc.type == TextureType::texture_1d || desc.type == TextureType::texture_1d_array;
    CUDA_ARRAY3D_DESCRIPTOR layout{};
    layout.Width = desc.width;
    layout.Height = one_dimensional ? 0 : desc.height;
    layout.Depth = desc.type == TextureType::texture_3d ? desc.depth : (array || desc.is_cube()) ? desc.layer_count() : 0;
    layout.Format = texel.format;
    layout.NumChannels = texel.channels;
    layout.Flags = (array ? CUDA_ARRAY3D_LAYERED : 0u) | (desc.is_cube() ? CUDA_ARRAY3D_CUBEMAP : 0u) |
                   (has_flag(desc.usage, TextureUsage::unordered_access) ? CUDA_ARRAY3D_SURFACE_LDST : 0u);
    for (uint32_t mip = 0; mip < desc.mip_count; ++mip)
        m_bytes += subresource_layout(desc, mip).size_in_bytes * desc.layer_count();

    CudaDevice::Lock lock(device);
    device.ensure_usable();
    CudaDevice::Relaxed relaxed(device.api());
    CUresult result = CUDA_ERROR_INVALID_VALUE;
    if (desc.type == TextureType::texture_2d) { // Gather() needs a flag that not every size and format may have
        layout.Flags |= CUDA_ARRAY3D_TEXTURE_GATHER;
        result = device.api().cuMipmappedArrayCreate(&m_array, &layout, desc.mip_count);
        layout.Flags &= ~unsigned(CUDA_ARRAY3D_TEXTURE_GATHER);
    }
    if (result != CUDA_SUCCESS)
        result = device.api().cuMipmappedArrayCreate(&m_array, &layout, desc.mip_count);
    device.check(result, "create a ", desc.width, " x ", desc.height, " x ",
                  desc.depth, " texture of ", desc.layer_count(), " layers and ", desc.mip_count, " mips in ", format_name(desc.format), " (",
                  m_bytes, " bytes)");
    m_surface_objects.resize(desc.mip_count);
    device.count_texture(int64_t(m_bytes), 1);
}

void CudaArray::release() noexcept
{
    CudaDevice& device = m_device;
    if (!m_array || !device.alive())
        return;
    CudaDevice::Lock lock(device);
    CudaDevice::Relaxed relaxed(device.api());
    const CudaApi* api = &device.api();
    for (TextureObject& object : m_texture_objects)
        device.defer([api, handle = object.object] { api->cuTexObjectDestroy(handle); });
    for (CUsurfObject object : m_surface_objects)
        if (object)
            device.defer([api, object] { api->cuSurfObjectDestroy(object); });
    m_texture_objects.clear();
    m_surface_objects.clear();
    device.count_texture(-int64_t(m_bytes), -1);
    device.defer([api, array = std::exchange(m_array, nullptr)] { api->cuMipmappedArrayDestroy(array); });
}

NativeHandle CudaTexture::shared_handle()
{
    fail(ErrorKind::not_implemented, "shared_handle: CUDA does not export textures; copy the texture into a shared buffer of a vulkan device");
}

CUarray CudaArray::level(uint32_t mip) const
{
    CUarray array = nullptr;
    m_device.check(m_device.api().cuMipmappedArrayGetLevel(&array, m_array, mip), "get mip ", mip, " of a texture");
    return array;
}

CUtexObject CudaArray::texture_object(const SubresourceRange& range, Format format, CUDA_TEXTURE_DESC sampling)
{
    CudaTexel texel = cuda_texel(format);
    sampling.flags |= (texel.integer ? CU_TRSF_READ_AS_INTEGER : 0u) | (texel.srgb ? CU_TRSF_SRGB : 0u) |
                      (m_desc.is_cube() ? CU_TRSF_SEAMLESS_CUBEMAP : 0u);
    if (texel.integer || is_32_bit_integer(texel.format)) // integers cannot be filtered
        sampling.filterMode = sampling.mipmapFilterMode = CU_TR_FILTER_MODE_POINT;
    for (const TextureObject& object : m_texture_objects)
        if (same(object.range, range) && object.format == format && !std::memcmp(&object.sampling, &sampling, sizeof(sampling)))
            return object.object;

    bool all_layers = range.layer == 0 && range.layer_count == m_desc.layer_count();
    // A level alone, so that sizes and mip 0 are those of the level. CUDA mixes up the layers of such a level, though.
    bool one_mip = range.mip_count == 1 && m_desc.mip_count > 1 && m_desc.layer_count() == 1;
    CUDA_RESOURCE_DESC resource{};
    CUDA_RESOURCE_VIEW_DESC view{};
    bool use_view = !all_layers || format != m_desc.format || (range.mip_count != m_desc.mip_count && !one_mip);
    if (one_mip) {
        resource.resType = CU_RESOURCE_TYPE_ARRAY;
        resource.res.array.hArray = level(range.mip);
    } else {
        resource.resType = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY;
        resource.res.mipmap.hMipmappedArray = m_array;
        view.firstMipmapLevel = range.mip;
        view.lastMipmapLevel = range.mip + range.mip_count - 1;
    }
    uint32_t shift = one_mip ? range.mip : 0;
    bool flat = m_desc.type == TextureType::texture_1d || m_desc.type == TextureType::texture_1d_array;
    bool layered = m_desc.type != TextureType::texture_1d && m_desc.type != TextureType::texture_2d && m_desc.type != TextureType::texture_3d;
    view.format = view_format(texel);
    view.width = std::max(1u, m_desc.width >> shift);
    view.height = flat ? 0 : std::max(1u, m_desc.height >> shift);
    view.depth = m_desc.type == TextureType::texture_3d ? std::max(1u, m_desc.depth >> shift) : layered ? m_desc.layer_count() : 0; // CUDA wants the whole depth
    if (layered) {
        view.firstLayer = range.layer;
        view.lastLayer = range.layer + range.layer_count - 1;
    }
    CUtexObject object = 0;
    m_device.check(m_device.api().cuTexObjectCreate(&object, &resource, &sampling, use_view ? &view : nullptr), "make a texture object for a ",
                 format_name(m_desc.format), " texture (layers ", range.layer, "+", range.layer_count, ", mips ", range.mip, "+", range.mip_count, ")");
    m_texture_objects.push_back({range, format, sampling, object});
    return object;
}

CUsurfObject CudaArray::surface_object(uint32_t mip)
{
    CUsurfObject& object = m_surface_objects[mip];
    if (!object) {
        CUDA_RESOURCE_DESC resource{};
        resource.resType = CU_RESOURCE_TYPE_ARRAY;
        resource.res.array.hArray = level(mip);
        m_device.check(m_device.api().cuSurfObjectCreate(&object, &resource), "make a surface object for mip ", mip, " of a ", format_name(m_desc.format),
                     " texture (was it created with TextureUsage.unordered_access?)");
    }
    return object;
}

NativeHandle CudaTextureView::native_handle() const { return m_texture->native_handle(); }

// ---------------------------------------------------------------------------------------------------------- samplers

CudaSampler::CudaSampler(ref<CudaDevice> device, const SamplerDesc& desc) : Sampler(device, desc), m_texture_desc(convert(desc)) {}

CUDA_TEXTURE_DESC CudaSampler::convert(const SamplerDesc& desc)
{
    auto address = [](TextureAddressingMode mode) {
        switch (mode) {
        case TextureAddressingMode::wrap: return CU_TR_ADDRESS_MODE_WRAP;
        case TextureAddressingMode::clamp_to_edge: return CU_TR_ADDRESS_MODE_CLAMP;
        case TextureAddressingMode::clamp_to_border: return CU_TR_ADDRESS_MODE_BORDER;
        case TextureAddressingMode::mirror_repeat: return CU_TR_ADDRESS_MODE_MIRROR;
        default: break;
        }
        fail(ErrorKind::not_implemented, "create_sampler: CUDA has no TextureAddressingMode.mirror_once; use mirror_repeat or clamp_to_edge");
    };
    if (desc.reduction_op != TextureReductionOp::average)
        fail(ErrorKind::not_implemented, "create_sampler: CUDA samplers only average; compare or reduce in the shader, or use the vulkan device");
    auto filter = [](TextureFilteringMode mode) { return mode == TextureFilteringMode::linear ? CU_TR_FILTER_MODE_LINEAR : CU_TR_FILTER_MODE_POINT; };
    CUDA_TEXTURE_DESC out{};
    out.addressMode[0] = address(desc.address_u);
    out.addressMode[1] = address(desc.address_v);
    out.addressMode[2] = address(desc.address_w);
    out.filterMode = filter(desc.mag_filter); // CUDA has one filter for both directions
    out.mipmapFilterMode = filter(desc.mip_filter);
    out.flags = CU_TRSF_NORMALIZED_COORDINATES;
    out.maxAnisotropy = desc.max_anisotropy <= 1 ? 0 : std::min(desc.max_anisotropy, 16u);
    out.mipmapLevelBias = desc.mip_lod_bias;
    out.minMipmapLevelClamp = std::max(0.f, desc.min_lod);
    out.maxMipmapLevelClamp = std::max(0.f, desc.max_lod);
    std::copy(desc.border_color.begin(), desc.border_color.end(), out.borderColor);
    return out;
}

// ------------------------------------------------------------------------------------------------------------ fences

CudaFence::CudaFence(ref<CudaDevice> device, uint64_t initial_value, bool shared) : Fence(device)
{
    if (shared)
        fail(ErrorKind::not_implemented, "create_fence: CUDA fences cannot be shared; create the fence on a vulkan or d3d12 device");
    CudaDevice::Lock lock(*device);
    device->ensure_usable();
    CudaDevice::Relaxed relaxed(device->api());
    void* memory = nullptr;
    device->check(device->api().cuMemHostAlloc(&memory, sizeof(uint64_t), CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP), "allocate a fence");
    m_word = new (memory) std::atomic<uint64_t>(initial_value);
    device->check(device->api().cuMemHostGetDevicePointer(&m_address, memory, 0), "map a fence");
}

void CudaFence::release() noexcept
{
    CudaDevice& device = cuda(m_device);
    if (!m_word || !device.alive())
        return;
    CudaDevice::Lock lock(device);
    CudaDevice::Relaxed relaxed(device.api());
    device.defer([api = &device.api(), word = std::exchange(m_word, nullptr)] { api->cuMemFreeHost(word); });
}

uint64_t CudaFence::current_value() { return m_word ? m_word->load(std::memory_order_acquire) : 0; }

void CudaFence::signal(uint64_t value)
{
    if (m_word)
        m_word->store(value, std::memory_order_release);
}

bool CudaFence::wait(uint64_t value, uint64_t timeout_ns)
{
    PatientWait patience;
    while (current_value() < value) {
        uint64_t spent = patience.spent_ns();
        if (spent >= timeout_ns || !m_word)
            return false;
        // A kernel fault would leave the fence unsignalled for ever: look for one now and then.
        if (spent > 10'000'000)
            m_device->is_finished(m_device->last_submit_id());
        patience.pause(timeout_ns - spent, false);
    }
    return true;
}

void CudaFence::wait_on(CUstream stream, uint64_t value)
{
    CudaDevice& device = cuda(m_device);
    if (current_value() >= value)
        return;
    if (device.has_stream_values()) {
        device.check(device.api().cuStreamWaitValue64(stream, m_address, value, CU_STREAM_WAIT_VALUE_GEQ), "wait for a fence");
        return;
    }
    fail_runtime("submit: this driver cannot make a stream wait for fence value ", value, "; wait on the host with Fence.wait() before submitting");
}

void CudaFence::signal_on(CUstream stream, uint64_t value)
{
    CudaDevice& device = cuda(m_device);
    if (device.has_stream_values()) {
        device.check(device.api().cuStreamWriteValue64(stream, m_address, value, 0), "signal a fence");
        return;
    }
    struct Signal { std::atomic<uint64_t>* word; uint64_t value; }; // the word is freed after all work before release()
    auto signal = std::make_unique<Signal>(Signal{m_word, value});
    auto callback = [](void* data) { static_cast<Signal*>(data)->word->store(static_cast<Signal*>(data)->value, std::memory_order_release); };
    device.check(device.api().cuLaunchHostFunc(stream, callback, signal.get()), "signal a fence");
    device.end_work(stream, true);
    device.defer([data = signal.release()] { delete data; });
}

// -------------------------------------------------------------------------------------------------------- timestamps

CudaQueryPool::CudaQueryPool(ref<CudaDevice> device, QueryType type, uint32_t count) : QueryPool(device, type, count), m_entries(count) {}

void CudaQueryPool::release() noexcept
{
    CudaDevice& device = cuda(m_device);
    if (device.alive()) {
        CudaDevice::Lock lock(device);
        for (Entry& entry : m_entries)
            if (entry.event)
                device.api().cuEventDestroy(entry.event);
        m_entries.clear();
    } else {
        for (Entry& entry : m_entries)
            if (entry.anchor)
                entry.anchor->event = nullptr; // gone with the context
    }
}

void CudaQueryPool::reset(uint32_t index, uint32_t count)
{
    CudaDevice::Lock lock(cuda(m_device));
    for (uint32_t i = index; i < index + count; ++i)
        m_entries[i].anchor = nullptr;
}

void CudaQueryPool::write(uint32_t index, CUstream stream)
{
    CudaDevice& device = cuda(m_device);
    Entry& entry = m_entries[index];
    if (!entry.event)
        device.check(device.api().cuEventCreate(&entry.event, CU_EVENT_DEFAULT), "create an event");
    entry.anchor = device.time_anchor(stream);
    device.check(device.api().cuEventRecord(entry.event, stream), "write a timestamp");
}

void CudaQueryPool::get_results(uint32_t index, uint32_t count, uint64_t* ticks)
{
    CudaDevice& device = cuda(m_device);
    CudaDevice::Lock lock(device);
    device.ensure_usable();
    CudaDevice::Relaxed relaxed(device.api());
    for (uint32_t i = 0; i < count; ++i) {
        Entry& entry = m_entries[index + i];
        if (!entry.anchor) { // never written since the last reset
            ticks[i] = 0;
            continue;
        }
        float milliseconds = 0;
        const std::shared_ptr<CudaAnchor> anchor = entry.anchor; // a reset by another thread may drop it meanwhile
        device.check(device.wait_event(entry.event), "wait for a timestamp");
        device.check(device.api().cuEventElapsedTime(&milliseconds, anchor->event, entry.event), "read a timestamp");
        // One second ahead of the first anchor, so that every tick is positive.
        ticks[i] = 1'000'000'000 + device.resolve_ticks(*anchor) + uint64_t(std::llround(double(milliseconds) * 1e6));
    }
}

} // namespace spy
