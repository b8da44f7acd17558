#pragma once
// How far the device is: the fence that counts submissions.
#include "d3d12/context.h"

#include "device/timeline.h"

namespace spy {

/// All of these need the lock of the queue.
class D3D12Timeline final : public Timeline {
public:
    explicit D3D12Timeline(D3D12Context& context) : m_context(context) { }
    void open();
    void close() noexcept;

    ID3D12Fence* fence() const { return m_fence.get(); }
    uint64_t completed_or_known() const noexcept override;
    void wait(uint64_t submit_id) override;
    /// Until nothing is in flight, or the device is lost.
    void wait_idle() noexcept;

    /// Throws for a failed call, with what is known of a lost device.
    void check(HRESULT result, const char* what);

protected:
    bool is_open() const override { return m_context.is_open(); }
    uint64_t ask_completed() override;

private:
    [[noreturn]] void fail_removed(HRESULT reason);

    D3D12Context& m_context;
    Com<ID3D12Fence> m_fence;
};

} // namespace spy
