// How far the device is, and waiting for it.
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
    complete_all();
    m_fence.reset();
}

void D3D12Timeline::fail_removed(HRESULT reason)
{
    note_lost(cat("Direct3D 12 device ", m_context.name()), cat(" (", hresult_text(reason), ")"));
    fail_lost();
}

void D3D12Timeline::check(HRESULT result, const char* what)
{
    if (SUCCEEDED(result))
        return;
    if (const HRESULT reason = m_context.device->GetDeviceRemovedReason(); FAILED(reason))
        fail_removed(reason);
    d3d12_check(result, what);
}

uint64_t D3D12Timeline::ask_completed()
{
    const uint64_t value = m_fence->GetCompletedValue();
    if (value == ~0ull)
        fail_removed(m_context.device->GetDeviceRemovedReason());
    return value;
}

uint64_t D3D12Timeline::completed_or_known() const noexcept
{
    return m_fence && !is_lost() ? m_fence->GetCompletedValue() : known_completed();
}

void D3D12Timeline::wait(uint64_t submit_id)
{
    for (PatientWait patience; completed() < std::min(submit_id, submitted());)
        patience.pause();
}

void D3D12Timeline::wait_idle() noexcept
{
    try {
        for (PatientWait patience; completed() < submitted();)
            patience.pause(~0ull, false);
    } catch (const Error&) { // lost: nothing runs any more
    }
}

} // namespace spy
