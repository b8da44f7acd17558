#include "slang/isolation/faults.h"

#include "core/error.h"

#if defined(__linux__) && (defined(__x86_64__) || defined(__aarch64__))
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <link.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>
#define SPY_WATCHES_FAULTS 1
#endif

namespace spy {

struct FaultSlot {
    std::atomic<int> thread{0}, signal{0};
};

#ifdef SPY_WATCHES_FAULTS

namespace {

constexpr int watched_signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};
constexpr int count = int(sizeof(watched_signals) / sizeof(*watched_signals));
/// A deep recursion leaves no room on the thread's own stack.
constexpr size_t stack_size = size_t(64) << 10;

std::atomic<bool> enabled{false};
/// Threads that stopped keep theirs. With none left, faults end the process.
FaultSlot slots[64];
struct sigaction before[count];     ///< what was there when ours came
std::atomic<int> passing_on[count]; ///< the thread on which that is asked just now

struct Range {
    std::atomic<uintptr_t> begin{0}, end{0};
};
Range code[16]; ///< of libslang

int thread_id() { return int(syscall(SYS_gettid)); }

int index_of(int signal)
{
    int i = 0;
    while (i + 1 < count && watched_signals[i] != signal)
        ++i;
    return i;
}

uintptr_t instruction(const void* context)
{
    const auto* state = static_cast<const ucontext_t*>(context);
#ifdef __x86_64__
    return uintptr_t(state->uc_mcontext.gregs[REG_RIP]);
#else
    return uintptr_t(state->uc_mcontext.pc);
#endif
}

bool is_of_slang(uintptr_t address)
{
    for (const Range& range : code)
        if (address >= range.begin && address < range.end)
            return true;
    return false;
}

bool is_function(const struct sigaction& action)
{
    return (action.sa_flags & SA_SIGINFO) || (action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN);
}

/// To whoever was there before; if that leads back here, to the end of the process.
void pass_on(int signal, siginfo_t* info, void* context, int thread)
{
    const int i = index_of(signal);
    struct sigaction next = before[i];
    const bool is_back = passing_on[i] == thread;
    if (!is_back && is_function(next)) { // ours stays: that one may mend what happened, and go on
        passing_on[i] = thread;
        if (next.sa_flags & SA_SIGINFO)
            next.sa_sigaction(signal, info, context);
        else
            next.sa_handler(signal);
        passing_on[i] = 0;
        return;
    }
    if (is_back)
        next.sa_flags = 0, next.sa_handler = SIG_DFL;
    sigaction(signal, &next, nullptr); // the instruction, on its return, does it again
    if (info->si_code <= 0)            // sent, and so not made by an instruction
        syscall(SYS_tgkill, getpid(), thread, signal);
}

/// Everything here may be called in a handler of signals.
void on_fault(int signal, siginfo_t* info, void* context)
{
    const int thread = thread_id();
    for (FaultSlot& slot : slots) {
        if (slot.thread != thread)
            continue;
        // A handler that came while the thread worked, such as that of Python's faulthandler, removed itself and sends
        // the signal on. The instruction, on its return, does it again.
        if (info->si_code == SI_TKILL && info->si_pid == getpid())
            return;
        if (info->si_code <= 0 || !is_of_slang(instruction(context)))
            continue;
        sigset_t all;
        sigfillset(&all);
        pthread_sigmask(SIG_BLOCK, &all, nullptr); // Ctrl-C is for threads that run
        slot.signal = signal;
        while (true)
            pause();
    }
    pass_on(signal, info, context, thread);
}

int note_code(dl_phdr_info* object, size_t, void* next)
{
    const char* name = object->dlpi_name ? std::strrchr(object->dlpi_name, '/') : nullptr;
    if (!name || std::strncmp(name, "/libslang", 9) != 0)
        return 0;
    int& i = *static_cast<int*>(next);
    for (int k = 0; k < object->dlpi_phnum && i < int(sizeof(code) / sizeof(*code)); ++k) {
        const ElfW(Phdr) & part = object->dlpi_phdr[k];
        if (part.p_type != PT_LOAD || !(part.p_flags & PF_X))
            continue;
        code[i].begin = object->dlpi_addr + part.p_vaddr;
        code[i++].end = object->dlpi_addr + part.p_vaddr + part.p_memsz;
    }
    return 0;
}

} // namespace

void FaultWatch::enable() { enabled = true; }

void FaultWatch::stay_on_top()
{
    if (!enabled)
        return;
    for (int i = 0; i < count; ++i) {
        struct sigaction ours = {}, found = {};
        if (sigaction(watched_signals[i], nullptr, &found) != 0 ||
            ((found.sa_flags & SA_SIGINFO) && found.sa_sigaction == on_fault))
            continue;
        before[i] = found;
        ours.sa_sigaction = on_fault;
        ours.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
        sigemptyset(&ours.sa_mask);
        sigaction(watched_signals[i], &ours, nullptr);
    }
}

void FaultWatch::begin()
{
    if (!enabled || !(m_stack = std::malloc(stack_size)))
        return;
    int next = 0;
    dl_iterate_phdr(note_code, &next);
    stack_t stack = {};
    stack.ss_sp = m_stack;
    stack.ss_size = stack_size;
    sigaltstack(&stack, nullptr);
    for (FaultSlot& slot : slots) {
        int free = 0;
        if (slot.signal || !slot.thread.compare_exchange_strong(free, thread_id()))
            continue;
        m_slot = &slot;
        break;
    }
    stay_on_top();
}

void FaultWatch::end()
{
    if (!m_stack)
        return;
    stack_t none = {};
    none.ss_flags = SS_DISABLE;
    sigaltstack(&none, nullptr);
    std::free(m_stack);
    forget();
}

void FaultWatch::forget()
{
    if (FaultSlot* slot = m_slot.exchange(nullptr))
        slot->thread = 0;
    m_stack = nullptr;
}

std::string FaultWatch::fault() const
{
    const FaultSlot* slot = m_slot;
    const int signal = slot ? slot->signal.load() : 0;
    return signal ? cat("signal ", signal, ", ", strsignal(signal)) : "";
}

#else

void FaultWatch::enable() { }
void FaultWatch::stay_on_top() { }
void FaultWatch::begin() { }
void FaultWatch::end() { }
void FaultWatch::forget() { }
std::string FaultWatch::fault() const { return {}; }

#endif

} // namespace spy
