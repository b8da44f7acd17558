#pragma once
// The process-wide Slang instance: one global session, one lock, one worker thread that runs every compile.
#include "core/error.h"
#include "slang/com.h"
#include "slang/isolation/faults.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>

namespace spy {

class CoreTypes;

/// Slang took its process, or its thread, with it, or had to be stopped.
class CompilerDeath : public Error {
public:
    CompilerDeath(std::string reason, const std::string& message)
        : Error(ErrorKind::slang_compile, message),
          reason(std::move(reason))
    {
    }
    std::string reason; ///< "crash", "timeout", "memory" or "killed"
};

class Compiler : public std::enable_shared_from_this<Compiler> {
public:
    /// The one in use. A new one is made when the last was abandoned in a compile that never ended, or when a fork()
    /// caught it in a compile.
    static std::shared_ptr<Compiler> instance();
    /// Begins creating the global session (about 0.3 s) and returns at once.
    static void start_background();
    /// Waits for the task that is running, and lets no other thread begin one; called before the process tears Slang
    /// down.
    static void drain();
    /// What the hook of that name does, if there is one.
    static void poll();

    /// How the language binding takes part in waiting. `poll` runs now and then on a thread that waits for a compile
    /// and may throw to give up; `unlocked` runs its argument with the interpreter lock released.
    struct Hooks {
        void (*poll)() = nullptr;
        void (*unlocked)(const std::function<void()>&) = nullptr;
        void (*idle)() = nullptr; ///< every half minute on the compiler's thread while there is nothing to do
    };
    static void set_hooks(Hooks hooks);
    /// Locks a mutex; when that means waiting, without the interpreter lock, which the owner may need. `poll` may
    /// throw.
    static std::unique_lock<std::recursive_timed_mutex> lock_politely(std::recursive_timed_mutex& mutex);

    /// Runs `task` on the worker thread and gives its result. The task must own everything that it uses: when `poll`
    /// throws, the caller leaves and the task goes on alone; whoever comes next waits for it, for `patience` at most.
    template <typename F>
    auto run(F task) -> std::invoke_result_t<F&>
    {
        using Result = std::invoke_result_t<F&>;
        auto body = std::make_shared<F>(std::move(task));
        if constexpr (std::is_void_v<Result>) {
            execute([body] { (*body)(); });
        } else {
            auto result = std::make_shared<std::optional<Result>>();
            execute([body, result] { result->emplace((*body)()); });
            return std::move(**result);
        }
    }

    /// Slang is not thread-safe within a global session: every use of it holds this lock.
    class Lock {
    public:
        /// `may_throw`: what `poll` throws ends the wait.
        explicit Lock(Compiler& compiler, bool may_throw = true) : m_compiler(compiler) { compiler.acquire(may_throw); }
        ~Lock() { m_compiler.m_mutex.unlock(); }
        Lock(const Lock&) = delete;
        Lock& operator=(const Lock&) = delete;

    private:
        Compiler& m_compiler;
    };

    /// Only inside run() or under Lock.
    slang::IGlobalSession* global_session();
    bool abandoned() const { return m_abandoned; }
    /// Slang's build tag, "2026.12".
    static std::string version();
    /// Slang's text for the exception that came out of it last.
    static std::string last_internal_error();
    /// Text that Slang puts before generated "cpp" or "cuda" code.
    std::string prelude(const std::string& language);

    Compiler();

private:
    struct Task;
    void execute(std::function<void()> body);
    void enqueue(std::shared_ptr<Task> task);
    void acquire(bool may_throw);
    void leave(Task& task);
    void give_up_when_overdue();
    void fail_if_crashed(const Task& task);
    bool pause_for_fork();
    void resume_after_fork();
    void restart_in_child();
    static void work(std::shared_ptr<Compiler> self);
    static void run_task(Compiler& self, Task& task);

    std::recursive_timed_mutex m_mutex;
    ComPtr<slang::IGlobalSession> m_global_session;
    friend class CoreTypes;
    std::shared_ptr<CoreTypes> m_core_types;

    std::mutex m_queue_mutex;
    std::condition_variable m_queue_changed;
    std::deque<std::shared_ptr<Task>> m_queue;
    bool m_busy = false;
    bool m_started = false;
    bool m_paused = false;
    std::shared_ptr<Task> m_running;
    std::chrono::steady_clock::time_point m_left_at; ///< when the caller of m_running left; zero: it has not
    std::atomic<bool> m_abandoned{false};
    FaultWatch m_faults;
};

} // namespace spy
