#pragma once
// Faults of libslang on the compiler's thread: they end one compile, not the process.
#include <atomic>
#include <string>

namespace spy {

/// What the handler of signals and the threads that wait tell each other of one thread.
struct FaultSlot;

/// Watches a thread on which libslang runs. Slang 2026.12 reads null pointers and divides badly on some sources. When
/// that happens on a watched thread within libslang's code, which holds no lock of the heap there, the thread stops
/// for good where it is, and fault() tells whoever waits for it. All other faults end the process as ever.
class FaultWatch {
public:
    /// Without it nothing is watched: the compiler's own process (slang/isolation/worker_main.cpp) may die.
    static void enable();

    /// Both are called by the thread. The second undoes the first.
    void begin();
    void end();
    /// Puts the handlers above those that others have installed meanwhile.
    static void stay_on_top();
    std::string fault() const; ///< "signal 11, Segmentation fault"; empty: all is well
    /// In a forked child, which lacks the thread.
    void forget();

private:
    std::atomic<FaultSlot*> m_slot{nullptr}; ///< read by those that wait
    void* m_stack = nullptr;
};

} // namespace spy
