// How far the device is, waiting for it, and the message once it is lost.
#include "d3d12/timeline.h"

#include "core/error.h"
#include "core/interrupt.h"

#include <algorithm>

namespace spy {

void D3D12Timeline::open()
{
    d3d12_check(m_context.device->CreateFence(0, D3D12_FENCE_FLAG_NONE, iid_of<ID3D12Fence>(), m_fence.put_void()),
                "CreateFence");
}

void D3D12Timeline::close() noexcept
{
    m_completed = ~0ull; // idle, or lost: nothing will touch what waited any more
    m_fence.reset();
}

void D3D12Timeline::require_open(const char* what) const
{
    if (!m_context.is_open())
        fail_runtime(what, ": device is closed");
    if (!m_lost.empty())
        fail_runtime(m_lost);
}

void D3D12Timeline::fail_lost(HRESULT reason)
{
    if (m_lost.empty())
        m_lost = cat("the Direct3D 12 device ", m_context.name(), " was lost (", hresult_text(reason),
                     "): a kernel faulted or ran too long", m_last_label.empty() ? "" : " (the last one launched was '",
                     m_last_label, m_last_label.empty() ? "" : "')", "; close this device and create another");
    fail_runtime(m_lost);
}

void D3D12Timeline::check(HRESULT result, const char* what)
{
    if (SUCCEEDED(result))
        return;
    if (const HRESULT reason = m_context.device->GetDeviceRemovedReason(); FAILED(reason))
        fail_lost(reason);
    d3d12_check(result, what);
}

uint64_t D3D12Timeline::completed()
{
    if (m_completed < m_submitted) {
        const uint64_t value = m_fence->GetCompletedValue();
        if (value == ~0ull)
            fail_lost(m_context.device->GetDeviceRemovedReason());
        m_completed = std::max(m_completed, std::min(value, m_submitted));
    }
    return m_completed;
}

uint64_t D3D12Timeline::completed_or_known() const noexcept
{
    return m_fence && m_lost.empty() ? m_fence->GetCompletedValue() : m_completed;
}

void D3D12Timeline::wait(uint64_t submit_id)
{
    for (PatientWait patience; completed() < std::min(submit_id, m_submitted);)
        patience.pause();
}

void D3D12Timeline::wait_idle() noexcept
{
    try {
        for (PatientWait patience; completed() < m_submitted;)
            patience.pause(~0ull, false);
    } catch (const Error&) { // lost: nothing runs any more
    }
}

} // namespace spy
