#include "device/host.h"

#include "core/align.h"
#include "core/error.h"
#include "device/texel_format.h"
#include "device/texture_shape.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstdlib>
#include <cstring>

#ifdef _WIN32
#ifndef NOMINMAX
#define NOMINMAX
#endif
#include <malloc.h>
#include <windows.h>
#else
#include <sys/mman.h>
#endif

namespace spy {

namespace {

constexpr size_t small_alignment = 64;

#ifdef _WIN32

/// Zeroed pages of their own; null: there is no memory.
uint8_t* map_pages(uint64_t size)
{
    return static_cast<uint8_t*>(VirtualAlloc(nullptr, size, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE));
}
void unmap_pages(uint8_t* data, uint64_t) { VirtualFree(data, 0, MEM_RELEASE); }
/// Makes pages fault.
void close_pages(uint8_t* data, uint64_t size) { VirtualFree(data, size, MEM_DECOMMIT); }
void* allocate_small(uint64_t size) { return _aligned_malloc(size, small_alignment); }
void free_small(void* data) { _aligned_free(data); }

#else

/// Zeroed pages of their own; null: there is no memory.
uint8_t* map_pages(uint64_t size)
{
    void* block = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (block == MAP_FAILED)
        return nullptr;
    madvise(block, size, MADV_HUGEPAGE);
    return static_cast<uint8_t*>(block);
}
void unmap_pages(uint8_t* data, uint64_t size) { munmap(data, size); }
/// Makes pages fault.
void close_pages(uint8_t* data, uint64_t size) { mprotect(data, size, PROT_NONE); }
void* allocate_small(uint64_t size) { return std::aligned_alloc(small_alignment, size); }
void free_small(void* data) { std::free(data); }

#endif

constexpr uint64_t guard = 1u << 16; ///< a whole number of pages on every system

/// A block between pages that fault, `size` being a multiple of its alignment.
uint8_t* map_guarded(uint64_t size)
{
    const uint64_t whole = round_up(size, guard);
    uint8_t* pages = map_pages(whole + 2 * guard);
    if (!pages)
        return nullptr;
    close_pages(pages, guard);
    close_pages(pages + guard + whole, guard);
    return pages + guard + whole - size;
}
void unmap_guarded(uint8_t* data, uint64_t size)
{
    const uint64_t whole = round_up(size, guard);
    unmap_pages(data + size - whole - guard, whole + 2 * guard);
}

} // namespace

HostHeap::~HostHeap() { trim(); }

uint8_t* HostHeap::allocate(uint64_t& size, bool zero)
{
    if (size > UINT64_MAX / 2)
        return nullptr;
    const bool is_large = size >= large && !m_is_guarded;
    // In steps of about 6 %, so that similar sizes share blocks.
    const uint64_t step = is_large ? std::max<uint64_t>(1u << 16, std::bit_floor(size) / 16) : 64;
    size = round_up(size, step);
    std::lock_guard lock(m_mutex);
    uint8_t* data = nullptr;
    if (m_is_guarded) {
        data = map_guarded(size);
        if (!data)
            return nullptr;
    } else if (auto it = m_cache.find(size); it != m_cache.end()) {
        data = it->second;
        m_cache.erase(it);
        m_cached -= size;
        if (zero)
            std::memset(data, 0, size);
    } else if (is_large) {
        data = map_pages(size);
        if (!data)
            return nullptr;
    } else {
        data = static_cast<uint8_t*>(allocate_small(std::max<uint64_t>(size, small_alignment)));
        if (!data)
            return nullptr;
        if (zero)
            std::memset(data, 0, size);
    }
    m_in_use += size;
    m_count += 1;
    return data;
}

void HostHeap::free(uint8_t* data, uint64_t size) noexcept
{
    std::lock_guard lock(m_mutex);
    m_in_use -= size;
    m_count -= 1;
    if (m_is_guarded) {
        unmap_guarded(data, size);
    } else if (size < large) {
        free_small(data);
    } else if (m_cached + size <= max_cached) {
        try {
            m_cache.emplace(size, data);
            m_cached += size;
        } catch (const std::bad_alloc&) {
            unmap_pages(data, size);
        }
    } else {
        unmap_pages(data, size);
    }
}

void HostHeap::trim() noexcept
{
    std::lock_guard lock(m_mutex);
    for (auto [size, data] : m_cache)
        unmap_pages(data, size);
    m_cache.clear();
    m_cached = 0;
}

HeapReport HostHeap::report()
{
    std::lock_guard lock(m_mutex);
    return {"host", m_count + m_cache.size(), m_in_use + m_cached, m_in_use, m_count};
}

HostMemory::HostMemory(std::shared_ptr<HostHeap> heap, uint64_t size, bool zero) : m_size(size), m_heap(std::move(heap))
{
    m_data = m_heap->allocate(m_size, zero);
}

void HostMemory::reset() noexcept
{
    if (m_data)
        m_heap->free(m_data, m_size);
    m_data = nullptr;
}

HostBuffer::HostBuffer(ref<HostDevice> device, BufferDesc desc)
    : Buffer(device.get(), std::move(desc)),
      m_memory(device->heap(), m_desc.size, !m_desc.uninitialized)
{
    if (!m_memory.data())
        fail(ErrorKind::memory, "out of memory: cannot allocate a buffer of ", m_desc.size, " bytes (",
             device->heap()->report().total_mem_usage, " bytes in use) on ", device->info().adapter_name);
}

HostTexture::HostTexture(ref<HostDevice> device, TextureDesc desc) : Texture(device.get(), std::move(desc))
{
    for (uint32_t layer = 0; layer < m_desc.layer_count(); ++layer)
        for (uint32_t mip = 0; mip < m_desc.mip_count; ++mip) {
            m_offsets.push_back(m_size);
            m_size += subresource_size(mip);
        }
    m_memory = HostMemory(device->heap(), m_size, true);
    if (!m_memory.data())
        fail(ErrorKind::memory, "out of memory: cannot allocate a texture of ", m_size, " bytes (",
             device->heap()->report().total_mem_usage, " bytes in use) on ", device->info().adapter_name);
}

uint8_t* HostTexture::subresource(uint32_t layer, uint32_t mip) const
{
    return m_memory.data() + m_offsets[layer * m_desc.mip_count + mip];
}

uint64_t HostTexture::subresource_size(uint32_t mip) const
{
    return subresource_layout(m_desc, mip).size_in_bytes * m_desc.sample_count;
}

uint64_t HostFence::current_value()
{
    std::lock_guard lock(m_mutex);
    return m_value;
}

void HostFence::signal(uint64_t value)
{
    {
        std::lock_guard lock(m_mutex);
        m_value = value;
    }
    m_changed.notify_all();
}

bool HostFence::wait(uint64_t value, uint64_t timeout_ns)
{
    std::unique_lock lock(m_mutex);
    const auto timeout = std::chrono::nanoseconds(std::min<uint64_t>(timeout_ns, 1ull << 60));
    return m_changed.wait_for(lock, timeout, [&] { return m_value >= value; });
}

void HostQueryPool::reset(uint32_t index, uint32_t count) { std::fill_n(m_ticks.begin() + index, count, 0); }

void HostQueryPool::get_results(uint32_t index, uint32_t count, uint64_t* ticks)
{
    for (uint32_t i = 0; i < count; ++i)
        if (!(ticks[i] = m_ticks[index + i]))
            fail_no_result(index + i);
}

void HostQueryPool::write(uint32_t index)
{
    m_ticks[index] = uint64_t(std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1));
}

ref<Buffer> HostDevice::create_buffer(const BufferDesc& desc) { return new HostBuffer(this, desc); }

ref<TextureView> HostDevice::create_texture_view(Texture* texture, const TextureViewDesc& desc)
{
    return new TextureView(this, texture, desc);
}

ref<Fence> HostDevice::create_fence(uint64_t initial_value, bool shared)
{
    if (shared)
        fail_runtime("the ", m_info.api_name, " device has no shared fences; create the fence with shared=False");
    return new HostFence(this, initial_value);
}

ref<QueryPool> HostDevice::create_query_pool(QueryType type, uint32_t count)
{
    return new HostQueryPool(this, type, count);
}

void HostDevice::read_buffer(Buffer* buffer, uint64_t offset, void* data, uint64_t size)
{
    std::memcpy(data, static_cast<uint8_t*>(buffer->host_pointer()) + offset, size);
}

void HostDevice::write_buffer(Buffer* buffer, uint64_t offset, const void* data, uint64_t size)
{
    std::memcpy(static_cast<uint8_t*>(buffer->host_pointer()) + offset, data, size);
}

void HostDevice::read_texture(Texture* texture, uint32_t layer, uint32_t mip, void* data)
{
    refuse_samples(texture->desc(), "reading a texture");
    const auto* from = static_cast<HostTexture*>(texture);
    std::memcpy(data, from->subresource(layer, mip), from->subresource_size(mip));
}

void HostDevice::write_texture(Texture* texture, uint32_t layer, uint32_t mip, const void* data)
{
    refuse_samples(texture->desc(), "writing a texture");
    auto* to = static_cast<HostTexture*>(texture);
    std::memcpy(to->subresource(layer, mip), data, to->subresource_size(mip));
}

std::vector<HeapReport> HostDevice::heap_reports() { return {m_heap->report()}; }

} // namespace spy
