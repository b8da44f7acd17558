// The CPU backend's system on Linux and other POSIX systems.
#ifndef _WIN32

#include "cpu/api.h"
#include "cpu/process.h"
#include "cpu/system.h"

#include "core/error.h"

#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <fcntl.h>
#include <fstream>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace spy::cpu {

namespace {

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

} // namespace

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

const char *const library_name = "/kernel.so", *const object_name = "/kernel.o";

WorkFolder::WorkFolder()
{
    path = temporary_folder() + "/slangpy-XXXXXX";
    if (!mkdtemp(path.data()))
        fail_runtime("cannot make a folder in ", temporary_folder(), " to compile in: ", std::strerror(errno));
}

WorkFolder::~WorkFolder()
{
    for (const char* name : {library_name, object_name, "/log.txt"})
        unlink((path + name).c_str());
    if (keep)
        return;
    unlink((path + "/kernel.cpp").c_str());
    rmdir(path.c_str());
}

void write_file(const std::string& path, std::string_view bytes, const char* what)
{
    const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (file < 0)
        fail_runtime("cannot write ", path, ": ", std::strerror(errno));
    const bool written = write_whole(file, bytes);
    const int reason = errno;
    close(file);
    if (!written)
        fail_runtime("cannot write ", what, ": ", std::strerror(reason));
}

int run(const std::vector<std::string>& command, const std::string& log) { return Process(command, log).wait(); }

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

struct Library::File { };

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

#endif
