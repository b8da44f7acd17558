#include "d3d12/upload.h"

#include "core/align.h"
#include "d3d12/queue.h"

#include <algorithm>

namespace spy {

namespace {

constexpr uint64_t page_size = 1ull << 20;
constexpr uint64_t max_staged_bytes = 256ull << 20;

} // namespace

void D3D12Uploads::close() noexcept
{
    for (D3D12UploadPage* page : m_free_pages) {
        m_memory.recycle(page->block);
        delete page;
    }
    m_free_pages.clear();
}

D3D12UploadSlice D3D12Uploads::slice(uint64_t size, uint64_t alignment)
{
    if (m_staged_bytes > max_staged_bytes)
        limit();
    D3D12List& list = m_queue.open_list();
    if (size <= page_size / 2 && !list.pages.empty()) {
        D3D12UploadPage* page = list.pages.back();
        const uint64_t offset = round_up(page->used, alignment);
        if (offset + size <= page->size) {
            page->used = offset + size;
            return {page->block, offset, page->block->mapped + offset};
        }
    }
    D3D12UploadPage* page = nullptr;
    if (size <= page_size && !m_free_pages.empty()) {
        page = m_free_pages.back();
        m_free_pages.pop_back();
    } else {
        D3D12Block* block = m_memory.acquire(std::max(size, page_size), MemoryType::upload, false);
        page = new D3D12UploadPage{block, block->size, 0};
    }
    page->used = size;
    list.pages.push_back(page);
    list.staged_bytes += page->size;
    m_staged_bytes += page->size;
    return {page->block, 0, page->block->mapped};
}

void D3D12Uploads::recycle_page(D3D12UploadPage* page) noexcept
{
    page->used = 0;
    if (page->size == page_size) {
        m_free_pages.push_back(page);
        return;
    }
    m_memory.recycle(page->block);
    delete page;
}

void D3D12Uploads::limit()
{
    while (m_staged_bytes > max_staged_bytes)
        m_queue.wait_for_oldest();
}

} // namespace spy
