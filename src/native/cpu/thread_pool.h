#pragma once
// Persistent workers that share out the groups of one launch at a time; the caller works too.
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

namespace spy {

/// Asked before a job goes to several threads.
class Sharing {
public:
    virtual ~Sharing() = default;
    /// Whether it shall. `rest`: nanoseconds that the rest would take on this thread alone.
    virtual bool begin(double rest) = 0;
};

class ThreadPool {
public:
    /// `thread_count` includes the calling thread. Workers start at the first job that needs them.
    explicit ThreadPool(unsigned thread_count) : m_thread_count(thread_count ? thread_count : 1) { }
    ~ThreadPool() { stop(); }
    ThreadPool(const ThreadPool&) = delete;
    ThreadPool& operator=(const ThreadPool&) = delete;

    unsigned thread_count() const { return m_thread_count; }

    /// Calls body(begin, end) over pieces of [0, count), each index once, from several threads. Small jobs run on the
    /// calling thread alone: a first piece is timed and tells whether the rest is worth waking anybody.
    template <typename Body>
    void run(uint64_t count, const Body& body, Sharing* sharing = nullptr)
    {
        run_erased(
            count, [](const void* b, uint64_t begin, uint64_t end) { (*static_cast<const Body*>(b))(begin, end); },
            &body, sharing);
    }

    /// Ends the workers. The pool may be used again.
    void stop() noexcept;

private:
    using Call = void (*)(const void* body, uint64_t begin, uint64_t end);
    struct Job {
        Call call = nullptr;
        const void* body = nullptr;
        uint64_t count = 0, chunk = 1;
    };

    void run_erased(uint64_t count, Call call, const void* body, Sharing* sharing);
    void run_shared(uint64_t begin, double rest, const Job& job, Sharing* sharing);
    void work();
    void start_workers();
    void leave_parent() noexcept;
    void drain(const Job& job);
    static void drain_interruptible(const Job& job, std::atomic<uint64_t>& next);

    const unsigned m_thread_count;
    std::vector<std::thread> m_workers;
    int m_owner_pid = 0; ///< the process that has the threads; a forked child has none

    std::mutex m_job_mutex; ///< one shared job at a time
    Job m_job;
    std::atomic<uint64_t> m_next{0};
    /// Number of the job, whether it may still be joined, and how many workers are in it. A worker that comes late
    /// finds the job closed, so nobody waits for one that is still waking up.
    std::atomic<uint64_t> m_state{0};

    std::mutex m_sleep_mutex;
    std::condition_variable m_wake;
    std::atomic<bool> m_stopping{false};
};

} // namespace spy
