// The order of work: streams that wait for each other, how far the device is, and what is freed on the way.
#include "cuda/cuda_backend.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace spy {

namespace {

uint64_t now_ns()
{
    return uint64_t(std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count());
}

} // namespace

bool CudaDevice::begin_work(CUstream stream)
{
    if (stream == nullptr && m_tail == nullptr) [[likely]]
        return true;
    return begin_work_slow(stream);
}

bool CudaDevice::begin_work_slow(CUstream stream)
{
    if (stream) {
        CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
        check(m_api.cuStreamIsCapturing(stream, &status), "use the given CUstream");
        if (status != CU_STREAM_CAPTURE_STATUS_NONE)
            return false; // events of other streams may not enter a graph; its owner orders the replays
    }
    if (stream == m_tail)
        return true;
    if (m_tail == nullptr) {
        check(m_api.cuEventRecord(m_own_event, nullptr), "record an event");
        check(m_api.cuStreamWaitEvent(stream, m_own_event, 0), "order two streams");
    } else {
        check(m_api.cuStreamWaitEvent(stream, m_tail_event, 0), "order two streams");
    }
    m_tail = stream;
    return true;
}

void CudaDevice::end_work(CUstream stream, bool tracked)
{
    if (!tracked)
        return;
    m_sequence.fetch_add(1, std::memory_order_relaxed);
    if (stream) // recorded at once rather than when needed: the stream's owner may destroy it in between
        check(m_api.cuEventRecord(m_tail_event, stream), "record an event");
}

void CudaDevice::finish_work(CUstream stream, bool tracked) noexcept
{
    try {
        end_work(stream, tracked);
    } catch (const Error&) {
        // Only a lost context or a destroyed stream fails here, which the next call reports.
    }
    if (!m_retired.empty()) [[unlikely]]
        m_retired.clear();
}

CUevent CudaDevice::take_event()
{
    if (!m_spare_events.empty()) {
        CUevent event = m_spare_events.back();
        m_spare_events.pop_back();
        return event;
    }
    CUevent event = nullptr;
    check(m_api.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING), "create an event");
    return event;
}

void CudaDevice::record_mark()
{
    begin_work(nullptr);
    CUevent event = take_event();
    CUresult result = m_api.cuEventRecord(event, nullptr);
    if (result != CUDA_SUCCESS) {
        m_spare_events.push_back(event);
        raise(result, "record an event");
    }
    m_marks.push_back({m_sequence.load(), event});
}

void CudaDevice::poll()
{
    while (!m_marks.empty()) {
        CUresult result = m_api.cuEventQuery(m_marks.front().event);
        if (result == CUDA_ERROR_NOT_READY)
            break;
        check(result, "wait for the device");
        m_completed = m_marks.front().sequence;
        m_spare_events.push_back(m_marks.front().event);
        m_marks.pop_front();
    }
    if (m_completed == m_sequence.load())
        m_recent_count = 0;
    while (!m_garbage.empty() && m_garbage.front().sequence <= m_completed) {
        std::function<void()> action = std::move(m_garbage.front().action);
        m_garbage.pop_front();
        action();
    }
    if (!m_late_frees.empty())
        for (auto [address, size] : std::exchange(m_late_frees, {}))
            free_buffer(address, size);
}

bool CudaDevice::is_finished(uint64_t submit_id)
{
    Lock lock(*this);
    ensure_usable();
    if (submit_id <= m_completed)
        return true;
    Relaxed relaxed(m_api);
    // A mark taken now covers at least the work asked for.
    if (m_marks.empty() || m_marks.back().sequence < std::min(submit_id, m_sequence.load()))
        record_mark();
    poll();
    return submit_id <= m_completed;
}

bool CudaDevice::wait(uint64_t submit_id, uint64_t timeout_ns)
{
    submit_id = std::min(submit_id, last_submit_id());
    PatientWait patience;
    for (;;) {
        if (is_finished(submit_id))
            return true;
        uint64_t spent = patience.spent_ns();
        if (spent >= timeout_ns)
            return false;
        patience.pause(timeout_ns - spent, false);
    }
}

CUresult CudaDevice::wait_event(CUevent event)
{
    PatientWait patience;
    for (;;) {
        CUresult result = m_api.cuEventQuery(event);
        if (result != CUDA_ERROR_NOT_READY)
            return result;
        patience.pause();
    }
}

void CudaDevice::settle(CUstream stream, Lock* lock)
{
    CUevent event = take_event();
    CUresult result = m_api.cuEventRecord(event, stream);
    if (lock)
        lock->unlock();
    try {
        if (result == CUDA_SUCCESS)
            result = wait_event(event);
    } catch (...) {
        if (lock)
            lock->lock();
        m_spare_events.push_back(event);
        throw;
    }
    if (lock)
        lock->lock();
    m_spare_events.push_back(event);
    check(result, "wait for the device");
}

void CudaDevice::defer(std::function<void()> action) noexcept
{
    if (!alive())
        return;
    try {
        if (m_completed != m_sequence.load() && (m_marks.empty() || m_marks.back().sequence != m_sequence.load()))
            record_mark();
        m_garbage.push_back({m_sequence.load(), std::move(action)});
        poll();
    } catch (const Error&) {
        // The context is lost (the next call of the user reports it): nothing can be freed any more.
    }
}

CUstream CudaDevice::stream_of(NativeHandle handle) const
{
    if (handle.type == NativeHandleType::undefined)
        return nullptr;
    if (handle.type != NativeHandleType::CUstream)
        fail_value("cuda_stream: expected a CUstream handle (NativeHandle.from_cuda_stream(...))");
    return handle.value <= 1 ? nullptr : reinterpret_cast<CUstream>(handle.value); // 1 names the legacy stream
}

bool CudaDevice::is_capturing(NativeHandle handle)
{
    CUstream stream = stream_of(handle);
    if (!stream)
        return false; // the legacy stream cannot be captured
    Lock lock(*this);
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    check(m_api.cuStreamIsCapturing(stream, &status), "use the given CUstream");
    return status != CU_STREAM_CAPTURE_STATUS_NONE;
}

void CudaDevice::sync_to_stream(NativeHandle handle)
{
    Lock lock(*this);
    ensure_usable();
    CUstream stream = stream_of(handle);
    if (!stream)
        return; // the own queue is that stream
    Relaxed relaxed(m_api);
    CUstream queue = own_queue();
    CUevent event = take_event();
    check(m_api.cuEventRecord(event, stream), "record an event on the given CUstream");
    check(m_api.cuStreamWaitEvent(queue, event, 0), "order two streams");
    m_spare_events.push_back(event); // a wait keeps the state that the event had when it was enqueued
}

void CudaDevice::sync_stream_to(NativeHandle handle)
{
    Lock lock(*this);
    ensure_usable();
    CUstream stream = stream_of(handle);
    begin_work(nullptr);
    if (!stream)
        return;
    check(m_api.cuEventRecord(m_own_event, nullptr), "record an event");
    check(m_api.cuStreamWaitEvent(stream, m_own_event, 0), "order two streams");
}

// ------------------------------------------------------------------------------------------------------------- clock

std::shared_ptr<CudaAnchor> CudaDevice::time_anchor(CUstream stream)
{
    // Elapsed times come as float32 milliseconds: anchors a quarter of a second apart keep their error below 20 ns.
    uint64_t now = now_ns();
    if (m_anchor && now - m_anchor_host_ns < 250'000'000)
        return m_anchor;
    auto anchor = std::make_shared<CudaAnchor>();
    anchor->api = &m_api;
    check(m_api.cuEventCreate(&anchor->event, CU_EVENT_DEFAULT), "create an event");
    check(m_api.cuEventRecord(anchor->event, stream), "record an event");
    anchor->known = !m_anchor;
    anchor->previous = m_anchor;
    m_anchor = anchor;
    m_anchor_host_ns = now;
    return anchor;
}

uint64_t CudaDevice::resolve_ticks(CudaAnchor& last)
{
    std::vector<CudaAnchor*> chain;
    for (CudaAnchor* anchor = &last; !anchor->known; anchor = anchor->previous.get())
        chain.push_back(anchor);
    for (auto it = chain.rbegin(); it != chain.rend(); ++it) {
        CudaAnchor& anchor = **it;
        float milliseconds = 0;
        check(wait_event(anchor.event), "wait for a timestamp");
        check(m_api.cuEventElapsedTime(&milliseconds, anchor.previous->event, anchor.event), "read a timestamp");
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
