// Device memory and buffers.
#include "cuda/device.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>

namespace spy {

namespace {

constexpr uint64_t null_size = 1 << 20;

} // namespace

void CudaMemory::open()
{
    if (!m_context.api().cuMemPoolCreate || !m_context.api().cuMemAllocFromPoolAsync ||
        !m_context.api().cuMemFreeAsync || !m_context.api().cuMemPoolSetAttribute ||
        !m_context.attribute(CU_DEVICE_MEMORY_POOLS_SUPPORTED))
        return;
    // Devices of a primary context share one pool, which lives as long as the process: the driver faults after some
    // hundred pools have come and gone, and exported memory may outlive its device.
    static std::mutex mutex;
    static std::map<CUdevice, CUmemoryPool> pools;
    std::unique_lock lock(mutex);
    if (m_context.is_primary() && pools.count(m_context.device())) {
        m_pool = pools[m_context.device()];
        return;
    }
    CUmemPoolProps props{};
    props.allocType = 1; // pinned
    props.location = {1, m_context.device()};
    if (m_context.api().cuMemPoolCreate(&m_pool, &props) != CUDA_SUCCESS) {
        m_pool = nullptr;
        return;
    }
    uint64_t keep = UINT64_MAX; // freed memory stays with the pool across synchronisations
    m_context.api().cuMemPoolSetAttribute(m_pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep);
    if (m_context.is_primary())
        pools[m_context.device()] = m_pool;
}

void CudaMemory::close() noexcept
{
    const CudaApi& api = m_context.api();
    for (auto [address, size] : m_late_frees)
        free(address, nullptr);
    m_late_frees.clear();
    for (void* piece : m_staging)
        api.cuMemFreeHost(piece);
    m_staging.clear();
    if (m_null_memory)
        free(std::exchange(m_null_memory, 0), nullptr);
    if (m_pool) {
        api.cuStreamSynchronize(nullptr);
        CUmemoryPool pool = std::exchange(m_pool, nullptr);
        m_context.is_primary() ? api.cuMemPoolTrimTo(pool, 0) : api.cuMemPoolDestroy(pool);
    }
}

CUdeviceptr CudaMemory::allocate(uint64_t size, CUstream stream, const std::string& purpose)
{
    size = std::max<uint64_t>(size, 1);
    CUdeviceptr address = 0;
    auto attempt = [&] {
        return m_pool ? m_context.api().cuMemAllocFromPoolAsync(&address, size, m_pool, stream)
                      : m_context.api().cuMemAlloc(&address, size);
    };
    CUresult result = attempt();
    if (result == CUDA_ERROR_OUT_OF_MEMORY && m_pool) {
        // Memory freed but still waiting for the queue, or cached by the pool, can serve after a synchronisation.
        m_queue.wait_stream(stream, nullptr);
        m_queue.poll();
        m_context.api().cuMemPoolTrimTo(m_pool, 0);
        result = attempt();
    }
    m_context.check(result, "allocate ", size, " bytes for ", purpose, " (", m_usage.buffers.bytes,
                    " bytes are in use by buffers of this device)");
    return address;
}

void CudaMemory::free(CUdeviceptr address, CUstream stream) noexcept
{
    // A failure means that the context is lost, which the next call of the user reports.
    if (m_pool)
        m_context.api().cuMemFreeAsync(address, stream);
    else
        m_context.api().cuMemFree(address); // synchronises
}

void CudaMemory::free_buffer(CUdeviceptr address, uint64_t size) noexcept
{
    CUresult result = CUDA_SUCCESS;
    try {
        m_queue.begin_work(nullptr);
        result = m_pool ? m_context.api().cuMemFreeAsync(address, nullptr) : m_context.api().cuMemFree(address);
    } catch (const Error&) {
        return; // lost context
    }
    if (result >= 900 && result <= 908) { // a graph capture forbids it now
        m_late_frees.emplace_back(address, size);
        return;
    }
    m_usage.buffers.take(size);
}

CUdeviceptr CudaMemory::null_memory(bool writable, CUstream stream)
{
    if (!m_null_memory) {
        m_null_memory = allocate(2 * null_size, stream, "null buffers");
        m_context.check(m_context.api().cuMemsetD8Async(m_null_memory, 0, 2 * null_size, stream),
                        "clear the memory of null buffers");
    }
    return m_null_memory + (writable ? null_size : 0);
}

void* CudaMemory::take_staging()
{
    void* piece = nullptr;
    if (m_staging.empty()) {
        m_context.check(m_context.api().cuMemHostAlloc(&piece, staging_size, CU_MEMHOSTALLOC_PORTABLE),
                        "allocate pinned host memory");
    } else {
        piece = m_staging.back();
        m_staging.pop_back();
    }
    return piece;
}

std::vector<HeapReport> CudaMemory::reports() const
{
    HeapReport buffers{"device memory", 0, m_usage.buffers.bytes, m_usage.buffers.bytes, m_usage.buffers.count};
    if (m_pool && m_context.api().cuMemPoolGetAttribute) {
        uint64_t reserved = 0; // by all devices of this process on the same GPU
        m_context.api().cuMemPoolGetAttribute(m_pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &reserved);
        buffers.num_pages = reserved >> 25; // the pool grows in 32 MB steps
        buffers.total_mem_usage = reserved;
    }
    auto report = [](const char* name, const CudaUsage::Sum& sum) {
        return HeapReport{name, sum.count, sum.bytes, sum.bytes, sum.count};
    };
    return {buffers, report("textures", m_usage.textures), report("pinned host memory", m_usage.host)};
}

// ----------------------------------------------------------------------------------------------------------- buffers

CudaBuffer::CudaBuffer(ref<CudaDevice> device, const BufferDesc& desc) : Buffer(device, desc)
{
    CudaContext::Lock lock(device->context());
    device->context().ensure_usable();
    CudaContext::Relaxed relaxed(device->context().api());
    if (desc.memory_type == MemoryType::device_local) {
        m_address = device->memory().allocate(desc.size, device->queue().own_queue(),
                                              desc.label.empty() ? "a buffer" : cat("buffer '", desc.label, "'"));
        const CUresult zeroed = desc.uninitialized || !desc.size
            ? CUDA_SUCCESS
            : device->context().api().cuMemsetD8Async(m_address, 0, desc.size, nullptr);
        if (zeroed != CUDA_SUCCESS)
            device->memory().free(m_address, nullptr);
        device->context().check(zeroed, "zero ", desc.size, " bytes");
        device->memory().usage().buffers.add(desc.size);
        return;
    }
    CUresult result = device->context().api().cuMemHostAlloc(&m_host, std::max<uint64_t>(desc.size, 1),
                                                             CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP);
    device->context().check(result, "allocate ", desc.size, " bytes of pinned host memory");
    result = device->context().api().cuMemHostGetDevicePointer(&m_address, m_host, 0);
    if (result != CUDA_SUCCESS)
        device->context().api().cuMemFreeHost(m_host);
    device->context().check(result, "map pinned host memory");
    std::memset(m_host, 0, desc.size);
    device->memory().usage().host.add(desc.size);
}

CudaBuffer::~CudaBuffer()
{
    retire();
    if (m_address)
        cuda(m_device).context().free_after_close(m_address, m_host);
}

void CudaBuffer::release() noexcept
{
    CudaDevice& device = cuda(m_device);
    if (!m_address || !device.context().alive())
        return;
    if (m_exported && device.is_closed()) // close() is at work, and others still use the memory
        return device.context().keep();
    CudaContext::Lock lock(device.context());
    CudaContext::Relaxed relaxed(device.context().api());
    const CudaApi* api = &device.context().api();
    if (CUtexObject object = std::exchange(m_texel_object, 0))
        device.queue().defer([api, object] { api->cuTexObjectDestroy(object); });
    if (m_host) {
        device.memory().usage().host.take(m_desc.size);
        device.queue().defer([api, host = m_host] { api->cuMemFreeHost(host); });
    } else {
        device.memory().free_buffer(m_address, m_desc.size);
    }
    m_host = nullptr;
    m_address = 0;
}

NativeHandle CudaBuffer::shared_handle()
{
    if (!has_flag(m_desc.usage, BufferUsage::shared))
        fail_runtime("shared_handle: the buffer was not created with BufferUsage.shared");
    fail(ErrorKind::not_implemented,
         "shared_handle: a cuda device does not export its memory; create the buffer on a vulkan or d3d12 device "
         "with enable_cuda_interop=True, which maps it into CUDA");
}

CUtexObject CudaBuffer::texel_object()
{
    if (m_texel_object)
        return m_texel_object;
    CudaTexel texel = cuda_texel(m_desc.format);
    if (!texel.channels)
        fail_value("a Buffer<T> parameter needs a buffer whose format cuda supports, got ", format_name(m_desc.format),
                   "; set 'format' at create_buffer");
    CUDA_RESOURCE_DESC resource{};
    resource.resType = CU_RESOURCE_TYPE_LINEAR;
    resource.res.linear = {m_address, texel.format, texel.channels, m_desc.size};
    CUDA_TEXTURE_DESC sampling{};
    sampling.flags = texel.integer ? CU_TRSF_READ_AS_INTEGER : 0u;
    CudaDevice& device = cuda(m_device);
    device.context().check(device.context().api().cuTexObjectCreate(&m_texel_object, &resource, &sampling, nullptr),
                           "make a texel buffer of ", m_desc.size, " bytes");
    return m_texel_object;
}

} // namespace spy
