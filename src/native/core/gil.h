#pragma once
// Giving the interpreter lock up and taking it, by threads that the end of the interpreter may overtake.
//
// Before Python 3.14, a daemon thread that asks for the lock of an ending interpreter is ended by pthread_exit, which
// unwinds through our frames and aborts the process at the first that must not throw. Here such a thread sleeps instead
// until the process is gone, as newer Pythons do by themselves.
#include <nanobind/nanobind.h>

#include <chrono>
#include <cstdlib>
#include <exception>
#include <thread>

namespace spy {

/// Whether this thread has the lock. Asking takes a third of what PyGILState_Ensure and _Release do.
inline bool has_lock() noexcept
{
#if PY_VERSION_HEX >= 0x030D0000
    PyThreadState* const current = PyThreadState_GetUnchecked();
#else
    PyThreadState* const current = _PyThreadState_UncheckedGet();
#endif
    return current && current == PyGILState_GetThisThreadState();
}

inline bool interpreter_ends()
{
#if PY_VERSION_HEX >= 0x030D0000
    return Py_IsFinalizing();
#else
    return _Py_IsFinalizing();
#endif
}

[[noreturn]] inline void sleep_for_ever()
{
    while (true)
        std::this_thread::sleep_for(std::chrono::hours(1));
}

/// For threads that are ended while they run Python code which native code has called: the same unwinding ends in
/// std::terminate, at whatever function above must not throw. They sleep there instead.
inline void survive_the_end()
{
    static std::terminate_handler before = nullptr;
    before = std::set_terminate([] {
        if (interpreter_ends())
            sleep_for_ever();
        before();
        std::abort();
    });
}

#if PY_VERSION_HEX >= 0x030E0000

using GilAcquire = nanobind::gil_scoped_acquire;
using GilRelease = nanobind::gil_scoped_release;

#else

namespace detail {

template <typename F>
void unless_interpreter_ends(F take_lock) noexcept
{
    try {
        take_lock();
    } catch (...) { // pthread_exit's: it must not get out of here, and it may not be stopped
        sleep_for_ever();
    }
}

} // namespace detail

class GilAcquire {
public:
    GilAcquire() noexcept
    {
        detail::unless_interpreter_ends([this] { m_state = PyGILState_Ensure(); });
    }
    ~GilAcquire() { PyGILState_Release(m_state); }
    GilAcquire(const GilAcquire&) = delete;
    GilAcquire& operator=(const GilAcquire&) = delete;
    bool is_valid() const { return true; }

private:
    PyGILState_STATE m_state;
};

class GilRelease {
public:
    GilRelease() noexcept : m_thread(PyEval_SaveThread()) { }
    ~GilRelease()
    {
        detail::unless_interpreter_ends([this] { PyEval_RestoreThread(m_thread); });
    }
    GilRelease(const GilRelease&) = delete;
    GilRelease& operator=(const GilRelease&) = delete;

private:
    PyThreadState* m_thread;
};

#endif

} // namespace spy
