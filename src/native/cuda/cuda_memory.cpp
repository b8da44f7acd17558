// Buffers, fences and timestamps.
#include "cuda/cuda_backend.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

namespace spy {

namespace {

CudaDevice& cuda(Device* device) { return *static_cast<CudaDevice*>(device); }

} // namespace

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
ref<Fence> CudaDevice::create_fence(uint64_t value, bool shared) { return ref<Fence>(new CudaFence(ref<CudaDevice>(this), value, shared)); }
ref<QueryPool> CudaDevice::create_query_pool(QueryType type, uint32_t count) { return ref<QueryPool>(new CudaQueryPool(ref<CudaDevice>(this), type, count)); }

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
        if (!entry.anchor)
            fail_no_result(index + i);
        float milliseconds = 0;
        const std::shared_ptr<CudaAnchor> anchor = entry.anchor; // a reset by another thread may drop it meanwhile
        device.check(device.wait_event(entry.event), "wait for a timestamp");
        device.check(device.api().cuEventElapsedTime(&milliseconds, anchor->event, entry.event), "read a timestamp");
        // One second ahead of the first anchor, so that every tick is positive.
        ticks[i] = 1'000'000'000 + device.resolve_ticks(*anchor) + uint64_t(std::llround(double(milliseconds) * 1e6));
    }
}

} // namespace spy
