// A fault at an address near 0 on a thread that runs a kernel goes back to where the kernel was called. On systems
// where this is not known how to be done, it ends the process.
#include "cpu/null_pointers.h"

#if defined(__linux__) && (defined(__x86_64__) || defined(__aarch64__))
#include <csignal>
#include <cstdint>
#include <mutex>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>
#define SPY_WATCHES_NULL 1
#endif

namespace spy::cpu {

#ifdef SPY_WATCHES_NULL

namespace {

/// Programs have no memory below; members of what a null pointer is said to point at lie there.
constexpr uintptr_t first_address = 64 << 10;

struct sigaction taken_over;
/// Where the calling thread's kernel was called; null outside of kernels. In memory that handlers of signals may read.
__attribute__((tls_model("initial-exec"))) thread_local void** landing = nullptr;

[[noreturn]] void leave_kernel()
{
    void** const place = landing;
    landing = nullptr;
    __builtin_longjmp(place, 1);
}

/// The thread goes on in `leave_kernel`, on the stack of the kernel.
void send_out(void* context)
{
    auto& registers = static_cast<ucontext_t*>(context)->uc_mcontext;
#ifdef __x86_64__
    constexpr greg_t red_zone = 128;
    registers.gregs[REG_RSP] = ((registers.gregs[REG_RSP] - red_zone) & ~greg_t(15)) - 8; // as behind a call
    registers.gregs[REG_RIP] = greg_t(&leave_kernel);
#else
    registers.pc = uintptr_t(&leave_kernel);
#endif
}

void on_fault(int signal, siginfo_t* info, void* context)
{
    if (landing && info->si_code == SEGV_MAPERR && uintptr_t(info->si_addr) < first_address)
        return send_out(context);
    // A handler that came later, such as that of Python's faulthandler, removed itself and sends the signal on. The
    // instruction, on its return, does it again.
    if (landing && info->si_code == SI_TKILL && info->si_pid == getpid())
        return;
    if (taken_over.sa_flags & SA_SIGINFO)
        return taken_over.sa_sigaction(signal, info, context);
    if (taken_over.sa_handler != SIG_DFL && taken_over.sa_handler != SIG_IGN)
        return taken_over.sa_handler(signal);
    sigaction(signal, &taken_over, nullptr); // the instruction, on its return, does it again
    if (info->si_code <= 0)                  // sent, and so not made by an instruction
        syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), signal);
}

} // namespace

void watch_null_pointers()
{
    static std::once_flag once;
    std::call_once(once, [] {
        struct sigaction ours = {};
        ours.sa_sigaction = on_fault;
        ours.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
        sigemptyset(&ours.sa_mask);
        sigaction(SIGSEGV, &ours, &taken_over);
    });
}

[[gnu::noinline]] bool ends_without_null(void (*body)(void* data), void* data)
{
    void* place[5];
    if (__builtin_setjmp(place))
        return false;
    landing = place;
    body(data);
    landing = nullptr;
    return true;
}

#else

void watch_null_pointers() { }

bool ends_without_null(void (*body)(void* data), void* data)
{
    body(data);
    return true;
}

#endif

} // namespace spy::cpu
