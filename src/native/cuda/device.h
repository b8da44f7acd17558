#pragma once
// The CUDA device, put together from its parts.
#include "cuda/transfer.h"
#include "cuda/fence.h"
#include "cuda/host.h"
#include "device/handles.h"

namespace spy {

class CudaDevice final : public Device {
public:
    explicit CudaDevice(const DeviceDesc& desc);
    ~CudaDevice() override { close_backend(); }

    ref<Buffer> create_buffer(const BufferDesc& desc) override;
    ref<Texture> create_texture(const TextureDesc& desc) override;
    ref<TextureView> create_texture_view(Texture* texture, const TextureViewDesc& desc) override;
    ref<Sampler> create_sampler(const SamplerDesc& desc) override;
    ref<Fence> create_fence(uint64_t initial_value, bool shared) override;
    ref<QueryPool> create_query_pool(QueryType type, uint32_t count) override;
    uint32_t format_support(Format format) override { return cuda_format_support(format); }

    std::string compile(const CompileDesc& desc) override;
    std::string compiler_fingerprint() override;
    ref<Kernel> create_kernel(const KernelDesc& desc) override;
    DescriptorHandle make_handle(DeviceObject* object, DescriptorHandleType type) override;

    void launch(const LaunchDesc& desc) override { m_launcher.launch(desc); }
    uint64_t submit(const SubmitDesc& desc) override { return m_commands.submit(desc); }
    uint64_t last_submit_id() override { return m_queue.newest_id(); }
    bool is_finished(uint64_t submit_id) override { return m_queue.is_finished(submit_id); }
    bool wait(uint64_t submit_id, uint64_t timeout_ns) override { return m_queue.wait(submit_id, timeout_ns); }

    void read_buffer(Buffer* buffer, uint64_t offset, void* data, uint64_t size) override
    {
        m_host.read_buffer(buffer, offset, data, size);
    }
    void write_buffer(Buffer* buffer, uint64_t offset, const void* data, uint64_t size) override
    {
        m_host.write_buffer(buffer, offset, data, size);
    }
    void read_texture(Texture* texture, uint32_t layer, uint32_t mip, void* data) override
    {
        m_host.read_texture(texture, layer, mip, data);
    }
    void write_texture(Texture* texture, uint32_t layer, uint32_t mip, const void* data) override
    {
        m_host.write_texture(texture, layer, mip, data);
    }

    std::vector<HeapReport> heap_reports() override;
    std::array<NativeHandle, 3> native_handles() override;
    int cuda_index() const override { return m_info.device_index; }
    void set_context_current() override { m_context.set_current(); }
    void sync_to_stream(NativeHandle stream) override { m_queue.sync_to_stream(cuda_stream_of(stream)); }
    void sync_stream_to(NativeHandle stream) override { m_queue.sync_stream_to(cuda_stream_of(stream)); }
    bool is_capturing(NativeHandle stream) override { return m_queue.is_capturing(cuda_stream_of(stream)); }

    // --- for the classes of this backend
    CudaContext& context() { return m_context; }
    CudaQueue& queue() { return m_queue; }
    CudaMemory& memory() { return m_memory; }
    CudaClock& clock() { return m_clock; }

protected:
    void close_backend() noexcept override;

private:
    CudaContext m_context;
    CudaMemory m_memory{m_context, m_queue};
    CudaQueue m_queue{m_context, m_memory};
    CudaClock m_clock{m_context, m_queue};
    CudaLauncher m_launcher{*this};
    CudaCommands m_commands{*this, m_context, m_queue, m_memory, m_launcher, m_info};
    CudaHostAccess m_host{m_context, m_queue, m_memory};
};

inline CudaDevice& cuda(Device* device) { return *static_cast<CudaDevice*>(device); }

/// What a device reports of itself (info.cpp).
DeviceInfo cuda_info(const CudaContext& context);
CompileTarget cuda_target(const DeviceInfo& info);

} // namespace spy
