// A Device that checks every call and forwards it. Ranges and encoder states are checked where commands are recorded
// (encoder.cpp); here are checked: use after close, objects of another device, limits, usage flags, memory types.
#include "core/error.h"
#include "device/submit.h"
#include "device/backend.h"
#include "device/encoder.h"
#include "device/resource.h"
#include "device/surface.h"

#include <algorithm>
#include <atomic>

namespace spy {

namespace {

/// Whether a device was ever opened on the handles of another, so that kernels may work on both's memory.
std::atomic<bool> any_imported{false};

class ValidationDevice final : public Device {
public:
    explicit ValidationDevice(ref<Device> inner) : m_inner(std::move(inner))
    {
        m_desc = m_inner->desc();
        m_info = m_inner->info();
        m_target = m_inner->compile_target();
        if (m_desc.existing_device_handles[0].value)
            any_imported = true;
        if (m_desc.enable_print && m_info.type != DeviceType::null)
            create_print_buffer();
    }

    Device* backend() override { return m_inner.get(); }
    Buffer* print_buffer() override { return m_print_buffer.get(); }

    ref<Buffer> create_buffer(const BufferDesc& desc) override
    {
        const Use use(*this);
        if (!desc.size)
            fail_value("create_buffer: the size must be at least one byte");
        if (const uint64_t most = m_info.limits.max_buffer_size; most && desc.size > most)
            fail_value("create_buffer: ", desc.size, " bytes are more than this device's limit of ", most);
        return adopt(m_inner->create_buffer(desc));
    }

    ref<Texture> create_texture(const TextureDesc& desc) override
    {
        const Use use(*this);
        check_texture_limits(desc);
        return adopt(m_inner->create_texture(desc));
    }

    ref<TextureView> create_texture_view(Texture* texture, const TextureViewDesc& desc) override
    {
        const Use use(*this);
        check_same_device(this, texture, "create_view 'texture'");
        return adopt(m_inner->create_texture_view(texture, desc));
    }

    ref<Sampler> create_sampler(const SamplerDesc& desc) override
    {
        const Use use(*this);
        return adopt(m_inner->create_sampler(desc));
    }

    ref<Fence> create_fence(uint64_t initial_value, bool shared) override
    {
        const Use use(*this);
        return adopt(m_inner->create_fence(initial_value, shared));
    }

    ref<QueryPool> create_query_pool(QueryType type, uint32_t count) override
    {
        const Use use(*this);
        if (!count)
            fail_value("create_query_pool: 'count' must be at least 1");
        if (type != QueryType::timestamp)
            require_acceleration(this, "create_query_pool");
        return adopt(m_inner->create_query_pool(type, count));
    }

    uint32_t format_support(Format format) override
    {
        const Use use(*this);
        format_info(format);
        return m_inner->format_support(format);
    }

    std::string compile(const CompileDesc& desc) override
    {
        const Use use(*this);
        return m_inner->compile(desc);
    }

    std::string compiler_fingerprint() override
    {
        const Use use(*this);
        return m_inner->compiler_fingerprint();
    }

    ref<Kernel> create_kernel(const KernelDesc& desc) override
    {
        const Use use(*this);
        if (!desc.layout)
            fail_value("create_kernel: no program layout given for ", desc.label);
        check_group_size(desc);
        return adopt(m_inner->create_kernel(desc));
    }

    ref<RenderPipeline> create_render_pipeline(const RenderPipelineDesc& desc) override
    {
        const Use use(*this);
        return adopt(m_inner->create_render_pipeline(desc));
    }

    ref<RayTracingPipeline> create_ray_tracing_pipeline(const RayTracingPipelineDesc& desc) override
    {
        const Use use(*this);
        return adopt(m_inner->create_ray_tracing_pipeline(desc));
    }

    AccelerationStructureSizes acceleration_structure_sizes(const AccelerationStructureBuildDesc& desc) override
    {
        const Use use(*this);
        return m_inner->acceleration_structure_sizes(desc);
    }

    ref<AccelerationStructure> create_acceleration_structure(const AccelerationStructureDesc& desc) override
    {
        const Use use(*this);
        if (const uint64_t most = m_info.limits.max_buffer_size; most && desc.size > most)
            fail_value("create_acceleration_structure: ", desc.size, " bytes are more than this device's limit of ",
                       most);
        return adopt(m_inner->create_acceleration_structure(desc));
    }

    uint64_t coop_vec_matrix_size(const CoopVecMatrixDesc& desc) override
    {
        const Use use(*this);
        return m_inner->coop_vec_matrix_size(desc);
    }
    void convert_coop_vec_matrix(const CoopVecConversion& conversion) override
    {
        const Use use(*this);
        m_inner->convert_coop_vec_matrix(conversion);
    }

    ref<Surface> create_surface(const SurfaceDesc& desc) override
    {
        const Use use(*this);
        return adopt(m_inner->create_surface(desc));
    }

    void launch(const LaunchDesc& desc) override
    {
        const Use use(*this);
        if (!desc.kernel)
            fail_value("launch: no kernel given");
        const Kernel& kernel = *desc.kernel;
        if (kernel.frontend() != this)
            check_same_device(this, &kernel, "launch 'kernel'");
        if (desc.stream.type != NativeHandleType::undefined) [[unlikely]]
            check_stream(desc.stream);
        const auto& limit = m_info.limits.max_compute_dispatch_thread_groups;
        for (size_t i = 0; i < 3; ++i)
            if (!desc.group_count[i] || (limit[i] && desc.group_count[i] > limit[i])) [[unlikely]]
                if (!check_groups(kernel, desc.group_count))
                    return;
        if (!desc.arguments.slots.empty())
            check_arguments(this, kernel, desc.arguments.slots, nullptr);
        const bool borrows = any_imported && borrow(desc.arguments.slots);
        if (kernel.print_slot() >= 0) [[unlikely]]
            launch_printing(desc);
        else
            m_inner->launch(desc);
        if (borrows) [[unlikely]]
            give_back();
    }

    uint64_t submit(const SubmitDesc& desc) override
    {
        const Use use(*this);
        bool borrows = false;
        for (const CommandBuffer* buffer : desc.command_buffers) {
            check_same_device(this, buffer, "submit 'command_buffers'");
            borrows |= any_imported && borrow(*buffer);
        }
        for (const ref<Fence>& fence : desc.wait_fences)
            check_same_device(this, fence.get(), "submit 'wait_fences'");
        for (const ref<Fence>& fence : desc.signal_fences)
            check_same_device(this, fence.get(), "submit 'signal_fences'");
        check_stream(desc.stream);
        const uint64_t id = m_inner->submit(desc);
        if (borrows) [[unlikely]]
            give_back();
        return id;
    }

    uint64_t last_submit_id() override { return m_inner->last_submit_id(); }
    bool is_finished(uint64_t submit_id) override
    {
        const Use use(*this);
        return m_inner->is_finished(submit_id);
    }
    bool wait(uint64_t submit_id, uint64_t timeout_ns) override
    {
        const Use use(*this);
        return m_inner->wait(submit_id, timeout_ns);
    }

    void read_buffer(Buffer* buffer, uint64_t offset, void* data, uint64_t size) override
    {
        const Use use(*this);
        check_same_device(this, buffer, "read buffer");
        m_inner->read_buffer(buffer, offset, data, size);
    }

    void write_buffer(Buffer* buffer, uint64_t offset, const void* data, uint64_t size) override
    {
        const Use use(*this);
        check_same_device(this, buffer, "write buffer");
        m_inner->write_buffer(buffer, offset, data, size);
    }

    void read_texture(Texture* texture, uint32_t layer, uint32_t mip, void* data) override
    {
        const Use use(*this);
        check_same_device(this, texture, "read texture");
        check_subresource(texture->desc(), layer, mip);
        m_inner->read_texture(texture, layer, mip, data);
    }

    void write_texture(Texture* texture, uint32_t layer, uint32_t mip, const void* data) override
    {
        const Use use(*this);
        check_same_device(this, texture, "write texture");
        check_subresource(texture->desc(), layer, mip);
        m_inner->write_texture(texture, layer, mip, data);
    }

    std::vector<HeapReport> heap_reports() override
    {
        const Use use(*this);
        return m_inner->heap_reports();
    }
    std::array<NativeHandle, 3> native_handles() override
    {
        const Use use(*this);
        return m_inner->native_handles();
    }
    std::shared_ptr<void> native_owner() override
    {
        const Use use(*this);
        return m_inner->native_owner();
    }
    void set_context_current() override
    {
        const Use use(*this);
        m_inner->set_context_current();
    }
    int cuda_index() const override { return m_inner->cuda_index(); }
    bool is_capturing(NativeHandle stream) override { return m_inner->is_capturing(stream); }
    void sync_to_stream(NativeHandle stream) override
    {
        const Use use(*this);
        m_inner->sync_to_stream(stream);
    }
    void sync_stream_to(NativeHandle stream) override
    {
        const Use use(*this);
        m_inner->sync_stream_to(stream);
    }

protected:
    void close_backend() noexcept override
    {
        try {
            m_inner->close();
        } catch (...) {
            // Our own close() has waited already and holds the fault, if any.
        }
    }

private:
    template <typename T>
    ref<T> adopt(ref<T> object)
    {
        object->set_frontend(this);
        return object;
    }

    /// For arguments that are objects of a device on the same native handles: devices do not order their work among
    /// each other, so that device's is over before the kernel runs, and the kernel is over when it goes on.
    bool borrow(std::span<const ref<Object>> slots)
    {
        bool borrows = false;
        for (const ref<Object>& slot : slots) {
            const auto* object = dynamic_cast<const DeviceObject*>(slot.get());
            Device* owner = object ? object->frontend() : this;
            if (owner->backend() == m_inner.get())
                continue;
            owner->wait(owner->last_submit_id(), timeout_infinite);
            borrows = true;
        }
        return borrows;
    }

    bool borrow(const CommandBuffer& buffer)
    {
        bool borrows = false;
        for (const Command& command : buffer.commands()) {
            if (const auto* dispatch = std::get_if<command::Dispatch>(&command))
                borrows |= borrow(dispatch->slots);
            else if (const auto* indirect = std::get_if<command::DispatchIndirect>(&command))
                borrows |= borrow(indirect->slots);
            else if (const auto* rays = std::get_if<command::DispatchRays>(&command))
                borrows |= borrow(rays->slots);
            else if (const auto* pass = std::get_if<command::RenderPass>(&command))
                for (const command::RenderItem& item : pass->items)
                    if (const auto* draw = std::get_if<command::Draw>(&item))
                        borrows |= borrow(draw->bound->slots);
        }
        return borrows;
    }

    void give_back() { m_inner->wait(m_inner->last_submit_id(), timeout_infinite); }

    void launch_printing(LaunchDesc desc)
    {
        std::vector<ref<Object>> slots(desc.arguments.slots.begin(), desc.arguments.slots.end());
        bind_print_buffer(this, desc.kernel->print_slot(), slots);
        desc.arguments.slots = slots;
        m_inner->launch(desc);
    }

    void create_print_buffer()
    {
        m_target.defines.emplace_back("SPY_ENABLE_PRINT", "1");
        constexpr uint32_t words = 1u << 20;
        BufferDesc desc;
        desc.size = uint64_t(words) * 4;
        desc.struct_size = 4;
        desc.usage = BufferUsage::shader_resource | BufferUsage::unordered_access | BufferUsage::copy_source |
            BufferUsage::copy_destination;
        desc.label = "print";
        // Not adopted: the buffer would hold the device that holds it.
        m_print_buffer = m_inner->create_buffer(desc);
        std::vector<uint32_t> content(words);
        content[2] = words;
        m_inner->write_buffer(m_print_buffer.get(), 0, content.data(), desc.size);
    }

    void check_texture_limits(const TextureDesc& desc) const
    {
        const DeviceLimits& limits = m_info.limits;
        uint32_t most = limits.max_texture_dimension_2d;
        if (desc.type == TextureType::texture_1d || desc.type == TextureType::texture_1d_array)
            most = limits.max_texture_dimension_1d;
        else if (desc.type == TextureType::texture_3d)
            most = limits.max_texture_dimension_3d;
        else if (desc.is_cube())
            most = limits.max_texture_dimension_cube;
        if (most && std::max({desc.width, desc.height, desc.depth}) > most)
            fail_value("create_texture: ", desc.width, " x ", desc.height, " x ", desc.depth,
                       " is more than this device's limit of ", most, " for ", name_of(desc.type));
        if (limits.max_texture_layers && desc.layer_count() > limits.max_texture_layers)
            fail_value("create_texture: ", desc.layer_count(), " layers are more than this device's limit of ",
                       limits.max_texture_layers);
        uint32_t support = m_inner->format_support(desc.format);
        if (!m_inner->has_feature("rasterization")) // a flag without effect
            support |= uint32_t(FormatSupport::render_target);
        const std::pair<TextureUsage, FormatSupport> needs[] = {
            {TextureUsage::shader_resource, FormatSupport::shader_load},
            {TextureUsage::unordered_access, FormatSupport::shader_uav_store},
            {TextureUsage::render_target, FormatSupport::render_target},
            {TextureUsage::depth_stencil, FormatSupport::depth_stencil},
        };
        for (auto [usage, bit] : needs)
            if (has_flag(desc.usage, usage) && !(support & uint32_t(bit)))
                fail_value("create_texture: format ", format_name(desc.format), " does not support usage ",
                           names_of(usage), " on this device; see device.get_format_support(Format.",
                           format_name(desc.format), ")");
    }

    void check_group_size(const KernelDesc& desc) const
    {
        const DeviceLimits& limits = m_info.limits;
        const uint32_t* size = desc.layout->group_size;
        const uint64_t threads = uint64_t(size[0]) * size[1] * size[2];
        if (limits.max_compute_threads_per_group && threads > limits.max_compute_threads_per_group)
            fail_value(desc.label, ": thread groups of ", size[0], " x ", size[1], " x ", size[2], " = ", threads,
                       " threads are more than this device's limit of ", limits.max_compute_threads_per_group);
    }

    /// False: nothing to do.
    bool check_groups(const Kernel& kernel, std::array<uint32_t, 3> count) const
    {
        check_group_count(this, kernel, {count[0], count[1], count[2]});
        return count[0] && count[1] && count[2];
    }

    void check_stream(NativeHandle stream) const
    {
        if (stream.type == NativeHandleType::undefined)
            return;
        if (stream.type != NativeHandleType::CUstream)
            fail_value("cuda_stream must be a CUstream handle; make one with NativeHandle.from_cuda_stream(stream)");
        if (m_inner->cuda_index() < 0)
            fail_value("cuda_stream: the ", device_type_name(m_info.type),
                       " device cannot order work against CUDA streams; open it with enable_cuda_interop=True");
    }

    ref<Device> m_inner;
    ref<Buffer> m_print_buffer;
};

} // namespace

ref<Device> create_validation_device(ref<Device> inner) { return new ValidationDevice(std::move(inner)); }

} // namespace spy
