#pragma once
// Recorded commands, put on a stream.
#include "cuda/launch.h"
#include "device/command.h"

namespace spy {

class CudaCommands {
public:
    CudaCommands(Device& device, CudaContext& context, CudaQueue& queue, CudaMemory& memory, CudaLauncher& launcher,
                 const DeviceInfo& info)
        : m_device(device),
          m_context(context),
          m_queue(queue),
          m_memory(memory),
          m_launcher(launcher),
          m_info(info)
    {
    }
    uint64_t submit(const SubmitDesc& desc);

private:
    /// While somebody measures, between two timestamps.
    void execute_timed(const Command& command, CUstream stream, bool tracked, CudaContext::Lock& lock);
    void execute(const Command& command, CUstream stream, bool tracked, CudaContext::Lock& lock);
    void copy(const command::CopyTexture& copy, CUstream stream);
    void copy(const command::CopyTextureToBuffer& copy, CUstream stream);
    void copy(const command::CopyBufferToTexture& copy, CUstream stream);
    void copy(const command::UploadTexture& upload, CUstream stream);
    void fill_buffer(const command::FillBuffer& fill, CUstream stream);
    void clear_texture(const command::ClearTexture& clear, CUstream stream);
    void dispatch_indirect(const command::DispatchIndirect& dispatch, CUstream stream, bool tracked,
                           CudaContext::Lock& lock);
    void run_recorded(Kernel* kernel, const std::array<uint32_t, 3>& groups,
                      const std::vector<std::vector<uint8_t>>& scopes, const std::vector<ref<Object>>& slots,
                      CUstream stream, bool tracked);

    Device& m_device;
    CudaContext& m_context;
    CudaQueue& m_queue;
    CudaMemory& m_memory;
    CudaLauncher& m_launcher;
    const DeviceInfo& m_info;
};

} // namespace spy
