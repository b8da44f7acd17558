// slangpy's compiler process: links programs of serialised modules and generates their code. libslang ends the process
// it runs in when it fails badly; here that costs one answer.
//
// Standard input is the socket to the client. One thread takes messages off it, another works on them in order.
#include "slang/isolation/wire.h"

#include <nanobind/intrusive/counter.inl>

#include <cerrno>
#include <csignal>
#include <deque>
#include <new>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <thread>
#include <unistd.h>

namespace spy {
namespace {

using namespace std::chrono_literals;

/// What one session of the client is here. The first thing that fails is kept: it is why no code can be given.
struct Remote {
    ref<Session> session;
    std::map<uint64_t, std::shared_ptr<ModuleData>> modules;
    std::string failure;
};

std::map<uint64_t, Remote> sessions;

template <typename T>
T parse(wire::Reader& reader)
{
    T message;
    reader(message);
    return message;
}

/// Does something in a session and notes what fails.
template <typename F>
void attempt(Remote& remote, F task)
{
    try {
        if (remote.failure.empty())
            task();
    } catch (const std::exception& error) {
        remote.failure = cat("in the compiler's process: ", error.what());
    }
}

void open_session(wire::OpenSession message)
{
    Remote& remote = sessions[message.session];
    attempt(remote, [&] {
        remote.session = new Session(std::move(message.target), std::move(message.options));
        remote.session->state();
    });
}

void load_module(const wire::LoadModule& message)
{
    Remote& remote = sessions[message.session];
    attempt(remote, [&] {
        remote.modules[message.module] = remote.session->load_module_from_blob(message.name, message.path,
                                                                               message.blob);
    });
}

/// For tests.
void fail_on_purpose(const std::string& how)
{
    if (how == "crash")
        std::abort();
    while (how == "hang")
        std::this_thread::sleep_for(1s);
    std::vector<std::string> eaten;
    while (how == "memory")
        eaten.emplace_back(size_t(16) << 20, 'x');
}

std::shared_ptr<ProgramData> link(Remote& remote, const wire::GenerateCode& message)
{
    Session& session = *remote.session;
    std::vector<std::shared_ptr<ModuleData>> modules;
    for (const wire::ModuleNode& node : message.modules) {
        if (!node.composed) {
            modules.push_back(remote.modules.at(node.module));
            continue;
        }
        std::vector<std::shared_ptr<ModuleData>> parts;
        for (const uint64_t part : node.parts)
            parts.push_back(modules.at(part));
        modules.push_back(session.compose_modules(node.name, parts, node.conformances));
    }
    ProgramData recipe;
    for (const uint64_t place : message.linked)
        recipe.modules.push_back(modules.at(place));
    for (const wire::EntryPointNode& node : message.entry_points)
        recipe.entry_points.push_back(session.entry_point(
            {modules.at(node.module), node.name, node.new_name, node.arguments, node.conformances, {}}));
    recipe.conformances = message.conformances;
    recipe.options = message.options;
    return session.link(std::move(recipe));
}

wire::Code generate(const wire::GenerateCode& message)
{
    wire::Code result;
    Remote& remote = sessions[message.session];
    try {
        if (!remote.failure.empty())
            fail_runtime(remote.failure);
        const std::shared_ptr<ProgramData> program = link(remote, message);
        remote.session->take_warnings(); // the client has had them
        fail_on_purpose(message.fault);
        result.text = remote.session->code(program, int(message.entry_point));
        result.warnings = remote.session->take_warnings();
        result.done = true;
    } catch (const std::exception& error) {
        result.text = error.what();
    }
    return result;
}

void answer(const wire::Code& code)
{
    const std::string bytes = wire::frame(wire::Kind::code, code);
    for (size_t sent = 0; sent < bytes.size();) {
        const ssize_t count = ::send(STDIN_FILENO, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
        if (count < 0 && errno != EINTR)
            _exit(0); // nobody listens
        sent += size_t(std::max<ssize_t>(count, 0));
    }
}

void handle(std::string_view message)
{
    wire::Reader reader(message);
    wire::Kind kind;
    reader(kind);
    switch (kind) {
    case wire::Kind::session: return open_session(parse<wire::OpenSession>(reader));
    case wire::Kind::module: return load_module(parse<wire::LoadModule>(reader));
    case wire::Kind::drop: sessions.erase(parse<wire::DropSession>(reader).session); return;
    case wire::Kind::code: return answer(generate(parse<wire::GenerateCode>(reader)));
    }
}

struct Inbox {
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<std::string> messages;
};

[[noreturn]] void work(Inbox& inbox)
{
    try {
        const std::shared_ptr<Compiler> compiler = Compiler::instance();
        compiler->run([compiler] { compiler->global_session(); });
    } catch (const std::exception&) {
        _exit(1); // before the greeting: the client does without this process
    }
    answer({});
    while (true) {
        std::unique_lock guard(inbox.mutex);
        inbox.changed.wait(guard, [&] { return !inbox.messages.empty(); });
        const std::string message = std::move(inbox.messages.front());
        inbox.messages.pop_front();
        guard.unlock();
        handle(message);
    }
}

/// Fills `size` bytes; leaves when the client is gone. A child that the client forked keeps the socket open, so its
/// process is watched as well.
void receive(void* data, size_t size, pid_t client)
{
    for (size_t got = 0; got < size;) {
        pollfd item = {STDIN_FILENO, POLLIN, 0};
        if (::poll(&item, 1, 500) == 0) {
            if (getppid() != client)
                _exit(0);
            continue;
        }
        const ssize_t count = ::read(STDIN_FILENO, static_cast<char*>(data) + got, size - got);
        if (count == 0 || (count < 0 && errno != EINTR))
            _exit(0);
        got += size_t(std::max<ssize_t>(count, 0));
    }
}

void leave_files_alone()
{
#ifdef SYS_close_range
    if (syscall(SYS_close_range, 3u, ~0u, 0u) == 0)
        return;
#endif
    rlimit limit = {};
    getrlimit(RLIMIT_NOFILE, &limit);
    const int end = int(std::min<rlim_t>(limit.rlim_cur, 65536));
    for (int file = 3; file < end; ++file)
        ::close(file);
}

} // namespace
} // namespace spy

/// The argument is the client's process id.
int main(int count, char** arguments)
{
    using namespace spy;
    if (count != 2) {
        fputs("This program is a part of slangpy, which starts it by itself.\n", stderr);
        return 2;
    }
    signal(SIGINT, SIG_IGN); // the client's to handle
    leave_files_alone();
    const pid_t client = pid_t(atol(arguments[1]));
    const rlimit no_core = {0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    std::set_new_handler([] { _exit(wire::out_of_memory); });
    Inbox inbox;
    try {
        std::thread([&] { work(inbox); }).detach();
    } catch (const std::system_error&) {
        return wire::out_of_memory;
    }
    while (true) {
        uint64_t size = 0;
        receive(&size, sizeof(size), client);
        std::string message(size, '\0');
        receive(message.data(), size, client);
        const std::lock_guard guard(inbox.mutex);
        inbox.messages.push_back(std::move(message));
        inbox.changed.notify_one();
    }
}
