#pragma once
// The process that generates code (slang/isolation/worker_main.cpp), as its client sees it: started early, asked one
// thing at a time, killed when it takes too long or too much, started anew when it died.
#include "core/error.h"
#include "slang/isolation/wire.h"

#include <chrono>
#include <functional>
#include <mutex>

namespace spy {

/// What one compile may take; zero: anything.
struct CompileLimits {
    bool in_process = false; ///< ask no other process
    double seconds = 0;
    uint64_t bytes = 0;
    std::string fault; ///< for tests: "crash", "hang", "memory"; "compare": both ways, and they must agree
};

class CodeWorker {
public:
    /// The one of this process. None before enable(), after disable(), and where no process can be started.
    static std::shared_ptr<CodeWorker> instance();
    static void enable(std::string program);
    static void disable();

    /// Number of the process that lives (no two have one number), which is started when there is none; 0: it cannot be.
    uint64_t life();
    /// Whether a process lives that has answered before, so that it will answer soon.
    bool is_ready();
    /// For messages that are not answered. Does nothing when another life has begun.
    void send(uint64_t life, const std::string& frame);
    /// None when another life has begun. Throws CompilerDeath, and what Compiler::poll() throws, after which the
    /// process is gone.
    std::optional<wire::Code> ask(uint64_t life, const std::string& frame, const CompileLimits& limits);
    /// Ends the process when nothing was asked of it for long, and buries one that died.
    void look_after();
    /// 0: none lives.
    int process_id();
    ~CodeWorker();

private:
    using Clock = std::chrono::steady_clock;

    std::recursive_timed_mutex m_asking; ///< one question at a time
    std::mutex m_mutex;                  ///< of the members below
    int m_process = 0, m_owner = 0;
    int m_socket = -1;
    uint64_t m_life = 0;
    Clock::time_point m_used;
    bool m_busy = false;
    bool m_greeted = false; ///< it has a compiler and can work

    struct Asking;

    bool start();
    static void forget_parent();
    bool has_ended(int& status);
    void end();
    bool write(const std::string& bytes);
    std::optional<wire::Code> read(const CompileLimits& limits);
    void limit_memory(const CompileLimits& limits);
    [[noreturn]] void fail_dead();
    [[noreturn]] void fail_stopped(const char* reason, const std::string& why);
};

} // namespace spy
