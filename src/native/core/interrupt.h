#pragma once
// How native waits stay interruptible, and how locks get along with the interpreter's.
//
// A thread that waits calls poll_interrupt() now and then, which takes the interpreter lock for a moment and throws
// when the user pressed Ctrl-C. It may do so while it holds a PoliteMutex, because whoever waits for one of these gives
// the interpreter lock up meanwhile.
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <type_traits>

namespace spy {

/// Set by the language binding.
struct WaitHooks {
    void (*poll)() = nullptr;                                 ///< may throw
    void (*unlocked)(const std::function<void()>&) = nullptr; ///< runs its argument without the interpreter lock
};
void set_wait_hooks(WaitHooks hooks);

/// Throws when the wait shall end. Not for functions that must not throw.
void poll_interrupt();

class PoliteMutex {
public:
    void lock();
    /// The same for locks that are held for long: Ctrl-C ends the wait, so it may throw.
    void lock_patiently();
    bool try_lock() { return m_mutex.try_lock(); }
    void unlock() { m_mutex.unlock(); }

private:
    std::recursive_mutex m_mutex;
};

/// Paces a loop that asks whether something is done: spins first, then sleeps for a tenth of what it has waited, and
/// polls every 50 ms.
class PatientWait {
public:
    uint64_t spent_ns() const { return uint64_t((Clock::now() - m_begin) / std::chrono::nanoseconds(1)); }
    /// Sleeps at most `most_ns`. Calls poll_interrupt() unless `poll` is false.
    void pause(uint64_t most_ns = ~0ull, bool poll = true);

private:
    using Clock = std::chrono::steady_clock;
    Clock::time_point m_begin = Clock::now(), m_polled = m_begin;
};

namespace detail {

/// Runs `body` on a thread of its own and returns when it is done, or throws what poll_interrupt() throws.
void run_beside(std::function<void()> body);

} // namespace detail

/// Runs something long that cannot be stopped, in a way that Ctrl-C can leave: then it goes on alone, so it must own
/// all that it uses.
template <typename F>
auto run_interruptible(F task) -> std::invoke_result_t<F&>
{
    auto body = std::make_shared<F>(std::move(task));
    auto result = std::make_shared<std::optional<std::invoke_result_t<F&>>>();
    detail::run_beside([body, result] { result->emplace((*body)()); });
    return std::move(**result);
}

} // namespace spy
