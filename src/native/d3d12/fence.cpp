// Fences and query pools.
#include "d3d12/device.h"

#include "core/error.h"

#include <algorithm>

namespace spy {

namespace {

} // namespace

// --- fences

D3D12Fence::D3D12Fence(ref<Device> device, uint64_t initial_value) : Fence(std::move(device))
{
    d3d12_check(device_of(*this).context().device->CreateFence(initial_value, D3D12_FENCE_FLAG_NONE,
                                                               iid_of<ID3D12Fence>(), m_fence.put_void()),
                "CreateFence");
}

void D3D12Fence::release() noexcept { device_of(*this).queue().discard(m_fence); }

uint64_t D3D12Fence::current_value()
{
    device_of(*this).require_open("fence");
    return m_fence->GetCompletedValue();
}

void D3D12Fence::signal(uint64_t value)
{
    const uint64_t current = current_value();
    if (value == current)
        return;
    if (value < current)
        fail_value("fence.signal: the value ", value, " is below the current value ", current);
    d3d12_check(m_fence->Signal(value), "ID3D12Fence::Signal");
}

bool D3D12Fence::wait(uint64_t value, uint64_t timeout_ns)
{
    for (PatientWait patience; current_value() < value;) {
        const uint64_t spent = patience.spent_ns();
        if (spent >= timeout_ns)
            return false;
        patience.pause(timeout_ns - spent, false);
    }
    return true;
}

NativeHandle D3D12Fence::shared_handle()
{
    fail(ErrorKind::not_implemented,
         "shared_handle: fences of the d3d12 device cannot be shared; devices that can: vulkan");
}

ref<Fence> D3D12Device::create_fence(uint64_t initial_value, bool shared)
{
    require_open("create_fence");
    if (shared)
        fail(ErrorKind::not_implemented,
             "create_fence: fences of the d3d12 device cannot be shared; devices that can: vulkan");
    return ref<Fence>(new D3D12Fence(ref<Device>(this), initial_value));
}

// --- queries

D3D12QueryPool::D3D12QueryPool(ref<Device> device, QueryType type, uint32_t count)
    : QueryPool(std::move(device), type, count),
      m_submit_ids(count)
{
    D3D12Device& owner = device_of(*this);
    if (!owner.context().timestamp_frequency)
        fail_runtime("create_query_pool: the queue of ", owner.info().adapter_name, " has no timestamps");
    D3D12_QUERY_HEAP_DESC desc{};
    desc.Type = D3D12_QUERY_HEAP_TYPE_TIMESTAMP;
    desc.Count = std::max(count, 1u);
    d3d12_check(owner.context().device->CreateQueryHeap(&desc, iid_of<ID3D12QueryHeap>(), m_heap.put_void()),
                "CreateQueryHeap");
}

void D3D12QueryPool::release() noexcept { device_of(*this).queue().discard(m_heap); }

void D3D12QueryPool::reset(uint32_t index, uint32_t count) { std::fill_n(m_submit_ids.begin() + index, count, 0); }

void D3D12QueryPool::require_written(uint32_t index, uint32_t count) const
{
    for (uint32_t i = index; i < index + count; ++i)
        if (!m_submit_ids[i])
            fail_no_result(i);
}

void D3D12QueryPool::get_results(uint32_t index, uint32_t count, uint64_t* ticks)
{
    if (!count)
        return;
    require_written(index, count);
    device_of(*this).read_queries(*this, index, count, ticks);
}

ref<QueryPool> D3D12Device::create_query_pool(QueryType type, uint32_t count)
{
    require_open("create_query_pool");
    return ref<QueryPool>(new D3D12QueryPool(ref<Device>(this), type, count));
}

} // namespace spy
