#pragma once
#include "cpu/adds.h"
#include "cpu/api.h"
#include "cpu/descriptors.h"
#include "cpu/thread_pool.h"
#include "device/compile_ahead.h"
#include "device/handles.h"
#include "device/host.h"

#include <atomic>

namespace spy::cpu {

class CpuKernel;

class CpuDevice final : public HostDevice, public CompileAhead {
public:
    explicit CpuDevice(const DeviceDesc& desc);
    ~CpuDevice() override;

    ref<Texture> create_texture(const TextureDesc& desc) override;
    ref<Sampler> create_sampler(const SamplerDesc& desc) override;
    uint32_t format_support(Format format) override;
    std::string compile(const CompileDesc& desc) override;
    void expect_compile(const CompileDesc& desc) override;
    std::string compiler_fingerprint() override;
    ref<Kernel> create_kernel(const KernelDesc& desc) override;
    DescriptorHandle make_handle(DeviceObject* object, DescriptorHandleType type) override;
    void drop_handle(const DescriptorHandle& handle) noexcept override;
    void launch(const LaunchDesc& desc) override;

protected:
    void close_backend() noexcept override;

private:
    /// Whether it ended everywhere without a null pointer.
    bool run(const CpuKernel& kernel, const LaunchDesc& desc, void* entry_point, void* globals);

    ThreadPool m_pool;
    SpareCopies m_spare; ///< for additions of several threads
    std::mutex m_handles_mutex;
    HandleDescriptors m_handles;
};

/// Arguments of the function that Slang emits for an entry point: the groups to run, in the three dimensions.
struct GroupRange {
    std::array<uint32_t, 3> begin, end;
};

class CpuKernel final : public Kernel {
public:
    using Function = void (*)(const GroupRange* range, void* entry_point_arguments, void* global_arguments);

    CpuKernel(ref<Device> device, const KernelDesc& desc);
    ~CpuKernel() override { retire(); }
    void release() noexcept override { m_library.reset(); }

    Function function() const { return m_function; }
    /// What the frames of its functions take on the stack, where that is much.
    uint64_t stack() const { return m_stack; }
    /// Whether that may be more than what a thread has.
    bool needs_stack() const { return m_stack > small_stack; }
    /// What a thread of it is given then, and a thread of one of its groups always.
    uint64_t group_stack() const;
    /// Says how the calling thread adds to shared memory; null where the code adds nothing.
    SetAdds set_adds() const { return m_set_adds; }
    /// Whether a launch since the last question left the bounds of an array (code that keeps no count of it: false).
    bool overran() const { return m_overrun && m_overrun->exchange(0, std::memory_order_relaxed) != 0; }
    /// Whether a launch, the first that did, used an index outside of a buffer or an array.
    bool went_outside() const
    {
        return m_outside && m_outside->load(std::memory_order_relaxed) != 0 && !m_told.exchange(true);
    }
    /// Whether a launch, the first that did, divided an integer by zero.
    bool divided() const
    {
        return m_divided && m_divided->load(std::memory_order_relaxed) != 0 && !m_told_division.exchange(true);
    }
    /// All scopes stand in one block of memory, at these offsets.
    uint64_t block_size() const { return m_block_size; }
    /// Writes bytes, resources and the pointers between scopes into a zeroed block.
    void fill_block(const Arguments& arguments, uint8_t* block) const;
    uint8_t* scope(uint8_t* block, size_t index) const
    {
        return index < m_scope_offsets.size() ? block + m_scope_offsets[index] : block;
    }

private:
    static constexpr uint64_t small_stack = 64 << 10, most_stack = 64 << 20;

    std::unique_ptr<Library> m_library;
    uint64_t m_stack = 0;
    Function m_function = nullptr;
    SetAdds m_set_adds = nullptr;
    std::atomic<int>* m_overrun = nullptr; ///< in the library: see slangpy/slang/bounds_cpp.h
    std::atomic<int>* m_outside = nullptr; ///< in the library: see slangpy/slang/indices_cpp.h
    std::atomic<int>* m_divided = nullptr; ///< in the library: see slangpy/slang/divisions_cpp.h
    mutable std::atomic<bool> m_told{false}, m_told_division{false};
    /// Texture and sampler of a slot, after the scopes in the block.
    struct Resource {
        size_t slot;
        uint64_t offset;
    };
    void fill_resource(const Resource& resource, Object* object, uint8_t* block) const;

    std::vector<uint64_t> m_scope_offsets;
    std::vector<Resource> m_resources;
    uint64_t m_block_size = 0;
};

} // namespace spy::cpu
