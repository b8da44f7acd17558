// The order of work: streams that wait for each other, how far the device is, and what is freed on the way.
#include "cuda/queue.h"
#include "cuda/memory.h"
#include "cuda/texture.h"

#include <algorithm>
#include <utility>

namespace spy {

CUstream cuda_stream_of(NativeHandle handle)
{
    if (handle.type == NativeHandleType::undefined)
        return nullptr;
    if (handle.type != NativeHandleType::CUstream)
        fail_value("cuda_stream: expected a CUstream handle (NativeHandle.from_cuda_stream(...))");
    return handle.value <= 1 ? nullptr : reinterpret_cast<CUstream>(handle.value); // 1 names the legacy stream
}

void CudaQueue::open()
{
    m_context.check(m_context.api().cuEventCreate(&m_own_event, CU_EVENT_DISABLE_TIMING), "create an event");
    m_context.check(m_context.api().cuEventCreate(&m_tail_event, CU_EVENT_DISABLE_TIMING), "create an event");
}

void CudaQueue::close() noexcept
{
    const CudaApi& api = m_context.api();
    // After a fault every call fails; the driver frees all with the process.
    try {
        begin_work(nullptr);
    } catch (const Error&) {
    }
    api.cuStreamSynchronize(nullptr);
    for (Garbage& garbage : m_garbage)
        garbage.action();
    m_garbage.clear();
    for (Mark& mark : m_marks)
        api.cuEventDestroy(mark.event);
    m_marks.clear();
    for (CUevent event : m_spare_events)
        api.cuEventDestroy(event);
    m_spare_events.clear();
    for (CUevent* event : {&m_own_event, &m_tail_event})
        if (*event)
            api.cuEventDestroy(std::exchange(*event, nullptr));
}

bool CudaQueue::begin_work_slow(CUstream stream)
{
    if (stream) {
        CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
        m_context.check(m_context.api().cuStreamIsCapturing(stream, &status), "use the given CUstream");
        if (status != CU_STREAM_CAPTURE_STATUS_NONE)
            return false; // events of other streams may not enter a graph; its owner orders the replays
    }
    if (stream == m_tail)
        return true;
    if (m_tail == nullptr) {
        m_context.check(m_context.api().cuEventRecord(m_own_event, nullptr), "record an event");
        m_context.check(m_context.api().cuStreamWaitEvent(stream, m_own_event, 0), "order two streams");
    } else {
        m_context.check(m_context.api().cuStreamWaitEvent(stream, m_tail_event, 0), "order two streams");
    }
    m_tail = stream;
    return true;
}

void CudaQueue::end_work(CUstream stream, bool tracked)
{
    if (!tracked)
        return;
    m_sequence.fetch_add(1, std::memory_order_relaxed);
    if (stream) // recorded at once rather than when needed: the stream's owner may destroy it in between
        m_context.check(m_context.api().cuEventRecord(m_tail_event, stream), "record an event");
}

void CudaQueue::finish_work(CUstream stream, bool tracked) noexcept
{
    try {
        end_work(stream, tracked);
    } catch (const Error&) {
        // Only a lost context or a destroyed stream fails here, which the next call reports.
    }
    if (!m_retired.empty()) [[unlikely]]
        m_retired.clear();
}

CUevent CudaQueue::take_event()
{
    if (!m_spare_events.empty()) {
        CUevent event = m_spare_events.back();
        m_spare_events.pop_back();
        return event;
    }
    CUevent event = nullptr;
    m_context.check(m_context.api().cuEventCreate(&event, CU_EVENT_DISABLE_TIMING), "create an event");
    return event;
}

void CudaQueue::record_mark()
{
    begin_work(nullptr);
    CUevent event = take_event();
    CUresult result = m_context.api().cuEventRecord(event, nullptr);
    if (result != CUDA_SUCCESS) {
        m_spare_events.push_back(event);
        m_context.raise(result, "record an event");
    }
    m_marks.push_back({m_sequence.load(), event});
}

void CudaQueue::poll()
{
    while (!m_marks.empty()) {
        CUresult result = m_context.api().cuEventQuery(m_marks.front().event);
        if (result == CUDA_ERROR_NOT_READY)
            break;
        m_context.check(result, "wait for the device");
        m_completed = m_marks.front().sequence;
        m_spare_events.push_back(m_marks.front().event);
        m_marks.pop_front();
    }
    if (m_completed == m_sequence.load())
        m_context.labels().forget();
    while (!m_garbage.empty() && m_garbage.front().sequence <= m_completed) {
        std::function<void()> action = std::move(m_garbage.front().action);
        m_garbage.pop_front();
        action();
    }
    m_memory.free_late();
}

bool CudaQueue::is_finished(uint64_t submit_id)
{
    CudaContext::Lock lock(m_context);
    m_context.ensure_usable();
    if (submit_id <= m_completed)
        return true;
    CudaContext::Relaxed relaxed(m_context.api());
    // A mark taken now covers at least the work asked for.
    if (m_marks.empty() || m_marks.back().sequence < std::min(submit_id, m_sequence.load()))
        record_mark();
    poll();
    return submit_id <= m_completed;
}

bool CudaQueue::wait(uint64_t submit_id, uint64_t timeout_ns)
{
    submit_id = std::min(submit_id, newest_id());
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

CUresult CudaQueue::wait_event(CUevent event)
{
    PatientWait patience;
    for (;;) {
        CUresult result = m_context.api().cuEventQuery(event);
        if (result != CUDA_ERROR_NOT_READY)
            return result;
        patience.pause();
    }
}

void CudaQueue::wait_stream(CUstream stream, CudaContext::Lock* lock)
{
    CUevent event = take_event();
    CUresult result = m_context.api().cuEventRecord(event, stream);
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
    m_context.check(result, "wait for the device");
}

void CudaQueue::defer(std::function<void()> action) noexcept
{
    if (!m_context.alive())
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

bool CudaQueue::is_capturing(CUstream stream)
{
    if (!stream)
        return false; // the legacy stream cannot be captured
    CudaContext::Lock lock(m_context);
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    m_context.check(m_context.api().cuStreamIsCapturing(stream, &status), "use the given CUstream");
    return status != CU_STREAM_CAPTURE_STATUS_NONE;
}

void CudaQueue::sync_to_stream(CUstream stream)
{
    CudaContext::Lock lock(m_context);
    m_context.ensure_usable();
    if (!stream)
        return; // the own queue is that stream
    CudaContext::Relaxed relaxed(m_context.api());
    CUstream queue = own_queue();
    CUevent event = take_event();
    m_context.check(m_context.api().cuEventRecord(event, stream), "record an event on the given CUstream");
    m_context.check(m_context.api().cuStreamWaitEvent(queue, event, 0), "order two streams");
    m_spare_events.push_back(event); // a wait keeps the state that the event had when it was enqueued
}

void CudaQueue::sync_stream_to(CUstream stream)
{
    CudaContext::Lock lock(m_context);
    m_context.ensure_usable();
    begin_work(nullptr);
    if (!stream)
        return;
    m_context.check(m_context.api().cuEventRecord(m_own_event, nullptr), "record an event");
    m_context.check(m_context.api().cuStreamWaitEvent(stream, m_own_event, 0), "order two streams");
}

} // namespace spy
