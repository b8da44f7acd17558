#pragma once
// Programs that run beside us, on Linux and other POSIX systems.
#ifndef _WIN32
#include <string>
#include <sys/types.h>
#include <utility>
#include <vector>

namespace spy::cpu {

/// A program in a process group of its own, whose output goes to the file `log`. The destructor ends it, with all that
/// it started.
class Process {
public:
    /// files: descriptors of ours, and by which numbers the program finds them. Throws where it cannot be started.
    Process(const std::vector<std::string>& command, const std::string& log,
            const std::vector<std::pair<int, int>>& files = {});
    ~Process() { end(); }
    Process(const Process&) = delete;
    Process& operator=(const Process&) = delete;

    /// Its exit status, when it has ended. Ctrl-C ends it.
    int wait();
    /// It belongs to the process that this one was forked from.
    void forget() { m_child = 0; }

private:
    std::string m_name;
    pid_t m_child = 0;

    void end();
};

} // namespace spy::cpu
#endif
