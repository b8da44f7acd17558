#pragma once
// How far the device is: the fence that counts submissions, and the message once the device is lost.
#include "d3d12/context.h"

namespace spy {

/// All of these need the lock of the queue.
class D3D12Timeline {
public:
    explicit D3D12Timeline(D3D12Context& context) : m_context(context) { }
    void open();
    void close() noexcept;
    void require_open(const char* what) const;

    ID3D12Fence* fence() const { return m_fence.get(); }
    uint64_t submitted() const { return m_submitted; }
    uint64_t advance() { return ++m_submitted; } ///< one more is submitted
    uint64_t completed();
    uint64_t known_completed() const { return m_completed; } ///< when it was last asked
    uint64_t completed_or_known() const noexcept;
    /// As long as it takes, or until Ctrl-C.
    void wait(uint64_t submit_id);
    /// Until nothing is in flight, or the device is lost.
    void wait_idle() noexcept;

    /// Throws for a failed call, with what is known of a lost device.
    void check(HRESULT result, const char* what);
    void note_label(const std::string& label) { m_last_label = label; }

private:
    [[noreturn]] void fail_lost(HRESULT reason);

    D3D12Context& m_context;
    Com<ID3D12Fence> m_fence;
    uint64_t m_submitted = 0, m_completed = 0;
    std::string m_lost; ///< message once the device is lost
    std::string m_last_label;
};

} // namespace spy
