#include "device/host.h"

#include "core/error.h"
#include "device/texel_format.h"

#include <chrono>
#include <cstdlib>
#include <cstring>

namespace spy {

HostMemory::HostMemory(uint64_t size)
{
    // calloc gets large blocks as untouched zero pages; 64 bytes more to align and to remember the start.
    if (size > UINT64_MAX - 128)
        return;
    auto* block = static_cast<uint8_t*>(std::calloc(1, size + 128));
    if (!block)
        return;
    m_data = reinterpret_cast<uint8_t*>((uintptr_t(block) + 64 + 63) / 64 * 64);
    std::memcpy(m_data - sizeof(void*), &block, sizeof(void*));
}

void HostMemory::reset() noexcept
{
    if (!m_data)
        return;
    void* block;
    std::memcpy(&block, m_data - sizeof(void*), sizeof(void*));
    std::free(block);
    m_data = nullptr;
}

HostBuffer::HostBuffer(ref<HostDevice> device, BufferDesc desc)
    : Buffer(device.get(), std::move(desc)), m_memory(m_desc.size)
{
    if (!m_memory.data())
        fail(ErrorKind::memory, "out of memory: cannot allocate a buffer of ", m_desc.size, " bytes (",
             uint64_t(device->usage().bytes), " bytes in use) on ", device->info().adapter_name);
    device->usage().bytes += m_desc.size;
    device->usage().count += 1;
}

void HostBuffer::free_memory() noexcept
{
    if (!m_memory.data())
        return;
    auto& usage = static_cast<HostDevice*>(m_device.get())->usage();
    usage.bytes -= m_desc.size;
    usage.count -= 1;
    m_memory.reset();
}

HostTexture::HostTexture(ref<HostDevice> device, TextureDesc desc) : Texture(device.get(), std::move(desc))
{
    for (uint32_t layer = 0; layer < m_desc.layer_count(); ++layer)
        for (uint32_t mip = 0; mip < m_desc.mip_count; ++mip) {
            m_offsets.push_back(m_size);
            m_size += subresource_layout(m_desc, mip).size_in_bytes;
        }
    m_memory = HostMemory(m_size);
    if (!m_memory.data())
        fail(ErrorKind::memory, "out of memory: cannot allocate a texture of ", m_size, " bytes (",
             uint64_t(device->usage().bytes), " bytes in use) on ", device->info().adapter_name);
    device->usage().bytes += m_size;
    device->usage().count += 1;
}

uint8_t* HostTexture::subresource(uint32_t layer, uint32_t mip) const
{
    return m_memory.data() + m_offsets[layer * m_desc.mip_count + mip];
}

void HostTexture::release() noexcept
{
    if (!m_memory.data())
        return;
    auto& usage = static_cast<HostDevice*>(m_device.get())->usage();
    usage.bytes -= m_size;
    usage.count -= 1;
    m_memory.reset();
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

void HostQueryPool::reset(uint32_t index, uint32_t count)
{
    std::fill_n(m_ticks.begin() + index, count, 0);
}

void HostQueryPool::get_results(uint32_t index, uint32_t count, uint64_t* ticks)
{
    std::copy_n(m_ticks.begin() + index, count, ticks);
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
    std::memcpy(data, static_cast<HostTexture*>(texture)->subresource(layer, mip),
                subresource_layout(texture->desc(), mip).size_in_bytes);
}

void HostDevice::write_texture(Texture* texture, uint32_t layer, uint32_t mip, const void* data)
{
    std::memcpy(static_cast<HostTexture*>(texture)->subresource(layer, mip), data,
                subresource_layout(texture->desc(), mip).size_in_bytes);
}

std::vector<HeapReport> HostDevice::heap_reports()
{
    return {{"host", m_usage.count, m_usage.bytes, m_usage.bytes, m_usage.count}};
}

} // namespace spy
