#pragma once
// Launches: arguments, with the handles of resources among them, to the driver.
#include "cuda/memory.h"
#include "cuda/pipeline.h"
#include "cuda/texture.h"

namespace spy {

/// All of these need the lock of the context.
class CudaLauncher {
public:
    explicit CudaLauncher(CudaDevice& device);
    /// One launch with its place in the order of work.
    void launch(const LaunchDesc& desc);
    /// A launch inside of a submission. `tracked`: the stream is not recorded into a graph.
    void run(CudaKernel& kernel, const std::array<uint32_t, 3>& groups, const Arguments& arguments, CUstream stream,
             bool tracked);

private:
    void launch_on(const LaunchDesc& desc, CUstream stream, bool tracked);
    /// A copy that is bound in place of a part of a texture that CUDA cannot address.
    struct Shadow {
        std::shared_ptr<CudaArray> copy;
        CudaArray* whole;
        SubresourceRange range;
        bool write_back;
    };

    void start(CudaKernel& kernel, const std::array<uint32_t, 3>& groups, void* parameters, CUstream stream,
               const uint32_t* size = nullptr, uint32_t shared_memory = 0);
    void run_bound(CudaKernel& kernel, const std::array<uint32_t, 3>& groups, const Arguments& arguments,
                   CUstream stream, bool tracked);
    void bind_slot(CudaKernel& kernel, size_t index, const Arguments& arguments, CUstream stream,
                   std::vector<Shadow>& shadows);
    uint64_t bind_texture(CudaKernel& kernel, size_t index, const Arguments& arguments, CUstream stream,
                          std::vector<Shadow>& shadows);
    void copy_shadow(const Shadow& shadow, bool back, CUstream stream);

    CudaDevice& m_device;
    CudaContext& m_context;
    CudaQueue& m_queue;
    CudaMemory& m_memory;
};

} // namespace spy
