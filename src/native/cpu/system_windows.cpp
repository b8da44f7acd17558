// The CPU backend's system on Windows.
#ifdef _WIN32

#include "cpu/api.h"
#include "cpu/system.h"

#include "core/error.h"
#include "core/interrupt.h"

#ifndef NOMINMAX
#define NOMINMAX
#endif
#include <windows.h>

#include <atomic>
#include <cstdlib>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace spy::cpu {

namespace {

std::wstring wide(std::string_view text)
{
    std::wstring result(size_t(MultiByteToWideChar(CP_UTF8, 0, text.data(), int(text.size()), nullptr, 0)), 0);
    MultiByteToWideChar(CP_UTF8, 0, text.data(), int(text.size()), result.data(), int(result.size()));
    return result;
}

std::string narrow(std::wstring_view text)
{
    const int count = int(text.size());
    std::string result(size_t(WideCharToMultiByte(CP_UTF8, 0, text.data(), count, nullptr, 0, nullptr, nullptr)), 0);
    WideCharToMultiByte(CP_UTF8, 0, text.data(), count, result.data(), int(result.size()), nullptr, nullptr);
    return result;
}

/// What the system says about its last error.
std::string reason(DWORD error = GetLastError())
{
    wchar_t text[512];
    DWORD size = FormatMessageW(FORMAT_MESSAGE_FROM_SYSTEM | FORMAT_MESSAGE_IGNORE_INSERTS, nullptr, error, 0, text,
                                DWORD(std::size(text)), nullptr);
    while (size && (text[size - 1] == L'\n' || text[size - 1] == L'\r' || text[size - 1] == L'.'))
        --size;
    return size ? narrow({text, size}) : cat("error ", error);
}

struct Handle {
    HANDLE handle = nullptr;
    explicit Handle(HANDLE opened) : handle(opened == INVALID_HANDLE_VALUE ? nullptr : opened) { }
    ~Handle()
    {
        if (handle)
            CloseHandle(handle);
    }
    Handle(const Handle&) = delete;
    Handle& operator=(const Handle&) = delete;
};

bool write_whole(const std::string& path, std::string_view bytes)
{
    const Handle file(
        CreateFileW(wide(path).c_str(), GENERIC_WRITE, 0, nullptr, CREATE_ALWAYS, FILE_ATTRIBUTE_NORMAL, nullptr));
    if (!file.handle)
        return false;
    while (!bytes.empty()) {
        DWORD written = 0;
        const DWORD most = DWORD(std::min<size_t>(bytes.size(), 1u << 30));
        if (!WriteFile(file.handle, bytes.data(), most, &written, nullptr) || written == 0)
            return false;
        bytes.remove_prefix(written);
    }
    return true;
}

/// A folder with a name that nobody has, in the user's own temporary folder; empty: it cannot be made.
std::string make_folder()
{
    static std::atomic<uint32_t> count{0};
    wchar_t base[MAX_PATH + 1];
    const DWORD size = GetTempPathW(DWORD(std::size(base)), base);
    if (!size || size > MAX_PATH)
        return "";
    for (int tries = 0; tries < 100; ++tries) {
        const std::string path = cat(narrow({base, size}), "slangpy-", GetCurrentProcessId(), "-", GetTickCount64(),
                                     "-", ++count);
        if (CreateDirectoryW(wide(path).c_str(), nullptr))
            return path;
        if (GetLastError() != ERROR_ALREADY_EXISTS)
            break;
    }
    return "";
}

/// One argument as the C runtime of the program that gets it takes command lines apart.
void append_quoted(std::wstring& line, const std::string& argument)
{
    if (!line.empty())
        line += L' ';
    line += L'"';
    size_t backslashes = 0;
    for (const wchar_t c : wide(argument)) {
        if (c == L'"')
            line.append(backslashes + 1, L'\\'); // those before a quote are doubled, and the quote has one more
        backslashes = c == L'\\' ? backslashes + 1 : 0;
        line += c;
    }
    line.append(backslashes, L'\\');
    line += L'"';
}

/// A file that a program started from here inherits.
HANDLE open_inherited(const wchar_t* path, DWORD access, DWORD creation)
{
    SECURITY_ATTRIBUTES inherited = {sizeof(inherited), nullptr, TRUE};
    return CreateFileW(path, access, FILE_SHARE_READ | FILE_SHARE_WRITE, &inherited, creation, FILE_ATTRIBUTE_NORMAL,
                       nullptr);
}

} // namespace

const char *const library_name = "/kernel.dll", *const object_name = "/kernel.obj";

std::string find_program(const std::string& name)
{
    wchar_t found[32768];
    const DWORD size = SearchPathW(nullptr, wide(name).c_str(), L".exe", DWORD(std::size(found)), found, nullptr);
    return size && size < std::size(found) ? narrow({found, size}) : "";
}

std::string file_identity(const std::string& path)
{
    WIN32_FILE_ATTRIBUTE_DATA info = {};
    GetFileAttributesExW(wide(path).c_str(), GetFileExInfoStandard, &info);
    return cat(path, " ", uint64_t(info.nFileSizeHigh) << 32 | info.nFileSizeLow, " ",
               uint64_t(info.ftLastWriteTime.dwHighDateTime) << 32 | info.ftLastWriteTime.dwLowDateTime);
}

WorkFolder::WorkFolder() : path(make_folder())
{
    if (path.empty())
        fail_runtime("cannot make a folder to compile in, in the temporary folder (TMP): ", reason());
}

WorkFolder::~WorkFolder()
{
    for (const char* name : {library_name, object_name, "/log.txt"})
        DeleteFileW(wide(path + name).c_str());
    if (keep)
        return;
    DeleteFileW(wide(path + "/kernel.cpp").c_str());
    RemoveDirectoryW(wide(path).c_str());
}

void write_file(const std::string& path, std::string_view bytes, const char* what)
{
    if (!write_whole(path, bytes))
        fail_runtime("cannot write ", what, " to ", path, ": ", reason());
}

int run(const std::vector<std::string>& command, const std::string& log)
{
    std::wstring line;
    for (const std::string& argument : command)
        append_quoted(line, argument);
    const Handle input(open_inherited(L"NUL", GENERIC_READ, OPEN_EXISTING));
    const Handle output(open_inherited(wide(log).c_str(), GENERIC_WRITE, CREATE_ALWAYS));
    STARTUPINFOW startup = {};
    startup.cb = sizeof(startup);
    startup.dwFlags = STARTF_USESTDHANDLES;
    startup.hStdInput = input.handle;
    startup.hStdOutput = startup.hStdError = output.handle;
    PROCESS_INFORMATION started = {};
    if (!CreateProcessW(wide(command[0]).c_str(), line.data(), nullptr, nullptr, TRUE,
                        CREATE_SUSPENDED | CREATE_NO_WINDOW, nullptr, nullptr, &startup, &started))
        fail_runtime("cannot start the C++ compiler ", command[0], ": ", reason());
    const Handle process(started.hProcess), thread(started.hThread);
    const Handle job(CreateJobObjectW(nullptr, nullptr)); // to be ended together: the compiler starts others
    AssignProcessToJobObject(job.handle, process.handle);
    ResumeThread(thread.handle);
    PatientWait patience;
    while (WaitForSingleObject(process.handle, 0) == WAIT_TIMEOUT)
        try {
            patience.pause();
        } catch (...) { // Ctrl-C
            TerminateJobObject(job.handle, 1);
            WaitForSingleObject(process.handle, INFINITE);
            throw;
        }
    DWORD status = 0;
    GetExitCodeProcess(process.handle, &status);
    return int(status);
}

std::string processor_name()
{
    wchar_t name[256];
    DWORD size = sizeof(name);
    if (RegGetValueW(HKEY_LOCAL_MACHINE, L"HARDWARE\\DESCRIPTION\\System\\CentralProcessor\\0", L"ProcessorNameString",
                     RRF_RT_REG_SZ, nullptr, name, &size) != ERROR_SUCCESS)
        return "CPU";
    return narrow(name);
}

const std::string& processor_identity()
{
    static const std::string identity = [] {
        std::string text = processor_name();
        if (const char* model = std::getenv("PROCESSOR_IDENTIFIER"))
            text += cat("\n", model);
#if defined(__x86_64__)
        for (const unsigned leaf : {1u, 7u}) {
            unsigned a = 0, b = 0, c = 0, d = 0;
            __get_cpuid_count(leaf, 0, &a, &b, &c, &d);
            text += cat("\n", a, " ", leaf == 1 ? b & 0x00ffffffu : b, " ", c, " ", d); // without the core's number
        }
#endif
        return text;
    }();
    return identity;
}

/// The file of a loaded library cannot be removed: it goes with the library.
struct Library::File {
    std::string folder, path;
    ~File()
    {
        DeleteFileW(wide(path).c_str());
        RemoveDirectoryW(wide(folder).c_str());
    }
};

Library::Library(std::string_view bytes, const std::string& label) : m_file(new File)
{
    static std::atomic<uint64_t> count{0}; // the loader takes equal names for one library
    m_file->folder = make_folder();
    m_file->path = cat(m_file->folder, "\\kernel-", ++count, ".dll");
    if (!m_file->folder.empty() && write_whole(m_file->path, bytes))
        m_handle = LoadLibraryExW(wide(m_file->path).c_str(), nullptr, 0);
    if (!m_handle)
        fail_runtime("cannot load the compiled code of ", label, ": ", reason());
}

Library::~Library()
{
    if (m_handle)
        FreeLibrary(static_cast<HMODULE>(m_handle));
}

void* Library::symbol(const std::string& name) const
{
    return reinterpret_cast<void*>(GetProcAddress(static_cast<HMODULE>(m_handle), name.c_str()));
}

} // namespace spy::cpu

#endif
