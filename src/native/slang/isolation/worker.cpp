#include "slang/isolation/worker.h"

#ifdef _WIN32

// Windows has no such process yet: code is generated in the process that asks for it.
namespace spy {

std::shared_ptr<CodeWorker> CodeWorker::instance() { return nullptr; }
void CodeWorker::enable(std::string) { }
void CodeWorker::disable() { }
CodeWorker::~CodeWorker() = default;
uint64_t CodeWorker::life() { return 0; }
bool CodeWorker::is_ready() { return false; }
void CodeWorker::send(uint64_t, const std::string&) { }
std::optional<wire::Code> CodeWorker::ask(uint64_t, const std::string&, const CompileLimits&) { return std::nullopt; }
void CodeWorker::look_after() { }
int CodeWorker::process_id() { return 0; }

} // namespace spy

#else

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

extern char** environ;

namespace spy {
namespace {

using namespace std::chrono_literals;

constexpr auto idle_life = 300s;
/// A process that holds more than this after an answer makes room: what it keeps for sessions of the past is not to
/// count for the next program.
constexpr uint64_t worn_bytes = 1ull << 30;
/// Address space beyond what may be resident: the compiler's libraries and the stack of its thread.
constexpr uint64_t spare_address_space = uint64_t(2) << 30;

std::mutex worker_mutex;
std::string program_path;
uint64_t lives = 0; ///< processes started, by ancestors of this process also

std::shared_ptr<CodeWorker>& current_worker()
{
    static auto* worker = new std::shared_ptr<CodeWorker>();
    return *worker;
}

/// Bytes of a process that are in memory; 0 when nobody knows.
uint64_t resident_bytes(int process)
{
    FILE* file = fopen(cat("/proc/", process, "/statm").c_str(), "re");
    if (!file)
        return 0;
    unsigned long long all = 0, resident = 0;
    const int count = fscanf(file, "%llu %llu", &all, &resident);
    fclose(file);
    return count == 2 ? resident * uint64_t(sysconf(_SC_PAGESIZE)) : 0;
}

std::string mebibytes(uint64_t bytes) { return cat(bytes >> 20, " MiB"); }

/// Starts the program with its standard input on `socket`; 0 when that fails.
int spawn(const std::string& program, int socket)
{
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, socket, STDIN_FILENO);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    std::string name = program, owner = std::to_string(getpid());
    char* arguments[] = {name.data(), owner.data(), nullptr};
    pid_t process = 0;
    const int failed = posix_spawn(&process, program.c_str(), &actions, &attributes, arguments, environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return failed ? 0 : process;
}

} // namespace

std::shared_ptr<CodeWorker> CodeWorker::instance()
{
    const std::lock_guard guard(worker_mutex);
    static const int registered = pthread_atfork(nullptr, nullptr, forget_parent);
    (void)registered;
    if (program_path.empty())
        return nullptr;
    if (!current_worker())
        current_worker() = std::make_shared<CodeWorker>();
    return current_worker();
}

void CodeWorker::enable(std::string program)
{
    const std::lock_guard guard(worker_mutex);
    program_path = access(program.c_str(), X_OK) == 0 ? std::move(program) : "";
}

void CodeWorker::disable()
{
    std::shared_ptr<CodeWorker> last;
    const std::lock_guard guard(worker_mutex);
    program_path.clear();
    last = std::move(current_worker());
}

/// Runs in a forked child: the process belongs to the parent, and locks may be held by threads that the child lacks.
void CodeWorker::forget_parent()
{
    new (&worker_mutex) std::mutex;
    if (!current_worker())
        return;
    if (current_worker()->m_socket >= 0)
        ::close(current_worker()->m_socket);
    new std::shared_ptr<CodeWorker>(std::move(current_worker()));
}

CodeWorker::~CodeWorker()
{
    if (m_owner == getpid())
        end();
}

bool CodeWorker::start()
{
    int sockets[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0)
        return false;
    m_process = spawn(program_path, sockets[1]);
    ::close(sockets[1]);
    if (!m_process) {
        ::close(sockets[0]);
        return false;
    }
    const timeval patience = {5, 0};
    setsockopt(sockets[0], SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
    m_socket = sockets[0];
    m_owner = getpid();
    m_used = Clock::now();
    m_life = ++lives;
    m_greeted = false;
    return true;
}

/// The process's status when it ended; it is buried then.
bool CodeWorker::has_ended(int& status)
{
    pid_t found = 0;
    while ((found = waitpid(m_process, &status, WNOHANG)) < 0 && errno == EINTR) { }
    if (found == 0)
        return false;
    if (found < 0)
        status = 0; // another waited for it
    m_process = 0;
    return true;
}

void CodeWorker::end()
{
    if (m_socket >= 0)
        ::close(m_socket);
    m_socket = -1;
    if (!m_process)
        return;
    kill(m_process, SIGKILL);
    while (waitpid(m_process, nullptr, 0) < 0 && errno == EINTR) { }
    m_process = 0;
}

uint64_t CodeWorker::life()
{
    const std::lock_guard guard(m_mutex);
    int status = 0;
    if (m_busy)
        return m_life; // whoever asks it notices when it dies
    if (m_process && has_ended(status))
        end();
    if (!m_process && !start())
        return 0;
    return m_life;
}

int CodeWorker::process_id()
{
    const std::lock_guard guard(m_mutex);
    return m_process;
}

bool CodeWorker::is_ready()
{
    const std::lock_guard guard(m_mutex);
    int status = 0;
    if (m_process && !m_busy && has_ended(status))
        end();
    return m_process && m_greeted;
}

bool CodeWorker::write(const std::string& bytes)
{
    for (size_t sent = 0; sent < bytes.size();) {
        const ssize_t count = ::send(m_socket, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
        if (count < 0 && errno != EINTR)
            return false;
        sent += size_t(std::max<ssize_t>(count, 0));
    }
    return true;
}

void CodeWorker::send(uint64_t life, const std::string& frame)
{
    const std::lock_guard guard(m_mutex);
    if (life != m_life || !m_process)
        return;
    m_used = Clock::now();
    if (!write(frame) && !m_busy)
        end();
}

void CodeWorker::look_after()
{
    const std::unique_lock guard(m_mutex, std::try_to_lock);
    int status = 0;
    if (!guard.owns_lock() || !m_process || m_busy)
        return;
    if (has_ended(status) || Clock::now() - m_used > idle_life)
        end();
}

/// Leaves the process to others when the answer came, and ends it otherwise, or where it holds too much.
struct CodeWorker::Asking {
    CodeWorker& self;
    uint64_t most_bytes;
    bool answered = false;
    ~Asking()
    {
        const std::lock_guard guard(self.m_mutex);
        self.m_busy = false;
        self.m_used = Clock::now();
        if (!answered || resident_bytes(self.m_process) > most_bytes)
            self.end();
    }
};

std::optional<wire::Code> CodeWorker::ask(uint64_t life, const std::string& frame, const CompileLimits& limits)
{
    const auto turn = Compiler::lock_politely(m_asking);
    {
        const std::lock_guard guard(m_mutex);
        if (life != m_life || !m_process)
            return std::nullopt;
        m_busy = true;
    }
    Asking asking{*this, limits.bytes ? std::min(worn_bytes, limits.bytes / 2) : worn_bytes};
    limit_memory(limits);
    bool sent = false;
    {
        const std::lock_guard guard(m_mutex);
        sent = write(frame);
    }
    if (!m_greeted) {
        const std::optional<wire::Code> greeting = read({});
        if (!greeting) { // it cannot run here at all
            disable();
            return std::nullopt;
        }
        m_greeted = true;
    }
    std::optional<wire::Code> code = sent ? read(limits) : std::nullopt;
    if (!code)
        fail_dead();
    asking.answered = true;
    return code;
}

/// The hard edge, for what grows faster than anybody looks.
void CodeWorker::limit_memory([[maybe_unused]] const CompileLimits& limits)
{
#ifdef __linux__
    rlimit limit = {};
    if (prlimit(m_process, RLIMIT_AS, nullptr, &limit) != 0)
        return;
    limit.rlim_cur = limits.bytes ? std::min<rlim_t>(limits.bytes + spare_address_space, limit.rlim_max)
                                  : limit.rlim_max;
    prlimit(m_process, RLIMIT_AS, &limit, nullptr);
#endif
}

namespace {

/// Reads up to the end of what `bytes` is to hold; false when the other side is gone.
bool read_some(int socket, std::string& bytes, size_t wanted)
{
    char chunk[1 << 16];
    const ssize_t count = ::read(socket, chunk, std::min(sizeof(chunk), wanted - bytes.size()));
    if (count == 0 || (count < 0 && errno != EINTR))
        return false;
    bytes.append(chunk, size_t(std::max<ssize_t>(count, 0)));
    return true;
}

} // namespace

/// The next answer, with an eye on the clock, on memory and on Ctrl-C. None when the process died.
std::optional<wire::Code> CodeWorker::read(const CompileLimits& limits)
{
    const auto begin = Clock::now();
    std::string bytes;
    uint64_t size = 0;
    size_t wanted = sizeof(size);
    while (bytes.size() < wanted) {
        pollfd item = {m_socket, POLLIN, 0};
        if (::poll(&item, 1, 20) > 0) {
            if (!read_some(m_socket, bytes, wanted))
                return std::nullopt;
            if (wanted == sizeof(size) && bytes.size() == wanted) {
                std::memcpy(&size, bytes.data(), sizeof(size));
                wanted += size;
            }
            continue;
        }
        Compiler::poll();
        if (limits.seconds > 0 && Clock::now() - begin > std::chrono::duration<double>(limits.seconds))
            fail_stopped("timeout",
                         cat("took longer than the ", limits.seconds,
                             " s that SLANGPY_COMPILE_TIMEOUT allows, and was stopped"));
        if (limits.bytes && resident_bytes(m_process) > limits.bytes)
            fail_stopped("memory",
                         cat("needed more than the ", mebibytes(limits.bytes),
                             " that SLANGPY_COMPILE_MEMORY allows, and was stopped"));
    }
    wire::Reader reader(std::string_view(bytes).substr(sizeof(size)));
    wire::Kind kind;
    wire::Code code;
    reader(kind, code);
    return code;
}

void CodeWorker::fail_stopped(const char* reason, const std::string& why)
{
    throw CompilerDeath(reason, cat("the Slang compiler ", why));
}

void CodeWorker::fail_dead()
{
    int status = 0;
    {
        const std::lock_guard guard(m_mutex);
        for (int i = 0; m_process && !has_ended(status) && i < 200; ++i) // its socket closes a moment before it is dead
            std::this_thread::sleep_for(5ms);
    }
    if (WIFEXITED(status) && WEXITSTATUS(status) == wire::out_of_memory)
        fail_stopped("memory", "ran out of memory");
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
        fail_stopped("killed", "was killed, perhaps because the machine ran out of memory");
    const std::string signal = WIFSIGNALED(status)
        ? cat(" (signal ", WTERMSIG(status), ", ", strsignal(WTERMSIG(status)), ")")
        : "";
    fail_stopped("crash", cat("crashed", signal));
}

} // namespace spy

#endif
