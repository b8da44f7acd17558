#pragma once
// Device memory: the pool it comes from, what is in use, and buffers.
#include "cuda/queue.h"

#include <utility>

namespace spy {

class CudaDevice;

/// Memory in use, by purpose.
struct CudaUsage {
    struct Sum {
        uint64_t bytes = 0, count = 0;
        void add(uint64_t more)
        {
            bytes += more;
            ++count;
        }
        void take(uint64_t less)
        {
            bytes -= less;
            --count;
        }
    };
    Sum buffers, textures, host;
};

/// All of these need the lock of the context.
class CudaMemory {
public:
    static constexpr size_t staging_size = 256 * 1024; ///< of a piece of pinned memory

    CudaMemory(CudaContext& context, CudaQueue& queue) : m_context(context), m_queue(queue) { }
    void open();
    void close() noexcept;

    CUdeviceptr allocate(uint64_t size, CUstream stream, const std::string& purpose);
    void free(CUdeviceptr address, CUstream stream) noexcept;
    void free_buffer(CUdeviceptr address, uint64_t size) noexcept;
    /// Frees what a graph capture kept from being freed.
    void free_late() noexcept
    {
        if (!m_late_frees.empty()) [[unlikely]]
            for (auto [address, size] : std::exchange(m_late_frees, {}))
                free_buffer(address, size);
    }
    /// What reading a null buffer finds (zeros) or where writing to one goes: an access must not end the context.
    CUdeviceptr null_memory(bool writable, CUstream stream);
    /// A piece of pinned memory, which spares small reads the driver's own staging.
    void* take_staging();
    void give_staging(void* piece) { m_staging.push_back(piece); }
    CudaUsage& usage() { return m_usage; }
    std::vector<HeapReport> reports() const;

private:
    CudaContext& m_context;
    CudaQueue& m_queue;
    CUmemoryPool m_pool = nullptr;
    CUdeviceptr m_null_memory = 0;
    std::vector<std::pair<CUdeviceptr, uint64_t>> m_late_frees; ///< buffers, while a graph is captured
    std::vector<void*> m_staging;                               ///< free pieces of pinned memory
    CudaUsage m_usage;
};

/// Frees memory of one command in the stream's order, also when the launch fails.
struct CudaTemporary {
    CudaMemory& memory;
    CUstream stream;
    CUdeviceptr address = 0;
    ~CudaTemporary()
    {
        if (address)
            memory.free(address, stream);
    }
};

class CudaBuffer final : public Buffer {
public:
    CudaBuffer(ref<CudaDevice> device, const BufferDesc& desc);
    ~CudaBuffer() override;
    uint64_t device_address() const override { return m_address; }
    uint64_t cuda_address() override { return m_address; }
    void* host_pointer() const override { return m_host; }
    NativeHandle native_handle() const override { return {NativeHandleType::CUdeviceptr, m_address}; }
    NativeHandle shared_handle() override;
    void release() noexcept override;
    /// Texture object over the memory, for texel buffers.
    CUtexObject texel_object();

private:
    CUdeviceptr m_address = 0;
    void* m_host = nullptr;
    CUtexObject m_texel_object = 0;
};

} // namespace spy
