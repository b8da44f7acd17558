// Opening and closing a CUDA device, and what it makes.
#include "cuda/device.h"
#include "cuda/compile.h"
#include "cuda/ranges.h"
#include "device/backend.h"

namespace spy {

namespace {

ref<Device> create_cuda(const DeviceDesc& desc) { return ref<Device>(new CudaDevice(desc)); }

} // namespace

Backend cuda_backend() { return {DeviceType::cuda, "cuda", enumerate_cuda, create_cuda}; }

CudaDevice::CudaDevice(const DeviceDesc& desc)
{
    m_desc = desc;
    m_desc.type = DeviceType::cuda;
    m_context.open(m_desc);
    CudaRange::attach();
    try {
        CudaContext::Lock lock(m_context);
        m_memory.open();
        m_queue.open();
        m_info = cuda_info(m_context);
        m_target = cuda_target(m_info);
    } catch (...) {
        close_backend();
        throw;
    }
}

void CudaDevice::close_backend() noexcept
{
    if (!m_context.alive())
        return;
    {
        CudaContext::Lock lock(m_context);
        CudaContext::Relaxed relaxed(m_context.api());
        m_queue.close();
        m_clock.close();
        m_memory.close();
        m_context.forget();
    }
    m_context.release();
}

ref<Buffer> CudaDevice::create_buffer(const BufferDesc& desc)
{
    return ref<Buffer>(new CudaBuffer(ref<CudaDevice>(this), desc));
}

ref<Fence> CudaDevice::create_fence(uint64_t value, bool shared)
{
    return ref<Fence>(new CudaFence(ref<CudaDevice>(this), value, shared));
}

ref<QueryPool> CudaDevice::create_query_pool(QueryType type, uint32_t count)
{
    return ref<QueryPool>(new CudaQueryPool(ref<CudaDevice>(this), type, count));
}

ref<Texture> CudaDevice::create_texture(const TextureDesc& desc)
{
    return ref<Texture>(new CudaTexture(ref<CudaDevice>(this), desc));
}

ref<Sampler> CudaDevice::create_sampler(const SamplerDesc& desc)
{
    return ref<Sampler>(new CudaSampler(ref<CudaDevice>(this), desc));
}

ref<TextureView> CudaDevice::create_texture_view(Texture* texture, const TextureViewDesc& desc)
{
    Format format = desc.format == Format::undefined ? texture->desc().format : desc.format;
    if (!cuda_texel(format).channels ||
        format_info(format).bytes_per_block != format_info(texture->desc().format).bytes_per_block)
        fail_value("create_view: a cuda texture of format ", format_name(texture->desc().format),
                   " cannot be viewed as ", format_name(format), "; the formats must have texels of the same size");
    return ref<TextureView>(new CudaTextureView(ref<CudaDevice>(this), ref<Texture>(texture), desc));
}

ref<Kernel> CudaDevice::create_kernel(const KernelDesc& desc)
{
    return ref<Kernel>(new CudaKernel(ref<CudaDevice>(this), desc));
}

std::string CudaDevice::compile(const CompileDesc& desc)
{
    CompileDesc mine = desc;
    if (mine.cuda_arch.empty())
        mine.cuda_arch = m_context.arch();
    // NVRTC cannot be stopped.
    return run_interruptible([mine, source = std::string(desc.source)]() mutable {
        mine.source = source;
        return cuda_compile(mine);
    });
}

std::string CudaDevice::compiler_fingerprint() { return cuda_fingerprint(m_context.arch()); }

std::array<NativeHandle, 3> CudaDevice::native_handles()
{
    return {NativeHandle{NativeHandleType::CUdevice, uint64_t(m_context.device())},
            NativeHandle{NativeHandleType::CUcontext, uint64_t(m_context.handle())},
            {}};
}

std::vector<HeapReport> CudaDevice::heap_reports()
{
    CudaContext::Lock lock(m_context);
    m_context.ensure_usable();
    return m_memory.reports();
}

} // namespace spy
