#pragma once
// Memory of the Direct3D 12 backend, and the resources that take it.
//
// HLSL has no pointers, so what stands for an address is a number: all buffers have views in one table, each over a
// window of 2^28 bytes, and an address is the place of a window in the table times 2^28 plus the byte in it. A larger
// buffer takes neighbouring windows, so that addresses count through. Each view reaches a little into the next window
// it, for elements that lie across.
#include "d3d12/context.h"

#include <deque>
#include <map>
#include <tuple>

namespace spy {

class D3D12Device;

inline constexpr uint32_t window_bits = 28;
inline constexpr uint64_t window_size = 1ull << window_bits;
inline constexpr uint64_t window_overlap = 1ull << 16; ///< elements are shorter
inline constexpr uint32_t window_count = 16384;        ///< 4 TiB; the first one is empty, for the address 0

/// One buffer of the driver.
struct D3D12Block {
    Com<ID3D12Resource> resource;
    MemoryType type = MemoryType::device_local;
    uint64_t size = 0;
    uint32_t window = 0, windows = 0; ///< place in the table; no windows: kernels reach it by view only
    uint8_t* mapped = nullptr;
    uint64_t list = 0; ///< of the command list that `state` belongs to: each finds buffers in the state COMMON
    D3D12_RESOURCE_STATES state = D3D12_RESOURCE_STATE_COMMON;

    uint64_t address() const { return uint64_t(window) << window_bits; }
};

/// Makes blocks and keeps released ones for the next request. Small ones share heaps. The device's lock guards it.
class D3D12Memory {
public:
    explicit D3D12Memory(D3D12Device& device) : m_device(device) { }
    /// Throws ErrorKind::memory. `windows`: kernels reach it by address.
    D3D12Block* acquire(uint64_t size, MemoryType type, bool windows);
    /// For a block that no work uses any more.
    void recycle(D3D12Block* block) noexcept;
    void clear() noexcept;
    std::vector<HeapReport> reports() const;

private:
    struct SharedHeap {
        Com<ID3D12Heap> heap;
        uint64_t used = 0;
    };

    D3D12Block* create(uint64_t size, MemoryType type, bool windows);
    void create_small(D3D12Block& block, const D3D12_HEAP_PROPERTIES& properties, const D3D12_RESOURCE_DESC& desc);
    void destroy(D3D12Block* block) noexcept;
    void trim() noexcept;
    uint32_t take_windows(uint32_t count);
    void write_views(const D3D12Block& block);

    using Key = std::tuple<MemoryType, bool, uint64_t>;
    D3D12Device& m_device;
    std::multimap<Key, D3D12Block*> m_kept;
    uint64_t m_kept_bytes = 0, m_in_use = 0, m_total = 0, m_count = 0, m_blocks = 0;
    std::map<MemoryType, SharedHeap> m_heaps;
    std::map<uint32_t, uint32_t> m_free_windows{{1, window_count - 1}}; ///< first -> count
};

// --- resources

class D3D12Buffer final : public Buffer {
public:
    D3D12Buffer(ref<Device> device, BufferDesc desc);
    ~D3D12Buffer() override { retire(); }
    void release() noexcept override;

    uint64_t device_address() const override { return m_block ? m_block->address() : 0; }
    void* host_pointer() const override
    {
        return m_block && m_desc.memory_type != MemoryType::device_local ? m_block->mapped : nullptr;
    }
    NativeHandle native_handle() const override
    {
        return {NativeHandleType::D3D12Resource, m_block ? uint64_t(m_block->resource.get()) : 0};
    }
    D3D12Block* block() const { return m_block; }

private:
    D3D12Block* m_block = nullptr;
};

class D3D12Texture final : public Texture {
public:
    D3D12Texture(ref<Device> device, TextureDesc desc);
    ~D3D12Texture() override { retire(); }
    void release() noexcept override;
    NativeHandle native_handle() const override
    {
        return {NativeHandleType::D3D12Resource, uint64_t(m_resource.get())};
    }
    uint64_t memory_usage() const override { return m_memory_usage; }

    ID3D12Resource* resource() const { return m_resource.get(); }
    TextureViewDesc whole() const;
    UINT subresource(uint32_t layer, uint32_t mip) const { return mip + layer * m_desc.mip_count; }
    /// Writes the view of a parameter of `shape` (none: the texture's own) to a descriptor.
    void write_view(const TextureViewDesc& desc, ResourceShape shape, bool writable,
                    D3D12_CPU_DESCRIPTOR_HANDLE to) const;

    /// The view that a render pass, or a clear, writes through; one mip.
    void write_target_view(const TextureViewDesc& desc, D3D12_CPU_DESCRIPTOR_HANDLE to) const;
    void write_depth_view(const TextureViewDesc& desc, D3D12_DSV_FLAGS flags, D3D12_CPU_DESCRIPTOR_HANDLE to) const;

    bool takes_other_formats() const; ///< for its views

    /// Kernels can write it, so the API can clear it.
    bool can_clear() const { return m_is_writable; }
    /// The shape that reaches all layers.
    ResourceShape array_shape() const;

    D3D12_RESOURCE_STATES state = D3D12_RESOURCE_STATE_COMMON; ///< where recorded work leaves it

private:
    Com<ID3D12Resource> m_resource;
    uint64_t m_memory_usage = 0;
    bool m_is_writable = false;
};

/// The format as copies name it: that of the texels in memory.
DXGI_FORMAT copy_format(Format format);
/// The view of a texture as a parameter of this shape needs it, when there is no texture.
void write_null_view(ID3D12Device* device, const SlotLayout& slot, D3D12_CPU_DESCRIPTOR_HANDLE to);

class D3D12Sampler final : public Sampler {
public:
    D3D12Sampler(ref<Device> device, SamplerDesc desc);
    ~D3D12Sampler() override { retire(); }
    const D3D12_SAMPLER_DESC& native_desc() const { return m_native; }

private:
    D3D12_SAMPLER_DESC m_native{};
};

class D3D12Fence final : public Fence {
public:
    D3D12Fence(ref<Device> device, uint64_t initial_value);
    ~D3D12Fence() override { retire(); }
    void release() noexcept override;
    uint64_t current_value() override;
    void signal(uint64_t value) override;
    bool wait(uint64_t value, uint64_t timeout_ns) override;
    NativeHandle native_handle() const override { return {NativeHandleType::D3D12Fence, uint64_t(m_fence.get())}; }
    NativeHandle shared_handle() override;
    ID3D12Fence* handle() const { return m_fence.get(); }

private:
    Com<ID3D12Fence> m_fence;
};

class D3D12QueryPool final : public QueryPool {
public:
    D3D12QueryPool(ref<Device> device, QueryType type, uint32_t count);
    ~D3D12QueryPool() override { retire(); }
    void release() noexcept override;
    void reset(uint32_t index, uint32_t count) override;
    void get_results(uint32_t index, uint32_t count, uint64_t* ticks) override;

    ID3D12QueryHeap* handle() const { return m_heap.get(); }
    void mark_written(uint32_t index, uint64_t submit_id) { m_submit_ids[index] = submit_id; }
    void require_written(uint32_t index, uint32_t count) const;

private:
    Com<ID3D12QueryHeap> m_heap;
    std::vector<uint64_t> m_submit_ids; ///< of the last write; 0 = none since the last reset
};

} // namespace spy
