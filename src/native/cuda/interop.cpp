// Memory and timelines of another API's device, imported into CUDA.
#include "cuda/api.h"
#include "device/cuda_interop.h"

#include <cstring>
#include <utility>

#ifndef _WIN32
#include <unistd.h>
#endif

namespace spy {

namespace {

constexpr int memory_type_fd = 1, timeline_type_fd = 9; ///< CUexternalMemoryHandleType, CUexternalSemaphoreHandleType
constexpr unsigned memory_dedicated = 1, stream_non_blocking = 1;

int find_device(const CudaApi& api, const std::array<uint8_t, 16>& uuid)
{
    int count = 0;
    api.cuDeviceGetCount(&count);
    for (int i = 0; i < count; ++i) {
        CUdevice device = 0;
        CUuuid found{};
        if (api.cuDeviceGet(&device, i) == CUDA_SUCCESS && api.cuDeviceGetUuid(&found, device) == CUDA_SUCCESS &&
            !std::memcmp(found.bytes, uuid.data(), uuid.size()))
            return i;
    }
    return -1;
}

std::string device_names(const CudaApi& api)
{
    std::string names;
    int count = 0;
    api.cuDeviceGetCount(&count);
    for (int i = 0; i < count; ++i) {
        char name[256] = {};
        CUdevice device = 0;
        if (api.cuDeviceGet(&device, i) == CUDA_SUCCESS &&
            api.cuDeviceGetName(name, sizeof(name) - 1, device) == CUDA_SUCCESS)
            names += cat(names.empty() ? "" : ", ", "'", name, "'");
    }
    return names.empty() ? "none" : names;
}

/// A descriptor that CUDA takes over when an import succeeds.
struct Descriptor {
    int value;
    explicit Descriptor(int fd) : value(fd) { }
    Descriptor(const Descriptor&) = delete;
    ~Descriptor()
    {
#ifndef _WIN32
        if (value >= 0)
            close(value);
#endif
    }
};

class DriverInterop final : public CudaInterop {
public:
    DriverInterop(const CudaApi& api, int index) : m_api(api), m_index(index)
    {
        if (!api.cuImportExternalMemory || !api.cuExternalMemoryGetMappedBuffer || !api.cuDestroyExternalMemory ||
            !api.cuImportExternalSemaphore || !api.cuSignalExternalSemaphoresAsync ||
            !api.cuWaitExternalSemaphoresAsync || !api.cuDestroyExternalSemaphore)
            fail_runtime("enable_cuda_interop: the CUDA driver is too old to import memory and semaphores");
        check(api.cuDeviceGet(&m_device, index), "get the device");
        // The primary context: the one that torch and CuPy use.
        check(api.cuDevicePrimaryCtxRetain(&m_context, m_device), "open the primary context");
        try {
            Scope scope(*this);
            check(api.cuStreamCreate(&m_stream, stream_non_blocking), "create a stream");
            check(api.cuEventCreate(&m_event, CU_EVENT_DISABLE_TIMING), "create an event");
        } catch (...) {
            close_all();
            throw;
        }
    }

    ~DriverInterop() override { close_all(); }

    int device_index() const override { return m_index; }

    Memory import_memory(int fd, uint64_t allocation_size, uint64_t size) override
    {
        Descriptor descriptor(fd);
        Scope scope(*this);
        CUDA_EXTERNAL_MEMORY_HANDLE_DESC desc{};
        desc.type = memory_type_fd;
        desc.handle.fd = fd;
        desc.size = allocation_size;
        desc.flags = memory_dedicated;
        CUexternalMemory memory = nullptr;
        check(m_api.cuImportExternalMemory(&memory, &desc), "import a shared buffer of ", size, " bytes");
        descriptor.value = -1;
        CUDA_EXTERNAL_MEMORY_BUFFER_DESC range{};
        range.size = size;
        CUdeviceptr address = 0;
        CUresult result = m_api.cuExternalMemoryGetMappedBuffer(&address, memory, &range);
        if (result != CUDA_SUCCESS)
            m_api.cuDestroyExternalMemory(memory);
        check(result, "map a shared buffer of ", size, " bytes");
        return {memory, address};
    }

    void release_memory(const Memory& memory) noexcept override
    {
        Scope scope(*this);
        m_api.cuCtxSynchronize(); // on failure the context is lost, and its mappings with it
        m_api.cuMemFree(memory.address);
        m_api.cuDestroyExternalMemory(static_cast<CUexternalMemory>(memory.handle));
    }

    void import_timelines(int from_cuda, int to_cuda) override
    {
        Descriptor first(from_cuda), second(to_cuda);
        Scope scope(*this);
        import_timeline(first, m_from_cuda);
        import_timeline(second, m_to_cuda);
    }

    uint64_t signal(uint64_t handle) override
    {
        Scope scope(*this);
        CUstream stream = stream_of(handle);
        refuse_capture(stream, "sync_to_cuda");
        // Through one stream of our own, so that values come in order whichever streams they stand for.
        check(m_api.cuEventRecord(m_event, stream), "record an event on the given CUstream");
        check(m_api.cuStreamWaitEvent(m_stream, m_event, 0), "order two streams");
        CUDA_EXTERNAL_SEMAPHORE_PARAMS parameters{};
        parameters.fence_value = m_value + 1;
        check(m_api.cuSignalExternalSemaphoresAsync(&m_from_cuda, &parameters, 1, m_stream),
              "signal a shared semaphore");
        return ++m_value;
    }

    void wait(uint64_t handle, uint64_t value) override
    {
        Scope scope(*this);
        CUstream stream = stream_of(handle);
        refuse_capture(stream, "sync_to_device");
        CUDA_EXTERNAL_SEMAPHORE_PARAMS parameters{};
        parameters.fence_value = value;
        check(m_api.cuWaitExternalSemaphoresAsync(&m_to_cuda, &parameters, 1, stream), "wait for a shared semaphore");
    }

private:
    /// The context made current for the calling thread, and other threads' graph captures left alone.
    struct Scope {
        explicit Scope(DriverInterop& owner) : api(owner.m_api)
        {
            api.cuCtxPushCurrent(owner.m_context);
            api.cuThreadExchangeStreamCaptureMode(&mode);
        }
        ~Scope()
        {
            CUcontext popped = nullptr;
            api.cuThreadExchangeStreamCaptureMode(&mode);
            api.cuCtxPopCurrent(&popped);
        }
        Scope(const Scope&) = delete;
        const CudaApi& api;
        CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    };

    template <typename... What>
    void check(CUresult result, const What&... what) const
    {
        if (result == CUDA_ERROR_OUT_OF_MEMORY)
            fail(ErrorKind::memory, "out of memory: CUDA failed to ", cat(what...));
        if (result != CUDA_SUCCESS)
            fail_runtime("CUDA failed to ", cat(what...), ": ", m_api.text(result));
    }

    static CUstream stream_of(uint64_t handle) { return handle <= 1 ? nullptr : reinterpret_cast<CUstream>(handle); }

    void refuse_capture(CUstream stream, const char* what) const
    {
        CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
        if (stream)
            check(m_api.cuStreamIsCapturing(stream, &status), "use the given CUstream");
        if (status != CU_STREAM_CAPTURE_STATUS_NONE)
            fail_runtime(what,
                         ": the stream is being captured into a CUDA graph, which cannot hold work of another API; use "
                         "a cuda device");
    }

    void import_timeline(Descriptor& descriptor, CUexternalSemaphore& semaphore)
    {
        CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC desc{};
        desc.type = timeline_type_fd;
        desc.handle.fd = descriptor.value;
        check(m_api.cuImportExternalSemaphore(&semaphore, &desc), "import a shared semaphore");
        descriptor.value = -1;
    }

    void close_all() noexcept
    {
        {
            Scope scope(*this);
            m_api.cuCtxSynchronize();
            for (CUexternalSemaphore* semaphore : {&m_from_cuda, &m_to_cuda})
                if (*semaphore)
                    m_api.cuDestroyExternalSemaphore(std::exchange(*semaphore, nullptr));
            if (m_event)
                m_api.cuEventDestroy(m_event);
            if (m_stream)
                m_api.cuStreamDestroy(m_stream);
        }
        m_api.cuDevicePrimaryCtxRelease(m_device);
    }

    const CudaApi& m_api;
    const int m_index;
    CUdevice m_device = 0;
    CUcontext m_context = nullptr;
    CUstream m_stream = nullptr;
    CUevent m_event = nullptr;
    CUexternalSemaphore m_from_cuda = nullptr, m_to_cuda = nullptr;
    uint64_t m_value = 0;
};

} // namespace

bool CudaInterop::matches(const std::array<uint8_t, 16>& uuid)
{
    const CudaApi* api = CudaApi::find();
    return api && find_device(*api, uuid) >= 0;
}

std::shared_ptr<CudaInterop> CudaInterop::open(const std::array<uint8_t, 16>& uuid, const std::string& adapter_name)
{
    std::string why;
    const CudaApi* api = CudaApi::find(&why);
    if (!api)
        fail_runtime("enable_cuda_interop: CUDA is not available: ", why);
    const int index = find_device(*api, uuid);
    if (index < 0)
        fail_runtime("enable_cuda_interop: the adapter '", adapter_name, "' is not a CUDA device; CUDA has ",
                     device_names(*api),
                     ". Choose the adapter with adapter_luid (Device.enumerate_adapters lists them)");
    return std::make_shared<DriverInterop>(*api, index);
}

} // namespace spy
