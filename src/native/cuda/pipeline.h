#pragma once
// Kernels: machine code in the context, and where the parts of their arguments lie.
#include "cuda/context.h"

namespace spy {

class CudaDevice;

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
    friend class CudaLauncher;
    void find_globals();
    void check_parameters();
    void read_limits();
    void read_shared_memory();
    void find_scopes();
    void find_slots();
    bool converts(const std::string& path) const;

    CUmodule m_module = nullptr;
    CUfunction m_function = nullptr;
    uint32_t m_label_index = 0;
    uint32_t m_max_group_threads = 0xffffffff;
    uint32_t m_shared_bytes = 0;  ///< of a group's dynamic shared memory
    size_t m_parameter_bytes = 0; ///< exact size of the kernel's parameters
    bool m_plain = false;         ///< parameters only: no resources, globals or nested blocks

    CUdeviceptr m_globals = 0;
    size_t m_global_bytes = 0;
    bool m_globals_uploaded = false;
    std::vector<uint8_t> m_globals_now; ///< what m_globals holds
    std::vector<CudaSlot> m_slots;
    std::vector<uint8_t> m_scratch;              ///< bytes of all scopes while arguments are assembled
    std::vector<size_t> m_scratch_offset;        ///< by scope
    size_t m_block_begin = 0, m_block_bytes = 0; ///< nested blocks: one piece of scratch and of device memory
};

} // namespace spy
