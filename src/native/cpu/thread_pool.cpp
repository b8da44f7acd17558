#include "cpu/thread_pool.h"

#include "core/interrupt.h"

#include <algorithm>
#include <chrono>
#include <system_error>
#include <unistd.h>

namespace spy {

namespace {

using Clock = std::chrono::steady_clock;

/// Jobs expected to take less than this stay on one thread; a wake-up costs about a tenth of it.
constexpr int64_t worth_sharing_ns = 20'000;
/// Workers look out for the next job this long before they sleep.
constexpr int spin_rounds = 4000;
constexpr double longest_piece_ns = 50e6;
constexpr auto poll_interval = std::chrono::milliseconds(50);

// m_state: workers in the job (low 16 bits), open bit, number of the job.
constexpr uint64_t open_bit = 1u << 16;
uint64_t workers_in(uint64_t state) { return state & 0xffff; }
uint64_t job_number(uint64_t state) { return state >> 17; }
uint64_t next_job(uint64_t state) { return (job_number(state) + 1) << 17 | open_bit; }

void relax()
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
}

} // namespace

void ThreadPool::run_erased(uint64_t count, Call call, const void* body, Sharing* sharing)
{
    if (count == 1)
        return call(body, 0, 1); // nothing to share, nothing to time
    // Pieces grow fourfold until one takes long enough to judge by.
    uint64_t done = 0, piece = 1;
    while (done < count) {
        const uint64_t end = std::min(count, done + piece);
        const auto start = Clock::now();
        call(body, done, end);
        const int64_t taken = (Clock::now() - start).count();
        const uint64_t size = end - done;
        done = end;
        if (done == count)
            return;
        if (taken > poll_interval / std::chrono::nanoseconds(1))
            poll_interrupt();
        const double per_index = std::max(double(taken) / double(size), 0.01);
        if (taken > 1000 || size >= 64) {
            if (per_index * double(count - done) <= double(worth_sharing_ns))
                break;
            // Pieces of at least 2 us, about eight for each thread, none so long that Ctrl-C would have to wait for it.
            const uint64_t enough = uint64_t(2000.0 / per_index) + 1;
            const uint64_t most = std::max(enough, uint64_t(longest_piece_ns / per_index));
            const uint64_t chunk = std::clamp((count - done) / (uint64_t(m_thread_count) * 8), enough, most);
            run_shared(done, per_index * double(count - done), {call, body, count, std::min(chunk, count - done)},
                       sharing);
            return;
        }
        piece = size * 4;
    }
    if (done < count)
        call(body, done, count);
}

void ThreadPool::run_shared(uint64_t begin, double rest, const Job& job, Sharing* sharing)
{
    leave_parent();
    std::unique_lock lock(m_job_mutex, std::try_to_lock);
    if (!lock || m_thread_count == 1 || (sharing && !sharing->begin(rest))) { // or another launch has the workers
        std::atomic<uint64_t> next{begin};
        drain_interruptible(job, next);
        return;
    }
    start_workers();
    m_job = job;
    m_next.store(begin, std::memory_order_relaxed);
    {
        std::lock_guard sleep_lock(m_sleep_mutex);
        m_state.store(next_job(m_state.load(std::memory_order_relaxed)), std::memory_order_release);
    }
    m_wake.notify_all();
    auto finish = [&] {
        m_state.fetch_and(~open_bit, std::memory_order_acq_rel);
        for (int round = 0; workers_in(m_state.load(std::memory_order_acquire)); ++round)
            round < spin_rounds ? relax() : std::this_thread::yield();
    };
    try {
        drain_interruptible(m_job, m_next);
    } catch (...) { // Ctrl-C: pieces that have begun end, no other begins
        m_next.store(job.count, std::memory_order_relaxed);
        finish();
        throw;
    }
    finish();
}

void ThreadPool::drain_interruptible(const Job& job, std::atomic<uint64_t>& next)
{
    auto polled = Clock::now();
    for (;;) {
        const uint64_t begin = next.fetch_add(job.chunk, std::memory_order_relaxed);
        if (begin >= job.count)
            return;
        job.call(job.body, begin, std::min(job.count, begin + job.chunk));
        if (Clock::now() - polled > poll_interval) {
            poll_interrupt();
            polled = Clock::now();
        }
    }
}

void ThreadPool::drain(const Job& job)
{
    for (;;) {
        const uint64_t begin = m_next.fetch_add(job.chunk, std::memory_order_relaxed);
        if (begin >= job.count)
            return;
        job.call(job.body, begin, std::min(job.count, begin + job.chunk));
    }
}

void ThreadPool::work()
{
    uint64_t seen = 0; // job that this worker has been in
    auto is_new = [&] {
        const uint64_t state = m_state.load(std::memory_order_acquire);
        return (state & open_bit) && job_number(state) != seen;
    };
    for (;;) {
        for (int round = 0; round < spin_rounds && !is_new() && !m_stopping; ++round)
            relax();
        if (!is_new()) {
            std::unique_lock lock(m_sleep_mutex);
            m_wake.wait(lock, [&] { return is_new() || m_stopping; });
        }
        if (m_stopping)
            return;
        uint64_t state = m_state.load(std::memory_order_acquire);
        if (!(state & open_bit) || job_number(state) == seen)
            continue;
        if (!m_state.compare_exchange_strong(state, state + 1, std::memory_order_acq_rel))
            continue;
        seen = job_number(state);
        drain(m_job);
        m_state.fetch_sub(1, std::memory_order_acq_rel);
    }
}

void ThreadPool::start_workers()
{
    if (!m_workers.empty())
        return;
    m_owner_pid = int(getpid());
    m_state = 0;
    m_workers.reserve(m_thread_count);
    try {
        for (unsigned i = 1; i < m_thread_count; ++i)
            m_workers.emplace_back([this] { work(); });
    } catch (const std::system_error&) { // the system grants no more: those that there are do the work
    }
}

/// In a forked child the handles name threads that do not exist: they can be neither joined nor destroyed. The locks
/// may be held by such threads, and the condition variable waits for them even when it is destroyed. So all are made
/// anew.
void ThreadPool::leave_parent() noexcept
{
    if (m_workers.empty() || m_owner_pid == int(getpid()))
        return;
    new (&m_workers) std::vector<std::thread>();
    new (&m_job_mutex) std::mutex;
    new (&m_sleep_mutex) std::mutex;
    new (&m_wake) std::condition_variable;
    m_stopping = false;
}

void ThreadPool::stop() noexcept
{
    leave_parent();
    if (m_workers.empty())
        return;
    {
        std::lock_guard lock(m_sleep_mutex);
        m_stopping = true;
    }
    m_wake.notify_all();
    for (std::thread& worker : m_workers)
        worker.join();
    m_workers.clear();
    m_owner_pid = 0;
    m_stopping = false;
}

} // namespace spy
