// Reading and writing of buffers and textures by the host.
#include "cuda/host.h"
#include "cuda/copy.h"

#include <cstring>

namespace spy {

namespace {

/// Uploads up to this size never wait in the driver.
constexpr uint64_t pageable_at_once = 64 << 10;

} // namespace

void CudaHostAccess::read_buffer(Buffer* buffer, uint64_t offset, void* data, uint64_t size)
{
    if (!size)
        return;
    CudaContext::Lock lock(m_context);
    m_context.ensure_usable();
    CudaContext::Relaxed relaxed(m_context.api());
    CUstream queue = m_queue.own_queue();
    void* staging = nullptr;
    if (size <= CudaMemory::staging_size && !buffer->host_pointer())
        staging = m_memory.take_staging();
    struct Return { // also when the wait is interrupted; a copy still under way comes before any that follows
        CudaMemory& memory;
        void* piece;
        ~Return()
        {
            if (piece)
                memory.give_staging(piece);
        }
    } give_back{m_memory, staging};
    CUresult result = CUDA_SUCCESS;
    if (staging)
        result = m_context.api().cuMemcpyDtoHAsync(staging, buffer->device_address() + offset, size, queue);
    m_context.check(result, "read ", size, " bytes of a buffer");
    m_queue.wait_stream(queue, &lock); // other threads may go on launching while this one waits
    if (staging)
        std::memcpy(data, staging, size);
    else if (buffer->host_pointer())
        std::memcpy(data, static_cast<uint8_t*>(buffer->host_pointer()) + offset, size);
    else
        m_context.check(
            m_context.api().cuMemcpyDtoHAsync(data, buffer->device_address() + offset, size, m_queue.own_queue()),
            "read ", size, " bytes of a buffer");
}

void CudaHostAccess::write_buffer(Buffer* buffer, uint64_t offset, const void* data, uint64_t size)
{
    if (!size)
        return;
    CudaContext::Lock lock(m_context);
    m_context.ensure_usable();
    CudaContext::Relaxed relaxed(m_context.api());
    CUstream queue = m_queue.own_queue();
    if (buffer->host_pointer()) {
        m_queue.wait_stream(queue, &lock); // the device may still read what stands there
        std::memcpy(static_cast<uint8_t*>(buffer->host_pointer()) + offset, data, size);
        return;
    }
    // From pageable memory: the driver has taken the bytes when it returns, and waits for its turn with large ones.
    if (size > pageable_at_once) {
        m_queue.wait_stream(queue, &lock);
        queue = m_queue.own_queue();
    }
    m_context.check(m_context.api().cuMemcpyHtoDAsync(buffer->device_address() + offset, data, size, queue), "write ",
                    size, " bytes of a buffer");
}

void CudaHostAccess::read_texture(Texture* texture, uint32_t layer, uint32_t mip, void* data)
{
    CudaContext::Lock lock(m_context);
    m_context.ensure_usable();
    CudaContext::Relaxed relaxed(m_context.api());
    CUstream queue = m_queue.own_queue();
    SubresourceLayout layout = subresource_layout(texture->desc(), mip);
    CUDA_MEMCPY3D copy = copy_extent(layout.row_pitch, layout.row_count, layout.depth);
    set_source(copy, cuda(texture), layer, mip, {});
    set_destination(copy, CU_MEMORYTYPE_HOST, data, 0, layout.row_pitch);
    m_queue.wait_stream(queue, &lock);
    copy_part(m_context, copy, "read a texture", m_queue.own_queue());
    m_context.check(m_context.api().cuStreamSynchronize(nullptr), "read a texture");
}

void CudaHostAccess::write_texture(Texture* texture, uint32_t layer, uint32_t mip, const void* data)
{
    CudaContext::Lock lock(m_context);
    m_context.ensure_usable();
    CudaContext::Relaxed relaxed(m_context.api());
    CUstream queue = m_queue.own_queue();
    SubresourceLayout layout = subresource_layout(texture->desc(), mip);
    CUDA_MEMCPY3D copy = copy_extent(layout.row_pitch, layout.row_count, layout.depth);
    set_source(copy, CU_MEMORYTYPE_HOST, data, 0, layout.row_pitch);
    set_destination(copy, cuda(texture), layer, mip, {});
    m_queue.wait_stream(queue, &lock);
    copy_part(m_context, copy, "write a texture", m_queue.own_queue());
    // A host that hands over pinned memory would else race with the copy.
    m_context.check(m_context.api().cuStreamSynchronize(nullptr), "write a texture");
}

} // namespace spy
