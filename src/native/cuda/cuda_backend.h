#pragma once
// Classes of the CUDA backend.
//
// Order of work. The device's own queue is the legacy default stream, which is also torch's default, so the usual call
// needs no event. All work of a device forms one order: m_tail is the stream that the newest work went to, and work
// for another stream first makes that stream wait for it. Memory is allocated and freed in the order of the own queue.
#include "core/interrupt.h"
#include "cuda/cuda_api.h"
#include "device/device.h"
#include "device/command.h"
#include "device/texel_format.h"

#include <atomic>
#include <deque>
#include <mutex>

namespace spy {

class CudaDevice;

/// How a texel format is stored in a CUDA array. `channels` is 0 where CUDA has no such format.
struct CudaTexel {
    CUarray_format format = CU_AD_FORMAT_FLOAT;
    uint32_t channels = 0;
    bool normalized = false, srgb = false, integer = false;
};
CudaTexel cuda_texel(Format format);

class CudaBuffer final : public Buffer {
public:
    CudaBuffer(ref<CudaDevice> device, const BufferDesc& desc);
    ~CudaBuffer() override;
    uint64_t device_address() const override { return m_address; }
    uint64_t cuda_address() override { return m_address; }
    void* host_pointer() const override { return m_host; }
    NativeHandle native_handle() const override { return {NativeHandleType::CUdeviceptr, m_address}; }
    NativeHandle shared_handle() override;
    void release() noexcept override;
    /// Texture object over the memory, for texel buffers.
    CUtexObject texel_object();

private:
    CUdeviceptr m_address = 0;
    void* m_host = nullptr;
    CUtexObject m_texel_object = 0;
};

class CudaSampler final : public Sampler {
public:
    CudaSampler(ref<CudaDevice> device, const SamplerDesc& desc);
    ~CudaSampler() override { retire(); }
    const CUDA_TEXTURE_DESC& texture_desc() const { return m_texture_desc; }
    static CUDA_TEXTURE_DESC convert(const SamplerDesc& desc);

private:
    CUDA_TEXTURE_DESC m_texture_desc;
};

/// The memory of a texture with the handles made for it. Not a DeviceObject: the copies made for views during a launch
/// come and go under the device's lock, where no Python reference count may be touched.
class CudaArray {
public:
    CudaArray(CudaDevice& device, const TextureDesc& desc);
    ~CudaArray() { release(); }
    CudaArray(const CudaArray&) = delete;
    void release() noexcept;

    const TextureDesc& desc() const { return m_desc; }
    CUmipmappedArray handle() const { return m_array; }
    uint64_t bytes() const { return m_bytes; }
    uint32_t texel_bytes() const { return format_info(m_desc.format).bytes_per_block; }
    SubresourceRange full_range() const { return {0, m_desc.layer_count(), 0, m_desc.mip_count}; }
    CUarray level(uint32_t mip) const;
    CUtexObject texture_object(const SubresourceRange& range, Format format, CUDA_TEXTURE_DESC sampling);
    CUsurfObject surface_object(uint32_t mip);

private:
    struct TextureObject { SubresourceRange range; Format format; CUDA_TEXTURE_DESC sampling; CUtexObject object; };
    CudaDevice& m_device;
    TextureDesc m_desc;
    CUmipmappedArray m_array = nullptr;
    uint64_t m_bytes = 0;
    std::vector<TextureObject> m_texture_objects;
    std::vector<CUsurfObject> m_surface_objects; ///< by mip
};

class CudaTexture final : public Texture {
public:
    CudaTexture(ref<CudaDevice> device, const TextureDesc& desc);
    ~CudaTexture() override { retire(); }
    NativeHandle native_handle() const override { return {NativeHandleType::CUmipmappedArray, uint64_t(m_array.handle())}; }
    NativeHandle shared_handle() override;
    uint64_t memory_usage() const override { return m_array.bytes(); }
    void release() noexcept override { m_array.release(); }
    CudaArray& array() { return m_array; }

private:
    CudaArray m_array;
};

class CudaTextureView final : public TextureView {
public:
    using TextureView::TextureView;
    ~CudaTextureView() override { retire(); }
    void release() noexcept override { shadow = nullptr; }
    NativeHandle native_handle() const override;
    std::shared_ptr<CudaArray> shadow; ///< copy bound in place of a part that CUDA cannot address
};

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
    bool known = false;
    ~CudaAnchor();
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
    struct Entry { CUevent event = nullptr; std::shared_ptr<CudaAnchor> anchor; };
    std::vector<Entry> m_entries;
};

/// Where one resource handle goes.
struct CudaSlot {
    SlotKind kind;
    bool writable;
    bool converts; ///< stores to this surface convert texels to its format
    uint32_t scope;
    int32_t sampler = -1; ///< slot of the sampler baked into a texture; -1 = default sampling
    uint64_t offset, size;
    uint64_t element_stride;
};

class CudaKernel final : public Kernel {
public:
    CudaKernel(ref<CudaDevice> device, const KernelDesc& desc);
    ~CudaKernel() override { retire(); }
    void release() noexcept override;
    NativeHandle native_handle() const override { return {}; }

private:
    friend class CudaDevice;
    void find_globals();
    void check_parameters();
    void plan_scopes();
    void plan_slots();
    bool converts(const std::string& path) const;

    CUmodule m_module = nullptr;
    CUfunction m_function = nullptr;
    uint32_t m_label_index = 0;
    size_t m_parameter_bytes = 0; ///< exact size of the kernel's parameters
    bool m_plain = false;         ///< parameters only: no resources, globals or nested blocks

    CUdeviceptr m_globals = 0;
    size_t m_global_bytes = 0;
    bool m_globals_uploaded = false;
    std::vector<uint8_t> m_globals_now;     ///< what m_globals holds
    std::vector<CudaSlot> m_slots;
    std::vector<uint8_t> m_scratch;         ///< bytes of all scopes while arguments are assembled
    std::vector<size_t> m_scratch_offset;   ///< by scope
    size_t m_block_begin = 0, m_block_bytes = 0; ///< nested blocks: one piece of scratch and of device memory
};

class CudaDevice final : public Device {
public:
    explicit CudaDevice(const DeviceDesc& desc);
    ~CudaDevice() override;

    ref<Buffer> create_buffer(const BufferDesc& desc) override;
    ref<Texture> create_texture(const TextureDesc& desc) override;
    ref<TextureView> create_texture_view(Texture* texture, const TextureViewDesc& desc) override;
    ref<Sampler> create_sampler(const SamplerDesc& desc) override;
    ref<Fence> create_fence(uint64_t initial_value, bool shared) override;
    ref<QueryPool> create_query_pool(QueryType type, uint32_t count) override;
    uint32_t format_support(Format format) override;

    std::string compile(const CompileDesc& desc) override;
    std::string compiler_fingerprint() override;
    ref<Kernel> create_kernel(const KernelDesc& desc) override;

    void launch(const LaunchDesc& desc) override;
    uint64_t submit(const SubmitDesc& desc) override;
    uint64_t last_submit_id() override { return m_sequence.load(std::memory_order_relaxed); }
    bool is_finished(uint64_t submit_id) override;
    bool wait(uint64_t submit_id, uint64_t timeout_ns) override;

    void read_buffer(Buffer* buffer, uint64_t offset, void* data, uint64_t size) override;
    void write_buffer(Buffer* buffer, uint64_t offset, const void* data, uint64_t size) override;
    void read_texture(Texture* texture, uint32_t layer, uint32_t mip, void* data) override;
    void write_texture(Texture* texture, uint32_t layer, uint32_t mip, const void* data) override;

    std::vector<HeapReport> heap_reports() override;
    std::array<NativeHandle, 3> native_handles() override;
    int cuda_index() const override { return m_info.device_index; }
    void set_context_current() override;
    void sync_to_stream(NativeHandle stream) override;
    void sync_stream_to(NativeHandle stream) override;
    bool is_capturing(NativeHandle stream) override;

    // --- for the other classes of this backend
    const CudaApi& api() const { return m_api; }
    const std::string& arch() const { return m_arch; }
    bool has_stream_values() const { return m_stream_values; }

    /// Makes the context current for the calling thread (restoring the caller's afterwards) and takes the lock.
    class Lock {
    public:
        explicit Lock(CudaDevice& device) : m_device(device), m_lock(device.m_mutex) { m_switched = device.enter(); }
        ~Lock() { if (m_switched) m_device.leave(); }
        Lock(const Lock&) = delete;
        void unlock() { m_lock.unlock(); } ///< the context stays current
        void lock() { m_lock.lock(); }

    private:
        CudaDevice& m_device;
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

    /// Throws for a failed driver call; `what` completes "CUDA failed to ...".
    template <typename... What>
    void check(CUresult result, const What&... what)
    {
        if (result != CUDA_SUCCESS) [[unlikely]]
            raise(result, cat(what...));
    }
    [[noreturn]] void raise(CUresult result, const std::string& what);
    void ensure_usable();

    // All of these need the lock.
    /// Orders `stream` after all earlier work. False while the stream is recorded into a graph: nothing is ordered then.
    bool begin_work(CUstream stream);
    void end_work(CUstream stream, bool tracked);
    /// begin_work() ... end_work(), also when a command in between fails.
    struct Work {
        Work(CudaDevice& owner, CUstream target) : device(owner), stream(target), tracked(owner.begin_work(target)) {}
        ~Work() { device.finish_work(stream, tracked); }
        Work(const Work&) = delete;
        CudaDevice& device;
        CUstream stream;
        bool tracked;
    };
    /// The own queue, ordered after all earlier work; what the caller puts there counts as new work.
    CUstream own_queue()
    {
        begin_work(nullptr);
        m_sequence.fetch_add(1, std::memory_order_relaxed);
        return nullptr;
    }
    CUdeviceptr allocate(uint64_t size, CUstream stream, const std::string& purpose);
    /// Waits on the host, where Ctrl-C gets through; the driver's own waits do not let it. CUDA_SUCCESS or a failure.
    CUresult wait_event(CUevent event);
    /// Waits for what has been put on `stream` so far, without the lock when that is given.
    void settle(CUstream stream, Lock* lock);
    void free(CUdeviceptr address, CUstream stream) noexcept;
    void free_buffer(CUdeviceptr address, uint64_t size) noexcept;
    /// Runs `action` once all work up to now is done.
    void defer(std::function<void()> action) noexcept;
    std::shared_ptr<CudaAnchor> time_anchor(CUstream stream);
    uint64_t resolve_ticks(CudaAnchor& anchor);
    uint32_t intern_label(const std::string& label);
    void count_buffer(int64_t bytes, int64_t number) { m_buffer_bytes += uint64_t(bytes); m_buffer_count += uint64_t(number); }
    void count_texture(int64_t bytes, int64_t number) { m_texture_bytes += bytes; m_texture_count += number; }
    void count_host(int64_t bytes, int64_t number) { m_host_bytes += bytes; m_host_count += number; }
    bool alive() const { return m_context != nullptr; }
    /// Memory that others still use when the device closes: the context stays for it until free_after_close().
    void keep_context() { m_keep_context = true; }
    void free_after_close(CUdeviceptr address, void* host) noexcept;

protected:
    void close_backend() noexcept override;

private:
    friend class Lock;
    struct Mark { uint64_t sequence; CUevent event; };
    struct Garbage { uint64_t sequence; std::function<void()> action; };

    void open_context();
    void fill_info();
    void fill_limits();
    void create_pool();
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
    bool begin_work_slow(CUstream stream);
    void finish_work(CUstream stream, bool tracked) noexcept;
    int attribute(CUdevice_attribute which) const;
    CUevent take_event();
    void record_mark();
    void poll();

    // cuda_command.cpp, cuda_binding.cpp
    CUstream stream_of(NativeHandle handle) const;
    void run_kernel(CudaKernel& kernel, const std::array<uint32_t, 3>& groups, const Arguments& arguments, CUstream stream, bool tracked);
    void run_bound(CudaKernel& kernel, const std::array<uint32_t, 3>& groups, const Arguments& arguments, CUstream stream, bool tracked);
    void start(CudaKernel& kernel, const std::array<uint32_t, 3>& groups, void* parameters, CUstream stream);
    struct Shadow { std::shared_ptr<CudaArray> copy; CudaArray* whole; SubresourceRange range; bool write_back; };
    /// What reading a null buffer finds (zeros) or where writing to one goes: an access must not end the context.
    CUdeviceptr null_memory(bool writable, CUstream stream);
    void bind_slot(CudaKernel& kernel, size_t index, const Arguments& arguments, CUstream stream, std::vector<Shadow>& shadows);
    uint64_t bind_texture(CudaKernel& kernel, size_t index, const Arguments& arguments, CUstream stream, std::vector<Shadow>& shadows);
    void copy_shadow(const Shadow& shadow, bool back, CUstream stream);
    void copy_texture_part(CUDA_MEMCPY3D copy, const char* what, CUstream stream);
    void execute(const Command& command, CUstream stream, bool tracked, Lock& lock);
    void fill_buffer(const command::FillBuffer& fill, CUstream stream);
    void clear_texture(const command::ClearTexture& clear, CUstream stream);
    void dispatch_indirect(const command::DispatchIndirect& dispatch, CUstream stream, bool tracked, Lock& lock);
    void run_recorded(Kernel* kernel, const std::array<uint32_t, 3>& groups, const std::vector<std::vector<uint8_t>>& scopes,
                      const std::vector<ref<Object>>& slots, CUstream stream, bool tracked);

    const CudaApi& m_api;
    CUdevice m_cuda_device = 0;
    CUcontext m_context = nullptr;
    CUcontext m_kept_context = nullptr; ///< of the closed device, while exported memory needs it
    bool m_primary = false, m_keep_context = false;
    int m_compute = 0; ///< 90 for compute capability 9.0
    std::string m_arch;
    bool m_stream_values = false;
    CUmemoryPool m_pool = nullptr;
    static constexpr uint64_t null_size = 1 << 20;
    CUdeviceptr m_null_memory = 0;

    PoliteMutex m_mutex;
    CUstream m_tail = nullptr;                 ///< stream of the newest work
    CUevent m_own_event = nullptr, m_tail_event = nullptr;
    std::atomic<uint64_t> m_sequence{0};       ///< number of pieces of work so far
    uint64_t m_completed = 0;
    std::deque<Mark> m_marks;
    std::deque<Garbage> m_garbage;
    std::vector<std::shared_ptr<CudaArray>> m_retired; ///< what the work being submitted uses and nothing else holds
    std::vector<CUevent> m_spare_events;
    std::vector<std::pair<CUdeviceptr, uint64_t>> m_late_frees; ///< buffers that could not be freed during a graph capture

    static constexpr uint32_t recent_size = 8;
    std::array<uint32_t, recent_size> m_recent{}; ///< labels of the newest launches, by index
    uint32_t m_recent_count = 0;
    std::vector<std::string> m_labels;
    std::string m_fault; ///< set once the context is lost

    static constexpr size_t staging_size = 256 * 1024;
    std::vector<void*> m_staging; ///< free pinned pieces of staging_size bytes
    std::shared_ptr<CudaAnchor> m_anchor;
    uint64_t m_anchor_host_ns = 0;
    uint64_t m_buffer_bytes = 0, m_buffer_count = 0;
    int64_t m_texture_bytes = 0, m_texture_count = 0, m_host_bytes = 0, m_host_count = 0;
};

/// Compiles CUDA source without a device: `desc.cuda_arch` ("sm_80") must be set. Returns a cubin, or PTX when this
/// NVRTC does not know the architecture. Throws spy::Error with NVRTC's log, the label and the saved source's path.
std::string cuda_compile(const CompileDesc& desc);
/// Compiler and flags; part of cache keys.
std::string cuda_fingerprint(const std::string& arch);
/// Device and context of the calling thread; throws "No current CUDA context found.".
std::array<NativeHandle, 3> cuda_current_context_handles();

} // namespace spy
