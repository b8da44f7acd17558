#pragma once
// A device whose memory is the host's and whose work is done when a call returns: what the CPU and the null backend
// share.
#include "device/command.h"
#include "device/device.h"

#include <condition_variable>
#include <map>
#include <mutex>

namespace spy {

class HostHeap;

/// Memory at a 64-byte boundary.
class HostMemory {
public:
    HostMemory() = default;
    HostMemory(std::shared_ptr<HostHeap> heap, uint64_t size, bool zero);
    ~HostMemory() { reset(); }
    HostMemory(HostMemory&& other) noexcept { *this = std::move(other); }
    HostMemory& operator=(HostMemory&& other) noexcept
    {
        std::swap(m_data, other.m_data);
        std::swap(m_size, other.m_size);
        std::swap(m_heap, other.m_heap);
        return *this;
    }
    uint8_t* data() const { return m_data; } ///< null when the system has no memory left
    void reset() noexcept;

private:
    uint8_t* m_data = nullptr;
    uint64_t m_size = 0;
    std::shared_ptr<HostHeap> m_heap;
};

/// Large blocks come in huge pages and are kept for the next request of their size: touching fresh pages costs more
/// than many kernels do.
class HostHeap {
public:
    static constexpr uint64_t large = 1u << 20;
    static constexpr uint64_t max_cached = 512u << 20;

    /// is_guarded: each block lies between pages that fault, and ends at the last one, but for less than 64 bytes. What
    /// reads or writes outside of it, or after it was freed, stops at once.
    explicit HostHeap(bool is_guarded = false) : m_is_guarded(is_guarded) { }
    ~HostHeap();
    /// `size` is rounded up to what is really taken.
    uint8_t* allocate(uint64_t& size, bool zero);
    void free(uint8_t* data, uint64_t size) noexcept;
    void trim() noexcept; ///< gives what is cached back to the system
    HeapReport report();

private:
    const bool m_is_guarded;
    std::mutex m_mutex;
    std::multimap<uint64_t, uint8_t*> m_cache; ///< by size
    uint64_t m_cached = 0, m_in_use = 0, m_count = 0;
};

class HostDevice : public Device {
public:
    ref<Buffer> create_buffer(const BufferDesc& desc) override;
    ref<TextureView> create_texture_view(Texture* texture, const TextureViewDesc& desc) override;
    ref<Fence> create_fence(uint64_t initial_value, bool shared) override;
    ref<QueryPool> create_query_pool(QueryType type, uint32_t count) override;

    uint64_t submit(const SubmitDesc& desc) override;
    uint64_t last_submit_id() override { return m_submit_id; }
    bool is_finished(uint64_t) override { return true; }
    bool wait(uint64_t, uint64_t) override { return true; }

    void read_buffer(Buffer* buffer, uint64_t offset, void* data, uint64_t size) override;
    void write_buffer(Buffer* buffer, uint64_t offset, const void* data, uint64_t size) override;
    void read_texture(Texture* texture, uint32_t layer, uint32_t mip, void* data) override;
    void write_texture(Texture* texture, uint32_t layer, uint32_t mip, const void* data) override;
    std::vector<HeapReport> heap_reports() override;

    const std::shared_ptr<HostHeap>& heap() { return m_heap; }
    /// Reached on devices with the feature 'rasterization' alone.
    virtual void run_render_pass(const command::RenderPass& pass);
    /// Reached on devices with the feature 'acceleration_structure' alone.
    virtual void run_ray_command(const Command& command);
    std::atomic<uint64_t> m_submit_id{0};

protected:
    void close_backend() noexcept override { m_heap->trim(); }
    std::shared_ptr<HostHeap> m_heap = std::make_shared<HostHeap>(); ///< exported memory may outlive the device
};

class HostBuffer final : public Buffer {
public:
    HostBuffer(ref<HostDevice> device, BufferDesc desc);
    uint64_t device_address() const override { return uint64_t(m_memory.data()); }
    void* host_pointer() const override { return m_memory.data(); }
    void release() noexcept override
    {
        if (!m_exported)
            m_memory.reset();
    }

private:
    HostMemory m_memory;
};

/// Texels of every layer and mip one after the other, rows tightly packed; the samples of a layer one after the other.
class HostTexture final : public Texture {
public:
    HostTexture(ref<HostDevice> device, TextureDesc desc);
    uint64_t memory_usage() const override { return m_size; }
    uint8_t* subresource(uint32_t layer, uint32_t mip) const;
    uint64_t subresource_size(uint32_t mip) const;
    /// Where layers and mips begin, in bytes from the first: by layer * mip_count + mip.
    const std::vector<uint64_t>& offsets() const { return m_offsets; }
    void release() noexcept override { m_memory.reset(); }

private:
    uint64_t m_size = 0;
    std::vector<uint64_t> m_offsets;
    HostMemory m_memory;
};

class HostFence final : public Fence {
public:
    HostFence(ref<Device> device, uint64_t value) : Fence(std::move(device)), m_value(value) { }
    uint64_t current_value() override;
    void signal(uint64_t value) override;
    bool wait(uint64_t value, uint64_t timeout_ns) override;

private:
    std::mutex m_mutex;
    std::condition_variable m_changed;
    uint64_t m_value;
};

/// Nanoseconds of the steady clock.
class HostQueryPool final : public QueryPool {
public:
    HostQueryPool(ref<Device> device, QueryType type, uint32_t count)
        : QueryPool(std::move(device), type, count),
          m_ticks(count)
    {
    }
    void reset(uint32_t index, uint32_t count) override;
    void get_results(uint32_t index, uint32_t count, uint64_t* ticks) override;
    void write(uint32_t index);
    void write(uint32_t index, uint64_t value) { m_ticks[index] = value; }

private:
    std::vector<uint64_t> m_ticks;
};

} // namespace spy
