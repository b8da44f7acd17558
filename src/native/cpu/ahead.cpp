#include "cpu/ahead.h"

#ifdef __linux__

#include "cpu/api.h"
#include "cpu/process.h"

#include "core/error.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <elf.h>
#include <fcntl.h>
#include <memory>
#include <mutex>
#include <pthread.h>
#include <sys/mman.h>
#include <system_error>
#include <thread>
#include <unistd.h>

extern char** environ;

namespace spy::cpu {

namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

/// How long a compiler waits for a text.
constexpr auto patience = 10s;

/// By what numbers it finds its files, none of which has a name that would be left over.
constexpr int text_number = 60, rest_number = 61, object_number = 62, gate_number = 63;
/// Above them, so that none takes another's place while the program starts.
constexpr int first_own_number = 100;

class Descriptor {
public:
    explicit Descriptor(int opened)
    {
        if (opened >= 0)
            m_number = fcntl(opened, F_DUPFD_CLOEXEC, first_own_number);
        ::close(opened);
        if (m_number < 0)
            fail_runtime("no descriptor for a compile: ", std::strerror(errno));
    }
    ~Descriptor() { close(); }
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;

    int number() const { return m_number; }
    void close()
    {
        if (m_number >= 0)
            ::close(m_number);
        m_number = -1;
    }
    void write(std::string_view bytes) const
    {
        while (!bytes.empty()) {
            const ssize_t written = ::write(m_number, bytes.data(), bytes.size());
            if (written <= 0 && errno != EINTR)
                fail_runtime("cannot write the source of a kernel: ", std::strerror(errno));
            bytes.remove_prefix(size_t(std::max<ssize_t>(written, 0)));
        }
    }
    std::string read() const
    {
        std::string bytes(size_t(std::max<off_t>(lseek(m_number, 0, SEEK_END), 0)), 0);
        size_t done = 0;
        while (done < bytes.size()) {
            const ssize_t count = pread(m_number, bytes.data() + done, bytes.size() - done, off_t(done));
            if (count <= 0 && errno != EINTR)
                fail_runtime("cannot read a compiled kernel: ", std::strerror(errno));
            done += size_t(std::max<ssize_t>(count, 0));
        }
        return bytes;
    }

private:
    int m_number = -1;
};

int file_in_memory() { return memfd_create("slangpy-compile", MFD_CLOEXEC); }

std::string at(int number) { return cat("/dev/fd/", number); }

/// How many `#if` a text leaves open, all of them `#ifndef` of a file that is included once; -1: there are others.
int open_guards(std::string_view text)
{
    std::vector<bool> open;
    for (size_t begin = 0; begin < text.size();) {
        const size_t end = std::min(text.find('\n', begin), text.size());
        std::string_view line = text.substr(begin, end - begin);
        const size_t hash = line.find_first_not_of(" \t");
        if (hash != line.npos && line[hash] == '#') {
            line.remove_prefix(std::min(line.size(), line.find_first_not_of(" \t", hash + 1)));
            if (line.starts_with("ifndef "))
                open.push_back(
                    text.substr(std::min(end + 1, text.size())).starts_with(cat("#define ", line.substr(7))));
            else if (line.starts_with("if"))
                open.push_back(false);
            else if (line.starts_with("el") && !open.empty())
                open.back() = false;
            else if (line.starts_with("endif") && !open.empty())
                open.pop_back();
        }
        begin = end + 1;
    }
    return std::find(open.begin(), open.end(), false) == open.end() ? int(open.size()) : -1;
}

std::string repeated(std::string_view line, int count)
{
    std::string text;
    for (int i = 0; i < count; ++i)
        text += line;
    return text;
}

/// All that decides what a compiler makes of a text, but the text.
std::string setting(const std::vector<std::string>& flags)
{
    const Compiler& cxx = compiler();
    std::string text = cxx.identity;
    for (const std::string& word : cxx.command)
        text += cat("\n", word);
    for (const std::string& flag : flags)
        text += cat("\n", flag);
    for (char** variable = environ; variable && *variable; ++variable)
        text += cat("\n", *variable);
    return text;
}

/// A compiler that reads a head, then a gate that has no content and does not end before it is closed here, then the
/// rest.
class Begun {
public:
    const std::string head, flags;
    const Clock::time_point end = Clock::now() + patience;

    Begun(std::string head_text, const std::vector<std::string>& given, int guards)
        : head(std::move(head_text)),
          flags(setting(given)),
          m_guards(guards),
          m_text(file_in_memory()),
          m_rest(file_in_memory()),
          m_object(file_in_memory()),
          m_log(file_in_memory())
    {
        int ends[2];
        if (pipe2(ends, O_CLOEXEC) != 0)
            fail_runtime("no pipe for a compile: ", std::strerror(errno));
        const Descriptor read_end(ends[0]);
        m_gate = std::make_unique<Descriptor>(ends[1]);
        m_text.write(cat(head, "\n", repeated("#endif\n", guards), "#include \"", at(gate_number), "\"\n#include \"",
                         at(rest_number), "\"\n"));
        std::vector<std::string> command = compiler().command;
        command.insert(command.end(), given.begin(), given.end());
        command.insert(command.end(), {"-c", "-pipe", "-x", "c++", at(text_number), "-o", at(object_number)});
        m_process = std::make_unique<Process>(command, at(m_log.number()),
                                              std::vector<std::pair<int, int>>{{m_text.number(), text_number},
                                                                               {m_rest.number(), rest_number},
                                                                               {m_object.number(), object_number},
                                                                               {read_end.number(), gate_number}});
    }

    bool fits(std::string_view source, const std::vector<std::string>& given) const
    {
        return source.starts_with(head) && flags == setting(given);
    }
    void go_on(std::string_view source)
    {
        m_rest.write(cat(repeated("#if 1\n", m_guards), source.substr(head.size())));
        m_gate->close();
    }
    std::optional<Compiled> result()
    {
        try {
            if (m_process->wait() == 0)
                return Compiled{m_object.read(), m_log.read()};
        } catch (const Error&) { // another waited for it
        }
        return {};
    }
    /// In a forked child: the compiler is the parent's, and must not wait for the child's end of the gate.
    void forget()
    {
        m_process->forget();
        m_gate->close();
    }

private:
    int m_guards;
    Descriptor m_text, m_rest, m_object, m_log;
    std::unique_ptr<Descriptor> m_gate;
    std::unique_ptr<Process> m_process;
};

struct State {
    std::mutex mutex; // also held from the choice of a compiler until its gate is closed: a fork waits for that
    std::condition_variable changed;
    std::unique_ptr<Begun> waiting;
    bool is_watched = false;
    bool is_closed = false; ///< the process ends
};

/// Never destroyed: a thread may wait on it when the process ends.
State& state()
{
    static State* const made = [] {
        auto* fresh = new State();
        pthread_atfork([] { state().mutex.lock(); }, [] { state().mutex.unlock(); },
                       [] {
                           State& own = state();
                           if (own.waiting)
                               own.waiting->forget();
                           own.waiting.reset();
                           own.is_watched = false;
                           new (&own.changed) std::condition_variable;
                           own.mutex.unlock();
                       });
        return fresh;
    }();
    return *made;
}

/// No compiler outlives the process, nor its files.
struct End {
    ~End()
    {
        const std::lock_guard guard(state().mutex);
        state().is_closed = true;
        state().waiting.reset();
    }
};

/// Ends a compiler for which no text comes.
void watch()
{
    State& own = state();
    std::unique_lock guard(own.mutex);
    while (own.waiting && Clock::now() < own.waiting->end) {
        const Clock::time_point end = own.waiting->end; // whoever takes the compiler meanwhile destroys its own
        own.changed.wait_until(guard, end);
    }
    own.waiting.reset();
    own.is_watched = false;
}

/// "g++" of a folder of ccache, or one that leads to clang, would not do.
bool is_gcc()
{
    const Compiler& cxx = compiler();
    const std::string path = cxx.identity.substr(0, cxx.identity.find(' '));
    const std::string name = path.substr(path.find_last_of('/') + 1);
    return !cxx.is_clang && cxx.command.size() == 1 && name.find("g++") != name.npos;
}

/// Under the mutex.
void begin(State& own, std::string head, const std::vector<std::string>& flags, int guards)
{
    static const End end;
    if (own.is_closed)
        return;
    try {
        own.waiting.reset();
        own.waiting = std::make_unique<Begun>(std::move(head), flags, guards);
    } catch (const Error&) { // no descriptors, or no process: kernels are compiled when they are known
        return;
    }
    own.changed.notify_all();
    if (!own.is_watched) {
        try {
            std::thread(watch).detach();
            own.is_watched = true;
        } catch (const std::system_error&) { // nobody would end the compiler if no text came
            own.waiting.reset();
        }
    }
}

} // namespace

void compile_ahead(std::string_view head, const std::vector<std::string>& flags)
{
    const int guards = open_guards(head);
    if (head.empty() || guards < 0 || !is_gcc())
        return;
    State& own = state();
    const std::lock_guard guard(own.mutex);
    if (own.waiting && own.waiting->head == head && own.waiting->fits(head, flags))
        return;
    begin(own, std::string(head), flags, guards);
}

std::optional<Compiled> compile_begun(std::string_view source, const std::vector<std::string>& flags)
{
    State& own = state();
    std::unique_ptr<Begun> begun;
    {
        const std::lock_guard guard(own.mutex);
        if (!own.waiting || !own.waiting->fits(source, flags))
            return {};
        begun = std::move(own.waiting);
        try {
            begun->go_on(source);
        } catch (const Error&) {
            return {};
        }
    }
    return begun->result();
}

bool needs_libraries(std::string_view object)
{
    Elf64_Ehdr header;
    if (object.size() < sizeof(header))
        return true;
    std::memcpy(&header, object.data(), sizeof(header));
    if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64)
        return true;
    for (size_t i = 0; i < header.e_shnum; ++i) {
        Elf64_Shdr section;
        const size_t place = header.e_shoff + i * sizeof(section);
        if (place + sizeof(section) > object.size())
            return true;
        std::memcpy(&section, object.data() + place, sizeof(section));
        if (section.sh_type != SHT_SYMTAB)
            continue;
        for (size_t at = sizeof(Elf64_Sym); at + sizeof(Elf64_Sym) <= section.sh_size; at += sizeof(Elf64_Sym)) {
            Elf64_Sym symbol;
            if (section.sh_offset + at + sizeof(symbol) > object.size())
                return true;
            std::memcpy(&symbol, object.data() + section.sh_offset + at, sizeof(symbol));
            if (symbol.st_shndx == SHN_UNDEF)
                return true;
        }
        return false;
    }
    return true;
}

} // namespace spy::cpu

#else

namespace spy::cpu {

void compile_ahead(std::string_view, const std::vector<std::string>&) { }

std::optional<Compiled> compile_begun(std::string_view, const std::vector<std::string>&) { return {}; }

bool needs_libraries(std::string_view) { return true; }

} // namespace spy::cpu

#endif
