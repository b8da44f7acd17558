// Waits that Ctrl-C ends, and locks that give way to the interpreter's.
#include "core/interrupt.h"

#include <algorithm>
#include <exception>
#include <system_error>

namespace spy {

namespace {

WaitHooks hooks;

} // namespace

void set_wait_hooks(WaitHooks value) { hooks = value; }

void poll_interrupt()
{
    if (hooks.poll)
        hooks.poll();
}

void PoliteMutex::lock()
{
    if (m_mutex.try_lock())
        return;
    if (hooks.unlocked)
        hooks.unlocked([this] { m_mutex.lock(); });
    else
        m_mutex.lock();
}

void PoliteMutex::lock_patiently()
{
    if (m_mutex.try_lock())
        return;
    auto wait = [this] {
        for (PatientWait patience; !m_mutex.try_lock();)
            patience.pause();
    };
    if (hooks.unlocked)
        hooks.unlocked(wait);
    else
        wait();
}

void PatientWait::pause(uint64_t most_ns, bool poll)
{
    using namespace std::chrono;
    const auto now = Clock::now();
    if (poll && now - m_polled >= milliseconds(50)) {
        m_polled = now;
        poll_interrupt();
    }
    const uint64_t spent = uint64_t((now - m_begin) / nanoseconds(1));
    if (spent < 100'000)
        std::this_thread::yield();
    else
        std::this_thread::sleep_for(nanoseconds(std::min<uint64_t>({spent / 10, most_ns, 200'000})));
}

void detail::run_beside(std::function<void()> body)
{
    struct State {
        std::mutex mutex;
        std::condition_variable done_changed;
        bool done = false;
        std::exception_ptr error;
    };
    auto state = std::make_shared<State>();
    auto work = [state, body]() mutable {
        std::exception_ptr error;
        try {
            body();
        } catch (...) {
            error = std::current_exception();
        }
        body = nullptr;
        const std::lock_guard lock(state->mutex);
        state->error = error;
        state->done = true;
        state->done_changed.notify_all();
    };
    try {
        std::thread(std::move(work)).detach();
    } catch (const std::system_error&) { // no thread can be started: then nobody hears Ctrl-C before it is done
        return body();
    }
    body = nullptr;
    std::unique_lock lock(state->mutex);
    while (!state->done_changed.wait_for(lock, std::chrono::milliseconds(50), [&] { return state->done; })) {
        lock.unlock();
        poll_interrupt();
        lock.lock();
    }
    if (state->error)
        std::rethrow_exception(state->error);
}

} // namespace spy
