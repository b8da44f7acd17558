// Fences and timestamps.
#include "cuda/fence.h"
#include "cuda/device.h"

#include <chrono>
#include <cmath>
#include <utility>

namespace spy {

namespace {

uint64_t now_ns()
{
    return uint64_t(
        std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
            .count());
}

} // namespace

CudaFence::CudaFence(ref<CudaDevice> device, uint64_t initial_value, bool shared) : Fence(device)
{
    if (shared)
        fail(ErrorKind::not_implemented,
             "create_fence: CUDA fences cannot be shared; create the fence on a vulkan or d3d12 device");
    CudaContext::Lock lock(device->context());
    device->context().ensure_usable();
    CudaContext::Relaxed relaxed(device->context().api());
    void* memory = nullptr;
    device->context().check(device->context().api().cuMemHostAlloc(
                                &memory, sizeof(uint64_t), CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP),
                            "allocate a fence");
    m_word = new (memory) std::atomic<uint64_t>(initial_value);
    device->context().check(device->context().api().cuMemHostGetDevicePointer(&m_address, memory, 0), "map a fence");
}

void CudaFence::release() noexcept
{
    CudaDevice& device = cuda(m_device);
    if (!m_word || !device.context().alive())
        return;
    CudaContext::Lock lock(device.context());
    CudaContext::Relaxed relaxed(device.context().api());
    device.queue().defer(
        [api = &device.context().api(), word = std::exchange(m_word, nullptr)] { api->cuMemFreeHost(word); });
}

uint64_t CudaFence::current_value() { return m_word ? m_word->load(std::memory_order_acquire) : 0; }

void CudaFence::signal(uint64_t value)
{
    if (m_word)
        m_word->store(value, std::memory_order_release);
}

bool CudaFence::wait(uint64_t value, uint64_t timeout_ns)
{
    PatientWait patience;
    while (current_value() < value) {
        uint64_t spent = patience.spent_ns();
        if (spent >= timeout_ns || !m_word)
            return false;
        // A kernel fault would leave the fence unsignalled for ever: look for one now and then.
        if (spent > 10'000'000)
            m_device->is_finished(m_device->last_submit_id());
        patience.pause(timeout_ns - spent, false);
    }
    return true;
}

void CudaFence::wait_on(CUstream stream, uint64_t value)
{
    CudaDevice& device = cuda(m_device);
    if (current_value() >= value)
        return;
    if (device.context().has_stream_values()) {
        device.context().check(
            device.context().api().cuStreamWaitValue64(stream, m_address, value, CU_STREAM_WAIT_VALUE_GEQ),
            "wait for a fence");
        return;
    }
    fail_runtime("submit: this driver cannot make a stream wait for fence value ", value,
                 "; wait on the host with Fence.wait() before submitting");
}

void CudaFence::signal_on(CUstream stream, uint64_t value)
{
    CudaDevice& device = cuda(m_device);
    if (device.context().has_stream_values()) {
        device.context().check(device.context().api().cuStreamWriteValue64(stream, m_address, value, 0),
                               "signal a fence");
        return;
    }
    struct Signal {
        std::atomic<uint64_t>* word;
        uint64_t value;
    }; // the word is freed after all work before release()
    auto signal = std::make_unique<Signal>(Signal{m_word, value});
    auto callback = [](void* data) {
        static_cast<Signal*>(data)->word->store(static_cast<Signal*>(data)->value, std::memory_order_release);
    };
    device.context().check(device.context().api().cuLaunchHostFunc(stream, callback, signal.get()), "signal a fence");
    device.queue().end_work(stream, true);
    device.queue().defer([data = signal.release()] { delete data; });
}

// -------------------------------------------------------------------------------------------------------- timestamps

CudaQueryPool::CudaQueryPool(ref<CudaDevice> device, QueryType type, uint32_t count)
    : QueryPool(device, type, count),
      m_entries(count)
{
}

void CudaQueryPool::release() noexcept
{
    CudaDevice& device = cuda(m_device);
    if (device.context().alive()) {
        CudaContext::Lock lock(device.context());
        for (Entry& entry : m_entries)
            if (entry.event)
                device.context().api().cuEventDestroy(entry.event);
        m_entries.clear();
    } else {
        for (Entry& entry : m_entries)
            if (entry.anchor)
                entry.anchor->event = nullptr; // gone with the context
    }
}

void CudaQueryPool::reset(uint32_t index, uint32_t count)
{
    CudaContext::Lock lock(cuda(m_device).context());
    for (uint32_t i = index; i < index + count; ++i)
        m_entries[i].anchor = nullptr;
}

void CudaQueryPool::write(uint32_t index, CUstream stream)
{
    CudaDevice& device = cuda(m_device);
    Entry& entry = m_entries[index];
    if (!entry.event)
        device.context().check(device.context().api().cuEventCreate(&entry.event, CU_EVENT_DEFAULT), "create an event");
    entry.anchor = device.clock().anchor(stream);
    device.context().check(device.context().api().cuEventRecord(entry.event, stream), "write a timestamp");
}

void CudaQueryPool::get_results(uint32_t index, uint32_t count, uint64_t* ticks)
{
    CudaDevice& device = cuda(m_device);
    CudaContext::Lock lock(device.context());
    device.context().ensure_usable();
    CudaContext::Relaxed relaxed(device.context().api());
    for (uint32_t i = 0; i < count; ++i) {
        Entry& entry = m_entries[index + i];
        if (!entry.anchor)
            fail_no_result(index + i);
        float milliseconds = 0;
        const std::shared_ptr<CudaAnchor> anchor = entry.anchor; // a reset by another thread may drop it meanwhile
        device.context().check(device.queue().wait_event(entry.event), "wait for a timestamp");
        device.context().check(device.context().api().cuEventElapsedTime(&milliseconds, anchor->event, entry.event),
                               "read a timestamp");
        // One second ahead of the first anchor, so that every tick is positive.
        ticks[i] = 1'000'000'000 + device.clock().resolve(*anchor) + uint64_t(std::llround(double(milliseconds) * 1e6));
    }
}

std::shared_ptr<CudaAnchor> CudaClock::anchor(CUstream stream)
{
    // Elapsed times come as float32 milliseconds: anchors a quarter of a second apart keep their error below 20 ns.
    uint64_t now = now_ns();
    if (m_newest && now - m_newest->host_ns < 250'000'000)
        return m_newest;
    auto made = std::make_shared<CudaAnchor>();
    made->api = &m_context.api();
    m_context.check(m_context.api().cuEventCreate(&made->event, CU_EVENT_DEFAULT), "create an event");
    m_context.check(m_context.api().cuEventRecord(made->event, stream), "record an event");
    made->known = !m_newest;
    made->previous = m_newest;
    made->host_ns = now;
    m_newest = made;
    return made;
}

uint64_t CudaClock::resolve(CudaAnchor& last)
{
    std::vector<CudaAnchor*> chain;
    for (CudaAnchor* anchor = &last; !anchor->known; anchor = anchor->previous.get())
        chain.push_back(anchor);
    for (auto it = chain.rbegin(); it != chain.rend(); ++it) {
        CudaAnchor& anchor = **it;
        float milliseconds = 0;
        m_context.check(m_queue.wait_event(anchor.event), "wait for a timestamp");
        m_context.check(m_context.api().cuEventElapsedTime(&milliseconds, anchor.previous->event, anchor.event),
                        "read a timestamp");
        anchor.ticks = anchor.previous->ticks + uint64_t(double(milliseconds) * 1e6);
        anchor.known = true;
        anchor.previous = nullptr;
    }
    return last.ticks;
}

CudaAnchor::~CudaAnchor()
{
    if (event)
        api->cuEventDestroy(event);
}

} // namespace spy
