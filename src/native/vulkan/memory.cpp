// Device memory and buffers.
#include "vulkan/device.h"

#include "core/align.h"
#include "core/error.h"

#include <algorithm>
#include <bit>
#include <cstring>

#ifndef _WIN32
#include <unistd.h>
#endif

namespace spy {

namespace {

constexpr uint64_t max_block_size = 64ull << 20;
constexpr uint64_t min_own_size = 16ull << 20; ///< requests from here on get memory of their own
constexpr uint64_t max_kept_bytes = 1ull << 30;

VkExternalMemoryHandleTypeFlagBits external_handle_type() { return VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT; }

} // namespace

// --- VulkanMemory

uint64_t VulkanMemory::block_size(uint32_t type) const
{
    const VkPhysicalDeviceMemoryProperties& memory = m_device.context().adapter->memory;
    const uint64_t heap = memory.memoryHeaps[memory.memoryTypes[type].heapIndex].size;
    return std::min(max_block_size, std::max<uint64_t>(heap / 16, 1 << 20));
}

uint32_t VulkanMemory::find_type(const AllocationRequest& request) const
{
    constexpr VkMemoryPropertyFlags device_local = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;
    constexpr VkMemoryPropertyFlags mapped = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
    constexpr VkMemoryPropertyFlags cached = VK_MEMORY_PROPERTY_HOST_CACHED_BIT;
    constexpr VkMemoryPropertyFlags avoided = VK_MEMORY_PROPERTY_PROTECTED_BIT |
        VK_MEMORY_PROPERTY_LAZILY_ALLOCATED_BIT | 0x40 | 0x80; // AMD uncached
    const VkPhysicalDeviceMemoryProperties& memory = m_device.context().adapter->memory;
    const VkPhysicalDeviceType kind = m_device.context().adapter->properties.deviceType;
    const bool unified = kind == VK_PHYSICAL_DEVICE_TYPE_CPU || kind == VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU;
    VkMemoryPropertyFlags required = 0, wanted = 0, unwanted = 0;
    switch (request.use) {
    case MemoryUse::device:
        wanted = device_local | (unified ? mapped | cached : 0);
        unwanted = unified ? 0 : mapped; // the visible window of a discrete card is small
        break;
    case MemoryUse::upload:
        required = mapped;
        unwanted = unified ? 0 : device_local | cached;
        break;
    case MemoryUse::read_back:
        required = mapped;
        wanted = cached;
        unwanted = unified ? 0 : device_local;
        break;
    }
    uint32_t best = memory.memoryTypeCount;
    int best_score = -1000;
    for (uint32_t i = 0; i < memory.memoryTypeCount; ++i) {
        const VkMemoryPropertyFlags flags = memory.memoryTypes[i].propertyFlags;
        if (!(request.requirements.memoryTypeBits & (1u << i)) || (flags & required) != required || (flags & avoided))
            continue;
        // Device memory matters more than being mapped.
        const int score = 8 * std::popcount(flags & wanted & device_local) + 2 * std::popcount(flags & wanted) -
            std::popcount(flags & unwanted);
        if (score > best_score)
            best_score = score, best = i;
    }
    if (best == memory.memoryTypeCount)
        fail_runtime("the Vulkan device ", m_device.info().adapter_name,
                     " has no memory type for this resource; ask for another memory_type, or for fewer usages");
    return best;
}

Allocation VulkanMemory::allocate(const AllocationRequest& request)
{
    Allocation result;
    const uint32_t type = find_type(request);
    if (try_allocate(request, type, result))
        return result;
    // What is released but still used by the GPU, and what is kept for reuse, may make room.
    m_device.queue().wait_and_collect();
    trim();
    if (try_allocate(request, type, result))
        return result;
    const VkPhysicalDeviceMemoryProperties& memory = m_device.context().adapter->memory;
    fail(ErrorKind::memory, "out of memory on ", m_device.info().adapter_name, ": ", request.requirements.size,
         " bytes were requested, ", in_use(), " bytes are in use, the heap has ",
         memory.memoryHeaps[memory.memoryTypes[type].heapIndex].size, " bytes, one allocation at most ",
         m_device.context().adapter->v11.maxMemoryAllocationSize);
}

bool VulkanMemory::try_allocate(const AllocationRequest& request, uint32_t type, Allocation& result)
{
    const bool own = request.exported || request.requirements.size >= std::min(min_own_size, block_size(type) / 4);
    if (!(own ? allocate_own(request, type, result) : allocate_from_block(request, type, result)))
        return false;
    TypeStatistics& statistics = m_statistics[type];
    statistics.used += result.size;
    ++statistics.count;
    return true;
}

bool VulkanMemory::allocate_own(const AllocationRequest& request, uint32_t type, Allocation& result)
{
    const VkMemoryRequirements& needed = request.requirements;
    const bool image = request.image != VK_NULL_HANDLE;
    if (!request.exported)
        for (auto kept = m_kept.begin(); kept != m_kept.end(); ++kept)
            if (kept->type == type && kept->image == image && kept->size >= needed.size &&
                kept->size - needed.size <= needed.size / 8) {
                result = *kept;
                m_kept_bytes -= kept->size;
                m_kept.erase(kept);
                return true;
            }
    result = {};
    const VkResult code = allocate_driver(needed.size, type, &request, result.memory, result.mapped);
    if (code == VK_ERROR_OUT_OF_DEVICE_MEMORY || code == VK_ERROR_OUT_OF_HOST_MEMORY)
        return false;
    vk_check(code, "vkAllocateMemory");
    result.size = needed.size;
    result.type = type;
    result.image = image;
    result.exported = request.exported;
    return true;
}

bool VulkanMemory::allocate_from_block(const AllocationRequest& request, uint32_t type, Allocation& result)
{
    const bool image = request.image != VK_NULL_HANDLE;
    // 256: at least what every API asks of addresses handed to kernels and other libraries.
    const uint64_t alignment = std::max<uint64_t>(request.requirements.alignment, 256);
    const uint64_t size = round_up(std::max<uint64_t>(request.requirements.size, 1), 256);
    auto take = [&](MemoryBlock& block) {
        for (auto candidate = block.free_sizes.lower_bound({size, 0}); candidate != block.free_sizes.end();
             ++candidate) {
            const auto [range_size, range] = *candidate;
            const uint64_t offset = round_up(range, alignment);
            if (offset + size > range + range_size)
                continue;
            block.free_sizes.erase(candidate);
            block.free.erase(range);
            auto put = [&](uint64_t begin, uint64_t end) {
                if (begin == end)
                    return;
                block.free.emplace(begin, end - begin);
                block.free_sizes.emplace(end - begin, begin);
            };
            put(range, offset);
            put(offset + size, range + range_size);
            block.used += size;
            result = {block.memory, offset, size,  block.mapped ? block.mapped + offset : nullptr,
                      type,         &block, false, image};
            return true;
        }
        return false;
    };
    for (auto& block : m_blocks)
        if (block->type == type && block->image == image && take(*block))
            return true;
    auto block = std::make_unique<MemoryBlock>();
    block->type = type;
    block->image = image;
    block->size = block_size(type);
    const VkResult code = allocate_driver(block->size, type, nullptr, block->memory, block->mapped);
    if (code == VK_ERROR_OUT_OF_DEVICE_MEMORY || code == VK_ERROR_OUT_OF_HOST_MEMORY)
        return allocate_own(request, type, result); // there may be room for this much
    vk_check(code, "vkAllocateMemory");
    block->free.emplace(0, block->size);
    block->free_sizes.emplace(block->size, 0);
    m_blocks.push_back(std::move(block));
    return take(*m_blocks.back());
}

VkResult VulkanMemory::allocate_driver(uint64_t size, uint32_t type, const AllocationRequest* dedicated,
                                       VkDeviceMemory& memory, uint8_t*& mapped)
{
    const VulkanFunctions& vk = m_device.context().vk;
    VkMemoryAllocateFlagsInfo flags{VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO};
    flags.flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT;
    VkMemoryAllocateInfo info{VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO, &flags};
    info.allocationSize = size;
    info.memoryTypeIndex = type;
    VkMemoryDedicatedAllocateInfo owner{VK_STRUCTURE_TYPE_MEMORY_DEDICATED_ALLOCATE_INFO};
    VkExportMemoryAllocateInfo exported{VK_STRUCTURE_TYPE_EXPORT_MEMORY_ALLOCATE_INFO};
    if (dedicated && dedicated->exported) {
        // Only exported memory is tied to its resource: the rest may serve another one later.
        owner.buffer = dedicated->buffer;
        owner.image = dedicated->image;
        exported.handleTypes = external_handle_type();
        flags.pNext = &exported;
        exported.pNext = &owner;
    }
    const VkPhysicalDeviceMemoryProperties& properties = m_device.context().adapter->memory;
    const uint64_t heap = properties.memoryHeaps[properties.memoryTypes[type].heapIndex].size;
    if (size > std::min<uint64_t>(heap, m_device.context().adapter->v11.maxMemoryAllocationSize))
        return VK_ERROR_OUT_OF_DEVICE_MEMORY; // drivers need not check this
    VkResult code = vk.AllocateMemory(m_device.context().device, &info, nullptr, &memory);
    if (code < 0)
        return code;
    if (m_device.context().adapter->memory.memoryTypes[type].propertyFlags & VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT) {
        void* pointer = nullptr;
        code = vk.MapMemory(m_device.context().device, memory, 0, VK_WHOLE_SIZE, 0, &pointer);
        if (code < 0) {
            vk.FreeMemory(m_device.context().device, memory, nullptr);
            return code == VK_ERROR_MEMORY_MAP_FAILED ? VK_ERROR_OUT_OF_HOST_MEMORY : code;
        }
        mapped = static_cast<uint8_t*>(pointer);
    }
    ++m_statistics[type].pages;
    m_statistics[type].allocated += size;
    return VK_SUCCESS;
}

void VulkanMemory::free_driver(VkDeviceMemory memory, uint64_t size, uint32_t type) noexcept
{
    m_device.context().vk.FreeMemory(m_device.context().device, memory, nullptr); // unmaps
    --m_statistics[type].pages;
    m_statistics[type].allocated -= size;
}

void VulkanMemory::free(const Allocation& allocation) noexcept
{
    if (!allocation.memory)
        return;
    TypeStatistics& statistics = m_statistics[allocation.type];
    statistics.used -= allocation.size;
    --statistics.count;
    MemoryBlock* block = allocation.block;
    if (!block) {
        if (allocation.exported) {
            free_driver(allocation.memory, allocation.size, allocation.type);
            return;
        }
        m_kept.push_back(allocation);
        m_kept_bytes += allocation.size;
        const uint64_t limit = std::min(max_kept_bytes, block_size(allocation.type) * 4);
        while (m_kept_bytes > limit) {
            const Allocation& oldest = m_kept.front();
            m_kept_bytes -= oldest.size;
            free_driver(oldest.memory, oldest.size, oldest.type);
            m_kept.pop_front();
        }
        return;
    }
    uint64_t begin = allocation.offset, end = begin + allocation.size;
    block->used -= allocation.size;
    auto next = block->free.lower_bound(begin);
    if (next != block->free.end() && next->first == end) {
        end += next->second;
        block->free_sizes.erase({next->second, next->first});
        next = block->free.erase(next);
    }
    if (next != block->free.begin()) {
        auto before = std::prev(next);
        if (before->first + before->second == begin) {
            begin = before->first;
            block->free_sizes.erase({before->second, before->first});
            block->free.erase(before);
        }
    }
    block->free.emplace(begin, end - begin);
    block->free_sizes.emplace(end - begin, begin);
    if (block->used)
        return;
    // One empty block of a kind stays, so that a loop of create and release does not ask the driver each time.
    const bool other_empty = std::any_of(m_blocks.begin(), m_blocks.end(), [&](const auto& other) {
        return other.get() != block && !other->used && other->type == block->type && other->image == block->image;
    });
    if (!other_empty)
        return;
    free_driver(block->memory, block->size, block->type);
    std::erase_if(m_blocks, [&](const auto& other) { return other.get() == block; });
}

void VulkanMemory::trim() noexcept
{
    for (const Allocation& allocation : m_kept)
        free_driver(allocation.memory, allocation.size, allocation.type);
    m_kept.clear();
    m_kept_bytes = 0;
    std::erase_if(m_blocks, [&](const auto& block) {
        if (block->used)
            return false;
        free_driver(block->memory, block->size, block->type);
        return true;
    });
}

void VulkanMemory::clear() noexcept
{
    trim();
    for (const auto& block : m_blocks)
        free_driver(block->memory, block->size, block->type);
    m_blocks.clear();
}

uint64_t VulkanMemory::in_use() const
{
    uint64_t total = 0;
    for (const TypeStatistics& statistics : m_statistics)
        total += statistics.used;
    return total;
}

std::vector<HeapReport> VulkanMemory::reports() const
{
    std::vector<HeapReport> result;
    const VkPhysicalDeviceMemoryProperties& memory = m_device.context().adapter->memory;
    for (uint32_t i = 0; i < memory.memoryTypeCount; ++i) {
        const TypeStatistics& statistics = m_statistics[i];
        const VkMemoryPropertyFlags flags = memory.memoryTypes[i].propertyFlags;
        std::string label = cat("memory type ", i);
        if (flags & VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT)
            label += ", device local";
        if (flags & VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT)
            label += flags & VK_MEMORY_PROPERTY_HOST_CACHED_BIT ? ", host cached" : ", host visible";
        result.push_back({label, statistics.pages, statistics.used, statistics.allocated, statistics.count});
    }
    return result;
}

// --- VulkanBuffer

VulkanBuffer::VulkanBuffer(ref<Device> device, BufferDesc desc) : Buffer(std::move(device), std::move(desc))
{
    VulkanDevice& owner = *static_cast<VulkanDevice*>(m_device.get());
    const VulkanFunctions& vk = owner.context().vk;
    const uint64_t size = std::max<uint64_t>(round_up(m_desc.size, 4), 4);
    if (size > owner.context().adapter->max_buffer_size)
        fail_value("a buffer of ", m_desc.size, " bytes is larger than this device allows (",
                   owner.context().adapter->max_buffer_size, " bytes)");
    const bool shared = has_flag(m_desc.usage, BufferUsage::shared);
    if (shared && !owner.context().has_extension(VK_KHR_EXTERNAL_MEMORY_FD_EXTENSION_NAME))
        fail_runtime("BufferUsage.shared needs the Vulkan extension VK_KHR_external_memory_fd, which ",
                     owner.info().adapter_name, " does not offer");
    VkExternalMemoryBufferCreateInfo external{VK_STRUCTURE_TYPE_EXTERNAL_MEMORY_BUFFER_CREATE_INFO};
    external.handleTypes = external_handle_type();
    VkBufferCreateInfo info{VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO};
    info.pNext = shared ? &external : nullptr;
    info.size = size;
    info.usage = VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT |
        VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_UNIFORM_BUFFER_BIT | VK_BUFFER_USAGE_INDIRECT_BUFFER_BIT |
        VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT;
    if (has_flag(m_desc.usage, BufferUsage::vertex_buffer))
        info.usage |= VK_BUFFER_USAGE_VERTEX_BUFFER_BIT;
    if (has_flag(m_desc.usage, BufferUsage::index_buffer))
        info.usage |= VK_BUFFER_USAGE_INDEX_BUFFER_BIT;
    if (owner.context().has_acceleration())
        info.usage |= VK_BUFFER_USAGE_ACCELERATION_STRUCTURE_BUILD_INPUT_READ_ONLY_BIT_KHR;
    if (m_desc.format != Format::undefined) {
        const VkFormatFeatureFlags features = owner.context().format_properties(m_desc.format).bufferFeatures;
        if (features & VK_FORMAT_FEATURE_UNIFORM_TEXEL_BUFFER_BIT)
            info.usage |= VK_BUFFER_USAGE_UNIFORM_TEXEL_BUFFER_BIT;
        if (features & VK_FORMAT_FEATURE_STORAGE_TEXEL_BUFFER_BIT)
            info.usage |= VK_BUFFER_USAGE_STORAGE_TEXEL_BUFFER_BIT;
    }
    std::lock_guard lock(owner.queue().mutex());
    owner.queue().throttle_garbage();
    vk_check(vk.CreateBuffer(owner.context().device, &info, nullptr, &m_buffer), "vkCreateBuffer");
    try {
        AllocationRequest request;
        vk.GetBufferMemoryRequirements(owner.context().device, m_buffer, &request.requirements);
        if (has_flag(m_desc.usage, BufferUsage::unordered_access)) // may be scratch memory of builds
            request.requirements.alignment = std::max<VkDeviceSize>(
                request.requirements.alignment, owner.info().limits.acceleration_structure_scratch_alignment);
        request.use = m_desc.memory_type == MemoryType::upload ? MemoryUse::upload
            : m_desc.memory_type == MemoryType::read_back      ? MemoryUse::read_back
                                                               : MemoryUse::device;
        request.buffer = m_buffer;
        request.exported = shared;
        m_allocation = owner.memory().allocate(request);
        vk_check(vk.BindBufferMemory(owner.context().device, m_buffer, m_allocation.memory, m_allocation.offset),
                 "vkBindBufferMemory");
        VkBufferDeviceAddressInfo address{VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO};
        address.buffer = m_buffer;
        m_address = vk.GetBufferDeviceAddress(owner.context().device, &address);
    } catch (...) {
        release();
        throw;
    }
    owner.context().set_name(VK_OBJECT_TYPE_BUFFER, uint64_t(m_buffer), m_desc.label);
}

void VulkanBuffer::release() noexcept
{
    VulkanDevice& owner = *static_cast<VulkanDevice*>(m_device.get());
    if (!(m_exported && owner.is_closed())) // others use it still: the destructor unmaps it
        unmap_cuda();
    owner.queue().discard(VK_OBJECT_TYPE_BUFFER_VIEW, uint64_t(std::exchange(m_view, VK_NULL_HANDLE)));
    owner.queue().discard(VK_OBJECT_TYPE_BUFFER, uint64_t(std::exchange(m_buffer, VK_NULL_HANDLE)),
                          std::exchange(m_allocation, {}));
    m_address = 0;
    m_shared_handle.close();
}

void SharedHandle::close() noexcept
{
#ifndef _WIN32
    if (m_descriptor >= 0)
        ::close(std::exchange(m_descriptor, -1));
#endif
}

NativeHandle VulkanBuffer::shared_handle()
{
    VulkanDevice& owner = *static_cast<VulkanDevice*>(m_device.get());
    owner.require_open("shared_handle");
    if (!m_allocation.exported)
        fail_runtime("shared_handle: the buffer was not created with BufferUsage.shared");
    return m_shared_handle.get([&] { return owner.context().export_memory(m_allocation.memory); });
}

VkBufferView VulkanBuffer::texel_view()
{
    if (m_view)
        return m_view;
    VulkanDevice& owner = *static_cast<VulkanDevice*>(m_device.get());
    if (m_desc.format == Format::undefined)
        fail_value("a buffer bound as Buffer<T> or RWBuffer<T> must be created with a format: give create_buffer one, "
                   "such as format=Format.r32_float");
    VkBufferViewCreateInfo info{VK_STRUCTURE_TYPE_BUFFER_VIEW_CREATE_INFO};
    info.buffer = m_buffer;
    info.format = VkFormat(format_info(m_desc.format).vk_format);
    info.range = VK_WHOLE_SIZE;
    if (!owner.context().format_properties(m_desc.format).bufferFeatures)
        fail_value("format ", format_name(m_desc.format), " cannot be used for texel buffers on this device");
    vk_check(owner.context().vk.CreateBufferView(owner.context().device, &info, nullptr, &m_view),
             "vkCreateBufferView");
    return m_view;
}

ref<Buffer> VulkanDevice::create_buffer(const BufferDesc& desc)
{
    require_open("create_buffer");
    ref<Buffer> buffer(new VulkanBuffer(ref<Device>(this), desc));
    if (desc.uninitialized || desc.memory_type != MemoryType::device_local)
        return buffer;
    std::lock_guard lock(m_queue.mutex());
    m_recorder.record(command::FillBuffer{buffer, 0, desc.size, 0});
    if (has_flag(desc.usage, BufferUsage::shared)) // others may look at the memory without asking us
        m_queue.flush();
    else
        m_queue.flush_if_due();
    return buffer;
}

} // namespace spy
