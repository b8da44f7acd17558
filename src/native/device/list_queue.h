#pragma once
// The queue of a device whose work is recorded into command lists: what Vulkan and Direct3D 12 share.
//
// There is one open list, which is submitted ("flushed") when somebody waits or reads, when the GPU has nothing to do,
// or when the list is full. A timeline carries the submit ids. Whatever is released while work is in flight is kept
// until its id has passed, so commands hold no references.
#include "core/interrupt.h"
#include "device/command.h"
#include "device/profile.h"
#include "device/timeline.h"

#include <algorithm>
#include <deque>
#include <memory>
#include <mutex>
#include <utility>

namespace spy {

/// List: has `id` and `command_count`. Garbage: what goes once its `id` has passed; bytes() says how much memory it is.
template <typename List, typename Garbage>
class ListQueue {
public:
    /// Guards all of the device's state, its queue and its memory.
    PoliteMutex& mutex() { return m_mutex; }

    List* current_list() { return m_open.get(); }
    uint64_t newest_id() const { return m_timeline.submitted() + (m_open ? 1 : 0); }

    // The caller holds the lock.
    virtual List& open_list() = 0;
    /// Submits the open list. With fences to wait for or to signal, an empty one, too.
    virtual void flush(const SubmitDesc* signals = nullptr) = 0;
    /// An idle GPU starts at once; on a busy one launches gather, which costs fewer submissions.
    void flush_if_due()
    {
        if (m_open && (m_open->command_count >= max_list_commands || m_timeline.completed() == m_timeline.submitted()))
            flush();
    }
    template <typename Recorder>
    uint64_t submit(Device& device, const SubmitDesc& desc, Recorder& recorder, std::unique_lock<PoliteMutex>& lock);

    bool is_finished(uint64_t submit_id);
    /// Frees what finished work has used.
    void collect();
    /// Keeps released memory that is still in use by the GPU within bounds.
    void throttle_garbage();

protected:
    explicit ListQueue(Timeline& timeline) : m_timeline(timeline) { }
    ~ListQueue() = default;

    virtual bool is_open() const = 0;
    /// A list of its own, for commands of others.
    virtual std::unique_ptr<List> begin_foreign_list() = 0;
    virtual NativeHandle handle_of(const List& list) const = 0;
    /// That list is the open one now; what was set on it is unknown.
    virtual void adopt_foreign_list() = 0;
    /// Takes back a list whose work is done.
    virtual void recycle(std::unique_ptr<List> list) = 0;
    /// Takes back a list that was never submitted.
    virtual void abandon(std::unique_ptr<List> list) noexcept = 0;
    virtual void destroy(Garbage& garbage) noexcept = 0;

    void discard(Garbage garbage) noexcept;
    void abandon_open_list() noexcept
    {
        if (m_open)
            abandon(std::move(m_open));
    }
    /// The open list is submitted.
    void note_submitted()
    {
        m_open->id = m_timeline.advance();
        m_pending.push_back(std::move(m_open));
    }
    void limit_pending()
    {
        if (m_pending.size() > max_pending_lists)
            m_timeline.wait(m_pending.front()->id);
    }
    void destroy_garbage() noexcept
    {
        for (Garbage& garbage : m_garbage)
            destroy(garbage);
        m_garbage.clear();
    }

    PoliteMutex m_mutex;
    std::unique_ptr<List> m_open;
    std::deque<std::unique_ptr<List>> m_pending;
    const SubmitDesc* m_waits = nullptr; ///< whose fences the next list waits for
    bool m_in_submit = false;            ///< the open list is half a submission

private:
    static constexpr uint64_t max_garbage_bytes = 1ull << 30;
    static constexpr uint64_t open_garbage_bytes = 64ull << 20; ///< released memory that only a flush can free
    static constexpr uint32_t max_list_commands = 32;           ///< launches gathered while the GPU is busy
    static constexpr size_t max_pending_lists = 64;

    void run_callback(const command::Callback& command, std::unique_lock<PoliteMutex>& lock);

    Timeline& m_timeline;
    std::deque<Garbage> m_garbage;
    uint64_t m_garbage_bytes = 0;
};

template <typename List, typename Garbage>
bool ListQueue<List, Garbage>::is_finished(uint64_t submit_id)
{
    std::lock_guard lock(m_mutex);
    if (!is_open())
        return true;
    m_timeline.require_open("is_finished");
    if (submit_id > m_timeline.submitted())
        flush();
    if (m_timeline.known_completed() < submit_id)
        collect();
    return m_timeline.known_completed() >= std::min(submit_id, m_timeline.submitted());
}

template <typename List, typename Garbage>
void ListQueue<List, Garbage>::discard(Garbage garbage) noexcept
{
    std::lock_guard lock(m_mutex);
    garbage.id = newest_id();
    uint64_t completed = m_timeline.known_completed();
    if (completed < garbage.id && !m_open)
        completed = m_timeline.completed_or_known();
    if (garbage.id <= completed)
        return destroy(garbage);
    m_garbage_bytes += garbage.bytes();
    m_garbage.push_back(std::move(garbage));
}

template <typename List, typename Garbage>
void ListQueue<List, Garbage>::collect()
{
    const uint64_t completed = m_timeline.completed();
    while (!m_pending.empty() && m_pending.front()->id <= completed) {
        std::unique_ptr<List> list = std::move(m_pending.front());
        m_pending.pop_front();
        recycle(std::move(list));
    }
    while (!m_garbage.empty() && m_garbage.front().id <= completed) {
        Garbage garbage = std::move(m_garbage.front());
        m_garbage.pop_front();
        m_garbage_bytes -= garbage.bytes();
        destroy(garbage);
    }
}

template <typename List, typename Garbage>
void ListQueue<List, Garbage>::throttle_garbage()
{
    if (m_garbage.empty())
        return;
    if (m_open && m_garbage_bytes > open_garbage_bytes)
        flush();
    else
        collect();
    while (m_garbage_bytes > max_garbage_bytes && !m_garbage.empty()) {
        if (m_garbage.front().id > m_timeline.submitted())
            flush();
        m_timeline.wait(m_garbage.front().id);
        collect();
    }
}

template <typename List, typename Garbage>
template <typename Recorder>
uint64_t ListQueue<List, Garbage>::submit(Device& device, const SubmitDesc& desc, Recorder& recorder,
                                          std::unique_lock<PoliteMutex>& lock)
{
    flush(); // what came before does not wait for this submission's fences
    const auto count = [&] {
        Profiler* const profiler = device.profiler();
        return profiler ? profiler->count() : 0;
    };
    size_t first = count(); // what is measured from here on runs only if the list is submitted
    open_list();
    m_waits = desc.wait_fences.empty() ? nullptr : &desc;
    m_in_submit = true;
    try {
        for (CommandBuffer* buffer : desc.command_buffers)
            for (const Command& command : buffer->commands()) {
                if (auto* callback = std::get_if<command::Callback>(&command)) {
                    flush();
                    first = count();
                    run_callback(*callback, lock);
                    first = count();
                } else
                    recorder.record_timed(device, command);
            }
    } catch (...) {
        m_in_submit = false;
        m_waits = nullptr;
        if (Profiler* const profiler = device.profiler())
            profiler->drop_from(first);
        abandon_open_list(); // a submission runs whole or not at all (up to a callback)
        throw;
    }
    m_in_submit = false;
    open_list();
    flush(&desc);
    return m_timeline.submitted();
}

template <typename List, typename Garbage>
void ListQueue<List, Garbage>::run_callback(const command::Callback& command, std::unique_lock<PoliteMutex>& lock)
{
    // The function may need other locks (Python's), whose owners may be waiting for ours: it records into a list that
    // nobody else knows, with our lock released.
    std::unique_ptr<List> list = begin_foreign_list();
    list->command_count = 1;
    m_in_submit = false;
    lock.unlock();
    try {
        command.function(handle_of(*list));
    } catch (...) {
        lock.lock();
        if (is_open())
            abandon(std::move(list));
        throw;
    }
    lock.lock();
    m_timeline.require_open("submit");
    flush();
    m_open = std::move(list);
    m_in_submit = true;
    adopt_foreign_list();
}

} // namespace spy
