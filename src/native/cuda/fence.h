#pragma once
// Fences and timestamps.
#include "cuda/queue.h"

namespace spy {

class CudaDevice;

/// A counter in pinned memory, which streams write and wait for.
class CudaFence final : public Fence {
public:
    CudaFence(ref<CudaDevice> device, uint64_t initial_value, bool shared);
    ~CudaFence() override { retire(); }
    uint64_t current_value() override;
    void signal(uint64_t value) override;
    bool wait(uint64_t value, uint64_t timeout_ns) override;
    void release() noexcept override;
    void wait_on(CUstream stream, uint64_t value);
    void signal_on(CUstream stream, uint64_t value);

private:
    std::atomic<uint64_t>* m_word = nullptr;
    CUdeviceptr m_address = 0;
};

/// An event with its place on the device's time line.
struct CudaAnchor {
    const CudaApi* api;
    CUevent event = nullptr;
    std::shared_ptr<CudaAnchor> previous; ///< dropped once `ticks` is known
    uint64_t ticks = 0;
    uint64_t host_ns = 0; ///< when it was recorded
    bool known = false;
    ~CudaAnchor();
};

/// The device's time line, from the anchors on it: the driver tells only how long after another an event was.
class CudaClock {
public:
    CudaClock(CudaContext& context, CudaQueue& queue) : m_context(context), m_queue(queue) { }
    void close() noexcept { m_newest = nullptr; }
    std::shared_ptr<CudaAnchor> anchor(CUstream stream);
    uint64_t resolve(CudaAnchor& anchor);

private:
    CudaContext& m_context;
    CudaQueue& m_queue;
    std::shared_ptr<CudaAnchor> m_newest;
};

class CudaQueryPool final : public QueryPool {
public:
    CudaQueryPool(ref<CudaDevice> device, QueryType type, uint32_t count);
    ~CudaQueryPool() override { retire(); }
    void reset(uint32_t index, uint32_t count) override;
    void get_results(uint32_t index, uint32_t count, uint64_t* ticks) override;
    void release() noexcept override;
    void write(uint32_t index, CUstream stream);

private:
    struct Entry {
        CUevent event = nullptr;
        std::shared_ptr<CudaAnchor> anchor;
    };
    std::vector<Entry> m_entries;
};

} // namespace spy
