#pragma once
// The CUDA context of a device: opening and closing it, the lock over it, and the errors of its driver calls.
#include "core/interrupt.h"
#include "cuda/api.h"
#include "device/device.h"

#include <mutex>

namespace spy {

/// Labels of kernels by number, and those of the newest launches, for the message about a fault.
class CudaLabels {
public:
    uint32_t intern(const std::string& label);
    void note(uint32_t number) { m_recent[m_recent_count++ % m_recent.size()] = number; }
    void forget() { m_recent_count = 0; }    ///< all that was launched has run
    std::vector<std::string> newest() const; ///< without repeats, newest first

private:
    std::vector<std::string> m_all;
    std::array<uint32_t, 8> m_recent{};
    uint32_t m_recent_count = 0;
};

class CudaContext {
public:
    CudaContext();
    CudaContext(const CudaContext&) = delete;
    ~CudaContext();
    /// Finds the device that `desc` names and opens its primary context, or takes the context given there.
    void open(const DeviceDesc& desc);
    /// Gives the context up; what holds the lock calls it, and release() when the lock is gone.
    void forget();
    void release() noexcept;

    const CudaApi& api() const { return m_api; }
    CUdevice device() const { return m_device; }
    CUcontext handle() const { return m_context; }
    bool is_primary() const { return m_primary; }
    bool alive() const { return m_context != nullptr; }
    int compute() const { return m_compute; } ///< 90 for compute capability 9.0
    const std::string& arch() const { return m_arch; }
    bool has_stream_values() const { return m_stream_values; }
    int attribute(CUdevice_attribute which) const;
    void set_current();

    /// Throws for a failed driver call; `what` completes "CUDA failed to ...".
    template <typename... What>
    void check(CUresult result, const What&... what)
    {
        if (result != CUDA_SUCCESS) [[unlikely]]
            raise(result, cat(what...));
    }
    [[noreturn]] void raise(CUresult result, const std::string& what);
    void ensure_usable();
    CudaLabels& labels() { return m_labels; }

    /// Memory that others still use when the device closes: the context stays for it until free_after_close().
    void keep() { m_keep = true; }
    void free_after_close(CUdeviceptr address, void* host) noexcept;

    /// Makes the context current for the calling thread (restoring the caller's afterwards) and takes the lock.
    class Lock {
    public:
        explicit Lock(CudaContext& context) : m_context(context), m_lock(context.m_mutex)
        {
            m_switched = context.enter();
        }
        ~Lock()
        {
            if (m_switched)
                m_context.leave();
        }
        Lock(const Lock&) = delete;
        void unlock() { m_lock.unlock(); } ///< the context stays current
        void lock() { m_lock.lock(); }

    private:
        CudaContext& m_context;
        std::unique_lock<PoliteMutex> m_lock;
        bool m_switched;
    };
    /// While alive, this thread's calls cannot break a graph capture that torch runs on another stream.
    class Relaxed {
    public:
        explicit Relaxed(const CudaApi& api) : m_api(api) { m_api.cuThreadExchangeStreamCaptureMode(&m_mode); }
        ~Relaxed() { m_api.cuThreadExchangeStreamCaptureMode(&m_mode); }
        Relaxed(const Relaxed&) = delete;

    private:
        const CudaApi& m_api;
        CUstreamCaptureMode m_mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    };

private:
    friend class Lock;
    int find_ordinal(const DeviceDesc& desc);
    void read_attributes();
    bool enter()
    {
        CUcontext current = nullptr;
        m_api.cuCtxGetCurrent(&current);
        if (current == m_context) [[likely]]
            return false;
        return m_context && m_api.cuCtxPushCurrent(m_context) == CUDA_SUCCESS;
    }
    void leave() noexcept
    {
        CUcontext popped = nullptr;
        m_api.cuCtxPopCurrent(&popped);
    }

    const CudaApi& m_api;
    CUdevice m_device = 0;
    CUcontext m_context = nullptr;
    CUcontext m_kept = nullptr; ///< of the closed device, while exported memory needs it
    bool m_primary = false, m_keep = false;
    int m_compute = 0;
    std::string m_arch;
    bool m_stream_values = false;
    PoliteMutex m_mutex;
    CudaLabels m_labels;
    std::string m_fault; ///< set once the context is lost
};

/// The CUDA devices of this machine; none where the driver is missing.
std::vector<AdapterInfo> enumerate_cuda();
AdapterInfo cuda_adapter_info(const CudaApi& api, CUdevice device);

} // namespace spy
