// Command lists: what is recorded into, and those that may be recorded into again.
#include "d3d12/lists.h"

#include <utility>

namespace spy {

std::unique_ptr<D3D12List> D3D12Lists::create()
{
    if (!m_free.empty()) {
        auto list = std::move(m_free.back());
        m_free.pop_back();
        return list;
    }
    auto list = std::make_unique<D3D12List>();
    ID3D12Device* device = m_context.device.get();
    d3d12_check(device->CreateCommandAllocator(D3D12_COMMAND_LIST_TYPE_DIRECT, iid_of<ID3D12CommandAllocator>(),
                                               list->allocator.put_void()),
                "CreateCommandAllocator");
    d3d12_check(device->CreateCommandList(0, D3D12_COMMAND_LIST_TYPE_DIRECT, list->allocator.get(), nullptr,
                                          iid_of<ID3D12GraphicsCommandList>(), list->commands.put_void()),
                "CreateCommandList");
    d3d12_check(list->commands->Close(), "ID3D12GraphicsCommandList::Close");
    return list;
}

std::unique_ptr<D3D12List> D3D12Lists::begin()
{
    std::unique_ptr<D3D12List> list = create();
    d3d12_check(list->allocator->Reset(), "ID3D12CommandAllocator::Reset");
    d3d12_check(list->commands->Reset(list->allocator.get(), nullptr), "ID3D12GraphicsCommandList::Reset");
    restore(*list);
    return list;
}

void D3D12Lists::restore(D3D12List& list)
{
    list.serial = ++m_serial;
    list.bound = nullptr;
    list.is_written = false;
    ID3D12DescriptorHeap* heaps[] = {m_descriptors.resources.heap.get(), m_descriptors.samplers.heap.get()};
    list.commands->SetDescriptorHeaps(2, heaps);
}

void D3D12Lists::recycle(std::unique_ptr<D3D12List> list) noexcept
{
    m_uploads.note_done(list->staged_bytes);
    for (D3D12UploadPage* page : list->pages)
        m_uploads.recycle_page(page);
    list->pages.clear();
    list->copied.clear();
    list->textures.clear();
    list->id = list->staged_bytes = 0;
    list->command_count = 0;
    m_free.push_back(std::move(list));
}

void D3D12Lists::abandon(std::unique_ptr<D3D12List> list) noexcept
{
    list->commands->Close(); // whatever it says: the list is reset before it is used again
    for (auto it = list->textures.rbegin(); it != list->textures.rend(); ++it)
        it->first->state = it->second;
    recycle(std::move(list));
}

} // namespace spy
