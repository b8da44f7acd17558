// Programs that run beside us: started, fed, waited for.
#ifndef _WIN32
#include "cpu/process.h"

#include "core/error.h"
#include "core/interrupt.h"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;

namespace spy::cpu {

namespace {

/// Waits for a child process: asleep until it ends, where Linux can tell, else with looks at it again and again.
class ChildWait {
public:
    explicit ChildWait(pid_t child)
    {
#ifdef SYS_pidfd_open
        m_handle = int(syscall(SYS_pidfd_open, child, 0u));
#else
        (void)child;
#endif
    }
    ~ChildWait()
    {
        if (m_handle >= 0)
            close(m_handle);
    }
    ChildWait(const ChildWait&) = delete;
    ChildWait& operator=(const ChildWait&) = delete;

    /// Returns when the child has ended, or earlier. Throws on Ctrl-C.
    void pause()
    {
        if (m_handle < 0)
            return m_patience.pause();
        pollfd item = {m_handle, POLLIN, 0};
        if (::poll(&item, 1, 50) <= 0)
            poll_interrupt();
    }

private:
    int m_handle = -1;
    PatientWait m_patience;
};

} // namespace

Process::Process(const std::vector<std::string>& command, const std::string& log,
                 const std::vector<std::pair<int, int>>& files)
    : m_name(command[0])
{
    std::vector<char*> arguments;
    for (const std::string& argument : command)
        arguments.push_back(const_cast<char*>(argument.c_str()));
    arguments.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, 1, log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    posix_spawn_file_actions_adddup2(&actions, 1, 2);
    for (const auto& [ours, its] : files)
        posix_spawn_file_actions_adddup2(&actions, ours, its);
    posix_spawnattr_t attributes; // a group of its own, to be ended together: the compiler starts others
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
    posix_spawnattr_setpgroup(&attributes, 0);
    const int error = posix_spawn(&m_child, arguments[0], &actions, &attributes, arguments.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    if (error) {
        m_child = 0;
        fail_runtime("cannot start the C++ compiler ", m_name, ": ", std::strerror(error));
    }
}

int Process::wait()
{
    int status = 0;
    ChildWait wait(m_child);
    for (;;) {
        const pid_t ended = waitpid(m_child, &status, WNOHANG);
        if (ended == m_child)
            break;
        if (ended < 0 && errno != EINTR) {
            m_child = 0;
            fail_runtime("lost track of the C++ compiler ", m_name, ": ", std::strerror(errno));
        }
        try {
            wait.pause();
        } catch (...) { // Ctrl-C
            end();
            throw;
        }
    }
    m_child = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

void Process::end()
{
    if (!m_child)
        return;
    kill(-m_child, SIGKILL);
    while (waitpid(m_child, nullptr, 0) < 0 && errno == EINTR) { }
    m_child = 0;
}

} // namespace spy::cpu
#endif
