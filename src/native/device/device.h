#pragma once
// The device contract: what every backend implements and all that the layers above may ask of a GPU (or CPU).
//
// Backends carry no argument checks: device/validation.cpp wraps a Device and checks, device/encoder.cpp records.
// Commands are recorded into backend-neutral lists (device/command.h); a backend only executes a finished list.
#include "device/types.h"

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string_view>

namespace spy {

class Device;
class CommandBuffer;
class RenderPipeline;
struct DescriptorHandle;
struct RenderPipelineDesc;
class AccelerationStructure;
struct AccelerationStructureBuildDesc;
struct AccelerationStructureDesc;
struct AccelerationStructureSizes;
struct CoopVecMatrixDesc;
struct CoopVecConversion;
class RayTracingPipeline;
struct RayTracingPipelineDesc;
class ShaderTable;
class Surface;
struct SurfaceDesc;
class Profiler;

/// Base of everything a device creates. Holds its device, so the device outlives it.
class DeviceObject : public Object {
public:
    explicit DeviceObject(ref<Device> device);
    ~DeviceObject() override;
    /// The backend's device, which this object keeps alive.
    Device* device() const { return m_device.get(); }
    /// The device that users see: the validation device the object was created through, else the backend's own.
    Device* frontend() const { return m_frontend ? m_frontend.get() : m_device.get(); }
    void set_frontend(Device* device);
    /// Its time is over, as that of a presented image: whoever uses it in a new command gets an error.
    bool is_expired() const { return m_expired; }

    /// Frees what the driver holds; called by close() of the device or by retire(). Must be callable twice and drop
    /// no reference to another object, which may be Python's. Objects may outlive a closed device.
    virtual void release() noexcept { }

    /// Kernels reach it no more by its handles. Before release().
    void give_up_handles() noexcept
    {
        if (m_has_handles.load(std::memory_order_relaxed)) [[unlikely]]
            drop_handles();
    }

protected:
    /// First thing in the destructor of a class that has a release(): calls it, or waits for a close() that does.
    void retire() noexcept;

    ref<Device> m_device;
    std::atomic<bool> m_expired{false};

private:
    friend DescriptorHandle handle_of(DeviceObject*, DescriptorHandleType, const char*);
    void drop_handles() noexcept; ///< handles.cpp

    ref<Device> m_frontend;
    std::atomic<bool> m_has_handles{false};
};

class Buffer : public DeviceObject {
public:
    Buffer(ref<Device> device, BufferDesc desc) : DeviceObject(std::move(device)), m_desc(std::move(desc)) { }
    const BufferDesc& desc() const { return m_desc; }
    virtual uint64_t device_address() const { return 0; }  ///< 0 where the API has no addresses
    virtual uint64_t cuda_address() { return 0; }          ///< where CUDA sees the memory; 0 where it does not
    virtual void* host_pointer() const { return nullptr; } ///< memory the host can read and write directly
    virtual NativeHandle native_handle() const { return {}; }
    virtual NativeHandle shared_handle() { return {}; } ///< exported memory; needs BufferUsage::shared

    /// The memory was handed out without a copy (DLPack, map): release() by close() must leave it to the destructor.
    void mark_exported() { m_exported = true; }

    /// What the host filled it with last (content.h); `none` where that is bytes, or commands wrote to it since.
    ScalarType content() const { return m_content.load(std::memory_order_relaxed); }
    void set_content(ScalarType content) { m_content.store(content, std::memory_order_relaxed); }

protected:
    BufferDesc m_desc;
    std::atomic<bool> m_exported{false};
    std::atomic<ScalarType> m_content{ScalarType::none};
};

class Sampler : public DeviceObject {
public:
    Sampler(ref<Device> device, SamplerDesc desc) : DeviceObject(std::move(device)), m_desc(std::move(desc)) { }
    const SamplerDesc& desc() const { return m_desc; }
    virtual NativeHandle native_handle() const { return {}; }

protected:
    SamplerDesc m_desc;
};

class Texture : public DeviceObject {
public:
    Texture(ref<Device> device, TextureDesc desc) : DeviceObject(std::move(device)), m_desc(std::move(desc)) { }
    const TextureDesc& desc() const { return m_desc; }
    /// For parameters that are texture and sampler in one; null: linear filtering that wraps. Set once, after creation.
    Sampler* sampler() const { return m_sampler.get(); }
    void set_sampler(ref<Sampler> sampler) { m_sampler = std::move(sampler); }
    virtual NativeHandle native_handle() const { return {}; }
    virtual NativeHandle shared_handle() { return {}; }
    virtual uint64_t memory_usage() const { return 0; }
    /// Of an image of a surface that was presented.
    void expire()
    {
        m_expired = true;
        m_desc.usage = TextureUsage::none; // whoever checks usage alone refuses it, too
    }

protected:
    TextureDesc m_desc;
    ref<Sampler> m_sampler;
};

class TextureView : public DeviceObject {
public:
    TextureView(ref<Device> device, ref<Texture> texture, TextureViewDesc desc)
        : DeviceObject(std::move(device)),
          m_texture(std::move(texture)),
          m_desc(std::move(desc))
    {
    }
    Texture* texture() const { return m_texture.get(); }
    const TextureViewDesc& desc() const { return m_desc; }
    /// The view's own; null: the texture's.
    Sampler* sampler() const { return m_sampler.get(); }
    void set_sampler(ref<Sampler> sampler) { m_sampler = std::move(sampler); }
    virtual NativeHandle native_handle() const { return {}; }

protected:
    ref<Texture> m_texture;
    TextureViewDesc m_desc;
    ref<Sampler> m_sampler;
};

/// A 64-bit counter that host and device signal and wait for.
class Fence : public DeviceObject {
public:
    using DeviceObject::DeviceObject;
    virtual uint64_t current_value() = 0;
    virtual void signal(uint64_t value) = 0; ///< from the host
    /// False on timeout. Waits at most `timeout_ns`; callers loop with short timeouts to stay interruptible.
    virtual bool wait(uint64_t value, uint64_t timeout_ns) = 0;
    virtual NativeHandle native_handle() const { return {}; }
    virtual NativeHandle shared_handle() { return {}; }

    /// The last value that anything was told to signal: what AUTO values count from. Backends need not touch it.
    uint64_t signaled_value() const { return m_signaled; }
    void note_signaled(uint64_t value) { m_signaled = value; }
    void note_created(uint64_t initial_value, bool shared)
    {
        m_initial = m_signaled = initial_value;
        m_shared = shared;
    }
    uint64_t initial_value() const { return m_initial; }
    bool is_shared() const { return m_shared; }

private:
    std::atomic<uint64_t> m_signaled{0};
    uint64_t m_initial = 0;
    bool m_shared = false;
};

class QueryPool : public DeviceObject {
public:
    QueryPool(ref<Device> device, QueryType type, uint32_t count)
        : DeviceObject(std::move(device)),
          m_type(type),
          m_count(count)
    {
    }
    QueryType type() const { return m_type; }
    uint32_t count() const { return m_count; }
    virtual void reset(uint32_t index, uint32_t count) = 0;
    virtual void get_results(uint32_t index, uint32_t count, uint64_t* ticks) = 0; ///< waits for pending results

protected:
    [[noreturn]] static void fail_no_result(uint32_t index);

    QueryType m_type;
    uint32_t m_count;
};

/// One entry point in executable form.
struct KernelDesc {
    std::string_view code;     ///< what Device::compile returned
    ref<ProgramLayout> layout; ///< entry point, group_size and how arguments are bound
    std::string label;         ///< for messages and debuggers: "module::function"
    /// A launch traces as many rays as it would have threads, from the table's first ray generation entry point; there
    /// is no code then.
    RayTracingPipeline* rays = nullptr;
    ShaderTable* table = nullptr;
};

class Kernel : public DeviceObject {
public:
    Kernel(ref<Device> device, ref<ProgramLayout> layout, std::string label);
    const ProgramLayout& layout() const { return *m_layout; }
    const std::string& label() const { return m_label; }
    /// Where it takes the buffer that print() writes to; -1 when it prints nothing.
    int print_slot() const { return m_print_slot; }
    virtual NativeHandle native_handle() const { return {}; }

protected:
    ref<ProgramLayout> m_layout;
    std::string m_label;
    int m_print_slot = -1;
};

/// Path of the global that slangpy_print.slang declares; bound by the device, not by users.
inline constexpr std::string_view print_slot_path = "_spy_print";
/// Where a program takes the buffer that print() writes to; -1 when it prints nothing.
int print_slot_of(const ProgramLayout& layout);

/// The arguments of one launch: the bytes of every scope and the resource of every slot of the kernel's layout.
/// Spans must stay valid during the call only; backends copy what they need later and keep resources in flight alive.
struct Arguments {
    std::span<const std::span<const uint8_t>> scopes; ///< by scope index; missing or short scopes read as zero
    std::span<const ref<Object>> slots;               ///< Buffer, Texture, TextureView, Sampler or null, by slot index
    std::span<const ref<Object>> keep_alive;          ///< buffers reached by pointer
};

/// Memory of float or double that invocations of a launch add to at places of their own choice.
struct AddedRange {
    size_t leaf; ///< of the call, where it is one
    uint64_t begin, size;
    bool is_double;
};

struct LaunchDesc {
    Kernel* kernel = nullptr;
    std::array<uint32_t, 3> group_count{1, 1, 1};
    Arguments arguments;
    NativeHandle stream;                  ///< CUstream to launch on instead of the device's own
    std::array<uint32_t, 3> group_size{}; ///< CUDA: threads of a group instead of those of the layout; 0: these
    uint32_t shared_memory = 0;           ///< CUDA: dynamic bytes of a group
    std::span<const int64_t> shape;       ///< of the call, for who measures; empty: threads are all that is known
    std::span<const AddedRange> added;    ///< CPU: all of it, or nothing that is known
};

struct SubmitDesc {
    std::span<CommandBuffer* const> command_buffers;
    std::span<const ref<Fence>> wait_fences, signal_fences;
    std::span<const uint64_t> wait_values, signal_values;
    NativeHandle stream;
};

/// What Device::compile gets: generated source text or SPIR-V, and how to build it.
struct CompileDesc {
    std::string_view source;
    /// The same with all that `source` may lack: compiled where that does not compile; empty: there is none. CPU only.
    std::string_view whole_source;
    std::string entry_point_name;
    ShaderStage stage = ShaderStage::compute;
    std::string label;
    /// `uncontracted`: sums and products are rounded one by one, functions as in `default`. `precise`: that, and the
    /// most exact functions there are.
    enum class FloatMode { default_, fast, uncontracted, precise } float_mode = FloatMode::default_;
    int optimization = 1; ///< 0 none, 1 default, 2 high, 3 maximal
    bool debug_info = false;
    std::vector<std::string> downstream_args;
    uint32_t group_size[3] = {1, 1, 1};
    std::string cuda_arch; ///< "sm_80": compile for this instead of the device at hand
};

class Device : public Object {
public:
    Device();
    ~Device() override;

    const DeviceDesc& desc() const { return m_desc; }
    const DeviceInfo& info() const { return m_info; }
    const CompileTarget& compile_target() const { return m_target; }
    bool has_feature(std::string_view name) const;
    bool is_closed() const { return m_closed; }
    /// What a use of a closed device raises.
    [[noreturn]] void fail_closed() const;

    /// A call in progress: close() of another thread waits for it before anything is freed. Throws when closed.
    class Use {
    public:
        explicit Use(Device& device);
        ~Use();
        Use(const Use&) = delete;

    private:
        Device& m_device;
    };

    // --- resources
    virtual ref<Buffer> create_buffer(const BufferDesc& desc) = 0; ///< zeroed, unless desc.uninitialized
    virtual ref<Texture> create_texture(const TextureDesc& desc) = 0;
    virtual ref<TextureView> create_texture_view(Texture* texture, const TextureViewDesc& desc) = 0;
    virtual ref<Sampler> create_sampler(const SamplerDesc& desc) = 0;
    virtual ref<Fence> create_fence(uint64_t initial_value, bool shared) = 0;
    virtual ref<QueryPool> create_query_pool(QueryType type, uint32_t count) = 0;
    virtual uint32_t format_support(Format format) = 0; ///< FormatSupport bits

    // --- code
    /// Target source -> what create_kernel takes; cached on disk by the caller under `compiler_fingerprint`.
    virtual std::string compile(const CompileDesc& desc) = 0;
    /// Compiler, driver, architecture and flags: equal text means equal results of compile().
    virtual std::string compiler_fingerprint() = 0;
    virtual ref<Kernel> create_kernel(const KernelDesc& desc) = 0;
    /// device/ray_tracing.h, device/acceleration.h. Devices without leave them as they are: NotImplementedError naming
    /// those that have them.
    virtual ref<RayTracingPipeline> create_ray_tracing_pipeline(const RayTracingPipelineDesc& desc);
    virtual AccelerationStructureSizes acceleration_structure_sizes(const AccelerationStructureBuildDesc& desc);
    virtual ref<AccelerationStructure> create_acceleration_structure(const AccelerationStructureDesc& desc);

    /// device/coop_vec.h: of layouts that are the driver's. Devices without leave them as they are.
    virtual uint64_t coop_vec_matrix_size(const CoopVecMatrixDesc& desc);
    virtual void convert_coop_vec_matrix(const CoopVecConversion& conversion); ///< on the host

    /// device/render.h. Devices that do not draw leave it as it is: NotImplementedError naming those that do.
    virtual ref<RenderPipeline> create_render_pipeline(const RenderPipelineDesc& desc);
    /// device/surface.h. Devices that show nothing leave it as it is.
    virtual ref<Surface> create_surface(const SurfaceDesc& desc);

    // --- device/handles.h. Devices with the feature 'bindless' have these; no lock of theirs is held
    /// Value and extra of a new one; the rest is filled in. An object that is no Buffer has a type that fits.
    virtual DescriptorHandle make_handle(DeviceObject* object, DescriptorHandleType type);
    /// Once the work in flight is done, its place may be another's.
    virtual void drop_handle(const DescriptorHandle& handle) noexcept;

    // --- work. All work on one device and stream happens in submission order and sees what came before.
    /// Launches at once (the path of functional calls). Does not wait.
    virtual void launch(const LaunchDesc& desc) = 0;
    virtual uint64_t submit(const SubmitDesc& desc) = 0;
    /// Id of the newest work; passes once everything up to it is done.
    virtual uint64_t last_submit_id() = 0;
    virtual bool is_finished(uint64_t submit_id) = 0;
    /// False on timeout. Raises a pending kernel fault.
    virtual bool wait(uint64_t submit_id, uint64_t timeout_ns) = 0;

    // --- host access, ordered after earlier work; both return when the host memory may be used again
    virtual void read_buffer(Buffer* buffer, uint64_t offset, void* data, uint64_t size) = 0;
    virtual void write_buffer(Buffer* buffer, uint64_t offset, const void* data, uint64_t size) = 0;
    /// One layer and mip, rows tightly packed.
    virtual void read_texture(Texture* texture, uint32_t layer, uint32_t mip, void* data) = 0;
    virtual void write_texture(Texture* texture, uint32_t layer, uint32_t mip, const void* data) = 0;

    // --- the rest
    virtual std::vector<HeapReport> heap_reports() = 0;
    virtual std::array<NativeHandle, 3> native_handles() { return {}; }
    /// What keeps the objects of native_handles() alive, beyond close(). None where they outlive every device.
    virtual std::shared_ptr<void> native_owner() { return {}; }
    virtual void set_context_current() { }
    virtual int cuda_index() const { return -1; }     ///< the CUDA device that shares memory with this one; -1: none
    virtual void sync_to_stream(NativeHandle stream); ///< the device's queue waits for the CUDA stream
    virtual void sync_stream_to(NativeHandle stream); ///< the CUDA stream waits for the device's queue
    virtual bool is_capturing(NativeHandle) { return false; } ///< whether a CUDA stream is being recorded into a graph
    /// Waits, releases every live object, then the device. A second call does nothing. A fault found while waiting
    /// is thrown at the end.
    void close();
    /// What print() in kernels writes to: words in use, calls lost, words there are, 0, records. Null without
    /// enable_print.
    virtual Buffer* print_buffer() { return nullptr; }
    /// The backend's device that a validation device wraps; itself otherwise.
    virtual Device* backend() { return this; }

    /// Who measures what runs (device/profile.h); null: nobody does. Asked of a backend's device.
    Profiler* profiler() const { return m_profiler.load(std::memory_order_acquire); }
    /// Another measurement: number of its first event.
    size_t start_profile();
    /// The end of one: where its events are.
    std::shared_ptr<Profiler> leave_profile();

    /// Live objects, for close() and reports.
    void add_object(DeviceObject* object);
    /// Takes an object out for its destructor. False when close() has released it; waits while it does.
    bool remove_object(DeviceObject* object) noexcept;
    /// Gradients are summed so that the order of threads does not show.
    const std::shared_ptr<std::atomic<bool>> deterministic = std::make_shared<std::atomic<bool>>(false);
    /// Kernels compiled and created, for reports.
    std::atomic<uint64_t> compiled_count{0}, kernel_count{0};
    using DiscardedCallback = std::function<void(Device*, uint64_t recording_id)>;
    /// Called when recorded commands are dropped without having been submitted. Must not throw.
    void set_discarded_callback(DiscardedCallback callback) { m_discarded = std::move(callback); }
    const DiscardedCallback& discarded_callback() const { return m_discarded; }
    void for_each_object(const std::function<void(DeviceObject*)>& visit);

protected:
    virtual void close_backend() noexcept = 0;

    DeviceDesc m_desc;
    DeviceInfo m_info;
    CompileTarget m_target;
    std::atomic<bool> m_closed{false};

private:
    void release_objects() noexcept;
    void wait_for_users() noexcept;
    static void leave_behind();

    bool m_left_behind = false; ///< opened before a fork, in the parent

    std::atomic<uint32_t> m_users{0};
    std::atomic<Profiler*> m_profiler{nullptr};
    std::shared_ptr<Profiler> m_profile; ///< stays once it was made: launches may be at it
    std::mutex m_profile_mutex;
    size_t m_profile_users = 0;
    DiscardedCallback m_discarded;
    struct Registry;
    std::unique_ptr<Registry> m_registry;
};

/// One row of the list in backend.cpp.
struct Backend {
    DeviceType type;
    const char* name;
    std::vector<AdapterInfo> (*enumerate)();       ///< empty when the API is missing; never throws
    ref<Device> (*create)(const DeviceDesc& desc); ///< throws spy::Error saying what is missing
};
std::span<const Backend> backends();

/// Opens a device; `automatic` takes the first that opens (CUDA, D3D12, Vulkan on hardware, CPU).
ref<Device> create_device(const DeviceDesc& desc);
/// A Device that checks every call and forwards it; with enable_print it also gives kernels their print buffer.
ref<Device> create_validation_device(ref<Device> inner);

} // namespace spy
