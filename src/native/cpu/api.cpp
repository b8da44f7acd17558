#include "cpu/api.h"

#include "core/error.h"
#include "core/interrupt.h"

#include <atomic>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <fcntl.h>
#include <fstream>
#include <iterator>
#include <mutex>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;

namespace spy::cpu {

namespace {

std::mutex config_mutex;
Config current_config;
bool compiler_known = false;
Compiler found_compiler;

std::string find_program(const std::string& name)
{
    if (name.find('/') != std::string::npos)
        return access(name.c_str(), X_OK) == 0 ? name : "";
    const char* path = std::getenv("PATH");
    std::string folders = path ? path : "/usr/local/bin:/usr/bin:/bin";
    for (size_t begin = 0; begin <= folders.size();) {
        size_t end = std::min(folders.find(':', begin), folders.size());
        std::string candidate = folders.substr(begin, end - begin) + "/" + name;
        struct stat info;
        if (access(candidate.c_str(), X_OK) == 0 && stat(candidate.c_str(), &info) == 0 && S_ISREG(info.st_mode))
            return candidate;
        begin = end + 1;
    }
    return "";
}

std::string file_identity(const std::string& path)
{
    char resolved[PATH_MAX];
    const char* real = realpath(path.c_str(), resolved);
    struct stat info{};
    stat(real ? real : path.c_str(), &info);
    return cat(real ? real : path, " ", info.st_size, " ", info.st_mtim.tv_sec, ".", info.st_mtim.tv_nsec);
}

/// Where sources are compiled: TMPDIR, unless others may rename there what is ours.
std::string temporary_folder()
{
    const char* base = std::getenv("TMPDIR");
    struct stat info{};
    const bool given = base && *base == '/' && stat(base, &info) == 0;
    const bool safe = (info.st_uid == 0 || info.st_uid == geteuid()) &&
        (!(info.st_mode & 022) || info.st_mode & S_ISVTX);
    return given && safe ? base : "/tmp";
}

std::string read_file(const std::string& path)
{
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

bool write_whole(int file, std::string_view bytes)
{
    while (!bytes.empty()) {
        const ssize_t written = write(file, bytes.data(), bytes.size());
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return false;
        bytes.remove_prefix(size_t(written));
    }
    return true;
}

void write_all(int file, std::string_view bytes, const char* what)
{
    if (!write_whole(file, bytes))
        fail_runtime("cannot write ", what, ": ", std::strerror(errno));
}

/// A fresh folder of our own, removed with its known files unless kept.
struct WorkFolder {
    std::string path;
    bool keep = false;

    WorkFolder()
    {
        path = temporary_folder() + "/slangpy-XXXXXX";
        if (!mkdtemp(path.data()))
            fail_runtime("cannot make a folder in ", temporary_folder(), " to compile in: ", std::strerror(errno));
    }
    ~WorkFolder()
    {
        for (const char* name : {"/kernel.so", "/log.txt"})
            unlink((path + name).c_str());
        if (keep)
            return;
        unlink((path + "/kernel.cpp").c_str());
        rmdir(path.c_str());
    }
};

/// Exit status of a program whose output goes to `log`.
int run(const std::vector<std::string>& command, const std::string& log)
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
    posix_spawnattr_t attributes; // a group of its own, to be ended together: the compiler starts others
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
    posix_spawnattr_setpgroup(&attributes, 0);
    pid_t child;
    const int error = posix_spawn(&child, arguments[0], &actions, &attributes, arguments.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    if (error)
        fail_runtime("cannot start the C++ compiler ", command[0], ": ", std::strerror(error));
    int status = 0;
    PatientWait patience;
    for (;;) {
        const pid_t ended = waitpid(child, &status, WNOHANG);
        if (ended == child)
            break;
        if (ended < 0 && errno != EINTR)
            fail_runtime("lost track of the C++ compiler ", command[0], ": ", std::strerror(errno));
        try {
            patience.pause();
        } catch (...) { // Ctrl-C
            kill(-child, SIGKILL);
            waitpid(child, &status, 0);
            throw;
        }
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

} // namespace

Config config()
{
    std::lock_guard lock(config_mutex);
    return current_config;
}

void set_config(Config config)
{
    std::lock_guard lock(config_mutex);
    current_config = std::move(config);
    compiler_known = false;
}

const Compiler& compiler()
{
    std::lock_guard lock(config_mutex);
    if (compiler_known)
        return found_compiler;
    std::string tried;
    for (const std::vector<std::string>& command : current_config.compilers) {
        if (command.empty())
            continue;
        tried += (tried.empty() ? "" : ", ") + command[0];
        std::string program = find_program(command[0]);
        if (program.empty())
            continue;
        found_compiler = {command, "", false};
        found_compiler.command[0] = program;
        found_compiler.identity = file_identity(program);
        for (size_t i = 1; i < command.size(); ++i)
            found_compiler.identity += " " + command[i];
        found_compiler.is_clang = found_compiler.identity.find("clang") != std::string::npos ||
            found_compiler.identity.find("zig") != std::string::npos;
        compiler_known = true;
        return found_compiler;
    }
    fail_runtime("no C++ compiler found for the cpu device (tried ", tried,
                 "). Install one, for example 'apt install g++' or 'pip install ziglang', or set CXX");
}

const std::string& processor_identity()
{
    static const std::string identity = [] {
        // Only the first processor's paragraph: the rest repeats it.
        std::ifstream file("/proc/cpuinfo");
        std::string line, text;
        while (std::getline(file, line) && !line.empty())
            for (const char* key : {"vendor_id", "cpu family", "model", "stepping", "flags", "Features", "CPU part"})
                if (line.rfind(key, 0) == 0)
                    text += line + "\n";
        return text;
    }();
    return identity;
}

std::string processor_name()
{
    std::ifstream file("/proc/cpuinfo");
    std::string line;
    while (std::getline(file, line) && !line.empty())
        if (line.rfind("model name", 0) == 0)
            if (size_t colon = line.find(": "); colon != std::string::npos)
                return line.substr(colon + 2);
    return "CPU";
}

std::string compile_shared_library(std::string_view source, const std::vector<std::string>& flags,
                                   const std::string& label)
{
    const Compiler& cxx = compiler();
    WorkFolder folder;
    const std::string text = folder.path + "/kernel.cpp", out = folder.path + "/kernel.so",
                      log = folder.path + "/log.txt";
    const int file = open(text.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (file < 0)
        fail_runtime("cannot write ", text, ": ", std::strerror(errno));
    try {
        write_all(file, source, "the source of a kernel");
    } catch (...) {
        close(file);
        throw;
    }
    close(file);

    std::vector<std::string> command = cxx.command;
    command.insert(command.end(), flags.begin(), flags.end());
    command.insert(command.end(), {"-o", out, text});
    const int status = run(command, log);
    if (status != 0) {
        folder.keep = true;
        fail(ErrorKind::slang_compile, "compiling the C++ code of ", label, " failed (", cxx.command[0],
             " exited with status ", status, "; source kept in ", text, "):\n", read_file(log));
    }
    return read_file(out);
}

namespace {

/// Loads a program from a file that only this process can reach: in a folder made for it, opened before anything lies
/// in it and reached through the descriptor, so that nobody who may write the folder above can put another in its
/// place.
void* load_from_folder(std::string_view bytes)
{
    static std::atomic<uint64_t> count{0}; // the loader takes equal paths for one library
    std::string folder = temporary_folder() + "/slangpy-XXXXXX";
    if (!mkdtemp(folder.data()))
        return nullptr;
    const int handle = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct stat info{};
    void* library = nullptr;
    if (handle >= 0 && fstat(handle, &info) == 0 && info.st_uid == geteuid() && !(info.st_mode & 077)) {
        const std::string name = cat("kernel-", ++count, ".so");
        const int file = openat(handle, name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0700);
        const bool written = file >= 0 && write_whole(file, bytes);
        if (file >= 0)
            close(file);
        if (written)
            library = dlopen(cat("/proc/self/fd/", handle, "/", name).c_str(), RTLD_NOW | RTLD_LOCAL);
        unlinkat(handle, name.c_str(), 0);
    }
    if (handle >= 0)
        close(handle);
    rmdir(folder.c_str());
    return library;
}

} // namespace

Library::Library(std::string_view bytes, const std::string& label)
{
    m_handle = load_from_folder(bytes);
    if (!m_handle) { // no temporary folder, a full one, or one that may not hold programs
        m_memory_file = memfd_create("slangpy-kernel", MFD_CLOEXEC);
        if (m_memory_file >= 0 && write_whole(m_memory_file, bytes)) {
            m_handle = dlopen(cat("/proc/self/fd/", m_memory_file).c_str(), RTLD_NOW | RTLD_LOCAL);
        }
    }
    if (!m_handle) {
        const char* reason = dlerror();
        if (m_memory_file >= 0)
            close(m_memory_file);
        fail_runtime("cannot load the compiled code of ", label, ": ", reason ? reason : std::strerror(errno));
    }
}

Library::~Library()
{
    if (m_handle)
        dlclose(m_handle);
    if (m_memory_file >= 0)
        close(m_memory_file);
}

void* Library::symbol(const std::string& name) const { return dlsym(m_handle, name.c_str()); }

} // namespace spy::cpu
