// Memory: blocks, windows into them, buffers.
#include "d3d12/device.h"

#include "core/align.h"
#include "core/error.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace spy {

namespace {

constexpr uint64_t page = 64 << 10;         ///< where the API lets resources begin
constexpr uint64_t small_size = 4ull << 20; ///< up to this size blocks share heaps
constexpr uint64_t heap_size = 64ull << 20;
constexpr uint64_t max_kept_bytes = 512ull << 20;

/// Sizes come in powers of two as long as they are small, so that released blocks fit again.
uint64_t block_size(uint64_t size)
{
    return size <= small_size ? std::max(page, std::bit_ceil(size)) : round_up(size, 1 << 20);
}

/// Upload and read-back memory is the host's own, which kernels may write, too; heaps of those names they could not.
D3D12_HEAP_PROPERTIES heap_properties(MemoryType type)
{
    D3D12_HEAP_PROPERTIES properties{};
    properties.Type = D3D12_HEAP_TYPE_DEFAULT;
    if (type == MemoryType::device_local)
        return properties;
    properties.Type = D3D12_HEAP_TYPE_CUSTOM;
    properties.CPUPageProperty = D3D12_CPU_PAGE_PROPERTY_WRITE_BACK;
    properties.MemoryPoolPreference = D3D12_MEMORY_POOL_L0;
    return properties;
}

D3D12_RESOURCE_DESC buffer_desc(uint64_t size)
{
    D3D12_RESOURCE_DESC desc{};
    desc.Dimension = D3D12_RESOURCE_DIMENSION_BUFFER;
    desc.Width = size;
    desc.Height = desc.DepthOrArraySize = desc.MipLevels = 1;
    desc.SampleDesc.Count = 1;
    desc.Layout = D3D12_TEXTURE_LAYOUT_ROW_MAJOR;
    desc.Flags = D3D12_RESOURCE_FLAG_ALLOW_UNORDERED_ACCESS;
    return desc;
}

const char* type_name(MemoryType type)
{
    constexpr const char* names[] = {"device local", "upload", "read back"};
    return names[size_t(type)];
}

} // namespace

// --- D3D12Memory

D3D12Block* D3D12Memory::acquire(uint64_t size, MemoryType type, bool windows)
{
    const uint64_t wanted = block_size(std::max<uint64_t>(size, 1));
    D3D12Block* block = nullptr;
    if (auto found = m_kept.find({type, windows, wanted}); found != m_kept.end()) {
        block = found->second;
        m_kept.erase(found);
        m_kept_bytes -= wanted;
    } else {
        block = create(wanted, type, windows);
    }
    m_in_use += wanted;
    ++m_count;
    return block;
}

D3D12Block* D3D12Memory::create(uint64_t size, MemoryType type, bool windows)
{
    auto block = std::make_unique<D3D12Block>();
    block->type = type;
    block->size = size;
    if (windows) {
        block->windows = uint32_t((size + window_size - 1) >> window_bits);
        block->window = take_windows(block->windows);
    }
    const D3D12_HEAP_PROPERTIES properties = heap_properties(type);
    const D3D12_RESOURCE_DESC desc = buffer_desc(size);
    ID3D12Device* device = m_device.context().device.get();
    try {
        auto make = [&] {
            return device->CreateCommittedResource(&properties, D3D12_HEAP_FLAG_NONE, &desc,
                                                   D3D12_RESOURCE_STATE_COMMON, nullptr, iid_of<ID3D12Resource>(),
                                                   block->resource.put_void());
        };
        if (size <= small_size) {
            create_small(*block, properties, desc);
        } else if (FAILED(make())) {
            trim();
            if (const HRESULT result = make(); FAILED(result))
                fail(ErrorKind::memory, "out of memory on ", m_device.context().name(), ": ", size, " bytes of ",
                     type_name(type), " memory were requested, ", m_in_use, " bytes are in use (", hresult_text(result),
                     ")");
        }
        if (type != MemoryType::device_local)
            d3d12_check(block->resource->Map(0, nullptr, reinterpret_cast<void**>(&block->mapped)), "mapping a buffer");
    } catch (...) {
        if (block->windows)
            m_free_windows[block->window] = block->windows;
        throw;
    }
    if (windows)
        write_views(*block);
    m_total += size;
    ++m_blocks;
    return block.release();
}

void D3D12Memory::create_small(D3D12Block& block, const D3D12_HEAP_PROPERTIES& properties,
                               const D3D12_RESOURCE_DESC& desc)
{
    ID3D12Device* device = m_device.context().device.get();
    SharedHeap& shared = m_heaps[block.type];
    if (!shared.heap || shared.used + block.size > heap_size) {
        D3D12_HEAP_DESC heap{};
        heap.SizeInBytes = heap_size;
        heap.Properties = properties;
        heap.Flags = D3D12_HEAP_FLAG_ALLOW_ONLY_BUFFERS;
        d3d12_check(device->CreateHeap(&heap, iid_of<ID3D12Heap>(), shared.heap.put_void()), "CreateHeap");
        shared.used = 0; // the blocks of the heap before hold it
    }
    d3d12_check(device->CreatePlacedResource(shared.heap.get(), shared.used, &desc, D3D12_RESOURCE_STATE_COMMON,
                                             nullptr, iid_of<ID3D12Resource>(), block.resource.put_void()),
                "CreatePlacedResource");
    shared.used += block.size;
}

uint32_t D3D12Memory::take_windows(uint32_t count)
{
    for (auto it = m_free_windows.begin(); it != m_free_windows.end(); ++it) {
        auto [first, free] = *it;
        if (free < count)
            continue;
        m_free_windows.erase(it);
        if (free > count)
            m_free_windows[first + count] = free - count;
        return first;
    }
    fail(ErrorKind::memory, "too many buffers: a Direct3D 12 device has addresses for ", window_count,
         ", and more for each beyond ", window_size, " bytes");
}

void D3D12Memory::write_views(const D3D12Block& block)
{
    for (uint32_t i = 0; i < block.windows; ++i) {
        const uint64_t begin = i * window_size, end = std::min(block.size, begin + window_size + window_overlap);
        D3D12_UNORDERED_ACCESS_VIEW_DESC view{};
        view.Format = DXGI_FORMAT_R32_TYPELESS;
        view.ViewDimension = D3D12_UAV_DIMENSION_BUFFER;
        view.Buffer.FirstElement = begin / 4;
        view.Buffer.NumElements = UINT((end - begin) / 4);
        view.Buffer.Flags = D3D12_BUFFER_UAV_FLAG_RAW;
        m_device.context().device->CreateUnorderedAccessView(block.resource.get(), nullptr, &view,
                                                             m_device.descriptors().window(block.window + i));
    }
}

void D3D12Memory::recycle(D3D12Block* block) noexcept
{
    m_in_use -= block->size;
    --m_count;
    m_kept.emplace(Key{block->type, block->windows != 0, block->size}, block);
    m_kept_bytes += block->size;
    if (m_kept_bytes > max_kept_bytes)
        trim();
}

/// Gives back what is kept; small blocks stay, because their heaps do.
void D3D12Memory::trim() noexcept
{
    for (auto it = m_kept.begin(); it != m_kept.end();) {
        D3D12Block* block = it->second;
        if (block->size <= small_size) {
            ++it;
            continue;
        }
        m_kept_bytes -= block->size;
        it = m_kept.erase(it);
        destroy(block);
    }
}

void D3D12Memory::destroy(D3D12Block* block) noexcept
{
    m_total -= block->size;
    --m_blocks;
    if (block->windows) {
        auto next = m_free_windows.lower_bound(block->window);
        uint32_t first = block->window, count = block->windows;
        if (next != m_free_windows.end() && next->first == first + count) {
            count += next->second;
            next = m_free_windows.erase(next);
        }
        if (next != m_free_windows.begin())
            if (auto before = std::prev(next); before->first + before->second == first) {
                before->second += count;
                count = 0;
            }
        if (count)
            m_free_windows[first] = count;
    }
    delete block;
}

void D3D12Memory::clear() noexcept
{
    for (auto& [key, block] : m_kept)
        destroy(block);
    m_kept.clear();
    m_kept_bytes = 0;
    m_heaps.clear();
}

std::vector<HeapReport> D3D12Memory::reports() const { return {{"buffers", m_blocks, m_in_use, m_total, m_count}}; }

// --- D3D12Buffer

D3D12Buffer::D3D12Buffer(ref<Device> device, BufferDesc desc) : Buffer(std::move(device), std::move(desc))
{
    D3D12Device& owner = *static_cast<D3D12Device*>(m_device.get());
    if (m_desc.size > owner.info().limits.max_buffer_size)
        fail_value("a buffer of ", m_desc.size, " bytes is larger than this device allows (",
                   owner.info().limits.max_buffer_size, " bytes)");
    if (has_flag(m_desc.usage, BufferUsage::shared))
        fail(ErrorKind::not_implemented,
             "BufferUsage.shared: buffers of the d3d12 device cannot be shared; devices that "
             "can: vulkan, cuda");
    std::lock_guard lock(owner.queue().mutex());
    owner.queue().throttle_garbage();
    m_block = owner.memory().acquire(m_desc.size, m_desc.memory_type, true);
    owner.context().set_name(m_block->resource.get(), m_desc.label);
}

void D3D12Buffer::release() noexcept
{
    static_cast<D3D12Device*>(m_device.get())->queue().discard(std::exchange(m_block, nullptr));
}

ref<Buffer> D3D12Device::create_buffer(const BufferDesc& desc)
{
    require_open("create_buffer");
    ref<Buffer> buffer(new D3D12Buffer(ref<Device>(this), desc));
    if (desc.uninitialized)
        return buffer;
    if (void* memory = buffer->host_pointer()) { // nothing uses it yet
        std::memset(memory, 0, desc.size);
        return buffer;
    }
    std::lock_guard lock(m_queue.mutex());
    m_recorder.record(command::FillBuffer{buffer, 0, desc.size, 0});
    m_queue.flush_if_due();
    return buffer;
}

} // namespace spy
