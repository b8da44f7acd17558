#pragma once
// Host access to buffers, textures and query results, through staging memory.
#include "d3d12/recorder.h"

namespace spy {

class D3D12HostAccess {
public:
    D3D12HostAccess(D3D12Memory& memory, D3D12Queue& queue, D3D12Uploads& uploads, D3D12Recorder& recorder)
        : m_memory(memory),
          m_queue(queue),
          m_uploads(uploads),
          m_recorder(recorder)
    {
    }
    void read_buffer(Buffer* buffer, uint64_t offset, void* data, uint64_t size);
    void write_buffer(Buffer* buffer, uint64_t offset, const void* data, uint64_t size);
    void read_texture(Texture* texture, uint32_t layer, uint32_t mip, void* data);
    void write_texture(Texture* texture, uint32_t layer, uint32_t mip, const void* data);
    void read_queries(D3D12QueryPool& pool, uint32_t index, uint32_t count, uint64_t* ticks);

private:
    class ReadBack;

    /// Of a texture with depth and stencil, 8 bytes a texel: a float, a byte, three that count for nothing.
    void read_planes(D3D12Texture& texture, uint32_t layer, uint32_t mip, uint8_t* data);
    void write_planes(D3D12Texture& texture, uint32_t layer, uint32_t mip, const uint8_t* data);

    D3D12Memory& m_memory;
    D3D12Queue& m_queue;
    D3D12Uploads& m_uploads;
    D3D12Recorder& m_recorder;
};

} // namespace spy
