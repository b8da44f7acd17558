#include "d3d12/host.h"

#include "core/error.h"
#include "d3d12/planes.h"
#include "device/texture_shape.h"

#include <algorithm>
#include <cstring>

namespace spy {

namespace {

constexpr uint64_t chunk_size = 8ull << 20; ///< of transfers through staging memory

} // namespace

/// Memory that a recorded copy writes and the host reads; it goes back when the copy is done, however this ends.
class D3D12HostAccess::ReadBack {
public:
    ReadBack(D3D12HostAccess& owner, uint64_t size) : m_owner(owner)
    {
        m_block = owner.m_memory.acquire(size, MemoryType::read_back, false);
    }
    ~ReadBack() { m_owner.m_queue.discard(m_block); }
    ReadBack(const ReadBack&) = delete;
    D3D12Block& block() { return *m_block; }
    /// Submits what was recorded; the caller holds the lock.
    void submit()
    {
        m_owner.m_queue.flush();
        m_id = m_owner.m_queue.timeline.submitted();
    }
    const uint8_t* wait()
    {
        while (!m_owner.m_queue.wait(m_id, 50'000'000))
            poll_interrupt();
        return m_block->mapped;
    }

private:
    D3D12HostAccess& m_owner;
    D3D12Block* m_block = nullptr;
    uint64_t m_id = 0;
};

void D3D12HostAccess::read_buffer(Buffer* buffer, uint64_t offset, void* data, uint64_t size)
{
    if (!size)
        return;
    auto* source = static_cast<D3D12Buffer*>(buffer);
    if (const void* memory = source->host_pointer()) {
        m_queue.timeline.require_open("read");
        m_queue.wait_all();
        std::memcpy(data, static_cast<const uint8_t*>(memory) + offset, size);
        return;
    }
    for (uint64_t begin = 0; begin < size; begin += chunk_size) {
        const uint64_t count = std::min(chunk_size, size - begin);
        std::unique_lock lock(m_queue.mutex());
        m_queue.timeline.require_open("read");
        ReadBack read(*this, count);
        m_recorder.record_copy(read.block(), 0, *source->block(), offset + begin, count);
        read.submit();
        lock.unlock();
        std::memcpy(static_cast<uint8_t*>(data) + begin, read.wait(), count);
    }
}

void D3D12HostAccess::write_buffer(Buffer* buffer, uint64_t offset, const void* data, uint64_t size)
{
    if (!size)
        return;
    auto* target = static_cast<D3D12Buffer*>(buffer);
    if (target->host_pointer()) {
        m_queue.wait_all();
        std::lock_guard lock(m_queue.mutex());
        m_queue.timeline.require_open("write");
        std::memcpy(static_cast<uint8_t*>(target->host_pointer()) + offset, data, size);
        return;
    }
    for (uint64_t begin = 0; begin < size; begin += chunk_size) {
        std::lock_guard lock(m_queue.mutex());
        m_queue.timeline.require_open("write");
        const uint64_t count = std::min(chunk_size, size - begin);
        const D3D12UploadSlice slice = m_uploads.slice(count, 16);
        std::memcpy(slice.data, static_cast<const uint8_t*>(data) + begin, count);
        m_recorder.record_copy(*target->block(), offset + begin, *slice.block, slice.offset, count);
        if (count == chunk_size)
            m_queue.flush();
    }
}

void D3D12HostAccess::read_texture(Texture* texture, uint32_t layer, uint32_t mip, void* data)
{
    auto* source = static_cast<D3D12Texture*>(texture);
    if (format_info(source->desc().format).is_stencil())
        return read_planes(*source, layer, mip, static_cast<uint8_t*>(data));
    const SubresourceLayout layout = subresource_layout(source->desc(), mip);
    const Extent3 extent{layout.width, layout.height, layout.depth};
    std::unique_lock lock(m_queue.mutex());
    m_queue.timeline.require_open("read");
    const TexelBox box = box_of(*source, extent, "read_texture");
    ReadBack read(*this, box.size());
    record_texture_read(m_queue, *source, source->subresource(layer, mip), {}, extent, read.block(), box);
    read.submit();
    lock.unlock();
    const uint8_t* memory = read.wait();
    for (uint64_t row = 0; row < box.rows * box.slices; ++row)
        std::memcpy(static_cast<uint8_t*>(data) + row * box.row_bytes, memory + row * box.row_pitch, box.row_bytes);
}

void D3D12HostAccess::write_texture(Texture* texture, uint32_t layer, uint32_t mip, const void* data)
{
    auto* target = static_cast<D3D12Texture*>(texture);
    if (format_info(target->desc().format).is_stencil())
        return write_planes(*target, layer, mip, static_cast<const uint8_t*>(data));
    const SubresourceLayout layout = subresource_layout(target->desc(), mip);
    std::lock_guard lock(m_queue.mutex());
    m_queue.timeline.require_open("write");
    m_recorder.record_texture_upload(*target, layer, mip, {}, {layout.width, layout.height, layout.depth}, data);
}

void D3D12HostAccess::read_planes(D3D12Texture& texture, uint32_t layer, uint32_t mip, uint8_t* data)
{
    refuse_samples(texture.desc(), "read_texture");
    const SubresourceLayout layout = subresource_layout(texture.desc(), mip);
    const Extent3 extent{layout.width, layout.height, 1};
    std::memset(data, 0, layout.size_in_bytes);
    for (UINT i = 0; i < 2; ++i) {
        const TexelPlane plane = texel_plane(i);
        const TexelBox box = box_of(plane, extent);
        std::unique_lock lock(m_queue.mutex());
        m_queue.timeline.require_open("read");
        ReadBack read(*this, box.size());
        record_plane_read(m_queue, texture, texture.subresource(layer, mip), plane, extent, read.block(), box);
        read.submit();
        lock.unlock();
        const uint8_t* memory = read.wait();
        for (uint64_t y = 0; y < box.rows; ++y)
            for (uint64_t x = 0; x < extent.width; ++x)
                std::memcpy(data + (y * extent.width + x) * 8 + (i ? 4 : 0),
                            memory + y * box.row_pitch + x * plane.texel_bytes, plane.texel_bytes);
    }
}

void D3D12HostAccess::write_planes(D3D12Texture& texture, uint32_t layer, uint32_t mip, const uint8_t* data)
{
    refuse_samples(texture.desc(), "write_texture");
    const SubresourceLayout layout = subresource_layout(texture.desc(), mip);
    const Extent3 extent{layout.width, layout.height, 1};
    std::lock_guard lock(m_queue.mutex());
    m_queue.timeline.require_open("write");
    for (UINT i = 0; i < 2; ++i) {
        const TexelPlane plane = texel_plane(i);
        TexelBox box = box_of(plane, extent);
        const D3D12UploadSlice slice = m_uploads.slice(box.size(), 512);
        for (uint64_t y = 0; y < box.rows; ++y)
            for (uint64_t x = 0; x < extent.width; ++x)
                std::memcpy(slice.data + y * box.row_pitch + x * plane.texel_bytes,
                            data + (y * extent.width + x) * 8 + (i ? 4 : 0), plane.texel_bytes);
        box.offset = slice.offset;
        record_plane_write(m_queue, texture, texture.subresource(layer, mip), plane, extent, *slice.block, box);
    }
}

void D3D12HostAccess::read_queries(D3D12QueryPool& pool, uint32_t index, uint32_t count, uint64_t* ticks)
{
    std::unique_lock lock(m_queue.mutex());
    m_queue.timeline.require_open("get_results");
    ReadBack read(*this, count * 8);
    m_queue.barriers.use(read.block(), D3D12_RESOURCE_STATE_COPY_DEST);
    m_queue.begin_command()->ResolveQueryData(pool.handle(), D3D12_QUERY_TYPE_TIMESTAMP, index, count,
                                              read.block().resource.get(), 0);
    read.submit();
    lock.unlock();
    std::memcpy(ticks, read.wait(), count * 8);
}

} // namespace spy
