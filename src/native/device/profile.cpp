#include "device/profile.h"

#include "core/error.h"

#include <algorithm>
#include <chrono>

namespace spy {

namespace {

Work launch_work(const Kernel& kernel, std::span<const int64_t> shape, const std::array<uint32_t, 3>& groups,
                 const uint32_t* group_size)
{
    Work work{kernel.label(), {shape.begin(), shape.end()}};
    if (shape.empty())
        for (size_t i = 0; i < 3; ++i)
            work.shape.push_back(int64_t(groups[i]) * std::max(group_size[i], 1u));
    return work;
}

std::vector<int64_t> texels(const Extent3& extent) { return {extent.width, extent.height, extent.depth}; }

struct WorkOf {
    Work operator()(const command::Dispatch& c) const
    {
        return launch_work(*c.kernel, c.shape, c.group_count, c.kernel->layout().group_size);
    }
    Work operator()(const command::DispatchIndirect& c) const { return {c.kernel->label(), {}}; }
    Work operator()(const command::DispatchRays& c) const
    {
        return {c.pipeline->label(), {c.dimensions[0], c.dimensions[1], c.dimensions[2]}};
    }
    Work operator()(const command::BuildAccelerationStructure&) const { return {"build_acceleration_structure", {}}; }
    Work operator()(const command::ConvertCoopVecMatrices& c) const
    {
        return {"convert_coop_vec_matrices", {int64_t(c.matrices.size())}};
    }
    Work operator()(const command::CopyBuffer& c) const { return {"copy_buffer", {int64_t(c.size)}}; }
    Work operator()(const command::FillBuffer& c) const { return {"clear_buffer", {int64_t(c.size)}}; }
    Work operator()(const command::UploadBuffer& c) const { return {"upload_buffer_data", {int64_t(c.data.size())}}; }
    Work operator()(const command::CopyTexture& c) const { return {"copy_texture", texels(c.extent)}; }
    Work operator()(const command::CopyTextureToBuffer& c) const
    {
        return {"copy_texture_to_buffer", texels(c.extent)};
    }
    Work operator()(const command::CopyBufferToTexture& c) const
    {
        return {"copy_buffer_to_texture", texels(c.extent)};
    }
    Work operator()(const command::UploadTexture& c) const { return {"upload_texture_data", texels(c.extent)}; }
    Work operator()(const command::ClearTexture& c) const
    {
        const TextureDesc& desc = c.texture->desc();
        return {"clear_texture", {desc.width, desc.height, desc.depth}};
    }
    /// A pass by its pipeline, if it is one for all draws.
    Work operator()(const command::RenderPass& c) const
    {
        const RenderPipeline* one = nullptr;
        bool is_one = true;
        for (const command::RenderItem& item : c.items)
            if (const auto* draw = std::get_if<command::Draw>(&item)) {
                is_one = is_one && (!one || one == draw->pipeline.get());
                one = draw->pipeline.get();
            }
        return {one && is_one && !one->label().empty() ? one->label() : "render_pass",
                {c.width, c.height, c.layer_count}};
    }
    Work operator()(const command::ClearDepthStencil& c) const
    {
        const TextureDesc& desc = c.texture->desc();
        return {"clear_texture_depth_stencil", {desc.width, desc.height, desc.depth}};
    }
    template <typename Other>
    Work operator()(const Other&) const
    {
        return {};
    }
};

} // namespace

Work work_of(const LaunchDesc& desc)
{
    const uint32_t* size = desc.group_size[0] ? desc.group_size.data() : desc.kernel->layout().group_size;
    return launch_work(*desc.kernel, desc.shape, desc.group_count, size);
}

Work work_of(const Command& command) { return std::visit(WorkOf{}, command); }

uint64_t host_ticks()
{
    return uint64_t(std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1));
}

size_t Profiler::start()
{
    const std::lock_guard lock(m_mutex);
    if (!m_pool && !m_device.info().on_host)
        add_pool();
    ++m_users;
    return m_origin + m_records.size();
}

Profiler::Result Profiler::stop(size_t first, bool read_ticks)
{
    std::vector<Record> records;
    ref<QueryPool> pool;
    Result result;
    {
        const std::lock_guard lock(m_mutex);
        if (read_ticks)
            records.assign(m_records.begin() + ptrdiff_t(first - m_origin), m_records.end());
        result.lost = m_lost;
        if (--m_users == 0) { // pools hold the device: none is left
            m_origin += m_records.size();
            if (records.empty())
                std::swap(records, m_records); // freed without the lock
            m_records.clear();
            std::swap(pool, m_pool);
            m_used = 0;
            m_lost = 0;
        }
    }
    if (!read_ticks)
        return result;
    std::erase_if(records, [](const Record& record) { return !record.is_done; });
    read(records);
    result.events.reserve(records.size());
    for (Record& record : records)
        result.events.push_back(std::move(record.event));
    return result;
}

/// Neighbours of one pool together: some devices answer each question with a submission.
void Profiler::read(std::vector<Record>& records)
{
    std::vector<uint64_t> ticks;
    for (size_t i = 0; i < records.size();) {
        if (!records[i].pool) {
            ++i;
            continue;
        }
        size_t end = i + 1;
        while (end < records.size() && records[end].pool == records[i].pool &&
               records[end].index == records[end - 1].index + 2)
            ++end;
        ticks.resize(2 * (end - i));
        records[i].pool->get_results(records[i].index, uint32_t(ticks.size()), ticks.data());
        for (size_t k = 0; i < end; ++i, k += 2) {
            records[i].event.begin = ticks[k];
            records[i].event.end = std::max(ticks[k], ticks[k + 1]);
        }
    }
}

void Profiler::add_pool()
{
    m_pool = m_device.create_query_pool(QueryType::timestamp, pool_size);
    m_used = 0;
}

Profiler::Place Profiler::begin(Work work)
{
    const std::lock_guard lock(m_mutex);
    if (work.name.empty() || !m_users)
        return {};
    if (!m_pool || m_used == pool_size) {
        try {
            add_pool();
        } catch (const Error&) { // no memory, say: what is measured must not fail for it
            ++m_lost;
            return {};
        }
    }
    Place place{m_pool, m_used, m_origin + m_records.size()};
    m_used += 2;
    m_records.push_back({{std::move(work)}, m_pool, place.index});
    return place;
}

void Profiler::end(const Place& place)
{
    const std::lock_guard lock(m_mutex);
    if (place.event >= m_origin) // else the measurement is over
        m_records[place.event - m_origin].is_done = true;
}

void Profiler::note(Work work, uint64_t begin, uint64_t end)
{
    const std::lock_guard lock(m_mutex);
    if (m_users && !work.name.empty())
        m_records.push_back({{std::move(work), begin, end}, {}, 0, true});
}

size_t Profiler::count()
{
    const std::lock_guard lock(m_mutex);
    return m_origin + m_records.size();
}

void Profiler::drop_from(size_t first)
{
    const std::lock_guard lock(m_mutex);
    for (size_t i = std::max(first, m_origin); i < m_origin + m_records.size(); ++i)
        m_records[i - m_origin].is_done = false;
}

// --- what every device has of it

size_t Device::start_profile()
{
    const std::lock_guard lock(m_profile_mutex);
    if (!m_profile)
        m_profile = std::make_shared<Profiler>(*this);
    const size_t first = m_profile->start();
    ++m_profile_users;
    m_profiler.store(m_profile.get(), std::memory_order_release);
    return first;
}

std::shared_ptr<Profiler> Device::leave_profile()
{
    const std::lock_guard lock(m_profile_mutex);
    if (--m_profile_users == 0)
        m_profiler.store(nullptr, std::memory_order_release);
    return m_profile;
}

} // namespace spy
