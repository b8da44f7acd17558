#pragma once
// What the CPU backend needs from the system: a C++ compiler and the dynamic loader.
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace spy::cpu {

/// Set by the Python layer before the first compile; the defaults do for C++ users.
struct Config {
    unsigned thread_count = 0; ///< 0: one per hardware thread
    unsigned wave_lanes = 1;   ///< 1 or 32
    /// Commands to try in order, each as program and leading arguments.
    std::vector<std::vector<std::string>> compilers{{"g++"}, {"clang++"}, {"c++"}};
};
Config config();
void set_config(Config config);

struct Compiler {
    std::vector<std::string> command;      ///< absolute program, then leading arguments
    std::string identity;                  ///< path, size and date of the program: changes when the compiler does
    bool is_clang = false, is_zig = false; ///< zig's is a clang, too
};
/// The first of Config::compilers that exists; throws spy::Error "no C++ compiler found ...".
const Compiler& compiler();

/// Model and feature flags of the processor, which -march=native depends on.
const std::string& processor_identity();
std::string processor_name();

/// Compiles C++ text to the bytes of a shared library.
/// whole: compiled instead where `source` needs more than what stands in it; empty: there is nothing else.
std::string compile_shared_library(std::string_view source, std::string_view whole,
                                   const std::vector<std::string>& flags, const std::string& label);

/// What the frames of a library's functions take together, where that is much: as none calls itself, no more is needed.
uint64_t stack_of(std::string_view library);

/// A shared library loaded from memory; unloaded by the destructor.
class Library {
public:
    Library(std::string_view bytes, const std::string& label);
    ~Library();
    Library(const Library&) = delete;
    Library& operator=(const Library&) = delete;
    void* symbol(const std::string& name) const; ///< null when missing

private:
    struct File; ///< where the library lies while it is loaded, where that is a file

    std::unique_ptr<File> m_file;
    void* m_handle = nullptr;
    int m_memory_file = -1; ///< stays open: the loader knows libraries by name, and this one's name is its number
};

} // namespace spy::cpu
