#pragma once
// What the CPU backend asks of the operating system: system.cpp, and system_windows.cpp for Windows.
#include <string>
#include <string_view>
#include <vector>

namespace spy::cpu {

/// The path of a program that the shell would find; empty: there is none.
std::string find_program(const std::string& name);
/// Path, size and date of a file.
std::string file_identity(const std::string& path);

/// A fresh folder of our own, removed with the files that a compile leaves in it. Its source stays when `keep` is set.
struct WorkFolder {
    std::string path;
    bool keep = false;

    WorkFolder();
    ~WorkFolder();
    WorkFolder(const WorkFolder&) = delete;
    WorkFolder& operator=(const WorkFolder&) = delete;
};
/// File names in a WorkFolder: of a compiled kernel, and of the object it is linked from.
extern const char *const library_name, *const object_name;

/// A file that only this user reads; throws, naming `what`.
void write_file(const std::string& path, std::string_view bytes, const char* what);
/// Exit status of a program whose output goes to the file `log`. Ctrl-C ends it with all that it started.
int run(const std::vector<std::string>& command, const std::string& log);

} // namespace spy::cpu
