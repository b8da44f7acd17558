#pragma once
// Reading and writing of buffers and textures by the host.
#include "cuda/memory.h"

namespace spy {

class CudaHostAccess {
public:
    CudaHostAccess(CudaContext& context, CudaQueue& queue, CudaMemory& memory)
        : m_context(context),
          m_queue(queue),
          m_memory(memory)
    {
    }
    void read_buffer(Buffer* buffer, uint64_t offset, void* data, uint64_t size);
    void write_buffer(Buffer* buffer, uint64_t offset, const void* data, uint64_t size);
    void read_texture(Texture* texture, uint32_t layer, uint32_t mip, void* data);
    void write_texture(Texture* texture, uint32_t layer, uint32_t mip, const void* data);

private:
    CudaContext& m_context;
    CudaQueue& m_queue;
    CudaMemory& m_memory;
};

} // namespace spy
