#pragma once
// The device whose work is recorded into command lists: what Vulkan and Direct3D 12 do alike with their parts.
#include "device/device.h"
#include "device/list_queue.h"
#include "device/profile.h"

#include <mutex>
#include <vector>

namespace spy {

/// Self: the backend's device, with the parts m_queue, m_memory, m_recorder and m_host, of which this is a friend;
/// KernelType: its kernels.
template <typename Self, typename KernelType>
class ListDevice : public Device {
public:
    void launch(const LaunchDesc& desc) override
    {
        const bool on_stream = desc.stream.type != NativeHandleType::undefined;
        std::lock_guard lock(self().m_queue.mutex());
        require_open("launch");
        if (on_stream)
            sync_to_stream(desc.stream);
        timed(
            *this, desc, [&](const command::WriteTimestamp& c) { self().m_recorder.record(c); },
            [&] {
                self().m_recorder.record_launch(*static_cast<KernelType*>(desc.kernel), desc.group_count,
                                                {desc.arguments.scopes, desc.arguments.slots});
            });
        if (on_stream)
            return sync_stream_to(desc.stream);
        self().m_queue.flush_if_due();
    }

    uint64_t submit(const SubmitDesc& desc) override
    {
        const bool on_stream = desc.stream.type != NativeHandleType::undefined;
        std::unique_lock lock(self().m_queue.mutex());
        require_open("submit");
        if (on_stream)
            sync_to_stream(desc.stream);
        const uint64_t id = self().m_queue.submit(*this, desc, self().m_recorder, lock);
        if (on_stream)
            sync_stream_to(desc.stream);
        return id;
    }

    uint64_t last_submit_id() override
    {
        std::lock_guard lock(self().m_queue.mutex());
        return self().m_queue.newest_id();
    }
    bool is_finished(uint64_t submit_id) override { return self().m_queue.is_finished(submit_id); }
    bool wait(uint64_t submit_id, uint64_t timeout_ns) override { return self().m_queue.wait(submit_id, timeout_ns); }

    void read_buffer(Buffer* buffer, uint64_t offset, void* data, uint64_t size) override
    {
        self().m_host.read_buffer(buffer, offset, data, size);
    }
    void write_buffer(Buffer* buffer, uint64_t offset, const void* data, uint64_t size) override
    {
        self().m_host.write_buffer(buffer, offset, data, size);
    }
    void read_texture(Texture* texture, uint32_t layer, uint32_t mip, void* data) override
    {
        self().m_host.read_texture(texture, layer, mip, data);
    }
    void write_texture(Texture* texture, uint32_t layer, uint32_t mip, const void* data) override
    {
        self().m_host.write_texture(texture, layer, mip, data);
    }

    std::vector<HeapReport> heap_reports() override
    {
        std::lock_guard lock(self().m_queue.mutex());
        return self().m_memory.reports();
    }

    void require_open(const char* what) const { self().m_queue.timeline.require_open(what); }

private:
    Self& self() { return static_cast<Self&>(*this); }
    const Self& self() const { return static_cast<const Self&>(*this); }
};

} // namespace spy
